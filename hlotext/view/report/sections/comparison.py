"""Two modules side by side: `hlotext diff`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

import hlotext as hlo
from hlotext.analysis import SourceLocation, source_locations
from hlotext.analysis.formatting import pluralize
from hlotext.diff import Change, Diff
from hlotext.diff.report import totals
from hlotext.view.report.parts import Cell, PageTable, Section, columns_of, cut

_COUNTS = columns_of("report.comparison_counts")
_GROUPS = columns_of("report.comparison_groups")
_KINDS = {"bytes": "bytes", "flops": "amount"}


def section(found: Diff) -> Section:
    """Returns the section on the differences between two modules, with totals of both."""
    weights = found.weights
    folded = weights.ordered(found.changes.folded())
    places = [source_locations(module) for module in (found.old, found.new)]
    groups = [
        (
            title,
            line,
            *(int(size) or None for size in weights.of_all(changes)),
            len(changes),
            lines,
            share,
            changes[0].name,
            _result(changes[0]),
        )
        for title, changes in cut(folded)
        for line, share, lines in (_largest_line(found, places, changes),)
    ]
    sides = ["a" if changes[0].new is None else "b" for _, changes in cut(folded)]
    counts = found.changes.counts()
    said = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("added", "removed", "changed") if counts[kind])
    tables = []
    for unit, title in (("bytes", "Bytes"), ("flops", "Operations in one run"), ("", "Numbers")):
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
            # Folded: the tiles say it, and this to the last digit.
            tables.append(
                PageTable(f"comparison-{unit or 'counts'}", title, columns, rows, is_open=False, feet=feet)
            )
    tables.append(PageTable("comparison-changes", "Changes", _GROUPS, groups, len(folded), sides=sides))
    return Section(
        "comparison",
        "Comparison",
        f"{said or 'Equal'}: names, ids, metadata and the order of independent operations are ignored (`hlotext diff`). "
        "Bytes and flops of changes are for one run, after minus before; groups with the largest difference come first.",
        tables=[table for table in tables if table.rows],
    )


def _largest_line(
    found: Diff,
    places: Sequence[Mapping[hlo.Instruction, tuple[SourceLocation, Any]]],
    changes: Sequence[Change],
) -> tuple[str, float | None, int]:
    """The line of Python that differs most, its share of what differs, and the number of lines, for a group of changes."""
    lines: dict[str, list[Change]] = {}
    for change in changes:
        lines.setdefault(_line(places, change), []).append(change)
    sizes = {line: found.weights.part(mine) for line, mine in lines.items()}
    most = max(lines, key=lambda line: (sizes[line], bool(line), len(lines[line])))
    return most, sizes[most] / sum(sizes.values()) if sizes[most] and len(lines) > 1 else None, len(lines)


def _line(places: Sequence[Mapping[hlo.Instruction, tuple[SourceLocation, Any]]], change: Change) -> str:
    """The line of Python of the operation of a change, in the new module where it is there."""
    node = change.node
    found = places[change.new is not None].get(node) if node is not None else None
    return f"{found[0].file}:{found[0].line}" if found is not None else ""


def _result(change: Change) -> str:
    """The largest array of a result before and after; of what came or went that array."""
    if change.growth and change.result is not None:
        return " → ".join(shape.text_without_layout() for shape in change.result)
    return ""


def _equal_opcodes(found: Diff) -> Iterator[tuple[Cell, ...]]:
    """The opcodes that both sides have as often, as one row."""
    equal = [total for total in found.totals.opcodes.values() if not total.difference]
    if equal:
        count = sum(total.old or 0 for total in equal)
        yield f"{pluralize(len(equal), 'opcode')} with equal counts", count, count, 0, None
