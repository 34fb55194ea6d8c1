"""What may be taken out, shared or computed elsewhere."""

from __future__ import annotations

from hlotext.analysis.facts import fact
from hlotext.edit.asynchronous import is_finished_by
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcode import Family
from hlotext.ir.tables.opcodes import COLLECTIVES, OPCODES

EFFECTS = frozenset(
    {"send", "send-done", "recv", "recv-done", "infeed", "outfeed", "rng", "rng-get-and-update-state"}
)
"""Opcodes that do something beside their result (`HloInstruction::HasSideEffectNoRecurse`)."""

CHANNELLED = COLLECTIVES | {"all-reduce-start", "collective-permute-start", "all-gather-start"}
"""Collectives: with a channel all devices must take part, used or not."""


def has_own_effect(instruction: Instruction) -> bool:
    """Whether an instruction does something beside its result, what it calls left out.

    Opcodes that are unknown count as effects, as do collectives with a channel (`constrain_layout` too), custom calls that
    say so, and the states of asynchronous operations. A channel is none where one program runs on all partitions, so that
    nobody waits for what none of them does (`HloModuleConfig::ChannelIdSensitive`).
    """
    opcode = instruction.opcode
    row = OPCODES.get(opcode)
    if row is None or opcode in EFFECTS or row.family is Family.POINT_TO_POINT:
        return True
    attributes = instruction._attributes
    if opcode in CHANNELLED:
        if opcode in _STARTS or attributes.get("constrain_layout") is True:
            return True
        return attributes.get("channel_id") is not None and not _is_partitioned(instruction)
    if opcode == "custom-call":
        return attributes.get("custom_call_has_side_effect") is True
    return False


_STARTS = frozenset(
    {"all-reduce-start", "all-gather-start", "collective-permute-start", "collective-broadcast"}
)


def _is_partitioned(instruction: Instruction) -> bool:
    module = instruction.computation.module if instruction.computation is not None else None
    count = module.attributes.get("num_partitions", 1) if module is not None else 1
    return isinstance(count, int) and count > 1


_PLAIN = (
    frozenset(OPCODES)
    - EFFECTS
    - CHANNELLED
    - {"custom-call"}
    - {row.name for row in OPCODES.values() if row.family is Family.POINT_TO_POINT}
)
"""Opcodes that never have an effect of their own, so that most instructions cost one look-up."""


@fact
def fixed(module: Module) -> frozenset[Instruction]:
    """The instructions that stay where they are: those with an effect, themselves or by what they call, and those that a
    control dependency ties to another."""
    found: set[Instruction] = set()
    pending: list[Computation] = []
    for computation in module.computations:
        unusual = [
            i for i in computation if i.opcode not in _PLAIN or "control-predecessors" in i._attributes
        ]
        effects = [i for i in unusual if has_own_effect(i)]
        found.update(effects)
        found.update(i for i in unusual if i.control_predecessors)
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
    """Whether an instruction or what it calls has an effect (`HloInstruction::HasSideEffect`)."""
    return has_own_effect(instruction) or any(
        has_own_effect(i) for c in post_order(instruction.called_computations) for i in c
    )


def is_dead(instruction: Instruction) -> bool:
    """Whether nothing would change without an instruction (`HloInstruction::IsDead` and `IsSafelyRemovable`).

    What finishes an asynchronous operation is not: DCE takes both out together.
    """
    return not (
        instruction.opcode == "parameter"
        or instruction.user_view
        or instruction.is_root
        or instruction.control_predecessors
        or instruction.control_successors
        or has_effect(instruction)
        or any(is_finished_by(operand, instruction) for operand in instruction.operands[:1])
    )
