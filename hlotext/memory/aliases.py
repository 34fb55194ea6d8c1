"""Buffers: sets of values that must share memory (`HloAliasAnalysis`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.in_place import WRITES_IN_PLACE, InPlacePairs
from hlotext.memory.value_sets import shape_of
from hlotext.memory.values import Value

Buffer = tuple[Value, ...]
"""Values that must share memory, by number."""


class MustAlias(NamedTuple):
    """Two values that must share memory, and the reason."""

    first: Value
    second: Value
    cause: Instruction | None
    """A loop, a conditional or an operation in place; None for an output aliased to a parameter."""


def find_buffers(flow: Dataflow, pairs: InPlacePairs) -> list[Buffer]:
    """Returns all buffers of a module, in XLA's order (`CreateBuffers`), which breaks ties.

    Values must alias through an output aliased to a parameter, a loop's state, the results of branches, and in-place
    operations; the relation is transitive.
    """
    together = _Sets(flow.values)
    edges: dict[Value, list[Value]] = {}
    for first, second, _ in must_alias_pairs(flow, pairs):
        if first is not second:
            edges.setdefault(first, []).append(second)
            edges.setdefault(second, []).append(first)
    for value in sorted(edges, key=_number):
        together.join(value, edges[value])
    return together.sets()


def must_alias_pairs(flow: Dataflow, pairs: InPlacePairs) -> Iterator[MustAlias]:
    """Yields the pairs of values that must share memory."""
    module, at = flow.module, flow.at
    root = module.entry.root
    parameters = {p.parameter_number: p for p in module.entry.parameters}
    place_of = flow.parts.of(shape_of(root)).place
    for output, (number, index) in flow.aliases.items():
        parameter = parameters.get(number)
        place = place_of.get(output)
        if parameter is None or place is None:
            continue
        first, second = at[root][place], flow.value_at(parameter, index)
        if first is not None and second is not None:
            yield MustAlias(first, second, None)
    for caller in dict.fromkeys(itertools.chain.from_iterable(flow.callers.values())):
        yield from _through(flow, caller)  # once, though each of its branches has it as a caller
    for instruction, values in at.items():
        if instruction._head.opcode not in WRITES_IN_PLACE or not (made := pairs.of(instruction)):
            continue
        operands, places = instruction._operands, flow.parts.of(shape_of(instruction)).place
        for number, index, output in made:
            outer = places.get(output)
            if number >= len(operands) or outer is None:
                continue
            operand = operands[number]
            inner = flow.parts.of(shape_of(operand)).place.get(index) if index else 0
            if inner is None:
                continue
            first, second = at[operand][inner], values[outer]
            if first is not None and second is not None:
                yield MustAlias(first, second, instruction)


def _through(flow: Dataflow, caller: Instruction) -> Iterator[MustAlias]:
    """Must-alias pairs made by a loop's state or by the results of branches."""
    at = flow.at
    results = at[caller]
    if caller.opcode == "conditional":
        others = [at[callee.root] for callee in caller.called_computations]
    elif caller.opcode == "while":
        body, condition = caller.called_computations
        others = [
            at[caller.operands[0]],
            at[body.parameters[0]],
            at[condition.parameters[0]],
            at[body.root],
        ]
    else:
        return
    for values in others:
        for first, second in zip(results, values, strict=False):
            if first is not None and second is not None and first is not second:
                yield MustAlias(first, second, caller)


class _Sets:
    """Disjoint sets of values that are joined as XLA joins them: into the largest, which keeps its place."""

    def __init__(self, values: list[Value]) -> None:
        """The values by their numbers."""
        self._values = values
        self._set: dict[Value, int] = {}
        """Of those that were joined the set; each other value is alone in the one of its own number."""
        self._members: dict[int, list[Value]] = {}

    def join(self, value: Value, others: list[Value]) -> None:
        """Puts a value's set and those of the others together."""
        members, own = self._members, self._set
        mine = own.get(value, -1)
        if mine >= 0 and all(own.get(each) == mine for each in others):
            return  # each pair comes from both sides
        found = {mine if mine >= 0 else value.number: value.number}
        for each in others:
            number = own.get(each, each.number)
            known = found.get(number)
            if known is None or each.number < known:
                found[number] = each.number

        def size(number: int) -> tuple[int, int]:
            return (len(members[number]) if number in members else 1, -found[number])

        into = max(found, key=size)
        kept = members.get(into)
        if kept is None:
            kept = members[into] = [self._values[into]]
            own[kept[0]] = into
        for number in found:
            if number != into:
                gone = members.pop(number, None) or [self._values[number]]
                kept += gone
                for each in gone:
                    own[each] = into

    def sets(self) -> list[Buffer]:
        """Every set that is left, by place; its values by number."""
        found: list[Buffer] = []
        own, members = self._set, self._members
        for number, value in enumerate(self._values):
            if value not in own:
                found.append((value,))
            elif number in members:
                found.append(tuple(sorted(members[number], key=_number)))
        return found


def _number(value: Value) -> int:
    return value.number
