"""What a model of one of XLA's passes answers: the module as XLA would leave it, and why."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hlotext.ir.nodes.module import Module


@attrs.frozen
class Decision:
    """One thing that a pass decided, or decided against."""

    instruction: str
    """Name of the instruction that it is about: in the module before the pass, else in the module after it."""
    rule: str
    """What decided, in a few words, the same for all decisions of a kind: "fused", "code duplication too high"."""
    because: str
    """The reason in a sentence that names what it speaks of."""
    others: tuple[str, ...] = ()
    """Names of other instructions that it is about: the producer of a fusion, the value that a copy protects."""
    source: str = ""
    """The function of XLA that has the rule."""
    is_refusal: bool = attrs.field(default=False, kw_only=True)
    """Whether this says why something was left as it is."""


@attrs.frozen
class Outcome:
    """What a model made of a module."""

    module: Module
    """A new module: the one that was given stays as it was."""
    decisions: tuple[Decision, ...] = ()
    """In the order in which they were taken."""
    is_from_log: bool = attrs.field(default=False, kw_only=True)
    """Whether decisions and reasons are XLA's own, read from its log; the module then lacks what the log does not hold."""

    def of(self, name: str) -> tuple[Decision, ...]:
        """What was decided about the instruction of that name, or with its help."""
        return tuple(d for d in self.decisions if d.instruction == name or name in d.others)

    def counts(self) -> dict[str, int]:
        """How often each rule decided, most often first."""
        return _counted(d.rule for d in self.decisions)


def _counted(rules: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for rule in rules:
        found[rule] = found.get(rule, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))
