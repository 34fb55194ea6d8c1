"""Shortcuts for numbers, flags, strings, lists of them and iota lists, and what shortcuts of other kinds share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TypeVar

from hlotext.findings.errors import TermError
from hlotext.ir.caches import lazy_regex
from hlotext.ir.values.tile_assignment import IotaTileAssignment
from hlotext.syntax.language.words import integer as integer_of
from hlotext.syntax.language.words import unquote

Value = TypeVar("Value")


def exact(
    shortcut: Callable[[str], Value | None], written: Callable[[Value], str] = str
) -> Callable[[str], Value | None]:
    """Wraps a shortcut so that it returns None for a text that differs from the printed form of its value.

    So a shortcut need not check all of the text.
    """

    @functools.wraps(shortcut)
    def read(text: str) -> Value | None:
        try:
            value = shortcut(text)
        except (ValueError, LookupError, TypeError, TermError):
            return None
        return value if value is not None and written(value) == text else None

    return read


def numbers(text: str) -> tuple[int, ...]:
    """Parses `2,0,1`; an empty text gives no numbers. Raises ValueError or TermError for anything else."""
    return tuple(map(integer_of, text.split(","))) if text else ()


_SHORT = re.compile(r"0|-?[1-9][0-9]{0,8}")
_INT_LIST = re.compile(r"\{((?:(?:0|[1-9][0-9]{0,17})(?:,(?:0|[1-9][0-9]{0,17}))*)?)\}")
_NUMBER = lazy_regex(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_BOOL_LIST = lazy_regex(r"\{(?:true|false)(?:,(?:true|false))*\}")


def integer(text: str) -> int | None:
    return int(text) if _SHORT.fullmatch(text) else None


def number(text: str) -> float | None:
    return float(text) if _NUMBER().fullmatch(text) else None


def string(text: str) -> str | None:
    """Returns the value of a text that the caller knows to be quoted; None if the grammar must parse it."""
    return unquote(text) if text[0] == '"' and text[-2:-1] != "\\" else None


def int_list(text: str) -> tuple[int, ...] | None:
    match = _INT_LIST.fullmatch(text)
    if match is None:
        return None
    return tuple(map(int, match[1].split(","))) if match[1] else ()


def boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def bool_or_list(text: str) -> tuple[bool, ...] | None:
    return tuple(word == "true" for word in text[1:-1].split(",")) if _BOOL_LIST().fullmatch(text) else None


_IOTA = re.compile(r"\[([0-9,]*+)\]<=\[([0-9,]*+)\](?:T\(([0-9,]*+)\))?")


def iota(text: str) -> IotaTileAssignment | None:
    """Parses `[2,4]<=[4,2]T(1,0)`; None if the grammar must."""
    match = _IOTA.fullmatch(text)
    if match is None:
        return None
    dimensions, reshape, permutation = map(numbers, match.groups(""))
    if not reshape or min(reshape) < 1:
        return None
    if len(reshape) == 1:
        return None if permutation else IotaTileAssignment(dimensions, reshape)
    if sorted(permutation) != list(range(len(reshape))):
        return None
    return IotaTileAssignment(dimensions, reshape, permutation)
