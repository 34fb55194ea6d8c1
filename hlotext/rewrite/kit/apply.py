"""Rules applied to a module, with a driver, a bound and listeners."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hlotext.ir.arguments import caller_level
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import did_you_mean
from hlotext.rewrite.kit.drivers import Driver, Listener, Profile, RewriteError, RulesInPostOrder, RulesOnce
from hlotext.rewrite.kit.rules import Rewrite, RewriteRule
from hlotext.rewrite.kit.worklist import Worklist


class RefusedRewriteWarning(UserWarning):
    """Issued if a rewrite is rolled back because an edit was rejected."""


DRIVERS: Mapping[str, type[Driver]] = {
    "worklist": Worklist,
    "post-order": RulesInPostOrder,
    "once": RulesOnce,
}
"""Ways by which rules come to instructions, by name."""


misfits = late_module("hlotext.ir.misfits")  # only failures need it


def _expect_rules(rules: object) -> Sequence[RewriteRule]:
    """The rules as a list. Raises TypeError for what is no list of rules."""
    if isinstance(rules, str):
        raise TypeError("expected a list of rules, not str; use [hlotext.rewrite.rule(text)]")
    if isinstance(rules, RewriteRule):
        raise TypeError("expected a list of rules, not one rule; use [rule]")
    if not isinstance(rules, Iterable):
        hint = misfits.hint(rules, RewriteRule)
        raise TypeError(
            f"expected a list of rules, not {type(rules).__name__}" + (f"; {hint}" if hint else "")
        )
    found = list(rules)
    for one in found:
        if not isinstance(one, RewriteRule):
            hint = misfits.hint(one, RewriteRule)
            more = f"; {hint}" if hint else ""
            raise TypeError(f"expected a list of rules, but it contains {type(one).__name__}{more}")
    return found


def apply_rules(
    module: Module,
    rules: Sequence[RewriteRule],
    *,
    driver: str = "worklist",
    computations: Iterable[Computation] | None = None,
    options: Any = None,
    max_rewrites: int | None = None,
    listeners: Sequence[Listener] = (),
    profile: Profile | None = None,
    on_refused: str = "warn",
    verify: str | None = None,
) -> dict[str, int]:
    """Applies rewrite rules until none matches, and returns the number of rewrites by rule name.

    The worklist driver visits computations in text order and tries rules in order. Instructions that a rule inserted or
    changed, and users and operands of these and of removed ones, are visited next. When the worklist is empty, all
    instructions are visited again until nothing changes, so that no rule matches at the end, regardless of the depth of
    its pattern. Each rewrite is one transaction, which is rolled back if the rule returns None or raises (the exception
    is annotated with the rule and the location). Replaced instructions, and unused operands and new instructions, are
    removed.

    The other drivers are those of XLA's own passes, and of the passes in this package:

    - `post-order`: operands before users, repeatedly until nothing changes (`DfsHloRewriteVisitor`).
    - `once`: every existing instruction, operands first, but none that the rules create (`OpExpanderPass`).

    They replace instructions as XLA does (`Editor.replace`): rejected edits are skipped, and bodies of fusions are not
    visited unless listed. The whole run is one transaction. Edits of a rule that then returns None are not rolled back,
    so rules must check before they edit.

    Args:
        module: The module, modified in place.
        rules: Rules, tried in this order.
        driver: `worklist`, `post-order` or `once`.
        computations: Computations to visit. None (the default) visits all.
        options: Value of `Rewrite.options`.
        max_rewrites: Maximum number of rewrites, since rules may undo each other. None (the default) allows 8 per
            instruction of the module, plus 1,000.
        listeners: Notified of each replacement.
        profile: Filled with time and counts by rule.
        on_refused: Reaction of the worklist driver to an EditError in a rule (a replacement of another type, a cycle):
            `warn` rolls the rewrite back and warns once per rule; `raise` ends the run.
        verify: `equivalence` executes the module before and after on CPU (`hlotext[jax]`). If results differ,
            everything is rolled back. If the module cannot be executed, a warning is issued.

    Raises:
        RewriteError: The rules did not terminate, or results differ; the message names the first rewrite that changed
            them.
        PassLimitError: Rules that are applied once would make the module too large.
        ValueError: The driver or another choice is unknown.
        TypeError: `rules` is not a list of rules.
    """
    expect_module(module)
    rules = _expect_rules(rules)
    if driver not in DRIVERS:
        meant = did_you_mean(str(driver), DRIVERS)
        raise ValueError(
            f"driver must be one of {', '.join(DRIVERS)}, not {driver}" + (f"; {meant}" if meant else "")
        )
    if on_refused not in ("warn", "raise"):
        raise ValueError(f"on_refused must be warn or raise, not {on_refused}")
    if verify not in (None, "equivalence"):
        raise ValueError(f"verify must be equivalence or None, not {verify}")
    numbers = {computation: number for number, computation in enumerate(module.computations)}
    chosen = None if computations is None else [numbers[one] for one in computations if one in numbers]
    limit = max_rewrites if max_rewrites is not None else 8 * sum(map(len, module.computations)) + 1000

    def run(changed: Module, stops_at: int | None = None, **told: Any) -> Driver:
        listed = changed.computations
        those = None if chosen is None else [listed[number] for number in chosen]
        one = DRIVERS[driver](Rewrite(changed, options), rules, computations=those, limit=limit, **told)
        one.is_strict, one.stops_at = on_refused == "raise", stops_at
        one.run()
        return one

    if verify is None:
        done = run(module, listeners=listeners, profile=profile)
    else:
        # Execution is a package above this one, and needs an extra: it is imported when it is asked for.
        equivalence = importlib.import_module("hlotext.execution.equivalence")
        before = module.clone()

        def after(count: int | None) -> tuple[Module, str]:
            copy = before.clone()
            last = run(copy, count).last_rewrites()
            return copy, last[-1] if last else ""

        with module.transaction():
            done = run(module, listeners=listeners, profile=profile)
            said = equivalence.first_change(before, module, done.total, after) if done.total else None
            if said is not None:
                raise RewriteError(said)
    for name, reasons in done.refused.items():
        more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        warnings.warn(
            f"the rule {name} was refused: {reasons[0]}{more}",
            RefusedRewriteWarning,
            stacklevel=caller_level(),
        )
    return done.counts
