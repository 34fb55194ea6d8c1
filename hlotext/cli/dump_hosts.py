"""`hlotext dump hosts`: the dumps of many hosts that run one program, side by side."""

from __future__ import annotations

import os
from typing import Any

import attrs
import click

from hlotext import dumps
from hlotext.analysis.formatting import pluralize
from hlotext.cli.common import Unreadable, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import echo, emit_report, output
from hlotext.findings.escape import markdown
from hlotext.syntax.source.inputs import InputError

_DIFFERENT = 1
_NAMED = 4
"""Hosts that a row names; more are counted."""
_VERDICTS = {
    "same": "all hosts compiled the same programs",
    "local": "the shared programs are equal; some hosts compiled additional ones",
    "different": "hosts compiled different programs",
}


@click.command("hosts")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes.  [default: one per core]",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
)
def command(folders: tuple[str, ...], jobs: int | None, output_format: str) -> None:
    """Find hosts that compiled a different program.

    Give one dump folder per host, or a DIR that contains them. Modules are matched by name; names and metadata are
    ignored. Finds different programs and settings, unfinished compilations, and orders of collectives that deadlock.
    Programs on a single host, and differences in compilation order, are notes.

    \b
    Examples:
      hlotext dump hosts dumps/
      hlotext dump hosts host_0/ host_1/ host_2/ --format markdown

    Exit status: 0 equal, 1 different, 2 unreadable input.
    """
    try:
        report = dumps.hosts(folders, jobs=jobs or os.cpu_count() or 1)
    except InputError as error:
        raise Unreadable(str(error)) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if output_format == "json":
        write_json(_json(report))
    elif output_format == "markdown":
        emit_report(_markdown(report))
    else:
        _show(report)
    if report.verdict == "different":
        raise click.exceptions.Exit(_DIFFERENT)


def _show(report: dumps.HostReport) -> None:
    shown = output()
    shown.heading(_compared(report))
    facts = [("verdict", _VERDICTS[report.verdict])]
    if report.elided_constants:
        facts.append(("unknown", _elided(report)))
    shown.facts(facts)
    if report.findings:
        listing: Listing[dumps.HostFinding] = Listing(
            "dump.hosts", lambda one: (one.kind, one.module, _who(one, report), one.message)
        )
        shown.table(listing.table("Differences, most severe first", report.findings))
    else:
        echo("")


def _compared(report: dumps.HostReport) -> str:
    return f"{pluralize(len(report.hosts), 'host')}, {pluralize(report.modules, 'module')}"


def _elided(report: dumps.HostReport) -> str:
    return (
        f"whether {pluralize(report.elided_constants, 'constant')} elided as {{...}} have equal values"
        " (dump with xla_dump_large_constants)"
    )


def _who(finding: dumps.HostFinding, report: dumps.HostReport) -> str:
    if len(finding.hosts) == len(report.hosts):
        return "all (no majority)"
    named = ", ".join(finding.hosts[:_NAMED])
    left = len(finding.hosts) - _NAMED
    return named if left <= 0 else f"{named} and {left} more"


def _markdown(report: dumps.HostReport) -> str:
    lines = [f"**{_compared(report)}**: {_VERDICTS[report.verdict]}.", ""]
    if report.elided_constants:
        lines += [f"Unknown: {markdown(_elided(report))}.", ""]
    if report.findings:
        lines += ["| finding | module | hosts | |", "|---|---|---|---|"]
        lines += [
            "| " + " | ".join(map(markdown, (one.kind, one.module, _who(one, report), one.message))) + " |"
            for one in report.findings
        ]
    return "\n".join(lines).rstrip() + "\n"


def _json(report: dumps.HostReport) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "hosts": list(report.hosts),
        "modules": report.modules,
        "elided_constants": report.elided_constants,
        "findings": [
            {
                **attrs.asdict(one, recurse=False),
                "hosts": list(one.hosts),
                "settings": {name: list(values) for name, values in one.settings.items()},
            }
            for one in report.findings
        ],
    }
