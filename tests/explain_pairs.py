"""One recorded step of every pass of XLA: the shortest that changed something.

    python -m tests.explain_pairs FOLDER      writes tests/data/explain_pairs.json.xz

FOLDER is what `python -m tests.pass_pairs` takes.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path

import attrs

from tests.support import ROOT

FILE = ROOT / "tests" / "data" / "explain_pairs.json.xz"
LONGEST = 60_000


@attrs.frozen
class Step:
    """What a pass was given, and what it made of that."""

    name: str
    platform: str
    before: str
    after: str
    log: str


def steps() -> list[Step]:
    """The steps that the tests run."""
    return [Step(**row) for row in json.loads(lzma.decompress(FILE.read_bytes()))]


def main(folder: str) -> None:
    """Writes the file."""
    best: dict[str, Step] = {}
    for row in json.loads((Path(folder) / "index.json").read_text()):
        if not row.get("after"):
            continue
        before, after = (Path(folder) / row["before"], Path(folder) / row["after"])
        log = Path(folder) / row["before"].replace(".before.", ".steps.")
        step = Step(
            row["pass"],
            row["platform"],
            before.read_text(),
            after.read_text(),
            log.read_text() if log.exists() else "",
        )
        known = best.get(step.name)
        if len(step.before) <= LONGEST and (known is None or len(step.before) < len(known.before)):
            best[step.name] = step
    rows = json.dumps([attrs.asdict(step) for step in best.values()], indent=0)
    FILE.write_bytes(lzma.compress(rows.encode(), preset=9))
    print(f"{len(best)} passes, {len(rows)} bytes, {FILE.stat().st_size} packed")


if __name__ == "__main__":
    main(*sys.argv[1:])
