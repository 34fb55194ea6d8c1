"""Causes of collectives, for rules that say what to change."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext.dumps import collectives
from hlotext.dumps.collectives import CollectiveCause, Reason, wording
from hlotext.dumps.collectives.records import RESHARD
from hlotext.findings.errors import HloSyntaxError
from hlotext.lint.rule import Context
from hlotext.syntax.source.inputs import InputError


def causes_of(context: Context) -> tuple[CollectiveCause, ...]:
    """The cause of each collective, as the dump folder tells it; nothing where its texts cannot be read."""
    try:
        return collectives.of_module(context.module, context.compilation)
    except (InputError, HloSyntaxError, ValueError):
        return ()


def remedy(reasons: Sequence[Reason]) -> str:
    """Changes that would spare a collective: annotations, or another way to write it; else where the sharding comes from."""
    changes = dict.fromkeys(reason.instead for reason in reasons if reason.instead)
    suggestions = dict.fromkeys(
        f"{'write' if one.kind == 'constraint' and one.now else 'annotate'} {one.because}"
        for reason in reasons
        for one in reason.suggestions
    )
    told = [*changes, *suggestions][:_MOST]
    return "; or ".join(told) or "; ".join(
        dict.fromkeys(reason.origin for reason in reasons if reason.origin)
    )


_MOST = 2
"""Suggestions that a finding tells; `hlotext dump collectives DIR` has the rest."""


def remedy_in_loop(cause: CollectiveCause | None) -> str:
    """Changes that would spare an exchange in a loop: a change that is known to, else the sharding that its reader needs."""
    reasons = [reason for reason in cause.reasons if reason.cause == RESHARD] if cause is not None else []
    if any(reason.suggestions or reason.instead for reason in reasons):
        return remedy(reasons)
    told = dict.fromkeys(filter(None, map(wording.as_it_is_read, reasons)))
    return "; ".join(told) or "shard the operand as it is used"
