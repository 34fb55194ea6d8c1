"""How long linting takes, as a ratio to reading: `python -m tests.bench.lint [FILE ...] [--folder DIR]`.

Without files the three largest of the corpus. The quickest of five turns of `parse` and `materialize` and of all rules each,
taken in turn; the aim is twice as long as reading for a module of 30 MB. With --folder also how much quicker two processes
lint all modules of a folder than one does, the best of five turns each; the aim is 1.7 times.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import hlotext as hlo
from hlotext import lint
from tests.support import corpus_files, read_text

TURNS = 5
AIM = 2.0
AIM_OF_TWO = 1.7
ALL = lint.Config(select=tuple("CDGKLMSX"))
"""Every rule, also those that are off by default."""


def measure(text: str) -> tuple[float, float, int]:
    """Seconds of reading and of all rules, and how many findings there are."""
    reading = linting = float("inf")
    found = 0
    for _ in range(TURNS):
        start = time.perf_counter()
        module = hlo.parse(text).materialize()
        middle = time.perf_counter()
        found = len(lint.run(module, ALL))
        end = time.perf_counter()
        reading, linting = min(reading, middle - start), min(linting, end - middle)
    return reading, linting, found


def measure_folder(folder: Path) -> tuple[float, float]:
    """Seconds in which one process and two lint a folder, their start included; taken in turn."""
    files = [str(path) for path in sorted(folder.iterdir())]
    best = [float("inf")] * 2
    for _ in range(TURNS):
        for jobs in (1, 2):
            start = time.perf_counter()
            for _ in lint.lint_files(files, ALL, jobs):
                pass
            best[jobs - 1] = min(best[jobs - 1], time.perf_counter() - start)
    return best[0], best[1]


def main(paths: list[Path], folder: Path | None) -> None:
    print("lint / (parse + materialize), aim at most", AIM)
    for path in paths:
        text = read_text(path).decode("utf-8", "surrogateescape")
        reading, linting, found = measure(text)
        print(
            f"{linting / reading:5.2f}  {path.name}, {len(text) / 1e6:.1f} MB: {reading:.2f} s read, "
            f"{linting:.2f} s linted, {found} found"
        )
    if folder is not None:
        one, two = measure_folder(folder)
        print(f"{one / two:5.2f}  {folder}: {one:.2f} s in one process, {two:.2f} s in two, aim {AIM_OF_TWO}")


if __name__ == "__main__":
    words = sys.argv[1:]
    given = words.index("--folder") if "--folder" in words else None
    where = Path(words[given + 1]) if given is not None else None
    files = [Path(word) for word in (words if given is None else words[:given] + words[given + 2 :])]
    largest = sorted(corpus_files(), key=lambda path: len(read_text(path)))[-3:]
    main(files or largest, where)
