"""One finding for each cause: what one Python line wastes in many places is said once, with the cost of all of them.

Ranking is by cost, deciding by proof: a warning costs more than a share of the step and rests on something that the author of
the program can change; what costs much without it is a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import attrs

from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.lint.config import Config
from hlotext.lint.helpers import fusions_around
from hlotext.lint.proof import is_avoidable
from hlotext.lint.rule import Context, Report, Rule

_MOST_LINES = 20
"""Lines of other places that a finding keeps."""
_NUMBERS = re.compile(r"\d+")

Place = tuple[Rule, Report, Finding]
"""A rule, its report of one place, and the resulting finding."""


def cause_of(report: Report, finding: Finding) -> tuple[object, ...]:
    """Returns the key that findings with the same cause share.

    This is the kind of waste together with the cause named by the rule; else the Python line; else the op_name without
    numbers; else, for operations that compilers insert, the form of the operation. Findings without cost are keyed by
    rule.
    """
    kind = finding.waste or finding.code
    if report.cause:
        return finding.code, report.cause
    if finding.frame is not None:
        return kind, finding.frame.file, finding.frame.line
    if finding.op_name:
        return kind, _NUMBERS.sub("", finding.op_name)
    return finding.code, finding.fingerprint


def merged(places: Sequence[Place], config: Config, context: Context) -> Finding | None:
    """Merges findings of one cause into the most expensive one, with the total cost of its rule; None if that is not
    reported.

    Of other rules' findings only the lines are kept, since they concern the same bytes and seconds.
    """
    by_code: dict[str, list[Place]] = {}
    for place in places:
        by_code.setdefault(place[2].code, []).append(place)
    rows = [_joined(found, config, context) for found in by_code.values()]
    if all(row is None for row in rows):
        return None
    whole = min((row for row in rows if row is not None), key=_dearest_first)
    others = [
        finding
        for *_, finding in places
        if finding.fingerprint != whole.fingerprint or finding.line != whole.line
    ]
    if len(by_code) == 1:
        return whole
    return attrs.evolve(
        whole,
        other_fingerprints=tuple(sorted(finding.fingerprint for finding in others)),
        other_lines=tuple(sorted({finding.line for finding in others})[:_MOST_LINES]),
        former_fingerprints=tuple(old for *_, finding in places for old in finding.former_fingerprints),
    )


def _dearest_first(finding: Finding) -> tuple[int, float, str]:
    return (_RANK[finding.severity], -finding.share, finding.code)


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.NOTE: 2}


def _joined(places: Sequence[Place], config: Config, context: Context) -> Finding | None:
    """The finding of one rule and cause."""
    rule, report, first = min(places, key=lambda place: _cheapness(place[2]))
    others = [finding for *_, finding in places if finding is not first]
    seconds, peak = (
        _no_longer(_sum(f.seconds for *_, f in places), places, context),
        _bounded(_saved_peak(places, context), places, context),
    )
    prices = context.prices if seconds is not None else None
    time_share = seconds / prices.step if seconds is not None and prices is not None and prices.step else 0.0
    peak_share = _part(peak, context.peak) if peak is not None else 0.0
    stake = _part(peak, context.peak_at_stake) if peak is not None else 0.0
    severity = _severity(rule, report, seconds, time_share, peak, stake, config, context)
    if severity is None:
        return None
    message = first.message
    if others:
        message += f"; {len(others)} more {'place has' if len(others) == 1 else 'places have'} the same cause"
    return attrs.evolve(
        first,
        severity=severity,
        message=message,
        bytes=_sum(f.bytes for *_, f in places),
        flops=_sum(f.flops for *_, f in places),
        seconds=seconds,
        peak_bytes=peak,
        is_at_most=any(f.is_at_most for *_, f in places),
        share=max(time_share, peak_share),
        is_share_of_peak=peak_share > time_share,
        basis=context.prices.basis if first.waste else "",
        places=len(places),
        other_fingerprints=tuple(sorted(finding.fingerprint for finding in others)),
        other_lines=tuple(sorted({finding.line for finding in others})[:_MOST_LINES]),
        former_fingerprints=tuple(old for *_, finding in places for old in finding.former_fingerprints),
    )


def _saved_peak(places: Sequence[Place], context: Context) -> int | None:
    """By how much the peak falls when all places are repaired: arrays that live at different times do not add up, and each
    alone may save nothing while others are as large."""
    spares: dict[Any, float] = {}
    for _, report, _ in places:
        if report.peak_bytes is None:
            for one, share in report.spares.items():
                spares[one] = max(share, spares.get(one, 0.0))
    together = context.saved_peak(spares) if spares and len(places) > 1 else None
    if together is None:
        return _sum(finding.peak_bytes for *_, finding in places)
    alone = (f.peak_bytes for _, report, f in places if report.peak_bytes is not None or not report.spares)
    return together + (_sum(alone) or 0)


def _bounded(saved: int | None, places: Sequence[Place], context: Context) -> int | None:
    """A saving of the peak, no more than the peak holds beyond what the repairs leave as it is; whole modules have none."""
    if not saved or any(report.instruction is None for _, report, _ in places):
        return saved
    changed = {one for _, report, _ in places for one in (report.instruction, *report.spares)}
    most = context.most_saved(changed)
    return saved if most is None else min(saved, most)


def _no_longer(seconds: float | None, places: Sequence[Place], context: Context) -> float | None:
    """A saving of time, at most the step; where places cover the same instructions, at most the time of all of these."""
    if not seconds or not (prices := context.prices).step:
        return seconds
    seconds = min(seconds, prices.step)
    covered = [one for _, report, _ in places for one in report.covers]
    if len(covered) == len(set(covered)):
        return seconds
    named = (one[0] if isinstance(one, tuple) else one for _, report, _ in places for one in report.spares)
    own = (report.instruction for _, report, _ in places if report.instruction is not None)
    # The time of an instruction inside a fusion is that of the fusion.
    wholes = {(*fusions_around(one, context), one)[0] for one in (*covered, *named, *own)}
    return min(seconds, prices.together(wholes))


def _part(peak_bytes: int, peak: int | None) -> float:
    return min(1.0, peak_bytes / peak) if peak else 0.0


def _cheapness(finding: Finding) -> tuple[float, int, int, int]:
    return -(finding.seconds or 0.0), -(finding.peak_bytes or 0), -(finding.bytes or 0), -(finding.flops or 0)


_Cost = TypeVar("_Cost", int, float)


def _sum(costs: Iterable[_Cost | None]) -> _Cost | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known[1:], known[0]) if known else None


def _severity(
    rule: Rule,
    report: Report,
    seconds: float | None,
    time_share: float,
    peak: int | None,
    peak_share: float,
    config: Config,
    context: Context,
) -> Severity | None:
    """A warning for what costs enough and is proved, a note for what costs less or is not; None for what costs too little.

    Of what has no cost in this currency the rule's own. Unknown loops alone never make a warning. Memory that takes time
    to save counts for nothing while there is plenty of it.
    """
    if report.severity is not None:
        return report.severity
    if seconds is None and peak is None:
        return rule.severity
    if rule.is_trade and context.memory_share < config.scarce_memory:
        peak, peak_share = None, 0.0
    # What is below the floor is a note at the most, and that only where it is much of a small program.
    small_time = seconds is not None and seconds < config.floor_seconds
    small_peak = peak is not None and peak < config.floor_bytes
    is_note = time_share >= (config.warn if small_time else config.note) if seconds is not None else False
    if peak is not None:
        is_note = is_note or peak_share >= (config.warn_peak if small_peak else config.note_peak)
    if not is_note:
        return None
    proved = is_avoidable(rule, report, context)
    if not proved and (seconds is None or small_time) and (peak is None or small_peak):
        return Severity.NOTE if not config.floor_seconds and not config.floor_bytes else None
    sure = 0.0 if small_time else time_share
    peak_share = 0.0 if small_peak else peak_share
    if seconds is not None and (rounds := context.prices.unknown_rounds(report.instruction)) > 1:
        sure = min(sure, seconds / rounds / (context.prices.least_step or 1.0))
    is_dear = (seconds is not None and not small_time and sure >= config.warn) or (
        peak is not None and not small_peak and peak_share >= config.warn_peak
    )
    return rule.severity if is_dear and proved else Severity.NOTE
