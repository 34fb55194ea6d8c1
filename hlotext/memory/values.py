"""Values: what is written once, and every place where it is found afterwards (`HloValue`)."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import NamedTuple

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.memory.subshapes import ShapeIndex

Range = tuple[int, int]
"""First and last moment, both counted."""


class Use(NamedTuple):
    """One operand through which an instruction may read a value (`HloUse`)."""

    instruction: Instruction | None
    """The user, or None if XLA's file names an instruction that is not in the module."""
    name: str
    operand_number: int
    operand_index: ShapeIndex


_FIRST = operator.itemgetter(0)

_USE: Callable[[Iterable[object]], Use] = functools.partial(tuple.__new__, Use)


class Value:
    """An HLO value (`HloValue`): defined by part of an instruction's result, or a phi that merges several values.

    Identified by the name of its defining instruction and the shape index.
    """

    __slots__ = (
        "_positions",
        "_uses",
        "bytes",
        "index",
        "instruction",
        "is_phi",
        "live_range",
        "memory_space",
        "name",
        "number",
        "shape",
    )

    def __init__(
        self,
        instruction: Instruction | None,
        name: str,
        index: ShapeIndex,
        shape: Shape | None,
        is_phi: bool = False,
    ) -> None:
        self.instruction = instruction
        """Instruction that defines the value; None if XLA's file names one that is not in the text."""
        self.name = name
        self.index = index
        """Shape index in the instruction's result; `()` for the whole result."""
        self.shape = shape
        """Shape of the value; None if it was read from a file that does not state it."""
        self.is_phi = is_phi
        self.number = -1
        """XLA's id if read from a file, else the position in hlotext's own order."""
        self.memory_space: int = 0
        self.bytes: int | None = None
        """Size in bytes as counted by the allocator; None if unknown."""
        self.live_range: Range | None = None
        """Live range: first and last time in the flattened schedule; None if the value is not in the schedule."""
        self._positions: list[Instruction | str | ShapeIndex] = []
        self._uses: list[Instruction | str | int | ShapeIndex] = []

    @property
    def positions(self) -> tuple[tuple[Instruction | str, ShapeIndex], ...]:
        """Positions as (instruction, shape index), starting with the definition.

        An instruction that is not in the module is given by name.
        """
        flat = self._positions
        first = self.instruction if self.instruction is not None else self.name
        rest = zip(flat[::2], flat[1::2], strict=True)
        return ((first, self.index), *rest)  # type: ignore[arg-type]

    @property
    def uses(self) -> tuple[Use, ...]:
        """Uses, in XLA's order: by position, then by user."""
        flat = self._uses
        users = flat[::3]
        names = [user if isinstance(user, str) else user._name for user in users]  # type: ignore[union-attr]
        known = [None if isinstance(user, str) else user for user in users]
        # Past the constructor, which is a function of Python.
        found: list[Use] = list(map(_USE, zip(known, names, flat[1::3], flat[2::3], strict=True)))
        if len(found) > 1 and self._positions and self.instruction is not None:
            rank = {place: number for number, place in enumerate(self.positions)}
            ranks = [_rank(rank, use) for use in found]
            if any(map(operator.gt, ranks, ranks[1:])):
                found = [use for _, use in sorted(zip(ranks, found, strict=True), key=_FIRST)]
        return tuple(found)

    def lives_at(self, time: int) -> bool:
        """Returns True if the value is live at a position of the schedule; False if its live range is unknown."""
        return self.live_range is not None and self.live_range[0] <= time <= self.live_range[1]

    def add_position(self, instruction: Instruction | str, index: ShapeIndex) -> None:
        """Adds a position: a shape index of an instruction, which is given by name if it is not in the module."""
        self._positions += (instruction, index)

    def add_use(self, user: Instruction | str, operand_number: int, operand_index: ShapeIndex) -> None:
        """Adds an operand through which `user` may read the value, and the shape index in this operand.

        A user that is not in the module is given by name.
        """
        self._uses += (user, operand_number, operand_index)

    def flat_positions(self) -> list[Instruction | str | ShapeIndex]:
        """Returns the positions except the first, flattened: instruction, index, instruction, index, ..."""
        return self._positions

    def flat_uses(self) -> list[Instruction | str | int | ShapeIndex]:
        """Returns the uses, flattened: user, operand number, operand index, user, ..."""
        return self._uses

    @property
    def key(self) -> tuple[str, ShapeIndex, bool]:
        """Key within the module: name, shape index, and whether it is a phi."""
        return self.name, self.index, self.is_phi

    def __str__(self) -> str:
        index = f"{{{','.join(map(str, self.index))}}}"
        shown = index if self.index or (self.shape is not None and self.shape.is_tuple) else ""
        return f"{self.name}{shown}{' (phi)' if self.is_phi else ''}"

    def __repr__(self) -> str:
        return f"<Value {self}>"


def _rank(rank: dict[tuple[Instruction | str, ShapeIndex], int], use: Use) -> int:
    """The place of the position that a use reads; last where the text does not tell."""
    user, _, number, index = use
    operands = user._operands if user is not None else ()
    return rank.get((operands[number], index), len(rank)) if 0 <= number < len(operands) else len(rank)


def by_key(values: Iterable[Value]) -> dict[tuple[str, ShapeIndex, bool], Value]:
    """Indexes values by `Value.key`."""
    return {value.key: value for value in values}
