"""How long verifying takes, as a ratio to reading: `python -m tests.bench.verify [FILE ...]`.

Without files the three largest of the corpus. The quickest of five turns of `parse` and `materialize` and of `verify` each,
taken in turn; the aim is 3 times as long as reading for a module of 30 MB (1.0 is as fast).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import hlotext as hlo
from tests.support import corpus_files, read_text

TURNS = 5
AIM = 3.0


def measure(text: str) -> tuple[float, float, int]:
    """Seconds of reading and of verifying, and how many diagnostics there are."""
    reading = verifying = float("inf")
    found = 0
    for _ in range(TURNS):
        start = time.perf_counter()
        module = hlo.parse(text).materialize()
        middle = time.perf_counter()
        found = len(hlo.verify(module))
        end = time.perf_counter()
        reading, verifying = min(reading, middle - start), min(verifying, end - middle)
    return reading, verifying, found


def main(paths: list[Path]) -> None:
    print("verify / (parse + materialize), aim at most", AIM)
    for path in paths:
        text = read_text(path).decode("utf-8", "surrogateescape")
        reading, verifying, found = measure(text)
        print(
            f"{verifying / reading:5.2f}  {path.name}, {len(text) / 1e6:.1f} MB: {reading:.2f} s read, "
            f"{verifying:.2f} s verified, {found} found"
        )


if __name__ == "__main__":
    largest = sorted(corpus_files(), key=lambda path: len(read_text(path)))[-3:]
    main([Path(argument) for argument in sys.argv[1:]] or largest)
