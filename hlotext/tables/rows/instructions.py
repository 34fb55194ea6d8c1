"""Instructions and their operands. Whatever many rows share is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotext.analysis import call_graph, places, scopes, total_of, written_bytes
from hlotext.analysis.summary.arrays import LABELLED, opcode_label
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.shape import Shape
from hlotext.tables.columns import AnyColumn, Array, Lists, Numbers, Texts, Words, distinct, words_of
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table


def instructions(subject: Subject) -> Table:
    """The table `instructions`."""
    every = subject.instructions
    columns: dict[str, AnyColumn] = {
        "id": Numbers(np.arange(len(every))),
        **_homes(subject),
        "name": Texts.of([one.name for one in every]),
        "opcode": Words.of([one.opcode for one in every]),
        "label": _labels(every),
        **_shapes([one.shape for one in every]),
        "written_bytes": _written(subject),
        "operands": Lists(subject.operand_offsets, subject.operand_ids),
        "calls": Lists.of(
            [
                () if one.opcode in CALLS_NOTHING else [c.name for c in one.called_computations]
                for one in every
            ],
            None,
        ),
        **_origins(subject),
        "text_line": _text_lines(subject),
    }
    return subject.table("instructions", len(every), columns)


def operands(subject: Subject) -> Table:
    """The table `operands`."""
    offsets = subject.operand_offsets
    counts = np.diff(offsets)
    columns: dict[str, AnyColumn] = {
        "id": Numbers(np.repeat(np.arange(len(counts)), counts)),
        "number": Numbers(np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)),
        "operand": subject.operand_ids,
    }
    return subject.table("operands", int(offsets[-1]), columns)


def _homes(subject: Subject) -> dict[str, AnyColumn]:
    """The computations, the places there, how often they run, and the roots."""
    computations, sizes = subject.module.computations, subject.sizes
    index = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    is_root = np.zeros(len(index), bool)
    is_root[[subject.ids[one.root] for one in computations if len(one)]] = True
    runs = call_graph(subject.module).runs if computations else {}
    return {
        "computation": words_of(index, computations, lambda one: one.name),
        "ordinal": Numbers(np.arange(len(index)) - starts[index]),
        "runs": Numbers.of([runs.get(one, 0) for one in computations]).taken(index),
        "is_root": Numbers(is_root),
    }


def _labels(every: Sequence[Instruction]) -> Words:
    return Words.of([opcode_label(one) if one.opcode in LABELLED else one.opcode for one in every])


def _shapes(shapes: Sequence[Shape | None]) -> dict[str, AnyColumn]:
    """What shapes tell; the shapes of a large module are a few hundred."""
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


def _written(subject: Subject) -> Numbers:
    """Bytes written outside fusions; found once for each opcode, shape and set of attributes."""
    known: dict[tuple[str, int, int], int] = {}
    found = []
    stepped = call_graph(subject.module).stepped if subject.module.computations else frozenset()
    for computation in subject.module.computations:
        if computation not in stepped:
            found += [0] * len(computation)
            continue
        for one in computation:
            if one.opcode == "async-start":
                found.append(written_bytes(one))
                continue
            key = one.opcode, id(one._shape), id(one._attributes)
            size = known.get(key)
            if size is None:
                size = known[key] = written_bytes(one)
            found.append(size)
    return Numbers.of(found)


def _origins(subject: Subject) -> dict[str, AnyColumn]:
    """Where instructions come from in the program."""
    every, module = subject.instructions, subject.module
    if not every:
        return {**dict.fromkeys(_ORIGINS, Words.of(())), "line": Numbers.of(())}
    metadata, all_metadata = distinct([one.metadata for one in every])
    found = scopes(module)
    index, all_scopes = distinct([found.of(one) for one in every])
    lines: Any = places(module)
    told = [lines.get(one, _NOWHERE) for one in every]
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


def _text_lines(subject: Subject) -> Numbers:
    """The lines of the text; null for what no text has."""
    source = subject.module.source
    offsets = [one.offset for one in subject.instructions]
    if source is None:
        return Numbers(np.zeros(len(offsets), np.int64), np.ones(len(offsets), bool))
    lines: Array = np.array(source.line_numbers(offsets), np.int64)
    unknown = np.array(offsets, np.int64) < 0
    return Numbers(lines, unknown if unknown.any() else None)
