"""Result of a model of an XLA pass: the module as XLA would leave it, and the reasons."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hlotext.ir.nodes.module import Module


@attrs.frozen
class Decision:
    """A decision of a modeled pass to change something, or not to, with the reason."""

    instruction: str
    """Name of the instruction before the pass if it existed, otherwise after it."""
    rule: str
    """Short reason, shared by all decisions of a kind: "fused", "code duplication too high"."""
    because: str
    """Full reason, in one sentence with the names involved."""
    others: tuple[str, ...] = ()
    """Names of other instructions involved, such as the producer of a fusion or the value that a copy protects."""
    source: str = ""
    """XLA function that implements the rule."""
    is_refusal: bool = attrs.field(default=False, kw_only=True)
    """True if the decision explains why something was left unchanged."""


@attrs.frozen
class Outcome:
    """Result of modeling a pass: the changed module, and the decisions that led to it."""

    module: Module
    """The module after the modeled pass. The input module is not modified."""
    decisions: tuple[Decision, ...] = ()
    """The decisions, in order."""
    is_from_log: bool = attrs.field(default=False, kw_only=True)
    """True if the decisions are from XLA's log. The module then lacks changes that the log omits."""

    def of(self, name: str) -> tuple[Decision, ...]:
        """Returns the decisions about or involving an instruction, by name."""
        return tuple(d for d in self.decisions if d.instruction == name or name in d.others)

    def counts(self) -> dict[str, int]:
        """Returns the number of decisions by rule, most frequent first."""
        return _counted(d.rule for d in self.decisions)


def _counted(rules: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for rule in rules:
        found[rule] = found.get(rule, 0) + 1
    return dict(sorted(found.items(), key=lambda item: -item[1]))
