"""One finding for each cause: what one Python line wastes in many places is said once, with the cost of all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.lint.config import Config
from hlotext.lint.rule import Report

_MOST_LINES = 20
"""Lines of other places that a finding keeps."""
_NUMBERS = re.compile(r"\d+")


def cause_of(report: Report, finding: Finding) -> tuple[object, ...]:
    """What the findings of one cause have in common.

    The rule and what it says is the cause; else the Python line; else the op_name without its numbers; else, of what
    compilers insert without saying why, the form of the operation.
    """
    if report.cause:
        return finding.code, report.cause
    if finding.frame is not None:
        return finding.code, finding.frame.file, finding.frame.line
    if finding.op_name:
        return finding.code, _NUMBERS.sub("", finding.op_name)
    return finding.code, finding.fingerprint


def merged(places: Sequence[tuple[Report, Finding]], config: Config) -> Finding | None:
    """The finding at the place that costs most, or that the rule names first, with the cost of all; None where that is less
    than is reported."""
    report, first = min(places, key=lambda place: _cheapness(place[1]))
    others = [finding for _, finding in places if finding is not first]
    bytes_, flops = _sum(f.bytes for _, f in places), _sum(f.flops for _, f in places)
    if report.severity is None and bytes_ and bytes_ < config.min_bytes and not flops:
        return None
    message = first.message
    if others:
        message += f"; {len(others)} more {'place has' if len(others) == 1 else 'places have'} the same cause"
    return attrs.evolve(
        first,
        severity=_severity(report, first, bytes_, flops, config),
        message=message,
        bytes=bytes_,
        flops=flops,
        places=len(places),
        other_fingerprints=tuple(sorted(finding.fingerprint for finding in others)),
        other_lines=tuple(sorted({finding.line for finding in others})[:_MOST_LINES]),
    )


def _cheapness(finding: Finding) -> tuple[int, int]:
    return -(finding.bytes or 0), -(finding.flops or 0)


def _sum(costs: Iterable[int | None]) -> int | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _severity(
    report: Report, finding: Finding, bytes_: int | None, flops: int | None, config: Config
) -> Severity:
    """The rule's, unless it says another for this report; a note where the known cost is small."""
    if report.severity is not None:
        return report.severity
    if bytes_ is None and flops is None:
        return finding.severity
    is_dear = (bytes_ or 0) >= config.warn_bytes or (flops or 0) >= config.warn_flops
    return finding.severity if is_dear else Severity.NOTE
