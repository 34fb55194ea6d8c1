"""`hlotext grep`: finds instructions by a pattern that is an op line with gaps."""

from __future__ import annotations

from typing import Any

import click

from hlotext.cli.common import FORMAT, NOT_FOUND, Inputs, write_json
from hlotext.cli.output import echo, emit, printable
from hlotext.ir.nodes.instruction import Instruction
from hlotext.matchers import Match, PatternError, parse_pattern


@click.command()
@click.argument("pattern")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--why", metavar="NAME", help="Say why the instruction of that name does not match.")
@FORMAT
def command(pattern: str, files: tuple[str, ...], why: str | None, output_format: str) -> None:
    """Find instructions that match PATTERN: an op line with gaps.

    \b
    %x, $A        any instruction, the same wherever the name stands
    _  ...        anything; any further operands
    f32[*]  $S    shapes, with * for any text; $S takes the whole shape
    all-*         opcodes, with * for any text
    add(%a, negate(%b))
                  operands and where they come from
    dimensions={0}, channel_id=*, metadata=*relu*
                  attributes that must be there, in any order

    \b
    Examples:
      hlotext grep '%x = $S all-gather($A), dimensions={0}' dump.txt
      hlotext grep 'convert(convert(_))' *.after_optimizations.txt
      hlotext grep 'bf16[*] dot(...)' --why dot.4 dump.txt

    Exit status: 0 something was found, 1 nothing, 2 wrong usage or unreadable input.
    """
    try:
        wanted = parse_pattern(pattern)
    except PatternError as error:
        raise click.UsageError(f"{pattern!r} is no pattern: {error}") from None
    inputs = Inputs(files)
    found: list[dict[str, Any]] = []
    explanations: list[dict[str, Any]] = []
    for place, result in inputs:
        for module in result.modules:
            for instruction in module.instructions():
                if why is not None:
                    if instruction.name == why.removeprefix("%"):
                        reason = wanted.explain(instruction)
                        explanations.append(
                            {
                                "file": place,
                                "instruction": instruction.name,
                                "matches": not reason,
                                "why": reason,
                            }
                        )
                        if output_format == "text":
                            echo(f"{printable(place)}: {reason or f'{instruction.name} matches'}")
                elif (match := wanted.match(instruction)) is not None:
                    found.append(_as_json(place, instruction, match))
                    if output_format == "text":
                        _show(place, instruction)
    if output_format == "json":
        write_json({"matches": found} if why is None else {"explanations": explanations})
    inputs.finish()
    if not (found or explanations):
        raise click.exceptions.Exit(NOT_FOUND)


def _show(place: str, instruction: Instruction) -> None:
    """`FILE:LINE:COLUMN: op line`."""
    span = instruction.span
    emit(printable(f"{place}:{span}" if span is not None else place), "cyan")
    echo(f": {printable(str(instruction))}")


def _as_json(place: str, instruction: Instruction, match: Match) -> dict[str, Any]:
    span, computation = instruction.span, instruction.computation
    return {
        "file": place,
        "line": span.line if span is not None else None,
        "computation": computation.name if computation is not None else None,
        "instruction": instruction.name,
        "text": str(instruction),
        "captures": {
            name: value.name if isinstance(value, Instruction) else value for name, value in match.items()
        },
    }
