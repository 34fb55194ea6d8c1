"""Where operations come from: against programs whose truth is known, with and without the names of their operations."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from hlotext import dumps
from tests.dump_cases import TAGGED, truth, unpacked

_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')


def tally(folder: Path, true: dict[str, list[str]]) -> Counter[str]:
    """How many traces are right, how many links are true, and the same for those that are sure."""
    c = dumps.open(folder).compilations[0]
    assert c.after is not None
    count: Counter[str] = Counter()
    for name, sources in true.items():
        links = c.trace(name)
        found = {link.instruction.name for link in links}
        high = {link.instruction.name for link in links if link.confidence == "high"}
        node = c.after.find(name)
        tight = len(found) <= 3 or getattr(node, "opcode", "") == "fusion"
        count["all"] += 1
        count["right"] += bool(found & set(sources)) and tight
        if getattr(node, "opcode", "") != "fusion":  # which comes from all that it holds
            sure = {link.instruction.name for link in links if link.confidence != "low"}
            count["links"] += len(sure)
            count["true links"] += len(sure & set(sources))
        count["high"] += bool(high)
        count["high right"] += bool(high & set(sources))
        assert all(link.instruction.computation in c.before.computations for link in links)  # type: ignore[union-attr]
    return count


@pytest.mark.parametrize("name", TAGGED)
def test_traces(name: str, tmp_path: Path) -> None:
    """Nearly nine of ten right, layers that repeat each other included, and nearly all where that is said to be sure."""
    folder = unpacked(name, tmp_path)
    count = tally(folder, truth(folder))
    assert count["right"] >= 0.88 * count["all"]
    assert count["true links"] >= 0.85 * count["links"]
    assert count["high"] >= 0.2 * count["all"]
    assert count["high right"] >= 0.97 * count["high"]


@pytest.mark.slow
def test_traces_without_metadata(tmp_path: Path) -> None:
    """The structure alone tells eight of ten."""
    total: Counter[str] = Counter()
    for name in TAGGED[::2]:
        folder = unpacked(name, tmp_path)
        for path in folder.glob("*.txt"):
            path.write_text(_METADATA.sub("", path.read_text()))
        total += tally(folder, truth(folder))
    assert total["right"] >= 0.85 * total["all"]
    assert total["true links"] >= 0.75 * total["links"]
    assert total["high right"] >= 0.95 * total["high"]


def test_steps_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    """Half-written, empty, binary, or of another module: the chain goes on behind them."""
    folder = unpacked("cpu.reductions.tagged", tmp_path)
    steps = sorted(folder.glob("*.0*.txt"))
    steps[5].write_text(steps[5].read_text()[:2000])
    steps[9].write_bytes(b"\x00\xff" * 50)
    steps[12].write_text("")
    steps[15].write_text(steps[15].read_text().replace("HloModule jit_f", "HloModule jit_other", 1))
    steps[18].write_text(steps[18].read_text().replace(" add(", " add(%nowhere, ", 1))
    count = tally(folder, truth(folder))
    assert count["right"] >= 0.88 * count["all"]
    c = dumps.open(folder).compilations[0]
    assert {birth.step.path for birth in c.births(truth(folder)).values()}.isdisjoint(
        map(str, steps[5:16:20])
    )


def test_forward(tmp_path: Path) -> None:
    """The other way round: what became of an operation."""
    folder = unpacked("cpu.reductions.tagged", tmp_path)
    c = dumps.open(folder).compilations[0]
    ends = {link.instruction.name for link in c.forward("abs.1")}
    assert ends
    for end in ends:
        assert "abs.1" in {link.instruction.name for link in c.trace(end)}


def test_what_cannot_be_traced(tmp_path: Path) -> None:
    """Names that are not there, and compilations without both ends."""
    folder = unpacked("cpu.reductions.tagged", tmp_path)
    c = dumps.open(folder).compilations[0]
    with pytest.raises(LookupError, match="no instruction nonsense"):
        c.trace("nonsense")
    assert c.introduced("nonsense") is None
    next(folder.glob("*cpu_after_optimizations.txt")).unlink()
    with pytest.raises(LookupError, match="no text after optimization"):
        dumps.open(folder).compilations[0].trace("abs.0")


@pytest.mark.parametrize(
    ("name", "copy", "stage"),
    [("gpu.loops", "copy.36", "copies"), ("tpu.mlp_train.tagged", "copy-start", "memory")],
)
def test_copies_are_born_where_they_are_put_in(name: str, copy: str, stage: str, tmp_path: Path) -> None:
    """Copy insertion's on a GPU; memory-space assignment's on a TPU, behind the last pass."""
    c = dumps.open(unpacked(name, tmp_path)).compilations[0]
    step = c.introduced(copy)
    assert step is not None
    assert step.stage == stage
    assert c.introduced("%" + copy) is step
