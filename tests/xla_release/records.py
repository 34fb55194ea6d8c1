"""What was measured of each release: `tests/data/releases.json`, from which the documentation's table is made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support import DATA
from tests.xla_release.survey import Survey, total

FILE = DATA / "releases.json"


def load() -> dict[str, dict[str, Any]]:
    """By release, then by platform: `scores` (answer to [right, of]), the same by program in `programs`, and `passes`."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def numbers(version: str) -> tuple[int, ...]:
    """A version to sort by."""
    return tuple(map(int, version.split(".")))


def news(version: str, platform: str, found: Survey) -> Iterator[tuple[str, str]]:
    """(name, kind) of passes that no other release has, and of answers that are right less often than for the one before.

    Compared are the programs that both were asked of; rows from before they were kept apart have none.
    """
    others = {v: row[platform] for v, row in load().items() if v != version and platform in row}
    if not others:
        return
    known = {name for row in others.values() for name in row["passes"]}
    for name in sorted(found.passes - known):
        yield name, "pass"
    earlier = [v for v in others if numbers(v) < numbers(version)]
    before = others[max(earlier or others, key=numbers)].get("programs", {})
    both = before.keys() & found.scores.keys()  # shares of other programs say nothing
    now = total(found.scores, both)
    for answer, (right, of) in total(before, both).items():
        if answer in now and now[answer][0] * of < right * now[answer][1]:
            yield f"{answer}: {now[answer][0]} of {now[answer][1]}, was {right} of {of}", "model"


def write(version: str, platform: str, found: Survey) -> None:
    """Keeps the figures of a release on a platform."""
    rows = load()
    rows.setdefault(version, {})[platform] = {
        "scores": total(found.scores, found.scores),
        "programs": found.scores,
        "passes": sorted(found.passes),
    }
    ordered = {v: dict(sorted(rows[v].items())) for v in sorted(rows, key=numbers)}
    pairs_on_a_line = re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", json.dumps(ordered, indent=1))
    FILE.write_text(pairs_on_a_line + "\n", encoding="utf-8")
