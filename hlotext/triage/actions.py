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
    usable_bytes: int | None
    """Usable memory of the chip where most of it is saved, or None if unknown, as on CPU."""
    is_at_most: bool
    """True if the savings are upper bounds, see `Finding.is_at_most`."""
    assumes_trips: bool
    """True if a module has loops of unknown trip count, whose iterations `seconds` assumes and the modules' times do not."""
    value: float
    """Sort key: the larger of `time_share` and `memory_share`."""
    time_share: float
    """`seconds` as a fraction of the time of one run of all modules, as priced by lint."""
    memory_share: float
    """Largest reduction of peak memory in a module as a fraction of the chip's usable memory.

    If that is unknown, a fraction of the largest usable memory or peak of all modules.
    """
    share: float
    """`Finding.share` in the module where it saves most."""
    module_time_share: float
    """`seconds` in the module where it saves most, as a fraction of that module's time."""
    module_peak_share: float
    """The peak memory saved there, as a fraction of that module's peak."""
    basis: str
    """Chip and trip counts that the seconds are based on."""
    file: str
    line: int
    """Python line; 0 if unknown."""
    modules: tuple[str, ...]
    """Paths of the modules, largest saving first."""
    instruction: str
    """Name of the instruction in the first of these modules."""

    @property
    def is_priced(self) -> bool:
        """True if the saving is known, unlike that of a host callback, for example."""
        return bool(self.seconds or self.peak_bytes)


def actions_of(modules: Sequence[Examined]) -> tuple[Action, ...]:
    """Returns all actions: errors first, then by decreasing saving, those of unknown saving last.

    Among actions that are not errors, those that lower the peak of a module that does not fit in memory come first.
    """
    totals = _Totals.of(modules)
    causes: dict[tuple[object, ...], list[tuple[Examined, Finding]]] = defaultdict(list)
    for module in modules:
        for finding in module.findings:
            causes[_cause(finding)].append((module, finding))
    found = [(_helps_to_fit(places), _action(places, totals)) for places in causes.values()]
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


@attrs.frozen
class _Totals:
    """Totals that savings are measured against."""

    seconds: float
    """Of one run of each module."""
    memory: int
    """Stands for a memory of unknown size, as on CPU: the largest of all peaks and of the other modules' memories."""

    @classmethod
    def of(cls, modules: Sequence[Examined]) -> _Totals:
        sizes = [size or 0 for one in modules for size in (one.usable_bytes, one.peak_bytes)]
        return cls(sum(one.seconds for one in modules), max(sizes, default=0))

    def time_share(self, module: Examined, finding: Finding) -> float:
        """Of the time of all modules as the table states it, which counts loops of unknown trip count once."""
        return _part(finding.seconds or 0.0, module.priced_seconds) * _part(module.seconds, self.seconds)

    def memory_share(self, module: Examined, finding: Finding) -> float:
        """Of the memory that a program may use: a byte of a small device is worth more than one of a large host."""
        return _part(finding.peak_bytes or 0, module.usable_bytes or self.memory)

    def value(self, module: Examined, finding: Finding) -> float:
        return max(self.time_share(module, finding), self.memory_share(module, finding))


def _part(amount: float, whole: float | None) -> float:
    return min(1.0, amount / whole) if whole else 0.0


def _action(places: Iterable[tuple[Examined, Finding]], totals: _Totals) -> Action:
    ranked = sorted(places, key=lambda pair: -totals.value(*pair))
    most, first = ranked[0]
    known = [one.seconds for _, one in ranked if one.seconds is not None]
    held = [one.peak_bytes for _, one in ranked if one.peak_bytes is not None]
    seconds = sum(known) if known else None
    fullest = max(ranked, key=lambda pair: totals.memory_share(*pair))
    of_time, of_memory = sum(totals.time_share(*pair) for pair in ranked), totals.memory_share(*fullest)
    return Action(
        code=first.code,
        rule=first.rule,
        message=first.message,
        help=first.help,
        is_error=any(one.severity is Severity.ERROR for _, one in ranked),
        is_proved=any(one.severity is not Severity.NOTE for _, one in ranked),
        seconds=seconds,
        peak_bytes=max(held, default=None),
        usable_bytes=fullest[0].usable_bytes,
        is_at_most=any(one.is_at_most for _, one in ranked),
        assumes_trips=any(module.unknown_loops for module, _ in ranked),
        value=max(of_time, of_memory),
        time_share=of_time,
        memory_share=of_memory,
        share=first.share,
        module_time_share=_part(first.seconds or 0.0, most.priced_seconds),
        module_peak_share=_part(first.peak_bytes or 0, most.peak_bytes),
        basis=first.basis,
        file=first.frame.file if first.frame is not None else "",
        line=first.frame.line if first.frame is not None else 0,
        modules=tuple(dict.fromkeys(module.place for module, _ in ranked)),
        instruction=first.name,
    )
