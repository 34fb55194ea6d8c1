"""Values that are equal on all devices of a group, so that summing them over the group is needless."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from hlotext.analysis import Communication, fact
from hlotext.analysis.entries import aliases_of
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.replica_groups import ReplicaGroupList
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding
from hlotext.lint.loop_state import members
from hlotext.lint.rounds import MEMORY, Purity
from hlotext.lint.rule import Context, make_context
from hlotext.lint.taken_apart import updates_of

_OWN = frozenset({"partition-id", "replica-id"})
EQUALISING = frozenset({"all-gather", "all-reduce", "collective-broadcast"})
"""Kinds whose results all devices of a group have alike."""
_PURE = ROLES.keys() | {"tuple", "constant"} | {"iota"}
"""Opcodes of which nothing is asked but equal operands."""
_BY_ELEMENT = traits.TUPLES | traits.CONTROL_FLOW | {"parameter"}
"""Opcodes of tuples of which an element may be equal and another one not."""
_MOST_ROUNDS = 20


def is_of_group(one: Instruction, groups: Sequence[Sequence[int]]) -> bool:
    """True if an instruction reads a table of one number per device, and all devices of a group find the same there.

    The partitioner looks up the offset of a device's part so; devices along an axis that splits nothing have one offset.
    """
    if one.opcode != "dynamic-slice" or len(one.operands) != 2:
        return False
    table, device = one.operands
    if table.opcode != "constant" or device.opcode != "partition-id" or table.literal is None:
        return False
    numbers = table.literal.known_array
    if numbers is None or numbers.ndim != 1:
        return False
    return all(
        len({int(numbers[device]) if device < len(numbers) else None for device in group}) == 1
        for group in groups
    )


class EqualPurity(Purity):
    """Determines computations with equal results on devices with equal arguments: pure, and independent of device ids."""

    def is_pure(self, instruction: Instruction) -> bool:
        if instruction.attributes.get("custom_call_target") in MEMORY:
            return True  # what stands there is written before it is read
        return instruction.opcode not in _OWN and super().is_pure(instruction)


class Equal:
    """The instructions of a module with equal results on all devices of each group."""

    def __init__(
        self,
        context: Context,
        groups: Sequence[Sequence[int]],
        name: str,
        purity: EqualPurity,
        replicated: Collection[Instruction],
    ) -> None:
        self._begun = context.communication_of
        self._replicated = replicated
        self._groups = groups
        self._name = name
        self._purity = purity
        self._given: dict[Instruction, tuple[bool, ...]] = {}
        self._is_form_equal: dict[tuple[int, int], bool] = {}
        self.found: set[Instruction] = set()
        self._run(context.module.entry, None)

    def state(self) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
        """Yields the elements of loop state that are equal in every iteration, for the loop and its computations."""
        for loop, given in self._given.items():
            places = [loop, *(one for body in loop.called_computations for one in body.parameters)]
            for index, is_equal in enumerate(given):
                if is_equal:
                    yield from ((one, (index,)) for one in places)

    def _run(self, computation: Computation, state: Sequence[bool] | None) -> None:
        """Goes through a computation; `state` says which elements of its parameter are equal, None for the entry."""
        found = self.found
        if state is not None:  # of the round before
            found.difference_update(computation)
        for one in computation:
            if one.opcode != "get-tuple-element":
                is_equal = self._is_equal(one, state)
            elif (made := one.operands[0]).opcode in _BY_ELEMENT:
                is_equal = self._is_element_equal(one, state)
            else:
                is_equal = made in found
            if is_equal:
                found.add(one)

    def _is_equal(self, one: Instruction, state: Sequence[bool] | None) -> bool:
        opcode, found = one.opcode, self.found
        if opcode == "parameter":
            return state is None and self._is_argument_equal(one)
        if opcode in _OWN:
            return False
        begun = self._begun.get(one)
        if begun is not None:
            return self._is_sent_equal(begun)
        if opcode == "while":
            self._loop(one)
            return False
        for operand in one.operands:
            if operand not in found:
                return opcode == "dynamic-slice" and is_of_group(one, self._groups)
        return opcode in _PURE or self._purity.is_pure(one)

    def _is_sent_equal(self, one: Communication) -> bool:
        if all(operand in self.found for operand in one.start.operands) and one.kind in EQUALISING:
            return True
        return one.kind in EQUALISING and members(one.groups) == self._name

    def _is_element_equal(self, one: Instruction, state: Sequence[bool] | None) -> bool:
        made, index = one.operands[0], one.attributes.get("index")
        if not isinstance(index, int):
            return False
        opcode = made.opcode
        if opcode == "parameter" and state is not None:
            return index < len(state) and state[index]
        if opcode == "tuple":
            return made.operands[index] in self.found
        if opcode == "while":
            given = self._given.get(made, ())
            return index < len(given) and given[index]
        return made in self.found

    def _loop(self, loop: Instruction) -> None:
        """Finds elements of a loop's state that stay equal: initially equal, and computed from such alone."""
        body, first = loop.attributes.get("body"), loop.operands[0]
        if not isinstance(body, Computation) or body.root.opcode != "tuple" or first.opcode != "tuple":
            return
        state = [operand in self.found for operand in first.operands]
        for _ in range(_MOST_ROUNDS):
            self._run(body, state)
            after = [
                was and given in self.found for was, given in zip(state, body.root.operands, strict=False)
            ]
            if after == state:
                break
            state = after
        else:
            state = [False] * len(state)
            self._run(body, state)
        self._given[loop] = tuple(state)

    def _is_argument_equal(self, parameter: Instruction) -> bool:
        """True if each group holds the same part of an argument."""
        sharding = parameter.sharding
        if sharding is None:
            return parameter in self._replicated
        if sharding.is_replicated:
            return True
        if not isinstance(sharding, OpSharding):
            return False
        key = id(sharding), id(parameter.shape)  # of equal texts one object
        if key not in self._is_form_equal:
            part = _parts(sharding, parameter)
            self._is_form_equal[key] = part is not None and all(
                len({part.get(d) for d in group}) == 1 for group in self._groups
            )
        return self._is_form_equal[key]


def _parts(sharding: OpSharding, parameter: Instruction) -> dict[int, str] | None:
    """The part of an argument that each device holds."""
    local, tiles = parameter.shape, sharding.tile_dimensions
    if local is None or not local.is_array or len(tiles) != local.rank:
        return None
    dimensions = tuple(size * count for size, count in zip(local.dimensions, tiles, strict=True))
    try:
        found = sharding.device_indices(Shape(local.element_type, dimensions))
    except ValueError:
        return None
    return {device: str(part) for device, part in found.items()}


def groups_of(one: Communication) -> Sequence[Sequence[int]] | None:
    """Returns the device groups of a collective; None if they are unknown."""
    try:
        found = one.groups.full_list() if one.groups is not None else None
    except ValueError:
        return None
    return found.replica_groups if isinstance(found, ReplicaGroupList) and found.replica_groups else None


@fact
def replicated_state(module: Module) -> frozenset[Instruction]:
    """Returns the arguments that a step keeps equal on all devices, for a text that lost its shardings, as in jaxlib
    0.12.

    This is the largest set of arguments whose new values are computed only from the set, from values equal on all
    devices, and from collectives over all devices. Arguments that are equal before a step then remain equal, whereas a
    shard is updated from the device's own values. Empty if the text has shardings, or has fewer than two devices.
    """
    devices = int(module.attributes.get("num_partitions", 1))
    entry = module.entry
    if devices < 2 or any(parameter.sharding is not None for parameter in entry.parameters):
        return frozenset()
    context = make_context(module)
    results = new_values(context)
    name = next((members(one.groups) for one in context.communications if _is_over_all(one, devices)), None)
    if name is None or entry.root.opcode != "tuple":
        return frozenset()
    kept = set(results)
    for _ in range(_MOST_ROUNDS):
        equal = Equal(context, [range(devices)], name, EqualPurity(), kept).found
        left = {parameter for parameter in kept if entry.root.operands[results[parameter]] in equal}
        if left == kept:
            return frozenset(kept)
        kept = left
    return frozenset()


def _is_over_all(one: Communication, devices: int) -> bool:
    groups = groups_of(one)
    return groups is not None and len(groups) == 1 and len(groups[0]) == devices


def new_values(context: Context) -> dict[Instruction, int]:
    """Returns the index in the result of each updated argument's new value."""
    parameters = {p.parameter_number: p for p in context.arguments}
    found = {
        parameters[alias.parameter_number]: alias.output_index[0]
        for alias in aliases_of(context.module)
        if alias.parameter_number in parameters and len(alias.output_index) == 1
    }
    found.update({one.parameter: one.index[0] for one in updates_of(context) if len(one.index) == 1})
    return found


def equal_operands(ones: Iterable[Communication], context: Context) -> list[Communication]:
    """Returns the collectives whose operands are already equal on all their devices."""
    found, known, purity = [], dict[str, Equal](), EqualPurity()
    for one in ones:
        groups = groups_of(one)
        if groups is None or len(groups[0]) < 2:
            continue
        name = members(one.groups)
        if name not in known:
            known[name] = Equal(context, groups, name, purity, replicated_state(context.module))
        if one.start.operands and all(operand in known[name].found for operand in one.start.operands):
            found.append(one)
    return found
