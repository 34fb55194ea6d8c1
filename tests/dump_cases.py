"""Dump folders for tests: packed ones under tests/data/dumps, laid out as XLA left them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tests.support import DATA

DUMPS = DATA / "dumps"
TAGGED = sorted(path.name.removesuffix(".tar.xz") for path in DUMPS.glob("*.tagged.tar.xz"))
"""Folders with `truth.json`: for instructions of the final HLO, those before optimization that they come from.

Every operation of these programs was compiled with a source line of its own, which says where it ended up; then the
lines were
taken out again, so that the rules cannot see them.
"""


def unpacked(name: str, target: Path) -> Path:
    """A packed folder, laid out below a path."""
    with tarfile.open(DUMPS / f"{name}.tar.xz") as archive:
        archive.extractall(target / name, filter="data")
    return target / name


def truth(folder: Path) -> dict[str, list[str]]:
    """Final instruction to its true sources."""
    found: dict[str, list[str]] = json.loads((folder / "truth.json").read_text())
    return found
