"""Writing files in place: all of them or none, and never half of one."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import TracebackType

import attrs

from hlotext.cli.common import Unreadable


def _pack_zstd(data: bytes) -> bytes:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        import zstandard

        return bytes(zstandard.ZstdCompressor(level=10).compress(data))
    packed: bytes = zstd.compress(data)
    return packed


_PACKERS: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", lambda data: gzip.compress(data, mtime=0)),
    (b"\xfd7zXZ\x00", lzma.compress),
    (b"\x28\xb5\x2f\xfd", _pack_zstd),
)
"""Packed files by their first bytes, and how to pack again."""


@attrs.define
class _Waiting:
    """A new text that waits for its place."""

    descriptor: int
    """An open file that holds it; where the system can, one without a name, which is gone when the process is."""
    name: str
    """Its name; empty without one."""
    in_place: bool
    """It is written into the old file, which has other names too, or an owner that a new one would not get."""


@attrs.define
class Rewriting:
    """New texts of files, written to temporary files until `commit`; uncommitted ones are discarded.

    Permissions, owner and hard links are preserved, links are followed, and compressed files are compressed in the same
    format.
    """

    _waiting: dict[str, _Waiting] = attrs.field(factory=dict)
    """By the file whose text it will be."""

    def __enter__(self) -> Rewriting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for waiting in self._waiting.values():
            _throw_away(waiting)

    def put(self, path: str, text: str) -> None:
        """Writes a file's new text to a temporary file. Raises Unreadable if that fails."""
        target = os.path.realpath(path)
        if target in self._waiting:
            return
        try:
            if not os.access(target, os.W_OK):
                raise PermissionError("it is write-protected")
            with open(target, "rb") as file:
                packer = next((pack for start, pack in _PACKERS if file.peek(8).startswith(start)), bytes)
                status = os.fstat(file.fileno())
            waiting = self._waiting[target] = _new(target)
            with open(waiting.descriptor, "wb", closefd=False) as file:
                file.write(packer(text.encode("utf-8", "surrogateescape")))
                file.flush()
                os.fsync(file.fileno())
            waiting.in_place = status.st_nlink > 1 or not _take_after(waiting, status)
        except OSError as error:
            raise Unreadable(f"{path}: cannot write: {error.strerror or error}") from None

    def commit(self) -> None:
        """Replaces all files by their new texts, or none. Raises Unreadable if that fails."""
        done: list[Callable[[], None]] = []
        with ExitStack() as backups:
            for target, waiting in self._waiting.items():
                try:
                    done.append(_exchange(target, waiting, backups))
                except OSError as error:
                    for undo in reversed(done):
                        with suppress(OSError):
                            undo()
                    raise Unreadable(f"{target}: cannot write: {error.strerror or error}") from None


def _new(target: str) -> _Waiting:
    """An empty file in the folder of another."""
    folder, name = os.path.split(target)
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):  # not every file system can
            return _Waiting(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600), "", False)
    return _Waiting(*tempfile.mkstemp(prefix=f".{name[:40]}.", dir=folder), False)


def _throw_away(waiting: _Waiting) -> None:
    with suppress(OSError):
        os.close(waiting.descriptor)
    if waiting.name:
        with suppress(OSError):
            os.unlink(waiting.name)


def _take_after(waiting: _Waiting, status: os.stat_result) -> bool:
    """Gives a new file the owner and the permissions of another; False where it may not have them."""
    if hasattr(os, "fchown"):
        own = os.fstat(waiting.descriptor)
        try:
            if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
                os.fchown(waiting.descriptor, status.st_uid, status.st_gid)
        except OSError:
            return False
    os.chmod(waiting.descriptor if os.chmod in os.supports_fd else waiting.name, stat.S_IMODE(status.st_mode))
    return True


def _exchange(target: str, waiting: _Waiting, backups: ExitStack) -> Callable[[], None]:
    """Makes a new text that of a file; gives what undoes it."""
    if waiting.in_place:
        with open(target, "rb") as file:
            old = file.read()
        with open(waiting.descriptor, "rb", closefd=False) as file:
            file.seek(0)
            new = file.read()
        try:
            _overwrite(target, new)
        except OSError:
            with suppress(OSError):
                _overwrite(target, old)
            raise
        return lambda: _overwrite(target, old)
    folder, name = os.path.split(target)
    if not waiting.name:
        waiting.name = os.path.join(folder, f".{name[:40]}.{os.getpid()}.new")
        place = os.open(folder, os.O_RDONLY)  # given so that the link is followed
        try:
            os.link(
                f"/proc/self/fd/{waiting.descriptor}", waiting.name, src_dir_fd=place, follow_symlinks=True
            )
        finally:
            os.close(place)
    backup = os.path.join(folder, f".{name[:40]}.{os.getpid()}.old")
    try:
        os.link(target, backup)
    except OSError:  # a file system without links: then one that fails later leaves this one changed
        os.replace(waiting.name, target)
        return lambda: None
    backups.callback(_unlink, backup)
    os.replace(waiting.name, target)
    return lambda: os.replace(backup, target)


def _unlink(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)


def _overwrite(target: str, data: bytes) -> None:
    with open(target, "r+b") as file:
        file.write(data)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
