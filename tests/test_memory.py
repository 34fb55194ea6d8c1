"""Memory computed from the text against what XLA's compilers wrote: one folder in tests/data/memory for each compilation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import memory
from tests.support import DATA

DUMPS = sorted((DATA / "memory").iterdir())
"""The module's text, XLA's four files, what JAX's `memory_analysis` said (`facts`), and XLA's own numbering and traces
(`witness`)."""


def facts_of(dump: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dump / "facts.json").read_text())
    return found


def chip_of(dump: Path) -> str | None:
    facts = facts_of(dump)
    return facts["topology"].split(":")[0] if facts["platform"] == "tpu" else None


def module_of(dump: Path) -> hlo.Module:
    return hlo.load(next(dump.glob("*after_optimizations.txt.xz")))


@pytest.fixture(params=DUMPS, ids=lambda dump: dump.name)
def dump(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_statistics_are_those_of_jax(dump: Path) -> None:
    """Arguments, outputs, aliases, the peak, and temporaries where the text tells: the numbers of `memory_analysis()`."""
    said = facts_of(dump)["memory_analysis"]
    got = memory.assign(module_of(dump), chip=chip_of(dump)).statistics
    for field, number in said.items():
        mine = getattr(got, field, None)
        if mine is not None:
            assert (field, mine) == (field, number)
    unknown = {field for field in said if getattr(got, field, None) is None} - {
        "host_generated_code_size_in_bytes"
    }
    assert unknown <= {"generated_code_size_in_bytes", "temp_size_in_bytes"}
