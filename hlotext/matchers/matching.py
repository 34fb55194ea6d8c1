"""The matching algorithm: each pair of pattern and instruction is tried once, given the captures so far.

Operands in any order and alternatives make ways that branch, and nested ones would make exponentially many. But what a part
of a pattern captures matters to the rest only where the rest asks for the same name again. So of a part that shares no name
the first way is enough, of others one for each different meaning of the shared names, and each is found once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from hlotext.ir.nodes.instruction import Instruction

if TYPE_CHECKING:
    from hlotext.matchers.pattern import Pattern

Captures: TypeAlias = dict[str, Any]
"""Captured values by name: instructions; in text patterns also texts of shapes and attributes."""


@attrs.frozen
class MatchOptions:
    """Options for looking through instructions between a user and its operand."""

    opcodes: frozenset[str] = frozenset()
    """Single-operand opcodes to look through, such as `frozenset({"bitcast", "copy"})`."""
    fusion: bool = False
    """Look through fusions: a fusion matches as its root, and its parameters match as its operands."""
    start: bool = False
    """Also look through the matched instruction itself."""


NOTHING_SKIPPED = MatchOptions()


@attrs.frozen
class Failure:
    """A failed attempt to match, and its depth."""

    depth: int
    text: str


@attrs.frozen
class Place:
    """An instruction on which a pattern is tried, and how it was reached."""

    instruction: Instruction
    depth: int = 0
    user: Instruction | None = None
    """The instruction that uses it; None at the start."""
    number: int = 0

    def __str__(self) -> str:
        name = self.instruction.name
        return name if self.user is None else f"operand {self.number} of {self.user.name}, {name}"


class Matching:
    """One attempt to match a pattern."""

    def __init__(self, pattern: Pattern, failures: list[Failure] | None = None) -> None:
        self.shared = pattern.shared_names
        self.failures = failures
        self.known: dict[Any, list[Captures]] = {}

    def ways(
        self, pattern: Pattern, place: Place, captures: Captures, options: MatchOptions
    ) -> list[Captures]:
        """Returns the captures of each way to match a pattern that makes a difference to the rest; empty if it does not
        match.
        """
        options = pattern.options or options
        if not pattern.is_branching:
            return list(self._ways(pattern, place, captures, options))
        names = sorted(self.shared.intersection(pattern.name_counts)) if self.shared else []
        key = id(pattern), place.instruction, options, *(captures.get(name) for name in names)
        found = self.known.get(key)
        if found is None:
            different: dict[Any, Captures] = {}
            for way in self._ways(pattern, place, captures, options):
                different.setdefault(tuple(way.get(name) for name in names), way)
                if not names:
                    break
            found = self.known[key] = list(different.values())
        return found

    def _ways(
        self, pattern: Pattern, place: Place, captures: Captures, options: MatchOptions
    ) -> Iterator[Captures]:
        if pattern.alternatives:
            ways: Iterator[Captures] = itertools.chain.from_iterable(
                self.ways(alternative, place, captures, options) for alternative in pattern.alternatives
            )
        else:
            ways = self._as_one(pattern, place, captures, options)
        for way in ways:
            found = self._kept(pattern, place, captures, way)
            if found is None:
                continue
            yield from self._beside(pattern, place, captures, found, options)

    def _as_one(
        self, pattern: Pattern, place: Place, captures: Captures, options: MatchOptions
    ) -> Iterator[Captures]:
        """Opcode and operands of a pattern without alternatives."""
        instruction = place.instruction
        if pattern.opcode is not None and instruction.opcode != pattern.opcode:
            self._fail(place, f"the opcode is {instruction.opcode}, not {pattern.opcode}")
            return
        wanted = pattern.operands
        if wanted is None:
            yield {}
            return
        given = len(instruction.operands)
        if given < len(wanted) or (given > len(wanted) and not pattern.open_ended):
            self._fail(place, f"it has {given} operands, not {len(wanted)}")
            return
        for order in itertools.permutations(wanted) if pattern.any_order else (wanted,):
            yield from self._operands(enumerate(order), place, captures, options)

    def _operands(
        self, wanted: Any, place: Place, captures: Captures, options: MatchOptions
    ) -> Iterator[Captures]:
        """Every way in which operands of these numbers match their patterns, from left to right."""
        items = []
        for number, pattern in wanted:
            inner = pattern.options or options
            operand = looked_through(place.instruction.operands[number], inner)
            items.append((pattern, Place(operand, place.depth + 1, place.instruction, number)))
        if not items:
            yield {}
            return
        found: list[Captures] = [{}]
        pending = [iter(self.ways(*items[0], captures, options))]
        while pending:
            way = next(pending[-1], None)
            if way is None:
                pending.pop()
                found.pop()
            elif len(pending) == len(items):
                yield {**found[-1], **way}
            else:
                found.append({**found[-1], **way})
                pending.append(iter(self.ways(*items[len(pending)], {**captures, **found[-1]}, options)))

    def _kept(self, pattern: Pattern, place: Place, captures: Captures, way: Captures) -> Captures | None:
        """The captures with this instruction added; None if a condition fails."""
        name = pattern.capture
        if name is None and not pattern.conditions:
            return way
        found = {**captures, **way}
        if name is not None:
            if found.get(name, place.instruction) is not place.instruction:
                self._fail(place, f"{name} is already another instruction")
                return None
            found[name] = place.instruction
        for condition in pattern.conditions:
            if not condition.holds(place.instruction, found):
                self._fail(place, f"it must be that {condition.text}")
                return None
        return {key: value for key, value in found.items() if key not in captures or key in way}

    def _beside(
        self, pattern: Pattern, place: Place, captures: Captures, found: Captures, options: MatchOptions
    ) -> Iterator[Captures]:
        """The ways in which also single operands match, and nothing that must not."""
        for forbidden in pattern.forbidden:
            if Matching(forbidden).ways(forbidden, place, {**captures, **found}, options):
                self._fail(place, "it matches an excluded pattern")
                return
        if not pattern.single_operands:
            yield found
            return
        count = len(place.instruction.operands)
        present = []
        for single in pattern.single_operands:
            if single.number < count:
                present.append((single.number, single.pattern))
            elif not single.is_optional:
                self._fail(place, f"it has {count} operands, so no operand {single.number}")
                return
        for way in self._operands(present, place, {**captures, **found}, options):
            yield {**found, **way}

    def _fail(self, place: Place, reason: str) -> None:
        if self.failures is not None:
            self.failures.append(Failure(place.depth, f"{place}: {reason}"))


def matches_directly(
    pattern: Pattern, instruction: Instruction, captures: Captures, options: MatchOptions
) -> bool:
    """Matches a direct pattern, which can match in only one way. Returns True, with captures added, if it matches."""
    if pattern.opcode is not None and instruction._head.opcode != pattern.opcode:
        return False
    wanted = pattern.operands
    if wanted is not None:
        operands = instruction._operands
        if len(operands) != len(wanted) and not (pattern.open_ended and len(operands) > len(wanted)):
            return False
        options = pattern.options or options
        for part, operand in zip(wanted, operands, strict=False):
            inner = part.options or options
            if inner is not NOTHING_SKIPPED:
                operand = looked_through(operand, inner)
            if not matches_directly(part, operand, captures, inner):
                return False
    name = pattern.capture
    if name is not None and captures.setdefault(name, instruction) is not instruction:
        return False
    return not pattern.conditions or all(one.holds(instruction, captures) for one in pattern.conditions)


def looked_through(instruction: Instruction, options: MatchOptions) -> Instruction:
    """Returns the first instruction along the operands that is not looked through."""
    if options is NOTHING_SKIPPED:
        return instruction
    while True:
        opcode = instruction.opcode
        if opcode in options.opcodes and instruction.operands:
            instruction = instruction.operands[0]
        elif options.fusion and opcode == "fusion":
            instruction = instruction.called_computations[0].root
        elif options.fusion and (found := _across_a_border(instruction)) is not None:
            instruction = found
        else:
            return instruction


def _across_a_border(instruction: Instruction) -> Instruction | None:
    """The fusion's operand for a parameter of its body, or the producer of one of its outputs; None for all others."""
    if instruction.opcode == "get-tuple-element":
        fusion = instruction.operands[0]
        root = fusion.called_computations[0].root if fusion.opcode == "fusion" else None
        index: int = instruction.attributes["index"]
        return root.operands[index] if root is not None and root.opcode == "tuple" else None
    if instruction.opcode != "parameter" or instruction.computation is None:
        return None
    callers = instruction.computation.callers
    if len(callers) != 1 or callers[0].opcode != "fusion":
        return None
    return callers[0].operands[instruction.parameter_number or 0]
