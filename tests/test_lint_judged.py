"""What findings on programs that nobody tuned the rules to were worth: tests/data/lint/judged.csv.

One row for each finding of the rules that are on by default, in modules of `corpus/programs/ordinary.py` for three platforms,
of `unseen.py` and `unseen_more.py`, which use other libraries,
of the chapters `fourth_*.py` and `fifth_*.py`, which use JAX alone,
of a sixth sample of such programs, not kept here: 55 findings on 47 programs were judged as the rules were, 42 true and
13 useless; the rows are those that the rules still find, mended by it,
of a seventh and an eighth, not kept here either: 75 findings on 110 modules, 60 true, 11 useless and 4 false, likewise,
of a ninth and a tenth, on 175 programs and two dumps of AMD-AGI/Primus: 165 findings, 137 true, 17 useless and 11 false,
likewise, of an eleventh, on 74 programs: 66 findings, 54 true and 12 useless, likewise,
of the samples from the twelfth on, of 39 to 112 modules each, likewise: the twelfth to the twenty-third were judged as the
rules were and mended them, 601 findings, 528 true, 68 useless and 5 false; of the newest six, on 202 modules, 109 findings,
102 true and 7 useless,
of XLA's benchmarks (`xla/tools/benchmarks`, `xla/backends/cpu/benchmarks`), and in the dumps of the public repository
ASKabalan/jaxdecomp-benchmarks. Numbers were computed again by other means, what donating saves by compiling 24 modules
both ways. `true` is right and worth knowing, `useless` is right and nothing that anybody would change, `false` is wrong.
"""

from __future__ import annotations

import csv
from collections import Counter

from hlotext import lint
from tests import support

ENOUGH = 20
"""Findings from which on a share of them may be useless."""
SPREAD = 8
"""Programs that they must come from for that."""
PRECISION = 0.9


def _rows() -> list[dict[str, str]]:
    with (support.DATA / "lint" / "judged.csv").open() as file:
        return list(csv.DictReader(file))


def _program(row: dict[str, str]) -> str:
    """Where a finding comes from, whatever it was compiled for; the dumps of the benchmarks are of one program."""
    folder, _, name = row["module"].partition("/")
    return folder if folder == "jaxdecomp-benchmarks" else name.split(".")[0]


def test_rules_on_by_default_have_earned_it() -> None:
    """At least 90% of what a rule says is worth knowing; of what says little, or of few programs, everything."""
    verdicts: dict[str, Counter[str]] = {}
    programs: dict[str, set[str]] = {}
    for row in _rows():
        verdicts.setdefault(row["rule"], Counter())[row["verdict"]] += 1
        programs.setdefault(row["rule"], set()).add(_program(row))
    for code, counts in verdicts.items():
        assert lint.builtin_rules()[code].is_default, f"{code} is off, so its rows can go"
        share = counts["true"] / counts.total()
        is_much = counts.total() >= ENOUGH and len(programs[code]) >= SPREAD
        assert share >= (PRECISION if is_much else 1), code
        assert not counts["false"], code


def test_the_judgements_are_enough() -> None:
    """Three hundred findings on a hundred modules and more, 92% of them worth knowing."""
    rows = _rows()
    assert {row["verdict"] for row in rows} <= {"true", "useless", "false"}
    assert all(row["why"] for row in rows)
    assert len(rows) >= 300
    assert len({row["module"] for row in rows}) >= 100
    assert sum(row["verdict"] == "true" for row in rows) >= 0.92 * len(rows)
