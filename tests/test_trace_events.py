"""`hlotext convert --to trace-events`: slices that nest, sums that are the estimate's, counters whose maximum is the peak."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import cost, memory
from hlotext.interop import trace_events
from tests import support
from tests.cli_support import run

CASES = [
    ("gpu/host_offload_remat.h100_1x1x1.after_optimizations.txt", "h100"),
    ("gpu/conditionals.h100_1x1x1.after_optimizations.txt", "h100"),
    ("gpu/host_compute.h100_1x1x1.after_optimizations.txt", "h100"),
    ("gpu/ragged_all_to_all.h100_1x1x4.after_optimizations.txt", "h100"),
    ("gpu/sharded_sort_fft_conv.h100_1x1x4.after_optimizations.txt", "h100"),
    ("cpu/eig_schur_expm.cpu_1.after_optimizations.txt", "cpu"),
    ("cpu/mlp_train.cpu_1.after_optimizations.txt", "cpu"),
    ("cpu/ring_attention.cpu_4.after_optimizations.txt", "cpu"),
]
TPU = sorted(
    path.relative_to(support.CORPUS).as_posix()
    for path in (support.CORPUS / "tpu").glob("*.after_codegen.txt")
)


@pytest.fixture(
    scope="module",
    params=[*CASES, *((name, "v5e") for name in TPU)],
    ids=lambda case: ".".join(case[0].split(".")[:2]),
)
def case(request: pytest.FixtureRequest) -> tuple[cost.Estimate, memory.Assignment, list[dict[str, Any]]]:
    name, chip = request.param
    module = hlo.load(support.CORPUS / name)
    estimate, assignment = cost.estimate(module, chip), memory.assign(module)
    data = trace_events.packed(trace_events.trace_events(estimate, assignment))
    return estimate, assignment, json.loads(gzip.decompress(data))["traceEvents"]


def pico(event: Mapping[str, Any], key: str = "ts") -> int:
    return round(float(event[key]) * 1e6)


def test_slices_of_a_lane_nest_or_follow(
    case: tuple[cost.Estimate, memory.Assignment, list[dict[str, Any]]],
) -> None:
    """No partial overlap, which viewers refuse; and each lane has a name."""
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in case[2]:
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((pico(event), pico(event) + pico(event, "dur")))
    assert lanes
    named = {(event["pid"], event["tid"]) for event in case[2] if event["name"] == "thread_name"}
    assert named == set(lanes)
    for slices in lanes.values():
        stack: list[int] = []
        for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1]
            stack.append(end)


def test_sums_by_opcode_are_the_estimates(
    case: tuple[cost.Estimate, memory.Assignment, list[dict[str, Any]]],
) -> None:
    """The totals of the slices add up to `cost.estimate`, opcode by opcode."""
    expected: dict[str, float] = defaultdict(float)
    for one in (*case[0].instructions, *case[0].beside):
        expected[one.instruction.opcode] += one.seconds
    found: dict[str, float] = defaultdict(float)
    for event in case[2]:
        if event["ph"] == "X" and "picoseconds" in event["args"]:
            found[event["cat"]] += event["args"]["picoseconds"] * event["args"]["executions"] / 1e12
    assert {opcode for opcode, time in expected.items() if time} == set(found)
    for opcode, seconds in found.items():
        assert seconds == pytest.approx(expected[opcode], rel=1e-3, abs=1e-12)


def test_lanes_of_transfers_add_up(
    case: tuple[cost.Estimate, memory.Assignment, list[dict[str, Any]]],
) -> None:
    """Slices of a link or a copy engine follow each other, none in another, and last as long as the estimate says."""
    names = {event["tid"]: event["args"]["name"] for event in case[2] if event["name"] == "thread_name"}
    entry = {one.start.name: one for one in case[0].walk.transfers}
    found: dict[str, float] = defaultdict(float)
    ends: dict[int, int] = {}
    slices = [event for event in case[2] if event["ph"] == "X" and names[event["tid"]] != "core"]
    for event in sorted(slices, key=pico):
        queue = names[event["tid"]].partition(" (")[0]
        if queue.endswith(": inside"):
            continue
        assert pico(event) >= ends.get(event["tid"], 0)
        ends[event["tid"]] = pico(event) + pico(event, "dur")
        if event["name"] in entry:
            found[queue] += event["dur"] * 1e-6
    expected: dict[str, float] = defaultdict(float)
    for one in entry.values():
        for queue in one.queues if one.seconds else ():
            expected[queue] += one.seconds
    assert dict(found) == pytest.approx(expected, rel=1e-3, abs=1e-11)


SLICED = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[1024,1024]{1,0:T(8,128)} parameter(0)
  b = ((f32[1024,1024]{1,0:T(8,128)}), f32[256,1024]{1,0:T(8,128)S(1)}, s32[]) slice-start(a), slice={[0:256],[0:1024]}
  c = f32[1024,1024]{1,0:T(8,128)} exponential(a)
  d = f32[256,1024]{1,0:T(8,128)S(1)} slice-done(b)
  ROOT t = (f32[1024,1024]{1,0:T(8,128)}, f32[256,1024]{1,0:T(8,128)S(1)}) tuple(c, d)
}
"""


def test_a_copied_slice_is_one_slice() -> None:
    """What the copy engine does for it is no second one inside."""
    estimate = cost.estimate(hlo.parse(SLICED), "v5e")
    events = list(trace_events.trace_events(estimate))
    lane = next(
        one["tid"] for one in events if one["name"] == "thread_name" and one["args"]["name"] == "copies"
    )
    (one,) = [one for one in events if one["ph"] == "X" and one["tid"] == lane]
    assert (one["name"], one["cat"]) == ("b", "slice")
    (transfer,) = estimate.transfers
    assert one["dur"] == pytest.approx(1e6 * transfer.seconds)
    assert one["args"]["picoseconds"] == pytest.approx(1e12 * transfer.seconds)


def test_counters_reach_the_peak(case: tuple[cost.Estimate, memory.Assignment, list[dict[str, Any]]]) -> None:
    """And times never run backwards."""
    spaces: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event in case[2]:
        if event["ph"] == "C":
            spaces[event["name"]].append((pico(event), event["args"]["bytes"]))
    peaks = {case[1].peak(space).bytes for space in case[1].memory_spaces()} - {0}
    assert {max(size for _, size in line) for line in spaces.values()} == peaks
    for line in spaces.values():
        assert [time for time, _ in line] == sorted(time for time, _ in line)


def test_arrows_come_in_pairs(case: tuple[cost.Estimate, memory.Assignment, list[dict[str, Any]]]) -> None:
    """From a start to its done, not backwards."""
    begins = {event["id"]: pico(event) for event in case[2] if event["ph"] == "s"}
    ends = {event["id"]: pico(event) for event in case[2] if event["ph"] == "f"}
    assert set(begins) == set(ends)
    assert all(begins[number] <= ends[number] for number in begins)


def test_the_command(tmp_path: Path) -> None:
    """The same file twice; the chip is asked for where the text does not tell it; a viewer reads it."""
    source, places = support.CORPUS / TPU[0], [tmp_path / "a.json.gz", tmp_path / "b.json.gz"]
    for place in places:
        assert run("convert", source, "--to", "trace-events", "--chip", "v5e", "-o", place).exit_code == 0
    assert places[0].read_bytes() == places[1].read_bytes()
    assert (
        run("convert", support.CORPUS / CASES[0][0], "--to", "trace-events", "-o", places[0]).exit_code == 2
    )
    assert run("convert", source, "--chip", "v5e", "-o", tmp_path / "x.txt").exit_code == 2
    shell = shutil.which("trace_processor_shell")
    if shell is not None:
        query = tmp_path / "query.sql"
        query.write_text("select count(*) from slice;")
        done = subprocess.run([shell, "-q", query, places[1]], capture_output=True, text=True, check=True)
        assert int(done.stdout.split()[-1]) > 0


def test_names_are_text() -> None:
    """Control characters and long names of a module stay out of the viewer."""
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[64,64]{1,0} parameter(0)\n"
        "  ROOT a = f32[64,64]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        f'metadata={{op_name="\x1b[31m{"x" * 5000}"}}\n}}\n'
    )
    text = json.dumps(list(trace_events.trace_events(cost.estimate(module, "v5e"))))
    assert "\\u001b" not in text
    assert "x" * 400 not in text
