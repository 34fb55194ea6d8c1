"""A target for libFuzzer, which follows what the code does.

`python -m tests.fuzz.atheris_target FOLDER -max_total_time=3600`

Needs `pip install atheris`. FOLDER is filled with the seeds where it does not exist; further arguments are libFuzzer's. What
fails is written to a file `crash-...`, which becomes a file of tests/data/err.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["hlotext"]):
    from tests.fuzz import mutate, oracle, seeds


def check(data: bytes) -> None:
    """What libFuzzer calls with each text."""
    oracle.check(data)


def damage(data: bytes, longest: int, seed: int) -> bytes:
    """Half of the time libFuzzer's own mutations, half of the time those that know what HLO looks like."""
    r = random.Random(seed)
    if r.random() < 0.5:
        mutated: bytes = atheris.Mutate(data, longest)
        return mutated
    return r.choice(mutate.DAMAGES)(r, data, seeds.small())[:longest]


def main(arguments: list[str]) -> None:
    """Runs for as long as libFuzzer is told to."""
    if len(arguments) > 1 and not (folder := Path(arguments[1])).exists():
        folder.mkdir(parents=True)
        for number, text in enumerate(seeds.small()):
            (folder / f"seed-{number}").write_bytes(text)
    atheris.Setup(arguments, check, custom_mutator=damage)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
