"""Maps the source paths a program was compiled with to files of a checkout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePath, PureWindowsPath

import attrs

from hlotext.ir.caches import weighted_cache
from hlotext.ir.values.frames import StackFrame

_INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules", ".venv", "venv"})
"""Folders of packages that are installed, not written here."""


@attrs.frozen
class Checkout:
    """A folder with the source files of a program."""

    root: Path

    def place(self, frames: Iterable[StackFrame]) -> tuple[str, int] | None:
        """Returns file (relative to the root) and line of the innermost frame in the checkout; None if none is.

        A path from another machine is matched by its longest suffix that is a file here with that many lines. Installed
        packages are excluded, even below the root.
        """
        for frame in frames:
            found = self._found(frame.file)
            if found is not None and 1 <= frame.line <= found[1]:
                return found[0], frame.line
        return None

    def _found(self, file: str) -> tuple[str, int] | None:
        return _found(self.root, file)


@weighted_cache(4096)
def _found(root: Path, file: str) -> tuple[str, int] | None:
    """A file of the checkout and the number of its lines."""
    if not file or file.startswith("<"):
        return None
    parts = (PureWindowsPath(file) if "\\" in file else PurePath(file)).parts
    if _INSTALLED & set(parts) or any(part.startswith("python3.") for part in parts) or ".." in parts:
        return None
    for start in range(len(parts)):
        relative = PurePath(*parts[start:])
        if relative.is_absolute() or not relative.parts or (start == 0 and PureWindowsPath(file).drive):
            continue
        path = root / relative
        try:
            if path.is_file():
                with path.open("rb") as opened:
                    return relative.as_posix(), sum(1 for _ in opened)
        except (OSError, ValueError):
            return None
    return None
