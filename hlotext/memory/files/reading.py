"""XLA's files of one dump as an assignment (`load`)."""

from __future__ import annotations

import os
from collections.abc import Mapping

import attrs

import hlotext as hlo
from hlotext.analysis import Backend, backend_of
from hlotext.findings.errors import HloSyntaxError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.memory.aliases import Buffer
from hlotext.memory.allocations import Allocation, Slice
from hlotext.memory.assignment import Assignment
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.files import companion_files
from hlotext.memory.files.elements import elements, is_unwritten
from hlotext.memory.files.protos import from_proto
from hlotext.memory.files.records import (
    AllocationRecord,
    Notes,
    RangeRecords,
    ValueRecord,
    parted,
    read_allocations,
    read_ranges,
    read_values,
)
from hlotext.memory.files.value_names import Short
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Value
from hlotext.syntax.read_terms import read_shape
from hlotext.syntax.source.inputs import InputError


def load(place: str | os.PathLike[str]) -> Assignment:
    """Loads the buffer assignment of a module from XLA's own files.

    Fields that the files lack (buffers, sizes of individual values) are None. `notes` lists missing, unreadable and
    contradictory parts.

    Args:
        place: A folder, the module's text, one of the four files, or an `HloProto` (`.hlo.pb`) with values and
            allocations. The other files are found next to it by name, compressed or not.

    Raises:
        MemoryModelError: There are no memory files, the folder has those of several modules, or the files and the module
            text belong to different modules (a ValueError).
        InputError: `place` does not exist, or a file cannot be read.
        HloSyntaxError: The module text is not valid HLO.
    """
    if (found := from_proto(place)) is not None:
        return found
    files = companion_files.find(place)
    if not any(
        suffix in files
        for suffix in (companion_files.ALLOCATIONS, companion_files.VALUES, companion_files.RANGES)
    ):
        raise MemoryModelError(f"no XLA memory files next to {os.fspath(place)}")
    module = hlo.load(files[companion_files.TEXT], only=True) if companion_files.TEXT in files else None
    texts = {
        suffix: companion_files.text_of(path)
        for suffix, path in files.items()
        if suffix in companion_files.SUFFIXES
    }
    return read(texts, module)


def load_beside(place: str | None) -> tuple[Assignment | None, str]:
    """Loads the assignment from XLA's files next to a module's text, if they are complete enough.

    Returns:
        The assignment and an empty string. Or None and the reason if a file is missing or incomplete; the reason is
        empty if `place` is None or there are no files.

    Raises:
        HloSyntaxError: The module text is not valid HLO.
    """
    if place is None or not companion_files.has_files(place):
        return None, ""
    try:
        found = load(place)
    except (MemoryModelError, InputError) as error:
        return None, str(error)
    if not found.allocations or not found.schedule or found.unread:
        return None, "; ".join(found.notes) or "they are incomplete"
    return found, ""


def joined(read: Assignment, computed: Assignment) -> Assignment:
    """Returns an assignment read from XLA's files, with `chip` and `buffers` of the one computed from the module.

    The files contain offsets and live ranges, but only the module shows which values must share memory, such as those
    of a loop's state.
    """
    known = {(value.name, value.index): value for value in read.values}
    buffers: list[Buffer] = []
    for buffer in computed.buffers or ():
        found = tuple(
            known.pop((value.name, value.index)) for value in buffer if (value.name, value.index) in known
        )
        if found:
            buffers.append(found)
    return attrs.evolve(read, chip=computed.chip, buffers=tuple(buffers))


def read(texts: Mapping[str, str], module: Module | None = None) -> Assignment:
    """Parses a buffer assignment from the contents of XLA's files.

    Args:
        texts: Contents of the files, by suffix (`companion_files.SUFFIXES`).
        module: The module that the files belong to, or None if only the files are available.

    Raises:
        MemoryModelError: No entry of `texts` has the contents of such a file, or they belong to another module.
    """
    notes = Notes()
    head, *rest = parted(texts.get(companion_files.ALLOCATIONS, ""))
    if any(rest):
        combined = {
            suffix: text
            for suffix, text in zip((companion_files.VALUES, companion_files.RANGES), rest, strict=True)
            if text
        }
        texts = {**combined, **texts, companion_files.ALLOCATIONS: head}
    allocations = read_allocations(texts.get(companion_files.ALLOCATIONS, ""), notes)
    values = read_values(texts.get(companion_files.VALUES, ""), notes)
    ranges = read_ranges(texts.get(companion_files.RANGES, ""), notes)
    if not allocations and not values and not ranges.schedule:
        raise MemoryModelError("the files contain no allocations, values or live ranges in XLA's format")
    notes.found += [f"no file {suffix}" for suffix in companion_files.SUFFIXES if suffix not in texts]
    return _Joiner(module, notes).join(allocations, values, ranges)


@attrs.define
class _Joiner:
    """Joins what the files say with the text."""

    module: Module | None
    notes: Notes
    _instructions: dict[str, Instruction] = attrs.field(factory=dict)
    _elements: dict[Instruction, str] = attrs.field(factory=dict)
    _lines: dict[str, str] = attrs.field(factory=dict)
    _shapes: dict[str, Shape | None] = attrs.field(factory=dict)

    def join(
        self, allocations: list[AllocationRecord], values: list[ValueRecord], ranges: RangeRecords
    ) -> Assignment:
        if self.module is not None:
            # A name is unique in a module that XLA has numbered; of others the first counts.
            for instruction in self.module.instructions():
                if not is_unwritten(instruction):
                    self._instructions.setdefault(instruction.name, instruction)
            told = elements(self._instructions, values, ranges.schedule)
            self._instructions |= told
            for name, instruction in told.items():
                self._elements.setdefault(instruction, name)
        self._check(ranges, values)
        made: dict[tuple[str, ShapeIndex], Value] = {}
        for record in values:
            self._lines.setdefault(record.short.name, record.line)
            self._add(made, record)
        found = [self._allocation(record, made) for record in allocations]
        for name, index, span in ranges.ranges:
            value = made.get((name, index))
            if value is None:
                value = made[name, index] = self._value(Short(-1, name, index, False, 0), None)
            value.live_range = span
        ordered = sorted(made.values(), key=lambda value: (value.number < 0, value.number))
        missing = sum(1 for name in ranges.schedule if name not in self._instructions)
        if missing and self.module is not None:
            self.notes.found.append(f"{missing} scheduled instructions are not in the text")
        self._compare_numbers(allocations, values)
        return Assignment(
            module=self.module,
            backend=self._backend(),
            chip=None,
            values=tuple(ordered),
            buffers=None,
            schedule=tuple(self._instructions.get(name, name) for name in ranges.schedule),
            allocations=tuple(found),
            notes=tuple(self.notes.found),
            is_computed=False,
            unread=tuple(self.notes.unread),
            lines={name: line for name, line in self._lines.items() if name not in self._instructions},
            elements=self._elements,
        )

    def _backend(self) -> Backend | None:
        return backend_of(self.module) if self.module is not None and self.module.computations else None

    def _check(self, ranges: RangeRecords, values: list[ValueRecord]) -> None:
        """Raises MemoryModelError if hardly a name is known: files of another module."""
        if self.module is None:
            return
        names = {*ranges.schedule, *(record.short.name for record in values)}
        known = sum(1 for name in names if name in self._instructions)
        if names and 2 * known < len(names):
            raise MemoryModelError(
                f"the files belong to a module other than {self.module.name}, which has {known} of their {len(names)} "
                "instructions"
            )

    def _add(self, made: dict[tuple[str, ShapeIndex], Value], record: ValueRecord) -> None:
        value = self._value(record.short, None)
        made[record.short.key] = value
        for name, index in record.positions[1:]:
            value.add_position(self._instructions.get(name, name), index)
        for name, number, index in record.uses:
            value.add_use(self._instructions.get(name, name), number, index)

    def _value(self, short: Short, shape_text: str | None) -> Value:
        instruction = self._instructions.get(short.name)
        shape: Shape | None = None
        if instruction is not None and instruction.shape is not None:
            try:
                shape = instruction.shape.subshape(short.index)
            except IndexError:
                self.notes.unknown("text", f"{instruction.name} has no part {short.index}")
        if shape is None and shape_text is not None:
            shape = self._parsed(shape_text)
        value = Value(instruction, short.name, short.index, shape, short.is_phi)
        value.number, value.memory_space = short.number, short.memory_space
        return value

    def _parsed(self, text: str) -> Shape | None:
        if text not in self._shapes:
            try:
                self._shapes[text] = read_shape(text)
            except HloSyntaxError:
                self._shapes[text] = None
        return self._shapes[text]

    def _allocation(self, record: AllocationRecord, made: dict[tuple[str, ShapeIndex], Value]) -> Allocation:
        slices = []
        for short, offset, size, shape_text in record.slices:
            value = made.get(short.key)
            if value is None:
                value = made[short.key] = self._value(short, shape_text)
            elif value.shape is None:
                value.shape = self._parsed(shape_text)
            slices.append(Slice(value, offset, size))
        flags = record.flags
        return Allocation(
            number=record.number,
            bytes=record.bytes,
            memory_space=record.memory_space,
            is_parameter=record.parameter is not None,
            parameter_number=record.parameter,
            parameter_index=record.parameter_index,
            is_aliased=record.parameter is not None and "maybe-live-out" in flags,
            is_output=record.is_output,
            is_constant="constant" in flags,
            is_thread_local="thread-local" in flags,
            maybe_live_out="maybe-live-out" in flags,
            page=record.page,
            other_flags=tuple(flag for flag in flags if flag not in _FLAGS),
            slices=tuple(slices),
        )

    def _compare_numbers(self, allocations: list[AllocationRecord], values: list[ValueRecord]) -> None:
        """The files of one dump name the same values by the same numbers."""
        numbers = {record.short.key: record.short.number for record in values}
        placed = {short.key: short.number for record in allocations for short, *_ in record.slices}
        if numbers and placed and numbers != placed:
            self.notes.found.append("the buffer assignment and the values file list different values")


_FLAGS = frozenset({"constant", "maybe-live-out", "preallocated-temp", "thread-local"})
