"""`hlotext verify`: is this HLO right?"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

import hlotext as hlo
from hlotext import reports
from hlotext.cli import UNREADABLE
from hlotext.cli.common import FILES, Inputs, say
from hlotext.cli.output import echo, is_colourful
from hlotext.cli.rule import RULES

FOUND = 1
"""Exit status where a module is wrong, or can hardly be meant."""


@click.command()
@FILES
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["human", "json", "github", "sarif"]),
    default="human",
    show_default=True,
    help="human is for people and may change; github writes annotations for GitHub Actions.",
)
@click.option(
    "--layouts",
    type=click.Choice(["auto", "final", "open"]),
    default="auto",
    show_default=True,
    help="Whether layouts are final, so that values keep theirs. auto: once the module is scheduled.",
)
@click.option(
    "--mixed-precision",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="Whether an operation may mix float types. auto: in text of the TPU compiler.",
)
@click.option("-q", "--quiet", is_flag=True, help="No notes, and no line that counts.")
def command(
    files: tuple[str, ...], output_format: str, layouts: str, mixed_precision: str, quiet: bool
) -> None:
    """Check that each FILE is well-formed HLO, as XLA's own verifier would, and say all that is wrong.

    Shapes, types and called computations, layouts, the schedule, asynchronous pairs, replica groups, shardings, aliasing,
    stack frames. Every finding has a code; `hlotext rule V101` explains it.

    \b
    Examples:
      hlotext verify module_0001.jit_step.after_optimizations.txt
      hlotext verify --format sarif expected/*.hlo > findings.sarif
      hlotext verify --layouts final - < fused.txt

    Exit status: 0 fine (notes do not count), 1 errors or warnings, 2 wrong usage or unreadable input.
    """
    found: list[reports.Entry] = []
    inputs, unreadable = Inputs(files, with_errors=True), False
    for _, result in inputs:
        entries = list(_check(result, _CHOICES[layouts], _CHOICES[mixed_precision]))
        unreadable = unreadable or any(entry.code.startswith("X1") for entry in entries)
        entries = [entry for entry in entries if not (quiet and entry.severity is hlo.Severity.NOTE)]
        found += entries
        if output_format == "human":
            _show(entries)
    if output_format == "json":
        echo(reports.json_report(found, files, hlo.__version__))
    elif output_format == "sarif":
        echo(reports.sarif(found, hlo.__version__, lambda code: RULES[code].page()))
    elif output_format == "github":
        echo(reports.github(found), end="")
    elif not quiet:
        say(reports.summary(found, len(files)))
    inputs.finish()
    if unreadable:
        raise click.exceptions.Exit(UNREADABLE)
    if any(entry.severity is not hlo.Severity.NOTE for entry in found):
        raise click.exceptions.Exit(FOUND)


_CHOICES = {"auto": None, "final": True, "open": False, "yes": True, "no": False}


def _check(result: hlo.ParseResult, layouts: bool | None, mixed: bool | None) -> Iterator[reports.Entry]:
    """What the reader and the verifier find in a text.

    Of a text that is no HLO only what the reader says: half a module would be found wrong everywhere.
    """
    for diagnostic in result.diagnostics:
        yield _entry(diagnostic, "")
    if any(diagnostic.severity is hlo.Severity.ERROR for diagnostic in result.diagnostics):
        return
    for module in result.modules:
        for diagnostic in hlo.verify(module, layout_sensitive=layouts, mixed_precision=mixed):
            yield _entry(diagnostic, module.name)


def _entry(diagnostic: hlo.Diagnostic, module: str) -> reports.Entry:
    return reports.from_diagnostic(diagnostic, RULES[diagnostic.code].title, module)


def _show(entries: list[reports.Entry]) -> None:
    """The findings of one file, on a terminal in colour, with an empty line between two."""
    console = None
    if is_colourful():
        from rich.console import Console

        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for entry in entries:
        if console is not None:
            console.print(reports.rich_caret(entry), end="\n\n")
        else:
            echo(reports.caret(entry))
