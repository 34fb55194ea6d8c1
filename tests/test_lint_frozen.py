"""The linter on modules that stay as they are: programs in ordinary style, compiled by XLA 0.12 for CPU, GPU and TPU.

Each finding has a verdict in `tests/data/lint/frozen/verdicts.csv`: `true` is right and worth knowing, `useless` is right and
nothing that anybody would change, `false` is wrong. Some programs were written and judged by people who saw no rule.
Since then rules were developed on all of them, so that the figures hold what was reached and measure nothing. A row
comes or goes only with a line in the changelog.
"""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from hlotext import lint
from hlotext.syntax.source.inputs import read_source
from tests import support

FOLDER = support.DATA / "lint" / "frozen"
MODULES = sorted(path.name.removesuffix(".txt.xz") for path in FOLDER.glob("*.txt.xz"))


def _rows() -> list[dict[str, str]]:
    with (FOLDER / "verdicts.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("module", MODULES)
def test_findings_are_those_that_were_judged(module: str) -> None:
    judged = Counter(
        (row["severity"], row["rule"], row["line"]) for row in _rows() if row["module"] == module
    )
    found = lint.lint_source(read_source(FOLDER / f"{module}.txt.xz")).findings
    lines = [(one.severity.value, one.code, str(one.frame.line) if one.frame else "") for one in found]
    assert Counter(lines) == judged


def test_most_findings_are_worth_knowing_and_none_is_false() -> None:
    rows = _rows()
    verdicts = Counter(row["verdict"] for row in rows)
    assert set(verdicts) <= {"true", "useless"}
    warnings = [row for row in rows if row["severity"] == "warning"]
    assert sum(row["verdict"] == "true" for row in warnings) >= 0.95 * len(warnings)
    assert verdicts["true"] >= 0.85 * len(rows)
    assert all(row["why"] for row in rows)
    assert {row["module"] for row in rows} <= set(MODULES)


def _savings() -> list[dict[str, str]]:
    with (FOLDER / "savings.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", _savings(), ids=lambda row: f"{row['module']}-{row['rule']}")
def test_savings_are_those_of_the_repaired_program(row: dict[str, str]) -> None:
    """Within a quarter of what the program loses by the same model where it was compiled with the repair."""
    found = lint.lint_source(read_source(FOLDER / f"{row['module']}.txt.xz")).findings
    (one,) = [finding for finding in found if finding.code == row["rule"]]
    if row["microseconds"]:
        assert (one.seconds or 0) * 1e6 == pytest.approx(float(row["microseconds"]), rel=0.25)
    if row["mib"]:
        assert (one.peak_bytes or 0) / (1 << 20) == pytest.approx(float(row["mib"]), rel=0.25)
