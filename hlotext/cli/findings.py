"""Writing down findings: the options and the output that `check` and `verify` share, and what `lint` takes of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import attrs
import click

import hlotext as hlo
from hlotext import reports
from hlotext.cli import DEBUG_VARIABLE, UNREADABLE
from hlotext.cli.common import Inputs, is_misspelled, say, write_file
from hlotext.cli.help_rule import RULES
from hlotext.cli.json_output import json_text
from hlotext.cli.output import echo, emit_report, is_colourful, terminal_width
from hlotext.findings.failures import INTERNAL

FOUND = 1
"""Exit status where something was found that is more than a note."""

FINDINGS_FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", *reports.WRITERS]),
    default="text",
    show_default=True,
    help="Output format. Text may change between releases; github writes annotations for GitHub Actions.",
)
OUTPUT_FILE = click.option(
    "-o",
    "--output-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the findings to a file instead of standard output.",
)
EXIT_ZERO = click.option(
    "--exit-zero",
    is_flag=True,
    help="Exit with 0 even if there are findings; unreadable input still exits with 2.",
)
MOST_SHOWN = 100
"""Findings that a text shows unless asked for more."""
LIMIT = click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Maximum number of findings (0 for no limit).  [default: {MOST_SHOWN} as text, all in other formats]",
)
STRICT = click.option(
    "--strict", is_flag=True, help="Exit with 1 for notes too, such as names unknown to this release."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Omit notes and the summary line.")


@attrs.define
class FindingsOutput:
    """Output of findings, file by file: text immediately, other formats in `finish`."""

    _format: str
    _quiet: bool
    _output_file: Path | None = None
    _exit_zero: bool = False
    _limit: int | None = None
    _is_strict: bool = False
    """True if notes count for the exit status."""
    _found: list[hlo.Diagnostic] = attrs.field(factory=list)

    def add(self, diagnostics: Iterable[hlo.Diagnostic], module: str = "") -> None:
        """Adds the findings of a module or text."""
        for diagnostic in diagnostics:
            finding = attrs.evolve(_weighed(shown(diagnostic)), module=module)
            if self._quiet and finding.severity is hlo.Severity.NOTE and not self._is_strict:
                continue
            if self._is_text and self._output_file is None and len(self._found) < (self._most or sys.maxsize):
                show([finding], is_first=not self._found)
            self._found.append(finding)

    @property
    def _most(self) -> int:
        """Findings to show; 0 for all."""
        is_for_people = self._is_text and self._output_file is None
        return (MOST_SHOWN if is_for_people else 0) if self._limit is None else self._limit

    @property
    def _is_text(self) -> bool:
        return self._format in ("text", "full")

    def finish(self, inputs: Inputs, *, is_unreadable: bool = False, beyond: str = "") -> None:
        """Writes what is left, and a line on standard error with the numbers of findings; if there are none, and `beyond`.

        Raises Exit with status 2 if something was unreadable, with 1 if a finding is more than a note.
        """
        if not self._is_text or self._output_file is not None:
            report = reports.FindingsReport(self._found, inputs.places, RULES.__getitem__, hlo.__version__)
            report = cut(report, self._limit)
            write_report(report, "full" if self._is_text else self._format, self._output_file)
        readable = len(inputs.places) - inputs.unreadable
        if self._is_text and not self._quiet and (readable or self._found):
            say(reports.summary(self._found, readable) + ("" if self._found else beyond))
        if self._is_text:
            say_cut(len(self._found), self._most)
        inputs.finish()
        if is_unreadable:
            raise click.exceptions.Exit(UNREADABLE)
        counting = self._is_strict or any(one.severity is not hlo.Severity.NOTE for one in self._found)
        if self._found and counting and not self._exit_zero:
            raise click.exceptions.Exit(FOUND)


def _weighed(finding: hlo.Diagnostic) -> hlo.Diagnostic:
    """The finding; a warning instead of a note for a misspelled name, which XLA rejects."""
    return attrs.evolve(finding, severity=hlo.Severity.WARNING) if is_misspelled(finding) else finding


def cut(report: reports.FindingsReport, limit: int | None) -> reports.FindingsReport:
    """Returns a report with the first findings only, which states the total; unchanged without a limit."""
    if limit is None:
        return report
    return attrs.evolve(report, findings=report.findings[: limit or None], total=len(report.findings))


def say_cut(total: int, most: int) -> None:
    """Prints that some findings are not shown, and how to show them."""
    if most and total > most:
        say(f"{most:,} of {total:,} findings shown (all: --limit 0, or --format json)")


def shown(finding: hlo.Diagnostic) -> hlo.Diagnostic:
    """Returns a finding; without traceback if it is an internal error and debugging is off."""
    if finding.code != INTERNAL or os.environ.get(DEBUG_VARIABLE):
        return finding
    return attrs.evolve(finding, help=f"this is a bug in hlotext: {DEBUG_VARIABLE}=1 shows the traceback")


def write_report(report: reports.FindingsReport, output_format: str, output_file: Path | None = None) -> None:
    """Writes a report in a format to a file or standard output. Raises Unreadable."""
    if output_format == "json":
        text = json_text(reports.document(report)) + "\n"
    else:
        text = reports.WRITERS[output_format](report)
    write_text_or_show(text, output_file)


def write_text_or_show(text: str, output_file: Path | None) -> None:
    """Writes a report to a file, or to standard output for None. Raises Unreadable."""
    if output_file is None:
        emit_report(text)
        return
    write_file(output_file, text)


def read_problems(result: hlo.ParseResult, place: str, findings: FindingsOutput) -> bool:
    """Adds the findings of the parser for a file. Returns True if the text is invalid."""
    findings.add(result.diagnostics)
    if result.left_out:
        say(f"{place}: {result.left_out:,} more findings not listed")
    return any(diagnostic.severity is hlo.Severity.ERROR for diagnostic in result.diagnostics)


def show(found: Iterable[hlo.Diagnostic], *, is_first: bool = True, with_origin: bool = False) -> None:
    """Prints findings in full, separated by blank lines; in color on terminals."""
    console = None
    if is_colourful():
        from rich.console import Console

        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for finding in found:
        if not is_first:
            echo("")
        is_first = False
        if console is not None:
            console.print(reports.coloured(finding, with_origin, terminal_width()))
        else:
            echo(reports.full_text(finding, with_origin, terminal_width()))
