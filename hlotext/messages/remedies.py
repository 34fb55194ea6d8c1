"""Changes that help against each kind of message."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hlotext.messages.message import Memory, Message

_LESS_MEMORY = (
    "smaller or sharded batches; jax.checkpoint around layers; a loop over pieces (jax.lax.map with batch_size)"
    " instead of the largest arrays"
)
_DONATE = (
    "donate the state (donate_argnums of jax.jit): results take memory of their own besides the arguments"
)
_SHARD = "shard the arguments over more devices, or hold them in narrower types"
_OF_WHOLE = (
    "hlotext memory LOG --dump DIR shows how much of it is arguments, results and temporaries, which the message adds up,"
    " and what each change saves",
    f"arguments and results: {_DONATE}; {_SHARD}",
    f"temporaries: {_LESS_MEMORY}",
)
_OF_KINDS = {
    "vmem": "smaller blocks: a smaller BlockSpec and more steps of the grid, or fewer buffers; donation does not help here",
    "smem": "a smaller scalar operand: pass it in VMEM or HBM, or prefetch less of it",
    "remat": (
        "jax.lax.with_sharding_constraint between the two shardings, so that each step changes one dimension, or one"
        " order of mesh axes on both sides; until then each device sends and holds the whole tensor"
    ),
    "kernel": "another block shape: the last two dimensions multiples of 8 and 128, and no reshapes within the kernel",
    "slow-folding": "pass the large constant as an argument",
    "donation": "donate only arguments whose shape, type and sharding an output has",
    "custom-call": "register the target for this platform before compiling (jax.ffi.register_ffi_target)",
    "cache-key": "compare two such logs: hlotext diff FIRST.log SECOND.log --exact",
    "internal": "hlotext bugreport DIR -o FILE makes a report of it",
    "callback": "the exception is that of the Python function that the callback calls",
    "abort": "hlotext bugreport DIR -o FILE makes a report of it",
}
_PADDED = 1.5
"""Factor of padding from which it is worth a word."""
_WORTH = 0.01
"""Part of the bytes that have to go from which a remedy is worth a word."""


def remedies(message: Message) -> tuple[str, ...]:
    """Changes that help, the most certain first, of memory what can save most; empty where none is known."""
    return tuple(_remedies(message))


def _remedies(message: Message) -> Iterator[str]:
    memory = message.memory
    if message.remedy is not None:
        yield message.remedy
    elif message.kind in _OF_KINDS:
        yield _OF_KINDS[message.kind]
    elif message.kind == "sharding" and message.facts.get("parts"):
        yield f"pad the axis to a multiple of {message.facts['parts']}, or shard another one"
    elif memory is not None:
        yield from _of_parts(memory) if memory.has_parts else _OF_WHOLE


def _of_parts(memory: Memory) -> Iterator[str]:
    """By the bytes that each can save at most; what cannot save a hundredth of the excess is left out."""
    arguments = memory.arguments if memory.arguments is not None else math.inf
    shared = memory.shared or 0.0
    rows = [
        (min((memory.output or 0.0), arguments) - shared, _DONATE),
        (memory.arguments or 0.0, _SHARD),
        (memory.program if memory.program is not None else math.inf, _LESS_MEMORY),
    ]
    for row in memory.allocations:
        if row.unpadded and row.size > _PADDED * row.unpadded:
            name = row.instruction or row.op_name or row.shape
            text = (
                f"{name} is {row.size / row.unpadded:.1f} times as large as its data, by padding of {row.shape}:"
                " reshape or transpose it so that the last dimensions are multiples of 8 and 128"
            )
            rows.append((row.size - row.unpadded, text))
    least = _WORTH * (memory.must_go or 0.0)
    for _, text in sorted((row for row in rows if row[0] > least), key=lambda row: -row[0]):
        yield text
