"""Bytes from files and streams: compression recognised by content, text decoded without losing a byte."""

from __future__ import annotations

import gzip
import lzma
import os
import sys
import zlib
from pathlib import Path
from typing import IO

from hlotext.ir.source import Source

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


class InputError(OSError):
    """A file that cannot be read or unpacked; `str()` is one line that names it."""


def read_source(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Source:
    """The text of a path, `-` (standard input), or an open file; .gz, .xz and .zst are unpacked, told by their content.

    Raises InputError when there is nothing to read, or the packed data is damaged.
    """
    data, name = _bytes(place)
    if isinstance(data, str):
        return Source(data, name)
    return Source(decode(unpack(data, name)), name)


def decode(data: bytes) -> str:
    """UTF-8 text; bytes that are none become surrogates, so that encoding it again gives the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[bytes | str, str]:
    if isinstance(place, str | os.PathLike):
        if place == "-":
            return sys.stdin.buffer.read(), "<stdin>"
        path = Path(place)
        try:
            return path.read_bytes(), str(path)
        except IsADirectoryError:
            raise InputError(f"{path} is a directory") from None
        except FileNotFoundError:
            raise InputError(f"{path} does not exist") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{path} cannot be read: {reason}") from None
    return place.read(), str(getattr(place, "name", "<stream>"))


def unpack(data: bytes, name: str) -> bytes:
    """The data, unpacked when it is a .gz, .xz or .zst file. Raises InputError for a damaged one."""
    try:
        if data.startswith(_GZIP):
            return gzip.decompress(data)
        if data.startswith(_XZ):
            return lzma.decompress(data)
        if data.startswith(_ZSTD):
            return _unpack_zstd(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
        if isinstance(error, InputError):
            raise InputError(f"{name}: {error}") from None
        raise InputError(f"{name} is a damaged compressed file: {error}") from None
    return data


def _unpack_zstd(data: bytes) -> bytes:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            import zstandard
        except ImportError:
            raise InputError("reading .zst files needs the extra: pip install 'hlotext[zstd]'") from None
        try:
            return zstandard.ZstdDecompressor().decompressobj().decompress(data)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
    unpacked: bytes = zstd.decompress(data)
    return unpacked
