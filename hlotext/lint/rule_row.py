"""Rules before their modules are imported: what decides whether one can apply to a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hlotext.lint.rule import Context


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@attrs.frozen
class RuleNeeds:
    """Conditions without which a rule finds nothing (see `Rule`)."""

    needs_optimized: bool = False
    needs_schedule: bool = False
    needs_partitions: bool = False
    needs_communication: bool = False
    backends: frozenset[str] = attrs.field(default="", converter=_words)
    """Values of `Backend`, separated by spaces in the table; empty for all."""
    needs_any: frozenset[str] = attrs.field(default="", converter=_words)
    """Opcodes, separated in the same way."""

    def unmet(self, context: Context) -> str | None:
        """Returns the first condition that a module does not meet, as text; None if it meets all."""
        module, backend = context.module, context.backend
        if self.backends and (backend is None or backend.value not in self.backends):
            meant, its = " and ".join(sorted(self.backends)), backend.value if backend else "unknown"
            return f"the rule is for {meant}, and this module is for {its} (--profile overrides this)"
        if self.needs_schedule and not module.is_scheduled:
            return "the rule needs a scheduled module, as after the last pass"
        if self.needs_optimized and not context.is_optimized:
            return "the rule needs an optimized module"
        if self.needs_partitions and module.attributes.get("num_partitions", 1) == 1:
            return "the rule needs several partitions, and this module has 1"
        if self.needs_any and self.needs_any.isdisjoint(context.census.by_opcode):
            return f"the module has no {' or '.join(sorted(self.needs_any))}"
        if self.needs_communication and not context.communications:
            return "the module has no communication"
        return None


@attrs.frozen
class RuleRow:
    """Description of a built-in rule that is not imported."""

    module: str
    """Name of its file in `hlotext/lint/rules/`, without suffix."""
    type_name: str
    """Name of its class."""
    is_default: bool = True
    former: tuple[str, ...] = ()
    needs: tuple[RuleNeeds, ...] = ()
    """Sets of conditions of which one must hold, one for each part of a merged rule; empty for none."""

    def may_apply(self, context: Context) -> bool:
        """Returns False if the rule finds nothing in such a module, so that it need not be imported."""
        try:
            return not self.needs or any(needs.unmet(context) is None for needs in self.needs)
        except Exception:  # of an ill-formed module the rule itself fails, and is reported
            return True
