"""Allocations: the values in each piece of memory, their offsets, and its lifetime (`BufferAllocation`)."""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Value


class Slice(NamedTuple):
    """Offset and size of one value in an allocation."""

    value: Value
    offset: int
    """Bytes from the start of the allocation."""
    bytes: int
    """Size of the chunk: that of the largest value sharing it."""


def slices_of(rows: Iterable[tuple[Value, int, int]]) -> Iterator[Slice]:
    """Creates slices from (value, offset, bytes) rows, faster than by the constructor."""
    return map(functools.partial(tuple.__new__, Slice), rows)


@attrs.define(eq=False)
class Allocation:
    """A contiguous block of memory that holds one value, or several at different times (XLA's `BufferAllocation`)."""

    number: int
    bytes: int
    memory_space: int
    is_parameter: bool = False
    parameter_number: int | None = None
    parameter_index: ShapeIndex = ()
    is_aliased: bool = False
    """True for a parameter aliased to an output."""
    is_output: bool = False
    """True if the allocation holds the top level of the program's result."""
    is_constant: bool = False
    is_thread_local: bool = False
    """True for buffers of reducers and similar computations, which exist only while these run."""
    is_tuple: bool = False
    """True if the allocation holds the pointer table of a tuple."""
    maybe_live_out: bool = False
    """True if the allocation holds part of the result, and so may outlive the program."""
    is_estimated: bool = False
    """True if offsets are hlotext's own, since XLA's cannot be derived from the module."""
    is_size_estimated: bool = False
    """True if the size depends on XLA's placement of values, which cannot be derived from the module."""
    heaps: int = 0
    """Number of heaps in this allocation."""
    page: int | None = None
    """XLA's index among several heaps of limited size, or None before XLA introduced these (2026-08-10)."""
    other_flags: tuple[str, ...] = ()
    """Flags in XLA's file that are unknown to this release of hlotext, verbatim."""
    slices: tuple[Slice, ...] = ()

    @property
    def is_temporary(self) -> bool:
        """True if neither parameter, result, constant nor thread-local (`IsPreallocatedTempBuffer`)."""
        return not (self.is_parameter or self.maybe_live_out or self.is_thread_local or self.is_constant)

    @property
    def held_for(self) -> str:
        """Category of a static allocation: `arguments`, `results` or `constants`; empty for all others."""
        if self.is_parameter:
            return "arguments"
        if self.is_constant:
            return "constants"
        return "results" if self.maybe_live_out else ""

    @property
    def is_static(self) -> bool:
        """True if the allocation is live for the whole program: a parameter, a constant or a part of the result."""
        return not self.is_thread_local and not self.is_temporary


class PlacesByWriter:
    """Index of the slices of all allocations by the instruction that writes them."""

    def __init__(self, allocations: Sequence[Allocation]) -> None:
        self._allocations = allocations
        self._starts = list(accumulate((len(one.slices) for one in allocations), initial=0))
        self._pieces = [piece for one in allocations for piece in one.slices]
        writers = [piece.value.instruction for piece in self._pieces]
        numbers = range(len(writers))
        self._first = dict(zip(reversed(writers), reversed(numbers), strict=True))
        self._others: dict[Instruction | None, list[int]] = {}
        """Places of instructions that write more than one array, behind the first."""
        for number, first, writer in zip(
            numbers, map(self._first.__getitem__, writers), writers, strict=True
        ):
            if number != first:
                self._others.setdefault(writer, []).append(number)

    def of(self, writer: Instruction) -> Iterator[tuple[Allocation, Slice]]:
        """Yields the slices that an instruction writes, each with its allocation."""
        if writer in self._first:
            for number in (self._first[writer], *self._others.get(writer, ())):
                yield self._allocations[bisect_right(self._starts, number) - 1], self._pieces[number]
