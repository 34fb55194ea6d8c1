"""The tool that mutates the sources: every kind of change, and a list of equivalent mutants that is up to date."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from tests.mutants import sites
from tests.mutants.__main__ import EQUIVALENT

TEXT = '''
LIMIT = 5
NAMES = {"a", "b"}

def f(x, y=3):
    """Not changed: 1 < 2."""
    if x < LIMIT and not y:
        raise ValueError(x + 1)
    for name in NAMES:
        x.append(f"é{name}")
        continue
    return 7 if y in "ü" else x + y
'''


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[sites.Mutant]:
    monkeypatch.setattr(sites, "PACKAGE", tmp_path)
    path = tmp_path / "f.py"
    path.write_text(TEXT)
    return sites.sites(path)


def test_kinds_of_mutants(found: list[sites.Mutant]) -> None:
    assert [mutant.key.removeprefix("f.py: ") for mutant in found] == [
        "5 -> (6)",
        '{"a", "b"} -> ({\'b\'})',
        "x < LIMIT and not y -> (x < LIMIT or not y)",
        "x < LIMIT -> (x <= LIMIT)",
        "not y -> (y)",
        'x.append(f"é{name}") -> pass',
        "continue -> pass",
        'return 7 if y in "ü" else x + y -> return None',
        "7 if y in \"ü\" else x + y -> (x + y if y in 'ü' else 7)",
        "y in \"ü\" -> (y not in 'ü')",
        "7 -> (8)",
        "x + y -> (x - y)",
    ]


def test_each_mutant_changes_its_place_alone(found: list[sites.Mutant]) -> None:
    for mutant in found:
        changed = mutant.apply(TEXT)
        ast.parse(changed)
        first, last = mutant.start[0], mutant.end[0]
        assert changed.splitlines()[: first - 1] == TEXT.splitlines()[: first - 1]
        assert changed.splitlines()[last:] == TEXT.splitlines()[last:]


def test_lines_that_use_a_constant_stand_for_it(found: list[sites.Mutant]) -> None:
    assert [mutant.lines for mutant in found[:2]] == [(7,), (9,)]


def test_equivalent_mutants_exist() -> None:
    for key, reason in tomllib.loads(EQUIVALENT.read_text()).items():
        assert key in {mutant.key for mutant in sites.sites(sites.PACKAGE / key.split(":")[0])}, key
        assert reason
