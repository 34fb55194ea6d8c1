"""`hlotext check`: can this text be read, and what is wrong with it?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hlotext.cli.common import FILES, Inputs, which_option
from hlotext.cli.findings import (
    EXIT_ZERO,
    FINDINGS_FORMAT,
    LIMIT,
    OUTPUT_FILE,
    QUIET,
    STRICT,
    FindingsOutput,
    read_problems,
)

if TYPE_CHECKING:
    from hlotext.dumps.texts import Which


@click.command()
@FILES
@which_option("all")
@FINDINGS_FORMAT
@LIMIT
@OUTPUT_FILE
@EXIT_ZERO
@STRICT
@QUIET
def command(
    files: tuple[str, ...],
    which: Which,
    output_format: str,
    limit: int | None,
    output_file: Path | None,
    exit_zero: bool,
    strict: bool,
    quiet: bool,
) -> None:
    """Report every syntax error of each FILE, and anything unknown to this release.

    Broken lines, truncated files and log prefixes do not stop it. Use `hlotext verify` to check that the module
    is well-formed. Every finding has a code; `hlotext help rule X101` explains it.

    \b
    Examples:
      hlotext check module_0001.jit_step.after_optimizations.txt
      hlotext check --format github reproducers/*.hlo
      ssh host cat dump.txt | hlotext check -

    Exit status: 0 success (notes count with --strict only), 1 errors or warnings, 2 usage error, unreadable files, or text
    that is not HLO. The other commands exit with 2 for HLO text with syntax errors too.
    """
    findings = FindingsOutput(output_format, quiet, output_file, exit_zero, limit, strict)
    inputs = Inputs(files, with_errors=True, which=which)
    is_unreadable = False
    for place, result in inputs:
        read_problems(result, place, findings)
        is_foreign = any(one.code == _FOREIGN for one in result.diagnostics)
        is_unreadable = is_unreadable or (is_foreign and not any(one.computations for one in result.modules))
    findings.finish(
        inputs, is_unreadable=is_unreadable, beyond="; `hlotext verify` also checks shapes and types"
    )


_FOREIGN = "X123"
"""Code of text that is not HLO."""
