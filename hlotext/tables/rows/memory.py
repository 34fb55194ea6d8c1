"""Values and the allocations that hold them, as XLA's compilers assign memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hlotext.memory import Allocation, Value
from hlotext.memory.peaks import held_at_peak
from hlotext.tables.columns import AnyColumn, Lists, Numbers, Words
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table


def buffers(subject: Subject) -> Table:
    """Builds the table `buffers`; empty if memory cannot be computed."""
    found = subject.assignment
    rows = list(_slices(found.allocations)) if found is not None else []
    held = [value for _, value, _, _, _ in rows]
    at_peak = held_at_peak(found) if found is not None else {}
    columns: dict[str, AnyColumn] = {
        "allocation": Numbers.of([one.number for one, *_ in rows]),
        "kind": Words.of([_kind(one) for one, *_ in rows]),
        "color": Numbers.of([one.memory_space for one, *_ in rows]),
        "allocation_bytes": Numbers.of([one.bytes for one, *_ in rows]),
        "is_first": Numbers(np.array([is_first for *_, is_first in rows], bool)),
        "is_estimated": Numbers(np.array([one.is_estimated for one, *_ in rows], bool)),
        "name": Words.of([None if value is None else value.name for value in held]),
        "index": Lists.of([None if value is None else value.index for value in held]),
        "id": _ids(subject, held),
        "size": Numbers.of([size for _, _, _, size, _ in rows]),
        "offset": Numbers.of([offset for _, _, offset, _, _ in rows]),
        "peak_bytes": Numbers.of([at_peak.get(value, 0) if value is not None else 0 for value in held]),
        **_lives(held),
    }
    return subject.table("buffers", len(rows), columns)


def values(subject: Subject) -> Table:
    """Builds the table `values`; empty if memory cannot be computed."""
    found = subject.assignment
    every = found.values if found is not None else ()
    sharing = found.buffers or () if found is not None else ()
    buffer = {id(value): number for number, group in enumerate(sharing) for value in group}
    columns: dict[str, AnyColumn] = {
        "number": Numbers(np.arange(len(every))),
        "name": Words.of([value.name for value in every]),
        "index": Lists.of([value.index for value in every]),
        "id": _ids(subject, every),
        "is_phi": Numbers(np.array([value.is_phi for value in every], bool)),
        "memory_space": Numbers.of([value.memory_space for value in every]),
        "bytes": Numbers.of([value.bytes for value in every]),
        **_lives(every),
        "positions": Numbers.of([1 + len(value.flat_positions()) // 2 for value in every]),
        "uses": Numbers.of([len(value.flat_uses()) // 3 for value in every]),
        "buffer": Numbers.of([buffer.get(id(value)) for value in every]),
    }
    return subject.table("values", len(every), columns)


_Row = tuple[Allocation, Value | None, int | None, int | None, bool]
"""Allocation, value, offset, bytes of the chunk, and whether it is the allocation's first row."""


def _slices(allocations: tuple[Allocation, ...]) -> Iterator[_Row]:
    for allocation in allocations:
        if not allocation.slices:
            yield allocation, None, None, None, True
        for number, (value, offset, size) in enumerate(allocation.slices):
            yield allocation, value, offset, size, not number


def _kind(one: Allocation) -> str:
    """Kind of an allocation: the first that applies, in the order of `hlotext memory`."""
    if one.is_thread_local:
        return "thread-local"
    if one.is_parameter:
        return "parameter"
    if one.is_constant:
        return "constant"
    return "output" if one.maybe_live_out else "temporary"


def _ids(subject: Subject, found: Any) -> Numbers:
    ids = subject.ids
    return Numbers.of(
        [None if one is None or one.instruction is None else ids.get(one.instruction) for one in found]
    )


def _lives(found: Any) -> dict[str, AnyColumn]:
    lives = [None if one is None else one.live_range for one in found]
    return {
        "start": Numbers.of([None if life is None else life[0] for life in lives]),
        "end": Numbers.of([None if life is None else life[1] for life in lives]),
    }
