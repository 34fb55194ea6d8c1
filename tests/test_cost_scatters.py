"""Scatters of a TPU: their bytes alone are counted, and the estimate says so."""

from __future__ import annotations

from pathlib import Path

import hlotext as hlo
from hlotext import cost
from tests.cli_support import run, run_json

SCATTER = """HloModule m, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  nodes = f32[1000,128]{1,0:T(8,128)} parameter(0)
  place = s32[6000,1]{1,0:T(8,128)} parameter(1)
  edges = f32[6000,128]{1,0:T(8,128)} parameter(2)
  ROOT sums = f32[1000,128]{1,0:T(8,128)} scatter(nodes, place, edges), HOW, to_apply=add
}
""".replace(
    "HOW",
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
)
BODY = SCATTER.partition("ENTRY e")[2].replace(":T(8,128)", "")
FUSED = (
    SCATTER.partition("ENTRY e")[0]
    + f"body{BODY}"
    + """
ENTRY e {
  nodes = f32[1000,128]{1,0} parameter(0)
  place = s32[6000,1]{1,0} parameter(1)
  edges = f32[6000,128]{1,0} parameter(2)
  ROOT made = f32[1000,128]{1,0} fusion(nodes, place, edges), kind=kCustom, calls=body
}
"""
)


def test_scatters_are_counted_by_bytes_only() -> None:
    """Rows that may repeat are written one by one, at a rate that nobody has told; on a GPU they are not."""
    for text, name in ((SCATTER, "sums"), (FUSED, "made")):
        found = cost.estimate(hlo.parse(text), "v5e").scatters
        assert {one.name: rows for one, rows in found.items()} == {name: 6000}
        assert not cost.estimate(hlo.parse(text), "h100").scatters
    unique = SCATTER.replace("to_apply=add", "unique_indices=true, to_apply=add")
    assert not cost.estimate(hlo.parse(unique), "v5e").scatters
    one = SCATTER.replace("6000", "1")
    assert not cost.estimate(hlo.parse(one), "v5e").scatters


def test_the_estimate_says_that_scatters_can_take_longer(tmp_path: Path) -> None:
    """Nor is it sure of what bounds the core."""
    path = tmp_path / "scatter.txt"
    path.write_text(SCATTER)
    text = " ".join(run("cost", path, "--chip", "v5e").stdout.split())
    assert "minimum time at least " in text
    assert "memory 100.0% (of the counted time)" in text
    assert (
        "1 scatter of 6,000 rows in all runs, counted by bytes only: writing rows one by one can take far longer"
        in text
    )
    assert run_json("cost", path, "--chip", "v5e")["modules"][0]["scatters"] == {"sums": 6000}
    path.write_text(SCATTER.replace("to_apply=add", "unique_indices=true, to_apply=add"))
    text = run("cost", path, "--chip", "v5e").stdout
    assert "at least" not in text
    assert "counted by bytes only" not in text
