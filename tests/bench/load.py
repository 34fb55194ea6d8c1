"""What it costs to open a large file, and to touch it: `python -m tests.bench.load FILE [FILE ...]`.

For each file, which must not be packed, some rows, each measured in a process of its own: opening it lazily, then touching
the entry, or all computations; reading all of it at once; and the summary that `hlotext show` prints, by either way of
reading. Seconds since the file was opened, and the growth of the process's peak of resident memory since hlotext was
imported (Linux only).

`python -m tests.bench.load --make COPIES FILE LARGE` writes a large file: all computations of a dump in so many copies, under
other names, all but the first copy of the entry as plain computations.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import hlotext as hlo
from hlotext.analysis.summary import summarize

ROWS = {
    "open": "open",
    "entry": "open, touch the entry",
    "all": "open, touch everything",
    "whole": "read at once",
    "show": "open, summarize",
    "whole show": "read at once, summarize",
}

_REFERENCES = re.compile(r"(?<==)%[\w.\-]+|(?<=computations=\{)[^{}]+(?=\})|^%[\w.\-]+", re.MULTILINE)
_NAME = re.compile(r"%[\w.\-]+")


def peak() -> float:
    """The peak of this process's resident memory in MB."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def measure(row: str, path: str) -> tuple[float, float]:
    """Seconds and growth in MB of one row, in this process."""
    before, start = peak(), time.perf_counter()
    module = hlo.load(path, lazy="whole" not in row)
    if row == "entry":
        len(module.entry)
    elif row == "all":
        module.materialize()
    elif "show" in row:
        summarize(module)
    return time.perf_counter() - start, peak() - before


def make(copies: int, small: Path, large: Path) -> None:
    """Writes a dump with all its computations in so many copies."""
    text = small.read_text(encoding="ascii")
    head = text.index("\n\n", text.index("StackFrames\n") if "\nStackFrames\n" in text else 0)
    bodies = text[head:].rstrip("\n")
    with large.open("w", encoding="ascii") as file:
        file.write(text[:head])
        for copy in range(1, copies):
            plain = re.sub(r"^ENTRY ", "", bodies, flags=re.MULTILINE)
            file.write(_REFERENCES.sub(lambda m, c=copy: _NAME.sub(rf"\g<0>.copy{c}", m[0]), plain))  # type: ignore[misc]
        file.write(f"{bodies}\n")


def main(paths: list[str]) -> None:
    for path in paths:
        print(f"{path}: {Path(path).stat().st_size / 1e6:.1f} MB")
        for row, what in ROWS.items():
            out = subprocess.run(
                [sys.executable, "-m", "tests.bench.load", "--row", row, path],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            seconds, growth = map(float, out.split())
            print(f"{seconds:8.2f} s {growth:8.0f} MB  {what}")


if __name__ == "__main__":
    if sys.argv[1] == "--row":
        print(*measure(sys.argv[2], sys.argv[3]))
    elif sys.argv[1] == "--make":
        make(int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(sys.argv[1:])
