"""Many inputs to one dataset: each once, whatever happens to processes, files and texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import tarfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext.dumps.texts import module_texts
from tests.cli_support import run
from tests.support import ROOT

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

from hlotext.tables import batch, batch_inputs, batch_task, building, compaction, schema
from hlotext.tables.dataset import Dataset
from hlotext.tables.storage import Place

TEXT = """HloModule {name}

ENTRY main {{
  x = f32[{size}] parameter(0)
  ROOT y = f32[{size}] negate(x)
}}
"""
TABLES = ("instructions", "operands")


def write(folder: Path, name: str, size: int = 8) -> Path:
    """A small module of four instructions."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.after_optimizations.txt"
    path.write_text(TEXT.format(name=name, size=size), "utf-8")
    return path


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    """Two builds of four modules, one text that is broken and one that is empty."""
    folder = tmp_path / "dumps"
    for build in ("b1", "b2"):
        for number in range(4):
            write(folder / build, f"jit_{number}", 8 * (1 + number))
    (folder / "b2" / "broken.after_optimizations.txt").write_text(
        "HloModule x\n\nENTRY e {\n  ROOT a = f32[2] add(b, c)\n}\n", "utf-8"
    )
    (folder / "b2" / "empty.after_optimizations.txt").write_text("", "utf-8")
    return folder


def do(places: list[Any], out: Path | str, **options: Any) -> list[batch_task.Status]:
    """One run."""
    running = {name: options.pop(name) for name in ("jobs", "scheduler", "is_together") if name in options}
    build = options.pop("build", None)
    planned = batch.plan(batch_inputs.find_inputs(map(str, places), build=build), str(out), TABLES, **options)
    return list(batch.run(planned, **running))


def rows(out: Path | str, table: str) -> list[dict[str, Any]]:
    """All rows that readers see."""
    dataset = Dataset.of(str(out))
    found: list[dict[str, Any]] = dataset.scan(dataset.state(), table).to_table().to_pylist()
    return found


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_once_and_not_again(builds: Path, tmp_path: Path, jobs: int) -> None:
    """Eight are there, two say why not; the second run reads nothing; compaction changes no row."""
    out = tmp_path / "out"
    found = Counter(status.status for status in do([builds], out, jobs=jobs))
    assert found == {"ok": 8, "unreadable": 2}
    assert do([builds], out) == []
    modules = rows(out, "modules")
    assert {row["path"]: row["error"] for row in modules if row["status"] != "ok"} == {
        str(
            builds / "b2" / "empty.after_optimizations.txt"
        ): f"{builds}/b2/empty.after_optimizations.txt:1:1: error[X123]: the text is empty (XLA_FLAGS=--xla_dump_to=DIR "
        "dumps HLO, and `jax.jit(f).lower(...).compile().as_text()` returns it)",
        str(
            builds / "b2" / "broken.after_optimizations.txt"
        ): f"{builds}/b2/broken.after_optimizations.txt:4:23: error[X102]: operand b is not defined",
    }
    assert len({row["module"] for row in modules}) == 10
    assert Counter(row["build"] for row in modules) == {"b1": 4, "b2": 6}
    before = sorted(map(str, rows(out, "instructions")))
    assert len(before) == 16
    assert compaction.compact(Dataset.of(str(out))) == compaction.Compacted(10, 1)
    assert sorted(map(str, rows(out, "instructions"))) == before
    assert len(list((out / "instructions").iterdir())) == 1
    assert do([builds], out) == []


def test_every_table_names_the_build(builds: Path, tmp_path: Path) -> None:
    """So that one is asked of a build without a join."""
    out, names = tmp_path / "out", tuple(schema.TABLES)
    list(batch.run(batch.plan(batch_inputs.find_inputs([str(builds)]), str(out), names)))
    by_key = {row["module"]: row["build"] for row in rows(out, "modules")}
    assert rows(out, "costs")
    for name in names:
        for row in rows(out, name):
            assert row["build"] == by_key[row["module"]], name
    assert set(by_key.values()) == {row["build"] for row in rows(out, "instructions")} == {"b1", "b2"}


@pytest.mark.parametrize("is_compacted", [False, True])
def test_what_has_changed_is_read_again(builds: Path, tmp_path: Path, is_compacted: bool) -> None:
    """A text of another content takes the place of the old one; with --anew all, with --retry the unreadable."""
    out = tmp_path / "out"
    do([builds], out)
    if is_compacted:
        compaction.compact(Dataset.of(str(out)))
    write(builds / "b1", "jit_0", 4096)
    (builds / "b2" / "broken.after_optimizations.txt").write_text(TEXT.format(name="mended", size=2), "utf-8")
    assert Counter(status.status for status in do([builds], out)) == {"ok": 2}
    assert [status.status for status in do([builds], out, retry=True)] == ["unreadable"]
    sizes = Counter(row["shape"] for row in rows(out, "instructions"))
    assert sizes == {"f32[4096]": 2, "f32[8]": 2, "f32[16]": 4, "f32[24]": 4, "f32[32]": 4, "f32[2]": 2}
    assert len(do([builds], out, is_anew=True)) == 10
    assert len(rows(out, "modules")) == 10
    assert len(rows(out, "instructions")) == 18


def test_more_tables_than_before(builds: Path, tmp_path: Path) -> None:
    """A run that asks for more reads again, and keeps what is there; one that asks for less does not."""
    out = tmp_path / "out"
    do([builds / "b1"], out)
    inputs = list(batch_inputs.find_inputs([str(builds / "b1")]))
    assert len(batch.plan(inputs, str(out), ("instructions",)).before) == 4
    planned = batch.plan(inputs, str(out), ("attributes",))
    assert planned.task.tables == ("modules", "instructions", "operands", "attributes")
    assert {status.status for status in batch.run(planned)} == {"ok"}
    assert (len(rows(out, "instructions")), len(rows(out, "operands"))) == (8, 4)
    assert not batch.plan(inputs, str(out), (*TABLES, "attributes")).todo


@attrs.frozen
class Dying(batch_task.Task):
    """The task, but a process dies of what is called like this."""

    name: str

    def __call__(self, input: batch_inputs.Input) -> batch_task.Status:
        if self.name in input.path:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch_task.convert(input, self.dataset, self.tables)


def test_a_killed_process_costs_one_input(builds: Path, tmp_path: Path) -> None:
    """It has failed, which the dataset says; the next run does it and nothing else."""
    out = tmp_path / "out"
    planned = batch.plan(batch_inputs.find_inputs([str(builds / "b1")]), str(out), TABLES)
    task = Dying(planned.task.dataset, planned.task.tables, "jit_2")
    found = list(batch.run(attrs.evolve(planned, task=task), jobs=2))
    [failed] = [status for status in found if status.status != "ok"]
    assert failed.error == "the process working on it died of SIGKILL"
    assert Counter(row["status"] for row in rows(out, "modules")) == {"ok": 3, "failed": 1}
    assert compaction.compact(Dataset.of(str(out))).after == 2
    [again] = do([builds / "b1"], out)
    assert again.input.path.endswith("jit_2.after_optimizations.txt")
    assert Counter(row["status"] for row in rows(out, "modules")) == {"ok": 4}


def files(out: Path) -> Counter[str]:
    """How many files each table has."""
    return Counter(path.parent.name for path in out.rglob("*.parquet"))


@pytest.mark.parametrize("jobs", [1, 2])
def test_together_is_what_is_apart(builds: Path, tmp_path: Path, jobs: int) -> None:
    """Many inputs in one part have the rows that they have apart, whatever is read again, fails or is broken."""
    out, apart = tmp_path / "out", tmp_path / "apart"

    def same() -> bool:
        return all(
            sorted(map(str, rows(out, name))) == sorted(map(str, rows(apart, name)))
            for name in ("modules", *TABLES)
        )

    for folder, is_together in ((out, True), (apart, False)):
        found = do([builds], folder, jobs=jobs, is_together=is_together)
        assert Counter(status.status for status in found) == {"ok": 8, "unreadable": 2}
        assert sum(one.size for one in found) > 0
    assert same()
    assert files(apart)["modules"] == 10
    assert jobs > 1 or files(out) == {"modules": 1, "instructions": 1, "operands": 1}
    assert do([builds], out, is_together=True) == []
    write(builds / "b1", "jit_0", 4096)
    write(builds / "b2", "jit_4", 2)
    for folder, is_together in ((out, True), (apart, False)):
        assert len(do([builds], folder, jobs=jobs, is_together=is_together)) == 2
        assert len(do([builds], folder, jobs=jobs, is_together=is_together, is_anew=True)) == 11
    assert same()
    compaction.compact(Dataset.of(str(out)))
    assert same()


def test_one_that_fails_costs_no_other(builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw of one input of a part fails that input, and the next run does it."""
    out = tmp_path / "out"
    made = building.tables_of_subjects

    def fails(subjects: Any, names: Any) -> Any:
        if any("jit_2" in one.path for one in subjects):
            raise RuntimeError("no such thing")
        return made(subjects, names)

    monkeypatch.setattr(batch_task, "tables_of_subjects", fails)
    found = do([builds / "b1"], out, is_together=True)
    assert [one.error for one in found if one.status != "ok"] == ["RuntimeError: no such thing"]
    assert Counter(row["status"] for row in rows(out, "modules")) == {"ok": 3, "failed": 1}
    monkeypatch.undo()
    assert [one.status for one in do([builds / "b1"], out, is_together=True)] == ["ok"]
    assert len(rows(out, "instructions")) == 8


@attrs.frozen
class DyingBehind(batch_task.Task):
    """The task, but a process dies when it has written what is called like this."""

    name: str

    def together(self, inputs: Sequence[batch_inputs.Input]) -> list[batch_task.Status]:
        found = super().together(inputs)
        if any(self.name in one.path for one in inputs):
            os.kill(os.getpid(), signal.SIGKILL)
        return found


def test_a_part_that_a_process_died_behind(builds: Path, tmp_path: Path) -> None:
    """Its inputs are done one by one, and nothing is there twice."""
    out = tmp_path / "out"
    for number in range(4, 40):
        write(builds / "b1", f"jit_{number}")
    planned = batch.plan(batch_inputs.find_inputs([str(builds / "b1")]), str(out), TABLES)
    task = DyingBehind(planned.task.dataset, planned.task.tables, "jit_22")
    found = list(batch.run(attrs.evolve(planned, task=task), jobs=2, is_together=True))
    assert Counter(status.status for status in found) == {"ok": 40}
    assert len(rows(out, "modules")) == 40
    assert len(rows(out, "instructions")) == 80
    assert 40 > files(out)["modules"] > 2


def test_a_part_of_many_that_is_stopped(
    builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies before the last file of a part of many leaves nothing for readers nor for long."""
    out = tmp_path / "out"
    write_place = Place.write

    def dies(self: Place, data: bytes) -> None:
        if self.path.startswith(f"{out}/modules"):
            raise KeyboardInterrupt
        write_place(self, data)

    monkeypatch.setattr(Place, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        do([builds / "b1"], out, is_together=True)
    assert files(out) == {"instructions": 1, "operands": 1}
    assert rows(out, "instructions") == []
    monkeypatch.undo()
    do([builds / "b1"], out)
    assert files(out) == {"modules": 4, "instructions": 4, "operands": 4}


def test_nothing_half_is_seen(builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that dies between two files of a part leaves nothing for readers, and the next run clears it away."""
    out = tmp_path / "out"
    write_place = Place.write

    def dies(self: Place, data: bytes) -> None:
        if self.path.startswith(f"{out}/modules"):
            raise MemoryError
        write_place(self, data)

    monkeypatch.setattr(Place, "write", dies)
    assert {status.status for status in do([builds / "b1"], out)} == {"failed"}
    assert len(list((out / "instructions").iterdir())) == 4
    assert rows(out, "instructions") == []
    monkeypatch.undo()
    (out / "operands" / next((out / "operands").iterdir()).name).write_bytes(b"half")
    do([builds / "b1"], out)
    assert (len(rows(out, "instructions")), len(rows(out, "operands"))) == (8, 4)


def test_compaction_that_is_stopped(builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its last file it has not happened, after it it has, also where nothing was removed yet."""
    out = tmp_path / "out"
    do([builds], out)
    before = sorted(map(str, rows(out, "instructions")))
    monkeypatch.setattr(Dataset, "remove", lambda *_: None)
    compaction.compact(Dataset.of(str(out)))
    assert len(list((out / "instructions").iterdir())) == 9
    assert sorted(map(str, rows(out, "instructions"))) == before
    assert do([builds], out) == []
    [last] = (out / "modules").glob("compact-*")
    last.unlink()
    assert sorted(map(str, rows(out, "instructions"))) == before
    monkeypatch.undo()
    compaction.compact(Dataset.of(str(out)))
    assert sorted(map(str, rows(out, "instructions"))) == before
    assert [len(list(folder.iterdir())) for folder in sorted(out.iterdir())] == [1, 1, 1]


def test_inputs_of_every_kind(builds: Path, tmp_path: Path) -> None:
    """Files, folders, packed folders and URLs with patterns, each object once, with its build."""
    import fsspec

    listed = {(one.build, Path(one.path).name) for one in batch_inputs.find_inputs([str(builds)])}
    assert ("b1", "jit_0.after_optimizations.txt") in listed
    [one] = batch_inputs.find_inputs([str(builds / "b1" / "jit_0.after_optimizations.txt")] * 2)
    assert one.build == "b1"
    assert {one.build for one in batch_inputs.find_inputs([str(builds / "b1")])} == {"b1"}
    assert {one.build for one in batch_inputs.find_inputs([str(builds)], build="x")} == {"x"}
    packed = tmp_path / "nightly.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(builds / "b1", "b1")
    out = tmp_path / "out"
    assert {status.status for status in do([packed], out, jobs=2)} == {"ok"}
    assert {row["path"] for row in rows(out, "modules")} == {
        f"{packed}:b1/jit_{number}.after_optimizations.txt" for number in range(4)
    }
    store = fsspec.filesystem("memory")
    for path in builds.rglob("*.txt"):
        store.pipe_file(f"/farm/{path.relative_to(builds)}", path.read_bytes())
    remote = list(batch_inputs.find_inputs(["memory://farm/b*/"]))
    assert {(one.build, one.path.rpartition("/")[2]) for one in remote} == listed
    assert Counter(status.status for status in do(["memory://farm"], "memory://out")) == {
        "ok": 8,
        "unreadable": 2,
    }
    assert do(["memory://farm"], "memory://out") == []
    assert len(rows("memory://out", "instructions")) == 16
    assert compaction.compact(Dataset.of("memory://out")).after == 1
    assert len(rows("memory://out", "instructions")) == 16
    store.rm("/farm", recursive=True)
    store.rm("/out", recursive=True)


def test_steps_of_a_dump_are_told(tmp_path: Path) -> None:
    """Stage, pass and number of a text stand in `modules`, as the names of its folder tell them."""
    dump = next(
        path for path in sorted((ROOT / "tests/data/dumps").glob("cpu*")) if path.is_dir() or path.suffix
    )
    out = tmp_path / "out"
    wanted = list(module_texts([dump], "all"))
    planned = batch.plan(batch_inputs.find_inputs([str(dump)], which="all"), str(out), TABLES)
    assert len(planned.todo) == len(wanted)
    assert {status.status for status in batch.run(planned)} == {"ok"}
    found = {(row["stage"], row["step"], row["pass"]) for row in rows(out, "modules")}
    assert found == {
        (step.stage, step.index, step.name)
        for text in wanted
        if text.compilation is not None
        for step in text.compilation.steps
        if step.file is text.file
    }
    assert len(found) > 1


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    """One line for places that are not there, packages that are not installed, files that do not match a dataset."""
    for place, message in (
        ("nosuch", "nosuch does not exist"),
        ("-", "standard input has no name"),
        (str(tmp_path), "no module found in"),
        ("nosuch://x", "nosuch://x cannot be reached: Protocol not known"),
        ("memory://nosuch/x.txt", "memory://nosuch/x.txt does not exist"),
        ("memory://nosuch/*.txt", "memory://nosuch/*.txt: no file matches"),
    ):
        with pytest.raises(hlo.InputError, match="^" + re.escape(message)):
            list(batch_inputs.find_inputs([place]))
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(hlo.InputError, match="is not an hlotext table"):
        Dataset.of(str(tmp_path)).state()


@pytest.fixture
def in_folder(builds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands run beside the dumps."""
    monkeypatch.chdir(builds.parent)


@pytest.mark.usefixtures("in_folder")
def test_the_command() -> None:
    """Summary, status, what is known before, other inputs only with --append."""
    result = run("table", "dumps", "-o", "out", "-j", "2")
    assert result.exit_code == 2
    said = result.stderr.splitlines()
    assert "8 inputs converted" in said[-1]
    assert "2 unreadable" in said[-1]
    assert sum("error[X" in line for line in said) == 2
    result = run("table", "dumps", "-o", "out", "--format", "json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert (found["converted"], found["done_before"], len(found["refused"])) == (0, 8, 2)
    shutil.copytree("dumps/b1", "dumps/b3")
    result = run("table", "dumps/b3", "-o", "out")
    assert result.exit_code == 2
    assert "out holds tables of 10 other inputs; use --append to add to it" in result.stderr
    result = run("table", "dumps/b3", "-o", "out", "--append")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "4 inputs converted" in result.stderr
    for arguments, message in (
        (["table", "dumps", "-o", "out", "--tables", "nosuch"], "no table 'nosuch'"),
        (["table", "nosuch", "-o", "out"], "nosuch does not exist"),
        (["table", "dumps/b1", "-o", "dumps/b1/jit_0.after_optimizations.txt"], "needs a folder"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
        assert "internal error" not in result.stderr
