"""Passes, pipelines, extraction, on small modules and on the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import hlotext as hlo
from hlotext import rewrite
from hlotext.analysis.age import age_for
from hlotext.edit import cloning, integrity, many, validation
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.values.age import XlaAge
from hlotext.rewrite import passes as library
from hlotext.rewrite.passes import PASSES, Pass, PassResult, parse_passes
from hlotext.rewrite.passes.base import Age
from hlotext.rewrite.pipeline import PassError, Pipeline, bisect
from hlotext.verify import verify
from tests import support

MLP = support.CORPUS / "cpu" / "mlp_forward.cpu_1.before_optimizations.txt"
CPU = [path for path in support.corpus_files(("cpu",)) if len(support.read_text(path)) < 60_000]


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_leaves_sound_modules(name: str) -> None:
    """On the corpus for CPU: the graph is sound, verify finds nothing new, and a second run changes nothing."""
    for path in CPU:
        module = hlo.load(path)
        kind = PASSES[name]
        if not all(needed.holds(module) for needed in kind.requires):
            continue
        Pipeline((kind(),)).run(module)
        again = hlo.parse(str(module))
        assert integrity.problems(again) == []
        if name not in ("while-to-one-trip", "flatten-call-graph") and not kind.is_one_round:
            assert not kind().run(again).changed, path.name


@pytest.mark.parametrize("path", CPU[:40], ids=lambda path: path.name)
def test_only_touched_lines_change(path: Path) -> None:
    """After passes, each line of the text is a line of the source, or that of an instruction that was touched."""
    source = support.read_text(path).decode()
    module = hlo.parse(source)
    Pipeline(tuple(parse_passes("call-inliner,algsimp,cse,dce"))).run(module)
    old = {line.strip() for line in source.splitlines()}
    new = [line.strip() for line in str(module).splitlines()]
    allowed = {str(i) for i in module.instructions() if i.is_modified}
    headers = {str(c).splitlines()[0] for c in module.computations if c._is_signature_touched}
    assert [line for line in new if line not in old | allowed | headers][module.is_header_modified :] == []


def test_what_is_in_a_scheduled_module_stays_scheduled() -> None:
    module = hlo.load(support.CORPUS / "cpu" / "mlp_train.cpu_1.after_optimizations.txt")
    Pipeline(tuple(parse_passes("algsimp,cse,dce"))).run(module)
    assert module.is_scheduled


def test_tuples() -> None:
    module = hlo.parse(
        "ENTRY e { x = f32[] parameter(0)  y = s32[] parameter(1)  t = (f32[], s32[]) tuple(x, y)\n"
        "a = f32[] get-tuple-element(t), index=0  b = s32[] get-tuple-element(t), index=1\n"
        "ROOT u = (f32[], s32[]) tuple(a, b) }"
    )
    assert PASSES["tuple-simplifier"]().run(module).changed
    assert [i.name for i in module.entry] == ["x", "y", "t"] or [i.name for i in module.entry] == [
        "x",
        "y",
        "u",
    ]


def test_the_age_of_the_text_is_found_only_where_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking through a large text takes longer than the rules of tuple-simplifier."""
    asked: list[hlo.Module] = []

    def noted(module: hlo.Module, age: Age | None) -> XlaAge:
        asked.append(module)
        return age_for(module, age)

    monkeypatch.setattr("hlotext.rewrite.passes.simplify.tuple_simplifier.age_for", noted)
    text = (
        "ENTRY e {{ x = f32[] parameter(0)  y = f32[] sine(x)  t = (f32[], f32[]) tuple(x, y){}\n"
        "ROOT a = f32[] get-tuple-element(t), index=0 }}"
    )
    for waits, count in (("", 0), (", control-predecessors={y}", 1)):
        assert PASSES["tuple-simplifier"]().run(hlo.parse(text.format(waits))).changed
        assert len(asked) == count


def test_effects_stay() -> None:
    module = hlo.parse(
        "ENTRY e { x = f32[] parameter(0)  t = token[] after-all()  o = token[] outfeed(x, t)\n"
        'c = f32[] custom-call(x), custom_call_target="f", custom_call_has_side_effect=true\n'
        'd = f32[] custom-call(x), custom_call_target="f"  ROOT r = f32[] negate(x) }'
    )
    assert PASSES["dce"]().run(module).statistics == {"instructions": 1}
    assert "d" not in module.entry


def test_values_that_the_text_leaves_out_are_not_taken_for_equal() -> None:
    module = hlo.parse(
        "ENTRY e { a = f32[99] constant({...})  b = f32[99] constant({...})  ROOT r = f32[99] add(a, b) }"
    )
    assert not PASSES["cse"]().run(module).changed


def test_an_operation_with_an_effect_is_finished() -> None:
    """DCE keeps the done that nothing uses where the start stays, and takes both out elsewhere."""
    module = hlo.parse(
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[] parameter(0)\n"
        "  s = f32[] all-reduce-start(x), channel_id=1, replica_groups={{0}}, to_apply=add\n"
        "  d = f32[] all-reduce-done(s)\n  c = (f32[], f32[], u32[]) copy-start(x)  e = f32[] copy-done(c)\n"
        "  ROOT r = f32[] negate(x) }"
    )
    assert PASSES["dce"]().run(module).statistics == {"instructions": 2}
    assert [i.name for i in module.entry] == ["x", "s", "d", "r"]


def test_what_a_fusion_no_longer_needs() -> None:
    module = hlo.parse(
        "f { p = f32[4] parameter(0)  q = f32[4] parameter(1)  s = f32[4] sine(q)  ROOT n = f32[4] negate(p) }\n"
        "ENTRY e { x = f32[4] parameter(0)  y = f32[4] cosine(x)  ROOT r = f32[4] fusion(x, y), kind=kLoop, calls=f }"
    )
    assert PASSES["dce"]().run(module).statistics == {"instructions": 2, "parameters": 1}
    assert [i.name for i in module.entry] == ["x", "r"]
    assert [str(d) for d in verify(module) if d.severity is hlo.Severity.ERROR] == []


def test_stripped_modules_are_copied_without_their_tables() -> None:
    """A copy prints as the module does, also where the stack-frame tables went."""
    module = hlo.load(MLP)
    PASSES["strip-metadata"]().run(module)
    assert "StackFrames" not in str(module)
    assert str(module.clone()) == str(module)


def test_flatten() -> None:
    module = hlo.parse(
        "f { p = f32[] parameter(0)  ROOT n = f32[] sine(p) }\n"
        "ENTRY e { x = f32[] parameter(0)  a = f32[] call(x), to_apply=f  ROOT b = f32[] call(a), to_apply=f }"
    )
    (step,) = Pipeline(tuple(parse_passes("flatten-call-graph"))).run(module)
    assert step.result.statistics == {"copies": 1}
    assert len({i.called_computations[0] for i in module.entry if i.opcode == "call"}) == 2


ASYNC = """HloModule m

%wrapped (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %c = f32[4]{0} custom-call(%p), custom_call_target="foo"
}

ENTRY %main (q: f32[4]) -> f32[4] {
  %q = f32[4]{0} parameter(0)
  %s = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%q), calls=%wrapped
  %u = ((f32[4]{0}), f32[4]{0}, u32[]) async-update(%s), calls=%wrapped
  %x = f32[4]{0} async-done(%u), calls=%wrapped
  %t = ((f32[4]{0}), f32[4]{0}, u32[]) async-start(%x), calls=%wrapped
  %v = ((f32[4]{0}), f32[4]{0}, u32[]) async-update(%t), calls=%wrapped
  ROOT %d = f32[4]{0} async-done(%v), calls=%wrapped
}
"""


def test_what_an_asynchronous_operation_wraps_keeps_its_layout() -> None:
    """It is one operation, beside which no bitcast may stand."""
    swapped = "f32[4,8]{0,1}"
    text = f"""HloModule m

%wrapped (p: f32[4,8]) -> f32[4,8] {{
  %p = {swapped} parameter(0)
  ROOT %n = {swapped} negate(%p)
}}

ENTRY %e (x: f32[4,8]) -> f32[4,8] {{
  %x = {swapped} parameter(0)
  %s = (({swapped}), {swapped}, u32[]) async-start(%x), calls=%wrapped
  %d = {swapped} async-done(%s)
  ROOT %a = {swapped} abs(%d)
}}
"""
    module = hlo.parse(text)
    assert PASSES["layout-normalization"]().run(module).changed
    assert [i.opcode for i in module.computations[0]] == ["parameter", "negate"]
    assert not [f for f in verify(module) if f.severity is hlo.Severity.ERROR]


def test_long_reductions_of_tiled_arrays_stay() -> None:
    """They are TPU's, which has its own way."""
    text = """s { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[200,8]{LAYOUT} parameter(0)  z = f32[] constant(0)
  ROOT r = f32[8]{0} reduce(x, z), dimensions={0}, to_apply=s }"""
    for layout, changed in (("0,1", True), ("0,1:T(8,128)", False)):
        module = hlo.parse(text.replace("LAYOUT", layout))
        assert PASSES["tree-reduction-rewriter"]().run(module).changed is changed


def test_updates_call_what_their_start_does() -> None:
    """What they name is read and forgotten (XLA's parser), so it neither counts nor stays beside a copy."""
    module = hlo.parse_tolerant(ASYNC).module  # two starts may not share a computation
    assert PASSES["flatten-call-graph"]().run(module).statistics == {"copies": 1}
    printed = str(module)
    assert printed.count("calls=%wrapped\n") == 3
    assert "async-update(%t)\n" in printed
    done = hlo.parse(printed).find("d")
    assert isinstance(done, hlo.Instruction)
    assert done.async_chain[0].called_computations[0].name == "wrapped.clone"
    once = hlo.parse(ASYNC[: ASYNC.index("  %t")].replace("  %x", "  ROOT %x") + "}\n")
    assert PASSES["flatten-call-graph"]().run(once).statistics in ({}, {"copies": 0})


def test_layout_normalization() -> None:
    """XLA's definition of the pass: the dimensions in the order in which they lie in memory, bitcasts at the borders."""
    module = hlo.parse(
        "ENTRY e { x = f32[10,20,30]{2,0,1} parameter(0)  s = f32[10,20,30]{2,0,1} sine(x)\n"
        "ROOT a = f32[10,20,30]{2,0,1} abs(s) }"
    )
    Pipeline(tuple(parse_passes("layout-normalization"))).run(module)
    assert [(i.opcode, str(i.shape)) for i in module.entry] == [
        ("parameter", "f32[10,20,30]{2,0,1}"),
        ("bitcast", "f32[20,10,30]{2,1,0}"),
        ("sine", "f32[20,10,30]{2,1,0}"),
        ("abs", "f32[20,10,30]{2,1,0}"),
        ("bitcast", "f32[10,20,30]{2,0,1}"),
    ]


def test_reshape_decomposition() -> None:
    module = hlo.parse("ENTRY e { x = f32[4,6]{0,1} parameter(0)  ROOT r = f32[8,3]{0,1} reshape(x) }")
    Pipeline(tuple(parse_passes("reshape-decomposer"))).run(module)
    assert [i.opcode for i in module.entry] == ["parameter", "copy", "bitcast", "copy"]


# ---- pipelines


@attrs.frozen
class Breaks(Pass):
    """Leaves a use of what is gone."""

    name: ClassVar[str] = "breaks"

    def run(self, module: hlo.Module) -> PassResult:
        first = module.entry.instructions[0]
        module.entry._instructions.remove(first)
        support.touch(module)
        return PassResult(True)


@attrs.frozen
class Raises(Pass):
    """Fails after it has changed something."""

    name: ClassVar[str] = "raises"

    def run(self, module: hlo.Module) -> PassResult:
        module.entry.root.name = "changed"
        raise KeyError("oh")


TEXT = "ENTRY e {\n  x = f32[] parameter(0)\n  y = f32[] sine(x)\n  ROOT r = f32[] negate(y)\n}\n"


@pytest.mark.parametrize(
    ("pass_", "message"), [(Breaks(), "breaks produced an ill-formed module"), (Raises(), "raised KeyError")]
)
def test_a_pass_that_fails_is_named_and_undone(pass_: Pass, message: str, tmp_path: Path) -> None:
    module = hlo.parse(TEXT)
    with pytest.raises(PassError, match=message) as caught:
        Pipeline((pass_,), dump_to=tmp_path).run(module)
    assert caught.value.pass_ is pass_
    assert caught.value.dump is not None
    assert caught.value.dump.exists()
    assert str(module) == TEXT


def test_requirements() -> None:
    module = hlo.parse("ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }")
    pipeline = Pipeline(parse_passes("layout-normalization"))
    with pytest.raises(PassError, match="layout-normalization requires that every array has a layout"):
        pipeline.run(module)


def test_dumps_have_xla_s_names(tmp_path: Path) -> None:
    module = hlo.parse("HloModule m\n\n" + TEXT.replace("sine(x)", "sine(x)\n  z = f32[] cosine(x)"))
    Pipeline(tuple(parse_passes("cse,dce")), name="clean", dump_to=tmp_path).run(module)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "module_0000.m.0000.clean.after_pipeline-start.before_cse.txt",
        "module_0000.m.0002.clean.after_dce.before_pipeline-end.txt",
    ]


def test_bisection_finds_the_pass() -> None:
    module = hlo.parse(TEXT)
    passes = [*parse_passes("dce,cse,algsimp"), PASSES["canonical-names"](), *parse_passes("dce,cse")]
    found = bisect(module, passes, lambda m: "x" in m.entry)
    assert found is passes[3]
    assert bisect(module, passes, lambda m: True) is None


def test_no_pass_is_blamed_for_what_was_wrong_before() -> None:
    """Names and places in messages change; what counts is how often what is wrong."""
    text = (
        "f { p = f32[4] parameter(0)  ROOT s = f32[3] sine(p) }\n"
        "ENTRY e { x = f32[4] parameter(0)  y = f32[5] sine(x)  z = f32[5] sine(x)  ROOT r = f32[4] negate(x) }"
    )
    module = hlo.parse(text)
    steps = Pipeline(parse_passes("canonical-names,strip-metadata,dce,canonical-names")).run(module)
    assert steps[0].result.changed
    assert steps[2].result.statistics["instructions"] == 2


def test_a_pass_is_blamed_for_what_was_mended_before() -> None:
    """An error that an earlier pass took out, and a later one makes anew."""

    @attrs.frozen
    class BreaksAgain(Pass):
        name: ClassVar[str] = "breaks-again"

        def run(self, module: hlo.Module) -> PassResult:
            module.entry.root._shape = rewrite.shape_of("f32", [7])  # past the gate
            module.entry.root.name = "touched"
            return PassResult(True)

    text = "ENTRY e { x = f32[4] parameter(0)  y = f32[5] sine(x)  ROOT r = f32[4] negate(x) }"
    with pytest.raises(PassError, match="breaks-again produced an ill-formed module: V101"):
        Pipeline((*parse_passes("dce"), BreaksAgain())).run(hlo.parse(text))


@pytest.mark.parametrize(
    "text", ["nothing", "dce{x=1}", "dce{computations=maybe}", "algsimp{max_iterations=x}", "dce cse"]
)
def test_passes_that_do_not_exist(text: str) -> None:
    with pytest.raises(library.PassOptionError):
        parse_passes(text)


# ---- extraction


def test_extract() -> None:
    module = hlo.load(MLP)
    dot = module.find("dot_general.5")
    assert isinstance(dot, hlo.Instruction)
    small = hlo.parse(str(rewrite.extract(dot, depth=2)))
    assert small.entry.root.opcode == "dot"
    assert len(small.entry) <= 5
    assert verify(small) == []
    whole = rewrite.extract(dot)
    assert verify(hlo.parse(str(whole))) == []
    assert str(module) == support.read_text(MLP).decode()


def test_extract_takes_asynchronous_operations_whole() -> None:
    """At every distance, from every module of the corpus that has some: what comes out is right."""
    tried = 0
    for path in support.corpus_files(("tpu", "gpu")):
        if len(support.read_text(path)) > 60_000:
            continue
        module = hlo.load(path)
        if any(d.severity is hlo.Severity.ERROR for d in verify(module)):
            continue
        for done in [i for i in module.entry if ROLES.get(i.opcode) == "done"][:2]:
            for depth, start in ((1, done), (2, done), (1, (*done.users, done)[0])):
                small = hlo.parse(str(rewrite.extract(start, depth)))
                found = [str(d) for d in verify(small) if d.severity is hlo.Severity.ERROR]
                assert not found, (path.name, start.name, depth, found)
                tried += 1
    assert tried > 20


def test_many_unused_parameters_of_a_fusion() -> None:
    """They go in one step: thousands take no longer than the reading."""
    numbers = range(3000)
    inner = "\n".join(f"p{n} = f32[] parameter({n})" for n in numbers)
    outer = "\n".join(f"x{n} = f32[] parameter({n})" for n in numbers)
    given = ", ".join(f"x{n}" for n in numbers)
    module = hlo.parse(
        f"f {{ {inner}\nROOT r = f32[] add(p5, p2900) }}\nENTRY e {{ {outer}\n"
        f"ROOT z = f32[] fusion({given}), kind=kLoop, calls=f }}"
    )
    (step,) = Pipeline(tuple(parse_passes("dce"))).run(module)
    assert step.result.statistics == {"parameters": 2998}
    assert [o.name for o in module.entry.root.operands] == ["x5", "x2900"]
    assert hlo.verify(module) == []


@pytest.mark.parametrize("names", ["dce", "dce,reshape-mover"])
@pytest.mark.parametrize(("platform", "age"), [("nope", ""), ("gpu", "no age")])
def test_a_pipeline_follows_known_compilers_only(names: str, platform: str, age: str) -> None:
    with pytest.raises(ValueError, match="no"):
        Pipeline(parse_passes(names)).following(platform, age)


SHARED = """HloModule m, entry_computation_layout={(f32[4]{0}, s32[])->(f32[4]{0}, f32[4]{0}, f32[], f32[])}

%inner (i: f32[4]) -> f32[4] {
  %i = f32[4]{0} parameter(0)
  ROOT %s = f32[4]{0} sine(%i), metadata={op_name="s"}
}

%outer (o: f32[4]) -> f32[4] {
  %o = f32[4]{0} parameter(0)
  %a = f32[4]{0} call(%o), to_apply=%inner
  %f = f32[4]{0} fusion(%a), kind=kLoop, calls={ fp = f32[4]{0} parameter(0)  ROOT fn = f32[4]{0} negate(fp) }
  ROOT %b = f32[4]{0} call(%f), to_apply=%inner, control-predecessors={%a}
}

%add (l: f32[], r: f32[]) -> f32[] {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %sum = f32[] add(%l, %r)
}

ENTRY %e (x: f32[4], n: s32[]) -> (f32[4], f32[4], f32[], f32[]) {
  %x = f32[4]{0} parameter(0)
  %n = s32[] parameter(1)
  %zero = f32[] constant(0)
  %c = f32[4]{0} call(%x), to_apply=%outer
  %d = f32[4]{0} conditional(%n, %c, %c, %x), branch_computations={%outer, %outer, %inner}
  %q = f32[] reduce(%c, %zero), dimensions={0}, to_apply=%add
  %w = f32[] reduce(%d, %zero), dimensions={0}, to_apply=%add
  ROOT %t = (f32[4]{0}, f32[4]{0}, f32[], f32[]) tuple(%c, %d, %q, %w)
}
"""


@pytest.mark.parametrize("passes", ["flatten-call-graph", "call-inliner", "call-inliner,flatten-call-graph"])
def test_copies_are_judged_as_their_originals(monkeypatch: pytest.MonkeyPatch, passes: str) -> None:
    """What is not looked at again is as right as if it were, and one step back leaves the text as it was."""

    def run() -> tuple[str, int]:
        module, count = hlo.parse(SHARED), 0

        def counting(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            return errors(*arguments)

        errors = validation.errors
        with monkeypatch.context() as patch, module.transaction() as record:
            patch.setattr(validation, "errors", counting)
            for pass_ in parse_passes(passes):
                pass_.run(module)
        assert {found.severity for found in hlo.verify(module)} <= {hlo.Severity.NOTE}
        assert integrity.problems(module) == []
        text = str(module)
        assert integrity.problems(hlo.parse(text)) == []
        record.undo()
        assert str(module) == SHARED
        assert integrity.problems(module) == []
        return text, count

    text, few = run()
    monkeypatch.setattr(cloning, "_is_seen_alike", lambda computation: False)
    monkeypatch.setattr(many, "_is_as_right", lambda one, original: False)
    assert run()[0] == text
    assert few <= run()[1]
    assert (few < run()[1]) == ("flatten" in passes)


def test_inlining_leaves_out_what_is_only_read() -> None:
    module = hlo.parse(
        "f { p = f32[4] parameter(0)  ROOT n = f32[4] sine(p), metadata={} }\n"
        "ENTRY e { x = f32[4] parameter(0)  ROOT b = f32[4] call(x), to_apply=f }"
    )
    parse_passes("call-inliner")[0].run(module)
    assert dict(module.entry.root.attributes) == {}
