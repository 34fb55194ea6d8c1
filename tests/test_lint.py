"""The engine around the rules: what is selected, what the text suppresses, baselines, failures, other packages' rules."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext import analysis, lint
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Source
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.lint import registry
from hlotext.reports import full_text
from tests import cli_support, support

TWO = """HloModule m

ENTRY e {
  x = f32[32768]{0} parameter(0)
  y = f32[32768]{0} parameter(1)%s
  d = f64[32768]{0} convert(x)%s
  ROOT c = f64[32768]{0} negate(d)
}
"""


def found(text: str, config: lint.Config | None = None, name: str = "<text>") -> list[str]:
    """The codes that are found in a text."""
    config = attrs.evolve(config or lint.Config(), **support.SAY_ALL)
    findings = lint.lint_source(Source(text, name), config).findings
    return [finding.code for finding in sorted(findings, key=lambda one: one.line)]


def test_the_dearest_finding_comes_first() -> None:
    """With place, node, and the line; of those that cost nothing the first of the text."""
    second, first = lint.run(hlo.parse(TWO % ("", "")), lint.Config(**support.SAY_ALL))
    assert (first.code, first.line, first.column, first.name) == ("G102", 5, 3, "y")
    assert (second.code, second.source_line) == ("D101", "  d = f64[32768]{0} convert(x)")
    assert first.instruction is not None
    assert first.instruction.name == "y"


@pytest.mark.parametrize(
    ("config", "codes"),
    [
        (lint.Config(), ["G102", "D101"]),
        (lint.Config(select=("D",)), ["D101"]),
        (lint.Config(ignore=("G",)), ["D101"]),
        (lint.Config(select=("G102", "D101"), ignore=("D", "G")), ["G102", "D101"]),
        (lint.Config(select=("ALL",), ignore=("G", "S")), ["D101"]),
        (lint.Config(extend_select=("G111",), ignore=("D", "G102")), ["G111"]),
        (lint.Config(per_file_ignores={"dumps/*": ("D",)}), ["G102"]),
        (lint.Config(per_file_ignores={"other/*": ("D",)}), ["G102", "D101"]),
        (lint.Config(per_op_name_ignores={"*": ("D", "G")}), ["G102", "D101"]),
    ],
)
def test_selection(config: lint.Config, codes: list[str]) -> None:
    """The longer code wins; op_name patterns need an op_name."""
    assert found(TWO % ("", ""), config, "/home/u/dumps/a.txt") == codes


def test_op_name_patterns() -> None:
    """A pattern quiets the instructions of one scope."""
    text = TWO % ("", ', metadata={op_name="jit(f)/attention/convert"}')
    assert found(text, lint.Config(per_op_name_ignores={"*/attention/*": ("D",)})) == ["G102"]
    assert found(text, lint.Config(per_op_name_ignores={"*/mlp/*": ("D",)})) == ["G102", "D101"]


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        (" // hlotext: ignore[G102]", "", ["D101"]),
        (" // hlotext: ignore", "", ["D101"]),
        (" // hlotext: ignore[D101]", "", ["G102", "D101"]),
        ("\n  // hlotext: ignore[C, D]", "", ["G102"]),
        ("", ', frontend_attributes={hlotext_ignore="D101"}', ["G102"]),
        ("", ', frontend_attributes={hlotext_ignore="K101"}', ["G102", "D101"]),
    ],
)
def test_suppression_in_the_text(first: str, second: str, codes: list[str]) -> None:
    """By comments on the line or the one above, and by an attribute that compilers keep."""
    assert found(TWO % (first, second)) == codes


@pytest.mark.parametrize(
    ("comment", "note"),
    [
        ("hlotext: ignore L101", "hides nothing; write `// hlotext: ignore[L101]`"),
        ("hlotext: ignore: L101", "hides nothing; write `// hlotext: ignore[L101]`"),
        ("hlotext: ignore(L101)", "hides nothing; write `// hlotext: ignore[L101]`"),
        ("hlotext: ignore[L101", "hides nothing; write `// hlotext: ignore[L101]`"),
        ("hlotext: ignored elsewhere", "hides nothing; write `// hlotext: ignore[CODE]`"),
        ("hlotext: ignor[D101]", "hides nothing; write `// hlotext: ignore[D101]`"),
        ("hlotxt: ignore[D101]", "hides nothing; write `// hlotext: ignore[D101]`"),
        ("hlotext: ignore[G1O6]", "names G1O6, which is not a rule code; did you mean `G106`?"),
        ("hlotext: ignore[C101]", ""),
        ("see http://hlo.example: a page", ""),
    ],
)
def test_a_comment_that_hides_nothing_is_noted(comment: str, note: str) -> None:
    text = TWO % (f" // {comment}", "")
    linted = lint.lint_source(Source(text))
    assert found(text) == ["G102", "D101"]
    assert len(linted.notes) == bool(note)
    assert all(note in told for told in linted.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.hlotext]\nselect = []\n", "settings of the linter are in the table `tool.hlotext.lint`"),
        ("[tool.hlotext.lnt]\nselect = []\n", "no table or setting 'lnt'"),
        ("[hlotext.lint]\nselect = []\n", "no tool reads the table `hlotext`; did you mean `tool.hlotext`?"),
        ("[tool.hlo-text.lint]\nselect = []\n", "no tool is named 'hlo-text'; did you mean `tool.hlotext`?"),
    ],
)
def test_a_misspelled_table_of_pyproject_is_no_missing_one(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    file = lint.find_config(tmp_path)
    assert file is not None
    with pytest.raises(lint.ConfigError, match=re.escape(message)):
        lint.load_config(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[lint]\nselekt = []\n", "no setting 'selekt'; did you mean `select`"),
        ('[lint]\nselect = "C"\n', "select must be a list of codes"),
        ('[lint]\nselect = ["Q"]\n', "Q is neither a rule code"),
        ('[lint]\nselect = ["missing-donation"]\n', "did you mean `M103`?"),
        ("[lint.rules.Q101]\nmin_bytes = 1\n", "no rule has this code"),
        ("[lint.rules.L101]\nbytes = 1\n", "no such threshold"),
        ('[lint.rules.C112]\ndevices_per_host = "2"\n', "must be a number"),
        ("[lint]\nwarn = -0.1\n", "warn must be a non-negative number"),
        ('[lint]\nnote = "1%"\n', "note must be a non-negative number"),
        ('[lint]\nchip = "h900"\n', "no chip is named 'h900'"),
        ("[lint]\ntrips = { body = -1 }\n", "trips.body must be a non-negative number"),
        ('[lint]\nprofile = "vpu"\n', "profile must be one of tpu, gpu, cpu"),
        ("[lint\n", "is not valid TOML"),
    ],
)
def test_wrong_configuration(tmp_path: Path, text: str, message: str) -> None:
    """One line that names the setting."""
    path = tmp_path / "hlotext.toml"
    path.write_text(text)
    with pytest.raises(lint.ConfigError, match=message):
        lint.load_config(path)


def test_configuration_is_found_upwards(tmp_path: Path) -> None:
    """The nearest file that speaks of lint counts."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "pyproject.toml").write_text(
        "[tool.hlotext.lint]\nselect = ['C', 'L101']\nprofile = 'tpu'\n"
        "[tool.hlotext.lint.per-file-ignores]\n'x*' = ['C']\n[tool.hlotext.lint.rules.C112]\ndevices_per_host = 4\n"
    )
    path = lint.find_config(below)
    assert path == tmp_path / "pyproject.toml"
    config = lint.load_config(path)
    assert config.select == ("C", "L101")
    assert config.profile is analysis.Backend.TPU
    assert config.per_file_ignores == {"x*": ("C",)}
    assert config.rules == {"C112": {"devices_per_host": 4}}


# ---- bad input, failures


@pytest.mark.parametrize(
    "config", [lint.Config(select=("V",)), lint.Config(ignore=("G", "D"), extend_select=("V1",))]
)
def test_the_verifier_on_request(config: lint.Config) -> None:
    """Its codes are selected like all others; unasked it does not run."""
    text = "HloModule m\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[5]{0} negate(x)\n}\n"
    (finding,) = lint.lint_source(Source(text), config).findings
    assert (finding.code[0], finding.line, finding.name) == ("V", 5, "y")
    assert found(text) == []


def test_text_that_does_not_parse_is_reported() -> None:
    """The reader's errors are findings; the rules are not asked about half a module."""
    linted = lint.lint_source(
        Source("HloModule m\n\nENTRY e {\n  x = f32[4]{0} negate(nothing)\n}\n", "bad.txt")
    )
    (finding,) = linted.findings
    assert (finding.code[:2], finding.line, finding.file, linted.modules) == ("X1", 4, "bad.txt", 0)


def test_unknown_syntax_is_a_note() -> None:
    """And can be ignored, as an error cannot."""
    text = "HloModule m\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} frobnicate(x)\n}\n"
    assert found(text) == ["X201"]
    assert found(text, lint.Config(ignore=("X",))) == []


class Failing(lint.Rule):
    code, name, title = "Z901", "failing", "a rule that fails"
    opcodes = frozenset({"parameter"})

    def check(self, instruction: Instruction, context: lint.Context) -> Iterator[lint.Report]:
        raise RuntimeError("broken")


class Foreign(lint.Rule):
    """Parameters are forbidden here."""

    code, name, title = "Z902", "foreign", "a parameter"
    opcodes = frozenset({"parameter"})

    def check(self, instruction: Instruction, context: lint.Context) -> Iterator[lint.Report]:
        yield lint.Report(instruction, f"{instruction.name} is a parameter")


class _Point:
    def __init__(self, value: Any) -> None:
        self.value = "package:thing"
        self._value = value

    def load(self) -> Any:
        return self._value


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What other packages register."""
    values: list[Any] = []
    monkeypatch.setattr(metadata, "entry_points", lambda group: [_Point(v) for v in values])
    registry.all_rules.cache_clear()
    yield values
    registry.all_rules.cache_clear()


def test_rules_of_other_packages(plugins: list[Any]) -> None:
    """They run like the built-in ones, and one that fails does not stop the others."""
    plugins += [Failing, Foreign]
    findings = lint.run(hlo.parse(TWO % ("", "")), lint.Config(**support.SAY_ALL))
    assert sorted(finding.code for finding in findings) == ["D101", "G102", lint.INTERNAL, "Z902"]
    assert [finding.places for finding in findings if finding.code == "Z902"] == [2]
    (failure,) = [finding for finding in findings if finding.code == lint.INTERNAL]
    assert failure.message == "rule Z901 failed: RuntimeError: broken"
    assert "Traceback" in failure.help
    assert "Traceback" in full_text(failure, True)
    assert lint.code_of("Z902").page() == "# Z902: a parameter\n\nParameters are forbidden here.\n"


class _Same(Foreign):
    code = "D101"


@pytest.mark.parametrize(("value", "message"), [(3, "not a rule class"), (_Same, "which another rule has")])
def test_rules_that_cannot_be_used(plugins: list[Any], value: Any, message: str) -> None:
    """The message names what was registered."""
    plugins.append(value)
    with pytest.raises(lint.RuleError, match=message):
        lint.run(hlo.parse(TWO % ("", "")), lint.Config(**support.SAY_ALL))


def test_estimates_are_told() -> None:
    """Bytes and operations, where a rule has them."""
    path = support.DATA / "lint" / "compiled" / "waste_upcast_dot.h100_1x1x1.after_optimizations.txt"
    (finding,) = lint.lint_source(Source(path.read_text(), path.name), lint.Config(select=("D101",))).findings
    assert finding.flops == 2 * 1024**3
    assert any(line.endswith("; work: 2.15 GFLOP per run") for line in full_text(finding, True).splitlines())
    other = attrs.evolve(finding, bytes=3 << 20, flops=None)
    assert any(
        line.endswith(("; memory: 3.00 MiB", "; traffic: 3.00 MiB per run"))
        for line in full_text(other, True).splitlines()
    )
    assert "work:" not in full_text(attrs.evolve(finding, bytes=0, flops=None), True)


# ---- baselines


_SMALL_CACHE = """HloModule m, is_scheduled=true

ENTRY main {
  cache = f32[262144]{0} parameter(0)
  big = f32[268435456]{0} parameter(1)
  part = f32[1]{0} parameter(2)
  at = s32[] parameter(3)
  kept = f32[262144]{0} copy(cache)
  next = f32[262144]{0} dynamic-update-slice(kept, part, at)
  sum = f32[268435456]{0} negate(big)
  ROOT t = (f32[262144]{0}, f32[268435456]{0}) tuple(next, sum)
}
"""


def test_donating_what_is_little_beside_the_peak_is_not_asked_for() -> None:
    """A cache of 1 MiB where 2 GiB are held."""
    assert not lint.lint_source(Source(_SMALL_CACHE), lint.Config(select=("M103",))).findings


def test_settings_of_before_are_taken_and_said_to_do_nothing(tmp_path: Path) -> None:
    """Of a rule's thresholds, and those of all rules."""
    path = tmp_path / "hlotext.toml"
    path.write_text("[lint]\nmin-bytes = 1\n[lint.rules.K101]\nmin_bytes = 1\n")
    with pytest.warns(DeprecationWarning, match="is no longer a setting") as said:
        config = lint.load_config(path)
    assert sorted(str(one.message).split(" is no longer a setting")[0] for one in said) == [
        "min-bytes",
        "rules.K101.min_bytes",
    ]
    assert [rule.code for rule in config.active_rules() if rule.code == "K101"] == ["K101"]


_REWARDS = """HloModule m, is_scheduled=true

ENTRY main {
  a = f32[262144]{0} parameter(0), metadata={op_name="params['a']"}
  b = f32[262144]{0} parameter(1), metadata={op_name="params['b']"}
  c = f32[262144]{0} parameter(2), metadata={op_name="params['c']"}
  seen = f32[262144]{0} parameter(3), metadata={op_name="batch['seen']"}
  again = f32[262144]{0} parameter(4), metadata={op_name="batch['again']"}
  reward = f32[262144]{0} parameter(5), metadata={op_name="batch['reward']"}
  x = f32[262144]{0} negate(a)
  y = f32[262144]{0} negate(b)
  z = f32[262144]{0} negate(c)
  error = f32[262144]{0} abs(reward)
  ROOT t = (f32[262144]{0}, f32[262144]{0}, f32[262144]{0}, f32[262144]{0}) tuple(x, y, z, error)
}
"""


def test_what_is_computed_from_a_batch_is_no_new_state() -> None:
    """Three parameters, and not the rewards that an error is computed of."""
    (finding,) = lint.lint_source(Source(_REWARDS), lint.Config(select=("M103",))).findings
    assert finding.message.startswith("3 arguments, 3.00 MiB in total, are updated")


def test_a_baseline_counts() -> None:
    """Two equal findings are two; a third one is new; what has gone is told."""
    text = "HloModule m\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n%s  ROOT c = f32[4]{0} negate(x)\n}\n"
    one, two, three = (
        lint.lint_source(
            Source(text % "".join(f"  p{i} = f32[524288]{{0}} constant({{...}})\n" for i in range(n))),
            lint.Config(**support.SAY_ALL),
        ).findings
        for n in (1, 2, 3)
    )
    baseline = lint.Baseline.from_text(lint.Baseline.of(two).to_text())
    assert baseline == lint.Baseline.of(two)
    (finding,) = baseline.compare(three).new
    assert finding.places == 3
    assert not baseline.compare(three).known
    assert [entry.count for entry in baseline.compare(one).gone] == [1]
    assert not baseline.compare(two).new
    assert not baseline.compare(two).gone


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 2, "findings": []}', '{"version": 1, "findings": [{}]}']
)
def test_files_that_are_no_baseline(text: str) -> None:
    """One line that names the file."""
    with pytest.raises(lint.BaselineError, match=r"b\.json"):
        lint.Baseline.from_text(text, "b.json")


def recompiled(module: hlo.Module) -> hlo.Module:
    """The module with every instruction and computation renamed and without metadata, read again."""
    for number, computation in enumerate(module.computations):
        if not (computation.is_sugared or computation.is_inline):
            computation.name = f"renamed_computation.{number}"
        for place, instruction in enumerate(computation):
            instruction.name = f"renamed.{number}.{place}"
            instruction.attributes.pop("metadata", None)
    options = attrs.evolve(hlo.PrintOptions.default(), print_large_constants=True)
    return hlo.parse(module.to_text(options), name="other.txt")


@pytest.mark.parametrize(
    "path",
    [p for p in support.corpus_files(("cpu", "gpu", "tpu")) if p.stat().st_size < 400_000],
    ids=support.corpus_id,
)
def test_a_baseline_survives_renaming(path: Path) -> None:
    """The same program under other names and without metadata has nothing new."""
    config = lint.Config(
        extend_select=tuple("CDKLMS"),
        ignore=(
            "C105",
            "C107",
            "D101",
            "G110",
            "G116",
            "G118",
            "G122",
            "M105",
            "M107",
            "M108",
            "M111",
            "M113",
            "S105",
        ),
        **support.SAY_ALL,
    )
    module = hlo.load(path)
    baseline = lint.Baseline.of(lint.run(module, config))
    compared = baseline.compare(lint.run(recompiled(module), config))
    assert not compared.new
    assert not compared.gone


@pytest.mark.parametrize(("is_changing", "code"), [(True, "C101"), (False, "C102")])
def test_one_all_gather_in_a_loop_is_one_new_finding(is_changing: bool, code: str) -> None:
    """Inserted into a real module, whose other findings stay known; of something that stays the same it is worse."""
    config = lint.Config(extend_select=tuple("CDKLM"), **support.SAY_ALL)
    module = hlo.load(support.CORPUS / "cpu" / "ring_attention.cpu_4.after_optimizations.txt")
    baseline = lint.Baseline.of(lint.run(module, config))
    ((loop, _), *_) = analysis.call_graph(module).loops()
    body = loop.attributes["body"]
    fixed = analysis.invariant_instructions(loop)
    value = next(
        i
        for i in body
        if i.shape is not None
        and i.shape.element_type is ELEMENT_TYPES["f32"]
        and i.users
        and i.shape.rank
        and (i not in fixed) is is_changing
    )
    text = recompiled(module).to_text()
    name = f"renamed.{module.computations.index(body)}.{body.instructions.index(value)}"
    assert value.shape is not None
    sizes = value.shape.dimensions
    gathered = f"f32[{','.join(map(str, (4 * sizes[0], *sizes[1:])))}]"
    whole = ", ".join(f"[0:{size}]" for size in sizes)
    line = next(line for line in text.splitlines() if line.strip().startswith(f"%{name} ="))
    user = next(
        line for line in text.splitlines() if f"(%{name})" in line or f"%{name}," in line.split(" = ", 1)[-1]
    )
    groups = "replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true"
    inserted = textwrap.dedent(
        f"""\
          %inserted = {gathered} all-gather(%{name}), channel_id=99, {groups}
          %cut = f32[{",".join(map(str, sizes))}] slice(%inserted), slice={{{whole}}}
        """
    )
    changed = text.replace(user, user.replace(f"%{name}", "%cut"), 1).replace(
        line, f"{line}\n{inserted.rstrip()}", 1
    )
    new = baseline.compare(lint.run(hlo.parse(changed), config)).new
    assert [(finding.code, finding.name) for finding in new if finding.code[0] == "C"] == [(code, "inserted")]


def test_one_more_is_one_other() -> None:
    """The sentence about unread arguments agrees in number."""
    text = (
        "HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n"
        "  y = f32[65536] parameter(1)\n  z = f32[65536] parameter(2)\n}\n"
    )
    (finding,) = [
        one for one in lint.run(hlo.parse(text), lint.Config(**support.SAY_ALL)) if one.code == "G102"
    ]
    assert "and 1 other are never read, but a total of 512 KiB" in finding.message


def test_a_conversion_that_gives_a_tuple_is_no_trouble() -> None:
    """An opcode whose shape is not what it should be: rules that ask for elements do not take it for an array."""
    text = (
        'HloModule m, is_scheduled=true, frontend_attributes={fingerprint_before_lhs="0"}\n\nENTRY e {\n'
        "  a = bf16[128,128]{1,0} parameter(0)\n  t = (f32[4]{0}, f32[2]{0}) convert(a)\n"
        "  ROOT d = f32[128,128]{1,0} dot(t, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    assert "X900" not in [finding.code for finding in lint.run(hlo.parse(text))]


def test_fusions_in_themselves_and_sizes_without_bound() -> None:
    """Rules that go up through fusions come to an end, and those that count elements let be what has no number of them."""
    product = "f32[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    itself = hlo.parse_tolerant(
        f"HloModule m\n\nf {{\n  p = f32[4,4] parameter(0)\n  d = {product}\n"
        "  ROOT g = f32[4,4] fusion(d), kind=kLoop, calls=f\n}\n\n"
        "ENTRY e {\n  a = f32[4,4] parameter(0)\n  ROOT r = f32[4,4] fusion(a), kind=kLoop, calls=f\n}\n"
    ).module
    scatter = hlo.parse(
        "HloModule m, is_scheduled=true\n\nsum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
        "  ROOT s = f32[] add(x, y)\n}\n\nENTRY e {\n  t = f32[?,8]{1,0} parameter(0)\n"
        "  i = s32[3,1]{1,0} parameter(1)\n  u = f32[3,8]{1,0} parameter(2)\n"
        "  k = f32[8,8]{1,0} parameter(3)\n  d = f32[?,8] dot(t, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  ROOT r = f32[?,8]{1,0} scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum\n}\n"
    )
    for module in (itself, scatter):
        assert not [finding for finding in lint.run(module) if finding.code == "X900"]


def test_rules_that_fail_on_an_ill_formed_module_leave_it_to_the_verifier() -> None:
    """Rules take for granted what the verifier checks: its error is reported, and which rules were not checked."""
    text = (
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[64,8]{1,0} parameter(0)\n  i = s32[] parameter(1)\n"
        "  n = f32[64,8]{1,0} negate(p)\n  s = f32[4,8]{1,0} dynamic-slice(n, i, i), dynamic_slice_sizes={4}\n"
        "  ROOT r = f32[4,8]{1,0} negate(s)\n}\n"
    )
    (finding,) = lint.run(hlo.parse(text))
    assert (finding.code, finding.line) == ("V103", 7)
    assert "not checked, since the module is ill-formed: rule " in str(finding.help)


@pytest.mark.parametrize(
    "lines",
    [
        "x = f32[8]{0} parameter(0)\n  g = f32[?,3]{1,0} all-gather(x), channel_id=1, replica_groups=[1,8]<=[8], "
        "dimensions={0}, use_global_device_ids=true\n  ROOT d = f32[8]{0} reshape(g)",
        "x = f32[8,2]{1,0:T(2,128)} parameter(0)\n  y = f32[?,3]{1,0} negate(x)\n  ROOT r = f32[8,2]{1,0} reshape(y)",
    ],
)
def test_sizes_that_nobody_knows_leave_rules_silent(lines: str) -> None:
    text = f"HloModule m, is_scheduled=true, num_partitions=8\n\nENTRY e {{\n  {lines}\n}}\n"
    assert "X900" not in [finding.code for finding in lint.run(hlo.parse(text))]


def test_a_comment_of_another_linter_is_answered(tmp_path: Path) -> None:
    """It hides nothing, which would be noticed late."""
    path = tmp_path / "m.txt"
    path.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)  // noqa: C101\n}\n")
    assert "hides nothing; write `// hlotext: ignore[C101]`" in cli_support.run("lint", path).stderr
