"""Dump folders of several releases of jaxlib, packed: `RELEASE.PLATFORM.PROGRAM.tar.xz` in tests/data/versions.

Each holds `facts.json`: the release, the days between which its XLA was written, the chip, figures of JAX's.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import XlaAge
from tests.support import DATA

ARCHIVES = sorted((DATA / "versions").glob("*.tar.xz"))


def unpacked(archive: Path, place: Path) -> tuple[Path, dict[str, Any]]:
    """Unpacks a folder: where it lies now, and its facts. What `compiled.as_text()` gave is moved beside it."""
    root = place / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="data")
    facts: dict[str, Any] = json.loads((root / "facts.json").read_text())
    for name in ("facts.json", "files.txt"):
        (root / name).unlink()
    if (root / "as_text.txt").exists():
        (root / "as_text.txt").rename(root.with_name(f"{root.name}.as_text.txt"))
    return root, facts


@attrs.frozen
class Finished:
    """A compilation with the final HLO."""

    compilation: dumps.Compilation
    module: hlo.Module
    path: str
    age: XlaAge


def finished(root: Path) -> Finished:
    """The compilation of a folder that has the final HLO."""
    for compilation in dumps.open(root):
        if compilation.last is not None:
            return Finished(compilation, compilation.last.module, compilation.last.path, compilation.age)
    raise AssertionError(f"{root} holds no final HLO")
