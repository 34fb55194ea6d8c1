"""Files below the folders that were allowed at the start, and the modules that were opened from them, by content."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.dumps.texts import compilation_beside
from hlotext.findings.errors import Severity
from hlotext.syntax.source.inputs import read_data

MOST_BYTES = 256_000_000
"""Size of a file that is opened; what it unpacks to may be larger by no more."""
MOST_HELD = 4
"""Maximum number of modules in memory; others are read again on access."""
_MOST_KNOWN = 1_000
"""Identifiers that are remembered."""


class RefusedError(Exception):
    """Raised for a request that cannot be served. The message states an alternative."""


@attrs.frozen
class Place:
    """File and index of a module with an identifier."""

    path: Path
    number: int
    digest: str


@attrs.frozen(eq=False)
class Opened:
    """A module, and the compilation of its file."""

    id: str
    module: hlo.Module
    place: Place
    errors: int
    """Errors that reading it found; the module holds what could be read."""
    compilation: dumps.Compilation | None


class Store:
    """Opens files and finds modules by their identifiers. Thread-safe."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = [root.resolve(strict=True) for root in roots]
        self._places: OrderedDict[str, Place] = OrderedDict()
        self._held: OrderedDict[str, Opened] = OrderedDict()
        self._lock = threading.RLock()

    # ---- paths

    def path(self, text: str) -> Path:
        """Returns a path inside the allowed folders. Raises RefusedError for any other, for `..` and for links."""
        given = Path(text)
        if ".." in given.parts or "\0" in text:
            raise RefusedError(f"{text!r}: paths with .. are refused")
        tried = [given] if given.is_absolute() else [root / given for root in self.roots]
        for path in tried:
            if not self._is_inside(path):
                raise RefusedError(f"{text!r} is outside the folders that this server may read")
            if not path.exists():
                continue
            if path.resolve() != path:
                raise RefusedError(f"{text!r} goes through a symbolic link, which is refused")
            if not (path.is_file() or path.is_dir()):  # a pipe would be read for ever
                raise RefusedError(f"{text!r} is neither a file nor a folder")
            if path.is_file() and path.stat().st_size > MOST_BYTES:
                raise RefusedError(f"{text!r} is larger than {MOST_BYTES:,} bytes")
            return path
        raise RefusedError(f"{text!r} does not exist in the folders that this server may read")

    def _is_inside(self, path: Path) -> bool:
        return any(path == root or root in path.parents for root in self.roots)

    def shown(self, path: Path) -> str:
        """Returns a path as answers write it, relative to its folder."""
        for root in self.roots:
            if path == root or root in path.parents:
                return str(path.relative_to(root))
        return path.name

    def data(self, path: Path) -> bytes | str:
        """Returns the contents of a file, decompressed. Raises RefusedError."""
        try:
            return read_data(str(path))[0]
        except hlo.InputError as error:
            raise RefusedError(str(error)) from None

    # ---- modules

    def open(self, path: Path) -> list[Opened]:
        """Returns the modules of a file. Raises RefusedError if it has none."""
        with self._lock:
            data = self.data(path)
            raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
            digest = hashlib.sha256(raw).hexdigest()
            try:
                result = hlo.parse_tolerant(data, name=self.shown(path))
            except hlo.ProtoError as error:
                raise RefusedError(str(error)) from None
            errors = sum(d.severity is Severity.ERROR for d in result.diagnostics) + result.left_out
            if not any(len(computation) for module in result.modules for computation in module.computations):
                raise RefusedError(f"{self.shown(path)}: {result.diagnostics[0].message}")
            compilation = self._compilation(path)
            opened = []
            for number, module in enumerate(result.modules):
                suffix = f".{number}" if len(result.modules) > 1 else ""
                place = Place(path, number, digest)
                one = Opened(f"{module.name}@{digest[:8]}{suffix}", module, place, errors, compilation)
                self._keep(one)
                opened.append(one)
            return opened

    def _keep(self, one: Opened) -> None:
        self._places[one.id] = one.place
        self._places.move_to_end(one.id)
        self._held[one.id] = one
        self._held.move_to_end(one.id)
        while len(self._held) > MOST_HELD:
            self._held.popitem(last=False)
        while len(self._places) > _MOST_KNOWN:
            self._places.popitem(last=False)

    def _compilation(self, path: Path) -> dumps.Compilation | None:
        found = compilation_beside(str(path))
        if found is None or not all(self._is_readable(file) for file in found.files):
            return None
        return found

    def _is_readable(self, file: dumps.DumpFile) -> bool:
        if file.archive is not None:
            return self._is_inside(Path(file.archive).resolve())
        path = Path(file.path).absolute()
        return self._is_inside(path) and path.resolve() == path

    def get(self, name: str) -> Opened:
        """Returns the module of an identifier or path, which is read again if it was evicted. Raises RefusedError."""
        with self._lock:
            held = self._held.get(name)
            if held is not None:
                self._held.move_to_end(name)
                return held
            place = self._places.get(name)
            if place is None:
                if "@" in name:
                    raise RefusedError(f"{name!r} is unknown; call open with the path of its file")
                opened = self.open(self.path(name))
                if len(opened) > 1:
                    ids = ", ".join(one.id for one in opened[:10])
                    raise RefusedError(f"{name!r} holds {len(opened):,} modules; name one: {ids}")
                return opened[0]
            again = self.open(place.path)
            if again[0].place.digest != place.digest:
                raise RefusedError(f"{self.shown(place.path)} has changed since {name!r}; open it again")
            return again[place.number]

    def compilation(self, name: str) -> dumps.Compilation:
        """Returns the compilation of a module's identifier, of a file in a dump folder, or of a folder. Raises
        RefusedError.
        """
        if "@" not in name:
            path = self.path(name)
            if path.is_dir():
                found = self.folder(path).compilations
                if len(found) == 1:
                    return found[0]
                names = ", ".join(one.name for one in found[:10])
                raise RefusedError(
                    f"{name!r} holds {len(found):,} compilations; open a file of one ({names})"
                )
        compilation = self.get(name).compilation
        if compilation is None:
            raise RefusedError(f"{name!r} is not in a dump folder; only a dump shows passes and origins")
        return compilation

    def folder(self, path: Path) -> dumps.DumpFolder:
        """Returns a dump folder. Raises RefusedError if it contains symbolic links that lead out of it."""
        try:
            found = dumps.open(path)
        except hlo.InputError as error:
            raise RefusedError(str(error)) from None
        if not all(self._is_readable(file) for file in found.files):
            raise RefusedError(f"{self.shown(path)} contains symbolic links, which are refused")
        return found
