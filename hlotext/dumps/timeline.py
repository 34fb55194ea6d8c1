"""A compilation step by step: what each did, how long it took, and what is odd about the dump."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext import dumps
from hlotext.dumps import identity
from hlotext.dumps.files import module_name
from hlotext.dumps.notes import Note
from hlotext.dumps.step import Step

if TYPE_CHECKING:
    from hlotext.dumps.changes import Changes
    from hlotext.dumps.compilation import Compilation


@attrs.frozen
class TimelineEntry:
    """A step of a compilation, with the changes that it shows and the time of its pass."""

    step: Step
    changes: Changes | None
    """Changes in the step, or None if its HLO or that of the previous step cannot be read."""
    milliseconds: float | None
    """Time of the pass, including nested passes, or None if unknown."""
    note: Note | None = None
    """Irregularity of the step's file, or None if there is none."""

    @property
    def is_quiet(self) -> bool:
        """True if the step changed nothing except metadata and order."""
        return self.changes is not None and not len(self.changes)


@attrs.frozen
class Rounds:
    """Consecutive steps in which a pipeline repeats the same passes."""

    rows: tuple[TimelineEntry, ...]
    """Those of the first round; one step where nothing repeats itself."""
    others: tuple[TimelineEntry, ...] = ()
    """Those of the other rounds."""

    @property
    def count(self) -> int:
        """Number of repetitions."""
        return 1 + len(self.others) // len(self.rows)


def rounds(rows: Sequence[TimelineEntry]) -> list[Rounds]:
    """Groups timeline entries, folding three or more repetitions of the same passes into one."""
    names = [(row.step.stage, row.step.name) for row in rows]
    found = []
    place = 0
    while place < len(rows):
        best, period = 0, 1
        for length in range(1, _LONGEST_ROUND + 1):
            end = place + length
            while end < len(names) and names[end] == names[end - length]:
                end += 1
            covered = (end - place) // length * length
            if covered >= 3 * length and covered > best:
                best, period = covered, length
        stop = place + (best or 1)
        found.append(Rounds(tuple(rows[place : place + period]), tuple(rows[place + period : stop])))
        place = stop
    return found


_LONGEST_ROUND = 8


def timeline(compilation: Compilation, stage: str | None = None) -> Iterator[TimelineEntry]:
    """Yields the steps of a compilation, or of one stage, each compared with the previous step. At most two texts are
    in memory.
    """
    before: identity.State | None = None
    for step in compilation.steps:
        run = compilation.pass_run(step)
        took = None if run is None else run.milliseconds
        wanted = stage is None or step.stage == stage
        following = compilation.steps[step.index + 1 : step.index + 2]
        if not wanted and not (following and following[0].stage == stage):
            continue
        text, note = _read(step)
        state = None if text is None else identity.state_of(step, text, before)
        if wanted:
            found = None
            if state is not None and (before is not None or not step.index):
                found = dumps.changes.changes(before or state, state, step.name)
            yield TimelineEntry(step, found, took, note)
        before = state


def whole_text(step: Step) -> str | None:
    """Returns the text of a step in the form of XLA's dumps; None if unreadable, truncated, or of another module."""
    text, note = _read(step)
    return text if note is None else None


def _read(step: Step) -> tuple[str | None, Note | None]:
    """The text of a step in its usual form, and what is odd about it; None for one that cannot be read."""
    try:
        text = step.file.text()
    except hlo.InputError as error:
        return None, Note("unreadable", str(error), step.path)
    if "\nHloModule " in text:
        return None, Note("unreadable", "it contains several modules; a compilation has one", step.path)
    note = _odd(step, text)
    try:
        return identity.usual_form(text), note
    except hlo.HloSyntaxError as error:
        return None, note or Note("unreadable", f"it is not HLO: {error.message}", step.path)


_TAIL = 256
"""Characters in which a text ends, blanks included, but for strange ones."""


def _odd(step: Step, text: str) -> Note | None:
    name, own = module_name(text), step.compilation.name
    if name is None:
        return Note("lying-name", "its name is that of a module's text, but its content is not", step.path)
    if not (text[-_TAIL:].rstrip() or text.rstrip()).endswith("}"):
        return Note("cut-off", "its text is truncated", step.path)
    if _plain(name) != _plain(own) and step.file.name.module is not None:
        return Note("lying-name", f"it contains module {name}", step.path)
    return None


def _plain(name: str) -> str:
    """A module's name as names of files have it: XLA writes `_` for what a file system may not take."""
    return _STRANGE.sub("_", name)


_STRANGE = re.compile(r"[^\w.\-]", re.ASCII)


def notes(compilation: Compilation) -> list[Note]:
    """Returns the irregularities of a compilation that its file names show."""
    found = []
    steps = compilation.steps
    where = steps[-1].path if steps else (compilation.files[0].path if compilation.files else "")
    if not steps:
        found.append(Note("no-text", "no text of the module, only other files", where))
    elif compilation.last is None:
        ended = (
            f"after {steps[-1].pipeline}/{steps[-1].name}" if steps[-1].is_pass else "before the first pass"
        )
        found.append(
            Note("no-final-text", f"no final HLO: the compilation, or its dump, ended {ended}", where)
        )
    if steps and compilation.first is None:
        found.append(Note("no-first-text", "no text before optimization", where))
    numbers = [step.number for step in steps if step.number is not None]
    if len(set(numbers)) < len(numbers):
        found.append(
            Note(
                "overwritten", "several dumps have the same number: two processes wrote to this folder", where
            )
        )
    missing = sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers))
    if missing:
        shown = ", ".join(f"{number:04d}" for number in missing[:5]) + (", ..." if len(missing) > 5 else "")
        found.append(Note("missing-steps", f"{len(missing)} numbered dumps are missing: {shown}", where))
    kinds = [file.kind for file in compilation.files]
    for kind in ("hlo-before", "hlo-final"):
        if kinds.count(kind) > 1:
            found.append(Note("overwritten", f"{kinds.count(kind)} files of kind {kind}", where))
    return found
