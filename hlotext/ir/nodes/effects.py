"""Side effects of an instruction."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.traits import CHANNELLED, LAYOUT_CONSTRAINED, NO_EFFECT


def has_side_effect(instruction: Instruction) -> bool:
    """Returns True if an instruction has side effects, ignoring its callees (`HloInstruction::HasSideEffectNoRecurse`).

    Unknown opcodes count as having side effects. A channel is ignored if the program is partitioned, where channel ids
    have no meaning (`HloModuleConfig::ChannelIdSensitive`).
    """
    opcode = instruction._head.opcode
    if opcode in NO_EFFECT:
        return False
    attributes = instruction._attributes
    if opcode == "custom-call":
        return attributes.get("custom_call_has_side_effect") is True
    if opcode not in CHANNELLED:
        return True
    if opcode in LAYOUT_CONSTRAINED and attributes.get("constrain_layout") is True:
        return True
    return attributes.get("channel_id") is not None and not _is_partitioned(instruction)


def _is_partitioned(instruction: Instruction) -> bool:
    module = instruction.computation.module if instruction.computation is not None else None
    count = module.attributes.get("num_partitions", 1) if module is not None else 1
    return isinstance(count, int) and count > 1
