"""Value numbers: equal for instructions of a loop's body that compute the same, seen through fusions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import attrs

from hlotext.analysis.equal_computations import equal_computations
from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.lint.rounds import Purity, Rounds, unmoved

_LEFT_OUT = traits.PROVENANCE | traits.CONTROL | {"backend_config", "frontend_attributes", "original_value"}
_PASSING = traits.KEEPS_ELEMENTS | {"opt-barrier"}


@attrs.frozen
class Numbered:
    """An instruction that is computed, with the operation of the body that computes it."""

    instruction: Instruction
    writer: Instruction


class Numbers:
    """Numbers of values; one object for all numberings that are compared."""

    def __init__(self, module: Module, purity: Purity) -> None:
        self._equal: Mapping[Computation, Computation] = equal_computations(module)
        self._purity = purity
        self._known: dict[Hashable, int] = {}
        self._said: dict[int, Hashable] = {}
        self.operands: dict[int, tuple[int, ...]] = {}
        """The numbers that a number is computed from."""

    def of(self, key: Hashable, operands: tuple[int, ...] = ()) -> int:
        number = self._known.setdefault(key, len(self._known))
        self.operands.setdefault(number, operands)
        return number

    def at_start(self, rounds: Rounds) -> dict[int, Numbered]:
        """The values of an iteration by what they are of the state that it begins with."""
        return self._numbered(rounds, {slot: self.slot(slot) for slot in range(len(rounds.given))}, {})

    def at_end(self, rounds: Rounds) -> dict[int, Numbered]:
        """The values of an iteration by what they are of the state that it ends with."""
        first = {
            slot: self.slot(slot) if slot in rounds.passed else self.of(("old", slot))
            for slot in range(len(rounds.given))
        }
        given = {
            unmoved(value): self.slot(slot)
            for slot, value in enumerate(rounds.given)
            if slot not in rounds.passed and unmoved(value).computation is rounds.body
        }
        return self._numbered(rounds, first, given)

    def slot(self, slot: int) -> int:
        return self.of(("slot", slot))

    def _numbered(
        self, rounds: Rounds, first: Mapping[int, int], given: Mapping[Instruction, int]
    ) -> dict[int, Numbered]:
        found: dict[int, Numbered] = {}
        numbers: dict[Instruction, int] = {}
        parts: dict[tuple[Instruction, int], int] = {}
        for one in operands_first(rounds.body):
            index = one.attributes.get("index") if one.opcode == "get-tuple-element" else None
            if isinstance(index, int) and one.operands[0].opcode == "parameter":
                number = first.get(index, -1)
            elif isinstance(index, int) and (one.operands[0], index) in parts:
                number = parts[one.operands[0], index]
            elif one.opcode == "fusion" and one.called_computations:
                number = self._fused(one, numbers, parts, found)
            else:
                number = self._plain(one, numbers)
                found.setdefault(number, Numbered(one, one))
            numbers[one] = given.get(one, number)
        return found

    def _fused(
        self,
        fusion: Instruction,
        outside: Mapping[Instruction, int],
        parts: dict[tuple[Instruction, int], int],
        found: dict[int, Numbered],
    ) -> int:
        body = fusion.called_computations[0]
        numbers: dict[Instruction, int] = {}
        for one in body:
            number = one.parameter_number
            if one.opcode == "parameter" and number is not None and number < len(fusion.operands):
                numbers[one] = outside[fusion.operands[number]]
                continue
            if one.opcode == "fusion" and one.called_computations:
                numbers[one] = self._fused(one, numbers, parts, found)
                continue
            numbers[one] = self._plain(one, numbers)
            found.setdefault(numbers[one], Numbered(one, fusion))
        for place, operand in enumerate(body.root.operands if body.root.opcode == "tuple" else ()):
            parts[fusion, place] = numbers[operand]
        return numbers[body.root]

    def _plain(self, one: Instruction, numbers: Mapping[Instruction, int]) -> int:
        operands = tuple([numbers[operand] for operand in one.operands])
        shape = one.shape
        dimensions: Any = shape.dimensions if shape is not None and shape.is_array else str(shape)
        if one.opcode in _PASSING and len(operands) == 1:
            before = one.operands[0].shape
            if (
                before is not None
                and shape is not None
                and before.is_array
                and before.dimensions == dimensions
            ):
                return operands[0]
            return self.of(("reshape", dimensions, operands), operands)
        if one.opcode == "constant":
            return self.of(("constant", dimensions, str(one.literal)))
        if not self._purity.is_pure(one):
            return self.of(one)
        kind = shape.element_type if shape is not None and shape.is_array else None
        key = (one.opcode, kind, dimensions, self._attributes(one), operands)
        return self.of(key, operands)

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
