"""Why collectives are there: against compilations whose operations had names of their own.

`tests/data/collectives` holds dump folders with `truth.json`: for each collective of the final HLO the ones of the
partitioner (`parts`), and for these the cause, the operation, the tensor, its sharding and the one that was wanted.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import communications, parse_mesh
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.advice import MOST, Advice
from hlotext.dumps.collectives.advice_rules import RULES
from hlotext.dumps.collectives.following import reshaped_dimension, sources
from hlotext.dumps.collectives.partitioner import Written
from hlotext.dumps.collectives.records import PARTIAL, PROGRAM, RESHARD, UNKNOWN, Place, Reason
from hlotext.dumps.collectives.specs import Spec, Specs, placements
from hlotext.dumps.outlines import dumped_beside
from hlotext.ir.values.sharding import Sharding
from hlotext.view.page.packing import unpacked as unpacked_words
from hlotext.view.page.packing import unpacked_bytes
from hlotext.view.report.parts import Section
from hlotext.view.report.sections.collectives import section as collectives_section
from tests.cli_support import run
from tests.support import DATA
from tests.test_graph import parts_of

FOLDERS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "collectives").glob("*.tar.xz"))
_ENDS = ("before_optimizations.txt", "after_optimizations.txt")


def unpacked(name: str, target: Path) -> tuple[dumps.Compilation, dict[str, Any]]:
    """A compilation and the truth about it."""
    with tarfile.open(DATA / "collectives" / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    path = target / "truth.json"
    truth: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    return opened(target), truth


def opened(folder: Path) -> dumps.Compilation:
    return next(one for one in dumps.open(folder).compilations if one.last is not None)


def mesh_text(truth: dict[str, Any]) -> str:
    return ",".join(f"{name}={size}" for name, size in truth["mesh"].items())


def told(reason: dumps.Reason) -> dict[str, object]:
    """What a reason says, in the form of the truth."""

    def place(one: dumps.Place | None) -> object:
        return None if one is None else (one.op_name, one.line, one.instruction and one.instruction.name)

    return {
        "cause": reason.cause,
        "wanted": reason.wanted_by,
        "user": place(reason.user),
        "tensor": place(reason.tensor),
        "have": reason.have,
        "want": reason.want,
        "axes": sorted(reason.axes),
    }


def wanted(part: dict[str, Any], answer: dict[str, object]) -> dict[str, object]:
    """The truth about one part; where it does not tell a sharding, nothing is asked."""

    def place(one: dict[str, Any] | None) -> object:
        return None if one is None else (one["op_name"], one["line"], one["name"])

    return {
        "cause": part["cause"],
        "wanted": part["wanted"],
        "user": place(part["user"]),
        "tensor": place(part["tensor"]) if part["tensor"] else answer["tensor"],
        "have": part["have"] or answer["have"],
        "want": part["want"] or answer["want"],
        "axes": sorted(part["axes"]),
    }


@pytest.mark.parametrize("name", FOLDERS)
def test_every_collective_is_explained(name: str, tmp_path: Path) -> None:
    compilation, truth = unpacked(name, tmp_path)
    found = compilation.collectives(mesh_text(truth))
    assert compilation.after is not None
    assert [one.instruction for one in found] == [
        one.instruction for one in communications(compilation.after)
    ]
    for one in found:
        final = truth["final"][one.instruction.name]
        parts = {reason.part: reason for reason in one.reasons}
        if final["any"]:
            assert set(parts) < set(final["parts"])
        else:
            assert sorted(parts) == sorted(final["parts"])
        for part, reason in parts.items():
            answer = told(reason)
            assert answer == wanted(truth["parts"][part], answer)
            assert reason.because.startswith("because ")
            assert len(reason.suggestions) <= MOST


def test_the_mesh_is_read_from_the_header(tmp_path: Path) -> None:
    compilation, truth = unpacked("cpu.mlp_second_wrong.shardy", tmp_path)
    answers = [compilation.collectives(), compilation.collectives(parse_mesh(mesh_text(truth)))]
    assert len({str([told(one.reasons[0]) for one in found]) for found in answers}) == 1
    assert compilation.collectives() is answers[0]  # asked again, nothing is read again
    with pytest.raises(ValueError, match="16 devices"):
        compilation.collectives("dp=2,tp=8")
    with pytest.raises(ValueError, match="not a mesh axis"):
        compilation.collectives("dp")


def test_without_a_mesh_nothing_is_named(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.constraint_back_and_forth.gspmd", tmp_path)
    (one,) = compilation.collectives()
    (reason,) = one.reasons
    assert (reason.axes, reason.have, reason.want, reason.suggestions) == ((), None, None, ())
    assert reason.confidence == "medium"
    assert reason.have_sharding == "{devices=[2,4]<=[8]}"
    assert any("mesh" in note for note in one.notes)


def test_the_sentence(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path)
    (one,) = compilation.collectives()
    (reason,) = one.reasons
    assert one.why == (
        "because dot_general (line 30) needs the result of mul (line 29) as P('dp', None), but it is P('dp', 'tp')"
    )
    assert reason.origin == "P('dp', 'tp') comes from arguments x: P('dp', None) and w1: P(None, 'tp')"
    assert (reason.confidence, one.confidence) == ("high", "high")
    (suggestion,) = reason.suggestions
    assert (suggestion.kind, suggestion.name, suggestion.spec) == ("argument", "w1", "P(None, None)")
    assert (suggestion.bytes_spared, suggestion.bytes_per_device) == (24576, 98304)
    assert suggestion.measured == RULES[suggestion.rule].spared["cpu"]
    assert one.suggestions == reason.suggestions


def test_suggestions_are_computed_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path)
    asked: list[object] = []
    of_part = Advice.suggestions

    def counted(self: Advice, part: Written) -> tuple[dumps.Suggestion, ...]:
        asked.append(part)
        return of_part(self, part)

    monkeypatch.setattr(Advice, "suggestions", counted)
    ((reason,),) = (one.reasons for one in compilation.collectives())
    assert not asked
    assert reason.suggestions is reason.suggestions
    assert len(asked) == 1
    monkeypatch.undo()
    assert pickle.loads(pickle.dumps(reason)).suggestions == reason.suggestions


def test_results_and_constraints_are_suggested(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.result_gathered.shardy", tmp_path)
    (one,) = compilation.collectives()
    (reason,) = one.reasons
    assert (reason.wanted_by, reason.user, reason.result) == ("result", None, 0)
    assert (one.suggestions[0].kind, one.suggestions[0].name) == ("result", "result[0]")
    assert one.suggestions[0].spec == reason.have


def test_constraints_are_named_by_who_calls_the_helper(tmp_path: Path) -> None:
    compilation, truth = unpacked("cpu.loop_constraint_inside.shardy", tmp_path)
    (reason,) = next(
        one.reasons for one in compilation.collectives() if one.reasons[0].wanted_by == "constraint"
    )
    assert reason.user is not None
    assert reason.user.file == "programs.py"
    assert mesh_text(truth)


def test_fsdp_and_gradients_are_the_scheme(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.scan_fsdp.shardy", tmp_path / "fsdp")
    schemes = {one.instruction.opcode: one.reasons[0].scheme for one in compilation.collectives()}
    assert "FSDP" in schemes["all-gather"]
    assert "contracted dimension" in schemes["all-reduce"]
    compilation, _ = unpacked("gpu.train_data_parallel.shardy", tmp_path / "train")
    reasons = [reason for one in compilation.collectives() for reason in one.reasons]
    assert sum("data parallelism" in reason.scheme for reason in reasons) == 2


def test_suggestions_say_where_they_were_measured(tmp_path: Path) -> None:
    for name, where in (("tpu.scan_fsdp.shardy", "TPU"), ("cpu.result_swapped.gspmd", "GSPMD")):
        compilation, truth = unpacked(name, tmp_path / name)
        made = [s for one in compilation.collectives(mesh_text(truth)) for s in one.suggestions]
        assert made
        assert all(where in s.measured_on and s.because.endswith(s.measured_on) for s in made)


def test_only_both_ends(tmp_path: Path) -> None:
    compilation, truth = unpacked("cpu.mlp_second_wrong.shardy", tmp_path / "whole")
    (tmp_path / "ends").mkdir()
    for step in (compilation.first, compilation.last):
        assert step is not None
        shutil.copy(step.path, tmp_path / "ends")
    (one,) = opened(tmp_path / "ends").collectives(mesh_text(truth))
    (reason,) = one.reasons
    assert (reason.cause, reason.have, reason.want) == ("reshard", "P('dp', 'tp')", "P('dp', None)")
    assert reason.suggestions == ()
    assert (str(reason.user), str(reason.tensor)) == ("dot_general (line 30)", "mul (line 29)")
    assert reason.confidence == "high"
    assert any("xla_dump_hlo_pass_re" in note for note in one.notes)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cpu.four_layers_one_line", 2),
        ("cpu.mlp_second_wrong", 1),
        ("cpu.scatter_add_rows", 2),
        ("cpu_0.12.mlp_second_wrong", 1),
        ("cpu_0.12.zero_optimizer", 1),
    ],
)
def test_the_program_tells_of_reshards_what_the_texts_around_partitioning_tell(
    name: str, told: int, tmp_path: Path
) -> None:
    """Where both shardings are told without these texts, they are the ones that these texts have."""
    whole, _ = unpacked(f"{name}.shardy", tmp_path / "whole")
    (tmp_path / "ends").mkdir()
    for step in (whole.first, whole.last):
        assert step is not None
        shutil.copy(step.path, tmp_path / "ends")
    full = {one.instruction.name: one.reasons for one in whole.collectives()}
    count = 0
    for one in opened(tmp_path / "ends").collectives():
        for reason, truth in zip(one.reasons, full[one.instruction.name], strict=False):
            if reason.cause == "reshard" and reason.want is not None:
                assert (reason.have, reason.want) == (truth.have, truth.want)
                assert (str(reason.user), str(reason.tensor)) == (str(truth.user), str(truth.tensor))
                count += 1
    assert count == told


def test_a_text_beside_the_folder_that_it_was_dumped_to_is_explained_as_the_dumped_one(
    tmp_path: Path,
) -> None:
    """As `compiled.as_text()` is, whose frames have other numbers."""
    compilation, _ = unpacked("cpu_0.12.mlp_second_wrong.shardy", tmp_path / "dump")
    assert compilation.last is not None
    text = (
        Path(compilation.last.path)
        .read_text()
        .replace("jit(mlp_second_wrong)/mul", "jit(mlp_second_wrong)/mul ")
    )
    beside = tmp_path / "compiled.txt"
    beside.write_text(text)
    found = dumped_beside(str(beside))
    assert found is not None
    assert found.name == compilation.name
    assert "try         argument" in run("comm", str(beside)).output
    beside.write_text(text.replace("f32[32,128]", "f32[32,64]"))
    assert dumped_beside(str(beside)) is None


def test_only_the_final_text(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.result_gathered.shardy", tmp_path / "whole")
    (tmp_path / "final").mkdir()
    assert compilation.last is not None
    shutil.copy(compilation.last.path, tmp_path / "final")
    (one,) = opened(tmp_path / "final").collectives()
    assert (one.reasons[0].cause, one.reasons[0].confidence) == ("reshard", "low")


def test_without_a_final_text(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.result_gathered.shardy", tmp_path)
    assert compilation.last is not None
    Path(compilation.last.path).unlink()
    compilation = dumps.open(tmp_path).compilations[0]
    with pytest.raises(LookupError, match="no final HLO"):
        compilation.collectives()


def test_a_broken_text_between_leaves_both_ends(tmp_path: Path) -> None:
    compilation, truth = unpacked("cpu.mlp_second_wrong.shardy", tmp_path)
    step = next(one for one in compilation.steps if one.name == "spmd-partitioning")
    Path(step.path).write_text("HloModule broken\nENTRY %e {\n")
    (one,) = opened(tmp_path).collectives(mesh_text(truth))
    assert one.reasons[0].cause == "reshard"
    assert one.reasons[0].suggestions == ()


# ---- specs


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("{devices=[2,4]<=[8]}", "P('dp', 'tp')"),
        ("{devices=[4,2]<=[2,4]T(1,0)}", "P('tp', 'dp')"),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "P('dp', None)"),
        ("{devices=[1,8]<=[8]}", "P(None, ('dp', 'tp'))"),
        ("{devices=[1,8]<=[2,4]T(1,0)}", "P(None, ('tp', 'dp'))"),
        ("{replicated}", "P(None, None)"),
        ("{manual}", None),
        ("{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}", None),
        ("{devices=[4,2]<=[8]}", None),
        ("{mesh['dp'=2,'tp'=4], [{'tp'}, {}]}", "P('tp', None)"),
    ],
)
def test_specs_of_shardings(text: str, spec: str | None) -> None:
    found = Specs(parse_mesh("dp=2,tp=4")).of(sharding(text), 2)
    assert (None if found is None else str(found)) == spec


def test_specs_follow_the_order_of_devices() -> None:
    mesh = parse_mesh("dp=2,tp=4", device_order=(0, 2, 4, 6, 1, 3, 5, 7))
    assert str(Specs(mesh).of(sharding("{devices=[4,2]<=[8]}"), 2)) == "P('tp', 'dp')"


def sharding(text: str) -> Sharding:
    module = hlo.parse(
        f"HloModule m\nENTRY %e {{\n  ROOT %p = f32[16,16] parameter(0), sharding={text}\n}}\n"
    )
    found = module.entry.root.sharding
    assert found is not None
    return found


def test_placements_move_and_remove_axes() -> None:
    have = Spec((("dp",), ("tp",)))
    near = list(placements(have, ("tp",)))
    assert {str(spec) for cost, spec in near if cost == 1} == {"P('dp', None)", "P(('dp', 'tp'), None)"}


@pytest.mark.parametrize(
    ("new", "old", "dimension", "found"),
    [
        ((4, 8), (32,), 0, 0),
        ((4, 8), (32,), 1, None),
        ((32,), (4, 8), 0, 0),
        ((4, 1, 8), (4, 8), 2, 1),
        ((2, 6), (3, 4), 1, None),
    ],
)
def test_dimensions_of_reshapes(
    new: tuple[int, ...], old: tuple[int, ...], dimension: int, found: int | None
) -> None:
    assert reshaped_dimension(new, old, dimension) == found


# ---- the command


def test_the_command_groups_what_is_alike() -> None:
    result = run("dump", "collectives", str(DATA / "collectives" / "cpu.mlp_second_wrong.shardy.tar.xz"))
    assert result.exit_code == 0
    assert (
        "dot_general (line 30) needs the result of mul (line 29) as P('dp', None), but it is P('dp', 'tp')"
        in result.stdout
    )
    assert "argument w1 as P(None, None)" in result.stdout


def test_the_command_tells_what_is_missing() -> None:
    gspmd = str(DATA / "collectives" / "cpu.constraint_back_and_forth.gspmd.tar.xz")
    assert "--mesh" in run("dump", "collectives", gspmd).stdout
    assert "P('dp', None)" in run("dump", "collectives", gspmd, "--mesh", "dp=2,tp=4").stdout
    assert run("dump", "collectives", gspmd, "--mesh", "dp=2,tp=2").exit_code == 2
    assert run("dump", "collectives", gspmd, "-i", "nosuch").exit_code == 1


def test_a_damaged_final_text_is_unreadable_and_no_wrong_usage(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path)
    assert compilation.last is not None
    path = Path(compilation.last.path)
    path.write_text(path.read_text().replace(" all-gather(", " all-gather((", 1))
    result = run("dump", "collectives", str(path.parent), "--mesh", "dp=2,tp=4")
    assert result.exit_code == 2
    assert "Usage:" not in result.stderr
    assert path.name in result.stderr


def test_dump_why_says_the_same_sentence(tmp_path: Path) -> None:
    compilation, _ = unpacked("gpu.train_data_parallel.shardy", tmp_path)
    for one in compilation.collectives():
        cause = compilation.why(one.instruction.name)
        assert (cause.cause, cause.because) == ("partitioning", one.why.removeprefix("because "))


def test_warnings_in_a_log_are_matched(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "W1123 21:34:08.955252 13936 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler cannot "
        "go from sharding {devices=[2,1,4]<=[8] last_tile_dim_replicate} to {devices=[1,4,2]<=[2,4]T(1,0) "
        "last_tile_dim_replicate} efficiently for HLO operation %param = f32[32,128]{1,0} parameter(0), "
        'sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}, metadata={op_name="x"}. As the last resort, SPMD will '
        "replicate the tensor and then partition it to obtain the target sharding, which is inefficient.\n"
    )
    folder = str(DATA / "collectives" / "cpu_0.12.constraint_all_to_all.gspmd.tar.xz")
    result = run("dump", "collectives", folder, "--mesh", "dp=2,tp=4", "--log", str(log))
    assert "gathered in full and sliced again" in result.stdout
    assert "warned      Involuntary full rematerialization" in result.stdout
    other = str(DATA / "collectives" / "cpu_0.12.mlp_second_wrong.shardy.tar.xz")
    assert "warned" not in run("dump", "collectives", other, "--log", str(log)).stdout
    assert run("dump", "collectives", folder, "--log", str(tmp_path / "nosuch")).exit_code == 2


# ---- shown elsewhere


def _told(page: str) -> tuple[dict[str, Any], list[str]]:
    """The facts of a graph page by the number of the instruction, and the names of all."""
    parts = parts_of(page)
    why: dict[str, Any] = unpacked_words(parts["words"])["why"]
    return why, unpacked_bytes(parts["names"]).decode().split("\n")


def test_what_reasons_share_is_said_once() -> None:
    """A sentence for each reason with its annotations; how sure they are is one row, or stands behind each."""

    def reason(user: str, confidence: str, origin: str) -> Reason:
        place = Place(f"jit(f)/{user}", 3, "f.py", "reduce", None)
        told = {"origin": origin, "because": f"because {user} sums"}
        return Reason(PARTIAL, "operation", place, place, ("x",), None, None, confidence, **told)  # type: ignore[arg-type]

    def rows(*reasons: Reason) -> list[tuple[str, str]]:
        (one,) = communications(hlo.parse(SUMMED))
        return wording.facts(dumps.CollectiveCause(one.instruction, one, reasons))

    sure = "operation and axes are known"
    assert rows(reason("a", "high", "o"), reason("a", "high", "p"), reason("b", "high", "o")) == [
        ("because", "a sums"),
        ("sharding", "o"),
        ("sharding", "p"),
        ("because", "b sums"),
        ("confidence", f"high: {sure}"),
    ]
    assert rows(reason("a", "high", ""), reason("b", "low", "")) == [
        ("because", f"a sums (high: {sure})"),
        ("because", f"b sums (low: {sure})"),
    ]


def test_reasons_that_differ_in_the_operation_alone_are_one_sentence() -> None:
    """With the lines of each; what sums up arrays of another origin has its own."""

    def reason(user: str, line: int, origin: str = "") -> Reason:
        place = Place(f"jit(f)/{user}", line, "f.py", user, None)
        told = {"origin": origin, "because": f"because {place} reduces over x"}
        return Reason(PARTIAL, "operation", place, place, ("x",), None, None, "high", **told)  # type: ignore[arg-type]

    reasons = [reason("dot", 9), reason("dot", 7), reason("sum", 7), reason("dot", 9), reason("sum", 5, "o")]
    assert [(text, len(members)) for text, members in wording.joined(reasons)] == [
        ("dot (lines 9 and 7) and sum (line 7) reduce over x", 4),
        ("sum (line 5) reduces over x", 1),
    ]


SUMMED = """HloModule m, num_partitions=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(x), channel_id=1, use_global_device_ids=true, replica_groups=[1,2]<=[2], to_apply=add
}
"""


def test_sentences_say_nothing_that_operations_do_not_do() -> None:
    """The slices of a roll bear the name of their concatenation; an argument without a name sums up nothing."""
    roll = Place("jit(f)/concatenate", 3, "f.py", "concatenate", None)
    argument = Place("", None, "", "parameter", None)

    def said(cause: str, user: Place, tensor: Place) -> str:
        return wording.sentence(Reason(cause, "operation", user, tensor, ("x",), None, None, "low", ""))

    assert said(RESHARD, roll, roll) == "because concatenate (line 3) needs elements that other devices hold"
    assert (
        said(RESHARD, roll, argument)
        == "because concatenate (line 3) needs an argument in a different sharding"
    )
    assert (
        said(PARTIAL, argument, argument)
        == "because an operation reduces over a dimension that is sharded along x"
    )


def test_comm_says_why(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path / "d")
    (one,) = compilation.collectives()
    assert compilation.last is not None
    for place in (tmp_path / "d", compilation.last.path):
        (operation,) = json.loads(run("comm", place, "--format", "json").stdout)["modules"][0]["operations"]
        assert (operation["why"], operation["confidence"]) == (one.why, "high")
        assert operation["suggestions"] == [s.because for s in one.suggestions]
        text = run("comm", place).stdout
        assert one.why.removeprefix("because ") in text
        assert one.suggestions[0].because in text
        assert "xla_dump_hlo_pass_re" not in text
        assert "mesh          dp=2,tp=4 (the program before optimization)" in text
        assert operation["axes"] == ["tp"]
        assert "links of tp" in run("cost", place, "--chip", "h100").stdout
    events = tmp_path / "events.json.gz"
    run("convert", compilation.last.path, "--to", "trace-events", "--chip", "h100", "-o", events)
    assert b"links of tp" in gzip.decompress(events.read_bytes())


def test_comm_of_one_text_says_what_it_can(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path / "d")
    assert compilation.last is not None
    (tmp_path / "elsewhere").mkdir()
    alone = tmp_path / "elsewhere" / "alone.txt"
    shutil.copy(compilation.last.path, alone)
    (module,) = json.loads(run("comm", alone, "--format", "json").stdout)["modules"]
    (operation,) = module["operations"]
    assert "dot_general (line 30)" in operation["why"]
    assert (operation["confidence"], operation["suggestions"]) != ("high", None)
    assert operation["suggestions"] == []
    assert any("xla_dump_hlo_pass_re" in note for note in module["notes"])


SHARD_MAP = """HloModule jit_f, num_partitions=8

a {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[8]{0} parameter(0), metadata={op_name="w"}
  g = f32[16]{0} all-gather(p), channel_id=1, replica_groups=mesh['d'=2,'m'=4] {'d'}, dimensions={0}, GATHER
  t = f32[16]{0} tanh(g), metadata={op_name="jit(f)/shard_map/tanh"}
  r = f32[4]{0} reduce-scatter(t), channel_id=2, replica_groups=mesh['d'=2,'m'=4] {'m'}, dimensions={0}, to_apply=a,
      metadata={op_name="jit(f)/shard_map/psum_invariant"}
  ROOT c = f32[4]{0} collective-permute(r), channel_id=3, source_target_pairs={{0,1},{1,0}},
      metadata={op_name="jit(f)/shard_map/ppermute"}
}
"""


def test_names_of_primitives_tell_what_a_shard_map_asks_for(tmp_path: Path) -> None:
    """In a text alone too; of other kinds, and marked as the partitioner's, the names are those of what is moved."""
    text, own = tmp_path / "f.txt", 'metadata={op_name="jit(f)/shard_map/all_gather"}'

    def answers(gather: str) -> dict[str, str]:
        text.write_text(SHARD_MAP.replace("GATHER", gather))
        (module,) = json.loads(run("comm", text, "--format", "json").stdout)["modules"]
        return {one["name"]: one["why"] for one in module["operations"]}

    assert set(answers(own).values()) == {"because the program requests it (shard_map)"}
    marked = answers(f'{own}, frontend_attributes={{is_spmd_generated="true"}}')["g"]
    assert marked == "because all_gather needs w in a different sharding"
    other = answers('metadata={op_name="jit(f)/shard_map/psum"}')["g"]
    assert other == "because psum needs w in a different sharding"


def test_axes_that_groups_name_are_the_programs() -> None:
    """XLA calls those of a mesh that it infers `axis_0`."""
    named = SHARD_MAP.replace("GATHER", "sharding={replicated}")
    inferred = named.replace("'d'", "'axis_0'").replace("'m'", "'axis_1'")
    for text, is_named in ((named, True), (inferred, False)):
        notes = {note for one in dumps.collectives.of_module(hlo.parse(text)) for note in one.notes}
        assert (wording.NO_MESH not in notes) == is_named


def test_sums_of_a_shard_map_that_were_combined_are_not_said_to_be_the_partitioners() -> None:
    """The combined one has the name of its first part alone."""
    final = COMBINED.replace("f/psum", "f/reduce_sum").replace("f/dot_general", "f/shard_map/dot_general")
    (one,) = dumps.collectives.of_module(hlo.parse(final))
    assert [reason.cause for reason in one.reasons] == ["unknown", "unknown"]
    assert one.reasons[1].because == (
        "unknown: it was created for dot_general, which is in a shard_map that may request the sum itself"
    )


def test_a_gather_for_a_constraint_is_told_by_the_program(tmp_path: Path) -> None:
    """The program has the constraint and its sharding, so no text around partitioning is needed."""
    final = """HloModule jit_f, num_partitions=4

ENTRY e {
  p = f32[4]{0} parameter(0), metadata={op_name="w"}
  s = f32[4]{0} negate(p), metadata={op_name="jit(f)/neg"}
  ROOT g = f32[16]{0} all-gather(s), channel_id=1, replica_groups=mesh['d'=4] {'d'}, dimensions={0},
      use_global_device_ids=true, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="jit(f)/neg"}
}
"""
    program = """HloModule jit_f, num_partitions=4

ENTRY e {
  p = f32[16]{0} parameter(0), sharding={mesh['d'=4], [{'d'}]}, metadata={op_name="w"}
  s = f32[16]{0} negate(p), metadata={op_name="jit(f)/neg"}
  ROOT c = f32[16]{0} custom-call(s), custom_call_target="Sharding", sharding={mesh['d'=4], [{OPEN}]},
      metadata={op_name="jit(f)/sharding_constraint"}
}
"""
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(final)
    for dimension, want in (("", "P(None)"), ("?", None)):
        (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(
            program.replace("OPEN", dimension)
        )
        (one,) = opened(tmp_path).collectives()
        assert one.reasons[0].want == want
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(program.replace("OPEN", ""))
    (one,) = opened(tmp_path).collectives()
    assert one.why == "because the sharding constraint needs the result of neg as P(None)"


def test_the_graph_says_why(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path / "d")
    (one,) = compilation.collectives()
    assert run("graph", tmp_path / "d", "-o", tmp_path / "g.html").exit_code == 0
    why, names = _told((tmp_path / "g.html").read_text())
    told = dict(why[str(names.index(one.instruction.name))])
    assert told["because"] == one.why.removeprefix("because ")
    assert told["why"].startswith("all-gather added by spmd-partitioning")
    assert one.suggestions[0].because in told["try"]
    dot = next(n for n, name in enumerate(names) if why.get(str(n)) and name.startswith("dot"))
    assert "dot of the program" in dict(why[str(dot)])["why"]
    assert compilation.last is not None
    assert run("graph", compilation.last.path, "-o", tmp_path / "f.html").exit_code == 0
    alone, _ = _told((tmp_path / "f.html").read_text())
    assert [dict(facts)["because"] for facts in alone.values()] == [told["because"]]


def test_the_report_says_why(tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    from hlotext.view import report

    compilation, _ = unpacked("cpu.mlp_second_wrong.shardy", tmp_path / "d")
    (one,) = compilation.collectives()
    assert compilation.last is not None
    for place in (tmp_path / "d", compilation.last.path):
        found = collectives_section(report.report_input(place))
        assert isinstance(found, Section)
        tables = {table.id: table for table in found.tables}
        (row,) = tables["collectives-why"].rows
        assert one.why.removeprefix("because ") in row
        assert one.reasons[0].origin in row
        (change,) = tables["collectives-suggestions"].rows
        assert change[1:6] == ("w1", "P(None, 'tp')", "P(None, None)", 24576, 98304)


def test_what_is_known_of_a_combined_collective_is_said_first() -> None:
    """Parts of which nothing is known do not hide the reason of the others."""
    unknown = Reason(
        UNKNOWN, None, None, None, (), None, None, "low", "unknown: it is written for get-tuple-element"
    )
    known = Reason(PROGRAM, None, None, None, ("x",), None, None, "medium", "because the program requests it")
    told = [text for text, _ in wording.joined((unknown, known))]
    assert told == ["the program requests it", "unknown: it is written for get-tuple-element"]


def test_in_a_loop_without_metadata_nothing_is_told(tmp_path: Path) -> None:
    compilation, _ = unpacked("cpu_0.12.scan_layers_wrong.shardy", tmp_path)
    assert compilation.after is not None
    ((reason,),) = [one.reasons for one in dumps.collectives.of_module(compilation.after)]
    assert (reason.cause, reason.user, reason.confidence) == ("unknown", None, "low")
    assert reason.because == "unknown: it has no metadata"


# ---- newer compilers


def newer(name: str, target: Path, partitioner: str = "shardy") -> dumps.Compilation:
    """A compilation by jaxlib 0.12.0.1, whose collectives carry the metadata of what they move."""
    with tarfile.open(DATA / "collectives" / "fresh" / f"cpu_0.12.{name}.{partitioner}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return opened(target)


def test_slices_across_shards_are_tensors_too(tmp_path: Path) -> None:
    """Six heads over four devices: the slices of q, k and v become permutes, and what is gathered behind them is a slice."""
    found = newer("uneven_heads", tmp_path).collectives()
    gathers = [one for one in found if one.communication.kind == "all-gather"]
    permutes = [one for one in found if one.communication.kind == "collective-permute"]
    assert {one.why for one in gathers} == {
        "because reshape (line 80) needs the result of split (line 79) in a different sharding, but it is P('dp', None, 'tp')"
    }
    assert {one.confidence for one in gathers} == {"medium"}
    assert {one.reasons[0].cause for one in permutes} == {"halo"}
    assert len(gathers) == 3
    assert len(permutes) == 7


def test_reduces_of_pairs_say_what_is_gathered(tmp_path: Path) -> None:
    for one in newer("greedy_next_token", tmp_path).collectives():
        assert one.why == (
            "because reduce (line 133) reduces over a dimension that is sharded along tp, "
            "so the partial results are gathered and reduced again"
        )


def test_what_was_folded_into_a_product_does_not_name_it() -> None:
    def named(op_name: str, opcode: str) -> str:
        return dumps.Place(op_name, 3, "f.py", opcode, None).label

    assert named("jit(f)/transpose(jvp())/transpose", "dot") == "dot"
    assert named("jit(f)/transpose(jvp())/dot_general", "dot") == "dot_general"
    assert named("jit(f)/transpose", "transpose") == "transpose"
    assert named("params['w']", "parameter") == "params['w']"


def test_batches_of_a_gather_come_from_both_sides() -> None:
    """`take_along_axis`: to take the axis of the batch off the indices alone would spare nothing."""
    text = """HloModule m

ENTRY e {
  t = f32[32,512] parameter(0)
  i = s32[32,1,1] parameter(1)
  ROOT g = f32[32,1] gather(t, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0},
    start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}
}
"""
    root = hlo.parse(text).entry.root
    assert [(one.name, place) for one, place in sources(root, 0)] == [("i", 0), ("t", 0)]
    assert [(one.name, place) for one, place in sources(root, 1)] == [("i", 1)]


def test_a_roll_before_a_constraint_reads_over_the_edge(tmp_path: Path) -> None:
    """What is shifted is wanted as it is placed: the roll has vanished, the constraint behind it asks for nothing else."""
    found = newer("pipeline_by_roll", tmp_path).collectives()
    reasons = [r for one in found for r in one.reasons if one.communication.kind == "collective-permute"]
    assert {(r.cause, r.user.label if r.user is not None else None) for r in reasons} == {
        ("halo", "concatenate"),
        ("reshard", "slice"),
    }
    assert not [r for r in reasons if r.cause == "reshard" and r.have is not None and r.have == r.want]


def test_two_heads_are_not_cut_into_four_parts(tmp_path: Path) -> None:
    """Two key-value heads over four devices: jax refuses P('dp', None, 'tp', None)."""
    (one,) = newer("paged_like_decode", tmp_path).collectives()
    (reason,) = one.reasons
    assert (reason.have, reason.want) == ("P('dp', 'tp', None, None)", "P('dp', None, None, None)")
    assert [suggestion.spec for suggestion in one.suggestions] == ["P('dp', None, None, None)"]


def test_a_halo_whose_axis_comes_from_two_annotations_has_no_change_of_one(tmp_path: Path) -> None:
    reasons = [r for one in newer("pipeline_by_roll", tmp_path).collectives() for r in one.reasons]
    assert not [r.suggestions for r in reasons if r.cause == "halo" and r.suggestions]


def test_sums_over_the_vocabulary_are_no_data_parallelism(tmp_path: Path) -> None:
    """The gradient of what is multiplied with a table that is sharded by vocabulary; `data` alone is of batches."""
    found = newer("sharded_vocabulary", tmp_path).collectives()
    schemes = {(r.axes, r.scheme) for one in found for r in one.reasons if "data parallelism" in r.scheme}
    assert {axes for axes, _ in schemes} == {("data",)}


def test_what_sends_more_in_all_is_not_suggested(tmp_path: Path) -> None:
    """The logits whole: the sums over the vocabulary vanish, but the logits are gathered, and their gradients grow."""
    found = newer("sharded_vocabulary", tmp_path).collectives()
    made = {(s.name.rpartition("/")[2], s.spec) for one in found for s in one.suggestions}
    assert ("sharding_constraint", "P('data', None, None)") not in made
    assert not [s for one in found for s in one.suggestions if s.name == "mask"]  # a sum of one number


def test_readers_in_branches_and_of_merged_tensors_are_found(tmp_path: Path) -> None:
    """A branch takes its tensor as an element of a tuple; equal indices of two lines were merged before they are gathered."""
    found = newer("diagonals", tmp_path, "gspmd").collectives("x=4,y=2")
    reasons = {reason.part: reason for one in found for reason in one.reasons}

    def names(part: str) -> tuple[str, ...]:
        places = (reasons[part].user, reasons[part].tensor)
        return tuple(place.instruction.name for place in places if place is not None and place.instruction)

    assert names("all-gather") == ("scatter-add.5", "arg_tuple.1_0")
    assert names("all-gather.1") == ("scatter-add.5", "arg_tuple.1_1")
    assert names("all-gather.12") == ("gather.5", "concatenate.7")


def fsdp_on_tpu(target: Path) -> dumps.Compilation:
    """A step of FSDP with donated weights for four v5e, whose reduce-scatters are padded."""
    with tarfile.open(DATA / "collectives" / "fresh" / "tpu.fsdp.shardy.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return opened(target)


def test_what_is_spared_is_what_the_final_text_sends(tmp_path: Path) -> None:
    """Gathers are of bfloat16 there, and of float32 right behind the partitioner."""
    found = fsdp_on_tpu(tmp_path).collectives()
    total = sum((one.communication.wire_bytes or 0) * (one.communication.runs or 0) for one in found)
    suggestions = [(one, suggestion) for one in found for suggestion in one.suggestions]
    assert suggestions
    stays = [one.communication.start.name for one, suggestion in suggestions if not suggestion.bytes_spared]
    assert stays == ["all-gather.45"]  # with x whole the same operand is gathered, however it is cut then
    for one, suggestion in suggestions:
        assert suggestion.bytes_spared in (0, one.communication.wire_bytes)
        assert ("; this collective remains, but " in suggestion.because) == (suggestion.bytes_spared == 0)
        assert suggestion.bytes_total is not None
        assert 0 < -suggestion.bytes_total <= total


def test_what_all_send_less_is_a_bound_or_not_told(tmp_path: Path) -> None:
    """An operation that may be carried out otherwise, or sends now what was not foreseen, leaves how much open."""
    for one in fsdp_on_tpu(tmp_path).collectives():
        for suggestion in one.suggestions:
            told = (
                "at least an estimated "
                if suggestion.confidence == "high"
                else "an unknown amount less in total"
            )
            assert told in suggestion.because
            assert "an estimated" in suggestion.because or suggestion.confidence == "low"


def test_replicating_one_weight_of_fsdp_is_not_suggested(tmp_path: Path) -> None:
    """Recompiled with `ws[2]` whole it sends 1,572,864 bytes more: its gradient is then summed on all devices.

    With `x` whole it sends 40,108,032 bytes less.
    """
    found = fsdp_on_tpu(tmp_path).collectives()
    suggestions = {s.name: s for one in found for s in one.suggestions if s.kind == "argument"}
    assert list(suggestions) == ["x"]
    assert suggestions["x"].bytes_total == pytest.approx(-40_108_032, rel=0.03)


def test_padded_reduce_scatters_are_the_partitioners_sums(tmp_path: Path) -> None:
    compilation = fsdp_on_tpu(tmp_path)
    for one in compilation.collectives():
        if one.communication.kind == "reduce-scatter":
            (reason,) = one.reasons
            assert (reason.cause, reason.part_kind) == ("partial", "all-reduce")
            assert reason.because.startswith("because dot_general (line 59) reduces over a dimension")
    why = compilation.why("all-reduce.6")
    assert "tpu-all-reduce-scatter-fusion rewrote into a reduce-scatter" in why.because
    assert why.chain.startswith(
        "all-reduce added by SPMD partitioning -> rewritten by tpu-all-reduce-scatter"
    )
    other = compilation.why("collective-permute-start")
    assert other.because == "a pass after the partitioner added it: tpu-all-reduce-scatter-fusion"


WEIGHTS = """HloModule jit_f, num_partitions=4

ENTRY e {
  w = f32[4,8,16]{2,1,0} parameter(0), sharding={mesh['dp'=4], [{}, {'dp'}, {}]}, metadata={op_name="base[\\'wi\\']"}
  ROOT n = f32[4,8,16]{2,1,0} negate(w)
}
"""
LAYERS = """HloModule jit_f, is_scheduled=true, num_partitions=4

body {
  s = (s32[], f32[4,2,16]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[4,2,16]{2,1,0} get-tuple-element(s), index=1
  z = s32[] constant(0)
  d = f32[1,2,16]{2,1,0} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,2,16}, metadata={op_name="f/dynamic_slice"}
  g = f32[1,8,16] all-gather(d), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}, metadata={op_name="squeeze"}
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[4,2,16]{2,1,0}) tuple(next, w)
}

condition {
  s = (s32[], f32[4,2,16]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY e {
  w = f32[4,2,16]{2,1,0} parameter(0), metadata={op_name="base[\\'wi\\']"}
  z = s32[] constant(0)
  t = (s32[], f32[4,2,16]{2,1,0}) tuple(z, w)
  ROOT l = (s32[], f32[4,2,16]{2,1,0}) while(t), condition=condition, body=body
}
"""


def test_a_layer_of_an_argument_is_blamed_on_the_argument(tmp_path: Path) -> None:
    """The slice of the scan says nothing: the argument and its sharding, which the program has, are what one can change."""
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(WEIGHTS)
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(LAYERS)
    (one,) = opened(tmp_path).collectives()
    assert one.why == "because base['wi'] is needed in a different sharding, but it is P(None, 'dp', None)"


def test_a_collective_of_the_program_is_sure(tmp_path: Path) -> None:
    """Also where another operation has its name: that only moves its data."""
    sent = 'f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=a, metadata={op_name="f/psum"}'
    text = f"""HloModule jit_f, num_partitions=2

a {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  r = {sent}
  ROOT m = f32[2,4]{{1,0}} reshape(r), metadata={{op_name="f/psum"}}
}}
"""
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(text)
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(text)
    (one,) = opened(tmp_path).collectives()
    assert (one.reasons[0].cause, one.confidence) == ("program", "high")


ASKED = """HloModule jit_f, num_partitions=2

a {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[4]{0} parameter(1)
  t = f32[8]{0} tanh(p), metadata={op_name="f/tanh"}
  u = f32[4]{0} tanh(q), metadata={op_name="f/dot_general"}
  r.0 = f32[8]{0} all-reduce(t), channel_id=1, replica_groups={{0,1}}, to_apply=a, metadata={op_name="f/psum"}
  r.1 = f32[4]{0} all-reduce(u), channel_id=2, replica_groups={{0,1}}, to_apply=a, metadata={op_name="f/psum"}
  ROOT m = (f32[8]{0}, f32[4]{0}) tuple(r.0, r.1)
}
"""
COMBINED = f"""{ASKED[: ASKED.index("  r.0 =")]}  ROOT r = (f32[8]{{0}}, f32[4]{{0}}) all-reduce(t, u), channel_id=1,
    replica_groups={{{{0,1}}}}, to_apply=a, metadata={{op_name="f/psum"}}
}}
"""

SUMMED = """HloModule jit_f, num_partitions=2

a {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[4,2]{1,0} parameter(1)
  z = f32[] constant(0)
  t = f32[8]{0} tanh(p), metadata={op_name="f/tanh"}
  u = f32[4]{0} reduce(q, z), dimensions={1}, to_apply=a, metadata={op_name="f/dot_general"}
  r.0 = f32[8]{0} all-reduce(t), channel_id=1, replica_groups={{0,1}}, to_apply=a, metadata={op_name="f/psum"}
  ROOT m = (f32[8]{0}, f32[4]{0}) tuple(r.0, u)
}
"""


@pytest.mark.parametrize(
    ("program", "final", "causes"),
    [
        (ASKED, COMBINED, ["program", "program"]),
        (  # told by what makes the arrays, where the name of another part was kept
            ASKED,
            COMBINED.replace('f/psum"', 'f/other"'),
            ["program", "program"],
        ),
        (  # told by name and size, where nothing says what made an array
            ASKED,
            COMBINED.replace(', metadata={op_name="f/tanh"}', ""),
            ["program", "program"],
        ),
        (  # one that the partitioner wrote beside one that the program asks for
            SUMMED,
            COMBINED,
            ["program", "partial"],
        ),
    ],
    ids=["by maker and name", "by maker", "by size", "mixed"],
)  # fmt: skip
def test_each_part_of_a_combined_collective_of_the_program_is_asked_for(
    tmp_path: Path, program: str, final: str, causes: list[str]
) -> None:
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(program)
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(final)
    (one,) = opened(tmp_path).collectives()
    assert [reason.cause for reason in one.reasons] == causes
    assert one.reasons[0].because == "because the program requests it (shard_map)"


@pytest.mark.parametrize("final", [ASKED, COMBINED], ids=["one", "combined"])
def test_the_name_of_a_sum_of_the_program_is_enough(tmp_path: Path, final: str) -> None:
    """Without the program's text: the partitioner's sums have the name of the operation that sums."""
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(final)
    for one in opened(tmp_path).collectives():
        assert {reason.cause for reason in one.reasons} == {"program"}
        assert one.confidence == "medium"


def test_what_sums_nothing_is_not_said_to_sum(tmp_path: Path) -> None:
    """For a concatenation along a sharded dimension the partitioner pads the shards and adds them up."""
    program = ASKED[ASKED.index("ENTRY") :].replace(
        "  r.0",
        '  c = f32[12]{0} concatenate(t, u), dimensions={0}, metadata={op_name="f/concatenate"}\n  r.0',
        1,
    )
    kept = [line for line in program.splitlines() if not re.match(r"\s+(r\.\d|ROOT)", line)]
    program = "HloModule jit_f, num_partitions=2\n\n" + "\n".join(kept).replace("  c =", "  ROOT c =")
    final = COMBINED.replace("f/psum", "f/concatenate").replace(
        "(f32[8]{0}, f32[4]{0}) all-reduce(t, u)", "f32[8]{0} all-reduce(t)"
    )
    (tmp_path / "module_0000.jit_f.before_optimizations.txt").write_text(program)
    (tmp_path / "module_0000.jit_f.cpu_after_optimizations.txt").write_text(final)
    (one,) = opened(tmp_path).collectives()
    assert (one.reasons[0].cause, one.confidence) == ("unknown", "low")
    assert one.why == "unknown: it was created for concatenate, which does not sum"


RENAMED = """HloModule m, is_scheduled=true, num_partitions=4

ENTRY e {
  p = f32[4,8]{1,0} parameter(0), metadata={op_name="w"}
  q = f32[8]{0} parameter(1), metadata={op_name="x"}
  g = f32[16,8]{1,0} all-gather(p), channel_id=1, replica_groups=mesh['axis_0'=4] {'axis_0'}, dimensions={0},
    use_global_device_ids=true, metadata={op_name="jit(f)/squeeze"}
  r = f32[16,8]{1,0} copy(g), metadata={op_name="jit(f)/convert_element_type"}
  h = f32[32]{0} all-gather(q), channel_id=2, replica_groups=mesh['data'=4] {'data'}, dimensions={0},
    use_global_device_ids=true, frontend_attributes={is_spmd_generated="true"}, metadata={op_name="x"}
  d = f32[16,16]{1,0} dot(r, r), lhs_contracting_dims={1}, rhs_contracting_dims={1}, metadata={op_name="jit(f)/dot_general"}
  s = f32[32]{0} negate(h), metadata={op_name="jit(f)/neg"}
  ROOT t = (f32[16,16]{1,0}, f32[32]{0}) tuple(d, s)
}
"""


def test_axes_have_the_programs_names_where_a_text_has_both(tmp_path: Path) -> None:
    """XLA's own names come first where it wrote the groups anew."""
    found = dumps.collectives.of_module(hlo.parse(RENAMED))
    assert [reason.axes for one in found for reason in one.reasons] == [("data",), ("data",)]
    assert wording.NO_MESH not in {note for one in found for note in one.notes}
    text = tmp_path / "f.txt"
    text.write_text(RENAMED)
    assert "data=4 (from replica groups)" in run("comm", text).stdout


def test_what_only_rearranges_needs_no_sharding() -> None:
    """The operation behind it does, and which one that is the text does not tell."""
    gather, _ = dumps.collectives.of_module(hlo.parse(RENAMED))
    assert gather.why == "because w is needed in a different sharding"


def test_the_reader_of_a_gathered_argument_is_not_told_without_the_program() -> None:
    """A constraint between the two leaves no operation in the final HLO."""
    _, gather = dumps.collectives.of_module(hlo.parse(RENAMED))
    assert (gather.why, gather.confidence) == ("because x is needed in a different sharding", "low")
    named = RENAMED.replace("jit(f)/neg", "jit(f)/sharding_constraint")
    _, gather = dumps.collectives.of_module(hlo.parse(named))
    assert gather.reasons[0].wanted_by == "constraint"
    assert gather.confidence == "medium"


@pytest.mark.parametrize(
    ("archive", "grows", "also"),
    [("state_plain", 12288, " with result[0] sharded the same way"), ("state_donate", 6144, "")],
)
def test_memory_counts_results_that_take_the_sharding(
    archive: str, grows: int, also: str, tmp_path: Path
) -> None:
    """An updated state is sharded as its argument, and held beside it unless it is donated: so many bytes, recompiled."""
    with tarfile.open(DATA / "collectives" / "memory" / f"cpu_0.12.{archive}.shardy.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    found = [s for one in opened(tmp_path).collectives() for s in one.suggestions if s.name == "w"]
    assert {(s.spec, s.bytes_per_device) for s in found} == {("P(None, None)", grows)}
    assert f"needs {grows // 1024}.0 KiB more memory{also};" in found[0].because.replace("6.00", "6.0")


UNNAMED = """HloModule unnamed, is_scheduled=true, num_partitions=4

ENTRY main {
  w = f32[64,256]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}, metadata={op_name="w"}
  x = f32[256,256]{1,0} parameter(1), sharding={replicated}, metadata={op_name="x"}
  g = f32[256,256]{1,0} all-gather(w), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true
  c = f32[256,256]{0,1} copy(g)
  y = f32[256,256]{1,0} dot(READ, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[256,256]{1,0}, f32[256,256]{0,1}) tuple(y, c)
}
"""


def test_only_what_is_returned_is_said_to_be() -> None:
    """A gather without a name is often that of a result, but a product may read it just as well."""
    told, silent = (
        dumps.collectives.of_module(hlo.parse(UNNAMED.replace("READ", name)))[0].why for name in "xc"
    )
    assert "returned with a different sharding from w" in told
    assert "returned" not in silent
