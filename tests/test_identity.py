"""One identity across all passes: against the compiler's own log of what it replaced, cloned and created.

`tests/data/identity` holds dump folders with `truth.json`: for instructions of the final HLO the steps that brought the
operation (`cause`), the owner of each step, and what of the program it was made of (`ancestors`, `line`, `body`).
"""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import compiler, dumps
from hlotext.compiler.explaining import previous
from hlotext.dumps.identity import Owner, paired
from hlotext.dumps.identity.local_ids import LocalIds, moves
from hlotext.dumps.identity.pairing import SURE, Edge
from hlotext.dumps.identity.states import State, stem
from hlotext.testing import inspect
from tests.support import DATA

FOLDERS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "identity").glob("*.tar.xz"))
_METADATA = re.compile(r',? ?metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')


def unpacked(name: str, target: Path) -> tuple[Path, dict[str, Any]]:
    """A folder as XLA left it, and the truth about it."""
    with tarfile.open(DATA / "identity" / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    path = target / "truth.json"
    truth: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    return target, truth


def compilation(folder: Path) -> dumps.Compilation:
    """The compilation that has the final HLO."""
    return next(c for c in dumps.open(folder).compilations if c.after is not None)


def asked(truth: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The instructions that the truth tells of, without those inside fusions but for products and collectives."""
    return {
        name: row
        for name, row in truth["instructions"].items()
        if not row["inside"] or row["op"] in ("dot", "convolution", "all-reduce", "all-gather")
    }


def judged(folder: Path, truth: dict[str, Any]) -> Counter[str]:
    """How many causes, owners and sources are right."""
    c = compilation(folder)
    index = {step["file"]: number for number, step in enumerate(truth["steps"])}
    count: Counter[str] = Counter()
    for name, row in asked(truth).items():
        cause = c.why(name)
        assert cause.step is not None
        at = index[Path(cause.step.path).name]
        right = at in row["cause"]
        count["causes"] += 1
        count["causes right"] += right
        count["sure"] += cause.confidence == "high"
        count["sure right"] += right and cause.confidence == "high"
        owners = {truth["steps"][number]["owner"] for number in row["cause"]}
        if right and at and "after the last dump" not in owners:
            count["owners"] += 1
            count["owners right"] += cause.pass_name in owners or cause.step.pipeline == cause.pass_name
        birth = c.births([name])[name]
        assert birth.step is cause.step
        assert ((birth.rebuilt or birth).step.index == 0) == (cause.cause == "program")
        true = {*row.get("ancestors", ()), *row.get("line", ()), *row.get("body", ())}
        sure = {link.instruction.name for link in c.trace(name) if link.confidence == "high"}
        if true and sure:
            count["sources"] += 1
            count["sources right"] += bool(sure & true)
    return count


@pytest.mark.parametrize("name", FOLDERS)
def test_causes_and_owners(name: str, tmp_path: Path) -> None:
    """By the compiler's own log; TPU's two modules of one compilation are one."""
    count = judged(*unpacked(name, tmp_path))
    assert count["causes right"] >= 0.95 * count["causes"]
    assert count["sure"] >= 0.8 * count["causes"]
    assert count["sure right"] >= 0.98 * count["sure"]
    assert count["owners right"] >= 0.95 * count["owners"]
    assert count["sources right"] >= 0.97 * count["sources"]


@pytest.mark.parametrize("name", ["gpu.tp_manual_layers", "tpu.ring_attention"])
def test_causes_without_metadata(name: str, tmp_path: Path) -> None:
    """The structure alone tells."""
    folder, truth = unpacked(name, tmp_path)
    for path in folder.glob("*.txt"):
        path.write_text(_METADATA.sub("", path.read_text()))
    count = judged(folder, truth)
    assert count["causes right"] >= 0.93 * count["causes"]


def test_a_loop_that_is_built_anew_is_the_programs(tmp_path: Path) -> None:
    """A pass that drops what a loop carries writes another one: it shows there first, but the program has it."""
    folder, _ = unpacked("tpu.ring_attention", tmp_path)
    c = compilation(folder)
    assert c.after is not None
    (loop,) = [node for node in c.after.instructions() if node.opcode == "while"]
    cause, birth = c.why(loop.name), c.identity.birth(loop.name)
    assert cause.step is not None
    assert cause.step.name == cause.pass_name == "simplify-while-loops"
    assert birth.rebuilt is not None
    assert birth.rebuilt.step is c.first
    assert cause.cause == "program"
    assert cause.because.startswith(f"the program has this loop, as {birth.rebuilt.name}; ")
    assert cause.chain.startswith("while of the program")
    assert "-> rewritten by simplify-while-loops" in cause.chain
    assert [link.instruction.name for link in c.trace(loop.name)] == [birth.rebuilt.name]


def test_a_history_is_a_chain(tmp_path: Path) -> None:
    """Each event's name is what the next one says it was, the last is a birth or an operation of the program."""
    folder, truth = unpacked("gpu.mesh_train", tmp_path)
    c = compilation(folder)
    kinds = set()
    for name in truth["instructions"]:
        at, last = name, len(c.steps)
        for event in c.identity.history(name):
            assert event.name == at
            assert event.step.index < last
            at, last = (event.before or (at,))[0], event.step.index
            kinds.add(event.kind)
            assert bool(event.before) == (event.kind != "created")
            assert event.pass_name
        birth = c.identity.birth(name)
        assert birth.history == c.identity.history(name)[: len(birth.history)]
        assert birth.name in birth.candidates
    assert kinds >= {"created", "renamed", "cloned", "replaced", "partitioned", "split"}


def test_a_chain_is_told(tmp_path: Path) -> None:
    """In one line, from the pass that brought it on; the owner is the pass around what shows it."""
    folder, _ = unpacked("gpu.mesh_train", tmp_path)
    cause = compilation(folder).why("all-reduce-start.1")
    assert cause.pass_name == "spmd-partitioning"
    assert cause.chain.startswith("all-reduce added by spmd-partitioning -> ")
    assert cause.chain.endswith("-> split by async-collective-creator")


def test_what_only_a_bracket_tells_is_said_as_one(tmp_path: Path) -> None:
    """Compiler code between two dumps has no name: the passes around it have."""
    folder, _ = unpacked("tpu.dropout_rng", tmp_path)
    c = dumps.open(folder).compilations[-1]
    assert c.after is not None
    found = [c.why(i.name) for i in c.after.instructions() if i.opcode == "copy-start"]
    brackets = [one for one in found if one.owner is not None and one.owner.is_bracket]
    for one in brackets:
        assert one.owner is not None
        assert one.owner.after
        assert f"compiler code between {one.owner.after} and {one.pass_name}" in one.chain
    named = [one for one in found if one.owner is not None and not one.owner.is_bracket]
    assert all("compiler code" not in one.chain.split(" -> ")[0] for one in named)
    assert Owner("fusion", inside="pipeline").__str__() == "fusion (inside pipeline)"


def test_tests_ask_who_brought_an_operation(tmp_path: Path) -> None:
    folder, _ = unpacked("gpu.mesh_train", tmp_path)
    c = compilation(folder)
    assert c.last is not None
    told = inspect(c.last.path).why("all-reduce-start.1")
    assert told.chain == c.why("all-reduce-start.1").chain
    with pytest.raises(LookupError, match="not from a dump folder"):
        inspect("HloModule m\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n").why("p")


def test_two_numbers_of_one_compilation(tmp_path: Path) -> None:
    """TPU's X64 elimination makes a new module: what is behind it goes on from what is before."""
    folder, _ = unpacked("tpu.dropout_rng", tmp_path)
    first, second = dumps.open(folder).compilations
    assert second.earlier is first
    assert second.steps[0].file.kind == "hlo-before"
    assert [step.index for step in second.steps] == list(range(len(second.steps)))
    assert len(second.steps) > len(first.steps)
    assert second.before is not None


def test_a_folder_without_passes_says_what_would_tell(tmp_path: Path) -> None:
    """Two texts and nothing between them: what the program had is told, all else is unknown."""
    folder, _ = unpacked("gpu.mesh_train", tmp_path)
    for path in folder.glob("*.0*.txt"):
        if re.search(r"\.\d{4}\.", path.name):
            path.unlink()
    c = compilation(folder)
    assert c.after is not None
    causes = [c.why(node.name) for node in c.after.entry.instructions]
    unknown = [cause for cause in causes if cause.cause == "unknown"]
    assert unknown
    assert all("xla_dump_hlo_pass_re" in cause.because and cause.confidence == "low" for cause in unknown)
    assert all(cause.confidence != "high" for cause in causes)


OLD = """HloModule m

%f (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %e = f32[4]{0} exponential(%p)
}

ENTRY %main (x: f32[4], y: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = f32[4]{0} parameter(1)
  %c1 = f32[4]{0} call(%x), to_apply=%f
  %c2 = f32[4]{0} call(%y), to_apply=%f
  ROOT %add = f32[4]{0} add(%c1, %c2), sharding={replicated}, control-predecessors={%x}
}
"""


def test_lines_are_read_once() -> None:
    """A computation whose text is the same is the same object in the next state, and so is a line."""
    state = State(OLD)
    following = State(OLD.replace("add(%c1, %c2)", "add(%c1, %x)"), state)
    assert following.parts["f"] is state.parts["f"]
    assert following.ops["c1"] is state.ops["c1"]
    assert following.ops["add"] is not state.ops["add"]
    add = following.ops["add"]
    assert add.operands == ("c1", "x")
    assert "sharding" not in add.attributes
    assert add.callees == ()
    assert [op.name for op in following.callers("f")] == ["c1", "c2"]
    assert stem("add.42.clone.1") == "add"


def test_a_pass_shows_what_its_pipelines_did(tmp_path: Path) -> None:
    """Partitioning writes its text first inside a pipeline of its own: the pass is explained with that work."""
    folder, _ = unpacked("gpu.mesh_train", tmp_path)
    c = compilation(folder)
    step = next(step for step in c.steps if step.name == "spmd-partitioning")
    before = previous(step)
    assert before.pipeline == step.pipeline
    assert before.index < step.index - 1
    found = compiler.explain(before.module, step.module, step.name, platform=c.platform)
    counts = found.counts()
    assert counts["changed"] > counts["added"] > 10
    later = next(step for step in c.steps if step.name == "priority-fusion")
    assert previous(later).index == later.index - 1


UPDATED = """HloModule m, is_scheduled=true{alias}

ENTRY e {{
  cache = f32[8,128]{{1,0:T(8,128)}} parameter(0), metadata={{op_name="cache"}}
  row = f32[1,128]{{1,0:T(1,128)}} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  whole = f32[8,128]{{1,0:T(8,128)}} copy(cache)
  new = f32[8,128]{{1,0:T(8,128)}} dynamic-update-slice(whole, row, at, zero)
  turned = f32[8,128]{{0,1:T(8,128)}} copy(cache)
  fast = f32[1,128]{{1,0:T(1,128)S(1)}} copy(row)
  other = f32[1,128]{{1,0:T(1,128)}} copy(row)
  ROOT t = ({f}) tuple(new, turned, fast, other)
}}
"""


def test_what_the_final_text_proves_needs_no_pass(tmp_path: Path) -> None:
    """An argument that is updated and not donated, a layout, a memory; nothing of that is said of what is donated."""
    made = "f32[8,128]{{1,0:T(8,128)}}, f32[8,128]{{0,1:T(8,128)}}"
    made += ", f32[1,128]{{1,0:T(1,128)S(1)}}, f32[1,128]{{1,0:T(1,128)}}"
    text = UPDATED.replace("{f}", made)
    before = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    (tmp_path / "module_0000.m.before_optimizations.txt").write_text(before)
    final = tmp_path / "module_0000.m.cpu_after_optimizations.txt"
    final.write_text(text.format(alias=""))
    c = compilation(tmp_path)
    names = ("whole", "turned", "fast", "other")
    assert [c.why(name).cause for name in names] == ["not donated", "layout", "memory space", "unknown"]
    assert c.why("whole").because.startswith("argument cache is updated in part but not donated")
    final.write_text(text.format(alias=", input_output_alias={ {0}: (0, {}, may-alias) }"))
    assert compilation(tmp_path).why("whole").cause == "old value read"  # by `turned`
    final.write_text(text.format(alias=", buffer_donor={ (0, {}) }"))
    assert compilation(tmp_path).why("whole").cause == "unknown"


def test_what_the_partitioner_marked_is_its_own(tmp_path: Path) -> None:
    """Since June 2026 a collective may say it itself, where no pass was dumped too; what says nothing stays unknown."""
    head = "HloModule m, num_partitions=2\n\nENTRY e {\n  x = f32[2]{0} parameter(0)\n"
    gathered = (
        "all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true"
    )
    mark = ', frontend_attributes={is_spmd_generated="true"}'
    (tmp_path / "module_0000.m.before_optimizations.txt").write_text(
        f"{head}  ROOT n = f32[2]{{0}} negate(x)\n}}\n"
    )
    (tmp_path / "module_0000.m.cpu_after_optimizations.txt").write_text(
        f"{head}  g = f32[4]{{0}} {gathered}{mark}\n  h = f32[4]{{0}} {gathered}\n"
        "  ROOT a = f32[4]{0} add(g, h)\n}\n"
    )
    c = compilation(tmp_path)
    assert c.why("g").cause == "partitioning"
    assert "is_spmd_generated" in c.why("g").evidence[0]
    assert c.why("h").cause == "unknown"


def test_elements_without_a_line() -> None:
    """From XLA 0.11 on `TUPLE#K` stands for an element: it is an operation, named as the readers name it."""
    text = """HloModule m

ENTRY %e (t: (f32[2], (f32[3], s32[]))) -> f32[3] {
  %t = (f32[2]{0:T(8,128)}, /*index=1*/(f32[3]{0}, s32[])) parameter(0)
  %a = f32[2]{0} negate(%t#0)
  ROOT %b = f32[3]{0} negate(%t#1#0)
}
"""
    state = State(text)
    found = [(op.name, op.shape, op.operands) for op in state.ops.values()]
    assert found[1:] == [
        ("t_0", "f32[2]{0:T(8,128)}", ("t",)),
        ("a", "f32[2]{0}", ("t_0",)),
        ("t_1", "(f32[3]{0}, s32[])", ("t",)),
        ("t_1_0", "f32[3]{0}", ("t_1",)),
        ("b", "f32[3]{0}", ("t_1_0",)),
    ]
    assert [i.name for i in hlo.parse(text).instructions()] == list(state.ops)
    pairing = paired(state, State(text.replace("%b", "%b.1").replace("%a", "%a.1")))
    assert {name: edge.before for name, edge in pairing.edges.items()} == {"a.1": ("a",), "b.1": ("b",)}


_COMBINED = """HloModule m

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %z = f32[] add(%x, %y)
}

ENTRY %e (p: f32[4], q: f32[8]) -> (f32[4], f32[8]) {
  %p = f32[4]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  BODY
}
"""
_SEPARATE = """%ar.1 = f32[4]{0} all-reduce(%p), to_apply=%add
  %ar.2 = f32[8]{0} all-reduce(%q), to_apply=%add
  ROOT %t = (f32[4]{0}, f32[8]{0}) tuple(%ar.1, %ar.2)"""
_MERGED = """%both = (f32[4]{0}, f32[8]{0}) all-reduce(%p, %q), to_apply=%add
  %g.0 = f32[4]{0} get-tuple-element(%both), index=0
  %g.1 = f32[8]{0} get-tuple-element(%both), index=1
  ROOT %t = (f32[4]{0}, f32[8]{0}) tuple(%g.0, %g.1)"""


def test_a_combined_collective_is_all_that_it_took_in() -> None:
    """Its first result's user alone would say that it was the first of them."""
    edge = paired(State(_COMBINED.replace("BODY", _SEPARATE)), State(_COMBINED.replace("BODY", _MERGED)))
    assert edge.edges["both"] == Edge("merged", ("ar.1", "ar.2"), SURE)


@pytest.mark.parametrize(
    ("first", "chain"),
    [
        (_SEPARATE, "all-reduce of the program -> merged by combine"),
        (
            _SEPARATE.replace("all-reduce(%q), to_apply=%add", "negate(%q)").replace("ar.2", "n"),
            "all-reduce merged by combine",
        ),
    ],
)
def test_what_was_merged_came_where_all_of_it_came(tmp_path: Path, first: str, chain: str) -> None:
    """Two of the program are the program's; of what two passes brought the pass that merged them is told."""
    texts = {
        "module_0000.m.before_optimizations.txt": first,
        "module_0000.m.0000.p.after_split.before_combine.txt": _SEPARATE,
        "module_0000.m.0001.p.after_combine.before_end.txt": _MERGED,
        "module_0000.m.cpu_after_optimizations.txt": _MERGED,
    }  # fmt: skip
    for name, body in texts.items():
        (tmp_path / name).write_text(_COMBINED.replace("BODY", body))
    assert compilation(tmp_path).why("both").chain == chain


_LOOP = """HloModule m

%body{0} (s: {1}) -> {1} {{
  ROOT %s{0} = {1} parameter(0)
}}

%cond{0} (c: {1}) -> pred[] {{
  %c{0} = {1} parameter(0)
  ROOT %k{0} = pred[] constant(false)
}}

ENTRY %e (p: f32[4], q: f32[8]) -> f32[8] {{
  %p = f32[4]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %i{0} = {1} tuple({2})
  %w{0} = {1} while(%i{0}), condition=%cond{0}, body=%body{0}, metadata={{op_name="w"}}
{3}  ROOT %n = f32[8]{{0}} negate(%g{0})
}}
"""


@pytest.mark.parametrize("element", ["g", "g.1"])
def test_an_element_of_a_tuple_that_is_taken_apart(element: str) -> None:
    """A loop whose results were put together anew, under its name, and then are not: what is read is the loop again."""
    together = """  %a = f32[4]{0} get-tuple-element(%w), index=0
  %b = f32[8]{0} get-tuple-element(%w), index=1
  %t = (f32[4]{0}, f32[8]{0}) tuple(%a, %b), metadata={op_name="w"}
  %g = f32[8]{0} get-tuple-element(%t), index=1
"""
    apart = f"  %{element} = f32[8]{{0}} get-tuple-element(%w.1), index=1\n"
    old = _LOOP.format("", "(f32[4]{0}, f32[8]{0})", "%p, %q", together)
    new = _LOOP.format(".1", "(f32[4]{0}, f32[8]{0}, f32[4]{0})", "%p, %q, %p", apart)
    new = new.replace("negate(%g.1)", f"negate(%{element})")
    assert paired(State(old), State(new)).edges["w.1"].before == ("w",)


def test_a_fusion_wrapped_in_one_of_its_name_is_its_clone() -> None:
    """The outer one takes the name; what it wraps does what the old one did."""
    inner = """
%body{0} (p{0}: f32[2]) -> f32[2] {{
  %p{0} = f32[2]{{0}} parameter(0)
  ROOT %n{0} = f32[2]{{0}} negate(%p{0})
}}
"""
    outer = """
%wrapper (q: f32[2]) -> f32[2] {
  %q = f32[2]{0} parameter(0)
  %e = f32[2]{0} exponential(%q)
  ROOT %f.1 = f32[2]{0} fusion(%e), kind=kCustom, calls=%body.clone
}
"""
    main = """
ENTRY %main (a: f32[2]) -> f32[2] {{
  %a = f32[2]{{0}} parameter(0)
  ROOT %f = f32[2]{{0}} fusion(%a), kind=kCustom, calls=%{0}
}}
"""
    old = State(f"HloModule m\n{inner.format('')}{main.format('body')}")
    new = State(f"HloModule m\n{inner.format('.clone')}{outer}{main.format('wrapper')}")
    edge = paired(old, new).edges["f.1"]
    assert (edge.kind, edge.before) == ("cloned", ("f",))


def test_reports_tell_the_same_chains(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("bokeh")
    from hlotext.view import report
    from hlotext.view.report.parts import Section
    from hlotext.view.report.sections import passes

    folder, _ = unpacked("gpu.mesh_train", tmp_path)
    c = compilation(folder)
    section = passes.section(report.report_input(folder, module=str(c.number)))
    assert isinstance(section, Section)
    table = next(one for one in section.tables if one.id == "passes-why")
    told = {row[0]: row[2] for row in table.rows}
    assert told["all-reduce-start.1"] == c.why("all-reduce-start.1").chain


# ---- ids in protos


def _field(number: int, value: int | bytes) -> bytes:
    """One field of a proto: a number, or bytes."""

    def varint(number: int) -> bytes:
        found = bytearray()
        while number > 127:
            found.append(number & 127 | 128)
            number >>= 7
        return bytes((*found, number))

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def _proto(names: dict[str, int], computation: int = 7, name: str = "main") -> bytes:
    """A proto of one computation, its instructions in this order with these local ids."""
    inside = b"".join(
        _field(2, _field(1, one.encode()) + _field(2, b"add") + _field(35, computation << 32 | local))
        for one, local in names.items()
    )
    return _field(
        1, _field(1, b"jit_f") + _field(3, _field(1, name.encode()) + inside + _field(5, computation))
    )


def _same(name: str) -> str:
    return name.partition(".")[0]


def test_orders_of_ids() -> None:
    ids = LocalIds(_proto({"c": 3, "a": 1, "b": 2}))
    assert ids.computations == {"main": 7}
    assert ids.order(7) == ("a", "b", "c")
    assert (ids.order(8), ids.as_written) == ((), set())
    written = LocalIds(_proto({"a": 1, "b": 2}))
    assert (written.order(7), written.as_written) == (("a", "b"), {7})
    assert LocalIds(_proto({"a": 0, "b": 0})).order(7) == ()  # without ids
    with pytest.raises(hlo.ProtoError):
        LocalIds(_proto({"a": 1, "b": 2})[:-3])


@pytest.mark.parametrize(
    ("old", "new", "renamed", "replaced"),
    [
        ("a add.1 b", "a add.2 b", [("add.2", "add.1")], []),  # at the place of a gone one
        ("a add.1 b", "a b add.2", [], []),  # behind the survivors: made anew
        ("a add.1 mul.1 b", "a mul.2 add.2 b", [], []),  # in another order: nothing is told
        ("a add.1 mul.1 b", "a mul.2 b", [("mul.2", "mul.1")], []),  # the add went
        ("a add.1 add.3 b", "a add.2 b", [], []),  # either of two
        ("a add.1 add.3 b", "a add.2 add.4 b", [("add.2", "add.1"), ("add.4", "add.3")], []),
        ("a b c d", "a c d b", [], ["b"]),  # replaced under its name
        ("a b c d", "d c b a", [], []),  # numbered anew
        ("a b", "a b x y", [], []),
    ],
)
def test_moves(old: str, new: str, renamed: list[tuple[str, str]], replaced: list[str]) -> None:
    found = moves(old.split(), new.split(), _same, _same)
    assert (list(found.renamed), list(found.replaced)) == (renamed, replaced)


_STEP = """HloModule jit_f, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %one = f32[8]{0} LEFT(%x, %x)
  %two = f32[8]{0} RIGHT(%x, %x)
  ROOT %last = f32[8]{0} subtract(%one, %two)
}
"""


def test_ids_tell_twins_apart(tmp_path: Path) -> None:
    """Two equal operations get the names of nobody and of each other's line: the order of ids tells which is which."""
    first = _STEP.replace("LEFT", "add").replace("RIGHT", "add")
    second = first.replace("%one", "%b").replace("%two", "%a")
    names = {
        "module_0001.jit_f.before_optimizations": (first, {"x": 0, "one": 2, "two": 1, "last": 3}),
        "module_0001.jit_f.0001.p.after_rename.before_q": (second, {"x": 0, "a": 2, "b": 1, "last": 3}),
        "module_0001.jit_f.cpu_after_optimizations": (second, {"x": 0, "a": 2, "b": 1, "last": 3}),
    }
    for name, (text, ids) in names.items():
        (tmp_path / f"{name}.txt").write_text(text)
        (tmp_path / f"{name}.hlo.pb").write_bytes(_proto(ids))
    identity = compilation(tmp_path).identity
    assert [(e.kind, e.before) for e in identity.history("a")] == [("renamed", ("one",))]
    assert [(e.kind, e.before) for e in identity.history("b")] == [("renamed", ("two",))]
    for name in names:  # without ids, or with ones that cannot be read, the place tells
        (tmp_path / f"{name}.hlo.pb").write_bytes(b"\xff" * 8)
    assert [e.before for e in compilation(tmp_path).identity.history("b")] == [("one",)]


def test_ids_tell_what_was_replaced_under_its_name(tmp_path: Path) -> None:
    first = _STEP.replace("LEFT", "add").replace("RIGHT", "multiply")
    second = first.replace("add(%x, %x)", 'add(%x, %x), metadata={op_name="f/new"}')
    names = {
        "module_0001.jit_f.before_optimizations": (first, {"x": 0, "one": 1, "two": 2, "last": 3}),
        "module_0001.jit_f.0001.p.after_fold.before_q": (second, {"x": 0, "one": 3, "two": 1, "last": 2}),
        "module_0001.jit_f.cpu_after_optimizations": (second, {"x": 0, "one": 3, "two": 1, "last": 2}),
    }
    for name, (text, ids) in names.items():
        (tmp_path / f"{name}.txt").write_text(text)
        (tmp_path / f"{name}.hlo.pb").write_bytes(_proto(ids))
    c = compilation(tmp_path)
    (event,) = c.identity.history("one")
    assert (event.kind, event.before, event.pass_name, event.confidence) == (
        "replaced",
        ("one",),
        "fold",
        "high",
    )
    assert c.identity.history("two") == ()
    assert c.why("one").chain == "add of the program -> rewritten by fold"


def test_what_a_pass_dumps_before_it_begins_is_of_the_pass_around_it(tmp_path: Path) -> None:
    """Layout assignment inserts copies, then calls the rewriter of tilings, which first writes what it was given."""
    begin, given, own = "", "copy.1 = f32[8]{0} copy(x)", "copy.2 = f32[8]{0} copy(copy.1)"
    stages = {
        "before_optimizations": (begin, "x"),
        "0000.Layout_assignment.after_pipeline-start.before_layout-assignment": (begin, "x"),
        "0001.tpu-tiling-rewriter.before_tiling_rewriter": (given, "copy.1"),
        "0002.tpu-tiling-rewriter.after_tiling_propagation": (f"{given}\n  {own}", "copy.2"),
        "0003.Layout_assignment.after_layout-assignment.before_pipeline-end": (f"{given}\n  {own}", "copy.2"),
        "after_optimizations": (f"{given}\n  {own}", "copy.2"),
    }
    for stage, (lines, last) in stages.items():
        body = f"  x = f32[8]{{0}} parameter(0)\n  {lines}\n  ROOT r = f32[8]{{0}} negate({last})\n"
        text = f"HloModule f\n\nENTRY e {{\n{body}}}\n"
        (tmp_path / f"module_0000.f.cl_1014260217.{stage}.txt").write_text(text)
    c = compilation(tmp_path)
    assert [str(c.why(name).owner) for name in ("copy.1", "copy.2")] == [
        "layout-assignment",
        "tpu-tiling-rewriter (inside layout-assignment)",
    ]
