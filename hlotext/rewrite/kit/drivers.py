"""Ways by which rules come to instructions: what all have in common, XLA's walk in post-order, and each match once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeAlias

import attrs

from hlotext import layout as layouts
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.spelling import with_article
from hlotext.ir.values.raw_value import RawValue
from hlotext.matchers.pattern import Match
from hlotext.rewrite.kit.facts import is_typed, is_unbounded, is_unused
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.kit.rules import NO_CAPTURES, Result, Rewrite, RewriteRule
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.operation import errors_of


class RewriteError(RuntimeError):
    """Raised if rules do not terminate within the limit, or if a rule returns an invalid value or changes the results."""


def check_result(rule: RewriteRule, found: object, i: Instruction) -> None:
    """Raises RewriteError if a rule returned anything but an instruction, a bool or None."""
    if found is not None and not isinstance(found, bool | Instruction):
        raise RewriteError(
            f"the rule {rule.name} returned {with_article(type(found).__name__)} for {i.name}: "
            "a rule returns the replacement, True if it edited the instruction, or None"
        )


class Listener(Protocol):
    """Interface of the objects that `apply_rules` notifies before each replacement. For single edits, use `Module.listen`."""

    def replaced(self, rule: RewriteRule, old: Instruction, new: Instruction) -> None:
        """Handles the replacement of `old` with `new` by `rule`, before it happens."""


@attrs.define
class RuleProfile:
    """Counts and seconds of one rule over a run of `apply_rules`."""

    tried: int = 0
    """Number of instructions on which the pattern was tried."""
    matched: int = 0
    applied: int = 0
    """Number of matches that were rewritten. Other matches were rolled back."""
    refused: int = 0
    """Number of matches whose edit was rejected."""
    seconds: float = 0.0
    """Seconds spent in pattern, function and replacement."""


Profile: TypeAlias = dict[str, RuleProfile]
"""Profile of each rule, by name; given to `apply_rules`, which fills it in."""


class Driver:
    """Base class of one run of rules over a module."""

    enters_fusions: ClassVar[bool] = False
    """True if bodies of fusions are visited where no computations are named. XLA's passes leave them."""

    def __init__(
        self,
        rewrite: Rewrite,
        rules: Iterable[RewriteRule],
        *,
        computations: Iterable[Computation] | None = None,
        limit: int | None = None,
        listeners: Sequence[Listener] = (),
        profile: Profile | None = None,
    ) -> None:
        self.context = rewrite
        self.module = rewrite.module
        self.rules = tuple(rules)
        self.chosen = None if computations is None else frozenset(computations)
        self.limit = limit
        """Rewrites after which rules undo one another; None: no bound."""
        self.listeners = listeners
        self.profile = profile
        self.counts: dict[str, int] = {}
        self.total = 0
        self.last: deque[tuple[str, str]] = deque(maxlen=6)
        self.is_strict = True
        """True if an edit that is refused ends the run."""
        self.refused: dict[str, list[str]] = {}
        """Edits that were refused, by rule."""
        self.stops_at: int | None = None
        """Rewrites after which to stop; None: at the end."""
        self._of_any: list[tuple[RewriteRule, bool]] = []
        self._by_opcode: dict[str, list[tuple[RewriteRule, bool]]] = {}
        for rule in self.rules:
            entry = rule, rule.is_plain
            if rule.opcodes is None:
                for others in (self._of_any, *self._by_opcode.values()):
                    others.append(entry)
            for opcode in rule.opcodes or ():
                self._by_opcode.setdefault(opcode, list(self._of_any)).append(entry)

    def run(self) -> None:
        """Applies the rules to the module."""
        raise NotImplementedError

    def rewrite(self, rule: RewriteRule, i: Instruction, match: Match) -> bool:
        """Applies a rule to its match. Returns True if anything changed."""
        raise NotImplementedError

    def computations(self) -> Iterator[Computation]:
        """Yields the computations to visit, in text order."""
        return (computation for computation in self.module.computations if self.is_chosen(computation))

    def is_chosen(self, computation: Computation | None) -> bool:
        """Returns True if a computation is to be visited."""
        if computation is None or computation.is_sugared:
            return False
        if self.chosen is None:
            return computation.module is self.module and (
                self.enters_fusions or not computation.is_fusion_body
            )
        return computation.module is self.module and computation in self.chosen

    def rules_for(self, opcode: str) -> list[tuple[RewriteRule, bool]]:
        """Returns the rules that may match an opcode, each with True if its pattern is the opcode alone."""
        return self._by_opcode.get(opcode, self._of_any)

    def visit(self, i: Instruction, rules: Iterable[tuple[RewriteRule, bool]]) -> bool:
        """Tries rules on an instruction until one applies. Raises RewriteError if the limit of rewrites is exceeded."""
        if self.stops_at is not None and self.total >= self.stops_at:
            return False
        profile, rewrite = self.profile, self.rewrite
        for rule, is_plain in rules:
            if profile is not None:
                is_applied = self._apply_timed(rule, i, profile.setdefault(rule.name, RuleProfile()))
            elif is_plain:
                is_applied = rewrite(rule, i, NO_CAPTURES)
            elif rule.first_operand is not None and not (
                i._operands and i._operands[0]._head.opcode == rule.first_operand
            ):
                continue  # as most instructions, for one look
            else:
                match = rule.pattern.match(i, rule.options)
                is_applied = match is not None and rewrite(rule, i, match)
            if is_applied:
                self._count(rule, i)
                return True
        return False

    def _count(self, rule: RewriteRule, i: Instruction) -> None:
        self.counts[rule.name] = self.counts.get(rule.name, 0) + 1
        self.total += 1
        if self.limit is None:
            return
        self.last.append((rule.name, i._name))
        if self.stops_at is None and self.total > self.limit:
            last = ", ".join(self.last_rewrites())
            raise RewriteError(
                f"no fixpoint after {self.limit} rewrites: rules undo each other; the last were {last}"
            )

    def last_rewrites(self) -> list[str]:
        """Returns descriptions of the last few rewrites, latest last."""
        return [f"{rule} on {name}" for rule, name in self.last]

    def _apply_timed(self, rule: RewriteRule, i: Instruction, costs: RuleProfile) -> bool:
        start = time.perf_counter()
        try:
            match = rule.pattern.match(i, rule.options)
            costs.tried += 1
            costs.matched += match is not None
            applied = match is not None and self.rewrite(rule, i, match)
            costs.applied += applied
        finally:
            costs.seconds += time.perf_counter() - start
        return applied

    def replace(self, rule: RewriteRule, i: Instruction, found: Result) -> bool:
        """Replaces an instruction by a rule's result, as XLA does. Returns True if anything changed."""
        if found is None or isinstance(found, bool):
            return bool(found)
        if found is i:
            return True
        for listener in self.listeners:
            listener.replaced(rule, i, found)
        return self.context.replace(i, found)


# ---- in post-order


class PostOrder:
    """Visits every instruction of a computation in post-order, operands first (`DfsHloRewriteVisitor`).

    The operands of an instruction are determined when the walk first reaches it, so instructions created by a replacement
    are visited only if something else uses them too; see `HloComputation::Accept`.
    """

    def __init__(self, visit: Callable[[Instruction], object]) -> None:
        self.visit = visit
        self._visited: set[Instruction] = set()
        self._entered: set[Instruction] = set()

    def mark_visited(self, i: Instruction) -> None:
        """Excludes a new instruction from the walk (`SetVisited`)."""
        self._visited.add(i)

    def visit_again(self, i: Instruction) -> None:
        """Marks an instruction as not visited, so that it is visited again if the walk reaches one of its users."""
        self._visited.discard(i)
        self._entered.discard(i)

    def walk(self, computation: Computation) -> None:
        """Calls `visit` with each instruction of a computation, after its operands and control predecessors."""
        if not len(computation):
            return
        visited = self._visited = set()
        entered = self._entered = set()
        visit = self.visit
        starts = [i for i in computation.instructions if is_unused(i) and not i.control_successors]
        for start in (*starts, None):
            stack = [start if start is not None else computation.root]
            while stack:
                i = stack[-1]
                if i in visited or i.computation is not computation:
                    stack.pop()
                elif i in entered:
                    stack.pop()
                    visited.add(i)
                    visit(i)
                else:
                    entered.add(i)
                    children = (*i.operands, *i.control_predecessors)
                    stack.extend(child for child in reversed(children) if child not in entered)


_FACTS = VerifierOptions(layout_sensitive=False, mixed_precision=True)


def _is_sound(i: Instruction) -> bool:
    """True if an instruction meets XLA's requirements on its own and has a known size."""
    if i.shape is None or any(isinstance(value, RawValue) for value in i.attributes.values()):
        return False
    try:
        layouts.allocated_bytes(i.shape)
    except layouts.LayoutError:
        return False
    return not any(True for _ in errors_of(i, _FACTS))


class RulesInPostOrder(Driver):
    """Applies rules to every instruction in post-order, repeatedly until none applies (`DfsHloRewriteVisitor`).

    Rejected edits are skipped, as in XLA. Ill-formed instructions are not visited, since rules rely on their operands
    and attributes.
    """

    def run(self) -> None:
        """Applies the rules in one transaction."""
        with self.module.transaction():
            for computation in self.computations():
                while self.walk(computation):
                    pass

    def walk(self, computation: Computation) -> bool:
        """Visits a computation once. Returns True if anything changed."""
        context = self.context
        context.changed = False
        PostOrder(self._come_to).walk(computation)
        context.place = None
        return context.changed

    def _come_to(self, i: Instruction) -> None:
        context = self.context
        rules = self.rules_for(i.opcode)
        if rules and context.may_rewrite(i):
            context.at(i)
            if self.visit(i, rules):
                context.changed = True

    def visit(self, i: Instruction, rules: Iterable[tuple[RewriteRule, bool]]) -> bool:
        if self.profile is not None or self.stops_at is not None:
            return super().visit(i, rules)
        # As above, without a call between this loop and rules that look at the instruction themselves: most are such, and
        # most do not fit.
        context = self.context
        for rule, is_plain in rules:
            if is_plain:
                context.match = NO_CAPTURES
                try:
                    found = rule.function(context)
                    is_applied = bool(found) and self.replace(rule, i, found)
                except _MISUSE:
                    is_applied = _refused(i)
            else:
                match = rule.pattern.match(i, rule.options)
                is_applied = match is not None and self.rewrite(rule, i, match)
            if is_applied:
                self._count(rule, i)
                return True
        return False

    def rewrite(self, rule: RewriteRule, i: Instruction, match: Match) -> bool:
        self.context.match = match
        try:
            return self.replace(rule, i, rule.function(self.context))
        except _MISUSE:
            return _refused(i)


_MISUSE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def _refused(i: Instruction) -> bool:
    """False for a rule that failed on what is no right instruction. Raises the error again where all is right nearby."""
    near = {i, *i.operands, *(o for x in i.operands for o in x.operands), *i.users}
    if all(_is_sound(x) for x in near):
        raise
    return False


# ---- each match once


class RulesOnce(Driver):
    """Applies rules once to every existing instruction, operands first (`OpExpanderPass`).

    Instructions with control dependencies, of unknown size, or in the body of an asynchronous operation are not
    changed.
    """

    def run(self) -> None:
        """Applies the rules in one transaction. Raises PassLimitError if they add too many instructions."""
        with self.module.transaction():
            self._visit_all()

    def _visit_all(self) -> None:
        budget = InstructionBudget(", ".join(rule.name for rule in self.rules), self.module)
        found = [
            i
            for computation in self.computations()
            for i in instruction_post_order(computation)
            if self.rules_for(i.opcode) and is_typed(i) and not is_unbounded(i)
        ]
        for i in found:
            home = i.computation
            if home is None or i.control_predecessors or i.control_successors:
                continue
            if any(caller.opcode == "async-start" for caller in home.callers):
                continue
            before = len(home)
            self.context.at(i)
            self.visit(i, self.rules_for(i.opcode))
            budget.add(max(0, len(home) - before))
        self.context.place = None

    def rewrite(self, rule: RewriteRule, i: Instruction, match: Match) -> bool:
        self.context.match = match
        return self.replace(rule, i, rule.function(self.context))
