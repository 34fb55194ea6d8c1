"""The texts of modules among paths of any kind: what a command that takes folders, packed folders and files looks at."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import XlaAge
from hlotext.dumps.kinds import is_loose_final
from hlotext.dumps.storage import Storage, is_archive, without_packing
from hlotext.ir.caches import weighted_cache
from hlotext.syntax.source.inputs import InputError, is_binary, is_json, missing, read_source

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation
    from hlotext.dumps.files import DumpFile
    from hlotext.dumps.folder import DumpFolder
    from hlotext.dumps.step import Step

Which = Literal["last", "ends", "all"]
_DUMPED = re.compile(r"(?:\d{10,}\.)?module_\d{4,18}\.")
"""Prefix of the names of files that XLA dumped."""
_LOOSE = (".hlo", ".hlo.txt")
"""Suffixes of texts that no compiler dumped."""
_EARLY = re.compile(r"(?:.+\.)?before_optimizations\.(?:txt|hlo)", re.DOTALL)
"""Names of texts, by hand, from before optimization."""
_MODULES = (".txt", ".hlo", ".pb", ".json")
"""Suffixes of files that may hold a module without XLA's names."""
_TRACE = ".xplane.pb"
_ENDINGS = re.compile(r"(?:\.(?:txt|hlo|pb|json))+$")
_HEAD = re.compile(rb"^(?:HloModule |ENTRY )", re.MULTILINE)
_PROBED = 65_536


@attrs.frozen
class ModuleFile:
    """A file with a module, read on access."""

    path: str
    """Path as given or found."""
    file: DumpFile | None = None
    """The file in its dump, or None for a path that was given directly."""

    @property
    def archive(self) -> str | None:
        """Path of the archive that contains the file, or None for a regular file."""
        return self.file.archive if self.file is not None else None

    @property
    def compilation(self) -> Compilation | None:
        """The compilation that the file belongs to, or None if it was not dumped by XLA."""
        return self.file.compilation if self.file is not None else None

    @property
    def label(self) -> str:
        """The path for display, preceded by the path of the archive, if any."""
        return self.path if self.archive is None else f"{self.archive}:{self.path}"

    @property
    def real_path(self) -> str | None:
        """Path of a regular file, or None if the module is in an archive or from standard input."""
        return self.path if self.archive is None and self.path != "-" else None

    @property
    def age(self) -> XlaAge | None:
        """Age of the XLA version, from all files of the compilation, or None if not dumped by XLA.

        More precise than the age determined from one file.
        """
        return self.compilation.age if self.compilation is not None else age_beside(self.path)

    def source(self) -> hlo.Source:
        """Returns the module text with its name. Raises InputError if it cannot be read."""
        if self.file is None:
            return read_source(self.path)
        return hlo.Source(self.file.text(), self.label)

    def load(self) -> hlo.Module:
        """Loads the module.

        Raises InputError if the file cannot be read or holds several modules, and HloSyntaxError if it is not valid
        HLO.
        """
        return hlo.load(self.path, only=True) if self.file is None else self.file.load()

    def load_all(self) -> Sequence[hlo.Module]:
        """Loads all modules of the file.

        Raises InputError if the file cannot be read, and HloSyntaxError if it is not valid HLO.
        """
        if self.file is not None:
            return (self.file.load(),)
        try:
            # One module, which may be read as it is touched; else all of them.
            return (hlo.load(self.path, only=True),) if self.path != "-" else hlo.load_all(self.path)
        except (InputError, hlo.ProtoError):
            return hlo.load_all(self.path)


def age_beside(path: str) -> XlaAge | None:
    """Returns the age of XLA from a file's name and the other files of its compilation; None if not dumped by XLA."""
    found = compilation_beside(path)
    return None if found is None else found.age


def compilation_beside(path: str) -> Compilation | None:
    """Returns the compilation of a file, with the files next to it; None if not dumped by XLA.

    `path` is a file, or the label of a file in an archive (`ModuleFile.label`).
    """
    archive, colon, inner = path.rpartition(":")
    try:
        if colon and is_archive(archive) and os.path.isfile(archive):
            return _packed(archive, os.stat(archive).st_mtime_ns).get(inner)
        if path == "-" or not _DUMPED.match(os.path.basename(path)) or not os.path.isfile(path):
            return None
        folder = dumps.open(path)
    except InputError:
        return None
    return folder.compilations[0] if folder.compilations else None


def is_dumped(name: str) -> bool:
    """Returns True for a file name as XLA writes it."""
    return _DUMPED.match(name) is not None


def compilation_of(place: str | ModuleFile) -> Compilation | None:
    """Returns the compilation whose final HLO is in a file; None for any other file."""
    found = compilation_beside(place) if isinstance(place, str) else place.compilation
    return found if found is not None and is_final(place, found) else None


def is_final(place: str | ModuleFile, compilation: Compilation) -> bool:
    """Returns True if a file, given by path or as a `ModuleFile`, is the final HLO of a compilation."""
    if compilation.last is None:
        return False
    path = place if isinstance(place, str) else place.path
    last = compilation.last.file
    if isinstance(place, ModuleFile) or last.archive is not None:
        return path.rpartition(":")[2] == last.path
    return os.path.samefile(last.path, path)


@weighted_cache(2)
def _packed(archive: str, _: int) -> dict[str, Compilation]:
    """The compilations of a packed folder by the paths of their files: unpacked once, not for each text."""
    return {file.path: file.compilation for file in dumps.open(archive).files if file.compilation is not None}


def module_texts(paths: Iterable[str | os.PathLike[str]], which: Which = "last") -> Iterator[ModuleFile]:
    """Yields the modules in files, dump folders and archives, in the order given.

    A file is used regardless of its name; `-` is standard input. In a folder, XLA's files are recognized by name and
    selected by `which`. Any other file is used if it contains a module, except that a proto is skipped if there is a
    text file with the same name, and a file named as HLO before optimization is skipped if there is any other. All
    other files (memory reports, thunks, kernels, options) are skipped.

    Args:
        paths: Files, folders and archives.
        which: Steps to use from each compilation. `last` is the final HLO, or else the last step written; `ends` is the
            first and the final HLO; `all` is every step.

    Raises:
        InputError: A path does not exist, or an archive cannot be read.
    """
    for place in paths:
        path = os.fspath(place)
        if path == "-" or not (os.path.isdir(path) or (is_archive(path) and os.path.exists(path))):
            if path != "-" and not os.path.exists(path):
                raise missing(path)
            yield ModuleFile(path)
            continue
        yield from _of_folder(dumps.open(path), which)


def no_module(place: str) -> InputError:
    """Creates the error for a folder or archive without modules."""
    return InputError(
        f"no module found in {place}: it has no HLO as text, .hlo.pb or .hlo.json; XLA_FLAGS=--xla_dump_to=DIR dumps it"
    )


def texts_of(storage: Storage, which: Which = "last") -> Iterator[ModuleFile]:
    """Yields the modules that `module_texts` finds, for a dump in any storage, such as an object store."""
    return _of_folder(dumps.opened(storage), which)


def _of_folder(folder: DumpFolder, which: Which) -> Iterator[ModuleFile]:
    steps = [step.file for compilation in folder.compilations for step in _chosen(compilation, which)]
    others = [file for file in folder.files if file.compilation is None]
    if steps:  # a text of XLA's that is no step, as of a module that found no memory, is one of a module that is there
        others = [file for file in others if not _DUMPED.match(_name(file))]
    loose = _loose(others, without_traces=bool(steps))
    if which == "last":
        loose = [text for text in loose if not _EARLY.fullmatch(posixpath.basename(text.path))] or (
            [] if steps else loose
        )
    found = [*(ModuleFile(file.path, file) for file in steps), *loose]
    yield from sorted(found, key=lambda text: text.path) if loose else found


def _loose(files: Sequence[DumpFile], *, without_traces: bool) -> list[ModuleFile]:
    """The modules in files without XLA's names.

    Protos only of modules whose text is not there, and traces, which hold the programs that ran, where there is nothing else.
    """
    found: list[ModuleFile] = []
    protos: list[ModuleFile] = []
    traces: list[ModuleFile] = []
    for file in files:
        name = _name(file)
        if is_loose_final(name) or name.endswith(_LOOSE):
            found.append(ModuleFile(file.path, file))
        elif name.endswith(_MODULES) and _holds_module(file):
            text = ModuleFile(file.path, None if file.archive is None else file)
            is_text = not name.endswith((".pb", ".json"))
            (found if is_text else traces if name.endswith(_TRACE) else protos).append(text)
    known = {_stem(text.path) for text in found}
    return [*found, *(text for text in protos if _stem(text.path) not in known)] or (
        [] if without_traces else traces
    )


def _stem(path: str) -> str:
    return _ENDINGS.sub("", without_packing(path))


def _holds_module(file: DumpFile) -> bool:
    """True if a file looks like a module: text, a proto or its JSON."""
    try:
        data = file.read()
    except InputError:
        return False
    if is_binary(data) or is_json(data):
        return True
    return _HEAD.search(data[:_PROBED]) is not None


def _name(file: DumpFile) -> str:
    return without_packing(posixpath.basename(file.name.path))


def _chosen(compilation: Compilation, which: Which) -> Sequence[Step]:
    """The steps of a compilation that are wanted."""
    steps = compilation.steps
    if which == "all" or not steps:
        return steps
    last = compilation.last or steps[-1]
    return (last,) if which == "last" or last is steps[0] else (steps[0], last)
