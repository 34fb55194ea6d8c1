"""Reports for people: the line of the source with a caret, in colour on a terminal; or one line for each finding."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hlotext.analysis import byte_text
from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Finding
from hlotext.reports.report import Report

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_LINE = re.compile(r"(?P<gutter>  +\d* ?\| )(?P<rest>.*)")


def full(report: Report) -> str:
    """Each finding in several lines, with an empty line between two."""
    return "\n".join(f"{full_text(finding, report.with_origin)}\n" for finding in report.findings)


def full_text(finding: Finding, with_origin: bool = False) -> str:
    """One finding: place and message, the line with a caret, where it comes from and what it costs, what to do."""
    if not with_origin:
        return str(finding)
    facts = finding.facts
    out = [concise_line(finding), *facts.excerpt]
    for (what, span), lines in zip(finding.related, facts.related, strict=True):
        out += (f"{escape.line(finding.file)}:{span.line}:{span.column}: {escape.line(what)}", *lines)
    if facts.op_name:
        out.append(f"  op_name: {escape.line(facts.op_name)}")
    if finding.frame is not None:
        out.append(f"  from: {escape.line(str(finding.frame))}")
    if costs := _costs(finding):
        out.append(f"  {costs}")
    if finding.help:
        fix = f" (--fix does it, by {finding.fix}: safe)" if finding.fix else ""
        out.append(f"  help: {escape.lines(finding.help)}{fix}")
    return "\n".join(out)


def _costs(finding: Finding) -> str:
    """The estimates in words; empty where there are none, or nothing to save."""
    bytes_ = byte_text(finding.bytes) if finding.bytes else ""
    flops = f"{_short(finding.flops)}FLOP" if finding.flops else ""
    costs = " and ".join(filter(None, (bytes_, flops)))
    if not costs:
        return ""
    where = f" in {finding.places:,} places" if finding.places > 1 else ""
    if finding.is_held:
        return f"holds: {costs}{where}"
    return f"costs: {costs}{where}{',' if where else ''} each time the module runs"


def _short(count: int) -> str:
    """A count with three digits and a prefix: `2.15 G`."""
    value, prefix = float(count), ""
    for prefix in ("", "k", "M", "G", "T", "P", "E"):
        if value < 999.5 or prefix == "E":
            break
        value /= 1000
    return f"{value:.3g} {prefix}"


def coloured(finding: Finding, with_origin: bool = False) -> Text:
    """The same as `full_text`, coloured: severity, place, caret and help."""
    from rich.text import Text

    style = _STYLES[finding.severity]
    mark = f"{finding.severity.value}[{finding.code}]"
    first, *others = full_text(finding, with_origin).split("\n")
    place, found, message = first.partition(mark)
    text = Text.assemble((place, "dim"), (mark, style), (message, "bold")) if found else Text(first, "bold")
    for line in others:
        match = _LINE.fullmatch(line)
        if match is not None:
            is_caret = not match["rest"].strip("^ ")
            text.append(f"\n{match['gutter']}", "dim")
            text.append(match["rest"], style if is_caret else "")
        elif line.startswith("  help: "):
            text.append("\n  help: ", "green")
            text.append(line.removeprefix("  help: "))
        else:
            text.append(f"\n{line}", "dim")
    return text


def concise(report: Report) -> str:
    """One line for each finding, for people and editors."""
    return "".join(f"{concise_line(finding)}\n" for finding in report.findings)


def concise_line(finding: Finding) -> str:
    """`file:line:column: warning[C101]: message`."""
    text = f"{finding.place}: {finding.severity.value}[{finding.code}]: {finding.message}"
    return escape.line(" ".join(text.split()))


def summary(findings: Iterable[Finding], files: int) -> str:
    """One line that counts: `2 errors, 1 note in 3 files`."""
    counts = Counter(finding.severity for finding in findings)
    parts = [_plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return f"{', '.join(parts) or 'nothing found'} in {_plural(files, 'file')}"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
