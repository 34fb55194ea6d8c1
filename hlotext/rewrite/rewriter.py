"""Patterns applied to a fixpoint: a worklist of instructions, in a fixed order, with a bound and listeners."""

from __future__ import annotations

import importlib
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from hlotext.edit.journal import Edit
from hlotext.edit.uses import hand_over
from hlotext.ir import sending
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.matchers.matching import NOTHING_SKIPPED, MatchOptions
from hlotext.matchers.pattern import Match, Pattern
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.effects import is_dead


class RewriteError(RuntimeError):
    """Patterns that did not come to an end within their bound, or a rule that changed a result."""


class RefusedRewriteWarning(UserWarning):
    """An application of a rule that an edit refused, and that was taken back."""


@attrs.frozen
class Rewrite:
    """Context of a rewrite: the instruction, the pattern's captures, and a builder positioned before it."""

    instruction: Instruction
    match: Match
    b: Builder
    """Inserts before the instruction; inherits its metadata and sharding."""

    def __getitem__(self, name: str) -> Instruction:
        found: Instruction = self.match[name]
        return found

    def like(self, name: str) -> Builder:
        """The builder, with metadata and sharding of what was captured under a name in place of the root's."""
        return attrs.evolve(self.b, like=self[name])


RewriteFunction = Callable[[Rewrite], "Instruction | None"]
"""Gives what takes the instruction's place; None for no change. The instruction itself: it was changed in place."""


@attrs.frozen
class RewriteRule(sending.Uncopied):
    """A pattern and what becomes of a match."""

    name: str
    pattern: Pattern
    function: RewriteFunction
    options: MatchOptions = NOTHING_SKIPPED

    @property
    def doc(self) -> str:
        """Description of the rule: the function's docstring."""
        return self.function.__doc__ or ""

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle. Raises TypeError where another process cannot find the function."""
        place = self.function.__module__, self.function.__qualname__
        if sending.named(*place) is self:  # it stands under the name of its function
            return sending.found, place
        sending.check(self.function, f"the rule {self.name}")
        return RewriteRule, (self.name, self.pattern, self.function, self.options)


def pattern(
    wanted: Pattern, options: MatchOptions = NOTHING_SKIPPED
) -> Callable[[RewriteFunction], RewriteRule]:
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

    def make(function: RewriteFunction) -> RewriteRule:
        return RewriteRule(function.__name__, wanted, function, options)

    return make


class Listener(Protocol):
    """Is told of every replacement, before it happens. Of each single edit `Module.listen` tells."""

    def replaced(self, rule: RewriteRule, old: Instruction, new: Instruction) -> None: ...


@attrs.define
class RuleProfile:
    """Cost and effect of one rule."""

    tried: int = 0
    """Instructions on which its pattern was tried."""
    matched: int = 0
    applied: int = 0
    """Matches of which the function made something; the others were taken back, if anything had been made."""
    refused: int = 0
    """Matches whose replacement an edit refused."""
    seconds: float = 0.0
    """In its pattern, its function and the replacement."""


Profile: TypeAlias = dict[str, RuleProfile]
"""Profile of each rule, by name; given to `apply_rules`, which fills it in."""


def apply_rules(
    module: Module,
    rules: Sequence[RewriteRule],
    *,
    computations: Iterable[Computation] | None = None,
    max_rewrites: int | None = None,
    listeners: Sequence[Listener] = (),
    profile: Profile | None = None,
    on_refused: str = "warn",
    verify: str | None = None,
) -> dict[str, int]:
    """Applies rules until none matches anywhere; how often each did, by name.

    Instructions are visited computation by computation in the order of the text; rules are tried in order. Whatever a rule
    inserted, changed or took out, and what uses or is used by that, is visited next; when nothing is left, everything is
    visited once more, until a whole round changes nothing. So no rule matches at the end, however far its pattern looks.

    Each application is one transaction. What a rule made is taken back where it returns None or raises (the exception then
    says which rule, and where); replaced instructions, operands and new instructions that nothing uses are taken out.

    Args:
        module: Is changed in place.
        rules: Tried in this order.
        computations: The only ones to be visited; None: all.
        max_rewrites: Beyond this rules undo one another; None: eight for every instruction of the module, plus 1,000.
        listeners: Are told of each replacement.
        profile: Is filled in.
        on_refused: What an EditError does that a rule meets (a replacement of another type, a cycle): `warn` takes that
            application back, goes on, and warns once for each rule; `raise` ends the run.
        verify: `equivalence` executes the module before and after on the CPU (`hlotext[jax]`). Where results differ all is
            taken back; a module that cannot be executed is warned of.

    Raises:
        RewriteError: There was no end, or results differ: the message names the first application that changed one.
        ValueError: A choice that does not exist.
    """
    if on_refused not in ("warn", "raise"):
        raise ValueError(f"on_refused is warn or raise, not {on_refused}")
    if verify not in (None, "equivalence"):
        raise ValueError(f"verify is equivalence or None, not {verify}")
    if verify is not None:
        return _verified(module, rules, computations, max_rewrites, listeners, profile, on_refused)
    chosen = None if computations is None else frozenset(computations)
    limit = max_rewrites if max_rewrites is not None else 8 * sum(map(len, module.computations)) + 1000
    rewriter = _Rewriter(module, rules, chosen, limit, listeners, profile)
    rewriter.is_strict = on_refused == "raise"
    with module.listen(rewriter):
        rewriter.run()
    for name, reasons in rewriter.refused.items():
        more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        warnings.warn(f"the rule {name} was refused: {reasons[0]}{more}", RefusedRewriteWarning, stacklevel=2)
    return rewriter.counts


def _verified(
    module: Module,
    rules: Sequence[RewriteRule],
    computations: Iterable[Computation] | None,
    max_rewrites: int | None,
    listeners: Sequence[Listener],
    profile: Profile | None,
    on_refused: str,
) -> dict[str, int]:
    """As `apply_rules`, with the results of the module compared."""
    # Execution is a package above this one, and needs an extra: it is imported when it is asked for.
    equivalence = importlib.import_module("hlotext.execution.equivalence")
    before = module.clone()
    number_of = {computation: number for number, computation in enumerate(module.computations)}
    chosen = None if computations is None else [number_of[computation] for computation in computations]

    def after(limit: int | None) -> tuple[Module, str]:
        copy = before.clone()
        those = None if chosen is None else frozenset(copy.computations[number] for number in chosen)
        rewriter = _Rewriter(copy, rules, those, limit or 0, (), None)
        rewriter.stops_at, rewriter.is_strict = limit, on_refused == "raise"
        with copy.listen(rewriter):
            rewriter.run()
        return copy, rewriter.last[-1] if rewriter.last else ""

    with module.transaction():
        counts = apply_rules(
            module,
            rules,
            computations=None if chosen is None else [module.computations[number] for number in chosen],
            max_rewrites=max_rewrites,
            listeners=listeners,
            profile=profile,
            on_refused=on_refused,
        )
        total = sum(counts.values())
        said = equivalence.first_change(before, module, total, after) if total else None
        if said is not None:
            raise RewriteError(said)
    return counts


class _Rewriter:
    """One run over a module, which hears of every edit that its rules make."""

    def __init__(
        self,
        module: Module,
        rules: Sequence[RewriteRule],
        chosen: frozenset[Computation] | None,
        limit: int,
        listeners: Sequence[Listener],
        profile: Profile | None,
    ) -> None:
        self.module = module
        self.rules = rules
        self.chosen = chosen
        self.limit = limit
        self.listeners = listeners
        self.profile = profile
        self.counts: dict[str, int] = {}
        self.total = 0
        self.last: deque[str] = deque(maxlen=6)
        self.pending: dict[Instruction, None] = {}
        """Instructions to visit; the last one first."""
        self.made: dict[Instruction, None] = {}
        """Instructions that the running rule made, in order."""
        self.touched: dict[Instruction, bool] = {}
        """Edits of the running rule, in order; False for instructions that only lost or gained users."""
        self.is_strict = True
        """True if an edit that is refused ends the run."""
        self.refused: dict[str, list[str]] = {}
        """Edits that were refused, by rule."""
        self.stops_at: int | None = None
        """Rewrites after which to stop; None: at the end."""
        self._by_opcode: dict[str, list[RewriteRule]] = {}

    # ---- what edits tell

    def inserted(self, node: Instruction | Computation) -> None:
        if isinstance(node, Instruction):
            self.made[node] = None
            self.touched[node] = True

    def modified(self, node: Instruction | Computation) -> None:
        if isinstance(node, Instruction):
            self.touched[node] = True

    def removed(self, node: Instruction | Computation) -> None:
        if isinstance(node, Instruction):
            self.made.pop(node, None)
            for operand in node.operands:  # each has one user less
                self.touched.setdefault(operand, False)

    # ---- rounds

    def run(self) -> None:
        while True:
            before = self.total
            for computation in reversed(self.module.computations):
                if self.is_chosen(computation):
                    wanted = [i for i in reversed(computation.instructions) if self.rules_for(i.opcode)]
                    self.pending.update(dict.fromkeys(wanted))
            while self.pending:
                self.visit(self.pending.popitem()[0])
                if self.stops_at is not None and self.total >= self.stops_at:
                    return
            if self.total == before:
                return

    def is_chosen(self, computation: Computation | None) -> bool:
        if computation is None or computation.is_sugared:
            return False
        return computation.module is self.module and (self.chosen is None or computation in self.chosen)

    def visit(self, instruction: Instruction) -> None:
        """Tries the rules on an instruction until one applies."""
        if instruction.computation is None:
            return
        for rule in self.rules_for(instruction.opcode):
            if self.apply(rule, instruction):
                self.visit_again()
                self.total += 1
                self.last.append(f"{rule.name} on {instruction.name}")
                if self.stops_at is None and self.total > self.limit:
                    raise RewriteError(
                        f"no end after {self.limit} rewrites: rules undo one another; the last were {', '.join(self.last)}"
                    )
                return

    def visit_again(self) -> None:
        """Puts what was edited, and what uses it, on the list."""
        near: dict[Instruction, None] = {}
        for i, is_edited in self.touched.items():
            if self.is_chosen(i.computation):
                near[i] = None
                # That one of many others is gone or new says little to a user: the next round is soon enough.
                if is_edited or len(i.user_view) <= _MANY:
                    near.update(dict.fromkeys(i.user_view))
        pending = self.pending
        for i in reversed(near):
            if self.rules_for(i.opcode):
                pending.pop(i, None)
                pending[i] = None

    def rules_for(self, opcode: str) -> list[RewriteRule]:
        """The rules that may match that opcode, so that most instructions cost one look-up."""
        found = self._by_opcode.get(opcode)
        if found is None:
            found = [rule for rule in self.rules if opcode in (_opcodes(rule) or (opcode,))]
            self._by_opcode[opcode] = found
        return found

    # ---- one rule on one instruction

    def apply(self, rule: RewriteRule, old: Instruction) -> bool:
        """True if a rule made something of an instruction."""
        if self.profile is None:
            match = rule.pattern.match(old, rule.options)
            return match is not None and self.rewrite(rule, old, match)
        costs = self.profile.setdefault(rule.name, RuleProfile())
        start = time.perf_counter()
        try:
            match = rule.pattern.match(old, rule.options)
            costs.tried += 1
            costs.matched += match is not None
            applied = match is not None and self.rewrite(rule, old, match)
            costs.applied += applied
        finally:
            costs.seconds += time.perf_counter() - start
        return applied

    def rewrite(self, rule: RewriteRule, old: Instruction, match: Match) -> bool:
        """Applies a rule to its match, as a whole or not at all."""
        self.touched, self.made = {}, {}
        try:
            with Edit(self.module, is_transaction=True) as edit:
                new = rule.function(Rewrite(old, match, Builder.before(old)))
                if new is None:
                    edit.journal.roll_back(edit.savepoint)
                    return False
                self.replace(rule, old, new, list(self.made))
        except Exception as error:
            if isinstance(error, EditError) and not self.is_strict:
                # Tried once in each round; said once.
                said = f"{old.name}: {error}"
                reasons = self.refused.setdefault(rule.name, [])
                if said not in reasons:
                    reasons.append(said)
                if self.profile is not None:
                    self.profile[rule.name].refused += 1
                return False
            error.add_note(f"in the rule {rule.name}, applied to {old.name}")
            raise
        self.counts[rule.name] = self.counts.get(rule.name, 0) + 1
        if new is old:
            self.touched[new] = True
        else:  # one that was there has more users, which were edited, and others, which were not
            self.touched.setdefault(new, False)
        return True

    def replace(
        self, rule: RewriteRule, old: Instruction, new: Instruction, inserted: list[Instruction]
    ) -> None:
        """Puts one instruction in the place of another, and takes out what is dead then."""
        gone = []
        if new is not old:
            for listener in self.listeners:
                listener.replaced(rule, old, new)
            gone = [old] if hand_over(old, new) else _unused_chain(old)
            inserted = [*(() if gone else old.operands), *inserted]
        remove_dead_operands(inserted, gone)


def _unused_chain(done: Instruction) -> list[Instruction]:
    """The asynchronous operation that an instruction finishes, if nothing else uses it or waits for it; a rule that matched
    it would match it again and again.
    """
    chain = done.async_chain
    followed = {user for part in chain for user in (*part.users, *part.control_successors)}
    return list(chain) if chain and chain[-1] is done and followed <= set(chain) else []


_MANY = 64
"""Users from which on they are not visited at once when another comes or goes: with thousands, that was all there was to
do."""


def _opcodes(rule: RewriteRule) -> frozenset[str] | None:
    """The opcodes that a rule can match; None: any."""
    options = rule.pattern.options or rule.options
    return None if options.start else _opcodes_of(rule.pattern)


def _opcodes_of(pattern: Pattern) -> frozenset[str] | None:
    if pattern.alternatives:
        parts = [_opcodes_of(alternative) for alternative in pattern.alternatives]
        return None if None in parts else frozenset(opcode for part in parts if part for opcode in part)
    return frozenset({pattern.opcode}) if pattern.opcode is not None else None


def remove_dead_operands(candidates: Iterable[Instruction], removed: Iterable[Instruction] = ()) -> int:
    """Takes out those that nothing uses and that have no effect, and then their operands; how many.

    What is `removed` goes with them, whatever its effects.
    """
    gone = dict.fromkeys(removed)
    pending = [*candidates, *(operand for i in gone for operand in i.operands)]
    while pending:
        i = pending.pop()
        if i not in gone and i.computation is not None and is_dead(i, gone):
            gone[i] = None
            pending.extend(i.operands)
    for home in dict.fromkeys(i.computation for i in gone):
        if home is not None:
            home.remove_all([i for i in gone if i.computation is home])
    return len(gone)
