"""Thunks: predicted from the final HLO as XLA emitted them, read from what XLA wrote, captured as XLA captured them.

`tests/data/thunks` holds dump folders, packed; `rows.*` are made by hand, one instruction for each row that no dump
shows.
"""

from __future__ import annotations

import random
import re
import tarfile
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext import dumps, thunks
from hlotext.thunks import compare, cpu, gpu
from hlotext.thunks.thunk import sequences
from tests.cli_support import run
from tests.support import CORPUS, DATA

FOLDERS = sorted((DATA / "thunks").glob("*.tar.xz"))
GPU = [path for path in FOLDERS if path.name.startswith("gpu")]
CPU = [path for path in FOLDERS if path.name.startswith("cpu")]


def names(folder: Path) -> list[str]:
    """Ids of test cases."""
    return [path.name.removesuffix(".tar.xz") for path in [folder]]


@attrs.frozen
class Dump:
    """One packed folder, unpacked."""

    compilation: dumps.Compilation
    predicted: thunks.Thunks
    folder: Path

    def listed(self, ending: str) -> thunks.Thunks | None:
        """The thunks of the file with that ending."""
        found = next(iter(self.folder.glob(f"*{ending}")), None)
        return None if found is None else thunks.load(found)

    @property
    def names(self) -> dict[int, str]:
        """Instruction names by thunk number, as thunk_metadata has them."""
        metadata = self.listed(".thunk_metadata.txt")
        assert metadata is not None
        return {thunk.number: thunk.name for thunk in metadata.thunks if thunk.number and thunk.name}


def opened(path: Path, tmp_path: Path) -> Dump:
    """A packed folder with the prediction for its only module."""
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    compilation = next(c for c in dumps.open(tmp_path).compilations if c.after is not None)
    module = compilation.after
    assert module is not None
    predicted = thunks.predict(
        module, compilation.options, platform=compilation.platform, age=compilation.age
    )
    return Dump(compilation, predicted, tmp_path)


@pytest.mark.parametrize("path", GPU, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_gpu_thunks_are_those_of_xla(path: Path, tmp_path: Path) -> None:
    """Kinds, numbers, nesting, names and neighbours, before the passes and after."""
    dump = opened(path, tmp_path)
    assert not dump.predicted.notes
    listed = dump.listed(".thunk_sequence.txt")
    assert listed is not None
    assert listed.shows_neighbours
    assert compare.differences(listed, dump.predicted, dump.names) == ()
    after = dump.listed(".thunk_sequence_after_thunk_passes.txt") or listed
    captured = dump.predicted.with_command_buffers()
    assert compare.differences(after, captured, dump.names) == ()
    assert sum(t.kind == "kCommandBuffer" for t in captured.walk()) == sum(
        r.is_captured for r in captured.ended
    )


@pytest.mark.parametrize("path", CPU, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_cpu_thunks_are_those_of_the_executable(path: Path, tmp_path: Path) -> None:
    """Kinds, order, nesting and names, as the serialized executable has them or as they were read from it once."""
    dump = opened(path, tmp_path)
    executable = tmp_path / "executable.bin"
    if executable.exists():
        listed = thunks.load(executable)
        assert listed.platform == "cpu"
        assert compare.differences(listed, dump.predicted) == ()
        return
    import json

    def flat(sequence: list[dict[str, object]], depth: int = 0) -> list[tuple[int, object, object]]:
        rows: list[tuple[int, object, object]] = []
        for thunk in sequence:
            rows.append((depth, thunk["kind"], thunk["name"]))
            inner = [
                thunk.get("called"),
                thunk.get("condition"),
                thunk.get("body"),
                *thunk.get("branches", ()),
            ]  # type: ignore[misc]
            for part in inner:
                rows += flat(part, depth + 1) if isinstance(part, list) else []
        return rows

    expected = json.loads((tmp_path / "expected_cpu_thunks.json").read_text())
    found = [(depth, thunk.kind, thunk.name) for depth, _, thunk in dump.predicted.with_depth()]
    assert found == flat(expected)


@pytest.mark.parametrize("platform", ["gpu", "cpu"])
def test_rows_that_no_dump_shows(platform: str) -> None:
    """One instruction for each row that is known from XLA's source alone."""
    module = hlo.load(DATA / "thunks" / f"rows.{platform}.hlo")
    found = thunks.predict(module, platform=platform)
    rows = [f"{'  ' * depth}{thunk.kind} {thunk.name}" for depth, _, thunk in found.with_depth()]
    assert rows == (DATA / "thunks" / f"rows.{platform}.expected").read_text().splitlines()


def test_every_row_from_the_source_has_a_case() -> None:
    """Rows not seen in a dump are in the handmade modules."""
    for platform, table, targets in (("gpu", gpu.RULES, gpu.TARGETS), ("cpu", cpu.RULES, cpu.TARGETS)):
        text = (DATA / "thunks" / f"rows.{platform}.hlo").read_text()
        family = {
            "__cudnn$convReorderFilterAndBias",
            "Pin",
            "Unpin",
            "CreateBuffer",
        }  # rows shared with a case
        for name, rule in {**table, **targets}.items():
            assert rule.is_seen or name in family or name in text, name


def test_boolean_conditionals_carry_the_names_of_hlo(tmp_path: Path) -> None:
    """XLA writes `false_branch` before the true computation; here it is branch_0, as in HLO."""
    dump = opened(DATA / "thunks" / "gpu.conditionals.tar.xz", tmp_path)
    listed = dump.listed(".thunk_sequence.txt")
    assert listed is not None
    for tree in (listed, dump.predicted):
        first = next(thunk for thunk in tree.walk() if thunk.kind == "kConditional")
        assert [(label, [t.number for t in inner]) for label, inner in first.children] == [
            ("branch_0", [1]),
            ("branch_1", [2]),
        ]


def test_what_ends_a_run_is_said(tmp_path: Path) -> None:
    """Without CUDA versions loops and library calls end runs, with the reason and what to change."""
    dump = opened(DATA / "thunks" / "gpu.conditionals.tar.xz", tmp_path)
    captured = dump.predicted.with_command_buffers({})
    causes = {run.cause.code for run in captured.ended if run.cause is not None}
    assert causes == {"version"}
    assert all("CUDA 12.3" in run.cause.message for run in captured.ended if run.cause is not None)
    short = [run.too_short for run in captured.ended if not run.is_captured]
    assert all(cause is not None and "xla_gpu_graph_min_graph_size=5" in cause.message for cause in short)
    one = dump.predicted.with_command_buffers({"xla_gpu_graph_min_graph_size": "1"})
    assert all(run.is_captured for run in one.ended)
    none = dump.predicted.with_command_buffers({"xla_gpu_enable_command_buffer": ""})
    assert none.ended == ()
    assert compare.differences(dump.predicted, none) == ()


def test_overlap_lists_what_runs_meanwhile(tmp_path: Path) -> None:
    """The thunks between a start and its done."""
    dump = opened(DATA / "thunks" / "gpucb.gspmd_kinds.tar.xz", tmp_path)
    found = thunks.overlaps(dump.predicted)
    first = found[0]
    assert (first.start.name, first.done and first.done.name) == ("all-to-all-start", "all-to-all-done")
    assert [thunk.number for thunk in first.between] == [5, 6]


def _line(text: str, instruction: hlo.Instruction) -> str | None:
    found = re.search(rf"^ *%{re.escape(instruction.name)} = .*\n", text, re.MULTILINE)
    return None if found is None else found[0]


def _tampered(text: str, dump: Dump, generator: random.Random) -> str | None:
    """A schedule with two neighbours exchanged, or without one operation; None where that cannot be done here."""
    executed = [
        t.instruction
        for t in dump.predicted.thunks
        if t.instruction is not None and not t.instruction.is_root
    ]
    if not executed:
        return None
    place = generator.randrange(len(executed))
    instruction = executed[place]
    line = _line(text, instruction)
    if line is None:
        return None
    if generator.random() < 0.5:
        other = executed[place + 1] if place + 1 < len(executed) else None
        behind = _line(text, other) if other is not None else None
        if other is None or behind is None or other.name == instruction.name:
            return None
        between = text[text.index(line) : text.index(behind) + len(behind)]
        if re.search(rf"%{re.escape(instruction.name)}[,)#]", between):
            return None
        return text.replace(line, "", 1).replace(behind, behind + line, 1)
    same = next((operand for operand in instruction.operands if operand.shape == instruction.shape), None)
    if same is None:
        return None
    return text.replace(line, f"  %{instruction.name} = {instruction.shape} bitcast(%{same.name})\n", 1)


@pytest.mark.slow
def test_a_tampered_folder_is_noticed(tmp_path: Path) -> None:
    """A reordered schedule, a dropped thunk or other options: wherever XLA's answer differs, the check says so."""
    noticed = 0
    for seed in range(400):
        generator = random.Random(seed)
        path = generator.choice(GPU)
        folder = tmp_path / str(seed)
        folder.mkdir()
        dump = opened(path, folder)
        listed = dump.listed(".thunk_sequence.txt")
        assert listed is not None
        final = next(folder.glob("*gpu_after_optimizations.txt"))
        if seed % 5 == 0:
            options = {
                "xla_gpu_enable_command_buffer": generator.choice(("", "FUSION")),
                "xla_gpu_graph_min_graph_size": "1",
            }
            captured = dump.predicted.with_command_buffers()
            changed = dump.predicted.with_command_buffers(options)
            if not compare.differences(captured, changed):
                continue
            after = dump.listed(".thunk_sequence_after_thunk_passes.txt") or listed
            assert compare.differences(after, changed, dump.names)
        else:
            text = _tampered(final.read_text(), dump, generator)
            if text is None:
                continue
            predicted = thunks.predict(hlo.parse(text), dump.compilation.options, platform="gpu")
            assert compare.differences(listed, predicted, dump.names), (path.name, seed)
        noticed += 1
        if noticed == 50:
            break
    assert noticed == 50


# ---- reading what others write

OLD = """001: kCopy\tcopy.1
002: kWhile\twhile
003: kGemm\tcublas
004: kSomethingNew\tx
"""
OLDEST = """kKernel\tfusion.1
kAllReduceStart\tall-reduce-start
"""


def test_older_forms_and_unknown_kinds_are_read() -> None:
    """Tabs instead of neighbours, and of 2023 without numbers; kinds that are not known are kept."""
    found = thunks.parse(OLD)
    assert [(t.number, t.kind) for t in found.walk()] == [
        (1, "kCopy"),
        (2, "kWhile"),
        (3, "kGemm"),
        (4, "kSomethingNew"),
    ]
    assert [(t.number, t.kind, t.name) for t in thunks.parse(OLDEST).walk()] == [
        (None, "kKernel", "fusion.1"),
        (None, "kAllReduceStart", "all-reduce-start"),
    ]
    assert thunks.parse("    No thunks.\n").thunks == ()


@pytest.mark.parametrize("text", ["", "HloModule m\n", "hello: world", "thunk", "\n" * 1000])
def test_what_lists_no_thunks_is_refused(text: str) -> None:
    """A ThunkError, nothing else."""
    with pytest.raises(thunks.ThunkError, match="has no thunks"):
        thunks.parse(text)


def test_damaged_files_give_what_can_be_read_or_one_error(tmp_path: Path) -> None:
    """Cut, mixed and mutated lists and executables: a tree or a ThunkError."""
    with tarfile.open(DATA / "thunks" / "cpu.batched_dots.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    opened(DATA / "thunks" / "gpucb.nested_loops.tar.xz", tmp_path / "gpu")
    texts = [path.read_bytes() for path in (tmp_path / "gpu").glob("*.thunk_*.txt")]
    data = (tmp_path / "executable.bin").read_bytes()
    generator = random.Random(1)
    path = tmp_path / "mutant"
    for _ in range(300):
        original = bytearray(generator.choice([*texts, data]))
        for _ in range(generator.randint(1, 8)):
            place = generator.randrange(len(original))
            original[place] = generator.randrange(256)
        path.write_bytes(original[: generator.randint(0, len(original))])
        try:
            found = thunks.load(path)
        except thunks.ThunkError:
            continue
        assert sum(1 for _ in found.walk()) == sum(
            len(sequence) for _, _, sequence in sequences(found.thunks)
        )


def test_modules_without_thunks_are_refused_with_the_reason() -> None:
    """Not scheduled, for TPU, nothing that tells the platform, a computation that calls itself."""
    text = "HloModule m{}\n\nENTRY e {{\n  ROOT p = f32[2]{{0{}}} parameter(0)\n}}\n"
    with pytest.raises(thunks.ThunkError, match="not scheduled"):
        thunks.predict(hlo.parse(text.format("", "")), platform="gpu")
    with pytest.raises(thunks.ThunkError, match="TPU"):
        thunks.predict(hlo.parse(text.format(", is_scheduled=true", ":T(128)")))
    assert thunks.predict(hlo.parse(text.format(", is_scheduled=true", "")), platform="gpu").thunks == ()


def test_an_opcode_without_thunk_is_noted() -> None:
    """What XLA would refuse in the final HLO."""
    text = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[2]{0} parameter(0)
  ROOT n = f32[2]{0} negate(p)
}
"""
    found = thunks.predict(hlo.parse(text), platform="gpu")
    assert [note.message for note in found.notes] == ["negate left out: its thunk is unknown"]


def test_what_runs_on_a_tpu() -> None:
    """No thunks: operations with cycles, windows and scoped memory, loops entered."""
    from hlotext.thunks import tpu

    text = """HloModule m, is_scheduled=true

body (p: f32[8,128]) -> f32[8,128] {
  p = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT n = f32[8,128]{1,0:T(8,128)} negate(p), backend_config=CONFIG
}

condition (p.1: f32[8,128]) -> pred[] {
  p.1 = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT c = pred[] constant(false)
}

ENTRY e {
  q = f32[8,128]{1,0:T(8,128)} parameter(0)
  ROOT w = f32[8,128]{1,0:T(8,128)} while(q), condition=condition, body=body
}
"""
    window = '{"estimated_cycles":"12","iteration_bounds":["2","1"]}'
    memory = '[{"memory_space":"1","size":"4096"}]'
    text = text.replace("CONFIG", f'{{"window_config":{window},"used_scoped_memory_configs":{memory}}}')
    loop, negate = tpu.operations(hlo.parse(text))
    assert (loop.instruction.name, loop.depth, loop.cycles) == ("w", 0, None)
    assert (negate.depth, negate.label, negate.cycles, negate.iterations) == (1, "body", 12, (2, 1))
    assert negate.scoped_bytes == {1: 4096}


def test_a_check_that_compares_nothing_is_no_success() -> None:
    """Status 2 where no list of XLA lies beside a text; 0 where one does and agrees."""
    result = run("thunks", DATA / "dumps" / "cpu.mlp_train.tar.xz", "--check")
    assert result.exit_code == 2
    assert "--check compared nothing" in result.stderr
    assert run("thunks", GPU[0], "--check").exit_code == 0
    assert run("thunks", CORPUS / "cpu" / "scatters.cpu_1.after_optimizations.txt", "--check").exit_code == 2
