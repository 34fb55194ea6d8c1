"""`hlotext check`: can this text be read, and what is wrong with it?"""

from __future__ import annotations

import click

from hlotext.cli.common import FILES, Inputs
from hlotext.cli.findings import FINDINGS_FORMAT, QUIET, Findings, read_problems


@click.command()
@FILES
@FINDINGS_FORMAT
@QUIET
def command(files: tuple[str, ...], output_format: str, quiet: bool) -> None:
    """Say all that is wrong with the text of each FILE, and what in it this release does not know.

    Not only the first error: broken lines, cut files and lines of a log are passed over. Whether what was read is right is
    the question of `hlotext verify`. Every finding has a code; `hlotext rule X101` explains it.

    \b
    Examples:
      hlotext check module_0001.jit_step.after_optimizations.txt
      hlotext check --format github reproducers/*.hlo
      ssh host cat dump.txt | hlotext check -

    Exit status: 0 fine (notes do not count), 1 errors, 2 wrong usage or files that cannot be opened.
    """
    findings = Findings(files, output_format, quiet)
    inputs = Inputs(files, with_errors=True)
    for place, result in inputs:
        read_problems(result, place, findings)
    findings.finish(inputs)
