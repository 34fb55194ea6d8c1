"""The thunks of an executable as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.values.age import XlaAge
from hlotext.thunks.buffers import link
from hlotext.thunks.command_buffers import CaptureRun, convert
from hlotext.thunks.settings import ThunkSettings
from hlotext.thunks.thunk import Thunk, ThunkNote, walk

if TYPE_CHECKING:
    from hlotext.ir.nodes.module import Module


@attrs.frozen(eq=False, kw_only=True)
class Thunks:
    """The thunks of an executable, created by `predict` or `load`."""

    thunks: tuple[Thunk, ...]
    """The outermost sequence, in order of execution."""
    platform: str
    """"gpu" or "cpu"."""
    module: Module | None = attrs.field(default=None, repr=False)
    options: Any = attrs.field(default=None, repr=False)
    age: XlaAge | None = None
    """Age of the XLA version whose rules were used, or None if read from files."""
    notes: tuple[ThunkNote, ...] = ()
    ended: tuple[CaptureRun, ...] = ()
    """Runs of convertible thunks, captured or not, with their blockers; empty before `with_command_buffers`."""
    is_predicted: bool = True
    shows_neighbours: bool = False
    """True if the file lists conflicting neighbors, as XLA's files do since 2026-03."""
    buffers: Any = attrs.field(default=None, repr=False)
    """Buffer slices that thunks read and write (`thunks.buffers.Uses`), or None if unknown."""

    def walk(self) -> Iterator[Thunk]:
        """Yields all thunks in pre-order, as in XLA's files."""
        return walk(self.thunks)

    def with_depth(self) -> Iterator[tuple[int, str | None, Thunk]]:
        """Yields thunks as `walk` does, each with its nesting depth, from 0, and the label of its sequence.

        The label, such as `body`, is given for the first thunk of a nested sequence, and is None for all other thunks.
        Empty sequences are skipped.
        """
        stack: list[tuple[int, str | None, Thunk]] = [(0, None, thunk) for thunk in reversed(self.thunks)]
        while stack:
            depth, label, thunk = stack.pop()
            yield depth, label, thunk
            inner = [
                (depth + 1, name if position == 0 else None, child)
                for name, sequence in thunk.children
                for position, child in enumerate(sequence)
            ]
            stack.extend(reversed(inner))

    def of(self, name: str) -> tuple[Thunk, ...]:
        """Returns the thunks of an instruction, by name, in order."""
        return tuple(thunk for thunk in self.walk() if thunk.name == name)

    def counts(self) -> dict[str, int]:
        """Returns the number of thunks by kind, most frequent first."""
        found: dict[str, int] = {}
        for thunk in self.walk():
            found[thunk.kind] = found.get(thunk.kind, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def with_command_buffers(self, options: Any = None) -> Thunks:
        """Returns the thunks after XLA's command-buffer pass. `ended` lists the runs of thunks and their blockers.

        `options` are the options of the compilation (`Compilation.options`), by default those given to `predict`. CPU
        thunks are returned unchanged, since there are no command buffers on CPU.
        """
        if self.platform != "gpu":
            return self
        options = options if options is not None else self.options
        converted = convert(self.thunks, ThunkSettings.of(options), self.age or XlaAge())
        found = attrs.evolve(self, thunks=converted.thunks, ended=converted.runs, options=options)
        if self.buffers is not None:
            found = attrs.evolve(found, buffers=self.buffers.renamed(converted.copies))
            link(found.thunks, found.buffers)
        return found
