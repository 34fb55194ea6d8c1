"""Rules applied to a module, with a driver, a bound and listeners."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.drivers import Driver, Listener, Profile, RewriteError, RulesInPostOrder, RulesOnce
from hlotext.rewrite.kit.rules import Rewrite, RewriteRule
from hlotext.rewrite.kit.worklist import Worklist


class RefusedRewriteWarning(UserWarning):
    """An application of a rule that an edit refused, and that was taken back."""


DRIVERS: Mapping[str, type[Driver]] = {
    "worklist": Worklist,
    "post-order": RulesInPostOrder,
    "once": RulesOnce,
}
"""Ways by which rules come to instructions, by name."""


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
    """Applies rules until none matches anywhere; how often each did, by name.

    Instructions are visited computation by computation in the order of the text; rules are tried in order. Whatever a rule
    inserted, changed or took out, and what uses or is used by that, is visited next; when nothing is left, everything is
    visited once more, until a whole round changes nothing. So no rule matches at the end, however far its pattern looks.

    Each application is one transaction. What a rule made is taken back where it returns None or raises (the exception then
    says which rule, and where); replaced instructions, operands and new instructions that nothing uses are taken out.

    XLA's own passes visit instructions in other ways, and so do the passes of this package:

    - `post-order`: operands before their users, again and again until nothing changes (`DfsHloRewriteVisitor`).
    - `once`: every instruction that was there before, operands first, and nothing that the rules make (`OpExpanderPass`).

    Replacements are made as XLA makes them then (`Editor.replace`): what an edit refuses stays as it is, and so do bodies of
    fusions unless they are named. The run is one transaction, and what a rule made before it gave up is not taken back: a
    rule for these looks before it edits.

    Args:
        module: Is changed in place.
        rules: Tried in this order.
        driver: `worklist`, `post-order` or `once`.
        computations: The only ones to be visited; None: all.
        options: Value for `Rewrite.options`.
        max_rewrites: Beyond this rules undo one another; None: eight for every instruction of the module, plus 1,000.
        listeners: Are told of each replacement.
        profile: Is filled in.
        on_refused: What an EditError does that a rule of a worklist meets (a replacement of another type, a cycle): `warn`
            takes that application back, goes on, and warns once for each rule; `raise` ends the run.
        verify: `equivalence` executes the module before and after on the CPU (`hlotext[jax]`). Where results differ all is
            taken back; a module that cannot be executed is warned of.

    Raises:
        RewriteError: There was no end, or results differ: the message names the first application that changed one.
        PassLimitError: Rules that are applied once would make the module too large.
        ValueError: A choice that does not exist.
    """
    if driver not in DRIVERS:
        raise ValueError(f"driver must be one of {', '.join(DRIVERS)}, not {driver}")
    if on_refused not in ("warn", "raise"):
        raise ValueError(f"on_refused must be warn or raise, not {on_refused}")
    if verify not in (None, "equivalence"):
        raise ValueError(f"verify must be equivalence or None, not {verify}")
    numbers = {computation: number for number, computation in enumerate(module.computations)}
    chosen = None if computations is None else [numbers[one] for one in computations if one in numbers]
    limit = max_rewrites if max_rewrites is not None else 8 * sum(map(len, module.computations)) + 1000

    def run(changed: Module, stops_at: int | None = None, **told: Any) -> Driver:
        those = None if chosen is None else [changed.computations[number] for number in chosen]
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
            last = run(copy, count).last
            return copy, last[-1] if last else ""

        with module.transaction():
            done = run(module, listeners=listeners, profile=profile)
            said = equivalence.first_change(before, module, done.total, after) if done.total else None
            if said is not None:
                raise RewriteError(said)
    for name, reasons in done.refused.items():
        more = f", and {len(reasons) - 1:,} more" if len(reasons) > 1 else ""
        warnings.warn(f"the rule {name} was refused: {reasons[0]}{more}", RefusedRewriteWarning, stacklevel=2)
    return done.counts
