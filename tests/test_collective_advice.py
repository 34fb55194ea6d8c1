"""Advice on collectives: constraints that cause gathers, new values of arguments, work done several times, smaller operands.

`tests/data/collectives/advice` holds compilations for TPU v5e by JAX 0.12, recompiled with what is suggested.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext import dumps, lint
from hlotext.analysis import responsible_frame, source_locations
from hlotext.analysis.scopes import called_lines
from hlotext.dumps.collectives import smaller_operand, wording
from hlotext.dumps.collectives.records import OPERATION, RESHARD, Place, Reason
from hlotext.dumps.collectives.traffic import Traffic
from hlotext.lint import Config
from hlotext.syntax.source.inputs import read_source
from tests.cli_support import run, run_json
from tests.support import DATA


def unpacked(name: str, target: Path) -> dumps.Compilation:
    with tarfile.open(DATA / "collectives" / "advice" / f"tpu.{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return next(one for one in dumps.open(target).compilations if one.last is not None)


def test_a_constraint_is_the_cause_of_what_is_computed_otherwise(tmp_path: Path) -> None:
    """The result is computed in parts and wanted whole, not the reverse; its line has other products, placed as computed."""
    gathered, weight = unpacked("mlp_con", tmp_path).collectives()
    (reason,) = gathered.reasons
    assert reason.because == (
        "because the sharding constraint (line 20) needs the result of mul (line 19) as P(None, None), but it is P('d', 'm')"
    )
    assert (reason.wanted_by, reason.have, reason.want) == ("constraint", "P('d', 'm')", "P(None, None)")
    assert reason.origin == "P('d', 'm') comes from arguments p['x']: P('d', None) and p['w1']: P(None, 'm')"
    (only,) = reason.suggestions
    assert (only.rule, only.line, only.spec) == ("constraint", 20, "P('d', 'm')")
    # Recompiled so, nothing is gathered: it was the cause of the other gather too.
    assert weight.why.endswith("; the constraint on line 20 leaves its other operand without axis 'm'")
    assert weight.suggestions[0] == attrs.evolve(
        only, bytes_spared=512 * 1024, because=weight.suggestions[0].because
    )


def test_a_constraint_asks_through_what_computes_for_it(tmp_path: Path) -> None:
    causes = unpacked("scan_con_step", tmp_path).collectives()
    moved = [one for one in causes if one.reasons[0].cause == RESHARD]
    assert len(moved) == 4
    for one in moved:
        assert "; the constraint on line 42 " in one.why
        assert "requested" not in one.reasons[0].origin
        assert (one.suggestions[0].rule, one.suggestions[0].spec) == ("constraint", "P('d', 'm')")
    # Recompiled, the constraint saves 1,966,080 bytes, p['b'] with result[1] 393,216, and p['x'] 1,179,648.
    totals = {one.name: one.bytes_total for cause in moved for one in cause.suggestions[1:]}
    assert moved[0].suggestions[0].bytes_total == -1966080
    assert totals == {"p['b']": -393216, "p['x']": -1179648}
    (weight,) = {one.because for cause in moved for one in cause.suggestions if one.name == "p['b']"}
    assert "and at least an estimated 384 KiB less in total" in weight
    assert "768 KiB more memory with result[1] sharded the same way" in weight


def test_a_constraint_takes_axes_off_either_end_of_a_product(tmp_path: Path) -> None:
    """Of arrays of three dimensions, the weight is read forward beside what is constrained, and backward for it."""
    told = [
        one.why.partition("; ")[2]
        for one in unpacked("con_three", tmp_path).collectives()
        if "needs" in one.why
    ]
    assert sorted(told) == [
        "the constraint on line 5 asks for it",
        "the constraint on line 5 asks for it",
        "the constraint on line 5 leaves its other operand without axis 'm'",
        "the constraint on line 5 leaves its result without axis 'm'",
    ]


def test_work_done_several_times_is_told_and_has_to_be_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    causes = unpacked("scan_con_step", tmp_path).collectives()
    batch = next(one for cause in causes for one in cause.suggestions if one.name == "p['x']")
    assert batch.work == pytest.approx(7 / 9)
    assert "each device computes 77.8% more matmul FLOPs" in batch.because
    estimate = Traffic.estimate

    def unsure(*args: object, **kwargs: object) -> object:
        found = estimate(*args, **kwargs)  # type: ignore[arg-type]
        return None if found is None else attrs.evolve(found, is_sure=False)

    monkeypatch.setattr(Traffic, "estimate", unsure)
    shutil.rmtree(tmp_path)
    causes = unpacked("scan_con_step", tmp_path).collectives()
    assert {one.name for cause in causes for one in cause.suggestions if one.kind == "argument"} == set()
    assert any(cause.suggestions for cause in causes)


def test_the_smaller_operand_is_moved_instead(tmp_path: Path) -> None:
    """Recompiled with the tokens by expert, 49,152 bytes are sent, not 1,572,864."""
    first, second = unpacked("moe_f", tmp_path / "f").collectives()
    assert first.reasons[0].instead == (
        "move the smaller operand instead: p['x'] (128 KiB, against 1.00 MiB), constrained to P(('d', 'm'), None, None) "
        "before the matmul"
    )
    assert "what line 17 constrains (256 KiB, against 1.00 MiB)" in second.reasons[0].instead
    assert first.reasons[0].scheme == ""
    (looked_up,) = unpacked("experts_looked_up", tmp_path / "l").collectives()
    assert looked_up.reasons[0].instead.startswith(
        "move what p['w1'] is multiplied with instead: p['x'] is smaller (8.00 KiB, against 64.0 KiB); send each row"
    )
    facts = wording.facts(looked_up)
    assert next(text for name, text in facts if name == "try") == looked_up.reasons[0].instead
    (document,) = json.loads(run("dump", "collectives", tmp_path / "l", "--format", "json").stdout)[
        "collectives"
    ]
    assert document["reasons"][0]["instead"] == looked_up.reasons[0].instead
    ((operation,),) = (
        one["operations"]
        for one in json.loads(run("comm", tmp_path / "l", "--format", "json").stdout)["modules"]
    )
    assert operation["suggestions"] == list(looked_up.changes)
    assert looked_up.changes[0] == looked_up.reasons[0].instead


def test_what_is_not_smaller_is_not_moved_instead(tmp_path: Path) -> None:
    unpacked("experts_looked_up", tmp_path)
    for path in tmp_path.iterdir():  # as many tokens as make a batch larger than the experts
        path.write_text(path.read_text().replace("[64,64]", "[1024,64]"))
    found = next(one for one in dumps.open(tmp_path).compilations if one.last is not None).collectives()
    assert [reason.instead for one in found for reason in one.reasons] == [""]


LOOKUP = """HloModule m

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }

ENTRY e {
  w = f32[4,8,16]{2,1,0} parameter(0)
  i = s32[32]{0} parameter(1)
  v = f32[SIZE]{ORDER} parameter(2)
  g = f32[32,8,16]{2,1,0} gather(w, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,8,16}
  s = f32[32,8,16]{2,1,0} broadcast(v), dimensions={ALONG}
  p = f32[32,8,16]{2,1,0} multiply(s, g)
  z = f32[] constant(0)
  ROOT r = f32[32,16]{1,0} reduce(p, z), dimensions={1}, to_apply=add
}
"""


@pytest.mark.parametrize(
    ("size", "order", "along", "factors"),
    [("32,8", "1,0", "0,1", ["v"]), ("8", "0", "1", []), ("16", "0", "2", [])],
)
def test_factors_of_entries_have_a_batch_and_what_is_summed(
    size: str, order: str, along: str, factors: list[str]
) -> None:
    text = LOOKUP.replace("SIZE", size).replace("ORDER", order).replace("ALONG", along)
    lookup = hlo.parse(text).find("g")
    assert isinstance(lookup, hlo.Instruction)
    assert [one.name for one in smaller_operand.factors_of(lookup)] == factors


def test_axes_are_called_axes(tmp_path: Path) -> None:
    origins = [one.reasons[0].origin for one in unpacked("scan_con_step", tmp_path).collectives()]
    assert "axis 'm' comes from argument p['a']: P(None, None, 'm')" in origins


def test_lint_says_what_to_change_in_a_loop(tmp_path: Path) -> None:
    compilation = unpacked("scan_con_step", tmp_path)
    assert compilation.last is not None
    found = lint.lint_source(read_source(compilation.last.path), Config(select=("C101",)), compilation)
    assert found.findings
    for one in found.findings:
        assert one.help.startswith("write the constraint on line 42 as P('d', 'm')")


def test_the_repair_names_operand_reader_and_sharding() -> None:
    def place(name: str, line: int) -> Place:
        return Place(f"jit(f)/{name}", line, "f.py", name, None)

    reason = Reason(
        RESHARD, OPERATION, place("dot_general", 3), place("tanh", 2), (), None, "P('d', None)", "high", ""
    )
    asked = "shard the result of tanh (line 2) as dot_general (line 3) needs it"
    assert wording.as_it_is_read(reason) == f"{asked}, P('d', None)"
    assert wording.as_it_is_read(attrs.evolve(reason, want=None)) == asked
    assert wording.as_it_is_read(attrs.evolve(reason, tensor=None)) == ""
    assert wording.as_it_is_read(attrs.evolve(reason, tensor=reason.user)) == ""


CHAIN = """HloModule jit_f, num_partitions=4

FileNames
1 "f.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=16 end_line=16 column=1 end_column=2}
2 {file_name_id=1 function_name_id=1 line=17 end_line=17 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=0}
2 {file_location_id=2 parent_frame_id=0}

start {
  p = f32[4]{0} parameter(0)
  g = f32[16]{0} all-gather(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true,
    frontend_attributes={chain_id="0"}, metadata={op_name="w"}
  ROOT s = (f32[4]{0}, f32[16]{0}) custom-call(g), custom_call_target="AsyncCollectiveStart"
}

overlapped {
  a = f32[4]{0} parameter(0)
  b = f32[16]{0} parameter(1)
  x = f32[16]{0} parameter(2)
  t = f32[16]{0} tanh(x), metadata={op_name="jit(f)/tanh" stack_frame_id=1}
  ROOT o = (f32[4]{0}, f32[16]{0}, f32[16]{0}) tuple(a, b, t)
}

done {
  c = f32[4]{0} parameter(0)
  d = f32[16]{0} all-gather(c), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true,
    frontend_attributes={chain_id="0"}, metadata={op_name="w"}
  ROOT e = f32[16]{0} custom-call(d), custom_call_target="AsyncCollectiveDone"
}

ENTRY m {
  w = f32[4]{0} parameter(0), metadata={op_name="w"}
  y = f32[16]{0} parameter(1), metadata={op_name="y"}
  f1 = (f32[4]{0}, f32[16]{0}) fusion(w), kind=kCustom, calls=start
  v = f32[4]{0} get-tuple-element(f1), index=0
  u = f32[16]{0} get-tuple-element(f1), index=1
  f2 = (f32[4]{0}, f32[16]{0}, f32[16]{0}) fusion(v, u, y), kind=kLoop, calls=overlapped
  h = f32[4]{0} get-tuple-element(f2), index=0
  i = f32[16]{0} get-tuple-element(f2), index=2
  f3 = f32[16]{0} fusion(h), kind=kCustom, calls=done
  ROOT r = f32[16]{0} add(f3, i), metadata={op_name="jit(f)/add" stack_frame_id=2}
}
"""


def test_a_collective_over_fusions_has_one_line_that_of_its_reader(tmp_path: Path) -> None:
    """Not the line of what it overlaps with: in tables, in what `show` infers, and where a finding is reported."""
    module = hlo.parse(CHAIN)
    gather = module.find("g")
    assert isinstance(gather, hlo.Instruction)
    assert source_locations(module)[gather][0].line == 17
    assert called_lines(module)[gather][0].line.line == 17
    frame = responsible_frame(gather)
    assert frame is not None
    assert frame.line == 17
    (tmp_path / "m.txt").write_text(CHAIN)
    (document,) = json.loads(run("comm", tmp_path / "m.txt", "--format", "json").stdout)["modules"]
    assert [one["line"] for one in document["operations"]] == ["f.py:17"]
    own = hlo.parse(
        CHAIN.replace('metadata={op_name="w"}\n  ROOT s', 'metadata={op_name="w" stack_frame_id=1}\n  ROOT s')
    )
    gather = own.find("g")
    assert isinstance(gather, hlo.Instruction)
    assert source_locations(own)[gather][0].line == 16


def test_dump_collectives_gives_the_line_that_comm_gives(tmp_path: Path) -> None:
    unpacked("scan_con_step", tmp_path)
    (document,) = json.loads(run("comm", tmp_path, "--format", "json").stdout)["modules"]
    causes = json.loads(run("dump", "collectives", tmp_path, "--format", "json").stdout)["collectives"]
    lines = {one["name"]: one["line"] for one in document["operations"]}
    assert {one["instruction"]: one["line"] for one in causes} == lines
    assert all(lines.values())


def test_a_given_mesh_is_compared_with_the_programs_own(tmp_path: Path) -> None:
    unpacked("scan_con_step", tmp_path)
    for command in (("comm",), ("dump", "collectives")):
        failed = run(*command, tmp_path, "--mesh", "d=2,mm=3")
        assert failed.exit_code == 2
        assert (
            "the mesh d=2,mm=3 has 6 devices, but the module has 4: the module's own mesh is d=2,m=2; did you mean `m`?"
            in failed.stderr
        )
        told = " ".join(run(*command, tmp_path, "--mesh", "d=2,mm=2").stdout.split())
        assert "note: the module's own mesh is d=2,m=2; did you mean `m`?" in told
        assert "own mesh" not in run(*command, tmp_path, "--mesh", "d=2,m=2").stdout


def test_a_given_mesh_is_compared_or_said_not_to_be(tmp_path: Path) -> None:
    """Without collectives too; the final HLO alone has lost the names."""
    program = """HloModule jit_f, num_partitions=4

ENTRY e {
  p = f32[8]{0} parameter(0), sharding={mesh['data'=2,'model'=2], [{'data'}]}
  ROOT n = f32[8]{0} negate(p)
}
"""
    text = tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt"
    text.write_text(program.replace(", sharding={mesh['data'=2,'model'=2], [{'data'}]}", ""))
    unnamed = "no sharding in the text names mesh axes, so the names of --mesh could not be checked"
    assert run_json("comm", text, "--mesh", "data=2,modle=2")["modules"][0]["notes"] == [unnamed]
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(program)
    (module,) = run_json("comm", text, "--mesh", "data=2,modle=2")["modules"]
    assert module["notes"] == ["the module's own mesh is data=2,model=2; did you mean `model`?"]
    assert not run_json("comm", text, "--mesh", "data=2,model=2")["modules"][0]["notes"]
