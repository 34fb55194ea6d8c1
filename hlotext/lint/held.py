"""Live values at peak memory; buffers are assigned once per module, and only where sizes permit a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hlotext import memory
from hlotext.analysis import (
    arrays_of,
    call_graph,
    fact,
    memory_space,
    responsible_frame,
    total_of,
    written_arrays,
)
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.lint.helpers import unaliased_results
from hlotext.lint.rule import Context

if TYPE_CHECKING:
    from hlotext.memory.values import Range, Value

MAIN = 0
"""The memory space that these rules are about: HBM, a GPU's memory, on CPU the only one."""


def assignment_of(context: Context) -> memory.Assignment | None:
    """Returns the buffer assignment; None if the text does not determine it."""
    return context.assignment


def least_held(context: Context) -> int:
    """Returns the bytes of main memory that are always in use: arguments, and results not in their buffers.

    A lower bound on the peak, so that small arrays can be skipped without buffer assignment.
    """
    arrays = [array for p in context.arguments for _, array in arrays_of(p.shape)]
    arrays += unaliased_results(context).values()
    return sum(total_of(array).allocated_bytes for array in arrays if memory_space(array) == MAIN)


def most_written(context: Context) -> int:
    """Returns the bytes written to main memory by the Python function that writes most: an upper bound on its live
    bytes.
    """
    found: dict[tuple[str, str], int] = {}
    for instruction in context.graph.sequential_instructions():
        arrays = [array for _, array in written_arrays(instruction) if memory_space(array) == MAIN]
        if arrays:
            function = function_of(instruction)
            size = sum(total_of(array).allocated_bytes for array in arrays)
            found[function] = found.get(function, 0) + size
    return max(found.values(), default=0)


def function_of(instruction: Instruction) -> tuple[str, str]:
    """Returns file and name of the Python function of an instruction; empty if unknown."""
    frame = responsible_frame(instruction)
    return (frame.file, frame.function) if frame is not None else ("", "")


def largest_written(context: Context) -> int:
    """Returns the bytes of the largest array that an instruction writes to main memory."""
    return max((size for _, size in written_in_main(context)), default=0)


def written_in_main(context: Context) -> tuple[tuple[Instruction, int], ...]:
    """Returns each instruction that writes to main memory, with the bytes of its largest array there."""
    return _written_in_main(context.module)


@fact
def _written_in_main(module: Module) -> tuple[tuple[Instruction, int], ...]:
    found = []
    for instruction in call_graph(module).sequential_instructions():
        arrays = [array for _, array in written_arrays(instruction) if memory_space(array) == MAIN]
        if arrays:
            found.append((instruction, max([total_of(array).allocated_bytes for array in arrays])))
    return tuple(found)


@attrs.frozen
class Held:
    """A piece of memory that is live at the peak and was not from the start."""

    value: Value
    """The value in it at that time."""
    writer: Instruction
    """Its producer; for loop state, the instruction outside that provides the initial value."""
    filler: Instruction
    """The last write to it: for loop state, in the body; else `writer`."""
    index: ShapeIndex
    """The part of the filler's result that it is."""
    bytes: int
    span: Range
    """First and last moment of everything that lies in it because it must."""


@attrs.frozen
class AtPeak:
    """The time of peak main memory."""

    bytes: int
    time: int
    moments: int
    """Of the whole schedule."""
    held: tuple[Held, ...]
    """The largest first."""


def at_peak(context: Context) -> AtPeak | None:
    """Returns the live values at peak memory; None if memory is unknown."""
    assignment = assignment_of(context)
    if assignment is None or not assignment.schedule:
        return None
    peak = assignment.peak(MAIN)
    together = {value: buffer for buffer in assignment.buffers or () for value in buffer}
    found: list[Held] = []
    for allocation in assignment.allocations:
        if allocation.memory_space != MAIN or not allocation.is_temporary:
            continue
        places: dict[int, list[tuple[Value, int]]] = {}
        for value, offset, size in allocation.slices:
            if value.lives_at(peak.time):
                places.setdefault(offset, []).append((value, size))
        for pieces in places.values():
            value = max(pieces, key=lambda piece: (piece[0].live_range or (-1, -1), piece[0].number))[0]
            held = _held(value, together.get(value, (value,)), max(size for _, size in pieces))
            if held is not None:
                found.append(held)
    found.sort(key=lambda one: (-one.bytes, one.writer.name, one.value.index))
    return AtPeak(peak.bytes, peak.time, len(assignment.schedule), tuple(found))


_MOVING = frozenset(
    {"broadcast", "constant", "copy", "copy-start", "custom-call", "parameter", "tuple", "while"}
)
"""Opcodes that say nothing of what a loop's state is for."""


def _held(value: Value, buffer: tuple[Value, ...], size: int) -> Held | None:
    ranges = [other.live_range for other in buffer if other.live_range is not None]
    written = [v for v in buffer if not v.is_phi and v.instruction is not None and v.live_range is not None]
    if not ranges or not written:
        return None
    first = min(written, key=lambda v: (v.live_range or (0, 0), v.number))
    named = [v for v in written if v.instruction is not None and v.instruction.opcode not in _MOVING]
    last = max(named or written, key=lambda v: (v.live_range or (0, 0), v.number))
    writer = first.instruction
    if writer is None or last.instruction is None:
        return None
    filled = first if writer.opcode not in _MOVING else last
    span = min(r[0] for r in ranges), max(r[1] for r in ranges)
    return Held(value, writer, filled.instruction or writer, filled.index, size, span)
