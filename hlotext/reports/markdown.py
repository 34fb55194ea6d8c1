"""A summary in Markdown, short enough for a comment on a pull request, and the counts by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hlotext.findings import escape
from hlotext.reports.entry import Entry
from hlotext.reports.human import summary

_SHOWN = 20
"""Findings that are listed one by one."""


def markdown(entries: Sequence[Entry], files: int, gone: int = 0) -> str:
    """How many findings of each code, and the first ones. `gone`: known findings that are no longer there."""
    out = [f"### hlotext: {summary(entries, files)}", ""]
    if gone:
        out += [
            f"{gone:,} known finding{'' if gone == 1 else 's'} {'has' if gone == 1 else 'have'} gone.",
            "",
        ]
    if entries:
        out += ["| code | count | what |", "|---|---:|---|"]
        titles = {entry.code: entry.title for entry in entries}
        out += [
            f"| {code} | {count:,} | {escape.markdown(titles[code])} |" for code, count in counts(entries)
        ]
        out += ["", "<details><summary>Findings</summary>", "", "| where | what |", "|---|---|"]
        for entry in entries[:_SHOWN]:
            where = (
                escape.markdown_code(f"{entry.file}:{entry.line}"),
                escape.markdown_code(entry.instruction),
            )
            what = f"{entry.code}: {escape.markdown(entry.message)}", escape.markdown_code(entry.op_name)
            out.append(f"| {' '.join(filter(None, where))} | {' '.join(filter(None, what))} |")
        if len(entries) > _SHOWN:
            out.append(f"| ... | and {len(entries) - _SHOWN:,} more |")
        out += ["", "</details>"]
    return "\n".join(out).rstrip() + "\n"


def counts(entries: Sequence[Entry]) -> list[tuple[str, int]]:
    """Codes and how often each was found, the most frequent first."""
    return sorted(Counter(entry.code for entry in entries).items(), key=lambda row: (-row[1], row[0]))


def statistics(entries: Sequence[Entry]) -> str:
    """One line for each code: how often, the code, what it stands for."""
    titles = {entry.code: entry.title for entry in entries}
    rows = counts(entries)
    width = max((len(f"{count:,}") for _, count in rows), default=0)
    return "".join(f"{count:>{width},}  {code}  {titles[code]}\n" for code, count in rows)
