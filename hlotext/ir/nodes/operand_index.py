"""Instructions with many operands while these are exchanged one by one."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.node_list import OperandList

_KEPT: Any = Instruction.__dict__["_operands"]
"""The slot itself."""


@attrs.define(eq=False)
class OperandIndex:
    """The operands of one instruction, with an index of the positions of each, for instructions with many operands."""

    operands: list[Instruction]
    places: dict[Instruction, dict[int, None]]

    @classmethod
    def of(cls, operands: tuple[Instruction, ...]) -> OperandIndex:
        places: dict[Instruction, dict[int, None]] = {}
        for place, operand in enumerate(operands):
            places.setdefault(operand, {})[place] = None
        return cls(list(operands), places)

    def exchange(self, places: tuple[int, ...], old: Instruction, new: Instruction) -> bool:
        """Replaces an operand at some positions. Returns True if it remains an operand at others."""
        left = self.places[old]
        for place in places:
            self.operands[place] = new
            del left[place]
        if not left:
            del self.places[old]
        self.places.setdefault(new, {}).update(dict.fromkeys(places))
        return bool(left)


class ReindexedInstruction(Instruction):
    """An instruction with many operands, some of them replaced, whose operand tuple is built when it is next read.

    It then becomes a plain `Instruction` again. Passes replace the operands of a large tuple one at a time, and
    building a tuple for each would be quadratic.
    """

    __slots__ = ()

    @property
    def _operands(self) -> tuple[Instruction, ...]:
        wires: OperandIndex = _KEPT.__get__(self)
        operands = OperandList(wires.operands)
        self._operands = operands
        if self._computation is not None and self._computation._module is not None:
            self._computation._module._wide = operands, wires
        return operands

    @_operands.setter
    def _operands(self, operands: tuple[Instruction, ...]) -> None:
        self.__class__ = Instruction  # type: ignore[assignment]
        _KEPT.__set__(self, operands)


def wires_of(user: Instruction) -> OperandIndex:
    """Returns the operand index of an instruction. The index of the last instruction used is cached."""
    if type(user) is ReindexedInstruction:
        found: OperandIndex = _KEPT.__get__(user)
        return found
    operands = user._operands
    module = user._computation._module if user._computation is not None else None
    if module is not None and module._wide is not None and module._wide[0] is operands:
        wires = module._wide[1]
        module._wide = None
    else:
        wires = OperandIndex.of(operands)
    user.__class__ = ReindexedInstruction
    _KEPT.__set__(user, wires)
    return wires


def has_many_operands(user: Instruction) -> bool:
    """Returns True if an instruction has too many operands to visit them all whenever one changes."""
    return type(user) is ReindexedInstruction or (type(user) is Instruction and len(user._operands) > _WIDE)


def operand_at(user: Instruction, place: int) -> Instruction:
    """Returns the operand at a position, without building the operand tuple."""
    if type(user) is ReindexedInstruction:
        wires: OperandIndex = _KEPT.__get__(user)
        return wires.operands[place]
    return user._operands[place]


def operand_count(user: Instruction) -> int:
    """Returns the number of operands, without building the operand tuple."""
    if type(user) is ReindexedInstruction:
        wires: OperandIndex = _KEPT.__get__(user)
        return len(wires.operands)
    return len(user._operands)


def has_repeated_operands(user: Instruction) -> bool:
    """Returns True if an operand occurs more than once. With many operands, the operand index is used."""
    if has_many_operands(user):
        wires = wires_of(user)
        return len(wires.places) < len(wires.operands)
    return len(set(user._operands)) < len(user._operands)


_WIDE = 16
"""Operands beyond which they are not all looked at when one of them changes."""
