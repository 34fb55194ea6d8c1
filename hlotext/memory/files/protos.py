"""The buffer assignment inside of an `HloProto` as an assignment."""

from __future__ import annotations

import os

from hlotext import proto
from hlotext.analysis import backend_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.memory.allocations import Allocation, Slice
from hlotext.memory.assignment import Assignment, assign
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.schedule import flatten
from hlotext.memory.values import Value
from hlotext.syntax.source.inputs import is_binary, read_data


def from_proto(place: str | os.PathLike[str]) -> Assignment | None:
    """Reads the buffer assignment of an `HloProto`; returns None for a file of another kind.

    Values, sharing and allocations are XLA's. Live ranges, uses and positions are computed from the module, since the
    proto only has the order of heap events.

    Raises MemoryModelError for a proto without a buffer assignment, ProtoError for an invalid proto, and InputError for
    a file that cannot be read.
    """
    if os.path.isdir(place) or not os.path.exists(place):
        return None
    data, name = read_data(place)
    if not is_binary(data) or isinstance(data, str):
        return None
    found = proto.read_buffers(data, name)
    if found is None:
        raise MemoryModelError(f"{name} contains no buffer assignment")
    return _assignment(found)


def _assignment(found: proto.ProtoBuffers) -> Assignment:
    module = found.module
    values: dict[int, Value] = {}
    phis = _looped(module)
    for buffer in found.buffers:
        instruction = buffer.instruction
        is_phi = instruction is not None and (instruction.opcode in _MERGING or instruction in phis)
        value = Value(instruction, buffer.name, buffer.index, _part(instruction, buffer.index), is_phi)
        value.number, value.memory_space = buffer.number, buffer.memory_space
        values[buffer.number] = value
    notes: list[str] = []
    _compute_the_rest(module, values, notes)
    places = {(value.instruction, value.index): value for value in values.values()}
    seen: dict[int, set[tuple[Instruction | None, tuple[int, ...]]]] = {}
    for number, instruction, index in found.aliases:
        seen.setdefault(number, set()).add((instruction, index))
    root = module.entry.root
    allocations = []
    for one in found.allocations:
        slices = [Slice(values[n], offset, size) for n, offset, size in one.assigned if n in values]
        if len(slices) != len(one.assigned):
            notes.append(f"allocation {one.number} holds buffers without a defining instruction")
        is_parameter = one.parameter_number is not None
        allocations.append(
            Allocation(
                number=one.number,
                bytes=one.bytes,
                memory_space=one.memory_space,
                is_parameter=is_parameter,
                parameter_number=one.parameter_number,
                parameter_index=one.parameter_index,
                is_aliased=is_parameter and one.maybe_live_out,
                is_output=any((root, ()) in part.value.positions for part in slices),
                is_constant=one.is_constant,
                is_thread_local=one.is_thread_local,
                is_tuple=one.is_tuple,
                maybe_live_out=one.maybe_live_out,
                slices=tuple(slices),
            )
        )
    return Assignment(
        module=module,
        backend=backend_of(module),
        chip=None,
        values=tuple(sorted(values.values(), key=lambda value: value.number)),
        buffers=_buffers(values, places, seen),
        schedule=flatten(module).instructions,
        allocations=tuple(allocations),
        notes=tuple(notes),
        is_computed=False,
    )


_MERGING = frozenset({"while", "conditional"})
"""Opcodes whose results may come from several places, so that their values are phis."""


def _looped(module: Module) -> set[Instruction]:
    """The parameters of loops, whose values come from before the loop and from the turn before."""
    return {
        parameter
        for loop in module.instructions()
        if loop.opcode == "while"
        for callee in loop.called_computations
        for parameter in callee.parameters
    }


def _part(instruction: Instruction | None, index: tuple[int, ...]) -> Shape | None:
    if instruction is None or instruction.shape is None:
        return None
    try:
        return instruction.shape.subshape(index)
    except IndexError:
        return None


def _compute_the_rest(module: Module, values: dict[int, Value], notes: list[str]) -> None:
    """Live ranges, uses and positions, which the proto lacks, as they follow from the module."""
    try:
        computed = {(value.name, value.index): value for value in assign(module).values}
    except MemoryModelError as error:
        notes.append(f"live ranges and uses are unknown: {error}")
        return
    for value in values.values():
        other = computed.get((value.name, value.index))
        if other is None or value.instruction is None:
            continue
        value.live_range = other.live_range
        for place, index in other.positions:
            if (place, index) != (value.instruction, value.index):
                value.add_position(place, index)
        for use in other.uses:
            value.add_use(
                use.instruction if use.instruction is not None else use.name,
                use.operand_number,
                use.operand_index,
            )
    notes.append(
        "live ranges, uses and positions are computed from the module, since the proto does not have them"
    )


def _buffers(
    values: dict[int, Value],
    places: dict[tuple[Instruction | None, tuple[int, ...]], Value],
    seen: dict[int, set[tuple[Instruction | None, tuple[int, ...]]]],
) -> tuple[tuple[Value, ...], ...]:
    """Sets of values that must share memory: a value and those defined at its positions."""
    leader = {number: number for number in values}

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for number, others in seen.items():
        for place in others:
            other = places.get(place)
            if other is not None and number in leader:
                a, b = find(number), find(other.number)
                leader[max(a, b)] = min(a, b)
    groups: dict[int, list[Value]] = {}
    for number in sorted(values):
        groups.setdefault(find(number), []).append(values[number])
    return tuple(map(tuple, groups.values()))
