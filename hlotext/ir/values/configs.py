"""Notes of the front end and settings of the backend, which go with an instruction as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from hlotext.ir.values.text import braced, quote_unless_dict
from hlotext.ir.values.value import Value


def _copied(entries: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    return dict(entries)


@attrs.frozen(eq=False, repr=False)
class FrontendAttributes(Mapping[str, str]):
    """`frontend_attributes=`: a read-only mapping of strings set by the frontend, such as `{a="1",b={"k":1}}`.

    Printed sorted by key; values that lex as a dict are printed unquoted.
    """

    _entries: dict[str, str] = attrs.field(converter=_copied)

    def __getitem__(self, key: str) -> str:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return f"FrontendAttributes({self._entries!r})"

    def __str__(self) -> str:
        entries = sorted(self._entries.items(), key=_by_bytes)
        return braced(f"{key}={quote_unless_dict(value)}" for key, value in entries)


def _by_bytes(entry: tuple[str, str]) -> bytes:
    return entry[0].encode("utf-8", "surrogateescape")


@attrs.frozen(repr=False)
class BackendConfig(Value):
    """`backend_config=`: opaque data of a backend. `str()` is its HLO text: unquoted if it lexes as a dict, else
    quoted.
    """

    text: str
    """Unescaped; for a dict byte for byte as in the source, braces included."""

    def json(self) -> Any:
        """Decodes the text as JSON. Raises ValueError if it is not JSON."""
        import json  # takes milliseconds, and most configs are only printed

        try:
            return json.loads(self.text)
        except RecursionError:
            raise ValueError("this backend_config nests too deep to be read as JSON") from None
        except ValueError as error:
            beginning = self.text if len(self.text) <= 40 else f"{self.text[:40]}..."
            raise ValueError(f"this backend_config is not JSON ({error}): {beginning}") from None

    def __str__(self) -> str:
        return quote_unless_dict(self.text)
