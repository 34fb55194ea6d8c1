"""Control dependencies that move from one instruction to another."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.left_out import LeftOut

CONTROL = "control-predecessors"


def replace_uses_and_control(old: Instruction, new: Instruction) -> None:
    """Replaces all uses and control dependencies of an instruction with another one, without removing it."""
    predecessors, successors = old.control_predecessors, old.control_successors
    old.replace_all_uses_with(new)
    if predecessors or successors:
        relay_control(old, new, predecessors, successors)


def relay_control(
    old: Instruction,
    new: Instruction,
    predecessors: Sequence[Instruction],
    successors: Sequence[Instruction],
) -> None:
    """Transfers control dependencies from one instruction to another (`CopyAllControlDepsFrom`, `DropAllControlDeps`)."""
    for successor in successors:
        kept = [p for p in successor.control_predecessors if p is not old]
        if new is not successor and new not in kept:
            kept.append(new)
        set_control(successor, kept)
    if predecessors:
        if old.computation is not None:
            set_control(old, ())
        joined = dict.fromkeys((*new.control_predecessors, *(p for p in predecessors if p is not new)))
        set_control(new, tuple(joined))


def set_control(i: Instruction, predecessors: Sequence[Instruction]) -> None:
    """Sets the control predecessors of an instruction."""
    own = {k: v for k, v in i.attributes.items() if k != CONTROL}
    if predecessors:
        left_out = [one for one in i.attributes.get(CONTROL, ()) if isinstance(one, LeftOut)]
        own[CONTROL] = (*predecessors, *left_out)
    i.change(attributes=own, typed=False)
