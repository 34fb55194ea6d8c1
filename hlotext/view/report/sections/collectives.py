"""What is sent, along which axes and over which links, and what of it is waited for: `hlotext comm`, `hlotext time`."""

from __future__ import annotations

from hlotext import cost
from hlotext.analysis import byte_text
from hlotext.analysis.quantities import seconds
from hlotext.memory.usage import line_text
from hlotext.view.report.parts import Cell, Column, Missing, Section, Table, cut
from hlotext.view.report.subject import Subject

_MATRIX = (
    Column("along", "along"),
    Column("kind", "kind"),
    Column("bytes", "sent by each device", "bytes", is_bar=True),
    Column("operations", "operations", "count"),
)
_FLOWS = (
    Column("name", "operation", "code"),
    Column("kind", "kind"),
    Column("along", "along"),
    Column("link", "link"),
    Column("sent_bytes", "sent in one run", "bytes", is_bar=True),
    Column("runs", "runs", "count"),
    Column("line", "line"),
)
_WAITS = (
    Column("name", "transfer", "code"),
    Column("kind", "kind"),
    Column("seconds", "least time", "seconds", is_bar=True, hatched="exposed_seconds"),
    Column("exposed_seconds", "waited for", "seconds"),
    Column("hidden", "hidden", "share"),
    Column("queues", "on"),
)


def section(subject: Subject) -> Section | Missing:
    """By mesh axis, kind and link; with a chip also how much of each transfer other work hides."""
    found = subject.traffic
    if not found.flows and not found.copies:
        return Missing(
            "collectives", "Collectives", "the module sends nothing to other devices or to the host"
        )
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
            flow.sent,
            flow.runs,
            line_text(flow.place),
        )
        for flow in cut(found.flows)
    ]
    tables = []
    if rows:
        tables.append(Table("collectives-matrix", "By axis and kind, one run", _MATRIX, rows))
    notes = []
    if subject.estimate is not None:
        facts += _exposed_facts(subject.estimate)
        tables.append(_waits(subject.estimate))
    elif found.flows:
        notes.append("What is hidden and what is waited for needs the chip: `--chip NAME`.")
    if flows:
        tables.append(
            Table("collectives-flows", "Operations", _FLOWS, flows, len(found.flows), is_open=False)
        )
    return Section(
        "collectives",
        "Collectives",
        "What each device sends in one run, by the ring algorithm, data without padding (`hlotext comm`).",
        facts=facts,
        tables=tables,
        notes=notes,
    )


def _sum(total: cost.Sum) -> str:
    known = total.count - total.unknown
    mark = "at most " if total.is_at_most else "at least " if total.is_at_least or total.unknown else ""
    size = f"{mark}{byte_text(total.bytes)} sent by each device" if known else "sizes unknown"
    return f"{size}, {total.count:,} operations"


def _exposed_facts(estimate: cost.Estimate) -> list[tuple[str, str]]:
    ours = [t for t in estimate.transfers if t.communication is not None]
    waited = sum(t.exposed for t in ours)
    whole = sum(t.seconds for t in ours)
    if not whole:
        return []
    return [
        (
            "waited for",
            f"{seconds(waited)} of {seconds(whole)} on the links; the rest other work hides (estimated)".replace(
                "us ", "µs "
            ),
        )
    ]


def _waits(estimate: cost.Estimate) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            one.start.name,
            one.communication.kind if one.communication is not None else "copy",
            one.seconds if one.is_known else None,
            one.exposed,
            one.hidden if one.seconds else None,
            ", ".join(one.queues),
        )
        for one in cut(estimate.transfers, 50)
    ]
    return Table(
        "collectives-waits",
        f"Transfers on {estimate.chip.name}, the most waited for first (estimated; hatched: waited for)",
        _WAITS,
        rows,
        len(estimate.transfers),
        is_open=False,
    )
