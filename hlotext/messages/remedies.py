"""Changes that help against each kind of message."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hlotext.messages.message import Memory, Message

_LESS_MEMORY = (
    "use smaller or sharded batches, jax.checkpoint around layers, or a loop over pieces (jax.lax.map with batch_size) "
    "instead of the largest arrays"
)
_DONATE = (
    "donate the state (donate_argnums of jax.jit); otherwise results need memory in addition to the arguments"
)
_SHARD = "shard the arguments over more devices, or store them in narrower types"
_OF_WHOLE = (
    "hlotext memory LOG --dump DIR splits the total into arguments, results and temporaries, and shows what each change "
    "saves",
    f"arguments and results: {_DONATE}; {_SHARD}",
    f"temporaries: {_LESS_MEMORY}",
)
_OF_KINDS = {
    "vmem": "use smaller blocks (a smaller BlockSpec and more grid steps) or fewer buffers; donation does not help here",
    "smem": "shrink the scalar operand: pass it in VMEM or HBM, or prefetch less of it",
    "over-limit": (
        "the limit is the share of the device's memory that XLA plans with, so the program may still fit; to need less, "
        f"{_LESS_MEMORY}"
    ),
    "remat": (
        "add jax.lax.with_sharding_constraint between the two shardings so that each step changes one dimension, or use "
        "one mesh axis order on both sides; until then each device sends and holds the whole tensor"
    ),
    "kernel": "choose a block shape whose last two dimensions are multiples of 8 and 128, and avoid reshapes in the kernel",
    "slow-folding": "pass the large constant as an argument",
    "donation": "donate only arguments whose shape, type and sharding match an output",
    "custom-call": "register the target for this platform before compiling (jax.ffi.register_ffi_target)",
    "cache-key": "compare two such logs: hlotext diff FIRST.log SECOND.log --exact",
    "internal": "file a bug; hlotext bugreport DIR -o FILE writes a report",
    "callback": "fix the exception raised by the callback's Python function",
    "abort": "file a bug; hlotext bugreport DIR -o FILE writes a report",
}
_PADDED = 1.5
"""Factor of padding from which it is worth a word."""
_WORTH = 0.01
"""Part of the bytes that have to go from which a remedy is worth a word."""


def remedies(message: Message) -> tuple[str, ...]:
    """Returns suggested remedies as sentences, most certain first (for memory, largest saving first).

    The result is empty if none is known.
    """
    return tuple(_remedies(message))


def _remedies(message: Message) -> Iterator[str]:
    memory = message.memory
    if message.remedy is not None:
        yield message.remedy
    elif message.kind in _OF_KINDS:
        yield _OF_KINDS[message.kind]
    elif message.kind == "sharding" and message.facts.get("parts"):
        yield f"pad the axis to a multiple of {message.facts['parts']}, or shard another axis"
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
                f"{name} is {row.size / row.unpadded:.1f} times as large as its data because of padding of {row.shape}:"
                " reshape or transpose it so that the last dimensions are multiples of 8 and 128"
            )
            rows.append((row.size - row.unpadded, text))
    least = _WORTH * (memory.must_go or 0.0)
    for _, text in sorted((row for row in rows if row[0] > least), key=lambda row: -row[0]):
        yield text
