"""Source lines beside numbers, and chips as the command line names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from hlotext.analysis import Place, chips
from hlotext.analysis.chips import Chip
from hlotext.analysis.quantities import amount, seconds, share
from hlotext.cli.common import Unreadable

__all__ = ["amount", "chip_of", "place_text", "seconds", "share", "told"]

T = TypeVar("T")


def place_text(place: Place | None) -> str:
    """A source line without its folders."""
    if place is None:
        return ""
    return f"{place.file.replace(chr(92), '/').rpartition('/')[2]}:{place.line}"


def told(ask: Callable[[], T]) -> T:
    """An answer, where what the library refuses is a wrong usage."""
    try:
        return ask()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def chip_of(name: str, figures: tuple[str, ...]) -> Chip:
    """A chip by name, alias or TOML file, with figures of one's own. Raises UsageError and Unreadable."""
    if name.endswith(".toml"):
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Unreadable(f"{name} cannot be read: {error}") from None
        found = told(lambda: chips.read_chip(text, name))
    else:
        found = told(lambda: chips.chip(name))
    own: dict[str, object] = {}
    for figure in figures:
        key, _, value = figure.partition("=")
        try:
            own[key] = float(value)
        except ValueError:
            raise click.UsageError(f"--set takes NAME=NUMBER, not {figure!r}") from None
    return told(lambda: chips.with_figures(found, own))
