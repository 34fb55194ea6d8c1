"""Row counts and sums of the tables are what `show`, `lint`, `memory` and `cost` say, on modules of the corpus."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import cost, lint, memory, tables, thunks
from hlotext.analysis import Summary, communications, source_locations, summarize, total_of
from hlotext.analysis.communication import largest_operand
from hlotext.analysis.metadata_propagation import MetadataSource
from hlotext.analysis.origins import SourceLocations
from hlotext.analysis.summary.details import attribute_text
from hlotext.tables.rows.subject import Subject
from tests import support

FILES = support.corpus_files()
FEW = FILES[::13]
MORE = [path for path in FILES if path not in FEW]
FOLDER = os.environ.get("HLOTEXT_TABLES_CORPUS", "")
"""A folder of any texts that are to be tried too."""
Rows = dict[str, list[dict[str, Any]]]


@pytest.mark.parametrize("path", FEW, ids=support.corpus_id)
def test_sums(path: Path) -> None:
    """A few modules of every kind."""
    for module in hlo.load_all(path):
        check(module)


@pytest.mark.slow
def test_sums_of_the_whole_corpus() -> None:
    """All others, and those of a folder that the environment names."""
    checked = 0
    for path in [*MORE, *(sorted(Path(FOLDER).rglob("*.txt*")) if FOLDER else ())]:
        try:
            modules = hlo.load_all(path)
        except (hlo.InputError, hlo.HloSyntaxError):
            continue  # a folder holds other files too
        for module in modules:
            try:
                check(module)
            except AssertionError as error:
                raise AssertionError(f"{path}: {module.name}") from error
            checked += 1
    assert checked >= len(MORE)
    print(f"{checked} modules")


def check(module: hlo.Module) -> None:
    """Every sum of one module."""
    names = [name for name in tables.TABLES if name != "passes"]
    made = tables.tables_of_subject(Subject(module, "key"), names)
    rows = {name: table.to_rows() for name, table in made.items()}
    check_show(rows, summarize(module), module)
    check_attributes(rows, module)
    check_collectives(rows, module)
    check_cost(rows, module)
    check_lint(rows, module)
    check_memory(rows, module)
    check_thunks(rows, module)


def check_show(rows: Rows, summary: Summary, module: hlo.Module) -> None:
    """What `hlotext show` counts: instructions, labels, written bytes, memory spaces, arguments, source lines."""
    (head,) = rows["modules"]
    every = rows["instructions"]
    assert (head["instructions"], head["computations"]) == (
        len(every),
        sum(one.computations for one in summary.computations),
    )
    assert head["instructions"] == summary.instructions
    assert (head["num_partitions"], head["replica_count"], head["is_scheduled"]) == (
        summary.num_partitions,
        summary.replica_count,
        summary.is_scheduled,
    )
    assert Counter(row["label"] for row in every) == {one.opcode: one.count for one in summary.opcodes}
    written = total(every, "label", "written_bytes")
    assert written == {one.opcode: one.written_bytes for one in summary.opcodes if one.written_bytes}
    assert sum(one.instructions for one in summary.computations) == len(every)
    arguments = [row for row in every if row["computation"] == head["entry"] and row["opcode"] == "parameter"]
    if not summary.arguments.unsized:
        assert sum(row["bytes"] for row in arguments) == summary.arguments.unpadded_bytes
        assert sum(row["padded_bytes"] for row in arguments) == summary.arguments.allocated_bytes
    if not summary.constants.unsized:
        constants = [row for row in every if row["opcode"] == "constant"]
        assert sum(row["padded_bytes"] for row in constants) == summary.constants.allocated_bytes
    spaces = sum(space.written.allocated_bytes for space in summary.memory_spaces)
    assert spaces == sum(written.values()) + summary.arguments.allocated_bytes
    lines = Counter((row["file"], row["line"]) for row in every if row["line_source"] == "own")
    # A summary counts what is written; a combined collective has the line of its largest operand instead.
    for node in module.instructions():
        place = SourceLocations().place(node) if largest_operand(node) is not None else None
        if place is not None and source_locations(module)[node][1] is not MetadataSource.OWN:
            lines[place.file, place.line] += 1
    shown: Counter[tuple[str, int]] = Counter()
    for one in summary.source_lines:
        shown[one.place.file, one.place.line] += one.instructions
    assert lines == shown
    assert len(rows["operands"]) == sum(len(one.operands) for one in module.instructions())


def check_attributes(rows: Rows, module: hlo.Module) -> None:
    """All attributes of all instructions, with XLA's text."""
    every = list(module.instructions())
    found = [(row["id"], row["key"], row["value"]) for row in rows["attributes"]]
    assert found == [
        (number, name, plain(attribute_text(value, name)))
        for number, one in enumerate(every)
        for name, value in one.attributes.items()
    ]
    assert rows["modules"][0]["module"] == "key"


def check_collectives(rows: Rows, module: hlo.Module) -> None:
    """What `hlotext comm` adds up, and what `hlotext show` lists."""
    found = communications(module)
    assert len(rows["collectives"]) == len(found)
    for name, value in (("bytes_in", "operand_bytes"), ("bytes_out", "result_bytes")):
        assert sum(row[name] for row in rows["collectives"]) == sum(getattr(one, value) for one in found)
    for row, one in zip(rows["collectives"], found, strict=True):
        assert row["sent_shapes"] == list(map(str, one.sent_shapes))
        assert set(row["dtypes"]) == {text.partition("[")[0] for text in row["sent_shapes"]}
        assert sum(total_of(shape).unpadded_bytes for shape in one.sent_shapes) == one.operand_bytes
    sent = sum((row["wire_bytes"] or 0) * (row["runs"] or 0) for row in rows["collectives"])
    links = cost.traffic(module).by_link().values()
    if all(row["runs"] is not None for row in rows["collectives"]):
        assert sent == sum(one.bytes for one in links)


def check_cost(rows: Rows, module: hlo.Module) -> None:
    """The sums of `hlotext cost`, whole and by scope and opcode."""
    found = cost.analyze(module)
    for name in ("flops", "transcendentals", "bytes_accessed"):
        assert close(sum(row[name] for row in rows["costs"]), getattr(found.run, name))
    every = rows["instructions"]
    for key, column in (("scope", "scope"), ("opcode", "opcode")):
        flops: Counter[str] = Counter()
        for row in rows["costs"]:
            assert 0 <= row["bytes_written"] <= row["bytes_accessed"]
            flops[every[row["id"]][column]] += row["flops"]
        for name, one in found.by(key).items():  # type: ignore[arg-type]
            assert close(flops[plain(name)], one.flops), (key, name)


def check_lint(rows: Rows, module: hlo.Module) -> None:
    """The findings of `hlotext lint`."""
    found = lint.run(module)
    assert [
        (row["code"], row["message"], row["text_line"], row["bytes"], row["name"]) for row in rows["findings"]
    ] == [(one.code, plain(one.message), one.line, one.bytes, plain(one.name)) for one in found]


def check_memory(rows: Rows, module: hlo.Module) -> None:
    """The allocations, values and peak of `hlotext memory`."""
    try:
        found = memory.assign(module)
    except memory.MemoryModelError:
        assert not rows["buffers"]
        assert not rows["values"]
        assert rows["modules"][0]["peak_bytes"] is None
        return
    first = [row for row in rows["buffers"] if row["is_first"]]
    assert len(first) == len(found.allocations)
    assert sum(row["allocation_bytes"] for row in first) == found.total_bytes
    statistics = found.statistics
    arguments = [row for row in first if row["kind"] == "parameter" and row["color"] != 5]
    assert sum(row["allocation_bytes"] for row in arguments) == statistics.argument_size_in_bytes
    assert len(rows["buffers"]) == sum(max(1, len(one.slices)) for one in found.allocations)
    assert len(rows["values"]) == len(found.values)
    assert sum(row["uses"] for row in rows["values"]) == sum(len(one.uses) for one in found.values)
    assert len({row["buffer"] for row in rows["values"]}) == len(found.buffers or ())
    assert rows["modules"][0]["peak_bytes"] == found.peak().bytes
    assert sum(row["peak_bytes"] for row in rows["buffers"]) == found.peak().bytes


def check_thunks(rows: Rows, module: hlo.Module) -> None:
    """The thunks of `hlotext thunks`."""
    try:
        found = thunks.predict(module)
    except thunks.ThunkError:
        assert not rows["thunks"]
        return
    assert Counter(row["kind"] for row in rows["thunks"]) == found.counts()
    assert [row["depth"] for row in rows["thunks"]] == [depth for depth, _, _ in found.with_depth()]


def total(rows: Iterable[dict[str, Any]], key: str, value: str) -> dict[str, int]:
    """The sums of a column by another, those above nothing."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row[key]] += row[value]
    return {name: size for name, size in sums.items() if size}


def close(a: float, b: float) -> bool:
    """Equal but for what 64-bit floats add differently."""
    return a == b or math.isclose(a, b, rel_tol=1e-12)


def plain(text: str) -> str:
    """A text as Arrow holds it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
