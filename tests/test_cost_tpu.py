"""XLA:TPU's own cost analysis: what `compiled.cost_analysis()` said of small programs for seven chips."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext import cost, memory
from hlotext.analysis.chips import CHIPS
from tests.cli_support import run
from tests.support import CORPUS, DATA

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


JOINED = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[1024,1024]{1,0:T(8,128)S(1)} parameter(0)
  b = f32[1024,1024]{1,0:T(8,128)S(1)} parameter(1)
  c = f32[2048,1024]{1,0:T(8,128)S(1)} custom-call(a, b), custom_call_target="ConcatBitcast"
  ROOT d = f32[2048,1024]{1,0:T(8,128)} custom-call(c), custom_call_target="mine"
}
"""


def test_calls_that_join_arrays_are_no_unknown_cost(tmp_path: Path) -> None:
    """XLA takes a second away for each of them too; what is said to be left out is the other call alone."""
    found = cost.analyze(hlo.parse(JOINED)).as_tpu("v5e")
    assert (found.unknown_calls, found.free_calls, found.left_out) == (2, 1, 1)
    path = tmp_path / "m.hlo"
    path.write_text(JOINED)
    shown = run("show", path).stdout
    assert "1 call of unknown cost excluded" in shown
    assert "loop bodies once" not in shown
    assert "without 1 call of unknown cost" in run("cost", path).stdout


@pytest.mark.parametrize("name", ["h100", "moon"])
def test_a_chip_that_is_no_tpu_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        cost.analyze(hlo.parse(ROWS[0]["text"])).as_tpu(name)


def test_a_chip_without_rates_of_its_compiler_is_refused() -> None:
    chip = attrs.evolve(CHIPS["v5e"], rates=attrs.evolve(CHIPS["v5e"].rates, compiler_limits=None))
    with pytest.raises(ValueError, match="known compiler rates"):
        cost.analyze(hlo.parse(ROWS[0]["text"])).as_tpu(chip)


def test_fast_memory_lies_within_its_bounds() -> None:
    """Of each program that uses it; the estimate is XLA's own total in most."""
    rows = [row for row in ROWS if row.get("vmem")]
    exact = 0
    for row in rows:
        found = memory.assign(hlo.parse(row["text"]), chip=row["chip"], age="0.10.2").fast_memory
        assert found is not None
        assert found.at_least <= row["vmem"] <= found.at_most, (row["program"], row["chip"])
        assert found.at_least <= found.estimate <= found.at_most
        exact += found.estimate == row["vmem"]
    assert len(rows) > 20
    assert exact > 0.7 * len(rows)


def test_no_fast_memory_where_the_chip_has_none() -> None:
    (row, *_) = (row for row in ROWS if row["chip"] == "v2")
    assert memory.assign(hlo.parse(row["text"]), chip="v2").fast_memory is None


def test_the_command_gives_the_figures_of_the_chip(tmp_path: Path) -> None:
    """Of the chip that is named, or that the folder names; else it says which one is assumed."""
    row = next(row for row in ROWS if row["chip"] == "v6e")
    text = tmp_path / "module_0001.jit_f.cl_1.after_optimizations.txt"
    text.write_text(row["text"])
    assert "assuming v5e (set --chip)" in run("cost", str(text), "--as-xla").stdout
    named = run("cost", str(text), "--as-xla", "--chip", "v6e").stdout
    assert f"{row['cost']['bytes accessed']:.0f}" in named
    target = 'tpu_topology_args { version: "TPU_VERSION_GHOSTLITE" }'
    text.with_name("module_0001.jit_f.cl_1.target_arguments.txt").write_text(target)
    beside = run("cost", str(text), "--as-xla").stdout
    assert [line for line in beside.splitlines() if line.split()[0] != "age"] == [
        line for line in named.splitlines() if line.split()[0] != "age"
    ]
    assert run("cost", str(text), "--as-xla", "--chip", "moon").exit_code == 2


def test_bytes_of_collectives_in_several_fusions_are_an_estimate() -> None:
    """What the compiler counts of them is not known exactly: the figure says so, and others do not."""
    spread, plain = (
        hlo.cost.analyze(hlo.load(CORPUS / "tpu" / f"{name}.after_optimizations.txt")).as_tpu("v5e")
        for name in ("sharded_sort_fft_conv.v5e_2x2x1", "host_offload_remat.v5e_2x2x1")
    )
    assert spread.carried
    assert spread.moved.startswith("about ")
    assert not plain.carried
    assert "about" not in plain.moved
