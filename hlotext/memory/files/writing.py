"""An assignment as the four files that XLA writes, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlotext.layout import unpadded_bytes
from hlotext.memory.allocations import Allocation
from hlotext.memory.assignment import Assignment
from hlotext.memory.files import companion_files
from hlotext.memory.files.breakdown import breakdown_text
from hlotext.memory.files.names import Names
from hlotext.memory.files.report import report_text
from hlotext.memory.files.value_names import human_bytes, index_text, short_text
from hlotext.memory.values import Value


def texts(assignment: Assignment) -> Mapping[str, str]:
    """Returns an assignment as the contents of XLA's four files, by suffix (`companion_files.SUFFIXES`).

    An assignment read from files is reproduced byte for byte in the current format, except for op lines, which are
    printed from the module and lack the names of tuple elements if its text is compact. For a computed assignment, ids
    are hlotext's own. Raises LayoutError for shapes of unknown size.
    """
    names = Names(assignment)
    return {
        companion_files.ALLOCATIONS: "".join(_allocations(assignment, names)),
        companion_files.VALUES: "".join(_values(assignment, names)),
        companion_files.RANGES: "".join(_ranges(assignment, names)),
        companion_files.REPORT: report_text(assignment),
    }


def _number(value: Value) -> int:
    return value.number


# ---- allocations


def _allocations(assignment: Assignment, names: Names) -> Iterator[str]:
    yield "BufferAssignment:\n"
    for allocation in assignment.allocations:
        yield _allocation_head(allocation, assignment)
        for value, offset, size in sorted(allocation.slices, key=lambda piece: piece.value.number):
            instruction = names.of(value)
            is_tuple = (
                instruction is not None and instruction.shape is not None and instruction.shape.is_tuple
            )
            shape = value.shape if value.shape is not None else "<unknown shape>"
            yield f" value: {short_text(value, is_tuple)} (size={size},offset={offset}): {shape}\n"


def _allocation_head(allocation: Allocation, assignment: Assignment) -> str:
    parts = [f"allocation {allocation.number}: size {allocation.bytes}"]
    if allocation.memory_space:
        parts.append(f"color {allocation.memory_space}")
    if allocation.page is not None and allocation.page >= 0:
        parts.append(f"page {allocation.page}")
    if allocation.is_parameter:
        shape = next(
            (s.value.shape for s in allocation.slices if _is_parameter(s.value, allocation, assignment)), None
        )
        text = shape.text_without_layout() if shape is not None else "<unknown shape>"
        index = index_text(allocation.parameter_index)
        parts.append(f"parameter {allocation.parameter_number}, shape |{text}| at ShapeIndex {index}")
    if allocation.is_output and assignment.module is not None:
        root = assignment.module.entry.root.shape
        parts.append(
            f"output shape is |{root.text_without_layout() if root is not None else '<unknown shape>'}|"
        )
    flags = {
        "constant": allocation.is_constant,
        "thread-local": allocation.is_thread_local,
        "maybe-live-out": allocation.maybe_live_out,
        "preallocated-temp": allocation.is_temporary,
    }
    parts += [flag for flag, is_set in flags.items() if is_set]
    parts += allocation.other_flags
    return f"{', '.join(parts)}:\n"


def _is_parameter(value: Value, allocation: Allocation, assignment: Assignment) -> bool:
    instruction = value.instruction
    return (
        instruction is not None
        and instruction.opcode == "parameter"
        and instruction.parameter_number == allocation.parameter_number
        and assignment.module is not None
        and instruction.computation is assignment.module.entry
    )


# ---- values


def _values(assignment: Assignment, names: Names) -> Iterator[str]:
    total = assignment.total_bytes
    yield f"\nTotal bytes used: {total} ({human_bytes(total)})\n\nUsed values:\n"
    placed = {piece.value for allocation in assignment.allocations for piece in allocation.slices}
    for value in sorted(placed, key=_number):
        instruction = names.of(value)
        is_tuple = instruction is not None and instruction.shape is not None and instruction.shape.is_tuple
        yield f"{short_text(value, is_tuple)}\n positions:\n"
        for place, index in value.positions:
            yield f"  {names.name(place)}{f' {index_text(index)}' if names.is_tuple(place) else ''}\n"
        yield " uses:\n"
        uses = value.uses
        if not uses:
            yield "  (none)\n"
        for use in uses:
            shown = f" {index_text(use.operand_index)}" if names.reads_tuple(use) else ""
            yield f"  {names.name(use.instruction or use.name)}, operand {use.operand_number}{shown}\n"
        yield f" from instruction: {names.line(value)}\n"


# ---- live ranges


def _ranges(assignment: Assignment, names: Names) -> Iterator[str]:
    yield f"HloLiveRange (max {len(assignment.schedule)}):\n  InstructionSequence:\n"
    for time, place in enumerate(assignment.schedule):
        yield f"    {time}:{names.name(place)}\n"
    yield "  BufferLiveRange:\n"
    living = [value for value in sorted(assignment.values, key=_number) if value.live_range is not None]
    for value in living:
        first, last = value.live_range or (0, 0)
        yield f"    {value.name}{index_text(value.index)}:{first}-{last}\n"
    time = peak_moment(living, names)
    yield f"  Live ranges at {time} (peak):\n"
    rows = [
        (_bytes(v), v)
        for v in living
        if v.live_range is not None and v.live_range[0] <= time <= v.live_range[1]
    ]
    rows.sort(key=lambda row: (-row[0], row[1].name.encode(), row[1].index))
    total = 0
    for size, value in rows:
        total += size
        yield f"    {value.name}{index_text(value.index)}: {size} bytes (cumulative: {total} bytes)\n"
    if assignment.schedule:
        yield breakdown_text(rows, names)


def _bytes(value: Value) -> int:
    """`ShapeUtil::ByteSizeOf` with pointers of 8 bytes, on every platform."""
    return unpadded_bytes(value.shape) if value.shape is not None else 0


def peak_moment(living: list[Value], names: Names) -> int:
    """Returns the time of XLA's peak by live ranges (`ComputePeakMemoryMoment`), where values count the whole shape of
    their instruction.
    """
    change: dict[int, list[int]] = {}
    for value in living:
        shape = names.whole_shape(value)
        size = unpadded_bytes(shape) if shape is not None else _bytes(value)
        first, last = value.live_range or (0, 0)
        change.setdefault(first, [0, 0])[0] += size
        change.setdefault(last + 1, [0, 0])[1] += size
    now = most = best = 0
    for time, (more, less) in sorted(change.items()):
        now += more
        if now > most:
            most, best = now, time
        now -= less
    return best
