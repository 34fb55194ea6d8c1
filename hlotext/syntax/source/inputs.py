"""Bytes from files and streams: compression recognised by content, text decoded without losing a byte."""

from __future__ import annotations

import io
import itertools
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable
from typing import IO, Any

from hlotext.ir.caches import lazy_regex
from hlotext.ir.nodes.source import Source
from hlotext.ir.spelling import nearest, suggestion, text_or_path
from hlotext.syntax.source.limits import MAX_SOURCE


class InputError(OSError):
    """Raised for an input that cannot be read or decompressed, or lacks the requested contents. `str()` is one line."""


LIMIT_VARIABLE = "HLOTEXT_MAX_SOURCE"
"""The variable with the bytes that a source may hold; a number with K, M, G or T behind it for powers of 1,024."""


def most_bytes() -> int:
    """Returns the maximum size of a source in bytes, compressed or not. Raises InputError if the variable is not a
    size.
    """
    said = os.environ.get(LIMIT_VARIABLE, "")
    if not said:
        return MAX_SOURCE
    number, unit = (said[:-1], said[-1].upper()) if said[-1].isalpha() else (said, "")
    if not (number.isdecimal() and number.isascii() and len(number) < 16 and unit in _UNITS and int(number)):
        raise InputError(f"{LIMIT_VARIABLE} must be a number of bytes, such as 8G, not {said[:40]!r}")
    return int(number) << _UNITS[unit]


_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def several(name: str, modules: list[str]) -> str:
    """Returns the error message for a source with several modules where one is expected."""
    shown = ", ".join(modules[:10]) + (", ..." if len(modules) > 10 else "")
    one = shlex.join(["hlotext", "convert", name, "--module", modules[0], "-o", f"{modules[0]}.txt"])
    return f"{name} contains {len(modules)} modules ({shown}), but one is expected; `{one}` extracts one"


def _too_large(name: str, what: str, most: int) -> InputError:
    size = f"{most >> 30} GiB" if most >= 1 << 30 and not most % (1 << 30) else f"{most:,} bytes"
    return InputError(f"{name} {what} more than {size}; raise the limit with {LIMIT_VARIABLE}")


def read_source(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> Source:
    """Reads a path, `-` (standard input) or an open file; .gz, .xz and .zst are detected by content and decompressed.

    Raises InputError if the source cannot be read, is too large, or its compressed data is damaged.
    """
    data, name = read_data(place)
    return Source(data if isinstance(data, str) else decode(data), name)


def read_data(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[bytes | str, str]:
    """Returns the data of a source before decoding, and its name. Raises InputError."""
    try:
        data, name = _bytes(place)
        return (data if isinstance(data, str) else unpack(data, name)), name
    except MemoryError:
        name = str(place if isinstance(place, str | os.PathLike) else getattr(place, "name", "<stream>"))
        raise InputError(f"{name} does not fit into memory") from None


def is_binary(data: bytes | str) -> bool:
    """True if the data is a proto: it begins like XLA's, and has bytes near its start that text does not have.

    Many protos begin with a byte that is a line feed, so text with a stray control character is recognized by its
    words.
    """
    if isinstance(data, str) or data[:1] not in _FIRST_KEYS:
        return False
    head = data[:_PROBED]
    return bool(head.translate(None, _TEXT)) and b"HloModule " not in head and b"ENTRY " not in head


def is_json(data: bytes | str) -> bool:
    """True if the data is a module in protobuf JSON: an object with a module's field near its start."""
    if data[:1] not in (b"{", "{", b"\n", "\n", b" ", " "):
        return False
    head = data[:_PROBED].lstrip()
    head = head.encode("utf-8", "surrogateescape") if isinstance(head, str) else head
    return head[:1] == b"{" and any(field in head for field in _JSON_FIELDS)


def is_foreign(data: bytes | str) -> bool:
    """True if the data may be MLIR or a pickle, which `hlotext.proto.converted` detects."""
    if isinstance(data, str):
        return False
    if is_json(data):
        return True
    return data[:1] in (b"M", b"\x80") or (b"HloModule" not in data[:_PROBED] and b"func" in data[:_PROBED])


def is_mlir_text(data: bytes) -> bool:
    """True if a file begins like MLIR text."""
    head = data[:_PROBED]
    return b"HloModule" not in head and _MLIR.match(head) is not None


_MLIR = re.compile(
    rb"\s*(?:(?:#\w+ = |//).*\n\s*)*(?:(?:builtin\.)?module(?: @\S+)?(?: attributes)? *\{|func\.func )"
)
MLIR_BYTECODE = b"ML\xefR"
"""The first bytes of MLIR's bytecode."""
_FIRST_KEYS = frozenset({b"\x0a", b"\x12", b"\x1a"})
"""Keys of the fields 1 to 3, of which the first that a message has comes first: names, modules, computations, planes."""
_JSON_FIELDS = (
    b'"entry_computation',
    b'"entryComputation',
    b'"computations"',
    b'"hlo_module"',
    b'"hloModule"',
)
"""Fields of HloModuleProto, HloProto and HloModuleProtoWithConfig."""
_PROBED = 4096
_TEXT = bytes({*range(32, 256), *b"\t\n\v\f\r\x1b"})
"""Bytes that text may have: logs may bring escape sequences of terminals."""


def decode(data: bytes) -> str:
    """Decodes UTF-8; invalid bytes become surrogates, so that encoding restores them."""
    return data.decode("utf-8", "surrogateescape")


def _bytes(place: str | os.PathLike[str] | IO[str] | IO[bytes]) -> tuple[bytes | str, str]:
    if isinstance(place, str | os.PathLike):
        if place == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed")
            return read_all(sys.stdin.buffer, "<stdin>"), "<stdin>"
        path = os.fspath(place)
        try:
            with open(path, "rb", opener=_open) as file:
                return read_all(file, path), path
        except IsADirectoryError:
            raise InputError(
                f"{path} is a folder; give a file in it (the final HLO of a dump is in *after_optimizations.txt, for TPU "
                "in *after_codegen.txt)"
            ) from None
        except FileNotFoundError:
            raise missing(path) from None
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{path} cannot be read: {reason}") from None
    name = str(getattr(place, "name", "<stream>"))
    return read_all(place, name), name


def missing(path: str) -> InputError:
    """Returns the error for a path that does not exist, with a suggestion from the same folder."""
    if not path:
        return InputError("the path is empty")
    if text_or_path(path) == "text":
        return InputError("this is text, not a path; hlotext.parse(text) reads it")
    if (scheme := _URL().match(path)) is not None:
        local = path.removeprefix("file://")
        how = f"give the path {local}" if local != path else "download it, and give the file"
        return InputError(f"{path}: {scheme[0]} is not read here; {how}")
    if (variable := _VARIABLE().search(path)) is not None:
        return InputError(f"{path} does not exist; the shell does not expand {variable[0]} in single quotes")
    if _GLOB().search(path) is not None:
        return InputError(f"{path} does not exist: no file matches the pattern; a folder can be given itself")
    folder, name = os.path.split(path.rstrip("/"))
    if os.path.islink(path):
        return InputError(f"{path} is a link to {os.path.realpath(path)}, which does not exist")
    try:
        with os.scandir(folder or ".") as found:
            names = [one.name for one in itertools.islice(found, _MOST_NAMES)]
        whole = sorted(one for one in names if one.startswith(f"{name}."))  # without what it ends in
        near = nearest(whole[0] if len(whole) == 1 else name, names)
        meant = suggestion(os.path.join(folder, one) for one in near)
    except (OSError, ValueError):
        meant = ""
    return InputError(f"{path} does not exist" + (f"; {meant}" if meant else ""))


_URL = lazy_regex(r"[a-z][a-z0-9+.\-]*://")
_VARIABLE = lazy_regex(r"^~|\$\w+|\$\{\w+\}")
_GLOB = lazy_regex(r"[*?]|\[.+\]")
_MOST_NAMES = 1000
"""Names of a folder that are compared with one that is not there."""


def _open(path: str, flags: int) -> int:
    """Opens a file; of a pipe without a name on the other side, waits a while for somebody to write to it."""
    if not hasattr(os, "O_NONBLOCK"):
        return os.open(path, flags)
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            import select  # few sources are pipes

            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            if not poll.poll(_PATIENCE * 1_000):
                raise InputError(f"{path} is a pipe that received no data for {_PATIENCE} seconds")
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


_PATIENCE = 20
"""Seconds."""


def read_all(file: IO[Any], name: str) -> Any:
    """Returns everything in a file. Raises InputError if it is more than a source may hold."""
    most = most_bytes()
    pieces: list[Any] = []
    size = 0
    while size <= most and (piece := file.read(_READ)):
        pieces.append(piece)
        size += len(piece)
    if size > most:
        pieces.clear()
        raise _too_large(name, "holds", most)
    if len(pieces) == 1:
        return pieces[0]
    return ("" if pieces and isinstance(pieces[0], str) else b"").join(pieces)


def unpack(data: bytes, name: str) -> bytes:
    """Decompresses data of a .gz, .xz or .zst file; returns other data unchanged.

    Raises InputError if it is damaged or too large.
    """
    opener = next((opener for start, opener in _OPENERS.items() if data.startswith(start)), None)
    if opener is None:
        return data
    try:
        with opener(io.BytesIO(data)) as file:
            # By pieces: a reader sets aside at once what it is asked for.
            pieces, size = [], 0
            most = most_bytes()
            while size <= most and (piece := file.read(_PIECE)):
                pieces.append(piece)
                size += len(piece)
    except ImportError:
        raise InputError(f"{name}: reading .zst files needs an extra: pip install 'hlotext[zstd]'") from None
    except MemoryError:
        raise InputError(f"{name} does not fit into memory when it is unpacked") from None
    except InputError:
        raise
    except Exception as error:  # each packer has errors of its own
        raise InputError(f"{name} is a damaged compressed file: {error}") from None
    if size > most:
        raise _too_large(name, "unpacks to", most)
    return b"".join(pieces)


def unpacked(file: IO[bytes]) -> IO[bytes]:
    """Returns an open file as uncompressed data; an uncompressed file itself, at its start.

    Raises ImportError if a compression needs a package that is missing. Reading damaged data raises the decompressor's
    errors.
    """
    file.seek(0)
    start = file.read(max(map(len, _OPENERS)))
    file.seek(0)
    opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
    return file if opener is None else opener(file)


_PIECE = 1 << 18
"""Bytes that are unpacked at a time."""
_READ = 1 << 26
"""Bytes that are read at a time."""


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
"""Magic bytes of compressed files, and the functions that open them."""
