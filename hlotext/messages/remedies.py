"""Changes that help against each kind of message."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.messages.message import Message

_LESS_MEMORY = (
    "smaller or sharded batches; jax.checkpoint around layers; a loop over pieces (jax.lax.map with batch_size)"
    " instead of the largest arrays"
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


def remedies(message: Message) -> tuple[str, ...]:
    """Changes that help, the most certain first; empty where none is known."""
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
        if memory.output and memory.shared == 0:
            yield "donate the state (donate_argnums of jax.jit): no byte of the output shares memory with arguments"
        for row in memory.allocations:
            if row.unpadded and row.size > _PADDED * row.unpadded:
                name = row.instruction or row.op_name or row.shape
                yield (
                    f"{name} is {row.size / row.unpadded:.1f} times as large as its data, by padding of {row.shape}:"
                    " reshape or transpose it so that the last dimensions are multiples of 8 and 128"
                )
        yield _LESS_MEMORY
