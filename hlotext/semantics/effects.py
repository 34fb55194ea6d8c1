"""What an operation does besides giving a result."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction

_SIDE_EFFECTS = frozenset(
    [
        *("all-gather-done", "all-gather-start", "all-reduce-done", "all-reduce-start"),
        *("collective-broadcast", "collective-permute-done", "collective-permute-start", "infeed", "outfeed"),
        *("recv", "recv-done", "rng", "rng-get-and-update-state", "send", "send-done"),
    ]
)
"""Opcodes that do something even if nothing uses their result (`HasSideEffectNoRecurse`)."""

_COLLECTIVES = frozenset({"all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"})
"""Opcodes that have side effects once they have a channel, or constrain their layout."""


def has_side_effect(instruction: Instruction) -> bool:
    """Whether an instruction does something even if nothing uses its result (`HasSideEffectNoRecurse`)."""
    attributes = instruction._attributes
    if instruction.opcode == "custom-call":
        return bool(attributes.get("custom_call_has_side_effect"))
    if instruction.opcode in _COLLECTIVES:
        return "channel_id" in attributes or bool(attributes.get("constrain_layout"))
    return instruction.opcode in _SIDE_EFFECTS
