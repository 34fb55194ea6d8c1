"""Operations that read an operand only at the element that they write (`IsElementwiseOnOperand`)."""

from __future__ import annotations

from hlotext.analysis.heroes import hero_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE

_ALWAYS = (ELEMENTWISE - {"atan"}) | {"constant", "copy", "rng"}
"""Opcodes that are elementwise whatever their shapes (`HloInstruction::IsOpElementwise`)."""


_TAKES_AT_THE_END = frozenset({"bitcast", "reduce"})
"""Opcodes through which other results of a fusion may read an overwritten operand on TPU. Inferred from libtpu's output."""

_MOST_NESTED = 50
"""Fusions in each other that are looked into; XLA nests two or three."""


class Elementwise:
    """Elementwise queries about the instructions of a module, cached per body."""

    def __init__(self) -> None:
        self._bodies: dict[Computation, bool] = {}
        self._parameters: dict[tuple[Instruction, bool], bool] = {}
        self._heroes: dict[Computation, dict[Instruction, Instruction]] = {}
        self._depth = 0

    def heroes(self, body: Computation) -> dict[Instruction, Instruction]:
        """Returns the operation that determines how a fusion is emitted on GPU, for each of its results."""
        if body not in self._heroes:
            self._heroes[body] = {root: hero_of(root) for root in roots_of(body)}
        return self._heroes[body]

    def everywhere(self, instruction: Instruction) -> bool:
        """Returns True if an instruction is elementwise in all operands; for a fusion, if its whole body is."""
        opcode = instruction.opcode
        if opcode in _ALWAYS:
            return True
        match opcode:
            case "bitcast-convert":
                return _keeps_width(instruction)
            case "map":
                return _maps_in_order(instruction)
            case "fusion":
                return all(self._all_of(body) for body in instruction.called_computations)
        return False

    def on(self, instruction: Instruction, number: int) -> bool:
        """Returns True if an instruction is elementwise in the operand at position `number`."""
        if instruction.opcode == "dynamic-update-slice":
            return number == 0
        if instruction.opcode != "fusion":
            return self.everywhere(instruction)
        parameter = parameter_of(instruction, number)
        return parameter is not None and self.from_parameter(parameter)

    def from_parameter(self, parameter: Instruction, tuples: bool = False) -> bool:
        """Returns True if all transitive uses of a parameter are elementwise in it; with `tuples`, tuples are allowed
        too.

        Visits the body once in topological order (`AreTransitiveUsesElementwiseOrTuple`).
        """
        key = parameter, tuples
        if key not in self._parameters:
            self._parameters[key] = False
            if self._depth < _MOST_NESTED:
                self._depth += 1
                self._parameters[key] = self._flows_in_order(parameter, tuples)
                self._depth -= 1
        return self._parameters[key]

    def _flows_in_order(self, parameter: Instruction, tuples: bool) -> bool:
        reached = {parameter}
        for instruction in parameter.computation or ():
            touched = False
            for number, operand in enumerate(instruction.operands):
                if operand in reached:
                    touched = True
                    if not (tuples and instruction.opcode == "tuple") and not self.on(instruction, number):
                        return False
            if touched:
                reached.add(instruction)
        return True

    def to_result(self, parameter: Instruction, result: Instruction) -> bool:
        """Returns True if a parameter reaches one result of a body only through elementwise operations, or not at all.

        On the way to other results, a reduction or a bitcast may consume values that were elementwise so far, since the
        loop that writes this result produces them element by element.
        """
        body = parameter.computation
        if body is None:
            return False
        before = {result}
        for instruction in reversed(list(body)):
            if instruction in before:
                before.update(instruction.operands)
        reached = {parameter}
        for instruction in body:
            if instruction.opcode == "tuple" and instruction.is_root:
                continue
            touched = False
            for number, operand in enumerate(instruction.operands):
                if operand in reached:
                    touched = True
                    is_allowed = instruction not in before and instruction.opcode in _TAKES_AT_THE_END
                    if not is_allowed and not self.on(instruction, number):
                        return False
            if touched:
                reached.add(instruction)
        return True

    def _all_of(self, body: Computation) -> bool:
        known = self._bodies.get(body)
        if known is None:
            known = self._bodies[body] = False
            if self._depth < _MOST_NESTED:
                self._depth += 1
                known = self._bodies[body] = all(i.opcode == "parameter" or self.everywhere(i) for i in body)
                self._depth -= 1
        return known


def parameter_of(fusion: Instruction, number: int) -> Instruction | None:
    """Returns the parameter of a fusion's body for the operand at position `number`, or None if there is none."""
    callees = fusion.called_computations
    if not callees:
        return None
    return next((i for i in callees[0] if i.opcode == "parameter" and i.parameter_number == number), None)


def _keeps_width(convert: Instruction) -> bool:
    source = convert.operands[0].shape if convert.operands else None
    target = convert.shape
    return source is not None and target is not None and source.element_type.bits == target.element_type.bits


def _maps_in_order(map_: Instruction) -> bool:
    dimensions = map_.attributes.get("dimensions", ())
    rank = map_.shape.rank if map_.shape is not None else 0
    return not dimensions or tuple(dimensions) == tuple(range(rank))


def roots_of(body: Computation) -> tuple[Instruction, ...]:
    """Returns the outputs of a fusion's body: the operands of a root tuple, or else the root."""
    root = body.root
    return root.operands if root.opcode == "tuple" else (root,)
