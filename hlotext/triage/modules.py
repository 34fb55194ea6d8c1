"""Examines the modules of files, folders and archives in several processes."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs

from hlotext.dumps.outlines import copies
from hlotext.dumps.texts import ModuleFile, module_texts, no_module
from hlotext.lint.workers import Pool
from hlotext.syntax.source.inputs import InputError
from hlotext.triage.actions import Action, actions_of
from hlotext.triage.examined import Examined, Settings, Unexamined, examine

_ARRAY = re.compile(r"(?P<type>\w+)\[(?P<sizes>[\d,]*)\]")


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
    unoptimized: tuple[tuple[str, str], ...] = ()
    """Skipped files with HLO before optimization, each with a file of the same module after it, on whatever platform."""

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
    the output of `compiled.as_text()`, the dumped file is preferred. HLO before optimization is left out if the same
    module after optimization is there. Files that cannot be read are listed in `failures`.

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
    early = _optimized_too(modules)
    skipped = {(one.place, one.name) for one, _ in early}
    modules = [one for one in modules if (one.place, one.name) not in skipped]
    failures.sort(key=lambda one: one.place)
    actions = actions_of(modules)
    return Triage(
        tuple(modules),
        tuple(failures),
        tuple(one for one in actions if one.is_priced and one.is_proved),
        tuple(one for one in actions if one.is_priced and not one.is_proved),
        tuple(one for one in actions if not one.is_priced),
        tuple((one.label, same.label) for one, same in again.items()),
        tuple((one.place, final.place) for one, final in early),
    )


def _optimized_too(modules: Iterable[Examined]) -> list[tuple[Examined, Examined]]:
    """Pairs modules before optimization with the same ones after it: of the same name, with arguments of the same shapes.

    Partitioning divides dimensions, so those of an argument after it are divisors.
    """
    finals: dict[str, list[Examined]] = defaultdict(list)
    early: list[Examined] = []
    for one in modules:
        if one.is_bound:
            finals[one.name].append(one)
        else:
            early.append(one)
    found = []
    for one in early:
        same = next((final for final in finals.get(one.name, ()) if _is_part(final, one)), None)
        if same is not None:
            found.append((one, same))
    return found


def _is_part(final: Examined, whole: Examined) -> bool:
    """True if the arguments of a module after optimization may be shards of those before it."""
    if len(final.arguments) != len(whole.arguments):
        return False
    for (_, part), (_, all_) in zip(final.arguments, whole.arguments, strict=True):
        mine, of_all = _ARRAY.match(part), _ARRAY.match(all_)
        if mine is None or of_all is None or mine["type"] != of_all["type"]:
            return False
        sizes = [[int(size) for size in found["sizes"].split(",") if size] for found in (mine, of_all)]
        if len(sizes[0]) != len(sizes[1]):
            return False
        if any(total % size if size else total for size, total in zip(*sizes, strict=True)):
            return False
    return True


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
