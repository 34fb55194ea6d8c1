"""Instructions and their operands. Whatever many rows share is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotext.analysis import Scope, call_graph, scopes, source_locations, total_of, written_bytes
from hlotext.analysis.summary.arrays import LABELLED, opcode_label
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Source
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.shape import Shape
from hlotext.tables.columns import (
    AnyColumn,
    Array,
    Lists,
    Numbers,
    Texts,
    Words,
    distinct,
    offsets_of,
    places_in,
    words_of,
)
from hlotext.tables.rows.subject import Subjects
from hlotext.tables.table import Table


def instructions(subjects: Subjects) -> Table:
    """Builds the table `instructions`."""
    every = subjects.instructions
    columns: dict[str, AnyColumn] = {
        "id": Numbers(subjects.ids),
        **_homes(subjects),
        "name": Texts.of([one.name for one in every]),
        "opcode": Words.of([one.opcode for one in every]),
        "label": _labels(every),
        **_shapes([one.shape for one in every]),
        "written_bytes": _written(subjects),
        "operands": Lists(subjects.operand_offsets, subjects.operand_ids),
        "calls": Lists.of(
            [
                () if one.opcode in CALLS_NOTHING else [c.name for c in one.called_computations]
                for one in every
            ],
            None,
        ),
        **_origins(subjects),
        "text_line": _text_lines(subjects),
    }
    return subjects.table("instructions", subjects.counts, columns)


def operands(subjects: Subjects) -> Table:
    """Builds the table `operands`."""
    offsets = subjects.operand_offsets
    counts = np.diff(offsets)
    columns: dict[str, AnyColumn] = {
        "id": Numbers(np.repeat(subjects.ids, counts)),
        "number": Numbers(places_in(counts)),
        "operand": subjects.operand_ids,
    }
    return subjects.table("operands", np.diff(offsets[offsets_of(subjects.counts)]), columns)


def _homes(subjects: Subjects) -> dict[str, AnyColumn]:
    """The computations, the places there, how often they run, and the roots."""
    computations, sizes = subjects.computations, subjects.sizes
    index = np.repeat(np.arange(len(sizes)), sizes)
    is_root = np.zeros(len(index), bool)
    runs: list[int | None] = []
    start = 0
    for subject in subjects.each:
        ids, inside = subject.ids, subject.module.computations
        is_root[[start + ids[one.root] for one in inside if len(one)]] = True
        found = call_graph(subject.module).runs if inside else {}
        runs += [found.get(one, 0) for one in inside]
        start += len(ids)
    return {
        "computation": words_of(index, computations, lambda one: one.name),
        "ordinal": Numbers(places_in(sizes)),
        "runs": Numbers.of(runs).taken(index),
        "is_root": Numbers(is_root),
    }


def _labels(every: Sequence[Instruction]) -> Words:
    return Words.of([opcode_label(one) if one.opcode in LABELLED else one.opcode for one in every])


def _shapes(shapes: Sequence[Shape | None]) -> dict[str, AnyColumn]:
    """Columns derived from shapes; a large module has a few hundred distinct ones."""
    index, found = distinct(shapes)
    arrays = [shape if shape is not None and shape.is_array else None for shape in found]
    layouts = [shape.layout if shape is not None else None for shape in arrays]
    totals = [None if shape is None else total_of(shape) for shape in found]
    sized = [None if total is None or total.unsized else total for total in totals]
    spaces = [
        None if shape is None else layout.memory_space if layout is not None else 0
        for shape, layout in zip(arrays, layouts, strict=True)
    ]
    return {
        "shape": words_of(index, found, lambda shape: None if shape is None else str(shape)),
        "dtype": words_of(index, found, lambda shape: None if shape is None else str(shape.element_type)),
        "dims": Lists.of([None if shape is None else shape.dimensions for shape in arrays]).taken(index),
        "layout": words_of(index, layouts, lambda layout: None if layout is None else str(layout)),
        "memory_space": Numbers.of(spaces).taken(index),
        "bytes": Numbers.of([None if total is None else total.unpadded_bytes for total in sized]).taken(
            index
        ),
        "padded_bytes": Numbers.of([None if one is None else one.allocated_bytes for one in sized]).taken(
            index
        ),
    }


def _written(subjects: Subjects) -> Numbers:
    """Bytes written outside fusions; found once for each opcode, shape and set of attributes."""
    known: dict[tuple[str, int, int], int] = {}
    found: list[int] = []
    for subject in subjects.each:
        stepped = call_graph(subject.module).stepped if subject.module.computations else frozenset()
        for computation in subject.module.computations:
            if computation not in stepped:
                found += [0] * len(computation)
                continue
            for one in computation:
                if one.opcode == "async-start":
                    found.append(written_bytes(one))
                    continue
                key = one.opcode, id(one._head.shape), id(one._attributes)
                size = known.get(key)
                if size is None:
                    size = known[key] = written_bytes(one)
                found.append(size)
    return Numbers.of(found)


def _origins(subjects: Subjects) -> dict[str, AnyColumn]:
    """Where instructions come from in the program."""
    every = subjects.instructions
    if not every:
        return {**dict.fromkeys(_ORIGINS, Words.of(())), "line": Numbers.of(())}
    metadata, all_metadata = distinct([one._attributes.get("metadata") for one in every])
    in_scope: list[Scope] = []
    told: list[Any] = []
    for subject in subjects.each:
        if subject.instructions:
            in_scope += map(scopes(subject.module).of, subject.instructions)
            lines: Any = source_locations(subject.module)
            told += [lines.get(one, _NOWHERE) for one in subject.instructions]
    index, all_scopes = distinct(in_scope)
    place, all_places = distinct([one[0] for one in told])
    source, all_sources = distinct([one[1] for one in told])
    return {
        "op_name": words_of(metadata, all_metadata, lambda one: "" if one is None else one.op_name),
        "scope": words_of(index, all_scopes, str),
        "direction": words_of(index, all_scopes, lambda one: None if one.phase is None else one.phase.value),
        "file": words_of(place, all_places, lambda one: None if one is None else one.file),
        "line": Numbers.of([None if one is None else one.line for one in all_places]).taken(place),
        "function": words_of(place, all_places, lambda one: None if one is None else one.function),
        "line_source": words_of(source, all_sources, lambda one: None if one is None else one.name.lower()),
    }


_NOWHERE = (None, None)
_ORIGINS = ("op_name", "scope", "direction", "file", "function", "line_source")


def _text_lines(subjects: Subjects) -> Numbers:
    """The lines of the text; null for what no text has."""
    lines: list[Array] = []
    nulls: list[Array] = []
    for subject in subjects.each:
        offsets = np.array([one.offset for one in subject.instructions], np.int64)
        source = subject.module.source
        if source is None:
            lines.append(np.zeros(len(offsets), np.int64))
            nulls.append(np.ones(len(offsets), bool))
        else:
            lines.append(_line_numbers(source, offsets))
            nulls.append(offsets < 0)
    unknown = np.concatenate(nulls)
    return Numbers(np.concatenate(lines), unknown if unknown.any() else None)


def _line_numbers(source: Source, offsets: Array) -> Array:
    """The lines (from 1) of offsets."""
    text = source.text
    if "\r" in text or not text.isascii():
        return np.array(source.line_numbers(offsets.tolist()), np.int64)
    # Where characters are bytes numpy looks for line ends, which takes a tenth of the time.
    ends = np.flatnonzero(np.frombuffer(text.encode(), np.uint8) == 10)
    return np.searchsorted(ends, offsets) + 1
