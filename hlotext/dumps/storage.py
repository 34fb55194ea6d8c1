"""Storage of a dump's files: a folder or an archive. Names are read first, contents on access."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import tarfile
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Generic, Protocol, TypeVar

import attrs

from hlotext.syntax.hints import foreign_text
from hlotext.syntax.source.inputs import InputError, decode, read_all, unpack, unpacked

PACKINGS = (".gz", ".xz", ".zst")
"""Suffixes of compressed files."""
_ZIP = ".zip"
_ARCHIVES = (".tar", ".tgz", ".txz", *(f".tar{packing}" for packing in PACKINGS), _ZIP)
_MAX_ARCHIVE = 64 << 30
"""Bytes to which an archive may unpack. (It is unpacked to disk.)"""
_PIECE = 1 << 20
_STEPS = "passes"
"""An archive of this name inside a folder holds files of the folder: per-pass dumps are many, and pack well."""


def is_archive(name: str) -> bool:
    """Returns True if a file is named like an archive."""
    return name.lower().endswith(_ARCHIVES)


def archive(path: str) -> ArchiveStorage | ZipStorage:
    """Returns the storage of an archive, which is opened on access."""
    return ZipStorage(path) if path.lower().endswith(_ZIP) else ArchiveStorage(path)


def without_packing(name: str) -> str:
    """Returns a file name without its compression suffix."""
    return next((name[: -len(ending)] for ending in PACKINGS if name.endswith(ending)), name)


def outward_links(root: str | os.PathLike[str]) -> list[str]:
    """Returns the links in a folder that point outside it, which are not followed.

    The folder may come from another machine, and files that its links name on this one are not part of it. Empty if the
    environment variable `LINKS_VARIABLE` is set.
    """
    if os.environ.get(LINKS_VARIABLE, "").lower() not in ("", "0", "false", "no", "off"):
        return []
    inside = os.path.join(os.path.realpath(root), "")
    return [
        path
        for where, _, files in os.walk(root)
        for file in files
        if os.path.islink(path := os.path.join(where, file)) and not os.path.realpath(path).startswith(inside)
    ]


LINKS_VARIABLE = "HLOTEXT_FOLLOW_LINKS"
"""Set to anything but nothing, 0, false, no or off, links in a folder are followed wherever they lead."""


class Storage(Protocol):
    """Interface of a storage of files, by path inside the folder, with components joined by `/`."""

    root: str
    """The path of the folder or archive."""

    def names(self) -> Iterator[str]:
        """Yields the paths of all files, in no particular order."""

    def path(self, name: str) -> str:
        """Returns the path of a file for display; for a folder, one that can be opened."""

    def size(self, name: str) -> int:
        """Returns the stored size of a file in bytes; 0 if unknown."""

    def read(self, name: str) -> bytes:
        """Returns the decompressed bytes of a file. Raises InputError if it cannot be read."""

    def archive(self, name: str) -> str | None:
        """Returns the path of the archive that contains a file, or None for a regular file."""

    def real_path(self, name: str) -> str | None:
        """Returns the path of a regular uncompressed file, or None for other files."""


@attrs.define(eq=False)
class FolderStorage:
    """A folder with its subfolders and the archives of steps in it."""

    root: str
    _archives: dict[str, tuple[ArchiveStorage | ZipStorage, str]] = attrs.field(factory=dict)
    """Files that lie in an archive inside the folder: the archive, and the name in it."""

    def _refuse(self, error: OSError) -> None:
        if error.filename == self.root:  # a folder inside that may not be listed hides no more than itself
            raise InputError(f"{self.root} cannot be read: {error.strerror}")

    def names(self) -> Iterator[str]:
        seen: set[str] = set()
        outward = set(outward_links(self.root))
        for where, folders, files in os.walk(self.root, onerror=self._refuse):
            folders.sort()
            paths = {file: os.path.join(where, file) for file in files}
            # Without pipes and devices, which would be read for ever.
            files = [file for file, path in paths.items() if path not in outward and os.path.isfile(path)]
            below = os.path.relpath(where, self.root).replace(os.sep, "/")
            prefix = "" if below == "." else f"{below}/"
            archives = []
            for file in files:
                name = f"{prefix}{file}"
                if is_archive(file) and file.split(".")[0] == _STEPS:
                    archives.append(name)
                else:
                    seen.add(name)
                    yield name
            for packed in archives:
                yield packed
                storage = archive(os.path.join(self.root, packed))
                with contextlib.suppress(InputError):  # one that is damaged is a file like others
                    for inner in storage.names():
                        name = posixpath.join(prefix, inner)
                        if name not in seen:
                            self._archives[name] = (storage, inner)
                            yield name

    def path(self, name: str) -> str:
        return os.path.join(self.root, *name.split("/"))

    def size(self, name: str) -> int:
        if name in self._archives:
            storage, inner = self._archives[name]
            return storage.size(inner)
        try:
            return os.stat(self.path(name)).st_size
        except (OSError, ValueError):
            return 0

    def read(self, name: str) -> bytes:
        if name in self._archives:
            storage, inner = self._archives[name]
            return storage.read(inner)
        path = self.path(name)
        try:
            return unpack(Path(path).read_bytes(), path)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"{path} cannot be read: {reason}") from None

    def archive(self, name: str) -> str | None:
        return self._archives[name][0].root if name in self._archives else None

    def real_path(self, name: str) -> str | None:
        return None if name in self._archives or without_packing(name) != name else self.path(name)


_Member = TypeVar("_Member", tarfile.TarInfo, zipfile.ZipInfo)


@attrs.define(eq=False)
class _Archive(Generic[_Member]):
    """An archive of any format, opened on first access."""

    root: str
    _members: dict[str, _Member] = attrs.field(factory=dict, init=False)

    def names(self) -> Iterator[str]:
        self._open()
        yield from self._members

    def path(self, name: str) -> str:
        return name

    def archive(self, name: str) -> str | None:
        return self.root

    def real_path(self, name: str) -> str | None:
        return None

    def _open(self) -> object:
        """Opens the archive and lists its members, once. Raises InputError."""
        raise NotImplementedError

    def _add(self, name: str, member: _Member) -> None:
        """Lists a member. Of several with one name the first counts."""
        self._members.setdefault(posixpath.normpath(name).lstrip("/"), member)


@attrs.define(eq=False)
class ArchiveStorage(_Archive[tarfile.TarInfo]):
    """A tar archive, compressed or not. A compressed archive is decompressed once, to a temporary file, for random
    access.
    """

    _tar: tarfile.TarFile | None = attrs.field(default=None, init=False)

    def size(self, name: str) -> int:
        return self._members[name].size if name in self._members else 0

    def read(self, name: str) -> bytes:
        tar = self._open()
        try:
            file = tar.extractfile(self._members[name])
            data = b"" if file is None else file.read()
        except (OSError, tarfile.TarError, EOFError) as error:
            raise InputError(f"{self.root}: {name} cannot be read: {error}") from None
        return unpack(data, name)

    def _open(self) -> tarfile.TarFile:
        if self._tar is None:
            try:
                file = _unpacked(self.root)
                weakref.finalize(self, file.close)
                self._tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - closed with the file
                for member in self._tar:
                    if member.isfile():
                        self._add(member.name, member)
            except (OSError, ValueError, tarfile.TarError, EOFError) as error:
                if isinstance(error, InputError):
                    raise
                raise _no_archive(self.root, error) from None
        return self._tar


@attrs.define(eq=False)
class ZipStorage(_Archive[zipfile.ZipInfo]):
    """A zip archive, whose files are decompressed one by one."""

    _zip: zipfile.ZipFile | None = attrs.field(default=None, init=False)

    def size(self, name: str) -> int:
        return self._members[name].file_size if name in self._members else 0

    def read(self, name: str) -> bytes:
        opened = self._open()
        try:
            with opened.open(self._members[name]) as file:
                data = read_all(file, name)
        except (InputError, KeyError):
            raise
        except Exception as error:  # each packer has errors of its own, and a password is a RuntimeError
            raise InputError(f"{self.root}: {name} cannot be read: {error}") from None
        return unpack(data, name)

    def _open(self) -> zipfile.ZipFile:
        if self._zip is None:
            try:
                self._zip = zipfile.ZipFile(self.root)
            except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as error:
                raise _no_archive(self.root, error) from None
            weakref.finalize(self, self._zip.close)
            for member in self._zip.infolist():
                if not member.is_dir():
                    self._add(member.filename, member)
        return self._zip


def _no_archive(path: str, error: Exception) -> InputError:
    """The error for a file that is named like an archive: what it looks like instead, or what its reader says."""
    try:
        with open(path, "rb") as file:
            head = decode(unpacked(file).read(_PROBED))
    except Exception:  # each packer has errors of its own
        head = ""
    if any(word in head for word in _WORDS_OF_HLO):
        stem = re.sub(r"(?:\.(?:tar|tgz|txz|zip|gz|xz|zst))+\Z", "", path, flags=re.IGNORECASE)
        return InputError(f"{path} is not an archive; it looks like HLO text: rename it to {stem}.txt")
    kind = foreign_text.guess_format(head)
    if kind and not kind.startswith(("a binary", "a zip", "a gzip", "an xz", "a zstd")):
        return InputError(f"{path} is not an archive; it looks like {kind}")
    return InputError(f"{path} is not a readable archive: {error}")


_PROBED = 4096
"""Bytes of a file that tell what it is."""
_WORDS_OF_HLO = ("HloModule ", "ENTRY ")


def _unpacked(path: str) -> IO[bytes]:
    """A tar, open and not packed. Raises InputError."""
    file = open(path, "rb")  # noqa: SIM115 - who asked for the archive closes it
    target: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        packed = unpacked(file)
        if packed is file:
            target.close()
            return file
        with file, packed:
            while piece := packed.read(_PIECE):
                target.write(piece)
                if target.tell() > _MAX_ARCHIVE:
                    raise InputError(f"{path} unpacks to more than {_MAX_ARCHIVE >> 30} GiB")
    except ImportError:
        target.close()
        raise InputError(f"{path}: reading .zst files needs an extra: pip install 'hlotext[zstd]'") from None
    except InputError:
        target.close()
        raise
    except Exception as error:  # each packer has errors of its own
        target.close()
        raise InputError(f"{path} is a damaged compressed file: {error}") from None
    target.seek(0)
    return target
