"""`hlotext verify`: is this HLO right?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import hlotext as hlo
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
from hlotext.findings.failures import INTERNAL

if TYPE_CHECKING:
    from hlotext.dumps.texts import Which


@click.command()
@FILES
@which_option("all")
@FINDINGS_FORMAT
@click.option(
    "--layouts",
    type=click.Choice(["auto", "final", "open"]),
    default="auto",
    show_default=True,
    help="Treat layouts as final. auto: if the module is scheduled.",
)
@click.option(
    "--mixed-precision",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="Allow mixed float types. auto: allow them if the module is for TPU.",
)
@LIMIT
@OUTPUT_FILE
@EXIT_ZERO
@STRICT
@QUIET
def command(
    files: tuple[str, ...],
    which: Which,
    output_format: str,
    layouts: str,
    mixed_precision: str,
    limit: int | None,
    output_file: Path | None,
    exit_zero: bool,
    strict: bool,
    quiet: bool,
) -> None:
    """Verify that each FILE is well-formed HLO, as XLA's verifier does, and report every error.

    Checks shapes, types, called computations, layouts, the schedule, asynchronous pairs, replica groups, shardings, aliasing
    and stack frames. Every finding has a code; `hlotext help rule V101` explains it.

    \b
    Examples:
      hlotext verify module_0001.jit_step.after_optimizations.txt
      hlotext verify --format sarif expected/*.hlo > findings.sarif
      hlotext verify --layouts final - < fused.txt

    Exit status: 0 success (notes count with --strict only), 1 errors or warnings, 2 usage error or unreadable input.
    """
    findings = FindingsOutput(output_format, quiet, output_file, exit_zero, limit, strict)
    inputs = Inputs(files, with_errors=True, which=which)
    is_unreadable = False
    for place, result in inputs:
        if read_problems(result, place, findings):
            is_unreadable = True  # half a module would be found wrong everywhere
            continue
        for module in result.modules:
            found = hlo.verify(
                module, layout_sensitive=_CHOICES[layouts], mixed_precision=_CHOICES[mixed_precision]
            )
            is_unreadable = is_unreadable or any(one.code == INTERNAL for one in found)
            findings.add(found, module.name)
    findings.finish(inputs, is_unreadable=is_unreadable)


_CHOICES = {"auto": None, "final": True, "open": False, "yes": True, "no": False}
