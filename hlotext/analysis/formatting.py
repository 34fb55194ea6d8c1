"""Formats operation counts, seconds and percentages."""

from __future__ import annotations

HUGE = 10**300
"""Largest number that still fits a float: trip counts of nested loops multiply."""

_UNITS = ("", "K", "M", "G", "T", "P", "E")


def format_count(count: float) -> str:
    """Formats a count with three digits: `512`, `1.25 G`; units are powers of 1,000."""
    if count > HUGE:
        return "over 1e300"
    value, unit = float(count), 0
    while abs(value) >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if not unit:
        return f"{value:.3g}" if value != int(value) else str(int(value))
    return f"{value:.3g} {_UNITS[unit]}" if abs(value) >= 999.5 else f"{_three_digits(value)} {_UNITS[unit]}"


def _three_digits(value: float) -> str:
    """A number below 999.5 with three digits, zeros included: numbers below each other are equally precise."""
    return f"{value:.{max(0, 2 - (value >= 9.995) - (value >= 99.95))}f}"


def pluralize(count: int, noun: str, plural: str = "") -> str:
    """Formats a count with a noun: `1 instruction`, `12,345 instructions`; `plural` for irregular plurals."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def seconds(time: float) -> str:
    """Formats seconds with three digits: `12.3 us`, `2.00 ms`, `1,250 s`; nanoseconds without decimals."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if time >= 0.9995 * factor:
            return (
                f"{time / factor:,.0f} {unit}" if time >= 999.5 else f"{_three_digits(time / factor)} {unit}"
            )
    if not time:
        return "0"
    return f"{time * 1e9:.0f} ns" if time >= 1e-9 else "<1 ns"


def times(factor: float) -> str:
    """Formats a factor with three digits: `1.25x`, `128x`, `12,345x`."""
    return f"{factor:{',.0f' if factor >= 99.5 else '.3g'}}x"


def format_percent(part: float, whole: float) -> str:
    """Formats a fraction as a percentage; empty if the whole is zero."""
    return f"{100 * part / whole:.1f}%" if whole else ""


def format_change(change: float) -> str:
    """Formats a relative change: `+12.5%`, `−0.04%`; increases by a factor of 10 or more as `1,411 times`."""
    if not change:
        return "none"
    if change >= 9:
        return f"{1 + change:,.0f} times"
    share = 100 * abs(change)
    return f"{'+' if change > 0 else '−'}{f'{share:.3g}' if share >= 0.001 else '<0.001'}%"


def attribute_text(value: object) -> str:
    """Formats an attribute value in HLO notation: tuples in braces, enumerators by name; empty for None."""
    if isinstance(value, tuple):
        return "{" + ",".join(map(attribute_text, value)) + "}"
    return "" if value is None else str(value)
