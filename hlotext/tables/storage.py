"""Where inputs and datasets lie: paths of this machine, and URLs of whatever fsspec has a file system for."""

from __future__ import annotations

import errno
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import attrs

from hlotext.dumps.storage import outward_links
from hlotext.ir.caches import lazy_regex
from hlotext.syntax.source.inputs import LIMIT_VARIABLE, InputError, most_bytes

HINT = "tables need an extra: pip install 'hlotext[tables]'"
_SCHEME = lazy_regex(r"[A-Za-z][A-Za-z0-9+.-]+(?:::|://)")
"""Prefix of URLs, including chained ones of fsspec (`simplecache::s3://...`); a drive has one letter."""
_VERSIONS = ("ETag", "etag", "content_hash", "md5Hash", "md5", "checksum")
"""Names in stores of a property that changes with an object's content."""
TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified")
"""Names of the modification time."""


def is_url(place: str) -> bool:
    """True if this is a URL, not a local path."""
    return _SCHEME().match(place) is not None


def normal(place: str) -> str:
    """Returns the normal form of a location: a URL without trailing slash, or an absolute path."""
    if not is_url(place):
        return os.path.abspath(place)
    return place.rstrip("/") if not place.endswith("://") else place


@attrs.frozen
class Place:
    """A location in a file system. Methods raise InputError if it cannot be reached."""

    url: str
    """As `normal` gives it."""
    system: Any
    """Of fsspec."""
    path: str
    """Path in the file system."""

    @classmethod
    def of(cls, url: str) -> Place:
        """Returns the location of a path or URL. Raises InputError if its protocol is not installed or it cannot be
        reached.
        """
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise InputError(f"{url}: {HINT}") from None
        url = normal(url)
        try:
            # Lists are not kept: what other processes write is to be seen.
            system, path = url_to_fs(url) if not is_url(url) else url_to_fs(url, use_listings_cache=False)
        except Exception as error:  # each file system has errors of its own
            raise _unreachable(url, error) from None
        return cls(url, system, path.rstrip("/") or path)

    @property
    def is_local(self) -> bool:
        """True if it is a local path."""
        return not is_url(self.url)

    def below(self, name: str) -> Place:
        """Returns the location of a name relative to this one; `/` separates its parts."""
        url = os.path.join(self.url, *name.split("/")) if self.is_local else f"{self.url}/{name}"
        return Place(url, self.system, f"{self.path}/{name}")

    def is_folder(self) -> bool:
        """True if it is a folder."""
        return bool(self._try(self.system.isdir, self.path))

    def find(self, deepest: int | None = None) -> dict[str, dict[str, Any]]:
        """Returns the objects below it: relative names, with the file system's info; empty if it does not exist."""
        try:
            found = self.system.find(self.path, maxdepth=deepest, detail=True)
        except FileNotFoundError:
            return {}
        except Exception as error:
            raise _unreachable(self.url, error) from None
        lead = len(self.path) + 1
        outward = set(outward_links(self.path)) if self.is_local else ()
        return {
            path[lead:].replace(os.sep, "/"): info
            for path, info in found.items()
            if info.get("type") == "file" and len(path) > lead and path not in outward
        }

    def info(self) -> dict[str, Any]:
        """Returns the file system's info."""
        found: dict[str, Any] = self._try(self.system.info, self.path)
        return found

    def matching(self) -> list[str]:
        """Returns the URLs that match this one as a pattern with `*`, `?` and `[`."""
        found = self._try(self.system.glob, self.path)
        return sorted(path if self.is_local else self.system.unstrip_protocol(path) for path in found)

    def read(self, size: int | None = None) -> bytes:
        """Returns its bytes; `size` is their number if known. Raises InputError if they exceed the maximum size of a
        source.
        """
        most = most_bytes()
        size = self.info().get("size") if size is None else size
        if isinstance(size, int) and size > most:
            raise InputError(
                f"{self.url} holds more than {most:,} bytes; raise the limit with {LIMIT_VARIABLE}"
            )
        data: bytes = self._try(self.system.cat_file, self.path)
        return data

    def read_below(self, names: Iterable[str]) -> dict[str, bytes]:
        """Returns the bytes of several objects below it, fetched together if the file system supports it."""
        paths = {f"{self.path}/{name}": name for name in names}
        if not paths:
            return {}
        found = self._try(self.system.cat, list(paths))
        return {paths[path]: data for path, data in found.items()}

    @contextmanager
    def writing(self) -> Iterator[IO[bytes]]:
        """Context manager that yields a file which replaces this object atomically when the block succeeds.

        Readers never see a partial file, even if the process is killed. This holds for local paths and object stores;
        it is not guaranteed for other file systems. Raises InputError.
        """
        if not self.is_local:
            with tempfile.NamedTemporaryFile() as file:
                yield file
                file.flush()
                self._try(self.system.put_file, file.name, self.path)
            return
        # Another name first, in the same folder: only there a rename is one step.
        beside = f"{self.path}.{secrets.token_hex(4)}.part"
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(beside, "wb") as file:
                yield file
            os.replace(beside, self.path)
        except OSError as error:
            if isinstance(error, InputError):
                raise
            raise _unreachable(self.url, error, "written") from None
        finally:
            with suppress(OSError):
                os.unlink(beside)

    def make_folder(self) -> None:
        """Creates it as a folder if it is local. Raises InputError if that fails or it is not writable."""
        if not self.is_local:
            return
        try:
            os.makedirs(self.path, exist_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except OSError as error:
            raise _unreachable(self.url, error, "written") from None

    def write(self, data: bytes | memoryview) -> None:
        """Replaces it atomically, as `writing` does. Raises InputError."""
        if self.is_local:
            with self.writing() as file:
                file.write(data)
        else:
            self._try(self.system.pipe_file, self.path, bytes(data))

    def reading(self) -> IO[bytes]:
        """Opens it as a file that is read on demand. Raises InputError."""
        file: IO[bytes] = self._try(self.system.open, self.path, "rb")
        return file

    def remove_below(self, names: Iterable[str]) -> None:
        """Removes objects below it; missing ones are ignored. Raises InputError."""
        paths = [f"{self.path}/{name}" for name in names]
        try:
            if self.is_local:
                for path in paths:
                    with suppress(FileNotFoundError):
                        os.unlink(path)
            elif paths:
                with suppress(FileNotFoundError):
                    self.system.rm(paths)  # stores of objects remove many with one request
        except Exception as error:
            raise _unreachable(self.url, error, "cleared") from None

    def _try(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except InputError:
            raise
        except FileNotFoundError:
            raise InputError(f"{self.url} does not exist") from None
        except Exception as error:  # each file system has errors of its own
            raise _unreachable(self.url, error) from None


def version_of(info: Mapping[str, Any]) -> str:
    """Returns the version of an object as known to its file system: an entity tag, or else size and time."""
    for name in _VERSIONS:
        if info.get(name):
            return str(info[name]).strip('"')
    time = next((info[name] for name in TIMES if info.get(name)), "")
    return f"{info.get('size', '')}:{time}"


def safe_name(text: str, most: int = 60) -> str:
    """Returns a text as part of a file name that is valid on all systems."""
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", text)[-most:].strip("._") or "module"


def _unreachable(url: str, error: Exception, what: str = "reached") -> InputError:
    """One line for what a file system says, also where the package for it is not installed."""
    reason = " ".join(str(getattr(error, "strerror", None) or error).split()) or type(error).__name__
    return InputError(f"{url} cannot be {what}: {reason}")
