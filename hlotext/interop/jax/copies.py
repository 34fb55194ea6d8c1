"""Copies that XLA has placed: a pass behind copy insertion must not bring two buffers together again.

By the time that JAX's transformations run (on the CPU in both stages, elsewhere behind the scheduler) `CopyInsertion` has
seen to it that a loop's state, a branch's argument and the program's results lie in buffers of their own. What computes the
same value is then no longer the same: without its copy, one element of a loop's state overwrites another.
"""

from __future__ import annotations

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module


class CopyError(RuntimeError):
    """A pass that put one buffer where XLA had placed two."""


@attrs.frozen
class Copies:
    """The copies of a module and the tuples that hold one value twice, before a pass."""

    users: dict[Instruction, tuple[Instruction, ...]]
    doubled: frozenset[Instruction]

    @classmethod
    def of(cls, module: Module) -> Copies:
        copies = {i: i.users for i in module.instructions() if i.opcode == "copy"}
        return cls(copies, frozenset(_doubled(module)))

    def check(self, module: Module) -> None:
        """Raises CopyError where users of a copy now take something else, or a tuple has become to hold one value twice."""
        for copy, users in self.users.items():
            if copy.computation is None and any(user.computation is not None for user in users):
                raise CopyError(
                    f"{copy.name} is gone, and with it a buffer: XLA has placed its copies by now, so that no two values "
                    f"share one that both write to"
                )
        for i in _doubled(module):
            if i not in self.doubled:
                raise CopyError(
                    f"{i.name} holds one value twice, in one buffer: XLA has placed its copies by now"
                )


def _doubled(module: Module) -> list[Instruction]:
    """The tuples that hold one buffer twice: an array, or an array and what a bitcast makes of it."""
    return [
        i
        for i in module.instructions()
        if i.opcode == "tuple" and len({_behind_bitcasts(value) for value in i.operands}) < len(i.operands)
    ]


def _behind_bitcasts(value: Instruction) -> Instruction:
    while value.opcode == "bitcast":
        value = value.operands[0]
    return value
