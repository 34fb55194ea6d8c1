"""The arguments that a result is computed from, element by element or by changing a part: what an update may replace."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

import attrs

from hlotext.analysis.moved import moved
from hlotext.analysis.views import VIEWS, Value, array_of, fetched, source
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape

_MOST_STEPS = 3000
"""Bound on instructions visited upstream of one result."""
_MOST_IN_ROUND = 300
"""Likewise in the body of a loop."""
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_VIEWS = VIEWS | {"transpose"}
_COPIES = frozenset({"copy", "copy-start"})
_ADDS = frozenset({"add", "subtract"})


class Change(enum.Flag):
    """Kinds of operations between an argument and a result."""

    NONE = 0
    ALL = 1
    """Each element is computed anew."""
    PART = 2
    """Some elements are, the others stay."""
    LOOP = 4
    """A loop, which hands each round's value to the next one."""
    SLICES = 8
    """A loop that reads slices of one array and writes their new values to another, as `lax.scan` does from xs to ys."""
    ROLL = 16
    """All but some elements stay, in other places: `concatenate([cache[:, 1:], new], 1)`."""
    SCALED = 32
    """Each element is more than added to or subtracted from."""
    REORDER = 64
    """Whole rows in another order, some perhaps twice, as a beam search does; alone it may be a batch of a data set."""


@attrs.frozen
class _Followed:
    """An array that is followed in place of the one of the result."""

    shape: Shape
    place: int | None
    """Its place in a stack, which has the shape; None for the part of a device."""


Place = tuple[int | None, tuple[int, ...]]
"""An argument's number and the index of an array in it."""
_Reached = tuple[Value, tuple[int, ...], Change, tuple[Instruction, ...], _Followed | None]


@attrs.frozen
class Origin:
    """An argument from which a result is computed, elementwise or by updating a part of it."""

    parameter: Instruction
    part: tuple[int, ...]
    change: Change
    copies: tuple[Instruction, ...]
    is_retyped: bool
    """True if its elements have another type than the result's."""

    @property
    def place(self) -> Place:
        return self.parameter.parameter_number, self.part

    @property
    def is_decisive(self) -> bool:
        """True if only a new value of the argument is computed in this way; elementwise sums may be any array of this
        shape.
        """
        return not self.is_retyped and (Change.ALL not in self.change or bool(self.change & _OF_LOOPS))


_OF_LOOPS = Change.LOOP | Change.SLICES


def origins_of(
    root: Instruction,
    index: tuple[int, ...],
    array: Shape,
    apart: Mapping[Instruction, Value],
    with_moved: bool = False,
) -> list[Origin]:
    """Returns the arguments of which an element of the result may be the new value, nearest first.

    An argument that is decisive is returned alone.
    """
    found: list[Origin] = []
    entry = root.computation
    none: tuple[Instruction, ...] = ()
    level: list[_Reached] = [(Value(root), index, Change.NONE, none, None)]
    seen: set[tuple[Instruction, tuple[int, ...], _Followed | None]] = set()
    steps = 0
    while level and steps < _MOST_STEPS:
        following: list[_Reached] = []
        for value, part, change, copies, instead in level:
            steps += 1
            instruction = value.instruction
            key = instruction, part, instead
            if key in seen:
                continue
            seen.add(key)
            if instruction.opcode == "parameter" and not value.fusions and instruction.computation is entry:
                shape = _part(instruction.shape, part)
                if instead is None and shape is not None and shape.dimensions == array.dimensions:
                    is_retyped = shape.without_layout() != array.without_layout()
                    one = Origin(instruction, part, change, copies, is_retyped)
                    if Change.REORDER in change and not _is_reordered_state(change):
                        continue
                    if change:
                        found.append(one)
                    if not found and not is_retyped:  # what is given on unchanged is no update
                        return []
                    if one.is_decisive and all(other.is_retyped for other in found[:-1]):
                        return [one]
                continue
            whole = apart.get(instruction) if not value.fusions else None
            if whole is not None:
                following.append((whole, (), change | Change.PART, copies, instead))
                continue
            if instruction.opcode in _COPIES and not value.fusions:
                copies = (*copies, instruction)
            stack = _stack(value, array, instead) if with_moved else None
            if (entered := stack or _of_device(value, array, instead)) is not None:
                following.append((entered[0], (), change, copies, entered[1]))
                continue
            followed = instead.shape if instead is not None else array
            following += [
                (v, p, change | now, copies, instead)
                for v, p, now in _before(value, part, followed, with_moved)
            ]
        level = following
    return found


def _is_reordered_state(change: Change) -> bool:
    """True if new elements come in besides, or a loop hands the array on: what is computed of some rows is no state."""
    return Change.LOOP in change or (bool(change & (Change.PART | Change.ROLL)) and Change.ALL not in change)


def _of_device(
    value: Value, array: Shape, instead: _Followed | None
) -> tuple[Value, _Followed | None] | None:
    """The parts that are gathered to an array, or the array that a device takes its part of. None for other values."""
    one = value.instruction
    given = array_of(one.operands[0].shape) if one.operands else None
    made = array_of(one.shape)
    if instead is None:
        chain = one.async_chain if one.opcode == "async-done" else ()
        sent = chain[0].operands if chain else one.operands
        is_gathered = "all-gather" in (
            one.opcode,
            wrapped.opcode if (wrapped := one.async_wrapped_instruction) else "",
        )
        shard = array_of(sent[0].shape) if is_gathered and len(sent) == 1 else None
        if made is None or made.dimensions != array.dimensions:
            return None
        return (Value(sent[0], value.fusions), _Followed(shard, None)) if shard is not None else None
    if instead.place is not None or one.opcode != "dynamic-slice" or given is None or made is None:
        return None
    if made.dimensions != instead.shape.dimensions or given.dimensions != array.dimensions:
        return None
    return value.operands()[0], None


def _stack(value: Value, array: Shape, stacked: _Followed | None) -> tuple[Value, _Followed | None] | None:
    """The stack that an array is taken from, with its place there; or the array that was put there. None for other values."""
    one = value.instruction
    given = one.operands[0].shape if one.operands else None
    if one.shape is None or given is None or not one.shape.is_array or not given.is_array:
        return None
    if stacked is not None:
        number, whole = stacked.place, stacked.shape
        if number is None:
            return None
        if one.opcode == "dynamic-update-slice" and one.shape.dimensions == whole.dimensions:
            return _put(value, number, whole)
        is_put = one.opcode == "concatenate" and one.shape.dimensions == whole.dimensions
        if not is_put or len(one.operands) != whole.dimensions[0] or one.attributes.get("dimensions") != (0,):
            return None
        return value.operands()[number], None
    cuts = one.attributes.get("slice")
    if one.opcode != "slice" or cuts is None or one.shape.element_count != array.element_count:
        return None
    if one.shape.dimensions[:1] != (1,) or one.shape.dimensions[1:] != given.dimensions[1:]:
        return None
    return value.operands()[0], _Followed(given, cuts.dimensions[0].start)


def _put(value: Value, number: int, whole: Shape) -> tuple[Value, _Followed | None] | None:
    """The array that is put at a place of a stack, if it is this one, else the stack before: TPUs fill it one by one."""
    before, array, first = value.operands()[:3]
    shape = array.instruction.shape
    if shape is None or not shape.is_array or shape.dimensions != (1, *whole.dimensions[1:]):
        return None
    literal = source(first, _VIEWS | {"convert"}).instruction.literal
    place = str(literal) if literal is not None and not literal.is_elided else ""
    if not place.isdigit():
        return None
    return (array, None) if int(place) == number else (before, _Followed(whole, number))


def _part(shape: Shape | None, index: tuple[int, ...]) -> Shape | None:
    for number in index:
        if shape is None or number >= len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[number]
    return shape


def _before(
    value: Value, part: tuple[int, ...], array: Shape, with_moved: bool = False
) -> Iterator[tuple[Value, tuple[int, ...], Change]]:
    """Yields the sources of a part of a value's elements, with the operations in between."""
    instruction, fusions = value.instruction, value.fusions
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "tuple":
        if part and part[0] < len(operands):
            yield Value(operands[part[0]], fusions), part[1:], Change.NONE
    elif opcode == "get-tuple-element":
        index = instruction.attributes.get("index")
        if isinstance(index, int):
            yield Value(operands[0], fusions), (index, *part), Change.NONE
    elif opcode in ("fusion", "call") and instruction.called_computations:
        callee = instruction.called_computations[0]
        if len(callee):
            yield Value(callee.root, (*fusions, instruction)), part, Change.NONE
    elif opcode == "parameter" and fusions:
        number, handed = instruction.parameter_number, fusions[-1].operands
        if number is not None and number < len(handed):
            yield Value(handed[number], fusions[:-1]), part, Change.NONE
    elif opcode == "while":
        # What comes out of a loop is what went in, changed by its rounds.
        body = instruction.attributes.get("body")
        if not isinstance(body, Computation) or not len(body):
            yield Value(operands[0], fusions), part, Change.ALL | Change.LOOP
            return
        rounds = (
            _of_a_round(body, part, array, with_moved) & ~Change.SLICES
        )  # each round's new array is the next one's
        yield Value(operands[0], fusions), part, rounds | Change.LOOP if rounds else Change.NONE
        if (sliced := _of_slices(body, part, with_moved)) is not None:
            slot, change = sliced
            yield Value(operands[0], fusions), (slot,), change | Change.SLICES
    elif opcode in _IN_PLACE and operands:
        yield Value(operands[0], fusions), part, Change.PART
    elif (before := fetched(instruction)) is not None:
        yield Value(before, fusions), (), Change.NONE
    elif opcode in _VIEWS and operands:
        if _is_as_large(operands[0], array):
            yield Value(operands[0], fusions), () if opcode == "copy-start" else part, Change.NONE
    elif with_moved and (joined := moved(value)):
        for whole, is_new in joined:
            yield whole, (), Change.ROLL if is_new else Change.REORDER
    elif (sent := _summed(instruction)) and (len(sent) == 1 or part[:1] < (len(sent),)):
        # A mean over the devices computes each element anew, of those of the others.
        yield Value(sent[part[0] if part else 0], fusions), part[1:], Change.ALL
    elif opcode in ELEMENTWISE:
        # Compilers turn the kernels of convolutions, and with them what updates them.
        now = instruction.shape.dimensions if instruction.shape is not None else ()
        change = Change.NONE if opcode == "convert" else Change.ALL
        if change and opcode not in _ADDS:
            change |= Change.SCALED
        for operand in operands:
            if operand.shape is not None and operand.shape.dimensions == now and _is_as_large(operand, array):
                yield Value(operand, fusions), part, change


def _summed(one: Instruction) -> tuple[Instruction, ...]:
    """The operands of an all-reduce, also of its done; empty for other operations."""
    if one.opcode == "all-reduce":
        return tuple(one.operands)
    wrapped = one.async_wrapped_instruction if one.opcode == "async-done" else None
    return (
        tuple(one.async_chain[0].operands) if wrapped is not None and wrapped.opcode == "all-reduce" else ()
    )


def _is_as_large(operand: Instruction, array: Shape) -> bool:
    """True for an array of as many elements, and for a tuple, of which an element is followed."""
    shape = operand.shape
    return shape is None or not shape.is_array or shape.element_count == array.element_count


def _of_a_round(body: Computation, part: tuple[int, ...], array: Shape, with_moved: bool = False) -> Change:
    """Operations of one iteration on an element of loop state, along the shortest path."""
    level = [(Value(body.root), part, Change.NONE)]
    seen: set[tuple[Instruction, tuple[int, ...]]] = set()
    while level and len(seen) < _MOST_IN_ROUND:
        following: list[tuple[Value, tuple[int, ...], Change]] = []
        for value, index, change in level:
            instruction = value.instruction
            if (instruction, index) in seen:
                continue
            seen.add((instruction, index))
            if instruction.opcode == "parameter" and not value.fusions and instruction.computation is body:
                if index == part:
                    return change
                continue
            following += [(v, p, change | now) for v, p, now in _before(value, index, array, with_moved)]
        level = following
    return Change.ALL


def _of_slices(
    body: Computation, part: tuple[int, ...], with_moved: bool = False
) -> tuple[int, Change] | None:
    """The slot whose slices become those of this one in a loop's body, and the operations in between; None if there is none.

    That slot stays as it is, and this one gets a slice in each iteration.
    """
    slot = part[0] if len(part) == 1 else None
    if slot is None or body.root.opcode != "tuple" or slot >= len(body.root.operands):
        return None
    given = source(Value(body.root.operands[slot]), VIEWS)
    if given.instruction.opcode != "dynamic-update-slice":
        return None
    kept, written = given.operands()[:2]
    array = array_of(written.instruction.shape)
    if _slot_of(kept, body) != slot or array is None:
        return None
    level: list[tuple[Value, tuple[int, ...], Change]] = [(written, (), Change.NONE)]
    seen: set[tuple[Instruction, tuple[int, ...]]] = set()
    while level and len(seen) < _MOST_IN_ROUND:
        following: list[tuple[Value, tuple[int, ...], Change]] = []
        for value, index, change in level:
            if (value.instruction, index) in seen:
                continue
            seen.add((value.instruction, index))
            if value.instruction.opcode == "dynamic-slice":
                taken = _slot_of(value.operands()[0], body)
                if taken is not None and change and _slot_of(Value(body.root.operands[taken]), body) == taken:
                    return taken, change
                continue
            following += [(v, p, change | now) for v, p, now in _before(value, index, array, with_moved)]
        level = following
    return None


def _slot_of(value: Value, body: Computation) -> int | None:
    """The slot of a loop's state that a value of its body is; None for any other value."""
    value = source(value, VIEWS)
    one = value.instruction
    if value.fusions or one.opcode != "get-tuple-element" or one.computation is not body:
        return None
    index = one.attributes.get("index")
    state = one.operands[0]
    return (
        index
        if state.opcode == "parameter" and state.computation is body and isinstance(index, int)
        else None
    )
