"""Copies of whole values: of a tuple those arrays that are asked for, taken out and put together again.

After `HloComputation::DeepCopyInstruction`, which leaves the taking apart to tuple-simplifier and dce.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from hlotext.edit import between
from hlotext.edit.structure import set_root
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.memory.subshapes import ShapeIndex
from hlotext.rewrite.kit.control import set_control

Copies = Mapping[ShapeIndex, Instruction]
"""The copies of the arrays of a value, by where they stand in it."""


class Copier:
    """Creates copies in a module, each directly after its operands."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._waiting: dict[Computation, list[between.Between]] = {}

    def _add(
        self, opcode: str, operands: tuple[Instruction, ...], shape: Shape, **attributes: object
    ) -> Instruction:
        home = operands[0].computation
        assert home is not None
        order = home.order
        after = order.next(operands[0] if len(operands) == 1 else max(operands, key=order.__getitem__))
        new = Instruction(self.module.instruction_names.unique(opcode), opcode, shape, operands, attributes)
        return home.add(new, after, typed=False)

    def copy(self, i: Instruction) -> Instruction:
        """Creates a copy of an array."""
        assert i.shape is not None
        return self._add("copy", (i,), i.shape)

    def copy_later(self, user: Instruction, numbers: Iterable[int]) -> Mapping[int, Instruction] | None:
        """Creates copies of some operands of an instruction, inserted by `put`; returns None if each must be an edit of
        its own.
        """
        operands = user._operands
        if user._head.opcode in ROLES or not all(between.is_plain(self.module, operands[n]) for n in numbers):
            return None
        unique = self.module.instruction_names.unique
        copies = {n: Instruction(unique("copy"), "copy", operands[n].shape, (operands[n],)) for n in numbers}
        assert user._computation is not None
        self._waiting.setdefault(user._computation, []).append((user, copies))
        return copies

    def put(self) -> None:
        """Inserts the pending copies. Call it before anything else is read or edited."""
        for home, wanted in self._waiting.items():
            between.insert(home, wanted)
        self._waiting.clear()

    def deep_copy(
        self, i: Instruction, chosen: Container[ShapeIndex] | None = None
    ) -> tuple[Instruction, dict[ShapeIndex, Instruction]]:
        """Copies the chosen arrays of a value, or all if `chosen` is None, and returns the new value and the copies by
        index.

        Returns the instruction itself if nothing is copied. Tokens are not copied.
        """
        copies: dict[ShapeIndex, Instruction] = {}
        shape = i.shape
        if shape is not None and shape.is_array and (chosen is None or () in chosen):  # as nearly all are
            copies[()] = self.copy(i)
            return copies[()], copies
        if shape is None or not any(
            array.is_array and (chosen is None or index in chosen) for index, array in shape.leaves()
        ):
            return i, copies
        parts: dict[ShapeIndex, Instruction] = {(): i}
        subshapes = list(shape.subshapes())
        for index, part in subshapes:
            if index:
                parts[index] = self._add("get-tuple-element", (parts[index[:-1]],), part, index=index[-1])
            if part.is_array and (chosen is None or index in chosen):
                parts[index] = copies[index] = self.copy(parts[index])
        for index, part in reversed(subshapes):
            if part.is_tuple and part.tuple_shapes:
                elements = tuple(parts[*index, n] for n in range(len(part.tuple_shapes)))
                parts[index] = self._add("tuple", elements, part)
        return parts[()], copies


def replace_use(user: Instruction, old: Instruction, new: Instruction) -> None:
    """Replaces every operand `old` of a user with `new` (`ReplaceUseWith`)."""
    user.change(operands=[new if o is old else o for o in user.operands], typed=False)


def replace_operands(user: Instruction, new: Mapping[int, Instruction]) -> None:
    """Replaces operands of a user, by number."""
    if new:
        user.change(operands=[new.get(n, o) for n, o in enumerate(user.operands)], typed=False)


def replace_root(home: Computation, root: Instruction) -> None:
    """Makes an instruction the root, without checking types."""
    set_root(home, root, typed=False)


def add_control(before: Instruction, after: Instruction) -> None:
    """Adds a control dependency from `before` to `after` (`AddControlDependencyTo`)."""
    if before not in after.control_predecessors:
        set_control(after, (*after.control_predecessors, before))
