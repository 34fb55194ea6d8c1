"""`hlotext bugreport`: a report of a compiler fault that can be shown to anybody."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import hlotext as hlo
from hlotext import bugreport, messages
from hlotext.cli.command_line import refuse_overwriting
from hlotext.cli.common import (
    NotFound,
    Unreadable,
    is_folder,
    max_tests_option,
    read,
    refuse_missing,
    say,
    timeout_option,
    write_file,
)
from hlotext.cli.folders import chosen
from hlotext.cli.output import output
from hlotext.dumps.storage import is_archive
from hlotext.findings.errors import brief
from hlotext.messages import Message
from hlotext.syntax.source.inputs import decode, read_data, several


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("path", metavar="DIR|FILE")
@click.argument("arguments", nargs=-1, metavar="[-- COMMAND...]")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    help="Script to write.",
)
@click.option("-m", "--module", metavar="NAME|NUMBER", help="Compilation to use, if there are several.")
@click.option(
    "--message", metavar="LOG", help="Log with the compiler's message, whose kind and sizes are included."
)
@click.option(
    "--include", metavar="FILE", multiple=True, help="A file that COMMAND needs, to include in the report."
)
@click.option("--keep-constants", is_flag=True, help="Keep the constants of the module.")
@click.option("--no-flags", is_flag=True, help="Do not set XLA_FLAGS.")
@timeout_option(60.0, "per run of COMMAND, in seconds.")
@max_tests_option(500)
@click.option("--yes", is_flag=True, help="Write without asking.")
def command(
    path: str,
    arguments: tuple[str, ...],
    target: Path,
    module: str | None,
    message: str | None,
    include: tuple[str, ...],
    keep_constants: bool,
    no_flags: bool,
    timeout: float,
    max_tests: int,
    yes: bool,
) -> None:
    """Write a reproducer for a compiler bug: one script with the module for which COMMAND fails.

    The module before optimization is stripped of names, metadata and constants, and reduced while the failure
    persists ({} in COMMAND is replaced with its file; without {} it is appended). COMMAND must fail with the same
    exit status in every run. The script's header states the release of XLA, the platform, the chip, and non-default
    settings; values that may contain a path or a name are withheld. Its contents are shown before it is written. It
    contains no path, user or host name.

    \b
    Examples:
      hlotext bugreport dumps/ -o report.sh -- run_hlo_module --platform=gpu
      hlotext bugreport dumps/ -m jit_step -o report.sh --include check.py -- python3 check.py {}
      hlotext bugreport dumps/ -o report.sh

    Exit status: 0 written, 1 COMMAND does not fail, or not with the anonymized module, 2 usage error or unreadable
    input.
    """
    # Without `--` the options of COMMAND may be taken for its own.
    refuse_overwriting("-o", str(target), [path])
    refuse_missing(map(str, include))
    try:
        found = bugreport.make(
            _source(path, module),
            arguments,
            include=include,
            message=_message(message),
            keep_constants=keep_constants,
            with_flags=not no_flags,
            timeout=timeout,
            max_tests=max_tests,
        )
    except bugreport.CommandNotFoundError as error:
        raise Unreadable(str(error)) from None
    except bugreport.BugReportError as error:
        raise NotFound(str(error)) from None
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    except hlo.HloSyntaxError as error:
        raise Unreadable(brief(error), str(error)) from None
    report = output()
    report.heading(f"{target}: {len(found.script.encode()):,} bytes")
    report.facts(found.facts)
    if not found.is_checked:
        say("no COMMAND: the module is not reduced, and the failure is not confirmed")
    if not yes and sys.stdin.isatty() and sys.stdout.isatty() and not click.confirm("Write it?"):
        return
    write_file(target, found.script)


def _source(path: str, module: str | None) -> hlo.Module | hlo.dumps.Compilation:
    if is_folder(path) or is_archive(path):
        return chosen(path, module)
    modules = read(path).modules
    if len(modules) != 1:
        raise Unreadable(several(path, [one.name for one in modules]))
    return modules[0]


def _message(place: str | None) -> Message | None:
    """The first message of a log. Raises Unreadable."""
    if place is None:
        return None
    try:
        data, _ = read_data(place)
        found = list(messages.read(decode(data) if isinstance(data, bytes) else data))
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    if not found:
        raise Unreadable(f"{place} contains no compiler message")
    return found[0]
