"""A dump folder: its files, and their compilations."""

from __future__ import annotations

import bisect
import os
import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from hlotext.dumps.compilation import Compilation
from hlotext.dumps.files import DumpFile
from hlotext.dumps.names import FileName, read_names
from hlotext.dumps.notes import Note
from hlotext.dumps.storage import FolderStorage, Storage, archive, is_archive
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.node_list import CompilationList
from hlotext.ir.spelling import did_you_mean
from hlotext.syntax.source.inputs import missing

_MOST_MEANT, _MOST_LISTED = 3, 10
"""Modules that a mistaken name is said to mean, and those that are listed where it means none."""

_LIBTPU, _SHARDY = "module_", "shardy"


def _listed(compilations: Iterable[Compilation]) -> tuple[Compilation, ...]:
    return CompilationList(compilations)


@with_foreign_names
@attrs.define(eq=False, repr=False)
class DumpFolder:
    """Contents of a dump folder. Opening it reads only file names; files are read on access."""

    path: str
    """Path of the folder or archive."""
    files: tuple[DumpFile, ...]
    """All files, sorted by path."""
    compilations: tuple[Compilation, ...] = attrs.field(converter=_listed)
    """The compilations, sorted by subfolder and number."""
    notes: tuple[Note, ...] = ()
    """Irregularities of the folder as a whole, such as files of two processes. See also `Compilation.notes`."""

    def __getitem__(self, key: str | int) -> Compilation:
        """Returns a compilation by number or by module name. Raises LookupError if there is none or several."""
        if isinstance(key, int):
            found = [c for c in self.compilations if c.number == key]
        else:
            found = [c for c in self.compilations if c.name == key]
        if len(found) == 1:
            return found[0]
        if found:
            numbers = [c.number for c in found]
            where = (
                f"numbers {', '.join(map(str, numbers[:10]))}"
                if len(set(numbers)) == len(numbers)
                else "several compilations"
            )
            raise LookupError(f"{key} is the name of {where} of {self.path}: choose one of .compilations")
        raise LookupError(f"{self.path} holds no module {key}; {self._near(str(key))}")

    def _near(self, key: str) -> str:
        """The modules that a name may mean: those in whose names it stands, else one spelled alike, else the first ones."""
        numbered = {f"{c.name} (number {c.number})": c.name for c in self.compilations}
        near = [shown for shown, name in numbered.items() if key and key.lower() in name.lower()]
        if 0 < len(near) <= _MOST_MEANT:
            return f"did you mean {' or '.join(near)}?"
        meant = did_you_mean(key, dict.fromkeys(numbered.values()))
        if meant and not near:
            return meant
        rest = len(near or numbered) - _MOST_LISTED
        more = f" and {rest:,} more" if rest > 0 else ""
        return f"it has {', '.join([*(near or numbered)][:_MOST_LISTED]) or 'none'}{more}"

    def __iter__(self) -> Iterator[Compilation]:
        return iter(self.compilations)

    def __len__(self) -> int:
        return len(self.compilations)

    def __repr__(self) -> str:
        return (
            f"<DumpFolder {self.path} with {len(self.files)} files of {len(self.compilations)} compilations>"
        )


def open(place: str | os.PathLike[str]) -> DumpFolder:
    """Opens a dump: a folder with its subfolders, or an archive (.tar, .tar.gz, .tar.xz, .tar.zst, .zip).

    Given a file of a dump, opens its folder, limited to that file's compilation. Only file names are read; a folder
    without a dump yields no compilations. Raises InputError if the path does not exist or cannot be read.
    """
    path = os.fspath(place)
    if os.path.isdir(path):
        return opened(FolderStorage(path))
    if not os.path.exists(path):
        raise missing(path)
    if is_archive(path):
        return opened(archive(path))
    where = Path(path).absolute()
    folder = where.parent
    if folder.name.startswith(_LIBTPU):  # inputs of libtpu, or a step of Shardy
        folder = folder.parent.parent if folder.parent.name == _SHARDY else folder.parent
    whole = opened(FolderStorage(str(folder)), top_only=folder == where.parent)
    own = next((f for f in whole.files if os.path.abspath(f.path) == str(where)), None)
    if own is None or own.compilation is None:
        return DumpFolder(whole.path, (own,) if own is not None else (), (), whole.notes)
    return DumpFolder(whole.path, own.compilation.files, (own.compilation,), whole.notes)


def opened(storage: Storage, *, top_only: bool = False) -> DumpFolder:
    """Opens a dump in any storage; with `top_only`, without subfolders. Only names are read."""
    paths = sorted(storage.names())
    names = read_names(paths)
    if top_only:
        names = [name for name in names if not name.folder]
    groups: dict[tuple[str, int], list[FileName]] = defaultdict(list)
    files = {name.path: DumpFile(storage, name) for name in names}
    for name in names:
        if name.number is not None:
            groups[name.folder, name.number].append(name)
    _join_by_name(names, groups)
    compilations, notes = [], []
    for (folder, number), group in sorted(groups.items()):
        for own, found in _separated(folder, number, group):
            notes += found
            compilation = Compilation(number, folder, tuple(files[name.path] for name in own))
            compilations.append(compilation)
            for file in compilation.files:
                file.compilation = compilation
    _join(compilations)
    return DumpFolder(storage.root, tuple(files.values()), tuple(compilations), tuple(notes))


def _join(compilations: Sequence[Compilation]) -> None:
    """Finds the two halves of compilations in which a pass made a new module, as TPU's X64 elimination does.

    The first half has a text before optimization and no final one, the second of the same name it is the other way round.
    """
    waiting: dict[tuple[str, str], Compilation] = {}
    for compilation in compilations:
        kinds = {file.kind for file in compilation.files}
        key = compilation.folder, compilation.name
        if "hlo-before" in kinds and "hlo-final" not in kinds:
            waiting[key] = compilation
        elif "hlo-final" in kinds and "hlo-before" not in kinds:
            compilation.earlier = waiting.pop(key, None)


def _join_by_name(names: Sequence[FileName], groups: dict[tuple[str, int], list[FileName]]) -> None:
    """Gives files that say a module's name but no number to the module, where only one has that name."""
    unnumbered = [name for name in names if name.number is None and name.module is not None]
    if not unnumbered:
        return
    owners: dict[tuple[str, str], set[int]] = defaultdict(set)
    for (folder, number), group in groups.items():
        for name in group:
            if name.module is not None:
                owners[folder, name.module].add(number)
    for name in unnumbered:
        numbers = owners.get((name.folder, name.module or ""), set())
        if len(numbers) == 1:
            group = groups[name.folder, next(iter(numbers))]
            bisect.insort(group, name, key=lambda one: one.path)


def _separated(
    folder: str, number: int, group: Sequence[FileName]
) -> list[tuple[list[FileName], list[Note]]]:
    """The files of one number, apart where they are of several processes: these count from 0 each.

    Modules of different names, or written at different times, are of different processes. What says neither belongs to all,
    and is given to the one with most files.
    """
    times = Counter(name.timestamp for name in group if name.timestamp is not None)
    by_time = len(times) > 1
    keys = Counter(name.timestamp if by_time else name.module for name in group)
    keys.pop(None, None)
    if len(keys) <= 1:
        return [(list(group), [])]
    most = max(keys, key=lambda key: (keys[key], key))
    parts: dict[str, list[FileName]] = {str(key): [] for key in sorted(keys, key=str)}
    for name in group:
        parts[str((name.timestamp if by_time else name.module) or most)].append(name)
    where = posixpath.join(folder, f"module_{number:04d}")
    what = "written at different times" if by_time else "with different names"
    shared = [name.path for name in group if (name.timestamp if by_time else name.module) is None]
    note = Note(
        "mixed-processes",
        f"{where} is the name of {len(parts)} modules {what}: several processes wrote to this folder"
        + (f"; {len(shared)} of its files may belong to any of them" if shared else ""),
        where,
    )
    return [(files, [note] if index == 0 else []) for index, files in enumerate(parts.values())]
