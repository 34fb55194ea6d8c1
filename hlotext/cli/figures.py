"""Numbers of operations, seconds and shares for people, and names that fit beside them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from hlotext.analysis import Place, chips
from hlotext.analysis.chips import Chip
from hlotext.cli.common import Unreadable
from hlotext.cli.output import shortened

T = TypeVar("T")
_UNITS = ("", "K", "M", "G", "T", "P", "E")
_WIDEST_PIPED = 72
"""Columns for a name where no terminal says how many there are."""


def amount(count: float) -> str:
    """Operations, three digits: `512`, `1.25 G`; units are powers of 1,000."""
    value, unit = float(count), 0
    while abs(value) >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if not unit:
        return f"{value:.3g}" if value != int(value) else str(int(value))
    if abs(value) >= 999.5:
        return f"{value:.3g} {_UNITS[unit]}"
    return f"{value:.{max(0, 2 - (value >= 9.995) - (value >= 99.95))}f} {_UNITS[unit]}"


def seconds(time: float) -> str:
    """Seconds, three digits: `12.3 us`, `1.25 s`."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if time >= 0.9995 * factor:
            return f"{time / factor:.3g} {unit}"
    return f"{time * 1e9:.3g} ns" if time else "0"


def share(part: float, whole: float) -> str:
    """A part in percent; nothing where there is no whole."""
    return f"{100 * part / whole:.1f} %" if whole else ""


def room(used: int) -> int:
    """Columns for a name on a line on which so many are used."""
    if not sys.stdout.isatty():
        return _WIDEST_PIPED
    return max(16, shutil.get_terminal_size().columns - used)


LINE_WIDTH = 18
"""Columns for a source line."""


def place_text(place: Place | None) -> str:
    """A source line without its folders."""
    if place is None:
        return ""
    return shortened(f"{place.file.replace(chr(92), '/').rpartition('/')[2]}:{place.line}", LINE_WIDTH)


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
