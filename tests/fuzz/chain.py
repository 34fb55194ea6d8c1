"""The whole chain: `python -m tests.fuzz.chain --count 1000000`, or `--whole` for every stage of each text.

A case is one damaged text through one drawn stage of `tests.stages`: read, printed, edited, rewritten by a pass, or given to
a command. Every case follows from the seed and its number. Wrong are exceptions, internal errors, more than a second of
processor time for 100 kB, and control characters that reach the output.
"""

from __future__ import annotations

import argparse
import collections
import random
import signal
import sys
import time
from pathlib import Path

from tests import stages
from tests.fuzz import mutate, seeds
from tests.fuzz.__main__ import Endless, watching

SECONDS = 1.0
"""Of processor time for each 100,000 bytes, and for what is less."""
ENDLESS = 30.0


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
    if any(not (c.isprintable() or c in "\n\t") for c in shown):
        return f"control characters: {stage.name}"
    return ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.chain", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="cases; with --whole texts")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", action="store_true", help="each text through every stage")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"))
    options = parser.parse_args(arguments)
    texts = seeds.small()
    for stage in stages.STAGES:
        stage.run(texts[0])  # what is loaded when first needed does not count
    done: collections.Counter[str] = collections.Counter()
    found: collections.Counter[str] = collections.Counter()
    with watching():
        for number in range(options.first, options.first + options.count):
            data = mutate.case(texts, options.seed, number)
            drawn = random.Random(f"{options.seed}:{number}").choice(stages.STAGES)
            for stage in stages.STAGES if options.whole else (drawn,):
                done[stage.name] += 1
                problem = examine(stage, data)
                if not problem:
                    continue
                print(f"{number}: {problem}", flush=True)
                kind = ": ".join(problem.split(": ")[:2])
                found[kind] += 1
                if found[kind] <= 5:
                    options.out.mkdir(parents=True, exist_ok=True)
                    (options.out / f"chain-{options.seed}-{number}.hlo").write_bytes(data)
            if (number + 1) % 10_000 == 0:
                print(f"{number + 1:,} texts, {found.total()} findings", flush=True)
    least, most = min(done.values()), max(done.values())
    print(
        f"{done.total():,} cases over {len(done)} stages ({least:,} to {most:,} each), {found.total()} findings"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
