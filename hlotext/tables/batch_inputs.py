"""Inputs of tables: the objects among paths, folders, patterns and URLs, each with its build and its version."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

from hlotext.dumps.storage import is_archive
from hlotext.dumps.texts import ModuleFile, Which, module_texts, no_module, texts_of
from hlotext.syntax.source.inputs import InputError, unpack
from hlotext.tables.dataset import key_of
from hlotext.tables.rows.modules import step_of
from hlotext.tables.storage import TIMES, Place, is_url, normal, version_of

_PATTERN = frozenset("*?[")


@attrs.frozen
class Input:
    """An object that contains modules. Instances can be sent to other processes and machines."""

    url: str
    """An absolute path or a URL; of what lies in a packed folder, that folder's."""
    build: str
    """Of which build it is; names of builds sort as the builds were made."""
    version: str = ""
    """Changes with its content, as far as the file system tells."""
    size: int | None = None
    """Bytes as it lies there; None if it is not known."""
    member: str = ""
    """The path inside a packed folder."""
    modified: float | None = None
    """When it was last changed, in seconds since 1970."""
    step: tuple[tuple[str, Any], ...] = ()
    """Fields of the dump's file name: stage, number, pipeline and pass."""

    @property
    def path(self) -> str:
        """Name in tables and reports."""
        return f"{self.url}:{self.member}" if self.member else self.url

    @property
    def key(self) -> str:
        """Key of everything that is made of it, determined by build and path."""
        return key_of(self.build, self.path)

    def fetch(self) -> bytes:
        """Returns the object's bytes; those of a member of a packed folder are decompressed. Raises InputError."""
        if not self.member:
            return Place.of(self.url).read(self.size)
        for text in _packed(self.url, self.version):
            if text.path == self.member and text.file is not None:
                return text.file.read()
        raise InputError(f"{self.path} does not exist")


_kept: dict[tuple[str, str], list[ModuleFile]] = {}


def _packed(url: str, version: str) -> list[ModuleFile]:
    """All texts of a packed folder. The last one is kept: unpacking it takes long, and its texts come one after the other."""
    if (url, version) not in _kept:
        _kept.clear()
        _kept[url, version] = list(module_texts([url], "all"))
    return _kept[url, version]


def find_inputs(places: Iterable[str], *, build: str | None = None, which: Which = "last") -> Iterator[Input]:
    """Yields the objects at paths and URLs, each once: files as they are, and the module texts of folders, by their
    names.

    A local folder may be packed. `*`, `?` and `[` in a URL form a pattern. The build is `build`, or else the name of
    the folder directly below the given one, or else of the folder that contains the object. Raises InputError for a
    place that cannot be reached or has no modules.
    """
    seen = set()
    for place in places:
        for found in _inputs(place, build, which):
            if found.path not in seen:
                seen.add(found.path)
                yield found


def _inputs(place: str, build: str | None, which: Which) -> Iterator[Input]:
    if place == "-":
        raise InputError("standard input has no name that a second run could recognize; pass a file")
    if not is_url(place) and os.path.exists(place):
        yield from _local(normal(place), build, which)
        return
    if _PATTERN.intersection(place):
        found = Place.of(place).matching()
        if not found:
            raise InputError(f"{place}: no file matches")
        for url in found:
            yield from _inputs(url, build, which)
        return
    if not is_url(place):
        raise InputError(f"{place} does not exist")
    yield from _remote(place, build, which)


def _local(path: str, build: str | None, which: Which) -> Iterator[Input]:
    is_packed = os.path.isfile(path) and is_archive(path)
    texts = list(module_texts([path], which))
    if not texts:
        raise no_module(path)
    for text in texts:
        outer = path if is_packed else text.archive or text.path
        stat = os.stat(outer)
        member = text.path if text.archive is not None else ""
        named = build if build is not None else _build_of(text.path if not is_packed else "", path)
        version = f"{stat.st_size}:{stat.st_mtime_ns}"
        yield Input(outer, named, version, stat.st_size, member, stat.st_mtime, tuple(step_of(text).items()))


def _remote(url: str, build: str | None, which: Which) -> Iterator[Input]:
    place = Place.of(url)
    names = {} if url.startswith(("http:", "https:")) and not url.endswith("/") else place.find()
    if not names:
        info = place.info()
        if info.get("type") == "directory":
            raise no_module(url)
        if is_archive(place.url):
            raise InputError(f"{url}: a packed folder can only be read from the local machine")
        yield _object(place.url, build if build is not None else _build_of("", place.url), info)
        return
    texts = list(texts_of(_Listed(place.url, names), which))
    if not texts:
        raise no_module(url)
    for text in texts:
        named = build if build is not None else _build_of(text.path, place.url)
        yield _object(
            text.path, named, names[text.path[len(place.url) + 1 :]], step_of(text, reads_chip=False)
        )


def _object(url: str, build: str, info: Mapping[str, Any], step: Mapping[str, Any] | None = None) -> Input:
    """An object of a store, from what the store says of it."""
    time = next((info[name] for name in TIMES if info.get(name)), None)
    modified = time.timestamp() if isinstance(time, datetime) else time if isinstance(time, float) else None
    return Input(url, build, version_of(info), info.get("size"), "", modified, tuple((step or {}).items()))


def _build_of(path: str, given: str) -> str:
    """The name of a build, from where its object lies and what was given on the command line."""
    path, given = path.replace(os.sep, "/"), given.replace(os.sep, "/")
    below = path[len(given) :].strip("/").split("/") if path.startswith(f"{given}/") else []
    if len(below) > 1:
        return below[0]
    folder = given if below else posixpath.dirname(given)
    return posixpath.basename(folder.rstrip("/")) or "build"


@attrs.define
class _Listed:
    """A folder of a store of objects, as a storage of a dump: names that were listed, not read."""

    root: str
    infos: Mapping[str, dict[str, Any]]

    def names(self) -> Iterator[str]:
        yield from self.infos

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def size(self, name: str) -> int:
        return self.infos[name].get("size") or 0

    def read(self, name: str) -> bytes:
        url = self.path(name)
        return unpack(Place.of(url).read(self.size(name)), url)

    def archive(self, name: str) -> str | None:
        return None

    def real_path(self, name: str) -> str | None:
        return None
