"""Writing files in place: all of them or none, and never half of one."""

from __future__ import annotations

import gzip
import lzma
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
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
class Rewriting:
    """New texts for files, held beside them until `commit`; what was not committed is thrown away in the end.

    Permissions stay, links are followed, packed files are packed in the same way.
    """

    _waiting: dict[str, str] = attrs.field(factory=dict)
    """The file that will be replaced, and the one that will replace it."""

    def __enter__(self) -> Rewriting:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for temporary in self._waiting.values():
            with suppress(OSError):
                os.unlink(temporary)

    def put(self, path: str, text: str) -> None:
        """Writes a file's new text beside it. Raises Unreadable where that is impossible."""
        target = os.path.realpath(path)
        if target in self._waiting:
            return
        try:
            if not os.access(target, os.W_OK):
                raise PermissionError("it is write-protected")
            folder, name = os.path.split(target)
            with open(target, "rb") as file:
                packer = next((pack for start, pack in _PACKERS if file.peek(8).startswith(start)), bytes)
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            descriptor, self._waiting[target] = tempfile.mkstemp(prefix=f".{name[:40]}.", dir=folder)
            with open(descriptor, "wb") as file:
                file.write(packer(text.encode("utf-8", "surrogateescape")))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(self._waiting[target], mode)
        except OSError as error:
            raise Unreadable(f"{path} cannot be written: {error.strerror or error}") from None

    def commit(self) -> None:
        """Puts every new file in the place of the old one. Raises Unreadable where that is impossible."""
        for target in list(self._waiting):
            try:
                os.replace(self._waiting[target], target)
            except OSError as error:
                raise Unreadable(f"{target} cannot be written: {error.strerror}") from None
            del self._waiting[target]
