"""What may be taken out, shared or computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.ir.computation import Computation, post_order
from hlotext.ir.instruction import Instruction
from hlotext.ir.opcode import Family
from hlotext.ir.opcodes import COLLECTIVES, OPCODES

EFFECTS = frozenset(
    {"send", "send-done", "recv", "recv-done", "infeed", "outfeed", "rng", "rng-get-and-update-state"}
)
"""Opcodes that do something beside their result (`HloInstruction::HasSideEffectNoRecurse`)."""

CHANNELLED = COLLECTIVES | {"all-reduce-start", "collective-permute-start", "all-gather-start"}
"""Collectives: with a channel all devices must take part, used or not."""


def has_own_effect(instruction: Instruction) -> bool:
    """Whether an instruction does something beside its result, what it calls left out.

    Opcodes that are unknown count as effects, as do collectives with a channel (`constrain_layout` too), custom calls that
    say so, and the states of asynchronous operations.
    """
    opcode = instruction.opcode
    row = OPCODES.get(opcode)
    if row is None or opcode in EFFECTS or row.family is Family.POINT_TO_POINT:
        return True
    attributes = instruction._attributes
    if opcode in CHANNELLED:
        return attributes.get("channel_id") is not None or attributes.get("constrain_layout") is True
    if opcode == "custom-call":
        return attributes.get("custom_call_has_side_effect") is True
    return False


def effectful(computations: Iterable[Computation]) -> frozenset[Computation]:
    """Those of the computations, and of what they call, in which something has an effect."""
    found: set[Computation] = set()
    for computation in post_order(computations):
        if any(has_own_effect(i) or any(c in found for c in i.called_computations) for i in computation):
            found.add(computation)
    return frozenset(found)


def has_effect(instruction: Instruction) -> bool:
    """Whether an instruction or what it calls has an effect (`HloInstruction::HasSideEffect`)."""
    if has_own_effect(instruction):
        return True
    callees = instruction.called_computations
    return bool(callees) and bool(effectful(callees).intersection(callees))


def is_dead(instruction: Instruction) -> bool:
    """Whether nothing would change without an instruction (`HloInstruction::IsDead` and `IsSafelyRemovable`)."""
    return not (
        instruction.opcode == "parameter"
        or instruction.users
        or instruction.is_root
        or instruction.control_predecessors
        or instruction.control_successors
        or has_effect(instruction)
    )
