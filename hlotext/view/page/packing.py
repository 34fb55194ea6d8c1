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
    """Returns a value as zlib-compressed JSON in base64, deterministically. Scripts read it with `DecompressionStream`."""
    return packed_text(json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False))


def packed_text(text: str, level: int = _LEVEL) -> str:
    """Returns a text zlib-compressed in base64. Unpaired surrogates become U+FFFD."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    return packed_bytes(data, level)


def packed_bytes(data: bytes, level: int = _LEVEL) -> str:
    """Returns bytes zlib-compressed in base64."""
    return base64.b64encode(zlib.compress(data, level)).decode("ascii")


def unpacked(text: str) -> Any:
    """Returns the value of `packed`."""
    return json.loads(unpacked_bytes(text))


def unpacked_bytes(text: str) -> bytes:
    """Returns the bytes of `packed_bytes`."""
    return zlib.decompress(base64.b64decode(text))


def packed_columns(columns: Mapping[str, Column]) -> tuple[list[tuple[str, str, int]], str]:
    """Concatenates columns of numbers, each in its narrowest type. Returns name, type and length of each, and the
    packed bytes.

    Types are `u1`, `u2`, `i4` and `f8`, the widest first for alignment. Integers have at most 32 bits.
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
    """Returns the text of a stylesheet or script of this package."""
    return importlib.resources.files("hlotext.view").joinpath("assets", name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """Returns scripts of this package joined inside one function, so that later ones can use earlier ones."""
    return '"use strict";\n(() => {\n' + "\n".join(map(asset, names)) + "})();\n"


def policy(scripts: Iterable[str]) -> str:
    """Returns a content security policy that allows these scripts only: no other scripts, no requests, no `eval`.

    Inline styles and `data:` images are allowed, since bokeh creates them.
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
    """A table of texts that are stored once and referred to by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Returns the number of a text, which is added if it is new."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found
