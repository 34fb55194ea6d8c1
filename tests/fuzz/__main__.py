"""Runs mutations for long: `python -m tests.fuzz --count 1000000`. Findings go to a folder, figures to standard output."""

from __future__ import annotations

import argparse
import collections
import hashlib
import signal
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

import hlotext as hlo
from tests import endless
from tests.endless import Endless, watching
from tests.fuzz import mutate, oracle, seeds

SLOW = 1.0
"""Seconds of processor time that reading may take."""
ENDLESS = 30.0
"""Seconds of processor time after which a case is given up."""
MOST_MEMORY = 50
"""Times the size of the input that reading may take at its peak, beyond `FREE_MEMORY`."""
FREE_MEMORY = 1 << 20
"""Bytes that do not count: what reading takes for the smallest text."""
KEPT = 20
"""Inputs that are kept of each kind of finding."""
REPORT_EVERY = 10_000


@attrs.define
class Figures:
    """What a run has seen."""

    cases: int = 0
    fine: int = 0
    """Texts that are HLO."""
    slowest: float = 0.0
    """Seconds of processor time for everything that is done with a case."""
    most_memory: float = 0.0
    """Times the size of the input, beyond `FREE_MEMORY`."""
    findings: collections.Counter[str] = attrs.field(factory=collections.Counter)

    def __str__(self) -> str:
        return (
            f"{self.cases:,} cases, {self.fine:,} of them HLO, {self.findings.total()} findings, "
            f"slowest {self.slowest:.2f} s, most memory {self.most_memory:.0f} times the size"
        )


def examine(data: bytes, figures: Figures, *, with_memory: bool) -> str:
    """Does with a text all that the oracle does; gives what is wrong, in words, or nothing."""
    figures.cases += 1
    before = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    try:
        figures.fine += oracle.check(data, styles=oracle.STYLES[:2])
    except (Exception, Endless) as error:
        frames = traceback.extract_tb(error.__traceback__)
        last = next(frame for frame in reversed(frames) if frame.filename not in (__file__, endless.__file__))
        place = f"{Path(last.filename).name}:{last.lineno}"
        return f"{type(error).__name__} at {place}: {str(error)[:150]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        figures.slowest = max(figures.slowest, time.process_time() - before)
    if time.process_time() - before > SLOW and (spent := _seconds(lambda: _read(data))) > SLOW:
        return f"slow: {spent:.1f} s for {len(data)} bytes"
    if with_memory:
        peak = _peak_of(lambda: _read(data)) - FREE_MEMORY
        figures.most_memory = max(figures.most_memory, peak / max(len(data), 1))
        if peak > MOST_MEMORY * len(data):
            return f"memory: {peak} bytes for {len(data)}"
    return ""


def _read(data: bytes) -> None:
    hlo.parse_tolerant(data)
    try:
        hlo.parse(data)
    except hlo.HloSyntaxError:
        return


def _seconds(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _peak_of(work: Callable[[], None]) -> int:
    """Bytes that work takes at its peak."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--longest",
        type=int,
        default=seeds.LONGEST,
        help="bytes of the texts that are damaged, but for large ones",
    )
    parser.add_argument(
        "--large", type=int, default=500, help="one of so many cases is a whole file; 0: none"
    )
    parser.add_argument(
        "--memory", type=int, default=50, help="memory is measured of one of so many; 0: never"
    )
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    options = parser.parse_args(arguments)
    small = [seed for seed in seeds.small() if len(seed) <= options.longest]
    large = seeds.large()
    oracle.check(small[0], styles=oracle.STYLES[:2])  # what is loaded when first needed does not count
    figures, started = Figures(), time.monotonic()
    with watching():
        _run(options, small, large, figures, started)
    print(figures)
    return 1 if figures.findings else 0


def _run(
    options: argparse.Namespace,
    small: Sequence[bytes],
    large: Sequence[bytes],
    figures: Figures,
    started: float,
) -> None:
    for number in range(options.first, options.first + options.count):
        texts = large if options.large and number % options.large == 0 else small
        data = mutate.case(texts, options.seed, number)
        problem = examine(data, figures, with_memory=bool(options.memory) and number % options.memory == 0)
        if problem:
            print(f"{number}: {problem}", flush=True)
            kind = problem.split(": ")[0]
            figures.findings[kind] += 1
            if figures.findings[kind] <= KEPT:
                options.out.mkdir(parents=True, exist_ok=True)
                digest = hashlib.sha256(data).hexdigest()[:12]
                (options.out / f"{options.seed}-{number}-{digest}.hlo").write_bytes(data)
        if figures.cases % REPORT_EVERY == 0:
            print(f"{figures}, {figures.cases / (time.monotonic() - started):.0f} cases/s", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
