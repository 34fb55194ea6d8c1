"""The table `measured`: what a profiler's trace measured, joined with the instructions of its modules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import tables
from hlotext.proto.traces import DeviceTime, OpTime, TracedModule
from hlotext.tables.rows.measured import measured
from hlotext.tables.rows.subject import Subject
from tests import support
from tests.cli_support import run

TEXT = """HloModule step, is_scheduled=true

ENTRY e {
  p = f32[1024,1024]{1,0} parameter(0)
  ROOT a = f32[1024,1024]{1,0} sine(p)
}
"""
TRACE = support.DATA / "proto" / "two_programs.xplane.pb"


def test_the_table_of_a_trace(tmp_path: Path) -> None:
    """A row an operation and device, with the instruction's number; sums are those of the trace, launches once."""
    pytest.importorskip("google.protobuf")
    trace = hlo.proto.read_trace(TRACE.read_bytes())
    found = tables.tables_of(TRACE, ("modules", "instructions", "measured"))
    rows, names = found["measured"].to_rows(), {row["module"]: row["name"] for row in found["modules"]}
    assert [names[row["module"]] for row in rows] == [one.name for one in trace.modules for _ in one.times]
    instructions = {(row["module"], row["id"]): row["name"] for row in found["instructions"]}
    assert all(instructions[row["module"], row["id"]] == row["name"] for row in rows)
    for one in trace.modules:
        own = [row for row in rows if names[row["module"]] == one.name]
        assert {row["name"]: (row["kernels"], row["seconds"]) for row in own} == {
            name: (time.count, time.total_seconds) for name, time in one.times.items()
        }
        assert {row["runs"] for row in own} == {one.runs}
    assert {row["device"] for row in rows} == {"CPU:0"}
    text = tmp_path / "m.txt"
    text.write_text(TEXT)
    assert tables.measured(text).to_rows() == []


def test_the_table_of_several_devices() -> None:
    """The host's launches are in one row of an operation, and an operation that only they name has a row without a device."""
    module = hlo.parse(TEXT)
    first, second = list(module.entry)[:2]
    devices = (DeviceTime("/device:GPU:1", 4, 3e-6), DeviceTime("/device:GPU:0", 2, 1e-6))
    times = {
        first.name: OpTime(devices, 6, 5e-6),
        "elsewhere": OpTime((), 1, 1e-6),
        second.name: OpTime(devices[:1]),
    }
    traced = TracedModule("step", 1, None, None, times, lambda: module)
    rows = measured(Subject(module, "step", "t.xplane.pb", traced=traced)).to_rows()
    assert [(row["name"], row["id"], row["device"], row["kernels"], row["launches"]) for row in rows] == [
        (first.name, 0, "/device:GPU:1", 4, 6),
        (first.name, 0, "/device:GPU:0", 2, None),
        ("elsewhere", None, None, 0, 1),
        (second.name, 1, "/device:GPU:1", 4, 0),
    ]


def test_the_query_of_measured_times() -> None:
    """Operations by measured time, each with its opcode."""
    pytest.importorskip("duckdb")
    pytest.importorskip("google.protobuf")
    result = run("sql", "-q", "measured", "-p", "rows=3", TRACE, "--format", "json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    names = [column["name"] for column in found["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in found["rows"]]
    assert len(rows) == 3
    assert rows[0]["operation"] == "while.6"
    assert rows[0]["opcode"] == "while"
    assert rows == sorted(rows, key=lambda row: -row["all_runs_seconds"])
    for row in rows:
        assert row["run_seconds"] == (row["all_runs_seconds"] / row["runs"] if row["runs"] else None)
