"""Decides if a result may overwrite an operand that is dead afterwards (`CanShareOperandBufferWithUser`)."""

from __future__ import annotations

from collections.abc import Callable

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout import shapes_equal
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.elementwise import Elementwise, parameter_of
from hlotext.memory.in_place import WRITES_IN_PLACE, InPlacePairs
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.value_sets import shape_of
from hlotext.memory.values import Value

Hint = Callable[[Elementwise, Instruction, Instruction, ShapeIndex], "bool | None"]
"""A back end's answer for (operand, user, the user's index); None to leave it to the general rules."""


def no_hint(_: Elementwise, __: Instruction, ___: Instruction, ____: ShapeIndex) -> bool | None:
    """Returns None: the backend hint of a backend without rules of its own, such as CPU."""
    return None


class Sharing:
    """Decides which operands the instructions of a module may overwrite."""

    def __init__(self, flow: Dataflow, pairs: InPlacePairs, hint: Hint) -> None:
        self._flow = flow
        self._pairs = pairs
        self._hint = hint
        self._elementwise = Elementwise()
        self._equals: dict[tuple[Shape, Shape], bool] = {}
        self._asked: Instruction | None = None
        self._numbers: dict[Instruction, list[int]] = {}

    def may_share(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex
    ) -> bool:
        """Returns True if `user` may write its result at `user_index` over `operand` at `operand_index`."""
        if operand.opcode == "constant":
            return False
        given, made = _subshape(operand, operand_index), _subshape(user, user_index)
        if given is None or made is None:
            return False
        is_equal = given is made or self._equal(given, made)
        if not is_equal and self._hint is no_hint:
            return False
        if (
            is_equal
            and user.opcode in WRITES_IN_PLACE
            and self._must_share(operand, operand_index, user, user_index)
        ):
            return True
        said = self._hint(self._elementwise, operand, user, user_index)
        if said is not None:
            return said
        return is_equal and self._by_opcode(operand, operand_index, user, user_index)

    def _equal(self, given: Shape, made: Shape) -> bool:
        """True if two shapes are equal, layouts included; a module has few pairs of distinct ones."""
        if given.dimensions != made.dimensions or given.element_type is not made.element_type:
            return False
        known = self._equals.get((given, made))
        if known is None:
            known = self._equals[given, made] = shapes_equal(given, made)
        return known

    def why_not(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex
    ) -> str:
        """Returns the reason why `may_share` is False, as a phrase; empty if it is True."""
        if self.may_share(operand, operand_index, user, user_index):
            return ""
        if user.opcode == "copy":
            return "a copy does not overwrite its source"
        given, made = _subshape(operand, operand_index), _subshape(user, user_index)
        if given is None or made is None:
            return "the shapes are incompatible"
        if operand.opcode == "constant":
            return "constants are never overwritten"
        if not shapes_equal(given, made):
            return f"the shapes differ: {given} and {made}"
        if self._hint(self._elementwise, operand, user, user_index) is False:
            return f"the backend does not let {user.opcode} overwrite it"
        return f"{user.name} reads its elements in a different order from its writes, or more than once"

    def _must_share(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex
    ) -> bool:
        value = self._flow.value_at(operand, operand_index)
        for pair in self._pairs.of(user):
            if pair.output_index != user_index or pair.operand_number >= len(user.operands):
                continue
            if self._flow.value_at(user.operands[pair.operand_number], pair.operand_index) is value:
                return True
        return False

    def _by_opcode(
        self, operand: Instruction, operand_index: ShapeIndex, user: Instruction, user_index: ShapeIndex
    ) -> bool:
        """The general rules, for equal shapes."""
        numbers = self.operand_numbers(user).get(operand)
        if not numbers:
            return False
        match user.opcode:
            case "fusion":
                kind = str(user.attributes.get("kind"))
                parameter = parameter_of(user, numbers[0])
                if kind in ("kLoop", "kInput"):
                    return parameter is not None and self._elementwise.from_parameter(parameter, tuples=True)
                root = user.called_computations[0].root if user.called_computations else None
                if kind == "kOutput" and root is not None and root.opcode == "add":
                    return parameter is not None and _is_other_addend(root, parameter)
            case "while" | "conditional":
                return True
            case "dynamic-update-slice" | "scatter" | "set-dimension-size":
                return numbers == [0]
            case "triangular-solve":
                return numbers == [1]
            case "sort":
                if len(operand.users) != 1:
                    return False
                return len(user.operands) == 1 or (len(numbers) == 1 and user_index[:1] == (numbers[0],))
            case "call":
                return self._is_call_in_place(operand, operand_index, user)
        return self._elementwise.on(user, numbers[0])

    def forget_operands(self) -> None:
        """Drops cached operands. Call it after editing instructions that have memory of their own."""
        self._asked = None

    def operand_numbers(self, user: Instruction) -> dict[Instruction, list[int]]:
        """Returns the positions of each operand of an instruction. The last result is cached."""
        if self._asked is not user:
            self._asked, self._numbers = user, {}
            for number, operand in enumerate(user.operands):
                self._numbers.setdefault(operand, []).append(number)
        return self._numbers

    def _is_call_in_place(self, operand: Instruction, operand_index: ShapeIndex, call: Instruction) -> bool:
        """True if only the call and, elementwise, the root of what it calls use the value."""
        value: Value | None = self._flow.value_at(operand, operand_index)
        if value is None or value.instruction is not operand or not call.called_computations:
            return False
        uses = value.uses
        root = call.called_computations[0].root
        return (
            len(uses) == 2
            and any(use.instruction is call for use in uses)
            and any(
                use.instruction is root and self._elementwise.on(root, use.operand_number) for use in uses
            )
        )


def is_told_apart(pointwise: Instruction) -> bool:
    """Returns True if the rules may depend on the opcode of this elementwise operation: powers on TPU, roots of
    fusions.
    """
    return pointwise.opcode == "power" or pointwise.is_root


def _subshape(instruction: Instruction, index: ShapeIndex) -> Shape | None:
    shape = shape_of(instruction)
    for number in index:
        if not shape.is_tuple or number >= len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[number]
    return shape


def _is_other_addend(add: Instruction, parameter: Instruction) -> bool:
    """True if a parameter is used once: by the root's addition, beside a product."""
    product = next((i for i in add.operands if i.opcode in ("convolution", "dot")), None)
    if product is None:
        return False
    other = 1 if product is add.operands[0] else 0
    body = add.computation
    uses = [
        (user, number)
        for user in (body or ())
        for number, operand in enumerate(user.operands)
        if operand is parameter
    ]
    return uses == [(add, other)]
