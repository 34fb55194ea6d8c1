"""New names, made as XLA makes them (`NameUniquer`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.+)\.(0|[1-9][0-9]*)")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.\-]")


class NameUniquer:
    """Hands out names that are not taken: `add`, then `add.1`, `add.2` ...

    As in XLA, a name is a stem and a number; a name asked for with a number gets the next free one of its stem.

    >>> names = NameUniquer(["add", "add.1", "x.7"])
    >>> names.unique("add"), names.unique("add.1"), names.unique("x.7"), names.unique("mul")
    ('add.2', 'add.3', 'x.1', 'mul')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}
        self._fresh: set[str] = set()
        """Names that were handed out, and nothing has so far."""

    def register(self, name: str) -> None:
        """Marks a name as taken."""
        self._taken.add(name)
        self._fresh.discard(name)

    def may_be_taken(self, name: str) -> bool:
        """False for a name that nothing ever had; what had a name may have gone since."""
        return name in self._taken and name not in self._fresh

    def unique(self, name: str) -> str:
        """That name if it is free, else its stem with the next free number. The result is taken from now on."""
        name = sanitized(name)
        if name not in self._taken:
            self._taken.add(name)
            self._fresh.add(name)
            return name
        match = _NUMBERED.fullmatch(name)
        stem = match[1] if match else name
        number = self._next.get(stem, 1)
        while f"{stem}.{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        name = f"{stem}.{number}"
        self._taken.add(name)
        self._fresh.add(name)
        return name


def sanitized(name: str) -> str:
    """A name with every character that HLO names may not have made `_` (`NameUniquer::GetSanitizedName`)."""
    name = _NO_NAME.sub("_", name) or "name"
    return name if name[0].isalpha() or name[0] == "_" else f"_{name[1:]}"
