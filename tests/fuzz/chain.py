"""The whole chain: `python -m tests.fuzz.chain --tiny --count 1000000`, or `--whole` for each text through all of it.

A case is one damaged text through one drawn stage of `tests.stages`: read, printed, edited, rewritten by a pass, or given to
a command. With `--whole` a text goes through `stages.chain`: one module through prints, edits and all passes one after
another, and the text through each command. Every case follows from the seed and its number. Wrong are exceptions, internal
errors, more than a second of processor time for 100 kB, and control characters that reach the output.
"""

from __future__ import annotations

import argparse
import collections
import gc
import random
import signal
import sys
import time
from pathlib import Path

from tests import stages
from tests.endless import Endless, watching
from tests.fuzz import mutate, seeds

SECONDS = 1.0
"""Of processor time for each 100,000 bytes, and for what is less."""
ENDLESS = 30.0
REPORT_EVERY = 10_000
KEPT = 5
"""Texts that are kept of each kind of finding."""
TINY_NEST = 60
"""How often a bracket is repeated in tiny texts."""
_PLAIN = str.maketrans("", "", "\n\t")


def examine(stage: stages.Stage, data: bytes) -> str:
    """What is wrong with what a stage does with a text, in words; nothing where all is right."""
    signal.setitimer(signal.ITIMER_VIRTUAL, ENDLESS)
    started = time.process_time()
    try:
        shown = stage.run(data)
    except Endless:
        return f"endless: {stage.name}"
    except RecursionError:
        return f"recursion: {stage.name}"
    except Exception as error:
        return f"{type(error).__name__}: {stage.name}: {' '.join(str(error).split())[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    seconds = time.process_time() - started
    if seconds > SECONDS * max(1, len(data) / 100_000):
        return f"slow: {stage.name}: {seconds:.1f} s"
    if not shown.translate(_PLAIN).isprintable():
        return f"control characters: {stage.name}"
    return ""


class Run:
    """What a run has done and found."""

    def __init__(self, out: Path, seed: int) -> None:
        self.out = out
        self.seed = seed
        self.texts = 0
        self.done: collections.Counter[str] = collections.Counter()
        """Cases of each stage."""
        self.found: collections.Counter[str] = collections.Counter()
        """Findings of each kind."""

    def case(self, number: int, stage: stages.Stage, data: bytes) -> None:
        """One text through one stage; what is wrong is printed, and the first few texts of its kind are kept."""
        self.done[stage.name] += 1
        problem = examine(stage, data)
        if not problem:
            return
        print(f"{number}: {problem}", flush=True)
        kind = ": ".join(problem.split(": ")[:2])
        self.found[kind] += 1
        if self.found[kind] <= KEPT:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / f"chain-{self.seed}-{number}.hlo").write_bytes(data)

    def __str__(self) -> str:
        counts = self.done.values()
        return (
            f"{self.texts:,} texts, {sum(counts):,} cases over {len(counts)} stages "
            f"({min(counts):,} to {max(counts):,} each), {self.found.total()} findings, "
            f"{time.process_time():.0f} s of processor time"
        )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.chain", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="cases; with --whole texts")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", action="store_true", help="each text through the whole chain")
    parser.add_argument("--tiny", action="store_true", help="texts of a few lines")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    options = parser.parse_args(arguments)
    texts = seeds.tiny() if options.tiny else seeds.small()
    nest = TINY_NEST if options.tiny else mutate.LONGEST_NEST
    for stage in stages.STAGES:
        stage.run(texts[0])  # what is loaded when first needed does not count
    gc.collect()
    gc.freeze()  # nor does a collection of what was there before
    run = Run(options.out, options.seed)
    with watching():
        for number in range(options.first, options.first + options.count):
            data = mutate.case(texts, options.seed, number, nest)
            draw = random.Random(f"{options.seed}:{number}")
            for stage in stages.chain(data, draw) if options.whole else (draw.choice(stages.STAGES),):
                run.case(number, stage, data)
            run.texts += 1
            if run.texts % (REPORT_EVERY // 50 if options.whole else REPORT_EVERY) == 0:
                print(f"case {number} done: {run}", flush=True)
    print(f"{run}, seed {options.seed} from {options.first} on, {len(texts):,} texts to start from")
    print("cases of each stage: " + ", ".join(f"{name} {count:,}" for name, count in run.done.items()))
    return 1 if run.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
