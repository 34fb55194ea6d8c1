"""Companion files of a module in a dump, found by their common prefix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hlotext.memory.errors import MemoryModelError
from hlotext.syntax.source.inputs import missing, read_source

ALLOCATIONS = "-buffer-assignment.txt"
VALUES = "-buffer-assignment-values.txt"
RANGES = "-live-range.txt"
REPORT = "-memory-usage-report.txt"
TEXT = ".txt"

SUFFIXES = (ALLOCATIONS, VALUES, RANGES, REPORT)
"""Suffixes of the four memory files, appended to the name of the module's text."""

_PACKED = (".xz", ".gz", ".zst")


def unpacked_name(path: Path) -> str:
    """Returns the name of a file without the suffix of its compression."""
    return path.stem if path.suffix in _PACKED else path.name


def find(place: str | os.PathLike[str]) -> Mapping[str, Path]:
    """Returns the files of one module's dump by suffix, with the module text under `TEXT`; `place` is the folder or any
    of them.

    Raises MemoryModelError for a folder with several modules or none, and InputError if `place` does not exist.
    """
    path = Path(place)
    if path.is_dir():
        names = sorted(
            {stem for entry in path.iterdir() if (stem := _stem(unpacked_name(entry))) is not None}
        )
        if not names:
            raise MemoryModelError(f"{path} has no XLA memory files (whose names end in {RANGES})")
        if len(names) > 1:
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            raise MemoryModelError(f"{path} has files of {len(names)} modules; name one of {shown}")
        return _beside(path, names[0])
    if not path.exists():
        raise missing(str(path))
    name = unpacked_name(path)
    stem = _stem(name)
    found = dict(_beside(path.parent, stem if stem is not None else name.removesuffix(TEXT)))
    if stem is None:
        found[TEXT] = path
    return found


def has_files(place: str | os.PathLike[str]) -> bool:
    """Returns True if XLA's file of allocations or of live ranges is next to a module's file; False for a folder."""
    path = Path(place)
    if path.is_dir() or not path.exists():
        return False
    found = find(path)
    return ALLOCATIONS in found or RANGES in found


def _stem(name: str) -> str | None:
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), None)


def _beside(folder: Path, stem: str) -> Mapping[str, Path]:
    """The files of a folder with that name; what is not packed comes before what is."""
    found: dict[str, Path] = {}
    for suffix in (*SUFFIXES, TEXT):
        for packed in ("", *_PACKED):
            path = folder / f"{stem}{suffix}{packed}"
            if path.exists():
                found[suffix] = path
                break
    return found


def text_of(path: Path) -> str:
    """Returns the decompressed text of a file. Raises InputError if it cannot be read."""
    return read_source(path).text
