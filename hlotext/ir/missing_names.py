"""Names that a package does not have, answered with what has them here. Imported on failure alone.

`hlotext.read` is `hlotext.load`, `hlotext.lint.check` is `hlotext.lint.run`, and `hlotext.Pipeline` is in `hlotext.rewrite`.
"""

from __future__ import annotations

import dis
import importlib
import re
from collections.abc import Iterator, Mapping
from types import FrameType

from hlotext.ir.foreign_name_tables import turned
from hlotext.ir.spelling import did_you_mean, slip_of, suggestion


class MissingNameError(AttributeError):
    """Raised for a missing name of a package. The suggestion is only computed for the message, so `hasattr` stays
    cheap.
    """

    def __init__(self, package: str, name: str, among: str = "") -> None:
        # Without the object, of which Python would propose another attribute with a similar name.
        super().__init__(f"module {package!r} has no attribute {name!r}", name=None, obj=None)
        self._package, self._name, self._among = package, name, among

    def __str__(self) -> str:
        meant = _listed(self._package, self._name) or self._among or meant_in(self._package, self._name)
        return f"{self.args[0]}; {meant}" if meant else str(self.args[0])

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


def missing(package: str, name: str, frame: FrameType, among: str = "") -> Exception:
    """Returns the error for a missing name of a package: ImportError if `frame` imports it, otherwise AttributeError.

    An ImportError is needed since Python replaces the message of an AttributeError raised by an import statement.
    """
    if frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]:
        meant = among or meant_in(package, name)
        if meant:
            return ImportError(f"cannot import name {name!r} from {package!r}; {meant}", name=package)
    return MissingNameError(package, name, among)


def meant_in(package: str, name: str) -> str:
    """Returns a suggestion for a missing name of a package; may be empty."""
    if name.startswith("_"):
        return did_you_mean(name, ("__version__",)) if package == _OWN and len(name) > 1 else ""
    key = name.lower().replace("_", "")
    if listed := _listed(package, name):
        return listed
    public = list(vars(importlib.import_module(package)).get("__all__", ()))
    if package == _OWN:
        public += _packages()
    if key.startswith("assert"):
        return "use hlotext.inspect(value), whose methods and figures a plain `assert` checks"
    alike = [one for one in public if one.lower().replace("_", "") == key]
    if alike:
        return did_you_mean(alike[0], alike)
    elsewhere = [
        f"{home}.{name}" for home in _homes() if name in vars(importlib.import_module(home))["__all__"]
    ]
    if elsewhere:
        near = slip_of(name, _packages()) if package == _OWN else []
        elsewhere = [*(f"{_OWN}.{one}" for one in near), *elsewhere]
        return f"it is {' or '.join(elsewhere)}"
    use = _MEANT[""].get(key)
    if use is not None:
        return f"use {use}"
    slip = suggestion(slip_of(name, public)) or _nearly_listed(package, key) or did_you_mean(name, public)
    return slip or f"dir({package}) lists what it has"


def _listed(package: str, name: str) -> str:
    """The advice of the tables about a name; empty if there is none."""
    key = name.lower().replace("_", "")
    use = _MEANT.get(package.removeprefix(_OWN).removeprefix("."), {}).get(key)
    use = use or (_MAIN.get(package) if key in _VERBS else None)
    return "" if use is None else f"use {use}" if "(" in use or " " in use else f"did you mean `{use}`?"


def _nearly_listed(package: str, key: str) -> str:
    """The advice of the tables about the name that a misspelled one may be; empty if there is none."""
    listed = _MEANT.get(package.removeprefix(_OWN).removeprefix("."), {})
    known = {**dict.fromkeys(_VERBS if package in _MAIN else ()), **listed}
    near = slip_of(key, known)
    return _listed(package, near[0]) if near else ""


def _packages() -> tuple[str, ...]:
    return tuple(vars(importlib.import_module(_OWN))["_ROOMS"])


def _homes() -> Iterator[str]:
    """Public packages, hlotext itself first."""
    yield _OWN
    for room in (*_packages(), "testing"):
        yield f"{_OWN}.{room}"


_OWN = "hlotext"
_VERBS = set(
    re.findall(
        r"\w+",
        "analyse analyze apply assign build calculate check compare compute create do estimate evaluate execute get main "
        "make measure model of open parse predict process read report run simulate start summary load loads",
    )
)
"""Words for what a package does; its main function is meant."""
_MAIN: Mapping[str, str] = {
    "hlotext.cost": "hlotext.cost.analyze(module), or hlotext.cost.estimate(module, chip) for times",
    "hlotext.diff": "hlotext.diff.compare(old, new)",
    "hlotext.dumps": "hlotext.dumps.open(path)",
    "hlotext.layout": "hlotext.layout.explain(shape)",
    "hlotext.lint": "hlotext.lint.run(module)",
    "hlotext.memory": "hlotext.memory.assign(module)",
    "hlotext.rewrite": "hlotext.rewrite.apply_rules(module, rules), or Pipeline(passes).run(module)",
    "hlotext.tables": "hlotext.tables.tables_of(module)",
    "hlotext.thunks": "hlotext.thunks.predict(module)",
    "hlotext.triage": "hlotext.triage.run(paths)",
}


_MEANT: Mapping[str, Mapping[str, str]] = {
    "": turned(
        {
            "hlotext.load(path)": "read open fromfile readfile loadfile parsefile loadmodule readmodule openfile "
            "loadtext readtext frompath loadhlo readhlo import fromproto loadproto",
            "hlotext.parse(text)": "fromtext fromstring fromstr loads parsetext parsestring parsehlo parsemodule "
            "parsestr reads compile",
            "hlotext.parse_instruction(line)": "parseline parseop parseoperation fromline",
            "hlotext.load(it), which takes what JAX lowered or compiled": "fromlowered fromcompiled fromjit fromfunction",
            "hlotext.interop.jax.from_jax(f, *arguments), after import hlotext.interop.jax": "fromjax jax lower "
            "fromcallable",
            "hlotext.Module": "hlomodule",
            "hlotext.HloSyntaxError": "parseerror syntaxerror parsingerror hloparseerror hloerror",
            "hlotext.HloSyntaxError, hlotext.InputError or hlotext.EditError": "error exception hlotexterror errors",
            "hlotext.verify(module)": "check validate verifier isvalid",
            "hlotext.cost.estimate(module, chip)": "time times runtime roofline estimate",
            "hlotext.memory.assign(module).peak()": "peak peakmemory buffers",
            "hlotext.cost.analyze(module)": "flops analyze analyse costanalysis",
            "hlotext.tables.tables_of(module)": "table todataframe topandas dataframe toarrow",
            "str(module), or module.to_text(options) for another style": "totext tostring print dump dumpstext show "
            "format pretty",
            "str(module), which pathlib.Path(path).write_text takes": "save write savefile writefile store tofile",
            "hlotext.rewrite.apply_rules(module, rules)": "apply rewriter substitute replace",
            "hlotext.rewrite.Pipeline(hlotext.rewrite.parse_passes(text)).run(module)": "optimize optimise runpasses "
            "runpass simplify passes dce cse algsimp",
            "hlotext.interop.jax.run(module, *arrays), after import hlotext.interop.jax": "run execute evaluate "
            "interpret",
            "hlotext.interop.jax, which is imported by its name": "registerpass assertequivalent randominputs interopjax",
            "hlotext.testing, or hlotext.inspect(value)": "fixture asserthlo expect",
            "module.instructions(), or computation.instructions": "walk traverse visit iterate iterinstructions ops",
            "hlotext.matchers": "matcher patterns m match",
            "hlotext.__version__": "version",
        }
    ),
    "cost": turned(
        {
            "hlotext.cost.estimate(module, chip)": "time times seconds runtime roofline chip chips latency",
            "hlotext.cost.analyze(module).run.flops or .bytes_accessed": "flops bytes total totals",
        }
    ),
    "memory": turned(
        {
            "hlotext.memory.assign(module).peak()": "peak peakmemory total usage size highwatermark",
            "hlotext.memory.assign(module).allocations": "buffers allocations buffer allocate",
        }
    ),
    "lint": turned(
        {
            "hlotext.lint.run(module)": "lint linter lintmodule findings",
            "hlotext.lint.all_rules()": "rules listrules getrules",
            "hlotext.lint.lint_files(paths)": "lintpath lintfolder lintdirectory",
        }
    ),
    "diff": turned({"hlotext.diff.compare(old, new)": "diff difference differences delta"}),
    "dumps": turned({"hlotext.dumps.open(path)": "folder dump fromfolder directory"}),
    "rewrite": turned(
        {
            "hlotext.rewrite.rule(text), or @hlotext.rewrite.pattern(...) above a function": "parserule rule rules newrule "
            "makerule compilerule fromtext",
            "hlotext.rewrite.RewriteRule": "rule_ rewriterpattern patternrule",
            "hlotext.rewrite.apply_rules(module, [rule])": "applyrule rewrite applyrewrites applypatterns "
            "applypatternsgreedily fixpoint greedy substitute",
            "hlotext.rewrite.Rewrite": "patternrewriter rewriter context",
            "hlotext.rewrite.Pipeline(hlotext.rewrite.parse_passes(text)).run(module)": "runpasses runpass optimize "
            "passmanager pipelines passpipeline runpipeline",
            "hlotext.rewrite.PASSES": "passes listpasses allpasses",
            "hlotext.rewrite.Builder.before(instruction)": "build builder_ irbuilder",
            "hlotext.matchers.op(name), with from hlotext import matchers": "op any anyop",
            "hlotext.EditError": "error",
        }
    ),
    "tables": turned(
        {
            "hlotext.tables.tables_of(module)": "table tables all from_module frommodule",
            'pandas.DataFrame.from_arrow(hlotext.tables.tables_of(module)["instructions"])': "topandas todataframe "
            "dataframe pandas frame",
            'polars.DataFrame(hlotext.tables.tables_of(module)["instructions"])': "polars topolars",
        }
    ),
    "layout": turned({"hlotext.parse_layout(text)": "parse parselayout fromtext read load"}),
    "matchers": turned(
        {
            "hlotext.matchers.op()": "any anything wildcard any_op anyop instruction",
            "hlotext.matchers.parse_pattern(text)": "parse compile pattern_ frompattern fromtext read",
        }
    ),
    "proto": turned(
        {
            "hlotext.load(path)": "load open read loadmodule fromfile",
            "hlotext.proto.read_module(data)": "parse loads decode deserialize frombytes parsefromstring fromproto",
            "hlotext.proto.write_module(module)": "dump dumps write encode serialize toproto tobytes serializetostring",
        }
    ),
    "thunks": turned({"hlotext.thunks.predict(module)": "thunks list"}),
    "triage": turned({"hlotext.triage.run(paths)": "triage rank"}),
    "testing": turned({"hlotext.testing.inspect(value)": "hlo fixture check load parse expect"}),
    "interop.jax": turned(
        {
            "hlotext.interop.jax.from_jax(jax.jit(f), *arguments)": "lower compile jit load parse fromlowered trace",
            "hlotext.interop.jax.run(module, *arrays)": "execute evaluate call eval",
        }
    ),
    "execution": turned(
        {"hlotext.interop.jax, after import hlotext.interop.jax": "fromjax lower compile jit jax"}
    ),
}
"""The expression to use instead of a name, in lower case and without underscores, by package."""
