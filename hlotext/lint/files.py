"""Many files at once: which files of a dump directory to look at, and looking at them in several processes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import attrs

from hlotext.lint.config import Config
from hlotext.lint.engine import Linted, lint_source
from hlotext.syntax.inputs import InputError, read_source

_LAST_STAGES = re.compile(r"after_(?:optimizations|codegen)\.(?:txt|hlo)(?:\.(?:gz|xz|zst))?$")
"""How the names of modules end that the compiler has finished with."""
_HLO = re.compile(r"\.hlo(?:\.(?:gz|xz|zst))?$")


def modules_in(folder: Path) -> list[Path]:
    """The modules after optimization in a folder and those below it, by name; without any the files called `.hlo`."""
    paths = sorted(Path(where) / name for where, _, names in os.walk(folder) for name in names)
    last = [path for path in paths if _LAST_STAGES.search(path.name)]
    return last or [path for path in paths if _HLO.search(path.name)]


@attrs.frozen
class FileResult:
    """What came of one file."""

    file: str
    linted: Linted | None
    """None for a file that could not be read."""
    problem: str = ""
    """Why it could not be read."""


def lint_file(config: Config, file: str) -> FileResult:
    """Lints one path, or `-`. Findings come without nodes, so that they can go to another process."""
    try:
        linted = lint_source(read_source(file), config)
    except InputError as error:
        return FileResult(file, None, str(error))
    findings = tuple(finding.detached() for finding in linted.findings)
    return FileResult(file, attrs.evolve(linted, findings=findings))


def lint_files(files: Sequence[str], config: Config, jobs: int = 1) -> Iterator[FileResult]:
    """Lints files in several processes; results in the order of the files, each as soon as it is there."""
    work = partial(lint_file, config)
    if jobs <= 1 or len(files) <= 1:
        yield from map(work, files)
        return
    with ProcessPoolExecutor(min(jobs, len(files))) as pool:
        yield from pool.map(work, files, chunksize=max(1, len(files) // (16 * jobs)))
