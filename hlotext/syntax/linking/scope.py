"""A computation while it is read."""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction


class Scope:
    """State of a computation while it is read."""

    # A plain class, since one is made for every computation; what few of them need stands here.
    outer: Scope | None = None
    """The scope in which an inline body stands."""
    elements: dict[tuple[Instruction, int], Instruction] | None = None
    """The get-tuple-element behind each `%t#0` met so far, once there is one."""
    takes_unknown = False
    """Operands that are not defined become parameters: a pasted op line."""
    numbers: dict[str, int] | None = None
    """For names that were made, once there are some, the number from which on the next one of that stem is looked for."""
    line = 0
    """Number of line ends between the computation's brace and `position`."""
    position = -1
    """Offset up to which they were counted, behind the last op line that was read fast; negative before there is one."""
    is_damaged = False
    """A line could not be read, so what is missing may have stood there."""
    is_unclosed = False
    """Its closing brace is missing, so that it may have had more."""
    has_lost_names = False
    """Such a line had no name that could be made out."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.defined: dict[str, Instruction] = {}
        """Instructions by name, as far as they have been read."""
        self.parameters: list[Any] = []
        """The numbers of the parameters met so far."""

    def line_before(self, text: str, position: int) -> int:
        """Returns the number of lines from the computation's brace to an offset."""
        known = self.position if self.position >= 0 else max(self.computation._brace, 0)
        if position >= known:
            self.line += text.count("\n", known, position)
        else:  # a trial had gone on
            self.line -= text.count("\n", position, known)
        self.position = position
        return self.line

    def make_way(self, element: Instruction) -> None:
        """Renames an element that was created for `%t#0`, because an op line has its name."""
        element._name = self.unique(element._name)
        self.defined[element._name] = element

    def make_ways(self) -> bool:
        """Renames all such elements whose names op lines have. Returns True if all names are then unique."""
        found: dict[str, Instruction] = {}
        for instruction in self.computation._instructions:
            first = found.setdefault(instruction._name, instruction)
            if first is not instruction and first._form is Form.COMPACT:
                self.make_way(first)
                found[instruction._name] = instruction
        return len(self.defined) == len(self.computation._instructions)

    def unique(self, name: str) -> str:
        """Returns the name, or the first of `name.1`, `name.2`, ... that is free."""
        if name not in self.defined:
            return name
        if self.numbers is None:
            self.numbers = {}
        number = self.numbers.get(name, 1)
        while f"{name}.{number}" in self.defined:
            number += 1
        self.numbers[name] = number
        return f"{name}.{number}"
