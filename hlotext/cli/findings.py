"""Writing down findings: the options and the output that `check` and `verify` share, and what `lint` takes of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import attrs
import click

import hlotext as hlo
from hlotext import reports
from hlotext.cli import UNREADABLE
from hlotext.cli.common import Inputs, say
from hlotext.cli.output import echo, emit_report, is_colourful
from hlotext.cli.rule import RULES

FOUND = 1
"""Exit status where something was found that is more than a note."""

FINDINGS_FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="Text is for people and may change; github writes annotations for GitHub Actions.",
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="No notes, and no line that counts.")


@attrs.define
class Findings:
    """What a command finds, file by file. As text it is shown at once, in the other formats by `finish`."""

    _files: Sequence[str]
    _format: str
    _quiet: bool
    _entries: list[reports.Entry] = attrs.field(factory=list)

    def add(self, diagnostics: Iterable[hlo.Diagnostic], module: str = "") -> None:
        """Takes what was found in a module, or in a text."""
        for diagnostic in diagnostics:
            if self._quiet and diagnostic.severity is hlo.Severity.NOTE:
                continue
            entry = reports.from_diagnostic(diagnostic, RULES[diagnostic.code].title, module)
            if self._format == "text":
                show([entry], is_first=not self._entries)
            self._entries.append(entry)

    def finish(self, inputs: Inputs, *, is_unreadable: bool = False) -> None:
        """Writes what is not yet written, and one line on standard error that counts.

        Raises Exit: with status 2 where something could not be read, with 1 where more than notes was found.
        """
        if self._format == "json":
            emit_report(reports.json_report(self._entries, self._files, hlo.__version__))
        elif self._format == "sarif":
            emit_report(reports.sarif(self._entries, hlo.__version__, lambda code: RULES[code].page()))
        elif self._format == "github":
            emit_report(reports.github(self._entries))
        elif not self._quiet:
            say(reports.summary(self._entries, len(self._files)))
        inputs.finish()
        if is_unreadable:
            raise click.exceptions.Exit(UNREADABLE)
        if any(entry.severity is not hlo.Severity.NOTE for entry in self._entries):
            raise click.exceptions.Exit(FOUND)


def read_problems(result: hlo.ParseResult, place: str, findings: Findings) -> bool:
    """Takes what the reader found in a file; gives whether the text is no HLO."""
    findings.add(result.diagnostics)
    if result.left_out:
        say(f"{place}: {result.left_out:,} more findings are not listed")
    return any(diagnostic.severity is hlo.Severity.ERROR for diagnostic in result.diagnostics)


def show(entries: Iterable[reports.Entry], *, is_first: bool = True) -> None:
    """Findings in full, with an empty line between two; on a terminal in colour."""
    console = None
    if is_colourful():
        from rich.console import Console

        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for entry in entries:
        if not is_first:
            echo("")
        is_first = False
        if console is not None:
            console.print(reports.rich_caret(entry))
        else:
            echo(reports.caret(entry))
