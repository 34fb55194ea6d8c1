"""Metadata for instructions without their own, from the call, the nearest user, or the producer."""

from __future__ import annotations

import enum
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

import attrs

from hlotext.analysis.call_graph import CALLED, LOOP_BODY, LOOP_CONDITION, call_graph
from hlotext.analysis.census import Shared, census, numbered
from hlotext.analysis.facts import fact
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

T = TypeVar("T")
D = TypeVar("D")


class MetadataSource(enum.Enum):
    """Source of an instruction's metadata: its own, or the instruction it was propagated from."""

    OWN = "itself"
    BODY = "what it runs"
    CALLER = "the instruction it is part of"
    USER = "the nearest instruction that uses it"
    PRODUCER = "an instruction that makes its operands"


_WRAPPERS = frozenset({"fusion", "async-start"})
"""Opcodes that are there for the sake of what they run."""

_STEPS = frozenset({CALLED, LOOP_BODY, LOOP_CONDITION, "branch"})
"""Uses of computations in which neighbours tell more than the caller."""


@fact
def callers_first(module: Module) -> tuple[Computation, ...]:
    """All computations, callers before callees."""
    return tuple(reversed(post_order(module.computations)))


@attrs.frozen(eq=False)
class Propagated(Mapping[Instruction, tuple[T, MetadataSource]], Generic[T]):
    """Metadata with its source by instruction, in the order of the text; instructions without any are omitted."""

    pairs: Sequence[tuple[T, MetadataSource]]
    numbers: Sequence[int]
    """For every instruction of the module, in the order of the text, the index of its pair; -1 without one."""
    _places: Mapping[Instruction, int]

    @overload
    def get(self, instruction: Instruction, /) -> tuple[T, MetadataSource] | None: ...
    @overload
    def get(
        self, instruction: Instruction, /, default: tuple[T, MetadataSource] | D
    ) -> tuple[T, MetadataSource] | D: ...
    def get(self, instruction: Instruction, /, default: object = None) -> object:
        """The metadata of an instruction and its source."""
        place = self._places.get(instruction, -1)
        number = self.numbers[place] if place >= 0 else -1
        return self.pairs[number] if number >= 0 else default

    def __getitem__(self, instruction: Instruction) -> tuple[T, MetadataSource]:
        number = self.numbers[self._places[instruction]]
        if number < 0:
            raise KeyError(instruction)
        return self.pairs[number]

    def __contains__(self, instruction: object) -> bool:
        return isinstance(instruction, Instruction) and self.get(instruction) is not None

    def __iter__(self) -> Iterator[Instruction]:
        return (one for one, number in zip(self._places, self.numbers, strict=True) if number >= 0)

    def __len__(self) -> int:
        return len(self.numbers) - self.numbers.count(-1)

    def replaced(self, others: Mapping[Instruction, tuple[T, MetadataSource]]) -> Propagated[T]:
        """The same with other metadata for some instructions."""
        pairs, numbers = list(self.pairs), array("i", self.numbers)
        for instruction, pair in others.items():
            numbers[self._places[instruction]] = len(pairs)
            pairs.append(pair)
        return Propagated(pairs, numbers, self._places)


def propagated(module: Module, own: Callable[[Instruction], T | None]) -> Propagated[T]:
    """Metadata of each instruction: its own, else propagated from its neighbors, callers first.

    Takes time linear in the module. Arguments of the module, and instructions without any source nearby, are omitted.

    Args:
        module: The module.
        own: Returns the metadata of an instruction itself; None if absent.
    """
    found = list(map(own, census(module).instructions))
    return spread(module, Shared.of(found, list(map(id, found))))


def spread(module: Module, own: Shared[T | None]) -> Propagated[T]:
    """The same of metadata that is known for every instruction, in the order of the text."""
    return _Spreading(module, own).all()


_SOURCES = tuple(MetadataSource)
_BODY, _CALLER, _USER, _PRODUCER = map(
    _SOURCES.index,
    (MetadataSource.BODY, MetadataSource.CALLER, MetadataSource.USER, MetadataSource.PRODUCER),
)


class _Spreading(Generic[T]):
    """Propagates metadata as numbers: that of a pair is the number of the value, plus a multiple of `size` for the source."""

    def __init__(self, module: Module, own: Shared[T | None]) -> None:
        self._module, self._graph = module, call_graph(module)
        self._values, self._size = own.distinct, len(own.distinct)
        known = [-1 if value is None else number for number, value in enumerate(own.distinct)]
        self._own = list(map(known.__getitem__, own.numbers))
        self._found = self._own.copy()
        heads = census(module).heads
        wraps = [head.opcode in _WRAPPERS for head in heads.distinct]
        self._wraps = list(map(wraps.__getitem__, heads.numbers))
        self._starts: dict[Computation, int] = {}
        at = 0
        for computation in module.computations:
            self._starts[computation] = at
            at += len(computation)

    def all(self) -> Propagated[T]:
        for computation in callers_first(self._module):
            if computation in self._starts:
                self._fill(computation)
        used = dict.fromkeys(self._found)
        used.pop(-1, None)
        pairs: list[tuple[T, MetadataSource]] = [
            (self._values[number % self._size], _SOURCES[number // self._size])  # type: ignore[misc]
            for number in used
        ]
        numbers = {number: n for n, number in enumerate(used)} | {-1: -1}
        return Propagated(pairs, array("i", map(numbers.__getitem__, self._found)), numbered(self._module))

    def _fill(self, computation: Computation) -> None:
        start, size = self._starts[computation], self._size
        instructions = computation.instructions
        found = self._found[start : start + len(instructions)]
        if -1 not in found:
            return
        if True in (wraps := self._wraps[start : start + len(instructions)]):
            for place, is_wrapper in enumerate(wraps):
                if is_wrapper and found[place] < 0 and (inner := self._inside(instructions[place])) >= 0:
                    found[place] = inner + size * _BODY
        is_entry = computation is self._module.entry
        call = None if is_entry else self._graph.call(computation)
        start_above = self._starts.get(call.computation, -1) if call is not None else -1
        above = self._found[start_above + call.place] if call is not None and start_above >= 0 else -1
        if is_entry or above < 0 or self._graph.use(computation) in _STEPS:
            self._from_users(instructions, found)
            self._from_producers(instructions, found)
        if above >= 0:
            number = above % size + size * _CALLER
            found = [number if own < 0 else own for own in found]
        self._found[start : start + len(instructions)] = found

    def _inside(self, instruction: Instruction) -> int:
        """Metadata from the body that an instruction runs, the root first."""
        for callee in instruction.called_computations:
            start = self._starts.get(callee, -1)
            for number in reversed(self._own[start : start + len(callee)] if start >= 0 else ()):
                if number >= 0:
                    return number
        return -1

    def _from_users(self, instructions: Sequence[Instruction], found: list[int]) -> None:
        places = {instruction: place for place, instruction in enumerate(instructions)}
        queue, size = deque(place for place, number in enumerate(found) if number >= 0), self._size
        while queue:
            user = queue.popleft()
            number = found[user] % size + size * _USER
            for operand in instructions[user]._operands:
                place = places.get(operand)
                if place is not None and found[place] < 0 and operand._head.opcode != "parameter":
                    found[place] = number
                    queue.append(place)

    def _from_producers(self, instructions: Sequence[Instruction], found: list[int]) -> None:
        if -1 not in found:
            return
        places = {instruction: place for place, instruction in enumerate(instructions)}
        for place, instruction in enumerate(instructions):
            if found[place] >= 0 or instruction._head.opcode == "parameter" or instruction.is_root:
                continue
            near = (found[at] for one in instruction._operands if (at := places.get(one)) is not None)
            maker = next((number for number in near if number >= 0), -1)
            if maker >= 0:
                found[place] = maker % self._size + self._size * _PRODUCER
