"""Bytes from files and streams: compression recognised by content, text decoded without losing a byte."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import IO, Any

from hlotext.ir.nodes.source import Source
from hlotext.syntax.source.limits import MAX_UNPACKED


class InputError(OSError):
    """A file that cannot be read or unpacked; `str()` is one line that names it."""


def read_source(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Source:
    """The text of a path, `-` (standard input), or an open file; .gz, .xz and .zst are unpacked, told by their content.

    Raises InputError when there is nothing to read, or the packed data is damaged.
    """
    data, name = read_data(place)
    return Source(data if isinstance(data, str) else decode(data), name)


def read_data(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[bytes | str, str]:
    """What `read_source` reads, before it is decoded, and its name. Raises InputError."""
    data, name = _bytes(place)
    return (data if isinstance(data, str) else unpack(data, name)), name


def is_binary(data: bytes | str) -> bool:
    """Whether this is no text: bytes that no text has stand among the first ones."""
    if isinstance(data, str) or data.startswith(b"HloModule"):
        return False
    return bool(data[:_PROBED].translate(None, _TEXT))


_PROBED = 4096
_TEXT = bytes({*range(32, 256), *b"\t\n\v\f\r\x1b"})
"""Bytes that text may have: logs may bring escape sequences of terminals."""


def decode(data: bytes) -> str:
    """UTF-8 text; bytes that are none become surrogates, so that encoding it again gives the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[bytes | str, str]:
    if isinstance(place, str | os.PathLike):
        if place == "-":
            return sys.stdin.buffer.read(), "<stdin>"
        path = os.fspath(place)
        try:
            with open(path, "rb") as file:
                return file.read(), path
        except IsADirectoryError:
            raise InputError(f"{path} is a directory") from None
        except FileNotFoundError:
            raise InputError(f"{path} does not exist") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{path} cannot be read: {reason}") from None
    return place.read(), str(getattr(place, "name", "<stream>"))


def unpack(data: bytes, name: str) -> bytes:
    """The data, unpacked when it is a .gz, .xz or .zst file. Raises InputError for a damaged one, or a huge one."""
    opener = next((opener for start, opener in _OPENERS.items() if data.startswith(start)), None)
    if opener is None:
        return data
    try:
        with opener(io.BytesIO(data)) as file:
            # By pieces: a reader sets aside at once what it is asked for.
            pieces, size = [], 0
            while size <= MAX_UNPACKED and (piece := file.read(_PIECE)):
                pieces.append(piece)
                size += len(piece)
    except ImportError:
        raise InputError(f"{name}: reading .zst files needs the extra: pip install 'hlotext[zstd]'") from None
    except Exception as error:  # each packer has errors of its own
        raise InputError(f"{name} is a damaged compressed file: {error}") from None
    if size > MAX_UNPACKED:
        raise InputError(f"{name} unpacks to more than {MAX_UNPACKED >> 30} GiB")
    return b"".join(pieces)


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """What reads an open file of any packing as if it were not packed; the file itself, at its start, for one that is not.

    Raises ImportError where a packing needs what is not installed. What it raises on damaged data is the packer's.
    """
    file.seek(0)
    start = file.read(max(map(len, _OPENERS)))
    file.seek(0)
    opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
    return file if opener is None else opener(file)


_PIECE = 1 << 18
"""Bytes that are unpacked at a time."""


def _open_gzip(file: IO[bytes]) -> Any:
    import gzip  # like the next, takes milliseconds, and most files are not packed

    return gzip.open(file)


def _open_xz(file: IO[bytes]) -> Any:
    import lzma

    return lzma.open(file)


def _open_zstd(file: IO[bytes]) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return zstd.ZstdFile(file)


_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": _open_gzip,
    b"\xfd7zXZ\x00": _open_xz,
    b"\x28\xb5\x2f\xfd": _open_zstd,
}
"""How packed files begin, and what reads them."""
