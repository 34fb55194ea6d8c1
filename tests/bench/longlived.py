"""What stays in a process that reads and lints many modules: `python -m tests.bench.longlived [--count 20000]`.

No two modules are alike: computations of the corpus with other names, notes and sizes, and tuples of 1,000 arrays that occur
once. Printed are megabytes that are resident, at the most and after `clear_caches()`, and what the caches held. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Iterator

import hlotext as hlo
from hlotext import lint
from tests import support

COUNT = 20_000
MOST, CLEARED = 400, 120
"""Megabytes that are not to be exceeded."""
LONGEST = 8_000
"""Bytes of a module of the corpus that is taken."""
_NOTE = re.compile(r'op_name="')
_SIZE = re.compile(r"f32\[(\d+),")


def resident(field: str = "VmRSS") -> int:
    """Megabytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) >> 10


def tuples(number: int) -> str:
    """A module around a tuple of 1,000 arrays of its own."""
    shapes = ", ".join(f"f32[{number},{i % 50 + 1}]{{1,0}}" for i in range(1_000))
    return f"HloModule t{number}\n\nENTRY %e (p: ({shapes})) -> ({shapes}) {{\n  ROOT %p = ({shapes}) parameter(0)\n}}\n"


def modules(count: int) -> Iterator[str]:
    """So many different texts."""
    texts = [raw.decode("utf-8", "surrogateescape") for path in support.corpus_files()
             if len(raw := support.read_text(path)) <= LONGEST]  # fmt: skip
    for number in range(count):
        if number % 10 == 0:
            yield tuples(number)
            continue
        text = _NOTE.sub(f'op_name="step_{number}/', texts[number % len(texts)])
        yield _SIZE.sub(rf"f32[{number % 1_000 + 2}\g<1>,", text).replace(
            "HloModule ", f"HloModule n{number}_", 1
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.longlived", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args(arguments)
    started, found = time.process_time(), 0
    for number, text in enumerate(modules(options.count)):
        found += len(lint.run(hlo.parse_tolerant(text).module))
        if number + 1 in (100, 1_000, 5_000, options.count):
            print(
                f"{number + 1:>7,} modules: {resident()} MB, {time.process_time() - started:.0f} s",
                flush=True,
            )
    most = resident("VmHWM")
    hlo.clear_caches()
    gc.collect()
    cleared = resident()
    print(f"{found:,} findings; at most {most} MB, {cleared} MB after clear_caches()")
    return 0 if most < MOST and cleared < CLEARED else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
