"""New names, made as XLA makes them (`NameUniquer`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlotext.ir.values.types import ELEMENT_TYPES

_NUMBERED = re.compile(r"(.+)\.(-?[0-9]+)", re.DOTALL)
_NO_NAME = re.compile(r"[^A-Za-z0-9_.\-]")
_NUMBERS = range(-(1 << 63), 1 << 63)


class NameUniquer:
    """Generator of unused names: `add`, then `add.1`, `add.2` ... (XLA's `NameUniquer`).

    As in XLA, a name is a stem and a number, 0 where none is written; one that is taken becomes its stem with the first free
    number.

    >>> names = NameUniquer(["add", "add.1", "x.7"])
    >>> names.unique("add"), names.unique("add.1"), names.unique("x.7"), names.unique("mul")
    ('add.2', 'add.3', 'x.0', 'mul')
    >>> names.unique("add.1.0")
    'add.1.0'
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}
        self._fresh: set[str] = set()
        """Names that were handed out, and nothing has so far."""

    def register(self, name: str) -> None:
        """Marks a name as used."""
        self._taken.add(name)
        self._fresh.discard(name)

    def may_be_taken(self, name: str) -> bool:
        """Returns False if no node ever had a name. True does not imply that a node still has it."""
        return name in self._taken and name not in self._fresh

    def unique(self, name: str) -> str:
        """Returns a name, if it is unused, or its stem with the first unused number, and marks the result as used."""
        stem, given = _split(sanitized(name))
        number = given or 0
        if self._is_used(stem, number):
            number = self._next.get(stem, 0)
            while self._is_used(stem, number):
                number += 1
            self._next[stem] = number + 1
        name = f"{stem}.{number}" if number or given is not None else stem
        self._taken.add(name)
        self._fresh.add(name)
        return name

    def _is_used(self, stem: str, number: int) -> bool:
        if f"{stem}.{number}" in self._taken:
            return True
        # A name such as `x.1` is number 1 of `x`, and no number of `x.1`.
        return not number and stem in self._taken and _split(stem)[1] is None


def _split(name: str) -> tuple[str, int | None]:
    """Stem and number of a name; None if it has none."""
    match = _NUMBERED.fullmatch(name) if name[-1:].isdigit() else None
    if match is None or len(match[2]) > 20 or (number := int(match[2])) not in _NUMBERS:
        return name, None
    return match[1], number


def sanitized(name: str) -> str:
    """Returns a name with the characters that HLO allows (`NameUniquer::GetSanitizedName`).

    Other characters become `_`, the name of an element type gets a trailing one, and `__x` becomes `a_x`.
    """
    name = _NO_NAME.sub("_", name) or "name"
    if not (name[0].isalpha() or name[0] == "_"):
        name = f"_{name[1:]}"
    if name in ELEMENT_TYPES:
        name += "_"
    return f"a{name[1:]}" if name.startswith("__") and not name.startswith("__xla_") else name
