"""Memory equals text: after every accepted edit of a module in any style of source, its text read again is that module.

`python -m tests.styled_edits --count N` makes N accepted edits, prints each module in which memory and text differ, and says
how many differed.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

import hlotext as hlo
from hlotext.ir.nodes import compare
from hlotext.ir.nodes.module import ENTRY_LAYOUT
from tests import random_edits, source_styles
from tests.endless import Endless, bounded

REPORT_EVERY = 10_000
"""Accepted edits after which a run says how far it is."""
ENDLESS = 60
"""Seconds of processor time after which the edits of one module are given up."""


def difference(module: hlo.Module, again: hlo.Module) -> str | None:
    """Where a module and what its text says differ: entry, roots, header, schedule, instructions; None where they do not."""
    mine, theirs = random_edits.without_defaults(module), random_edits.without_defaults(again)
    if ENTRY_LAYOUT not in mine.attributes:  # a header that is printed anew shows the layout that follows
        theirs._attributes.pop(ENTRY_LAYOUT, None)
    for one, other in zip(mine.instructions(), theirs.instructions(), strict=False):
        if (
            one.shape is None
        ):  # left out, as it could not be inferred when the text was read; now it may be possible
            other._shape = None
    return compare.difference(mine, theirs)


def sequence(seed: int, edits: int, happened: Counter[str] | None = None) -> int:
    """Edits of one module in one style, both chosen by the seed; how many were accepted.

    Raises AssertionError, with the style and the edits so far, where memory and text differ.
    """
    written = source_styles.written(seed)
    editor = random_edits.Editor(written.module, seed)
    start = str(written.module)
    for _ in range(edits):
        before = len(editor.happened)
        editor.edit()
        if len(editor.happened) == before and str(editor.module) == start:
            continue
        text = str(editor.module)
        try:
            wrong = difference(editor.module, written.read(text))
        except hlo.HloSyntaxError as error:
            wrong = str(error)
        assert wrong is None, (
            f"{written.style}, after {', '.join(editor.happened)}: {wrong}\n{start}\n-----\n{text}"
        )
    if happened is not None:
        happened.update(editor.happened)
        happened.update(f"({style})" for style in written.style.split(", "))
    return len(editor.happened)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="accepted edits to make")
    parser.add_argument("--seed", type=int, default=0, help="where seeds begin")
    parser.add_argument("--edits", type=int, default=8, help="edits of each module")
    parser.add_argument("--most", type=int, default=20, help="differences to print")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    given = parser.parse_args(arguments)
    done = wrong = 0
    happened: Counter[str] = Counter()
    seed = given.seed
    began = time.monotonic()
    reported = REPORT_EVERY
    while done < given.count and time.monotonic() - began < given.seconds:
        if done >= reported:  # a long run that is ended early has said something
            print(f"{done} edits of {seed - given.seed} modules so far, {wrong} differences", flush=True)
            reported += REPORT_EVERY
        try:
            with bounded(ENDLESS):
                done += sequence(seed, given.edits, happened)
        except (Exception, Endless) as error:
            wrong += 1
            if wrong <= given.most:
                shown = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
                print(f"==== seed {seed}: {shown}", flush=True)
        seed += 1
    for name, count in sorted(happened.items()):
        print(f"{count:8} {name}")
    print(f"{done} edits of {seed - given.seed} modules, {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
