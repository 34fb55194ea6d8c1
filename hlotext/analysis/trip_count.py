"""Trip counts of while loops, where the text determines them."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.analysis.sizes import arrays_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.types import ElementType

_PASSED_ON = traits.KEEPS_ELEMENTS | traits.COPY_HALVES
"""Opcodes whose (first) result has the value of their operand, if that is a scalar."""
_SAME_TUPLE = (traits.KEEPS_ELEMENTS - {"reshape"}) | {"opt-barrier"}
_CALLS = frozenset({"fusion", "call"})
_MOST_STEPS = 200
"""Maximum number of instructions between two values that are followed."""


def trip_count(loop: Instruction) -> int | None:
    """Returns the trip count of a while, from `known_trip_count` or its induction variable, or None if unknown.

    An induction variable starts at a constant, is incremented by a constant in the body, and is compared with a
    constant or with a loop-invariant element of the state that starts as a constant (XLA's
    `ComputeWhileLoopTripCount`). Also returns None if the counter would overflow its type.
    """
    known = _known_trip_count(loop)
    return known if known is not None else counted_trips(loop)


def _known_trip_count(loop: Instruction) -> int | None:
    config = loop.backend_config
    if config is None or "known_trip_count" not in config.text:
        return None
    try:
        count = int(config.json()["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    return count if 0 <= count < 1 << 63 else None  # an int64 in XLA's `KnownTripCount`


def condition_runs(loop: Instruction, trips: int | None) -> int | None:
    """Returns how often the condition of a while runs when the body runs `trips` times; None if `trips` is.

    XLA's CPU and GPU runtimes run the body `known_trip_count` times and never the condition (`WhileThunk`). Without that
    annotation, and on TPU, where layouts are tiled, the condition runs once more than the body.
    """
    if trips is None:
        return None
    return 0 if _known_trip_count(loop) is not None and not _is_tiled(loop) else trips + 1


def _is_tiled(loop: Instruction) -> bool:
    arrays = (array for _, array in arrays_of(loop.shape))
    return any(array.layout is not None and array.layout.tiles for array in arrays)


def counted_trips(loop: Instruction) -> int | None:
    """Returns the trip count of a counted loop, ignoring `known_trip_count`, or None if the loop is not counted."""
    found = counter(loop)
    return found.trips if found is not None else None


@attrs.frozen
class Counter:
    """The induction variable of a counted loop."""

    element: int
    first: int
    """Its value before the first iteration."""
    step: int
    """The number that each iteration adds."""
    trips: int


def counter(loop: Instruction) -> Counter | None:
    """Returns the induction variable of a loop, or None if the loop is not counted."""
    condition, body = loop.attributes.get("condition"), loop.attributes.get("body")
    if not isinstance(condition, Computation) or not isinstance(body, Computation) or not loop.operands:
        return None
    if not len(condition) or not len(body):
        return None
    test = _followed(_Value(condition.root))
    return _counted(loop, body, test) if test is not None else None


def most_trips(loop: Instruction) -> int | None:
    """Returns an upper bound on the trip count of a while, or None if unknown.

    Handles conjunctions such as `and(not done, i < n)`: the bound is the smallest among the operands that compare an
    induction variable.
    """
    known = trip_count(loop)
    if known is not None:
        return known
    condition, body = loop.attributes.get("condition"), loop.attributes.get("body")
    if not isinstance(condition, Computation) or not isinstance(body, Computation) or not loop.operands:
        return None
    if not len(condition) or not len(body):
        return None
    pending, found = [_Value(condition.root)], []
    for _ in range(_MOST_STEPS):
        if not pending:
            break
        test = _followed(pending.pop())
        if test is not None and test.instruction.opcode == "and":
            pending += [_Value(operand, test.calls) for operand in test.instruction.operands]
        elif test is not None and (one := _counted(loop, body, test)) is not None:
            found.append(one.trips)
    return min(found, default=None)


def _counted(loop: Instruction, body: Computation, test: _Value) -> Counter | None:
    """The counter of a comparison with a limit; None if it is not one."""
    if test.instruction.opcode != "compare" or len(test.instruction.operands) != 2:
        return None
    direction = str(test.instruction.attributes.get("direction"))
    left, right = (_linear(_Value(operand, test.calls)) for operand in test.instruction.operands)
    if left is None or right is None or direction not in _MIRRORED:
        return None
    if left.element is None or (right.element is not None and _is_kept(body, left.element)):
        left, right, direction = right, left, _MIRRORED[direction]
    if left.element is None:
        return None
    bound = right.offset
    if right.element is not None:
        first = _first(loop, right.element) if _is_kept(body, right.element) else None
        if first is None:
            return None
        bound += first
    start, step = _first(loop, left.element), _step(body, left.element)
    if start is None or step is None:
        return None
    count = _count(direction, start + left.offset, step, bound)
    if count is None or not _fits(loop, left, start, start + step * count):
        return None
    return Counter(left.element, start, step, count)


_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE", "EQ": "EQ"}
"""Each direction with the operands the other way round."""


def _count(direction: str, start: int, step: int, bound: int) -> int | None:
    """Number of `start`, `start + step`, ... that satisfy a comparison before one does not; None if infinite."""
    left = bound - start
    if direction in ("GT", "GE"):
        left, step, direction = -left, -step, _MIRRORED[direction]
    if direction == "LE":
        left += 1
    if direction in ("LT", "LE"):
        if left <= 0:
            return 0
        return -(-left // step) if step > 0 else None
    if direction == "EQ":
        if left:
            return 0
        return 1 if step else None
    if not left:
        return 0
    return left // step if step and left % step == 0 and left // step > 0 else None


def _fits(loop: Instruction, counter: _Linear, first: int, last: int) -> bool:
    """True if the counter's type holds its first and last value, and what is compared then."""
    shape = loop.operands[0].shape
    if shape is None or not shape.is_tuple or counter.element is None:
        return False
    kind: ElementType = shape.tuple_shapes[counter.element].element_type
    if not kind.is_integral:
        return False
    bits = kind.bits
    least, most = (
        (0, (1 << bits) - 1) if str(kind).startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
    )
    return all(least <= value <= most for value in (first, last, last + counter.offset))


# ---- values


@attrs.frozen
class _Value:
    """Result of an instruction in a computation entered through these calls."""

    instruction: Instruction
    calls: tuple[Instruction, ...] = ()


@attrs.frozen
class _Linear:
    """An element of a loop's state, or nothing, and a constant added."""

    element: int | None
    offset: int


def _followed(value: _Value) -> _Value | None:
    """Origin of a value through forwarding operations, fusions and calls; None if the chain does not end."""
    for _ in range(_MOST_STEPS):
        instruction, calls = value.instruction, value.calls
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in _PASSED_ON and operands:
            value = _Value(operands[0], calls)
        elif opcode in _CALLS and instruction.called_computations:
            callee = instruction.called_computations[0]
            if not len(callee):
                return None
            value = _Value(callee.root, (*calls, instruction))
        elif opcode == "parameter" and calls and instruction.parameter_number is not None:
            handed = calls[-1].operands
            if instruction.parameter_number >= len(handed):
                return None
            value = _Value(handed[instruction.parameter_number], calls[:-1])
        elif opcode == "get-tuple-element" and operands:
            made, index = _followed_once(_Value(operands[0], calls)), instruction.attributes.get("index")
            if made is None or made.instruction.opcode != "tuple" or not isinstance(index, int):
                return value
            if index >= len(made.instruction.operands):
                return None
            value = _Value(made.instruction.operands[index], made.calls)
        else:
            return value
    return None


def _followed_once(value: _Value) -> _Value | None:
    """The tuple that a value is, if it is made here or in what is called: tuples of tuples are not looked into."""
    for _ in range(_MOST_STEPS):
        instruction, calls = value.instruction, value.calls
        if instruction.opcode in _SAME_TUPLE and instruction.operands:
            value = _Value(instruction.operands[0], calls)
        elif instruction.opcode in _CALLS and instruction.called_computations:
            callee = instruction.called_computations[0]
            if not len(callee):
                return None
            value = _Value(callee.root, (*calls, instruction))
        elif instruction.opcode == "parameter" and calls and instruction.parameter_number is not None:
            handed = calls[-1].operands
            if instruction.parameter_number >= len(handed):
                return None
            value = _Value(handed[instruction.parameter_number], calls[:-1])
        else:
            return value
    return None


def _linear(value: _Value) -> _Linear | None:
    """A value as an element of the state plus a constant, or as a constant; None if it is neither."""
    offset = 0
    for _ in range(_MOST_STEPS):
        found = _followed(value)
        if found is None:
            return None
        if (number := _number(found.instruction)) is not None:
            return _Linear(None, offset + number)
        if (element := _element(found)) is not None:
            return _Linear(element, offset)
        instruction = found.instruction
        if instruction.opcode not in ("add", "subtract") or len(instruction.operands) != 2:
            return None
        first, second = (_Value(operand, found.calls) for operand in instruction.operands)
        if (added := _constant(second)) is not None:
            offset += -added if instruction.opcode == "subtract" else added
            value = first
        elif instruction.opcode == "add" and (added := _constant(first)) is not None:
            offset += added
            value = second
        else:
            return None
    return None


def _constant(value: _Value) -> int | None:
    found = _followed(value)
    return _number(found.instruction) if found is not None else None


def _element(value: _Value) -> int | None:
    """The index of the element of a loop's state that a value is."""
    instruction = value.instruction
    if instruction.opcode != "get-tuple-element" or not instruction.operands:
        return None
    state = _followed_once(_Value(instruction.operands[0], value.calls))
    index = instruction.attributes.get("index")
    if state is None or state.calls or state.instruction.opcode != "parameter":
        return None
    return index if isinstance(index, int) else None


def _first(loop: Instruction, element: int) -> int | None:
    """The constant with which an element of the state begins."""
    return _constant_of_tuple(loop.operands[0], element)


def _constant_of_tuple(instruction: Instruction, element: int) -> int | None:
    made = _followed_once(_Value(instruction))
    if made is None or made.instruction.opcode != "tuple" or element >= len(made.instruction.operands):
        return None
    found = _linear(_Value(made.instruction.operands[element], made.calls))
    return found.offset if found is not None and found.element is None else None


def _next(body: Computation, element: int) -> _Linear | None:
    """Value of a state element after one iteration."""
    made = _followed_once(_Value(body.root))
    if made is None or made.instruction.opcode != "tuple" or element >= len(made.instruction.operands):
        return None
    return _linear(_Value(made.instruction.operands[element], made.calls))


def _step(body: Computation, element: int) -> int | None:
    """The constant that a loop body adds to an element of its state."""
    found = _next(body, element)
    return found.offset if found is not None and found.element == element else None


def _is_kept(body: Computation, element: int) -> bool:
    """True if an element of the state never changes."""
    return _step(body, element) == 0


def _number(instruction: Instruction) -> int | None:
    """The value of an integer constant."""
    literal = instruction.literal
    if literal is None or literal.is_elided or not literal.shape.is_array:
        return None
    if not literal.shape.element_type.is_integral or literal.shape.dimensions:
        return None
    value: Any = literal.array
    return int(value.item())
