"""Data, styles and scripts as they stand in a page that is one file.

A page may do nothing but run the scripts that it came with: its policy names their hashes, so that no text of a module runs,
however it got in. Data is packed JSON, which holds no character that means anything to HTML.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Column = Sequence[int] | Sequence[float] | npt.NDArray[Any]

_LEVEL = 4
"""Two thirds of the time of the default level, for pages a tenth larger."""
FAST = 1
"""The level for what is large: half the time again, for a quarter more."""


def packed(value: Any) -> str:
    """A value as JSON, compressed, in base64: the same bytes for the same value. Scripts read it by `DecompressionStream`."""
    return packed_text(json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False))


def packed_text(text: str, level: int = _LEVEL) -> str:
    """A text, compressed, in base64. What is no Unicode (half of a surrogate pair) becomes U+FFFD."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    return packed_bytes(data, level)


def packed_bytes(data: bytes, level: int = _LEVEL) -> str:
    """Bytes, compressed, in base64."""
    return base64.b64encode(zlib.compress(data, level)).decode("ascii")


def unpacked(text: str) -> Any:
    """The value again, for tests and for programs that read pages."""
    return json.loads(unpacked_bytes(text))


def unpacked_bytes(text: str) -> bytes:
    """The bytes again."""
    return zlib.decompress(base64.b64decode(text))


def packed_columns(columns: Mapping[str, Column]) -> tuple[list[tuple[str, str, int]], str]:
    """Columns of numbers, each in the narrowest type that holds it, behind each other; and the name, type and length of each.

    Types are `u1`, `u2`, `i4` and `f8`. Wide ones come first so that each begins where it may. Integers have 32 bits at most.
    """
    found = {name: _narrow(np.asarray(column)) for name, column in columns.items()}
    order = sorted(found.items(), key=lambda item: (-item[1].itemsize, item[0]))
    layout = [(name, column.dtype.str[1:], len(column)) for name, column in order]
    return layout, packed_bytes(b"".join(column.tobytes() for _, column in order), FAST)


def _narrow(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype.kind == "f":
        return column.astype("<f8")
    least, most = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    wide = "<i4" if least < 0 or most >= 1 << 16 else "<u2" if most >= 1 << 8 else "u1"
    return column.astype(wide)


def asset(name: str) -> str:
    """A style or a script that comes with this package."""
    return importlib.resources.files("hlotext.view").joinpath("assets", name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """Scripts of this package, joined inside one function: later ones use what earlier ones define."""
    return '"use strict";\n(() => {\n' + "\n".join(map(asset, names)) + "})();\n"


def policy(scripts: Iterable[str]) -> str:
    """The content security policy of a page with these scripts and no others: no requests, no `eval`.

    Styles may stand in the page since bokeh makes some; images are `data:` for the same reason.
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


class Words:
    """Texts that are written once and meant by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found
