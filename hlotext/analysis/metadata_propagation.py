"""Metadata for instructions without their own, from the call, the nearest user, or the producer."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from hlotext.analysis.call_graph import CALLED, LOOP_BODY, LOOP_CONDITION, CallGraph, call_graph
from hlotext.analysis.facts import fact
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

T = TypeVar("T")


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


def propagated(
    module: Module, own: Callable[[Instruction], T | None]
) -> dict[Instruction, tuple[T, MetadataSource]]:
    """Metadata of each instruction: its own, else propagated from its neighbors, callers first.

    Takes time linear in the module. Arguments of the module, and instructions without any source nearby, are omitted.

    Args:
        module: The module.
        own: Returns the metadata of an instruction itself; None if absent.
    """
    graph = call_graph(module)
    found: dict[Instruction, tuple[T, MetadataSource]] = {}
    pairs = _Pairs[T]()
    for computation in callers_first(module):
        _fill(graph, computation, own, found, pairs)
    return found


class _Pairs(Generic[T]):
    """Metadata with its source: one object shared by all instructions with equal values."""

    def __init__(self) -> None:
        self.known: dict[MetadataSource, dict[int, tuple[T, MetadataSource]]] = {
            source: {} for source in MetadataSource
        }
        """The pairs by source and by the identity of the value."""

    def of(self, value: T, source: MetadataSource) -> tuple[T, MetadataSource]:
        """The pair of these two; it keeps the value, by whose identity it is found."""
        known = self.known[source]
        pair = known.get(id(value))
        if pair is None:
            pair = known[id(value)] = value, source
        return pair


def _fill(
    graph: CallGraph,
    computation: Computation,
    own: Callable[[Instruction], T | None],
    found: dict[Instruction, tuple[T, MetadataSource]],
    pairs: _Pairs[T],
) -> None:
    instructions = computation.instructions
    known: list[Instruction] = []
    shared = pairs.known[MetadataSource.OWN]
    for instruction in instructions:
        value = own(instruction)
        if value is not None:  # as of most
            found[instruction] = shared.get(id(value)) or pairs.of(value, MetadataSource.OWN)
        elif instruction._head.opcode in _WRAPPERS and (value := _inside(instruction, own)) is not None:
            found[instruction] = pairs.of(value, MetadataSource.BODY)
        else:
            continue
        known.append(instruction)
    is_entry = computation is graph.module.entry
    if len(known) == len(instructions):
        return
    caller = None if is_entry else graph.caller(computation)
    above = found.get(caller) if caller is not None else None
    if is_entry or above is None or graph.use(computation) in _STEPS:
        _from_users(known, found, pairs)
        _from_producers(instructions, found, pairs)
    if above is not None:
        pair = pairs.of(above[0], MetadataSource.CALLER)
        for instruction in instructions:
            if instruction not in found:
                found[instruction] = pair


def _inside(instruction: Instruction, own: Callable[[Instruction], T | None]) -> T | None:
    """Metadata from the body that an instruction runs, the root first."""
    for callee in instruction.called_computations:
        for inner in reversed(callee.instructions):
            if (value := own(inner)) is not None:
                return value
    return None


def _from_users(
    known: Iterable[Instruction], found: dict[Instruction, tuple[T, MetadataSource]], pairs: _Pairs[T]
) -> None:
    queue, shared = deque(known), pairs.known[MetadataSource.USER]
    while queue:
        user = queue.popleft()
        for operand in user._operands:
            if operand not in found and operand._head.opcode != "parameter":
                value = found[user][0]
                found[operand] = shared.get(id(value)) or pairs.of(value, MetadataSource.USER)
                queue.append(operand)


def _from_producers(
    instructions: Iterable[Instruction], found: dict[Instruction, tuple[T, MetadataSource]], pairs: _Pairs[T]
) -> None:
    for instruction in instructions:
        if instruction in found or instruction._head.opcode == "parameter" or instruction.is_root:
            continue
        maker = next((operand for operand in instruction._operands if operand in found), None)
        if maker is not None:
            found[instruction] = pairs.of(found[maker][0], MetadataSource.PRODUCER)
