"""Computations of final CPU texts, run by themselves: `python -m tests.bench.run_parts [FILE|FOLDER ...] [--most N]`.

Every computation of each text but its entry becomes a module of its own (fusions, reducers, bodies and conditions of loops,
branches) and is executed in a child process, as `hlotext run -c NAME` does it. Prints the share that runs, and for what does
not how often which reason was given. Without a name the final CPU texts of `corpus/` are taken. Exit status: 1 if fewer than
90 percent run, if one ends without a reason, or if the caller meets anything but `NotExecutable`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hlotext as hlo
from hlotext.execution import NotExecutable, Runner, plain, random_arrays
from hlotext.rewrite.extraction import computation_module
from tests import support

GOAL = 0.9


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", type=Path)
    parser.add_argument("--most", type=int, default=30, help="texts at most")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    texts = 0
    start = time.perf_counter()
    runners: dict[int, Runner] = {}
    for path in list(_texts(given.places))[: given.most]:
        module = hlo.load(path)
        texts += 1
        for computation in module.computations:
            if computation.is_entry or computation.is_sugared:
                continue
            why = _ran(computation, runners, given.timeout)
            counts[_reason(why)] += 1
            if why and given.verbose:
                print(f"{path.name}: {computation.name}: {why}")
    for runner in runners.values():
        runner.__exit__()
    total = counts.total()
    print(f"{texts} texts, {total:,} computations, {time.perf_counter() - start:.0f} s: {counts['']:,} run")
    for reason, count in counts.most_common():
        if reason:
            print(f"  {count:>5}  {reason}")
    is_bad = any(reason.startswith("!") for reason in counts)
    return 0 if total and counts[""] >= GOAL * total and not is_bad else 1


def _texts(places: list[Path]) -> Iterator[Path]:
    for place in places or [support.CORPUS / "cpu"]:
        if place.is_file():
            yield place
        else:
            yield from sorted(
                p for p in place.rglob("*") if p.is_file() and p.name.endswith((".txt", ".hlo", ".txt.xz"))
            )


def _ran(computation: hlo.Computation, runners: dict[int, Runner], timeout: float) -> str:
    """Why a computation does not run; empty where it does. Marked with `!` for anything that is no answer."""
    try:
        text = plain(computation_module(computation))
        arguments = random_arrays(text.taken)
        stacked = arguments if text.devices == 1 else [_stacked(a, text.devices) for a in arguments]
        if text.devices not in runners:
            runners[text.devices] = Runner(text.devices, timeout)
        ran = runners[text.devices].run(text, [stacked])
    except NotExecutable as error:
        return str(error) or "! no reason"
    except Exception:
        return "! " + traceback.format_exc().strip().splitlines()[-1]
    return "" if ran.error is None else (ran.error or "! no reason")


def _stacked(array: Any, count: int) -> Any:
    """The same array for each device."""
    return np.stack([array] * count)


def _reason(why: str) -> str:
    """A reason without names and numbers."""
    return re.sub(r"%?[\w\-]+[.\d]+[\w.]*|\d+", "N", why)[:140]


if __name__ == "__main__":
    sys.exit(main())
