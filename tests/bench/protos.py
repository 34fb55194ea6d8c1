"""Protos against text: `python -m tests.bench.protos [FILE ...]`; without files the three largest of the corpus.

For each file (text, packed ones too) microseconds for each instruction, best of five turns taken in turn: reading the text,
reading the proto of the same module, printing it by the default preset, writing its proto; then text's time divided by the
proto's. Last the same of the sums over all files. Elided constants are zeros in the proto. Seconds of CPU, so that other
programs matter less.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hlotext as hlo
from tests.support import corpus_files, read_text

TURNS = 5


def clock(function: Callable[[], Any]) -> float:
    """Seconds of CPU that a call takes."""
    gc.collect()
    started = time.process_time()
    function()
    return time.process_time() - started


def measure(path: Path) -> dict[str, float]:
    """Prints the row of one file; gives the seconds of each way."""
    text = read_text(path).decode("utf-8", "surrogateescape")
    module = hlo.parse(text)
    proto = module.to_proto(fill_elided=True)
    module = hlo.proto.read_module(proto)
    count = sum(1 for _ in module.instructions())
    ways: dict[str, Callable[[], Any]] = {
        "text": lambda: hlo.parse(text),
        "proto": lambda: hlo.proto.read_module(proto),
        "print": module.to_text,
        "write": module.to_proto,
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(TURNS):
        for name, way in ways.items():
            best[name] = min(best[name], clock(way))
    shown = "  ".join(f"{name} {seconds / count * 1e6:6.2f}" for name, seconds in best.items())
    reading, writing = best["text"] / best["proto"], best["print"] / best["write"]
    print(
        f"{path.name}: {count:,} instructions  {shown}  reading {reading:.2f}x  writing {writing:.2f}x",
        flush=True,
    )
    return best


def print_sums(rows: list[dict[str, float]]) -> None:
    """Prints the sums over all files, and how the ratios of reading are spread over them."""
    sums = {name: sum(row[name] for row in rows) for name in rows[0]}
    ratios = sorted(row["text"] / row["proto"] for row in rows)
    spread = "  ".join(
        f"{share}%: {ratios[share * (len(ratios) - 1) // 100]:.2f}x" for share in (0, 5, 25, 50, 75, 95, 100)
    )
    print(f"reading by file: {spread}; {sum(ratio < 1 for ratio in ratios)} of {len(ratios)} below 1")
    print(
        f"sum of {len(rows)} files: {'  '.join(f'{name} {seconds:.3f} s' for name, seconds in sums.items())}"
        f"  reading {sums['text'] / sums['proto']:.2f}x  writing {sums['print'] / sums['write']:.2f}x"
    )


if __name__ == "__main__":
    files = list(map(Path, sys.argv[1:]))
    chosen = files or sorted(corpus_files(), key=lambda path: -len(read_text(path)))[:3]
    print_sums([measure(file) for file in chosen])
