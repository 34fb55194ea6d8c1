"""Changes made by one pass, grouped, with reasons if there is a model of the pass.

>>> from hlotext import compiler
>>> text = "ENTRY e { x = f32[] parameter(0)  a = f32[] add(x, x)  b = f32[] multiply(x, x)  ROOT n = f32[] negate(a) }"
>>> after = "ENTRY e { x = f32[] parameter(0)  a = f32[] add(x, x)  ROOT n = f32[] negate(a) }"
>>> [(group.title, len(group.changes)) for group in compiler.explain(text, after, "dce").groups]
[('removed: multiply of parameter', 1)]
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

import hlotext as hlo
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.models import model_of
from hlotext.compiler.pass_diff import ADDED, PassDiff
from hlotext.compiler.pass_views import View, views_of
from hlotext.compiler.platforms import platform_of
from hlotext.diff import Change, Part, compare
from hlotext.diff.changes import Changes
from hlotext.diff.compare import module_of
from hlotext.dumps import Step
from hlotext.dumps.identity import owner
from hlotext.dumps.identity.owners import START
from hlotext.dumps.stages import stages
from hlotext.ir import gc_control
from hlotext.rewrite.passes.base import Age

AGREES, DIFFERS = "agrees", "differs"
_ORDER_ALONE = ("SCHEDULE",)
"""Passes that change nothing but the order, which a comparison of modules leaves out."""
_MOST_COMPARED = 30_000
"""Operations up to which the model's module is compared with XLA's."""


@attrs.frozen
class Group:
    """A group of similar changes by one pass, with the decisions behind them."""

    title: str
    """Kind and object of the change, such as `added: copy of parameter`."""
    changes: tuple[Change, ...]
    decisions: tuple[Decision, ...] = ()
    """The model's decisions about the changed operations, in order."""

    def rules(self) -> list[tuple[str, int, Decision]]:
        """Returns the name, count and first decision of each rule behind the changes, most frequent first."""
        counts = Counter(decision.rule for decision in self.decisions)
        first: dict[str, Decision] = {}
        for decision in self.decisions:
            first.setdefault(decision.rule, decision)
        return [(rule, count, first[rule]) for rule, count in counts.most_common()]


@attrs.frozen(eq=False)
class Explanation:
    """Changes made by one pass, found by comparing the modules before and after it."""

    name: str | None
    """XLA's name of the pass, or None if not given."""
    platform: str
    """`cpu`, `gpu` or `tpu`."""
    before: hlo.Module
    after: hlo.Module
    outcome: Outcome | None
    """The model's result for the module before the pass, or None if no model applies."""
    no_outcome: tuple[str, ...] = ()
    """Reasons why there is no `outcome`."""

    @functools.cached_property
    def accounting(self) -> PassDiff:
        """Paired operations of both modules."""
        with gc_control.gc_paused(collect_first=False):
            return PassDiff(self.before, self.after, self.name or "")

    @functools.cached_property
    def views(self) -> tuple[View, ...]:
        """Tables of changes for passes without a model: clones, overlap, shards, instruction order; empty for others."""
        with gc_control.gc_paused(collect_first=False):
            return tuple(views_of(self.name, self.accounting, self.platform))

    @property
    def notes(self) -> tuple[str, ...]:
        """Reasons why no model explains the changes (`no_outcome`); empty if `views` describe them instead."""
        return () if self.views else self.no_outcome

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes: those to operations of the new module in its order, then removals."""
        return self.accounting.changes

    @functools.cached_property
    def _model_names(self) -> dict[str, str]:
        """Names in XLA's text of the operations that the model created."""
        if self.outcome is None:
            return {}
        return {
            mine.name: theirs.name
            for mine, theirs in together(self.outcome.module, self.after)
            if mine.name != theirs.name
        }

    @functools.cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The model's decisions, with new operations named as XLA named them; empty without a model."""
        if self.outcome is None:
            return ()
        known = {i.name for i in self.before.instructions()}

        def named(name: str) -> str:
            return name if name in known else self._model_names.get(name, name)

        found = []
        for decision in self.outcome.decisions:
            names = {n: named(n) for n in (decision.instruction, *decision.others)}
            because = _renamed(decision.because, {a: b for a, b in names.items() if a != b})
            others = tuple(names[n] for n in decision.others)
            found.append(
                attrs.evolve(
                    decision, instruction=names[decision.instruction], because=because, others=others
                )
            )
        return tuple(found)

    @functools.cached_property
    def verdict(self) -> str | None:
        """`agrees` or `differs`, comparing the model's module with XLA's, or None if they are not compared.

        That is the case without a model, for decisions from a log, for passes that only change the order of instructions,
        and for large modules.
        """
        if self.outcome is None or self.outcome.module is self.before:
            return None
        if self.outcome.is_from_log or self.name in _ORDER_ALONE:
            return None
        if sum(map(len, self.after.computations)) > _MOST_COMPARED:
            return None
        return AGREES if compare(self.outcome.module, self.after).is_equal else DIFFERS

    @functools.cached_property
    def groups(self) -> tuple[Group, ...]:
        """All changes, grouped by kind, largest group first."""
        by_name: dict[str, list[Decision]] = {}
        by_other: dict[str, list[Decision]] = {}
        for decision in self.decisions:
            by_name.setdefault(decision.instruction, []).append(decision)
            for other in decision.others:
                by_other.setdefault(other, []).append(decision)
        found = []
        for title, changes in Changes(self.changes).folded():
            decisions: dict[int, Decision] = {}
            for change in changes:
                names = [node.name for node in (change.new, change.old) if node is not None]
                own = [decision for name in names for decision in by_name.get(name, ())]
                if not own and change.kind == ADDED:
                    own = by_other.get(change.name, [])
                decisions.update((id(decision), decision) for decision in own)
            found.append(Group(title, tuple(changes), tuple(decisions.values())))
        return tuple(found)

    def of(self, name: str) -> tuple[tuple[Change, ...], tuple[Decision, ...]]:
        """Returns the changes to an operation, by its old or new name, and the decisions about or involving it."""
        changes = tuple(
            change
            for change in self.changes
            if (change.new is not None and change.new.name == name)
            or (change.old is not None and change.old.name == name)
        )
        return changes, self.decisions_about(name)

    def decisions_about(self, name: str) -> tuple[Decision, ...]:
        """Returns the decisions about or involving an operation, by name.

        The modules are compared only if the operation is a new fusion.
        """
        own = [d for d in self.decisions if d.instruction == name]
        others = [d for d in self.decisions if d.instruction != name and name in d.others]
        if not own and not others:
            others = list(self._inside(name))
        return (*own, *others)

    def _inside(self, name: str) -> Iterator[Decision]:
        """Decisions that put operations into a new fusion."""
        fused = [decision for decision in self.decisions if decision.rule == "fused"]
        if not fused:
            return
        node = self.after.find(name)
        if not isinstance(node, hlo.Instruction) or node.opcode != "fusion" or node in self.accounting.old_of:
            return
        held = {
            old.name
            for callee in node.called_computations
            for i in callee
            if (old := self.accounting.old_of.get(i)) is not None
        }
        yield from (decision for decision in fused if decision.instruction in held)

    def counts(self) -> Counter[str]:
        """Returns the number of changes of each kind."""
        return Counter(change.kind for change in self.changes)

    @property
    def stage(self) -> str | None:
        """Title of the compilation stage of the pass, or None if unknown."""
        found = stages.of("", self.name) if self.name else None
        return None if found is None else found.title


def explain(
    before: Any,
    after: Any,
    name: str | None = None,
    *,
    platform: str | None = None,
    log: str = "",
    age: Age | None = None,
) -> Explanation:
    """Explains the changes made by one pass, grouped by kind, with the rules that caused them.

    Rules are given only if the pass has a model; changes are reported for any pass.

    Args:
        before: The module before the pass, as a module, a path or module text.
        after: The module after the pass, likewise.
        name: XLA's name of the pass.
        platform: `cpu`, `gpu` or `tpu`. None (the default) detects it from the module text.
        log: The pass's own log (`priority_fusion_dump.txt`).
        age: The XLA version: a jaxlib release or a date. None (the default) detects it from the module text, or else
            assumes the newest.

    Raises:
        HloSyntaxError: An input is not valid HLO.
        InputError: A file cannot be read.
        TypeError: An argument is not a module, a path or module text.
        ValueError: The platform or age is unknown.
    """
    found = asked(before, after, name, platform=platform, log=log, age=age)
    _ = found.views  # as the texts are now
    return found


def asked(
    before: Any, after: Any, name: str | None, *, platform: str | None, log: str, age: Age | None
) -> Explanation:
    """Returns an explanation as `explain` does, but compares the modules only when the changes are first accessed."""
    old, new = module_of(before), module_of(after)
    known = platform or platform_of(old).value
    platform_of(old, known)
    with gc_control.gc_paused(collect_first=False):
        outcome, why_none = _ask(name, known, old, new, log, age)
    return Explanation(name, known, old, new, outcome, tuple(why_none))


def previous(step: Step) -> Step:
    """Returns the step before a pass, its input. Dumps written while it ran, also by pipelines inside it, are skipped."""
    steps = step.compilation.steps
    index = step.index - 1
    if step.next_pass is None or step.name == START:
        return steps[index]
    while index > 0 and steps[index].is_pass and steps[index].pipeline == step.name:
        index -= 1
    outer = index
    while outer > 0 and steps[outer].is_pass and steps[outer].pipeline != step.pipeline:
        outer -= 1
    inside = (owner(steps, number) for number in range(outer + 1, step.index))
    if any(step.name in (found.name, found.inside) for found in inside):
        return steps[outer]
    return steps[index]


def _ask(
    name: str | None, platform: str, before: hlo.Module, after: hlo.Module, log: str, age: Age | None
) -> tuple[Outcome | None, list[str]]:
    """Answer of a model of the pass, and the reasons if none applies."""
    if name is None:
        return None, []
    model = model_of(name.removeprefix("after_"), platform)
    if model is None:
        return None, [f"there is no model of {name} on {platform}; changes are shown without reasons"]
    try:
        return model(before, after, log, age), []
    except (ValueError, LookupError, hlo.EditError) as error:
        return None, [f"the model of {name} failed: {' '.join(str(error).split())[:200]}"]


def together(mine: hlo.Module, theirs: hlo.Module) -> Iterator[tuple[hlo.Instruction, hlo.Instruction]]:
    """Yields pairs of operations at corresponding positions of two modules: the roots, then their operands,
    recursively.
    """
    seen: set[hlo.Instruction] = set()
    pending = [(mine.entry.root, theirs.entry.root)] if len(mine.entry) and len(theirs.entry) else []
    while pending:
        a, b = pending.pop()
        if a in seen or a.opcode != b.opcode:
            continue
        seen.add(a)
        yield a, b
        if len(a.operands) == len(b.operands):
            pending += zip(a.operands, b.operands, strict=True)
        callees = zip(a.called_computations, b.called_computations, strict=False)
        pending += [(x.root, y.root) for x, y in callees if len(x) and len(y)]


def _renamed(text: str, names: dict[str, str]) -> str:
    """A sentence with other names in it; the words of it are names as a whole or none."""
    if not names:
        return text
    words = []
    for word in text.split(" "):
        bare = word.rstrip(",;:.")
        words.append(names[bare] + word[len(bare) :] if bare in names else word)
    return " ".join(words)


__all__ = ["AGREES", "DIFFERS", "Explanation", "Group", "Part", "explain", "previous", "together"]
