"""`hlotext bugreport`: a report of a compiler fault that can be shown to anybody."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import hlotext as hlo
from hlotext import bugreport, messages
from hlotext.cli.common import NotFound, Unreadable, is_folder, read, say
from hlotext.cli.folders import chosen
from hlotext.cli.output import output
from hlotext.dumps.storage import is_archive
from hlotext.ir.files import write_text
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
    help="The script that is written.",
)
@click.option("-m", "--module", metavar="NAME|NUMBER", help="Of several compilations which one.")
@click.option(
    "--message", metavar="LOG", help="A log with the compiler's message: its kind and figures are told."
)
@click.option(
    "--include", metavar="FILE", multiple=True, help="A file that COMMAND needs, to be shown with the report."
)
@click.option("--keep-constants", is_flag=True, help="Show the constants of the module.")
@click.option("--no-flags", is_flag=True, help="Leave XLA_FLAGS alone.")
@click.option("--timeout", default=60.0, show_default=True, help="Seconds for each run of COMMAND.")
@click.option("--max-tests", default=500, show_default=True, help="How often COMMAND is run at most.")
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
    """Write a report of the fault of a compilation: one script with the module, which COMMAND fails for.

    The module before optimization is taken, without names, metadata and constants, and made as small as the fault allows
    ({} in COMMAND stands for its file; without {} it comes last). COMMAND shows the fault by its exit status, the same at
    every run. The head of the script tells the age of XLA, platform, chip, and the settings that are not default; values that
    may name a place or a person are withheld. What it holds is shown before it is written. No path, user or host name goes
    into it.

    \b
    Examples:
      hlotext bugreport dumps/ -o report.sh -- run_hlo_module --platform=gpu
      hlotext bugreport dumps/ -m jit_step -o report.sh --include check.py -- python3 check.py {}
      hlotext bugreport dumps/ -o report.sh

    Exit status: 0 written, 1 COMMAND does not fail, or not for what may be shown, 2 wrong usage or unreadable input.
    """
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
    except bugreport.BugReportError as error:
        raise NotFound(str(error)) from None
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    except hlo.HloSyntaxError as error:
        raise Unreadable(str(error).partition("\n")[0], str(error)) from None
    report = output()
    report.heading(f"{target}: {len(found.script.encode()):,} bytes")
    report.facts(found.facts)
    if not found.is_checked:
        say("no COMMAND was given: the module is not reduced, and nobody knows whether the fault is there")
    if not yes and sys.stdin.isatty() and sys.stdout.isatty() and not click.confirm("Write it?"):
        return
    write_text(target, found.script)


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
        raise Unreadable(f"{place} holds no message of a compiler")
    return found[0]
