"""Value numbers: equal for instructions of computations that compute the same, seen through fusions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from hlotext.analysis.equal_computations import equal_computations
from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.ir.values.types import ElementType
from hlotext.lint.rounds import Purity, Rounds
from hlotext.lint.slots import before_loops
from hlotext.lint.values import Value, fetched, is_entered, is_set_aside

_LEFT_OUT = traits.PROVENANCE | traits.CONTROL | {"backend_config", "frontend_attributes", "original_value"}
_PASSING = traits.KEEPS_ELEMENTS | {"opt-barrier"}
_MOVING = _PASSING | traits.COPY_HALVES
_COUNTED = traits.SOURCES - {"parameter"}
_STATES = traits.CONTROL_FLOW | {"parameter"}
_MOST_BEFORE = 100
"""Operations before a loop that are looked at to tell whether two of its initial values are equal."""
_PICKING = (traits.REPEATS_ELEMENTS | traits.SLICES | {"reverse"}) - _MOVING


@attrs.frozen
class Numbered:
    """A computed instruction, and the operation that computes it."""

    value: Value
    writer: Instruction

    @property
    def instruction(self) -> Instruction:
        return self.value.instruction


@attrs.frozen(eq=False)
class Numbering:
    """Value numbering of a computation: equal values have equal numbers."""

    computed: dict[int, Numbered] = attrs.field(factory=dict)
    """The first instruction that computes each number."""
    numbers: dict[Value, int] = attrs.field(factory=dict)
    """The number of each value that is computed, also inside fusions, as it is before it is replaced."""
    results: dict[Instruction, int] = attrs.field(factory=dict)
    """The number of each instruction that stands in no fusion."""

    def add(self, one: Instruction, fusions: tuple[Instruction, ...], number: int) -> Value:
        """Adds the value of an instruction inside these fusions."""
        value = Value(one, fusions)
        self.numbers[value] = number
        if one.opcode not in _MOVING:
            self.computed.setdefault(number, Numbered(value, value.writer))
        return value


class Numbers:
    """Assigns numbers to values; numberings can be compared if they share it."""

    def __init__(self, module: Module, purity: Purity) -> None:
        self._equal: Mapping[Computation, Computation] = equal_computations(module)
        self._purity = purity
        self._known: dict[Hashable, int] = {}
        self._said: dict[int, Hashable] = {}
        self._picked: dict[int, tuple[str, Hashable]] = {}
        """Numbers of what operations pick from their first operand, with opcode and attributes."""
        self._before: dict[Instruction, int] = {}
        """Numbers of values that loops begin with, and of what computes them."""
        self._parts_before: dict[tuple[Instruction, int], int] = {}
        self.operands: dict[int, tuple[int, ...]] = {}
        """The numbers that a number is computed from."""

    def of(self, key: Hashable, operands: tuple[int, ...] = ()) -> int:
        number = self._known.setdefault(key, len(self._known))
        self.operands.setdefault(number, operands)
        return number

    def at_start(self, rounds: Rounds) -> Numbering:
        """Numbers the values of an iteration by the state at its start."""
        return self.numbered(rounds.body, self._state(rounds))

    def at_end(self, rounds: Rounds, ends: Mapping[int, Value]) -> Numbering:
        """Numbers the values of an iteration by a state that has these values in slots that change."""
        first = {
            slot: number if slot in rounds.passed else self.of(("old", slot))
            for slot, number in self._state(rounds).items()
        }
        before = self.numbered(rounds.body, first).numbers
        state = {before[value]: self.slot(slot) for slot, value in ends.items() if value in before}
        replaced = {value: state[number] for value, number in before.items() if number in state}
        return self.numbered(rounds.body, first, replaced)

    def slot(self, slot: int) -> int:
        return self.of(("slot", slot))

    def _state(self, rounds: Rounds) -> dict[int, int]:
        """The numbers of the state that an iteration begins with; of slots that no iteration changes those that are initially
        the same have the same."""
        state: dict[int, int] = {}
        for slot in range(len(rounds.given)):
            first = rounds.before(slot) if slot in rounds.passed else None
            state[slot] = self.slot(slot) if first is None else self._initial(first)
        return state

    def _initial(self, first: Instruction) -> int:
        """The number of a value that a loop begins with: equal where it is computed alike, as compilers do for each use."""
        for one, operands in _operations_before(first):
            if one in self._before:
                continue
            if not operands:
                number = self._leaf(one)
            elif is_entered(one):
                number = self._fused(one, (one,), self._before, self._parts_before, Numbering(), {})
            elif (place := (one.operands[0], one.attributes.get("index"))) in self._parts_before:
                number = self._parts_before[place]
            elif operands == one.operands:
                number = self._plain(one, self._before)
            else:
                number = self._before[operands[0]]
            self._before[one] = number
        return self._before[first]

    def _leaf(self, one: Instruction) -> int:
        return self._plain(one, {}) if one.opcode in _COUNTED else self.of(("initial", one))

    def numbered(
        self,
        computation: Computation,
        first: Mapping[int, int],
        replaced: Mapping[Value, int] | None = None,
        parts_of_loop: Callable[[Instruction, Mapping[Instruction, int]], Mapping[int, int]] | None = None,
    ) -> Numbering:
        """Numbers the values of a computation.

        Args:
            computation: The computation.
            first: The numbers of the elements of its parameter, if that is a tuple.
            replaced: Values that users know by another number than that of what computes them.
            parts_of_loop: Says the numbers of a loop's results, by elements, given the numbers of what is before it.
        """
        found, replaced = Numbering(), replaced or {}
        numbers = found.results
        parts: dict[tuple[Instruction, int], int] = {}
        for one in operands_first(computation):
            index = one.attributes.get("index") if one.opcode == "get-tuple-element" else None
            if isinstance(index, int) and one.operands[0].opcode == "parameter" and index in first:
                number = first[index]
            elif isinstance(index, int) and (_started(one.operands[0]), index) in parts:
                number = parts[_started(one.operands[0]), index]
            elif _started(one) is not one and is_entered(_started(one)):
                number = numbers[_started(one)]
            elif is_entered(one):
                number = self._fused(one, (one,), numbers, parts, found, replaced)
            else:
                number = self._plain(one, numbers)
                value = found.add(one, (), number)
                number = replaced.get(value, number)
                if one.opcode == "while" and parts_of_loop is not None:
                    parts.update({(one, slot): n for slot, n in parts_of_loop(one, numbers).items()})
            numbers[one] = number
        return found

    def _fused(
        self,
        fusion: Instruction,
        fusions: tuple[Instruction, ...],
        outside: Mapping[Instruction, int],
        parts: dict[tuple[Instruction, int], int],
        found: Numbering,
        replaced: Mapping[Value, int],
    ) -> int:
        body = fusion.called_computations[0]
        numbers: dict[Instruction, int] = {}
        for one in body:
            place = one.parameter_number
            if one.opcode == "parameter" and place is not None and place < len(fusion.operands):
                numbers[one] = outside[fusion.operands[place]]
                continue
            if is_entered(one):
                numbers[one] = self._fused(one, (*fusions, one), numbers, parts, found, replaced)
                continue
            number = self._plain(one, numbers)
            value = found.add(one, fusions, number)
            numbers[one] = replaced.get(value, number)
        root = body.root
        for place, operand in enumerate(root.operands if root.opcode == "tuple" else ()):
            parts[fusion, place] = numbers[operand]
        if is_entered(root):  # what a fusion gives that runs beside the rest
            shapes = root.shape.tuple_shapes if root.shape is not None and root.shape.is_tuple else ()
            parts.update({(fusion, n): parts[root, n] for n in range(len(shapes)) if (root, n) in parts})
        return numbers[root]

    def _plain(self, one: Instruction, numbers: Mapping[Instruction, int]) -> int:
        """The number of an operation's result: for arrays, of its elements in row-major order, whatever their dimensions."""
        opcode, shape = one.opcode, one.shape
        operands = tuple([numbers[operand] for operand in one.operands])
        if opcode in traits.COMMUTATIVE:
            operands = tuple(sorted(operands))
        if opcode in traits.COPY_HALVES and operands:
            return operands[0]
        if opcode in _PASSING and len(operands) == 1:
            return self._viewed(one, operands)
        if (
            opcode == "custom-call"
            and (whole := fetched(one)) is not None
            and _sizes(whole.shape) == _sizes(shape)
        ):
            return numbers[whole]
        is_array = shape is not None and shape.is_array
        dimensions: Any = shape.dimensions if shape is not None and is_array else str(shape)
        if opcode == "constant":
            return self.of(("constant", dimensions, str(one.literal)))
        if is_set_aside(one):  # compilers read of it only what has been written
            return self.of(("unwritten", dimensions))
        if not self._purity.is_pure(one):
            return self.of(one)
        kind = shape.element_type if shape is not None and is_array else None
        if opcode == "convert" and len(operands) == 1:
            return self._converted(kind, self._attributes(one), operands[0])
        if opcode in ELEMENTWISE and is_array:
            return self.of((opcode, kind, self._attributes(one), operands), operands)
        given = tuple([_sizes(operand.shape) for operand in one.operands])
        if opcode in traits.REPEATS_ELEMENTS and not any(given) and is_array:  # the same in each element
            return self.of((opcode, kind, math.prod(dimensions), operands), operands)
        how = dimensions, given, self._attributes(one)
        number = self.of((opcode, kind, how, operands), operands)
        if opcode in _PICKING:
            self._picked[number] = opcode, how
        return number

    def _converted(self, kind: ElementType | None, said: Hashable, number: int) -> int:
        """The number of a conversion: of elements that are picked from an array that of those picked from the converted one,
        which compilers choose between as they like."""
        if number not in self._picked or not self.operands[number]:
            return self.of(("convert", kind, said, number), (number,))
        opcode, how = self._picked[number]
        first, *rest = self.operands[number]
        operands = (self._converted(kind, said, first), *rest)
        converted = self.of((opcode, kind, how, operands), operands)
        self._picked[converted] = opcode, how
        return converted

    def _viewed(self, one: Instruction, operands: tuple[int, ...]) -> int:
        """The number of a view or copy: that of its operand, if the elements keep their order."""
        shape, before = one.shape, one.operands[0].shape
        if (
            one.opcode != "bitcast"
            or shape is None
            or before is None
            or not (shape.is_array and before.is_array)
        ):
            return operands[0]
        how = _order(before), _order(shape)
        if shape.element_type == before.element_type and (
            not any(how) or (how[0] == how[1] and shape.dimensions == before.dimensions)
        ):
            return operands[0]
        # Of another order in memory, it may be a transposition.
        given = before.dimensions, shape.dimensions, shape.element_type
        return self.of(("bitcast", how, given, operands), operands)

    def _attributes(self, one: Instruction) -> Hashable:
        held = one._attributes
        known = self._said.get(id(held))
        if known is None:
            said = []
            for name, value in held.items():
                if name in _LEFT_OUT:
                    continue
                if isinstance(value, Computation):
                    value = id(self._equal.get(value, value))
                said.append((name, value if isinstance(value, (int, str)) else str(value)))
            known = self._said[id(held)] = tuple(said)
        return known


def _order(shape: Shape) -> tuple[int, ...]:
    """The order of an array's dimensions in memory, minor to major; empty for the row-major order."""
    if shape.layout is None or shape.layout.minor_to_major == default_layout(shape.rank).minor_to_major:
        return ()
    return shape.layout.minor_to_major


def _sizes(shape: Shape | None) -> tuple[int, ...]:
    return shape.dimensions if shape is not None and shape.is_array else ()


def _started(one: Instruction) -> Instruction:
    """The start of what a done ends; any other instruction itself."""
    return one.async_chain[0] if one.opcode == "async-done" and one.async_chain else one


def _operations_before(first: Instruction) -> Iterable[tuple[Instruction, Sequence[Instruction]]]:
    """The operations that a value is computed by, operands first, each with its operands: none where they are not known, and
    for what loops pass on unchanged that which they begin with."""
    operands: dict[Instruction, Sequence[Instruction]] = {}
    order: dict[Instruction, Sequence[Instruction]] = {}
    pending = [first]
    while pending:
        one = pending[-1]
        if one in operands:
            order[pending.pop()] = operands[one]
        else:
            operands[one] = _operands_of(one) if len(operands) < _MOST_BEFORE else ()
            pending += [operand for operand in operands[one] if operand not in operands]
    return order.items()


def _operands_of(one: Instruction) -> Sequence[Instruction]:
    if one.opcode == "parameter" or one.opcode in traits.CONTROL_FLOW:
        return ()
    if one.opcode == "get-tuple-element" and one.operands[0].opcode in _STATES:
        begun = before_loops(Value(one)).instruction
        return () if begun is one else (begun,)
    return one.operands
