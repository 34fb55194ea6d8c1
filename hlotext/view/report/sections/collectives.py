"""Communication by axis and link, its causes, and the waits for it: `hlotext comm`, `hlotext cost --chip`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import attrs

from hlotext import cost, dumps
from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.dumps.collectives import wording
from hlotext.dumps.settings import AROUND_PARTITIONING, dump_commands
from hlotext.memory.usage import line_text
from hlotext.view.report.parts import Cell, Missing, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

_MATRIX = columns_of("report.collectives_matrix")
_FLOWS = columns_of("report.collectives_flows")
_WHY = columns_of("report.collectives_why")
_SUGGESTIONS = columns_of("report.collectives_suggestions")
_WAITS = columns_of("report.collectives_waits")


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on communication by mesh axis, kind and link; if the chip is known, with exposed and hidden
    time.
    """
    found = subject.traffic
    if not found.flows and not found.copies:
        return Missing("collectives", "Collectives", "the module sends nothing to other devices or the host")
    facts = []
    if found.mesh is not None:
        facts.append(("mesh", f"{found.mesh.mesh} ({found.mesh.source.value})"))
    for link, total in found.by_link().items():
        facts.append((link.value, _sum(total)))
    if found.copies:
        facts.append(
            ("host copies", f"{byte_text(found.host_copy_bytes)} in one run, {len(found.copies)} copies")
        )
    rows = [(row, kind, total.bytes, total.count) for (row, kind), total in found.matrix().items()]
    rows.sort(key=lambda row: -row[2])
    flows = [
        (
            flow.communication.start.name,
            flow.communication.kind,
            flow.row,
            flow.communication.link.value,
            flow.total,
            flow.runs,
            line_text(flow.place),
        )
        for flow in cut(found.flows)
    ]
    tables = []
    if rows:
        tables.append(PageTable("collectives-matrix", "By axis and kind, one run", _MATRIX, rows))
    notes = []
    if subject.estimate is not None:
        facts += _exposed_facts(subject.estimate)
        tables.append(_waits(subject, subject.estimate))
    elif found.flows:
        notes.append("To see which transfers are hidden and which stall the core, set `--chip NAME`.")
    told = [one for one in subject.causes if wording.is_told(one)]
    if told:
        tables += _why(wording.groups(told))
        notes += [
            _with_commands(note)
            for note in dict.fromkeys(note for one in subject.causes for note in one.notes)
        ]
    if flows:
        tables.append(
            PageTable("collectives-flows", "Operations", _FLOWS, flows, len(found.flows), is_open=False)
        )
    return Section(
        "collectives",
        "Collectives",
        "Bytes that each device sends in one run, with the ring algorithm and without padding (`hlotext comm`).",
        facts=facts,
        tables=tables,
        notes=notes,
    )


def _with_commands(note: str) -> str:
    """A note in which what dumps the missing texts is marked as what it is, to be pasted."""
    for command in dump_commands(AROUND_PARTITIONING):
        note = note.replace(command, f"`{command}`")
    return note


def _why(groups: list[list[dumps.CollectiveCause]]) -> Iterator[PageTable]:
    """Why they are there, those with the same reason together; and the annotations whose change may spare them.

    Reasons that differ in numbers of layers alone are one row. What sends most is first.
    """
    rows: dict[tuple[str, ...], _Why] = {}
    below: dict[int, list[_Why]] = defaultdict(list)
    changes: list[tuple[Cell, ...]] = []
    for group in groups:
        first: _Why | None = None
        one, start = group[0], group[0].communication.start.name
        sent = [each.communication.wire_bytes for each in group]
        total = sum(each.communication.sent_bytes * (each.communication.runs or 1) for each in group)
        for number, (text, reasons) in enumerate(wording.joined(one.reasons)):
            told = (text, reasons[0].origin, reasons[0].scheme, reasons[0].confidence)
            # Further reasons of one collective stand below its first, so that they are of that one alone.
            key = (
                one.communication.kind,
                start if number else "",
                *(_LAYER.sub("[*]", part) for part in told),
            )
            is_new = key not in rows
            row = rows.setdefault(key, _Why(start, one.communication.kind, told))
            first = first or row
            if is_new:
                below[id(first)].append(row)
            row.add(*((0, 0, True) if number else (len(group), total, None not in sent)))
        changes += [(start, *_change(suggestion)) for suggestion in one.suggestions]
    firsts = sorted((some[0] for some in below.values()), key=lambda row: -(row.told_bytes or 0))
    cells = [row.cells() for first in firsts for row in below[id(first)]]
    yield PageTable("collectives-why", "Why they are there", _WHY, cut(cells), len(cells))
    if changes:
        title = "Annotation changes that may avoid them"
        yield PageTable("collectives-suggestions", title, _SUGGESTIONS, cut(changes), len(changes))


_LAYER = re.compile(r"\[[0-9]+\]")


@attrs.define
class _Why:
    """A row of reasons."""

    start: str
    kind: str
    told: tuple[str, ...]
    count: int = 0
    sent: int = 0
    is_known: bool = True
    groups: int = 0

    def add(self, count: int, sent: int, is_known: bool) -> None:
        """Some more collectives of the same reason."""
        self.count += count
        self.sent += sent
        self.is_known &= is_known
        self.groups += 1

    @property
    def told_bytes(self) -> int | None:
        """Bytes sent; None if they are not known, and of a further reason."""
        return self.sent if self.count and self.is_known else None

    def cells(self) -> tuple[Cell, ...]:
        """The row; of several layers their numbers as `*`."""
        told = self.told if self.groups == 1 else tuple(_LAYER.sub("[*]", part) for part in self.told)
        return (
            self.start,
            self.kind,
            self.count or None,
            self.told_bytes,
            *told,
        )


def _change(one: dumps.Suggestion) -> tuple[Cell, ...]:
    where = f" (line {one.line})" if one.line is not None else ""
    measured = f"{one.measured[0]} of {one.measured[1]} on {one.measured_on}"
    name = f"{one.name}{where}"
    return name, one.now, one.spec, one.bytes_spared, one.bytes_per_device, measured, one.confidence


_BOUNDS = {"": "", "<= ": "at most ", ">= ": "at least ", "~ ": "about "}


def _sum(total: cost.TrafficTotal) -> str:
    known = total.count - total.unknown
    size = f"{_BOUNDS[total.mark]}{byte_text(total.bytes)} sent by each device" if known else "sizes unknown"
    return f"{size}, {pluralize(total.count, 'operation')}"


def _exposed_facts(estimate: cost.Estimate) -> list[tuple[str, str]]:
    ours = [t for t in estimate.transfers if t.communication is not None]
    waited = sum(t.exposed for t in ours)
    whole = sum(t.seconds for t in ours)
    if not whole:
        return []
    rest = "; the rest is hidden behind other work" if seconds(waited) != seconds(whole) else ""
    return [
        (
            "stalled",
            f"{seconds(waited)} of {seconds(whole)} on the links{rest} (estimated)",
        )
    ]


def _waits(subject: ReportInput, estimate: cost.Estimate) -> PageTable:
    flows = {one: found.flow for one, found in subject.carried.items()}
    rows: list[tuple[Cell, ...]] = [
        (
            one.start.name,
            one.communication.kind if one.communication is not None else "copy",
            *((flows[one.start].total, flows[one.start].row) if one.start in flows else (None, "")),
            one.seconds if one.is_known else None,
            one.exposed,
            one.hidden if one.seconds else None,
            ", ".join(one.queues),
        )
        for one in cut(estimate.transfers, 50)
    ]
    return PageTable(
        "collectives-waits",
        f"Transfers on {estimate.chip.name}, longest stalls first (estimated; hatched: stalled)",
        _WAITS,
        rows,
        len(estimate.transfers),
        is_open=False,
    )
