"""`hlotext reduce`: the smallest module for which a command still fails."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import click

import hlotext as hlo
from hlotext.analysis.formatting import pluralize
from hlotext.cli.common import Unreadable, cannot_run, max_tests_option, read, say, timeout_option
from hlotext.cli.output import emit
from hlotext.ir.files import write_text
from hlotext.rewrite.reduction import reduce
from hlotext.syntax.source.inputs import several

_FOR_PYTHON = "fails(module) must be True for it, and a command"
"""Words of the library about its own argument, where the command line has a command."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file")
@click.argument("arguments", nargs=-1, required=True, metavar="-- COMMAND...")
@timeout_option(60.0, "per run, in seconds; a timeout is not a failure.")
@max_tests_option(2000)
def command(file: str, arguments: tuple[str, ...], timeout: float, max_tests: int) -> None:
    """Reduce FILE to a minimal module for which COMMAND still fails (exit status other than 0).

    {} in COMMAND is replaced with the candidate file; without {} it is appended.

    \b
    Examples:
      hlotext reduce dump.txt -- python compile_and_run.py
      hlotext reduce dump.txt -- sh -c '! grep -q "all-gather(" {}'

    Exit status: 0 success, 1 COMMAND does not fail for FILE, 2 usage error or unreadable input.
    """
    result = read(file)
    if len(result.modules) != 1:
        raise Unreadable(several(file, [module.name for module in result.modules]))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "module.txt"

        def fails(module: hlo.Module) -> bool:
            write_text(place, str(module))
            words = [word.replace("{}", str(place)) for word in arguments]
            if words == list(arguments):
                words.append(str(place))
            try:
                run = subprocess.run(words, capture_output=True, timeout=timeout, check=False)
            except subprocess.TimeoutExpired:
                return False
            except OSError as error:
                raise cannot_run(arguments[0], error) from None
            return run.returncode != 0

        try:
            found = reduce(result.module, fails, max_tests)
        except ValueError as error:
            say(str(error).replace(_FOR_PYTHON, "the command"))
            raise click.exceptions.Exit(1) from None
    emit(str(found.module))
    say(f"{pluralize(found.before, 'instruction')} became {found.after:,} in {pluralize(found.tests, 'run')}")
