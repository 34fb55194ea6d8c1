"""Metadata for instructions without their own, from the call, the nearest user, or the producer."""

from __future__ import annotations

import enum
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

import attrs

from hlotext.analysis.call_graph import CALLED, LOOP_BODY, LOOP_CONDITION, call_graph, callers_first
from hlotext.analysis.census import Shared, census, numbered
from hlotext.analysis.facts import fact
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

T = TypeVar("T")
D = TypeVar("D")


class MetadataSource(enum.Enum):
    """Source of an instruction's metadata: the instruction itself, or another one that it was propagated from."""

    OWN = "itself"
    BODY = "what it runs"
    CALLER = "the instruction it is part of"
    USER = "the nearest instruction that uses it"
    PRODUCER = "an instruction that produces its operands"


_WRAPPERS = frozenset({"fusion", "async-start"})
"""Opcodes that are there for the sake of what they run."""

_STEPS = frozenset({CALLED, LOOP_BODY, LOOP_CONDITION, "branch"})
"""Uses of computations in which neighbours tell more than the caller."""


@attrs.frozen(eq=False)
class Propagated(Mapping[Instruction, tuple[T, MetadataSource]], Generic[T]):
    """Mapping from instruction to (metadata, source), in text order. Instructions without metadata are omitted."""

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
        """Returns the metadata of an instruction and its source, or `default`."""
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
        """Returns a copy with other metadata for some instructions."""
        pairs, numbers = list(self.pairs), array("i", self.numbers)
        for instruction, pair in others.items():
            numbers[self._places[instruction]] = len(pairs)
            pairs.append(pair)
        return Propagated(pairs, numbers, self._places)


def propagated(module: Module, own: Callable[[Instruction], T | None]) -> Propagated[T]:
    """Returns the metadata of each instruction, propagated from callers or neighbors to instructions without any.

    Takes linear time. Arguments of the module, and instructions without a source nearby, are omitted.

    Args:
        module: The module.
        own: Returns the metadata of one instruction without propagation, or None if it has none.
    """
    found = list(map(own, census(module).instructions))
    return spread(module, Shared.of(found, list(map(id, found))))


def spread(module: Module, own: Shared[T | None]) -> Propagated[T]:
    """Propagates metadata as `propagated` does, given the metadata of every instruction in text order, or None."""
    are_known = bytes(value is not None for value in own.distinct)
    ways = _ways(module, bytes(map(are_known.__getitem__, own.numbers)))
    values, size = own.numbers, len(_SOURCES)
    found = [
        values[origin] * size + source for origin, source in zip(ways.origins, ways.sources, strict=True)
    ]
    for place in ways.missing:
        found[place] = -1
    used = dict.fromkeys(found)
    used.pop(-1, None)
    pairs: list[tuple[T, MetadataSource]] = [
        (own.distinct[number // size], _SOURCES[number % size])  # type: ignore[misc]
        for number in used
    ]
    numbers = {number: n for n, number in enumerate(used)} | {-1: -1}
    return Propagated(pairs, array("i", map(numbers.__getitem__, found)), numbered(module))


_SOURCES = tuple(MetadataSource)
_OWN, _BODY, _CALLER, _USER, _PRODUCER = map(
    _SOURCES.index,
    (
        MetadataSource.OWN,
        MetadataSource.BODY,
        MetadataSource.CALLER,
        MetadataSource.USER,
        MetadataSource.PRODUCER,
    ),
)
_NONE = 255


@attrs.frozen
class _Ways:
    """From where each instruction has its metadata; all in places in the order of the text."""

    origins: Sequence[int]
    """The instruction whose own it is; any where there is none."""
    sources: Sequence[int]
    """Indices into `_SOURCES`; `_NONE` where there is none."""
    missing: Sequence[int]
    """The instructions that have none."""


@fact
def _ways(module: Module, are_known: bytes) -> _Ways:
    """The ways along which metadata is propagated depend only on which instructions have their own (1, else 0).

    So they are found once for scopes and lines, which most instructions have together.
    """
    return _Spreading(module, are_known).all()


class _Spreading:
    """Finds the ways, computation by computation, callers first."""

    def __init__(self, module: Module, are_known: bytes) -> None:
        self._module, self._graph = module, call_graph(module)
        self._known = are_known
        self._origins = list(range(len(are_known)))
        self._sources = bytearray(are_known.translate(bytes((_NONE, _OWN)) + bytes(254)))
        heads = census(module).heads
        wraps = bytes(head.opcode in _WRAPPERS for head in heads.distinct)
        self._wraps = bytes(map(wraps.__getitem__, heads.numbers))
        self._starts: dict[Computation, int] = {}
        at = 0
        for computation in module.computations:
            self._starts[computation] = at
            at += len(computation)

    def all(self) -> _Ways:
        for computation in callers_first(self._module):
            if computation in self._starts:
                self._fill(computation)
        missing = _places(self._sources, _NONE, 0, len(self._sources))
        return _Ways(array("i", self._origins), bytes(self._sources), list(missing))

    def _fill(self, computation: Computation) -> None:
        start, sources = self._starts[computation], self._sources
        instructions = computation._instructions
        end = start + len(instructions)
        if sources.find(_NONE, start, end) < 0:
            return
        for place in _places(self._wraps, 1, start, end):
            if sources[place] == _NONE and (inner := self._inside(instructions[place - start])) >= 0:
                self._origins[place], sources[place] = inner, _BODY
        is_entry = computation is self._module.entry
        call = None if is_entry else self._graph.call(computation)
        start_above = self._starts.get(call.computation, -1) if call is not None else -1
        above = start_above + call.place if call is not None and start_above >= 0 else -1
        is_told = above >= 0 and sources[above] != _NONE
        if not is_told or self._graph.use(computation) in _STEPS:
            self._from_users(instructions, start)
            self._from_producers(instructions, start)
        if is_told:
            origin, own = self._origins[above], zip(self._origins[start:end], sources[start:end], strict=True)
            self._origins[start:end] = [origin if source == _NONE else place for place, source in own]
            sources[start:end] = sources[start:end].replace(bytes((_NONE,)), bytes((_CALLER,)))

    def _inside(self, instruction: Instruction) -> int:
        """The place of the instruction of the body with metadata of its own that is nearest to the root; -1 without one."""
        for callee in instruction.called_computations:
            start = self._starts.get(callee, -1)
            if start >= 0 and (place := self._known.rfind(1, start, start + len(callee))) >= 0:
                return place
        return -1

    def _from_users(self, instructions: Sequence[Instruction], start: int) -> None:
        origins, sources = self._origins, self._sources
        places = {instruction: place for place, instruction in enumerate(instructions, start)}
        queue = deque(place for place in places.values() if sources[place] != _NONE)
        while queue:
            user = queue.popleft()
            for operand in instructions[user - start]._operands:
                place = places.get(operand, -1)
                if place >= 0 and sources[place] == _NONE and operand._head.opcode != "parameter":
                    origins[place], sources[place] = origins[user], _USER
                    queue.append(place)

    def _from_producers(self, instructions: Sequence[Instruction], start: int) -> None:
        origins, sources = self._origins, self._sources
        places: dict[Instruction, int] = {}
        for place in list(_places(sources, _NONE, start, start + len(instructions))):
            instruction = instructions[place - start]
            if instruction._head.opcode == "parameter" or instruction.is_root:
                continue
            places = places or {one: n for n, one in enumerate(instructions, start)}
            near = (at for one in instruction._operands if (at := places.get(one, -1)) >= 0)
            maker = next((at for at in near if sources[at] != _NONE), -1)
            if maker >= 0:
                origins[place], sources[place] = origins[maker], _PRODUCER


def _places(values: bytes | bytearray, wanted: int, start: int, end: int) -> Iterator[int]:
    """Where a value stands in a range."""
    place = values.find(wanted, start, end)
    while place >= 0:
        yield place
        place = values.find(wanted, place + 1, end)
