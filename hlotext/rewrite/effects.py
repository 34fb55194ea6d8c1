"""Predicates: may an instruction be removed, deduplicated or moved."""

from __future__ import annotations

from collections.abc import Container

from hlotext.analysis.facts import fact
from hlotext.edit.asynchronous import is_finished_by
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits


@fact
def fixed(module: Module) -> frozenset[Instruction]:
    """Returns the instructions that must not move: with side effects, own or of callees, or with control dependencies."""
    found: set[Instruction] = set()
    pending: list[Computation] = []
    for computation in module.computations:
        unusual = [
            i
            for i in computation._instructions
            if i._head.opcode not in traits.NO_EFFECT or "control-predecessors" in i._attributes
        ]
        effects = [i for i in unusual if has_side_effect(i)]
        found.update(effects)
        found.update(i for i in unusual if i._attributes.get("control-predecessors"))
        found.update(predecessor for i in unusual for predecessor in i.control_predecessors)
        if effects:
            pending.append(computation)
    seen: set[Computation] = set()
    while pending:
        computation = pending.pop()
        if computation not in seen:
            seen.add(computation)
            callers = module.calls_of(computation)
            found.update(callers)
            pending.extend(caller.computation for caller in callers if caller.computation is not None)
    return frozenset(found)


def has_effect(instruction: Instruction) -> bool:
    """Returns True if an instruction or one of its callees has side effects (`HloInstruction::HasSideEffect`)."""
    if has_side_effect(instruction):
        return True
    called = instruction.called_computations
    return bool(called) and any(has_side_effect(i) for c in post_order(called) for i in c)


def is_dead(instruction: Instruction, gone: Container[Instruction] = ()) -> bool:
    """Returns True if removing an instruction would change nothing, once its users in `gone` are removed.

    Corresponds to `HloInstruction::IsDead` and `IsSafelyRemovable`. False for a done, which DCE removes together with
    its start.
    """
    if instruction.opcode == "parameter":
        return False
    for user in instruction.user_view:
        if user not in gone:
            return False
    operands = instruction._operands
    return not (
        instruction.is_root
        or instruction._attributes.get("control-predecessors")
        or instruction.control_successors
        or has_effect(instruction)
        or (operands and is_finished_by(operands[0], instruction))
    )
