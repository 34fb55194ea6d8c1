"""Parsed fields of a message. Missing ones are None."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import attrs

from hlotext.ir.values.value import mimebundle


@attrs.frozen
class ListedAllocation:
    """A row in a table of allocations. Sizes are in bytes, rounded as in the message."""

    size: float
    unpadded: float | None = None
    shape: str | None = None
    op_name: str | None = None
    stack_frame_id: int | None = None
    file: str | None = None
    line: int | None = None
    instruction: str | None = None
    """Name of the instruction, or None if the label has no name, such as `deduplicated constant`."""
    kind: str | None = None
    """`HLO temp`, `global`, `argument`, etc."""


@attrs.frozen
class Memory:
    """Requested and available memory, in bytes."""

    space: str | None = None
    """`hbm`, `vmem`, `smem`, `host`, etc."""
    used: float | None = None
    capacity: float | None = None
    excess: float | None = None
    allocations: tuple[ListedAllocation, ...] = ()
    """Complete entries of the table, largest first."""
    is_cut: bool = False
    """True if the table is truncated within an entry. The partial entry is omitted."""
    program: float | None = None
    """Bytes of the program's temporaries and constants, from the table's totals."""
    arguments: float | None = None
    output: float | None = None
    shared: float | None = None
    """Bytes of outputs that share memory with donated arguments."""

    @property
    def has_parts(self) -> bool:
        """True if the message lists the parts of the memory, rather than only the total."""
        return bool(self.allocations) or self.program is not None

    @property
    def must_go(self) -> float | None:
        """Bytes that must be saved to fit: the stated excess, or requested minus available, or None if unknown."""
        if self.excess is not None or self.used is None or self.capacity is None:
            return self.excess
        return max(0.0, self.used - self.capacity)


@attrs.frozen
class Message:
    """A message of a compiler or of JAX in a log, with the parts that it names."""

    kind: str
    """Kind of message.

    `hbm`, `vmem`, `smem`, `allocation`, `over-limit`, `remat`, `kernel`, `slow-folding`, `slow-compile`, `donation`,
    `deleted`, `devices`, `sharding`, `shard-map`, `layout`, `arguments`, `shapes`, `types`, `carry`, `collective`,
    `lowering`, `tracer`, `callback`, `nan`, `custom-call`, `option`, `platform`, `cache`, `cache-key`, `deadlock`, `process`,
    `verifier`, `abort`, `internal`; otherwise the status in lower case, or `exception`.
    """
    text: str
    """The first sentence, on one line."""
    status: str | None = None
    """`RESOURCE_EXHAUSTED`, `INTERNAL`, etc."""
    code: str | None = None
    """XLA's error code, such as `E1000`."""
    module: str | None = None
    instruction: str | None = None
    op_name: str | None = None
    shape: str | None = None
    """Shape of the instruction or allocation; per device after partitioning."""
    file: str | None = None
    """File of the Python program, or None if unknown."""
    line: int | None = None
    stack_frame_id: int | None = None
    """Frame id in the stack-frame tables of the module, or None if absent."""
    memory: Memory | None = None
    facts: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    """Kind-specific fields: `from`, `to`, `parts`, `target`, `shapes`, `seconds`, `mlir`, `axis`, `condition`, ..."""

    is_call: bool = False
    """True if the file and line belong to the call that compiled, rather than to an operation."""
    remedy: str | None = None
    """Remedy specific to this message; None to use that of its kind."""

    _repr_mimebundle_ = mimebundle

    def __hash__(self) -> int:
        return hash((self.kind, self.text, self.instruction, self.file, self.line))

    def __str__(self) -> str:
        where = f" ({self.file}:{self.line})" if self.file is not None and self.line is not None else ""
        return f"{self.kind}: {self.text}{where}"


@attrs.frozen
class Messages(Sequence[Message]):
    """The messages of a log, in order and without duplicates."""

    messages: tuple[Message, ...] = ()

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        return self.messages[index]

    def of(self, kind: str) -> tuple[Message, ...]:
        """Returns the messages of one kind (see `Message.kind`), in order; empty if there are none."""
        return tuple(message for message in self.messages if message.kind == kind)
