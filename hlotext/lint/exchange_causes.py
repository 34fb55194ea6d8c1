"""Causes of collectives, for rules that say what to change."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from hlotext.dumps import collectives
from hlotext.dumps.collectives import CollectiveCause, Reason, Suggestion, wording
from hlotext.dumps.collectives.records import HIGH, RESHARD
from hlotext.findings.errors import HloSyntaxError
from hlotext.lint.rule import Context, Report
from hlotext.syntax.source.inputs import InputError


def causes_of(context: Context) -> tuple[CollectiveCause, ...]:
    """Returns the cause of each collective according to the dump folder; empty if its texts cannot be read."""
    try:
        return collectives.of_module(context.module, context.compilation)
    except (InputError, HloSyntaxError, ValueError):
        return ()


def is_certain_reshard(cause: CollectiveCause) -> bool:
    """True if a collective certainly only reshards arrays; for a combined one, if all parts do."""
    return all(one.cause == RESHARD and one.confidence == HIGH and not one.scheme for one in cause.reasons)


def with_cause(report: Report, context: Context) -> Report:
    """Adds to a report of a collective why the partitioner inserted it, if the dump folder proves it.

    If a constraint of the program requires it, changing that becomes the advice.
    """
    found = (one for one in causes_of(context) if one.communication.start is report.instruction)
    cause = next(found, None)
    if cause is None or not is_certain_reshard(cause):
        return report
    of_constraints = (one for one in cause.suggestions if one.kind == "constraint" and one.now)
    return attrs.evolve(
        report,
        message=f"{report.message}; the partitioner inserted it {cause.why}",
        help="; or ".join(list(dict.fromkeys(map(_edit, of_constraints)))[:_MOST]) or report.help,
    )


def remedy(reasons: Sequence[Reason]) -> str:
    """Returns changes that avoid a collective: annotations or another formulation; else one sharding for producer and
    user.
    """
    changes = dict.fromkeys(reason.instead for reason in reasons if reason.instead)
    suggestions = dict.fromkeys(_edit(one) for reason in reasons for one in reason.suggestions)
    told = [*changes, *suggestions][:_MOST]
    if told:
        return "; or ".join(told)
    origins = "; ".join(dict.fromkeys(reason.origin for reason in reasons if reason.origin))
    return f"{ONE_SHARDING}: {origins}" if origins else ""


def _edit(suggestion: Suggestion) -> str:
    """The edit of the program that a suggestion is, with its price."""
    is_there = suggestion.kind == "constraint" and suggestion.now
    return f"{'write' if is_there else 'annotate'} {suggestion.because}"


ONE_SHARDING = "use one sharding where the array is produced and where it is read"
"""The change that spares any reshard."""
_MOST = 2
"""Suggestions that a finding tells; `hlotext dump collectives DIR` has the rest."""


def remedy_in_loop(cause: CollectiveCause | None) -> str:
    """Returns changes that avoid a collective in a loop: known ones, else the sharding that its user needs."""
    reasons = [reason for reason in cause.reasons if reason.cause == RESHARD] if cause is not None else []
    if any(reason.suggestions or reason.instead for reason in reasons):
        return remedy(reasons)
    told = dict.fromkeys(filter(None, map(wording.as_it_is_read, reasons)))
    return "; ".join(told) or "shard the operand as it is used"
