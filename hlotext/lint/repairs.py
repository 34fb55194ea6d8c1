"""Edits of a program that rules know to take a finding away: what to change, not how (`repairing` makes them in a copy)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hlotext.ir.nodes.instruction import Instruction


class Repair:
    """An edit of a program's text that removes a finding."""

    def joined(self, other: Repair) -> Repair | None:
        """Returns both as one edit if they must be made together; None if they are independent."""
        return None


@attrs.frozen
class Donate(Repair):
    """Donates arguments."""

    results: Mapping[int, tuple[int, ...]]
    """By the parameter's number the index of the result that takes its place."""


@attrs.frozen
class Hoist(Repair):
    """Moves instructions of a loop body before the loop."""

    loop: Instruction
    group: frozenset[Instruction]

    def joined(self, other: Repair) -> Repair | None:
        if isinstance(other, Hoist) and other.loop is self.loop:
            return Hoist(self.loop, self.group | other.group)
        return None


@attrs.frozen
class SumOnce(Repair):
    """Replaces all-reduces in a loop body by one after the loop, of the accumulated values."""

    loop: Instruction
    slots: Mapping[Instruction, tuple[int, ...]]
    """Of each all-reduce the slots of the loop's state that its results are added to."""

    def joined(self, other: Repair) -> Repair | None:
        if isinstance(other, SumOnce) and other.loop is self.loop:
            return SumOnce(self.loop, {**self.slots, **other.slots})
        return None


@attrs.frozen
class Reuse(Repair):
    """Reuses values in place of computing them again."""

    pairs: tuple[tuple[Instruction, Instruction], ...]
    """Each repetition with the original, of one computation."""


@attrs.frozen
class StoreInOrder(Repair):
    """Passes an argument in the dimension order into which the program copies it."""

    copied: Instruction
