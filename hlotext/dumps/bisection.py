"""Finds the pass that broke a compilation: runs every text on the CPU with equal arguments and compares the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Literal

import attrs

from hlotext.dumps.compilation import Compilation
from hlotext.dumps.folder import DumpFolder
from hlotext.dumps.folder import open as open_folder
from hlotext.dumps.states import States
from hlotext.dumps.step import Step

State = Literal["good", "precision", "wrong", "not run"]


@attrs.frozen
class Tried:
    """A dumped step, and the outcome of executing its module."""

    file: str
    """Name of the file."""
    state: State
    """Outcome. `precision` means that results differ only until floats narrower than f32 are widened to f32."""
    difference: float | None = None
    """Largest relative difference from the results of the first file, or None if not executed."""
    why: str | None = None
    """Reason why the file was not executed, or None if it was executed."""
    is_new: bool = True
    """True if no earlier file has the same text."""


@attrs.frozen
class Bisection:
    """Result of bisecting a compilation for the first pass that changed the computed values."""

    compilation: Compilation
    first: str | None
    """The first file from which results stay wrong, or None if the last file is right or no file was executed."""
    good: str | None
    """The last executed file before `first` with right results, or None if `first` is None."""
    between: tuple[str, ...]
    """Files between `good` and `first` that could not be executed; any of their passes may be at fault."""
    transient: tuple[str, ...]
    """Files with wrong results that are followed by a file with right results."""
    precision: tuple[str, ...]
    """Files that change results only by narrowing floats."""
    tried: tuple[Tried, ...]
    """All steps, in order."""

    @property
    def is_clean(self) -> bool:
        """True if no executed file computes a different result."""
        return self.first is None and not self.transient

    @property
    def ran(self) -> int:
        """Number of distinct module texts that were executed."""
        return sum(one.is_new and one.state != "not run" for one in self.tried)

    @property
    def distinct(self) -> int:
        """Number of distinct module texts."""
        return sum(one.is_new for one in self.tried)


def bisect(
    folder: str | os.PathLike[str] | DumpFolder | Compilation,
    rtol: float | None = None,
    seed: int = 0,
    *,
    module: str | int | None = None,
    timeout: float = 120.0,
    progress: Callable[[Step], None] | None = None,
) -> Bisection:
    """Finds the first pass after which a module computes different values.

    Each distinct module text is compiled by jaxlib for CPU and executed with the same random arguments, in a child
    process that may crash. Modules for several devices run as replicas, with arguments sharded as annotated. If the
    unpartitioned program was not dumped, each device gets different arguments unless shardings replicate them. Results
    are compared with those of the first executed module and of the last good one. If they differ, both are executed
    again with wider floats.

    Args:
        folder: A dump folder with a dump of every pass, or one of its compilations.
        rtol: Tolerance per element, relative to its magnitude or to 1% of the largest element, whichever is larger.
            None (the default) uses 0.01 if floats are narrower than f32, and 0.001 otherwise.
        seed: Seed of the three random sets of arguments.
        module: Name or number of a compilation. None (the default) tries all in order until one has a fault.
        timeout: Time limit for each executed module, in seconds.
        progress: Called with each step before it is executed.

    Returns:
        The result for the first compilation with a fault, else for the last compilation.

    Raises:
        InputError: There is no such folder, or a file cannot be read.
        LookupError: No compilation has that name or number, or the folder has no compilations.
        NotExecutable: jaxlib is not installed.
    """
    found: Bisection | None = None
    for compilation in _compilations(folder, module):
        found = _bisected(compilation, rtol, seed, timeout, progress)
        if not found.is_clean:
            return found
    if found is None:
        raise LookupError("the folder holds no compilation")
    return found


def _compilations(
    place: str | os.PathLike[str] | DumpFolder | Compilation, module: str | int | None
) -> Sequence[Compilation]:
    if isinstance(place, Compilation):
        return [place]
    folder = place if isinstance(place, DumpFolder) else open_folder(place)
    if module is not None:
        return [folder[int(module) if str(module).isdigit() else module]]
    continued = {one.earlier for one in folder.compilations}
    return [one for one in folder.compilations if one not in continued]


def _bisected(
    compilation: Compilation,
    rtol: float | None,
    seed: int,
    timeout: float,
    progress: Callable[[Step], None] | None,
) -> Bisection:
    known: dict[str, Tried] = {}
    tried = []
    with States(compilation, rtol, seed, timeout) as states:
        for step in compilation.steps:
            text = step.file.text()
            name = os.path.basename(step.file.name.path)
            if text in known:
                tried.append(attrs.evolve(known[text], file=name, is_new=False))
                continue
            if progress is not None:
                progress(step)
            state, difference, why = states.judge(step)
            known[text] = Tried(name, state, difference, why)
            tried.append(known[text])
            step.release()
    return _summary(compilation, tried)


def _summary(compilation: Compilation, tried: Sequence[Tried]) -> Bisection:
    good = [number for number, one in enumerate(tried) if one.state in ("good", "precision")]
    wrong = [number for number, one in enumerate(tried) if one.state == "wrong"]
    last = good[-1] if good else -1
    first = next((number for number in wrong if number > last), None)
    between = tried[last + 1 : first] if first is not None else ()
    return Bisection(
        compilation,
        first=tried[first].file if first is not None else None,
        good=tried[last].file if first is not None and good else None,
        between=tuple(one.file for one in between if one.state == "not run"),
        transient=tuple(tried[n].file for n in wrong if n < last and tried[n].is_new),
        precision=tuple(
            one.file
            for before, one in zip([None, *tried], tried, strict=False)
            if one.state == "precision" and one.is_new and (before is None or before.state != "precision")
        ),
        tried=tuple(tried),
    )
