"""Actions: the findings of all modules, one for each cause, ranked by what their repair saves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs

from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.triage.examined import Examined


@attrs.frozen
class Action:
    """A repair of the program, with its savings over all affected modules."""

    code: str
    rule: str
    message: str
    """Message for the module in which it saves most."""
    help: str
    is_error: bool
    """True if the module cannot run as it is."""
    is_proved: bool
    """True if the module proves that the cost is avoidable; otherwise it may be necessary."""
    seconds: float | None
    """Seconds saved in one run of each module, summed, or None if unknown."""
    peak_bytes: int | None
    """Largest reduction of peak memory in any module, in bytes, or None if unknown."""
    value: float
    """Sort key: the larger of the fractions of the time of all modules and of the largest peak."""
    share: float
    """`Finding.share` in the module where it saves most."""
    basis: str
    """Chip and trip counts that the seconds are based on."""
    file: str
    line: int
    """Python line; 0 if unknown."""
    modules: tuple[str, ...]
    """Indices of the modules, largest saving first."""
    instruction: str
    """Name of the instruction in the first of these modules."""

    @property
    def is_priced(self) -> bool:
        """True if the saving is known, unlike that of a host callback, for example."""
        return bool(self.seconds or self.peak_bytes)


def actions_of(modules: Sequence[Examined]) -> tuple[Action, ...]:
    """All actions: errors, then the most valuable first, those without a price last; what nothing proves is among them.

    What lowers the peak of a module that does not fit goes before the rest: nothing else lets it run.
    """
    step = sum(module.seconds for module in modules)
    peak = max((module.peak_bytes or 0 for module in modules), default=0)
    causes: dict[tuple[object, ...], list[tuple[Examined, Finding]]] = defaultdict(list)
    for module in modules:
        for finding in module.findings:
            causes[_cause(finding)].append((module, finding))
    found = [(_helps_to_fit(places), _action(places, step, peak)) for places in causes.values()]
    found.sort(
        key=lambda row: (
            not row[1].is_error,
            not row[0],
            -row[1].value,
            not row[1].is_proved,
            row[1].code,
            row[1].modules,
        )
    )
    return tuple(action for _, action in found)


def _helps_to_fit(places: Iterable[tuple[Examined, Finding]]) -> bool:
    return any(module.excess and finding.peak_bytes for module, finding in places)


def _cause(finding: Finding) -> tuple[object, ...]:
    """Equal for one cause in several modules: the rule with the Python line, else the finding as lint recognises it."""
    if finding.frame is not None:
        return finding.code, finding.frame.file, finding.frame.line
    return finding.code, finding.fingerprint or (finding.file, finding.line)


def _action(places: Iterable[tuple[Examined, Finding]], step: float, peak: int) -> Action:
    def value(seconds: float | None, held: int | None) -> float:
        return max((seconds or 0.0) / step if step else 0.0, (held or 0) / peak if peak else 0.0)

    ranked = sorted(places, key=lambda pair: -value(pair[1].seconds, pair[1].peak_bytes))
    first = ranked[0][1]
    known = [one.seconds for _, one in ranked if one.seconds is not None]
    held = [one.peak_bytes for _, one in ranked if one.peak_bytes is not None]
    seconds, most = (sum(known) if known else None), max(held, default=None)
    return Action(
        code=first.code,
        rule=first.rule,
        message=first.message,
        help=first.help,
        is_error=any(one.severity is Severity.ERROR for _, one in ranked),
        is_proved=any(one.severity is not Severity.NOTE for _, one in ranked),
        seconds=seconds,
        peak_bytes=most,
        value=value(seconds, most),
        share=first.share,
        basis=first.basis,
        file=first.frame.file if first.frame is not None else "",
        line=first.frame.line if first.frame is not None else 0,
        modules=tuple(dict.fromkeys(module.place for module, _ in ranked)),
        instruction=first.name,
    )
