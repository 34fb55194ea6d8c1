"""Differences as JSON, for pull requests, and for GitHub's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotext.analysis.formatting import pluralize
from hlotext.diff.changes import Change
from hlotext.diff.compare import Diff
from hlotext.diff.thresholds import Violation
from hlotext.diff.totals import TotalChange, Totals
from hlotext.findings import escape

GROUPS = 20
"""Groups of changes that a summary shows."""
_ANNOTATIONS = 50
"""Changes that get an annotation each; GitHub shows no more of a step."""


def figures(total: TotalChange) -> tuple[str, str]:
    """Formats both values of a metric; as `at least`, with the number of calls, if calls of unknown cost are excluded."""
    old, new = (
        _figure(total, side, calls)
        for side, calls in zip((total.old, total.new), total.unknown_calls, strict=True)
    )
    return old, new


def _figure(total: TotalChange, side: float | None, calls: int) -> str:
    if side is None:
        return "unknown"
    text = f"{side:,.0f}{' B' if total.unit == 'bytes' else ''}"
    return f"at least {text} ({pluralize(calls, 'call')} of unknown cost)" if calls else text


def difference(total: TotalChange) -> str:
    """Formats an increase: `+1,024 B (+3.1%)`; empty for no change, `?` if unknown."""
    if total.difference is None:
        return "?"
    if not total.difference:
        return ""
    percent = "" if total.percent is None else f" ({total.percent:+.1f}%)"
    return f"{total.difference:+,.0f}{percent}"


def summary(diff: Diff) -> str:
    """Returns the number of operations added, removed and changed, on one line."""
    if diff.is_equal:
        return "equal, ignoring names, ids, metadata and the order of independent operations"
    counts = diff.changes.counts()
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in ("added", "removed", "changed") if counts[kind])


def platforms(found: tuple[str, str]) -> str:
    """Returns a note on modules for different platforms, on one line."""
    return f"compiled for different platforms: {found[0]} -> {found[1]}"


def not_compared(diff: Diff) -> str:
    """Returns a note on what the header of one module has and the proto of the other cannot have; empty if nothing."""
    names = diff.not_in_proto
    return f"not compared, as the proto has no field for it: {', '.join(names)}" if names else ""


def totals(diff: Diff) -> list[TotalChange]:
    """Returns the metrics of a summary, then the opcodes whose number changed."""
    found = [diff.totals[name] for name in diff.totals.NAMES]
    return [*found, *(total for total in diff.totals.opcodes.values() if total.difference)]


def different_totals(totals: Totals) -> list[TotalChange]:
    """Returns the metrics that are known on both sides and differ."""
    return [total for name in Totals.NAMES if (total := totals[name]).difference]


def equal_totals(totals: Totals) -> str:
    """Returns the names of the metrics that are equal on both sides and not zero."""
    return ", ".join(
        name.replace("_", " ") for name in Totals.NAMES if totals[name].difference == 0 and totals[name].old
    )


def as_json(diff: Diff, crossed: Sequence[Violation] = ()) -> dict[str, Any]:
    """Converts a diff to a JSON object."""
    return {
        "version": 1,
        "old": diff.old.name,
        "new": diff.new.name,
        "is_equal": diff.is_equal,
        "platforms": None if diff.platforms is None else list(diff.platforms),
        "not_in_proto": list(diff.not_in_proto),
        "changes": [_change_json(diff, change) for change in diff.changes],
        "renamed": [
            {"old": change.old.name, "new": change.new.name}
            for change in diff.changes.renamed
            if change.old is not None and change.new is not None
        ],
        "totals": {
            total.name: {
                "old": total.old,
                "new": total.new,
                "difference": total.difference,
                "unknown_calls": list(total.unknown_calls),
            }
            for total in totals(diff)
        },
        "crossed": [
            {"bound": str(one.threshold), "message": str(one), "is_unknown": one.is_unknown}
            for one in crossed
        ],
    }


def _change_json(diff: Diff, change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "what": change.what,
        "name": change.name,
        "old_name": None if change.old is None else change.old.name,
        "opcode": change.opcode,
        "computation": change.computation,
        "scope": diff.scope(change),
        "line": change.line,
        "parts": [{"name": part.name, "old": part.old, "new": part.new} for part in change.parts],
    }


def markdown(diff: Diff, crossed: Sequence[Violation] = ()) -> str:
    """Formats a diff as Markdown for a comment on a pull request."""
    md, code = escape.markdown, escape.markdown_code
    out = [f"### hlotext diff: {md(summary(diff))}", ""]
    if diff.platforms is not None:
        out += [platforms(diff.platforms), ""]
    if left_out := not_compared(diff):
        out += [md(left_out), ""]
    out += [f"- **{md(str(one))}**" for one in crossed]
    if crossed:
        out.append("")
    if not diff.is_equal:
        out += ["| what | operations | for example |", "|---|---:|---|"]
        groups = diff.weights.ordered(diff.changes.folded())
        for title, changes in groups[:GROUPS]:
            out.append(
                f"| {md(title)} | {len(changes):,} | {code(changes[0].name) if changes[0].name else ''} |"
            )
        if len(groups) > GROUPS:
            rest = sum(len(changes) for _, changes in groups[GROUPS:])
            out.append(f"| and {len(groups) - GROUPS:,} more kinds | {rest:,} | |")
        out.append("")
    out += ["| total | before | after | difference |", "|---|---:|---:|---:|"]
    for total in totals(diff):
        is_metric = total.name in diff.totals.NAMES and not (total.old is None and total.new is None)
        if total.difference or is_metric:
            cells = (*figures(total), difference(total))
            out.append(f"| {md(total.name)} | {' | '.join(md(cell) for cell in cells)} |")
    return "\n".join(out) + "\n"


def github(diff: Diff, file: str, crossed: Sequence[Violation] = ()) -> str:
    """Formats a diff as GitHub workflow commands: an error per violated threshold, a notice per change in the new file."""
    out = [f"::error title=hlotext diff::{escape.github_data(str(one))}" for one in crossed]
    for change in list(diff.changes)[:_ANNOTATIONS]:
        place = (
            f"file={escape.github_property(file)},line={change.line},"
            if change.line and change.new is not None
            else ""
        )
        parts = "; ".join(map(str, change.parts))
        text = f"{change.kind} {change.name}: {change.what}" + (f" ({parts})" if parts else "")
        out.append(f"::notice {place}title=hlotext diff::{escape.github_data(text)}")
    left = len(diff.changes) - _ANNOTATIONS
    if left > 0:
        out.append(f"::notice title=hlotext diff::and {left:,} more changes")
    return "".join(f"{line}\n" for line in out)
