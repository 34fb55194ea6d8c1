"""`python -m tests.bench [FILE ...]`: speed and memory against XLA's own C++ reader and printer, in one run.

For each file (.gz, .xz and .zst too; without files the three largest of the corpus) a table of ratios, XLA's time divided
by ours, best of five turns taken in turn with XLA. Needs jaxlib. What each row measures stands in `ROWS`.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hlotext as hlo
from tests.support import corpus_files, read_text

TURNS = 5
ROWS = {
    "open": ("parse", "parse, and the name, opcode, shape and operands of every instruction"),
    "full": ("parse", "parse, and every attribute typed"),
    "source": ("print", "str() of an untouched module"),
    "print": ("print", "the default preset"),
    "edit": ("print", "str() after one instruction was renamed"),
}
"""Row: what of XLA's it is compared with, what it is."""

MEMORY = """
import sys
text = open(sys.argv[2], encoding="utf-8", errors="surrogateescape").read()
def field(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024
if sys.argv[1] == "xla":
    from jaxlib import _hlo as reader
    read = reader.hlo_module_from_text
else:
    import hlotext
    read = lambda text: hlotext.parse(text).materialize()
open("/proc/self/clear_refs", "w").write("5")
before = field("VmRSS")
module = read(text)
print(field("VmHWM") - before)
"""
"""Growth of a fresh process's peak memory in MB; Linux only."""


def walk(module: hlo.Module) -> int:
    """Reads the head of every instruction."""
    return sum(
        len(i.operands) + len(i.name) + len(i.opcode) + (i.shape is not None) for i in module.instructions()
    )


def clock(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call takes, and what it gives."""
    gc.collect()
    started = time.perf_counter()
    value = function()
    return time.perf_counter() - started, value


def measure(text: str) -> dict[str, float]:
    """The best time of each row, and of XLA's `parse` and `print`, in seconds."""
    from jaxlib import _hlo

    best: dict[str, float] = {}

    def note(row: str, function: Callable[[], Any]) -> Any:
        seconds, value = clock(function)
        best[row] = min(best.get(row, seconds), seconds)
        return value

    for _ in range(TURNS):
        theirs = note("parse", lambda: _hlo.hlo_module_from_text(text))
        note("print_", theirs.to_string)
        del theirs
        note("open", lambda: walk(hlo.parse(text)))
        ours: hlo.Module = note("full", lambda: hlo.parse(text).materialize())
        note("source", ours.__str__)
        note("print", ours.to_text)
        ours.entry.root.name = "renamed_root_of_the_entry"
        note("edit", ours.__str__)
        del ours
    return best


def memory(reader: str, path: Path) -> float:
    """Growth of peak memory in MB, in a process of its own."""
    command = [sys.executable, "-c", MEMORY, reader, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(names: list[str]) -> None:
    paths = [Path(name) for name in names]
    for path in paths or sorted(corpus_files(), key=lambda p: p.stat().st_size)[-3:]:
        text = read_text(path).decode("utf-8", "surrogateescape")
        best = measure(text)
        size = len(text) / 1e6
        theirs = {"parse": best["parse"], "print": best["print_"]}
        print(f"{path.name}: {size:.1f} MB, {text.count(chr(10))} lines")
        print(f"  XLA parses {size / theirs['parse']:.1f} MB/s and prints {size / theirs['print']:.1f} MB/s")
        for row, (peer, what) in ROWS.items():
            print(f"  {row:7} {size / best[row]:9.1f} MB/s   ratio {theirs[peer] / best[row]:8.2f}   {what}")
        if Path("/proc/self/clear_refs").exists() and path.suffix not in (".xz", ".gz", ".zst"):
            xla, ours = memory("xla", path), memory("hlotext", path)
            print(f"  memory  {ours:9.1f} MB     ratio {xla / ours:8.2f}   peak growth; XLA {xla:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
