"""XLA:TPU's own cost analysis: what `compiled.cost_analysis()` said of small programs for seven chips."""

from __future__ import annotations

import json
import lzma
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext import cost
from hlotext.analysis.chips import CHIPS
from tests.support import DATA

ROWS: list[dict[str, Any]] = json.loads(lzma.decompress((DATA / "cost" / "tpu.json.xz").read_bytes()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['program']}.{row['chip']}")
def test_figures_are_those_of_libtpu(row: dict[str, Any]) -> None:
    found = cost.analyze(hlo.parse(row["text"])).as_tpu(row["chip"])
    wanted = row["cost"]
    assert found.flops == wanted.get("flops", 0)
    assert found.transcendentals == wanted.get("transcendentals", 0)
    assert found.bytes_accessed == pytest.approx(wanted.get("bytes accessed", 0), rel=1e-6)
    # A call of unknown cost takes a second away: in float32 that leaves some noise for each.
    noise = 3e-7 * found.unknown_calls
    assert found.optimal_seconds == pytest.approx(wanted.get("optimal_seconds", 0), rel=1e-5, abs=noise)
    assert 0 <= found.least_seconds == pytest.approx(found.optimal_seconds + found.unknown_calls, abs=noise)


def test_there_are_unknown_calls_and_every_chip_among_them() -> None:
    assert {row["chip"] for row in ROWS} == {
        name for name, chip in CHIPS.items() if chip.rates.compiler_limits
    }
    assert any(row["cost"].get("optimal_seconds", 0) < 0 for row in ROWS)


@pytest.mark.parametrize("name", ["h100", "moon"])
def test_a_chip_that_is_no_tpu_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        cost.analyze(hlo.parse(ROWS[0]["text"])).as_tpu(name)


def test_a_chip_without_rates_of_its_compiler_is_refused() -> None:
    chip = attrs.evolve(CHIPS["v5e"], rates=attrs.evolve(CHIPS["v5e"].rates, compiler_limits=None))
    with pytest.raises(ValueError, match="rates are known"):
        cost.analyze(hlo.parse(ROWS[0]["text"])).as_tpu(chip)
