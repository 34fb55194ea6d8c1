"""Excess of a module over the memory of its chip: where there is one, memory is short beyond doubt."""

from __future__ import annotations

import attrs

from hlotext import memory
from hlotext.analysis import (
    Backend,
    CallGraph,
    array_bytes,
    arrays_of,
    byte_text,
    choose_chip,
    written_bytes,
)
from hlotext.analysis.chips import Chip, chip
from hlotext.findings.escape import line
from hlotext.ir.nodes.module import Module


@attrs.frozen
class Excess:
    """Bytes of main memory that a module needs beyond those of its chip."""

    chip: Chip
    bytes: int
    text: str
    """Bytes needed, bytes usable and the difference, as `hlotext memory` says it."""
    largest: str
    """The largest temporary array at the peak, as text with its bytes, shape and instruction; empty if there is none."""


def excess_of(
    module: Module, backend: Backend | None, graph: CallGraph, named: str, of_folder: Chip | None
) -> Excess | None:
    """Returns the excess over the chip's main memory; None if the module fits, or chip or memory are unknown."""
    choice = choose_chip(module, chip(named) if named else None, of_folder, backend)
    if choice is None or not choice.is_known or choice.chip.backend is not backend:
        return None
    usable = choice.chip.usable_bytes(0)
    # Most modules are too small to ask how their memory is assigned.
    if usable is None or _at_most(module, graph) <= usable:
        return None
    try:
        assigned = memory.assign(module, backend, choice.chip, places_fast_memory=False)
    except memory.MemoryModelError:
        return None
    text = memory.usage.excess_text(assigned)
    if not text:
        return None
    excess = memory.usage.space_usage(assigned, 0).needed - usable
    return Excess(choice.chip, excess, text, _largest(assigned))


def _largest(assigned: memory.Assignment) -> str:
    rows = memory.usage.live_arrays(assigned, 0, assigned.peak(0).time)
    row = max((row for row in rows if row.kind == "temporary"), key=lambda row: row.bytes, default=None)
    if row is None:
        return ""
    return f"{byte_text(row.bytes)}, {line(row.shape)} ({line(row.name)})"


def _at_most(module: Module, graph: CallGraph) -> int:
    """Bytes of the arguments and of all that is ever written, which no memory exceeds."""
    written = sum(map(written_bytes, graph.sequential_instructions()))
    arguments = (array for one in module.entry.parameters for _, array in arrays_of(one.shape))
    return written + sum((array_bytes(array) or (0, 0))[0] for array in arguments)
