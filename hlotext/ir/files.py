"""Writes files. No other module does, since on some systems Python would write other line ends."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from os import PathLike


def write_text(path: str | PathLike[str], text: str) -> None:
    """Writes text to a file without translating line endings, surrogates as the bytes they stand for. Raises OSError."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | PathLike[str], data: bytes) -> None:
    """Writes a file atomically: a new file replaces the existing one and keeps its permissions and symbolic links.

    A pipe or device, a file with several hard links, or one in a read-only directory is written in place. Raises
    OSError, whose `filename` is the path.
    """
    target = os.path.realpath(path)
    try:
        before = os.stat(target)
    except FileNotFoundError:
        before = None
    if before is not None and (not stat.S_ISREG(before.st_mode) or before.st_nlink > 1):
        _write_into(target, data)
        return
    if before is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is write-protected", os.fspath(path))
    folder, name = os.path.split(target)
    try:
        descriptor, beside = tempfile.mkstemp(prefix=f".{name[:40]}.", dir=folder)
    except OSError:
        if before is None:
            raise
        _write_into(target, data)
        return
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~_umask())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _write_into(target: str, data: bytes) -> None:
    with open(target, "wb") as file:
        file.write(data)


def _umask() -> int:
    mask = os.umask(0o22)
    os.umask(mask)
    return mask
