"""What dump folders cost.

`python -m tests.bench.dumps FILE [LARGE]`: of FILE, a text of a few MB, a folder of 120 steps is made, each with one
computation changed, and its timeline compared with what it may cost: three times reading one step fully, 10 ms a step, and
reading what changed. Of LARGE the diff with a copy under other names, against reading both.

`python -m tests.bench.dumps --many COUNT FILE` lists a folder of so many steps of a small FILE, `--large GB FILE` one of so
many GB of it; in a process of its own, with its peak of resident memory. The folder goes afterwards.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hlotext as hlo
from hlotext import diff, dumps
from tests.support import read_text

STEPS = 120
_NAME = re.compile(r"%([A-Za-z_][\w.\-]*)")


def seconds(start: float) -> float:
    """Processor time since then: other processes do not count."""
    return time.process_time() - start


def make(text: str, folder: Path) -> None:
    """A folder of steps, of which each has one computation changed."""
    places = [match.start() for match in re.finditer(r" add\(", text)]
    steps = [
        f"module_0001.jit_f.{n:04d}.passes.after_pass-{n}.before_pass-{n + 1}.txt" for n in range(1, STEPS)
    ]
    for number, name in enumerate([*steps, "module_0001.jit_f.cpu_after_optimizations.txt"]):
        place = places[number * len(places) // STEPS]
        text = f"{text[:place]} sub{text[place + 4 :]}".replace(" sub(", " minimum(", 1)
        places = [at + 4 if at > place else at for at in places]
        (folder / name).write_text(text, encoding="utf-8")


def bench_timeline(path: Path) -> None:
    """The timeline of 120 steps, against what it may cost."""
    text = read_text(path).decode()
    start = time.process_time()
    hlo.parse(text).materialize()
    full = seconds(start)
    with tempfile.TemporaryDirectory() as folder:
        make(text, Path(folder))
        start = time.process_time()
        rows = list(dumps.open(folder).compilations[0].timeline())
        took = seconds(start)
    bound = 3 * full + 0.010 * STEPS
    changed = sum(row.changes is not None and not row.is_quiet for row in rows)
    print(
        f"timeline {path.name} ({len(text) / 1e6:.1f} MB): {took:.2f} s for {len(rows)} steps, {changed} with changes; "
        f"one read {full:.2f} s, at most {bound:.2f} s and reading what changed: {took / bound:.2f}"
    )


def bench_diff(path: Path) -> None:
    """The diff of a text with itself under other names, against reading both."""
    text = read_text(path).decode()
    start = time.process_time()
    old, new = hlo.parse(text), hlo.parse(_NAME.sub(r"%\1.z", text))
    old.materialize()
    new.materialize()
    read = seconds(start)
    start = time.process_time()
    found = diff.compare(old, new)
    is_equal = found.is_equal
    took = seconds(start)
    print(
        f"diff {path.name} ({len(text) / 1e6:.1f} MB): {took:.2f} s, equal: {is_equal}; reading both {read:.2f} s, together "
        f"{(took + read) / (read / 2):.2f} times reading one (at most 4)"
    )


def bench_folder(count: int, path: Path) -> None:
    """Listing a folder of so many steps, in another process."""
    text = read_text(path).decode()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            name = (
                f"module_0001.jit_f.{number + 1:04d}.passes.after_pass-{number}.before_pass-{number + 1}.txt"
            )
            (Path(folder) / name).write_text(text, encoding="utf-8")
        size = count * len(text)
        for command in ("list", "timeline"):
            start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-m", "hlotext", "dump", command, folder],
                capture_output=True,
                text=True,
                check=False,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(
                f"dump {command}: {count:,} files, {size / 1e9:.2f} GB: {time.perf_counter() - start:.1f} s "
                f"({after.ru_utime - before.ru_utime:.1f} s of it computing), at most {after.ru_maxrss / 1024:.0f} MB; exit "
                f"{done.returncode}, {len(done.stdout.splitlines())} lines"
            )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--many"]:
        bench_folder(int(arguments[1]), Path(arguments[2]))
    elif arguments[:1] == ["--large"]:
        path = Path(arguments[2])
        bench_folder(int(float(arguments[1]) * 1e9 / len(read_text(path))), path)
    else:
        bench_timeline(Path(arguments[0]))
        for large in arguments[1:]:
            bench_diff(Path(large))


if __name__ == "__main__":
    main(sys.argv[1:])
