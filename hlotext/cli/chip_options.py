"""Source lines beside numbers, and chips as the command line names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hlotext.analysis import ChipChoice, SourceLocation, backend_of, chips, other_platform
from hlotext.analysis.chips import Chip
from hlotext.analysis.formatting import format_count, format_percent, seconds
from hlotext.cli.common import Unreadable, say
from hlotext.cli.listing import Shown
from hlotext.cost import Cost, TargetCosts, TpuCost, read_costs
from hlotext.ir.nodes.module import Module

__all__ = [
    "COSTS",
    "chip_of",
    "choice_json",
    "costs_of",
    "format_count",
    "format_percent",
    "line_cell",
    "place_text",
    "seconds",
    "told",
    "with_set",
    "xla_json",
]

T = TypeVar("T")


def place_text(place: SourceLocation | None) -> str:
    """Formats a source location without its folders; empty for None."""
    if place is None:
        return ""
    return f"{place.file.replace(chr(92), '/').rpartition('/')[2]}:{place.line}"


def line_cell(place: SourceLocation | None) -> Shown:
    """Returns a cell with a source location: with folders in JSON, without them in text."""
    return Shown(None if place is None else f"{place.file}:{place.line}", place_text(place))


def told(ask: Callable[[], T]) -> T:
    """Calls a function and returns its result; a ValueError becomes a UsageError."""
    try:
        return ask()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


COSTS = click.option(
    "--costs",
    metavar="FILE.toml",
    help="TOML file of custom-call costs, with a section per target:"
    ' ["my_kernel"] with flops = "2 * elements(operands[0]) * results[0][1]".',
)
"""The option of a table of targets, which `costs_of` reads."""


def costs_of(path: str | None) -> TargetCosts | None:
    """Reads a table of custom-call costs from a TOML file; None for None. Raises UsageError and Unreadable."""
    if path is None:
        return None
    text = _text(path)
    try:
        return read_costs(text)
    except ValueError as error:
        raise click.UsageError(f"{path}: {error}") from None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def chip_of(name: str) -> Chip:
    """Returns a chip by name, alias or TOML file. Raises UsageError and Unreadable."""
    if name.endswith(".toml"):
        text = _text(name)
        return told(lambda: chips.read_chip(text, name))
    return told(lambda: chips.chip(name))


def say_other_platform(place: str, module: Module, chip: Chip) -> None:
    """Prints a warning if a module was compiled for another platform than the requested chip's."""
    if told := other_platform(module, chip):
        say(f"{place}: {told}")


def say_given_platform(place: str, module: Module, platform: str | None) -> None:
    """Prints a warning if `--platform` differs from the platform of the text."""
    own = backend_of(module)
    if platform is not None and own is not None and own.value != platform:
        say(
            f"{place}: the module looks like one for {own.value}; using the rules of {platform}, as --platform requests"
        )


def with_set(chip: Chip, figures: tuple[str, ...]) -> Chip:
    """Returns a chip with figures replaced by `NAME=NUMBER` options. Raises UsageError."""
    own: dict[str, object] = {}
    for figure in figures:
        key, _, value = figure.partition("=")
        try:
            own[key] = float(value)
        except ValueError:
            raise click.UsageError(f"--set takes NAME=NUMBER, not {figure!r}") from None
    return told(lambda: chips.with_figures(chip, own)) if own else chip


def choice_json(choice: ChipChoice | None) -> dict[str, Any]:
    """Returns the chip and how it was chosen, as JSON values; nulls for None."""
    return {
        "chip": choice.chip.name if choice is not None else None,
        "chip_source": choice.source if choice is not None else None,
        "chip_candidates": list(choice.candidates) if choice is not None else [],
    }


def xla_json(figures: Cost | TpuCost) -> dict[str, Any]:
    """Returns XLA's own figures as JSON values; seconds cover operations of known cost, and are null except for TPU."""
    own = figures if isinstance(figures, TpuCost) else None
    return {
        "flops": figures.flops,
        "transcendentals": figures.transcendentals,
        "bytes_accessed": figures.bytes_accessed,
        "least_seconds": own.least_seconds if own is not None else None,
        "unknown_calls": own.unknown_calls if own is not None else None,
    }
