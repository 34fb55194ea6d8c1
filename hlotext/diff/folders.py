"""Two dump folders side by side: which compilations are the same ones, and what changed around their programs and in them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal

import attrs

from hlotext import dumps
from hlotext.analysis import XlaAge
from hlotext.diff.compare import compare
from hlotext.dumps.fingerprints import collective_order, fingerprint
from hlotext.dumps.program_changes import ProgramChange, elided_constants, moved_lines, program_changes
from hlotext.dumps.settings import changed_settings, header_settings, settings
from hlotext.findings.errors import HloSyntaxError
from hlotext.syntax.source.inputs import InputError

Same = Literal["same", "different"]
SameFinal = Literal["same", "reordered", "different"]


@attrs.frozen
class FolderPair:
    """A compilation found in both folders, and how its programs and settings compare."""

    old: dumps.Compilation
    new: dumps.Compilation
    settings: Mapping[str, tuple[str | None, str | None]]
    """Settings that differ, with the old and new value, or None for the default."""
    before: Same | None
    """Result of comparing the programs before optimization, or None if either is missing or unreadable."""
    after: SameFinal | None
    """Result of comparing the final programs.

    `reordered` means that operations and transfers between devices are the same, in a different order.
    """

    @property
    def age(self) -> tuple[XlaAge, XlaAge]:
        """Age of each side's XLA version."""
        return self.old.age, self.new.age

    names_only: bool = False
    """True if `before` differs only in the name of the module or, with `exact`, in names inside it."""

    changes: tuple[ProgramChange, ...] = ()
    """Changes of the program before optimization: arguments, operations, etc."""
    moved: str | None = None
    """Description of changed source lines, if the programs differ in nothing else; otherwise None."""
    elided: int = 0
    """Number of constants that are elided (`{...}`) in both modules, and so may differ."""

    release: tuple[str, str] | None = None
    """Descriptions of both compiler releases, if they are known to differ; otherwise None."""
    is_left_over: bool = False
    """True if the names and programs differ, and the compilations were paired only because no others were left."""
    exact: bool = False
    """True if everything that JAX's compilation cache hashes was compared, including the XLA release."""

    @property
    def chips(self) -> tuple[str | None, str | None]:
        """Name of each side's chip, or None if unknown."""
        old, new = (one.chip.name if one.chip is not None else None for one in (self.old, self.new))
        return old, new

    @property
    def is_renamed(self) -> bool:
        """True if the modules have different names."""
        return self.old.name != self.new.name

    @property
    def is_same(self) -> bool:
        """True if settings and programs are equal.

        The module name and the XLA release may differ, unless the folders were compared with `exact`.
        """
        is_other_key = self.exact and self.release is not None
        same = not self.settings and self.before != "different" and self.after in ("same", None)
        return same and not is_other_key


@attrs.frozen
class FolderDiff:
    """Differences between two dump folders, created by `folders`."""

    pairs: tuple[FolderPair, ...]
    """Paired compilations, in the order of the old folder."""
    only_old: tuple[dumps.Compilation, ...]
    only_new: tuple[dumps.Compilation, ...]

    @property
    def is_same(self) -> bool:
        """True if the folders have the same compilations, all unchanged."""
        return not self.only_old and not self.only_new and all(pair.is_same for pair in self.pairs)


def folders(
    old: str | os.PathLike[str] | dumps.DumpFolder,
    new: str | os.PathLike[str] | dumps.DumpFolder,
    *,
    exact: bool = False,
) -> FolderDiff:
    """Pairs the compilations of two dump folders by content, never by XLA's numbers, and compares each pair.

    Compilations are paired by name and program before optimization, then by name and entry layout, then by name in
    order, then by program (for a renamed module). If nothing was paired and each folder has only one compilation, these
    two are paired. Raises InputError for a path that is not a dump.

    Args:
        old: The old dump folder.
        new: The new dump folder.
        exact: Compare module names and names inside modules too, as JAX's compilation cache does.
    """
    first, second = _Side(old), _Side(new)
    pairs: list[tuple[dumps.Compilation, dumps.Compilation]] = []
    keys: Sequence[Callable[[_Side, dumps.Compilation], Hashable]] = (
        lambda side, one: (one.name, side.before(one)),
        lambda side, one: (one.name, side.entry_layout(one)),
        lambda side, one: one.name,
        lambda side, one: side.before(one) or one,
        lambda side, one: side.after(one) or one,
    )
    for key in keys:
        waiting: dict[Hashable, list[dumps.Compilation]] = defaultdict(list)
        for one in reversed(second.left):
            waiting[key(second, one)].append(one)
        for one in list(first.left):
            others = waiting[key(first, one)]
            if others:
                other = others.pop()
                first.left.remove(one)
                second.left.remove(other)
                pairs.append((one, other))
    left_over = None
    if not pairs and len(first.left) == len(second.left) == 1 and not exact:
        left_over = first.left.pop(), second.left.pop()
        pairs.append(left_over)
    order = {one: place for place, one in enumerate(first.compilations)}
    pairs.sort(key=lambda pair: order[pair[0]])
    return FolderDiff(
        tuple(
            attrs.evolve(_pair(one, other, first, second, exact), is_left_over=(one, other) == left_over)
            for one, other in pairs
        ),
        tuple(first.left),
        tuple(second.left),
    )


class _Side:
    """One folder. Programs are read once, and only their fingerprints are kept."""

    def __init__(self, place: str | os.PathLike[str] | dumps.DumpFolder) -> None:
        folder = place if isinstance(place, dumps.DumpFolder) else dumps.open(place)
        self.compilations = sorted(folder.compilations, key=lambda one: (one.folder, one.number))
        self.left = list(self.compilations)
        self._found: dict[tuple[dumps.Compilation, str], str | None] = {}

    def before(self, one: dumps.Compilation) -> str | None:
        return self._known(one, "before")

    def after(self, one: dumps.Compilation) -> str | None:
        return self._known(one, "after")

    def exact(self, one: dumps.Compilation) -> str | None:
        """Of the program before optimization, with names."""
        return self._known(one, "exact")

    def entry_layout(self, one: dumps.Compilation) -> str | None:
        self.before(one)
        return self._found.get((one, "layout"))

    def _known(self, one: dumps.Compilation, what: str) -> str | None:
        if (one, what) not in self._found:
            try:
                module = one.after if what == "after" else one.before
            except (InputError, HloSyntaxError):
                module = None
            self._found[one, what] = (
                fingerprint(module, with_names=what == "exact") if module is not None else None
            )
            if module is not None and what == "before":
                self._found[one, "layout"] = str(module.attributes.get("entry_computation_layout"))
        return self._found[one, what]


def _pair(
    one: dumps.Compilation, other: dumps.Compilation, old: _Side, new: _Side, exact: bool
) -> FolderPair:
    changed = changed_settings(
        {**settings(one), **header_settings(one)}, {**settings(other), **header_settings(other)}
    )
    before = _same(old.before(one), new.before(other))
    names_only = exact and before == "same" and old.exact(one) != new.exact(other)
    programs = (one.before, other.before) if before is not None else (None, None)
    around: tuple[ProgramChange, ...] = ()
    moved, elided = None, 0
    if programs[0] is not None and programs[1] is not None:
        if before == "different":
            around = program_changes(programs[0], programs[1])
        else:
            moved, elided = moved_lines(programs[0], programs[1]), elided_constants(programs[0])
    return FolderPair(
        one,
        other,
        changed,
        "different" if names_only else before,
        _same_final(one, other, _same(old.after(one), new.after(other))),
        names_only,
        changes=around,
        moved=moved,
        elided=elided,
        release=dumps.age.other_release(one, other),
        exact=exact,
    )


def _same_final(one: dumps.Compilation, other: dumps.Compilation, known: Same | None) -> SameFinal | None:
    """Compares programs with different fingerprints by their operations and by the order of their collectives."""
    if known != "different":
        return known
    old, new = one.after, other.after
    if old is None or new is None or not compare(old, new).is_equal:
        return known
    meetings = ([c.meeting for c in collective_order(module)] for module in (old, new))
    return "reordered" if next(meetings) == next(meetings) else known


def _same(old: str | None, new: str | None) -> Same | None:
    if old is None or new is None:
        return None
    return "same" if old == new else "different"
