"""Examines the modules of files, folders and archives in several processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs

from hlotext.dumps.outlines import copies
from hlotext.dumps.texts import ModuleFile, module_texts, no_module
from hlotext.lint.workers import Pool
from hlotext.syntax.source.inputs import InputError
from hlotext.triage.actions import Action, actions_of
from hlotext.triage.examined import Examined, Settings, Unexamined, examine


@attrs.frozen
class Triage:
    """Result of `run`: modules ranked by time, and repairs ranked by what they save."""

    modules: tuple[Examined, ...]
    """Modules, slowest first."""
    failures: tuple[Unexamined, ...]
    actions: tuple[Action, ...]
    """Repairs of provably avoidable costs, most valuable first."""
    suspects: tuple[Action, ...]
    """Repairs of large costs that may be necessary, most valuable first."""
    unpriced: tuple[Action, ...]
    """Findings of unknown saving, provably avoidable ones first."""
    repeated: tuple[tuple[str, str], ...] = ()
    """Skipped files, each with the dumped file of the same module."""

    @property
    def fullest(self) -> tuple[Examined, ...]:
        """Modules by peak memory, largest first; those of unknown memory are omitted."""
        known = [one for one in self.modules if one.peak_bytes is not None]
        return tuple(sorted(known, key=lambda one: -(one.peak_bytes or 0)))


def run(
    paths: Iterable[str | os.PathLike[str]], settings: Settings | None = None, jobs: int | None = None
) -> Triage:
    """Examines every module in files, dump folders and archives.

    In a folder, the final HLO of each compilation is used. If the folder has other files of the same module, such as
    the output of `compiled.as_text()`, the dumped file is preferred. Files that cannot be read are listed in
    `failures`.

    Args:
        paths: Files, folders and archives; or one.
        settings: Chip and other settings.
        jobs: Number of processes; None uses all processors.

    Raises:
        RuleError: A plugin rule or a rule file cannot be used (`hlotext.lint`).
    """
    files: list[ModuleFile] = []
    failures: list[Unexamined] = []
    for one in [paths] if isinstance(paths, str | os.PathLike) else paths:  # else each letter would be a path
        path = os.fspath(one)
        try:
            found = list(module_texts([path]))
        except InputError as error:
            failures.append(Unexamined(path, str(error)))
            continue
        if not found:
            failures.append(Unexamined(path, str(no_module(path))))
        files += found
    again = copies(files)
    texts = [one if one.archive is not None else one.path for one in files if one not in again]
    modules: list[Examined] = []
    for result in _examined(texts, settings or Settings(), jobs or os.cpu_count() or 1):
        if isinstance(result, Examined):
            modules.append(result)
        else:
            failures.append(result)
    modules.sort(key=lambda one: (-one.seconds, one.place, one.name))
    failures.sort(key=lambda one: one.place)
    actions = actions_of(modules)
    return Triage(
        tuple(modules),
        tuple(failures),
        tuple(one for one in actions if one.is_priced and one.is_proved),
        tuple(one for one in actions if one.is_priced and not one.is_proved),
        tuple(one for one in actions if not one.is_priced),
        tuple((one.label, same.label) for one, same in again.items()),
    )


def _examined(
    texts: Sequence[str | ModuleFile], settings: Settings, jobs: int
) -> Iterator[Examined | Unexamined]:
    work = partial(examine, settings=settings)
    files = [text for text in texts if isinstance(text, str) and text != "-"]
    if jobs <= 1 or len(files) <= 1:
        for text in texts:
            yield from work(text)
        return
    for text in texts:  # one process unpacks a folder once
        if not isinstance(text, str) or text == "-":
            yield from work(text)
    # What takes longest begins first, so that no process is left alone with it at the end.
    order = sorted(files, key=_size, reverse=True)
    with Pool(work, min(jobs, len(order))) as pool:
        for _, results in pool.run([[file] for file in order], _died):
            for several in results:
                yield from several


def _size(file: str) -> int:
    try:
        return os.path.getsize(file)
    except OSError:
        return 0


def _died(file: str | ModuleFile, status: int | None) -> tuple[Unexamined, ...]:
    place = file if isinstance(file, str) else file.label
    return (Unexamined(place, f"the process examining it died with exit status {status}"),)
