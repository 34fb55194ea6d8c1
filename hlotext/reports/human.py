"""Reports for people: the line of the source with a caret, in colour on a terminal; or one line for each finding."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding, RepairOutcome
from hlotext.reports.report import FindingsReport

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_LINE = re.compile(r"(?P<gutter>  +\d* ?\| )(?P<rest>.*)")


def full(report: FindingsReport) -> str:
    """Formats every finding with `full_text`, separated by blank lines."""
    return "\n".join(f"{full_text(finding, report.with_origin)}\n" for finding in report.findings)


def full_text(finding: Finding, with_origin: bool = False, width: int | None = None) -> str:
    """Formats a finding in full: location and message, source line with caret, origin and cost, remedy.

    Args:
        finding: The finding.
        with_origin: Include the operation of the source program and the cost.
        width: Columns of a terminal: the location is then above the message, source lines are truncated around the
            caret, and sentences are wrapped. None does none of this.
    """
    if width is not None:
        return "\n".join([*_head(finding, width), *_fitted(_lines(finding, with_origin)[1:], width)])
    return "\n".join(_lines(finding, with_origin)) if with_origin else str(finding)


def _head(finding: Finding, width: int) -> list[str]:
    """The place, without folders where it is too long, and the message."""
    place, (_, message) = escape.line(finding.place), concise_line(finding).split(_mark(finding), 1)
    if len(place) > width:
        place = f"...{place[len(place) - width + 3 :]}"
    return [place, *_wrapped(f"{_mark(finding)}{message}", width, "    ")]


def _mark(finding: Finding) -> str:
    return f"{finding.severity.value}[{finding.code}]"


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    """Lines that end at blanks; what is longer, as a path is, behind its slashes and commas."""
    out = []
    for piece in textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [line]:
        rest = piece
        while len(rest) > width and (cut := max(rest.rfind("/", 0, width), rest.rfind(",", 0, width))) > len(
            indent
        ):
            out.append(rest[: cut + 1])
            rest = f"{indent}{rest[cut + 1 :]}"
        out.append(rest)
    return out


def _fitted(lines: list[str], width: int) -> list[str]:
    out: list[str] = []
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            out += _wrapped(line, width, "    ")
        elif match["rest"].strip("^ ") or not out or not match["rest"]:
            # The line of the source: what is below it says where the caret is.
            below = _LINE.fullmatch(lines[number + 1]) if number + 1 < len(lines) else None
            carets = below["rest"] if below is not None else ""
            out += _around_caret(
                match["gutter"], match["rest"], below["gutter"] if below else "", carets, width
            )
        # The line of the caret went out with the one above.
    return out


def _around_caret(gutter: str, text: str, below: str, carets: str, width: int) -> list[str]:
    """A line of the source and its caret, cut on both sides so that the caret stays under what it means."""
    room = max(width - len(gutter), 16)
    first, last = len(carets) - len(carets.lstrip()), len(carets)
    if len(text) > room:
        start = max(0, min(first - room // 3, len(text) - room))
        piece, carets = text[start : start + room], carets[start : start + room]
        if start and not piece.startswith("..."):
            piece = "..." + piece[3:]
        if start + room < len(text) and not piece.endswith("..."):
            piece = piece[:-3] + "..."
        if last > start + room:  # it goes on: where it begins is all that a caret can show
            carets = f"{carets[: len(carets) - len(carets.lstrip())]}^"
        text = piece
    return [gutter + text, below + carets]


def _lines(finding: Finding, with_origin: bool) -> list[str]:
    if not with_origin:
        return str(finding).split("\n")
    facts = finding.facts
    out = [concise_line(finding), *facts.excerpt]
    for (what, span), lines in zip(finding.related, facts.related, strict=True):
        out += (f"{escape.line(finding.place_of(span))}: {escape.line(what)}", *lines)
    if facts.op_name:
        out.append(f"  op_name: {escape.line(facts.op_name)}")
    if finding.frame is not None:
        out.append(f"  {'near' if finding.is_frame_near else 'from'}: {escape.line(str(finding.frame))}")
    if costs := _costs(finding):
        out.append(f"  {costs}")
    if finding.what_if is not None:
        out.append(f"  what if: {escape.line(outcome_text(finding.what_if))}")
    if finding.help:
        fix = f" (safe fix: --fix, pass {finding.fix})" if finding.fix else ""
        out += f"  help: {escape.lines(finding.help)}{fix}".split("\n")
    return out


def _costs(finding: Finding) -> str:
    """The estimates in words; empty if there are none."""
    saved = f"saves: {saving(finding)}, {basis}" if (basis := basis_of(finding)) else ""
    return "; ".join(filter(None, (saved, *_details(finding))))


def _details(finding: Finding) -> Iterator[str]:
    """Yields what is wasted: memory, or traffic and work of one run."""
    where = f" in {finding.places:,} places" if finding.places > 1 else ""
    if finding.bytes:
        kind, each = ("memory", "") if finding.is_held else ("traffic", " per run")
        yield f"{kind}: {byte_text(finding.bytes)}{each}{where}"
    if finding.flops:
        yield f"work: {_short(finding.flops)}FLOP per run{where}"


def _short(count: int) -> str:
    """A count with three digits and a prefix: `2.15 G`."""
    value, prefix = float(count), ""
    for prefix in ("", "k", "M", "G", "T", "P", "E"):
        if value < 999.5 or prefix == "E":
            break
        value /= 1000
    return f"{value:.3g} {prefix}"


def coloured(finding: Finding, with_origin: bool = False, width: int | None = None) -> Text:
    """Formats a finding as `full_text` does, with the same arguments, as a `rich` text with colors."""
    from rich.text import Text

    style, mark = _STYLES[finding.severity], _mark(finding)
    lines = full_text(finding, with_origin, width).split("\n")
    count = 1 if width is None else len(_head(finding, width))
    head, others = "\n".join(lines[:count]), lines[count:]
    place, _, message = head.partition(mark)
    text = Text.assemble((place, "dim"), (mark, style), (message, "bold"))
    is_bright = False  # a line that goes on in the next looks alike there
    for line in others:
        match = _LINE.fullmatch(line)
        is_bright = line.startswith(("  help: ", *_SOUGHT)) or (is_bright and line.startswith("    "))
        if match is not None:
            is_caret = not match["rest"].strip("^ ")
            text.append(f"\n{match['gutter']}", "dim")
            text.append(match["rest"], style if is_caret else "")
        elif line.startswith("  help: "):
            text.append("\n  help: ", "green")
            text.append(line.removeprefix("  help: "))
        else:
            text.append(f"\n{line}", "" if is_bright else "dim")
    return text


_SOUGHT = ("  saves: ", "  from: ", "  near: ")
"""Beginnings of the lines that one looks for first."""


def concise(report: FindingsReport) -> str:
    """Formats one line per finding, for people and editors."""
    return "".join(f"{concise_line(finding)}\n" for finding in report.findings)


def concise_line(finding: Finding) -> str:
    """Formats a finding on one line: `file:line:column: warning[C101]: message`."""
    text = f"{finding.place}: {finding.severity.value}[{finding.code}]: {finding.message}"
    return escape.line(" ".join(text.split()))


def summary(findings: Iterable[Finding], files: int) -> str:
    """Returns a summary line, such as `2 errors, 1 note in 3 files`; `files` is the number of checked files."""
    return f"{by_severity(findings) or 'no findings'} in {pluralize(files, 'file')}"


def by_severity(findings: Iterable[Finding]) -> str:
    """Returns the number of findings of each severity: `2 errors, 1 note`; empty for none."""
    counts = Counter(finding.severity for finding in findings)
    parts = [pluralize(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return ", ".join(parts)


def saving(finding: Finding) -> str:
    """Returns what fixing a finding saves: `13.8 ms (67% of the step) and 16.0 MiB of peak memory`; empty if unknown.

    An upper bound starts with `at most`.
    """
    memory = f"{byte_text(finding.peak_bytes)} of peak memory" if finding.peak_bytes else ""
    time = seconds(finding.seconds) if finding.seconds or (finding.seconds is not None and not memory) else ""
    if not memory and not time:
        return ""
    bound = "at most " if finding.is_at_most else ""
    if finding.is_share_of_peak or not time:
        share = f"{percent(finding.share)} of the {'peak' if finding.is_share_of_peak else 'step'}"
        return f"{bound}{' and '.join(filter(None, (time, memory)))} ({share})"
    return f"{bound}{' and '.join(filter(None, (f'{time} ({percent(finding.share)} of the step)', memory)))}"


def basis_of(finding: Finding) -> str:
    """Returns the chip and assumptions of an estimate: `estimated for v5e (default chip)`; empty without an estimate."""
    return f"estimated for {finding.basis}" if saving(finding) else ""


def outcome_text(outcome: RepairOutcome) -> str:
    """Returns a repair's effect, such as `2 instructions moved out of while.5: step 20.1 ms -> 6.3 ms (69% less)`."""
    if outcome.reason:
        return f"not applied: {outcome.reason}"
    parts = []
    if outcome.seconds_after is not None:
        before, after = outcome.seconds_before, outcome.seconds_after
        parts.append(f"step {seconds(before)} -> {seconds(after)}{_change(before, after)}")
    if outcome.peak_before is not None and outcome.peak_after is not None:
        old, new = outcome.peak_before, outcome.peak_after
        parts.append(f"peak {byte_text(old)} -> {byte_text(new)}{_change(old, new)}")
    return f"{outcome.edit}: {', '.join(parts) or 'time and memory are unknown'} (estimated)"


def _change(before: float, after: float) -> str:
    if before == after or not before:
        return ""
    return f" ({percent(abs(after - before) / before)} {'less' if after < before else 'more'})"


def percent(share: float) -> str:
    """Formats a share: `67%`, `0.25%`, `under 0.01%`."""
    if share >= 0.995:
        return f"{100 * share:.0f}%"
    return f"{100 * share:.2g}%" if share >= 1e-4 else "under 0.01%"
