"""Many files at once: which files of a dump directory to look at, and looking at them in several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from hlotext import proto
from hlotext.dumps.texts import ModuleFile, compilation_of, module_texts, no_module
from hlotext.ir.nodes.source import Source
from hlotext.lint.config import Config
from hlotext.lint.engine import Linted, failed_file, lint_proto, lint_source
from hlotext.lint.registry import RuleError
from hlotext.lint.workers import Pool
from hlotext.syntax.source.inputs import InputError, decode, is_binary, is_foreign, read_data

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation


def _is_for_rules(text: ModuleFile) -> bool:
    """True for final modules, as text or proto, and for those that no compiler named."""
    file = text.file
    return file is None or file.kind == "other" or file.name.state == "hlo-final"


def texts_in(place: str) -> list[str | ModuleFile]:
    """Returns the optimized modules in a folder or archive, as paths or, in an archive, as `ModuleFile`s.

    Raises InputError if it cannot be read, or has none.
    """
    texts = list(module_texts([place]))
    if not texts:
        raise no_module(place)
    found = list(filter(_is_for_rules, texts))
    if not found:
        raise InputError(
            f"no module after optimization in {place}, only earlier stages; to lint one, name it: {texts[-1].label}"
        )
    return [text if text.archive is not None else text.path for text in found]


def modules_in(folder: Path) -> list[Path]:
    """Returns the paths of the optimized modules in a folder and its subfolders; empty if there are none.

    Files that XLA did not name are included if they contain a module. Raises InputError if there is no such folder.
    """
    found = (text for text in module_texts([folder]) if text.archive is None)
    return [Path(text.path) for text in found if _is_for_rules(text)]


@attrs.frozen
class FileResult:
    """Result of linting one file: its findings, or the reason why it could not be read."""

    file: str
    linted: Linted | None
    """The result, or None if the file could not be read."""
    problem: str = ""
    """Reason why the file could not be read."""


def lint_file(config: Config, file: str | ModuleFile) -> FileResult:
    """Lints a file: a path, `-`, or a `ModuleFile` (a plain path, or a file in a folder or an archive).

    Findings are detached from nodes so that they can be pickled. A file that cannot be read is a result with a
    `problem`. Raises RuleError if a plugin rule or a rule file cannot be used.
    """
    name = file if isinstance(file, str) else file.label
    try:
        if isinstance(file, str):
            linted = _lint_place(file, config)
        else:
            linted = lint_source(file.source(), config, compilation_around(file))
    except (InputError, ImportError) as error:  # a proto, and the extra for it is not installed
        return FileResult(name, None, str(error))
    except RuleError:
        raise
    except Exception as error:
        return FileResult(name, failed_file(name, error))
    findings = tuple(finding.detached() for finding in linted.findings)
    return FileResult(name, attrs.evolve(linted, findings=findings))


def _lint_place(file: str, config: Config) -> Linted:
    """Lints a path or `-`: a text, or a proto, which is told by its content."""
    data, name = read_data(file)
    if isinstance(data, str):
        return lint_source(Source(data, name), config, compilation_around(file))
    if is_foreign(data):
        data = proto.converted(data, name)
    if is_binary(data):
        return lint_proto(data, name, config)
    return lint_source(Source(decode(data), name), config, compilation_around(file))


def compilation_around(file: str | ModuleFile) -> Compilation | None:
    """Returns the compilation whose final HLO a file is; None if there is none."""
    try:
        return compilation_of(file) if file != "-" else None
    except (InputError, OSError):
        return None


def lint_files(texts: Sequence[str | ModuleFile], config: Config, jobs: int = 1) -> Iterator[FileResult]:
    """Lints files in up to `jobs` processes. Yields results in the order of the files, each as soon as it is available.

    If any file is in an archive, all files are linted in this process, which unpacks each archive once. Files and errors
    are those of `lint_file`.
    """
    if isinstance(texts, str | os.PathLike):
        raise TypeError(f"lint_files() takes a list of paths; put it in a list: [{str(texts)!r}]")
    files = [text for text in texts if isinstance(text, str)]
    if jobs <= 1 or len(texts) <= 1 or len(files) < len(texts):
        yield from map(partial(lint_file, config), texts)
        return
    # Rules and tables are loaded for the first file, before the processes part, which share what is there by then.
    yield lint_file(config, files[0])
    batches = _batches(files[1:], jobs)
    # What takes longest begins first, so that no process is left alone with it at the end.
    order = sorted(range(len(batches)), key=lambda number: -batches[number].weight)
    done: dict[int, list[FileResult]] = {}
    following = 0
    with Pool(partial(lint_file, config), min(jobs, len(batches))) as pool:
        for place, results in pool.run([batches[number].files for number in order], _died):
            done[order[place]] = results
            while following in done:
                yield from done.pop(following)
                following += 1


def _died(file: str, status: int | None) -> FileResult:
    """The result for a file on which its process died."""
    how = f"with exit status {status}"
    if status is not None and status < 0:
        try:
            how = f"of {signal.Signals(-status).name}"
        except ValueError:
            how = f"of signal {-status}"
    return FileResult(file, None, f"{file}: the process that linted it died {how}")


@attrs.define
class _Batch:
    """Files that one process lints before it answers."""

    files: list[str] = attrs.field(factory=list)
    weight: int = 0
    """Estimated work, in multiples of a file light enough to be queued."""


_BATCHES_PER_JOB = 8
_PACKED = 12
"""Approximate ratio of unpacked to packed size."""


def _batches(files: Sequence[str], jobs: int) -> list[_Batch]:
    """The files in their order, in batches of about equal size; a file that is larger makes one of its own."""
    sizes = [_size(file) for file in files]
    share = max(1, sum(sizes) // (_BATCHES_PER_JOB * jobs))
    found: list[_Batch] = []
    filled = share
    for file, size in zip(files, sizes, strict=True):
        if filled + size > share:
            found.append(_Batch(weight=size // (2 * share)))
            filled = 0
        found[-1].files.append(file)
        filled += size
    return found


def _size(file: str) -> int:
    """About how many bytes of text a file holds; one more, so that nothing is free."""
    try:
        size = os.path.getsize(file)
    except OSError:
        return 1
    return 1 + size * (_PACKED if file.endswith((".gz", ".xz", ".zst")) else 1)
