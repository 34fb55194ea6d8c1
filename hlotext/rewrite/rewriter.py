"""Patterns applied to a fixpoint: a worklist of instructions, in a fixed order, with a bound and listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.matchers.matching import NOTHING_SKIPPED, Options
from hlotext.matchers.pattern import Match, Pattern
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.effects import is_dead


class RewriteError(RuntimeError):
    """Patterns that did not come to an end within their bound."""


@attrs.frozen
class Rewrite:
    """What is in the hands of a rewrite: the instruction, what the pattern captured, and a builder in front of it."""

    instruction: Instruction
    match: Match
    b: Builder
    """Inserts before the instruction; inherits its metadata and sharding."""

    def __getitem__(self, name: str) -> Instruction:
        found: Instruction = self.match[name]
        return found


RewriteFunction = Callable[[Rewrite], "Instruction | None"]
"""Gives what takes the instruction's place; None for no change. The instruction itself: it was changed in place."""


@attrs.frozen
class Rule:
    """A pattern and what becomes of a match."""

    name: str
    pattern: Pattern
    function: RewriteFunction
    options: Options = NOTHING_SKIPPED

    @property
    def doc(self) -> str:
        """What the rule does; the function's docstring."""
        return self.function.__doc__ or ""


def pattern(wanted: Pattern, options: Options = NOTHING_SKIPPED) -> Callable[[RewriteFunction], Rule]:
    """Makes a function the rule for a pattern.

    >>> from hlotext import matchers as m
    >>> @pattern(m.sine(m.op("x")))
    ... def sine_to_cosine(rewrite):
    ...     return rewrite.b.cosine(rewrite["x"])
    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] sine(x) }")
    >>> apply_rules(module, [sine_to_cosine])
    {'sine_to_cosine': 1}
    >>> print(module.entry.root)
    ROOT cosine = f32[4] cosine(x)
    """

    def make(function: RewriteFunction) -> Rule:
        return Rule(function.__name__, wanted, function, options)

    return make


class Listener(Protocol):
    """Is told of every replacement, before it happens."""

    def replaced(self, rule: Rule, old: Instruction, new: Instruction) -> None: ...


def apply_rules(
    module: Module,
    rules: Sequence[Rule],
    *,
    computations: Iterable[Computation] | None = None,
    max_rewrites: int | None = None,
    listeners: Sequence[Listener] = (),
) -> dict[str, int]:
    """Applies rules until none matches; how often each did, by name.

    Instructions are visited computation by computation in the order of the text; rules are tried in order; what a
    replacement made, and its users, is visited again. Replaced instructions and operands that nothing uses any more are
    taken out. Raises RewriteError beyond `max_rewrites` (by default eight for every instruction of the module, plus 1,000):
    then the rules undo one another.
    """
    worklist = _Worklist(module, rules, listeners)
    limit = max_rewrites if max_rewrites is not None else 8 * sum(map(len, module.computations)) + 1000
    for computation in tuple(computations if computations is not None else module.computations):
        if not computation.is_implicit:
            worklist.run(computation, limit)
    return worklist.counts


class _Worklist:
    """One run over a module."""

    def __init__(self, module: Module, rules: Sequence[Rule], listeners: Sequence[Listener]) -> None:
        self.module = module
        self.listeners = listeners
        self.counts: dict[str, int] = {}
        self.rules = rules
        self._by_opcode: dict[str, list[Rule]] = {}

    def rules_for(self, opcode: str) -> list[Rule]:
        """The rules that may match that opcode, so that most instructions cost one look-up."""
        found = self._by_opcode.get(opcode)
        if found is None:
            found = [rule for rule in self.rules if opcode in (_opcodes(rule.pattern) or (opcode,))]
            self._by_opcode[opcode] = found
        return found

    def run(self, computation: Computation, limit: int) -> None:
        pending = dict.fromkeys(reversed(computation.instructions))
        while pending:
            instruction = pending.popitem()[0]
            if instruction.computation is not computation:
                continue
            for rule in self.rules_for(instruction.opcode):
                touched = self.try_rule(rule, instruction)
                if touched is not None:
                    pending.update(dict.fromkeys(reversed(touched)))
                    if sum(self.counts.values()) > limit:
                        most = max(self.counts, key=lambda name: self.counts[name])
                        raise RewriteError(f"no end after {limit} rewrites, most of them by {most}")
                    break

    def try_rule(self, rule: Rule, old: Instruction) -> list[Instruction] | None:
        """What is to be visited again after a rule was applied; None where it was not."""
        match = rule.pattern.match(old, rule.options)
        computation = old.computation
        if match is None or computation is None:
            return None
        place = computation.order.place(old)
        before = computation._instructions[place - 1] if place else None
        new = rule.function(Rewrite(old, match, Builder.before(old)))
        if new is None:
            return None
        self.counts[rule.name] = self.counts.get(rule.name, 0) + 1
        made = computation._instructions[
            computation.order.place(before) + 1 if before is not None else 0 : computation.order.place(old)
        ]
        if new is old:
            return [*made, old, *old.users]
        for listener in self.listeners:
            listener.replaced(rule, old, new)
        users = old.users
        operands = old.operands
        old.replace_with(new)
        remove_dead_operands((old,) if old.computation is not None else operands)
        return [*made, new, *users]


def _opcodes(pattern: Pattern) -> set[str] | None:
    """The opcodes that a pattern can match; None: any."""
    if pattern.alternatives:
        parts = [_opcodes(alternative) for alternative in pattern.alternatives]
        return None if None in parts else {opcode for part in parts if part for opcode in part}
    return {pattern.opcode} if pattern.opcode is not None else None


def remove_dead_operands(candidates: Iterable[Instruction]) -> int:
    """Takes out those that nothing uses and that have no effect, and then their operands; how many."""
    stack, count = list(candidates), 0
    while stack:
        instruction = stack.pop()
        if instruction.computation is None or not is_dead(instruction):
            continue
        stack.extend(instruction.operands)
        instruction.erase()
        count += 1
    return count
