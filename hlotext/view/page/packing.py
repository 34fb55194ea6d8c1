"""Data, styles and scripts as they stand in a page that is one file.

A page may do nothing but run the scripts that it came with: its policy names their hashes, so that no text of a module runs,
however it got in. Data is packed JSON, which holds no character that means anything to HTML.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Iterable
from typing import Any

_LEVEL = 4
"""Two thirds of the time of the default level, for pages a tenth larger."""


def packed(value: Any) -> str:
    """A value as JSON, compressed, in base64: the same bytes for the same value. Scripts read it by `DecompressionStream`."""
    return packed_text(json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False))


def packed_text(text: str) -> str:
    """A text, compressed, in base64. What is no Unicode (half of a surrogate pair) becomes `?`."""
    return packed_bytes(text.encode("utf-8", "replace"))


def packed_bytes(data: bytes) -> str:
    """Bytes, compressed, in base64."""
    return base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode("ascii")


def unpacked(text: str) -> Any:
    """The value again, for tests and for programs that read pages."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


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
