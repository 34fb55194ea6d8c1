"""Two modules side by side: `hlotext diff`."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis.formatting import pluralize
from hlotext.diff import Diff
from hlotext.diff.report import totals
from hlotext.view.report.parts import Cell, PageTable, Section, columns_of, cut

_COUNTS = columns_of("report.comparison_counts")
_GROUPS = columns_of("report.comparison_groups")
_KINDS = {"bytes": "bytes", "flops": "amount"}


def section(found: Diff) -> Section:
    """Section of differences, with the totals of both sides."""
    weights = found.weights
    folded = weights.ordered(found.changes.folded())
    groups = [
        (title, len(changes), *(int(size) or None for size in weights.of_all(changes)), changes[0].name)
        for title, changes in cut(folded)
    ]
    sides = ["a" if changes[0].new is None else "b" for _, changes in cut(folded)]
    counts = found.changes.counts()
    said = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("added", "removed", "changed") if counts[kind])
    tables = []
    for unit, title in (("bytes", "Bytes"), ("flops", "Operations of one run"), ("", "Numbers")):
        rows = [
            (
                total.name.replace("_", " "),
                total.old,
                total.new,
                total.difference,
                total.percent / 100 if total.percent is not None else None,
            )
            for total in totals(found)
            if total.unit == unit
        ]
        kind = _KINDS.get(unit, "count")
        feet = [] if unit else list(_equal_opcodes(found))
        columns = [attrs.evolve(c, kind=kind if c.kind == "count" else c.kind) for c in _COUNTS]
        if rows:
            tables.append(PageTable(f"comparison-{unit or 'counts'}", title, columns, rows, feet=feet))
    tables.append(PageTable("comparison-changes", "Changes", _GROUPS, groups, len(folded), sides=sides))
    return Section(
        "comparison",
        "Comparison",
        f"{said or 'Equal'}: names, ids, metadata and the order of independent operations do not count (`hlotext diff`).",
        tables=[table for table in tables if table.rows],
    )


def _equal_opcodes(found: Diff) -> Iterator[tuple[Cell, ...]]:
    """The opcodes that both sides have as often, as one row."""
    equal = [total for total in found.totals.opcodes.values() if not total.difference]
    if equal:
        count = sum(total.old or 0 for total in equal)
        yield f"{pluralize(len(equal), 'opcode')} as often on both sides", count, count, 0, None
