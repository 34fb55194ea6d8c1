"""Thunks: the steps that XLA's runtime executes, as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction

NESTED = "nested"
"""Label of the only sequence inside an async start, a group, a command buffer, a sequential or a dynamic-slice fusion."""
CALLED = "called"
"""Label of the sequence inside a CPU call."""


class ThunkError(ValueError):
    """Raised if the input is not a thunk dump, or the module's thunks cannot be predicted. The message gives the reason."""


@attrs.frozen
class Launch:
    """Launch parameters of a kernel, from the text of a GPU thunk."""

    kernel: str
    """Name of the kernel in the PTX, which several instructions may share."""
    grid: tuple[int, int, int]
    """Number of blocks in x, y and z."""
    threads: tuple[int, int, int]
    """Threads per block in x, y and z."""
    shared_memory: int | None = None
    """Bytes of shared memory per block, or None if unknown."""
    cluster: tuple[int, int, int] | None = None
    """Blocks per cluster, or None if not launched in clusters."""


@attrs.define(eq=False, kw_only=True)
class Thunk:
    """A step executed by the runtime. Compared by identity."""

    kind: str
    """XLA's name of the kind: "kCopy" on GPU, "copy" on CPU. Unknown kinds are kept."""
    number: int | None = None
    """XLA's thunk id (GPU), in order of emission from 1; 0 for thunks created by passes, or None on CPU."""
    instruction: Instruction | None = attrs.field(default=None, repr=False)
    """The executed instruction, or None if read without a module or if the thunk covers several instructions."""
    name: str | None = None
    """Name of the instruction in XLA's annotation of the thunk, or None if unknown."""
    children: tuple[tuple[str, tuple[Thunk, ...]], ...] = attrs.field(default=(), repr=False)
    """Nested sequences by label: "condition", "body", "branch_0" ... in the order of HLO, "nested", "called"."""
    facts: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """Additional properties, by name.

    `start` (number of the async start that a done waits for), `stream`, `target` (of a custom call), `is_host_copy`,
    `trip_count`, `launch` (a Launch), `description` (text of a dump).
    """
    previous: Thunk | None = attrs.field(default=None, init=False, repr=False)
    """Nearest earlier thunk of the sequence with a buffer conflict, or None if there is none or buffers are unknown."""
    next: Thunk | None = attrs.field(default=None, init=False, repr=False)
    """Nearest later thunk of the sequence with a buffer conflict, or None if there is none or buffers are unknown."""
    shown_previous: int | None = attrs.field(default=None, init=False, repr=False)
    """Id of `previous` in XLA's file, or None if predicted."""
    shown_next: int | None = attrs.field(default=None, init=False, repr=False)

    @property
    def nested(self) -> Iterator[Thunk]:
        """The directly nested thunks, sequence by sequence."""
        return (thunk for _, sequence in self.children for thunk in sequence)


@attrs.frozen(kw_only=True)
class ThunkNote:
    """A note on something that a prediction or a file leaves unknown, or that XLA rejects."""

    message: str
    instruction: Instruction | None = None


def walk(sequence: Sequence[Thunk]) -> Iterator[Thunk]:
    """Yields all thunks of a sequence in pre-order, as in XLA's text."""
    stack = list(reversed(sequence))
    while stack:
        thunk = stack.pop()
        yield thunk
        stack.extend(reversed(list(thunk.nested)))


def sequences(
    outermost: tuple[Thunk, ...],
) -> Iterator[tuple[Thunk | None, str | None, tuple[Thunk, ...]]]:
    """Yields each sequence with the thunk that holds it and its label there, outermost first. Both are None for the
    outermost.
    """
    stack: list[tuple[Thunk | None, str | None, tuple[Thunk, ...]]] = [(None, None, outermost)]
    while stack:
        holder, label, sequence = stack.pop()
        yield holder, label, sequence
        stack.extend((thunk, name, inner) for thunk in reversed(sequence) for name, inner in thunk.children)
