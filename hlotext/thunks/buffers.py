"""Slices of memory that thunks read and write, and conflicts between them.

Slices come from `hlotext.memory`: (allocation, offset, bytes) of each position. Where memory cannot be assigned, as without
layouts, all buffers are unknown: nothing conflicts, and every two positions count as different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from hlotext import layout
from hlotext.thunks.thunk import Thunk, sequences, walk

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction

Index = tuple[int, ...]


class Piece(NamedTuple):
    """A byte range of a buffer allocation."""

    allocation: int
    offset: int
    size: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the range."""
        return self.offset + self.size


class ThunkBuffers:
    """The buffer slices of a module, and which of them each thunk reads and writes."""

    def __init__(self, memory: Any) -> None:
        """`memory` is what `memory.assign` or `memory.load` gives; None if it is unknown."""
        self._pieces: dict[tuple[Instruction, Index], Piece] = {}
        self.is_known = memory is not None
        self._hero: dict[tuple[Instruction, Index], Piece] = {}
        self.read: dict[Thunk, list[Piece]] = {}
        self.written: dict[Thunk, list[Piece]] = {}
        for number, allocation in enumerate(memory.allocations if memory is not None else ()):
            for piece in allocation.slices:
                found = Piece(number, piece.offset, piece.bytes)
                for place in piece.value.positions:
                    self._pieces[place] = found

    def of(self, instruction: Instruction, index: Index = ()) -> Piece | None:
        """Returns the slice of the array at a shape index of an instruction; None if it is unknown."""
        return self._hero.get((instruction, index)) or self._pieces.get((instruction, index))

    def leaves(self, instruction: Instruction) -> Iterator[Piece]:
        """Yields the known slices of all arrays of an instruction, in order."""
        shape = instruction.shape
        for index, _ in shape.leaves() if shape is not None else ():
            found = self.of(instruction, index)
            if found is not None:
                yield found

    def differ(self, a: Instruction, at: Index, b: Instruction, of_b: Index) -> bool:
        """True if two arrays are in different slices, or if the slice of the first is unknown."""
        first, second = self.of(a, at), self.of(b, of_b)
        return first is None or first != second

    def renamed(self, copies: Mapping[Thunk, Thunk]) -> ThunkBuffers:
        """Returns a copy in which the reads and writes of each thunk belong to its copy."""
        found = ThunkBuffers(None)
        found.is_known, found._pieces = self.is_known, self._pieces
        found.read = {copies[thunk]: pieces for thunk, pieces in self.read.items() if thunk in copies}
        found.written = {copies[thunk]: pieces for thunk, pieces in self.written.items() if thunk in copies}
        return found

    # ---- what a thunk does

    def reads(self, thunk: Thunk, instruction: Instruction, index: Index = ()) -> None:
        """Records that a thunk reads the array at a shape index."""
        found = self.of(instruction, index)
        if found is not None:
            self.read.setdefault(thunk, []).append(found)

    def reads_part(self, thunk: Thunk, instruction: Instruction, offset: int, size: int) -> None:
        """Records that a thunk reads `size` bytes of an array from `offset`."""
        found = self.of(instruction)
        if found is not None:
            self.read.setdefault(thunk, []).append(Piece(found.allocation, found.offset + offset, size))

    def writes(self, thunk: Thunk, instruction: Instruction, index: Index = ()) -> None:
        """Records that a thunk writes the array at a shape index."""
        found = self.of(instruction, index)
        if found is not None:
            self.written.setdefault(thunk, []).append(found)

    def writes_all(self, thunk: Thunk, instruction: Instruction) -> None:
        """Records that a thunk writes all arrays of an instruction."""
        self.written.setdefault(thunk, []).extend(self.leaves(instruction))

    def arguments(self, thunk: Thunk, instruction: Instruction) -> None:
        """Records that a thunk reads all arrays of the operands and writes all arrays of the result, as kernels and
        calls do.
        """
        for operand in instruction.operands:
            self.read.setdefault(thunk, []).extend(self.leaves(operand))
        self.writes_all(thunk, instruction)

    @contextmanager
    def inside(self, hero: Instruction) -> Iterator[None]:
        """Within the context, the operands and results of the hero of a dynamic-slice fusion are allocations of their
        own.

        XLA numbers these from 0, so that they conflict with the module's first allocations; hence so here.
        """
        number = 0
        for operand in hero.operands:
            self._hero[operand, ()] = Piece(
                number, 0, layout.unpadded_bytes(operand.shape) if operand.shape else 0
            )
            number += 1
        for index, leaf in hero.shape.leaves() if hero.shape is not None else ():
            self._hero[hero, index] = Piece(number, 0, layout.unpadded_bytes(leaf))
            number += 1
        yield
        self._hero.clear()


# ---- conflicts


def link(thunks: tuple[Thunk, ...], buffers: ThunkBuffers) -> None:
    """Sets `previous` and `next` of all thunks: the nearest thunk of the same sequence with a conflicting buffer
    access.

    Two accesses conflict if their slices overlap and at least one is a write. Nested thunks count as part of the thunk
    around them. Does nothing if buffers are unknown. O(n log n) in the number of accesses.
    """
    if not buffers.is_known:
        return
    uses = _with_nested(thunks, buffers)
    for _, _, sequence in sequences(thunks):
        _link(sequence, uses, is_forward=True)
        _link(sequence, uses, is_forward=False)


Uses = dict[int, tuple[list[Piece], list[Piece]]]
"""By identity of a thunk: what it reads and what it writes, nested thunks included, each slice once."""


def _with_nested(thunks: tuple[Thunk, ...], buffers: ThunkBuffers) -> Uses:
    found: Uses = {}
    for thunk in reversed(list(walk(thunks))):
        reads = dict.fromkeys(buffers.read.get(thunk, ()))
        writes = dict.fromkeys(buffers.written.get(thunk, ()))
        for child in thunk.nested:
            reads |= dict.fromkeys(found[id(child)][0])
            writes |= dict.fromkeys(found[id(child)][1])
        found[id(thunk)] = list(reads), list(writes)
    return found


def _link(sequence: Sequence[Thunk], uses: Uses, *, is_forward: bool) -> None:
    """The nearest conflict before each thunk of a sequence, or behind it when the sequence is gone through backwards."""
    places: dict[int, set[int]] = {}
    for thunk in sequence:
        for pieces in uses[id(thunk)]:
            for piece in pieces:
                places.setdefault(piece.allocation, set()).update((piece.offset, piece.end))
    written = {number: _Latest(sorted(ends)) for number, ends in places.items()}
    touched = {number: _Latest(sorted(ends)) for number, ends in places.items()}
    ordered = list(sequence) if is_forward else list(reversed(sequence))
    for position, thunk in enumerate(ordered):
        reads, writes = uses[id(thunk)]
        latest = max(
            [written[p.allocation].latest(p) for p in reads]
            + [touched[p.allocation].latest(p) for p in writes],
            default=-1,
        )
        if latest >= 0:
            if is_forward:
                thunk.previous = ordered[latest]
            else:
                thunk.next = ordered[latest]
        for piece in reads:
            touched[piece.allocation].mark(piece, position)
        for piece in writes:
            touched[piece.allocation].mark(piece, position)
            written[piece.allocation].mark(piece, position)


class _Latest:
    """The latest mark on any byte of a slice: a segment tree over the ends of all slices of an allocation.

    Marks only grow, so that assigning to a range is taking the maximum.
    """

    def __init__(self, ends: list[int]) -> None:
        self._at = {end: number for number, end in enumerate(ends)}
        self._width = 1 << max(len(ends) - 1, 0).bit_length()
        self._whole = [-1] * (2 * self._width)
        """A mark on all of a node."""
        self._any = [-1] * (2 * self._width)
        """The latest mark on something below a node."""
        self._empty: dict[int, int] = {}
        """The latest mark on a slice of no bytes, by offset: XLA takes two equal ones for a conflict."""

    def mark(self, piece: Piece, position: int) -> None:
        """Marks all bytes of a slice; `position` is not below any before."""
        if not piece.size:
            self._empty[piece.offset] = position
            return
        low, high = self._at[piece.offset] + self._width, self._at[piece.end] + self._width
        first, last = low, high - 1
        while low < high:
            if low & 1:
                self._whole[low] = self._any[low] = position
                low += 1
            if high & 1:
                high -= 1
                self._whole[high] = self._any[high] = position
            low >>= 1
            high >>= 1
        for node in (first, last):
            node >>= 1
            while node:
                self._any[node] = max(self._any[node], position)
                node >>= 1

    def latest(self, piece: Piece) -> int:
        """The latest mark on any byte of a slice; -1 for none."""
        low, high = self._at[piece.offset] + self._width, self._at[piece.end] + self._width
        if not piece.size:
            return self._empty.get(piece.offset, -1)
        found = -1
        for node in (low, high - 1):
            node >>= 1
            while node:
                found = max(found, self._whole[node])
                node >>= 1
        while low < high:
            if low & 1:
                found = max(found, self._any[low])
                low += 1
            if high & 1:
                high -= 1
                found = max(found, self._any[high])
            low >>= 1
            high >>= 1
        return found
