"""Devices that each compute a scalar result without the others, so that all that it depends on is whole on each of them.

A scalar cannot be sharded: every device returns the same value. Where no collective joins two devices, each computes that
value from its own arguments alone. Arguments of which they held different parts would give different values. The same holds
of what is computed after collectives along an axis, which leave their sums to all of its devices: of experts, say, whose
outputs are summed over the devices that otherwise do the same. A tensor-parallel layer is no such work, for its weights are
on the other side of the collective.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from hlotext.analysis import CallGraph
from hlotext.analysis.devices import devices_of, participant_groups
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import NATIVE_ASYNC
from hlotext.ir.values.tile_assignment import MOST_DEVICES
from hlotext.lint.equal import EQUALISING, Equal, EqualPurity, is_of_group, new_values
from hlotext.lint.loop_state import members
from hlotext.lint.rule import Context

_WHOLE = frozenset({"opt-barrier"})
"""Opcodes that give each element of a tuple on."""
_BY_HAND = "shard_map"
"""Part of the op_name of what is written for each device, whose results JAX may be told to take for equal."""

_Groups = Sequence[Sequence[int]]
_Place = tuple[Instruction, int | None]
"""A result, or one element of a tuple."""


@attrs.frozen
class AlikeWork:
    """Devices that compute the same values, and these values."""

    groups: tuple[tuple[int, ...], ...]
    """Groups of such devices, all of one size."""
    instructions: frozenset[Instruction]
    """The instructions whose results are the same on all devices of a group."""
    arrays: frozenset[Instruction | tuple[Instruction, tuple[int, ...]]]
    """The arrays among these that the program computes, and elements of the state of loops that are such."""
    is_joined: bool
    """True if collectives join the devices of a group for other work."""


def alike_by_results(context: Context) -> AlikeWork | None:
    """Returns devices that compute the same scalar results independently; None if there are none, or it is unknown."""
    module = context.module
    devices = devices_of(module)
    count = devices.partitions
    if devices.replicas != 1 or count is None or not 1 < count <= MOST_DEVICES:
        return None
    if not traits.HOST_EFFECTS.isdisjoint(context.census.by_opcode):
        return None
    scalars = _scalars(module.entry)
    joins = _joins(context, count) if scalars else None
    if joins is None:
        return None
    joined = _joined(joins.values(), count)
    if len(joined) > 1:
        if len({len(one) for one in joined}) > 1:
            return None
        return _alike(context, tuple(zip(*joined, strict=True)), "", scalars, frozenset())
    # Collectives join all devices, but perhaps none along an axis of the mesh on the way to the result.
    axes = {members(one.groups): one for one in context.communications if one.pairs is None}
    found = [
        work
        for name, one in axes.items()
        if _is_axis(groups := joins[one.start], count)
        if (work := _alike(context, groups, name, scalars, _crossing(joins, groups))) is not None
    ]
    return max(found, key=lambda work: context.prices.together(work.instructions), default=None)


def _is_axis(groups: _Groups, count: int) -> bool:
    """True for groups of one size, of which each device is in one, and that are not all of them together."""
    return (
        1 < len(groups) < count
        and len({len(one) for one in groups}) == 1
        and len({device for one in groups for device in one}) == count == sum(map(len, groups))
    )


def _alike(
    context: Context,
    groups: _Groups,
    name: str,
    scalars: Iterable[Instruction],
    crossing: Collection[Instruction],
) -> AlikeWork | None:
    """The work that the devices of each group do alike, if only the crossing collectives join them on the way to a scalar."""
    arguments = {one for scalar in scalars for one in _arguments(scalar, context.graph, groups, crossing)}
    if not arguments:
        return None
    if crossing:
        arguments = _with_gradients(arguments, context, groups, crossing)
    equal = Equal(context, groups, name, EqualPurity(), arguments)
    return AlikeWork(
        tuple(map(tuple, groups)),
        frozenset(equal.found),
        frozenset((*_arrays(equal.found), *equal.state())),
        bool(crossing),
    )


def _with_gradients(
    arguments: set[Instruction], context: Context, groups: _Groups, crossing: Collection[Instruction]
) -> set[Instruction]:
    """With arguments that the new values of these depend on: what is whole on each device stays so, and equal."""
    updated, root = new_values(context), context.module.entry.root
    if root.opcode != "tuple":
        return arguments
    known, pending = set(arguments), set(arguments)
    while pending:
        results = [root.operands[updated[one]] for one in pending if one in updated]
        pending = {
            one for result in results for one in _arguments(result, context.graph, groups, crossing)
        } - known
        known |= pending
    return known


def _crossing(joins: Mapping[Instruction, _Groups], groups: _Groups) -> frozenset[Instruction]:
    """The collectives that join two devices of one of these groups."""
    home = {device: number for number, group in enumerate(groups) for device in group}
    return frozenset(
        one
        for one, joined in joins.items()
        if any(len({home.get(device) for device in each}) < len(set(each)) for each in joined)
    )


def _arrays(alike: Iterable[Instruction]) -> Iterator[Instruction | tuple[Instruction, tuple[int, ...]]]:
    for one in alike:
        index = one.attributes.get("index")
        if one.opcode == "get-tuple-element" and isinstance(index, int):
            yield one.operands[0], (index,)
        elif one.opcode != "parameter":
            yield one


def _scalars(entry: Computation) -> list[Instruction]:
    root = entry.root
    results = root.operands if root.opcode == "tuple" else (root,)
    return [one for one in results if one.shape is not None and one.shape.is_array and not one.shape.rank]


def _joins(context: Context, count: int) -> dict[Instruction, _Groups] | None:
    """The devices that each collective joins, by its start; None if the text does not tell of each whom it joins."""
    found: dict[Instruction, _Groups] = {}
    for one in context.communications:
        groups = one.pairs if one.pairs is not None else participant_groups(context.module, one.instruction)
        if groups is None or any(not 0 <= device < count for group in groups for device in group):
            return None
        found[one.start] = groups
    return found


def _joined(joins: Iterable[_Groups], count: int) -> list[list[int]]:
    """The devices that collectives join, directly or through others."""
    first = list(range(count))

    def leader(device: int) -> int:
        while first[device] != device:
            first[device] = first[first[device]]
            device = first[device]
        return device

    for groups in joins:
        for group in groups:
            for device in group:
                first[leader(device)] = leader(group[0])
    found: dict[int, list[int]] = {}
    for device in range(count):
        found.setdefault(leader(device), []).append(device)
    return list(found.values())


def _arguments(
    scalar: Instruction, graph: CallGraph, groups: _Groups, crossing: Collection[Instruction]
) -> Iterable[Instruction]:
    """The arguments that a result depends on, but for what comes from these collectives; none if a part of it is written by
    hand for each device, or depends on its number in another way than all devices of its group."""
    entry = scalar.computation
    start: _Place = (scalar, None)
    pending, seen, found = [start], {start}, []
    while pending:
        one, index = pending.pop()
        if one.metadata is not None and _BY_HAND in one.metadata.op_name.split("/"):
            return ()
        if one in crossing or is_of_group(one, groups):
            continue
        if one.opcode in traits.DEVICE_IDS:
            return ()
        if one.opcode == "parameter" and one.computation is entry:
            found.append(one)
            continue
        for place in _read(one, index, graph):
            if place not in seen:
                seen.add(place)
                pending.append(place)
    return found


def _read(one: Instruction, index: int | None, graph: CallGraph) -> Iterator[_Place]:
    """The places that a result, or an element of it, is computed from. A computation with several callers is not left."""
    opcode = one.opcode
    bodies = one.called_computations
    if opcode == "get-tuple-element":
        number = one.attributes.get("index")
        yield one.operands[0], number if isinstance(number, int) else None
    elif opcode == "tuple" and index is not None:
        yield one.operands[index], None
    elif opcode in _WHOLE:
        yield one.operands[0], index
    elif index is not None and NATIVE_ASYNC.get(opcode, opcode) in EQUALISING:
        start = one.operands[0] if opcode in traits.DONES else one
        # Collectives of several arrays that XLA combined: their results have nothing to do with each other.
        yield start.operands[index if len(start.operands) > 1 else 0], None
    elif opcode == "parameter":
        edges = graph.callers.get(one.computation, ()) if one.computation is not None else ()
        if len(edges) == 1:
            yield from _handed(edges[0].caller, one, index)
    elif opcode in traits.CONTROL_FLOW or (opcode == "fusion" and index is not None):
        for body in bodies:
            yield body.root, None if body is one.attributes.get("condition") else index
        if opcode == "while":
            yield one.operands[0], index
        elif opcode == "conditional":
            yield one.operands[0], None
    else:
        for operand in one.operands:
            yield operand, None


def _handed(caller: Instruction, parameter: Instruction, index: int | None) -> Iterator[_Place]:
    """The value that the caller of a computation gives for a parameter."""
    operands: Sequence[Instruction] = caller.operands
    if caller.opcode == "while":
        yield caller, index
    elif caller.opcode == "conditional":
        number = 1 + caller.called_computations.index(parameter.computation)
        yield operands[number], index
    elif (number := parameter.parameter_number or 0) < len(operands):
        yield operands[number], index
