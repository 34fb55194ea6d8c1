"""Kernels that name no operation in a trace, as under command buffers, joined with thunks.

The lists of thunks are XLA's own, of packed dump folders; the traces are written here, one kernel after the other, with the
kernel names of those lists. So which operation launched each kernel is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("google.protobuf")

import hlotext as hlo
from hlotext.thunks import Thunk, predict, with_kernels_named
from tests.cli_support import run, run_json
from tests.test_thunks import GPU, names, opened
from tests.test_traces import Event, Plane, space

RUNS = 3
LIBRARIES = {"kGemm", "kCublasLtMatmul", "kCuDnn", "kConvolution"}


def trace(events: Sequence[Event], *texts: str) -> bytes:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #13(compute)", events)
    return space([plane], *((f"{hlo.parse(text).name}({n})", text) for n, text in enumerate(texts)))


@pytest.mark.parametrize("folder", GPU, ids=lambda folder: names(folder)[0])
def test_kernels_of_real_lists_are_joined_with_the_right_operations(folder: Path, tmp_path: Path) -> None:
    """What is joined is right to the kernel, and every kernel that is not is counted in a note."""
    dump = opened(folder, tmp_path)
    listed, module = dump.listed(".thunk_sequence.txt"), dump.compilation.after
    if listed is None or module is None:
        pytest.skip("XLA wrote no list")
    named = dump.names
    trips = {one.name: one.facts.get("trip_count") for one in predict(module, platform="gpu").walk()}
    launched: list[tuple[str, str]] = []

    def launch(sequence: Sequence[Thunk]) -> None:
        for thunk in sequence:
            name = named.get(thunk.number or 0, thunk.name or "")
            for _ in range((trips.get(name) or 2) if thunk.kind == "kWhile" else 1):
                for _, inner in thunk.children:
                    launch(inner)
            if thunk.kind in LIBRARIES:
                launched.extend((name, kernel) for kernel in ("cutlass_gemm", "splitk_reduce"))
            elif thunk.kind == "kCopy":
                launched.append((name, "MemcpyD2D"))
            elif "launch" in thunk.facts:
                launched.append((name, thunk.facts["launch"].kernel))

    for _ in range(RUNS):
        launch(listed.thunks)
    events: list[Event] = [(kernel, 10 * n, 3, {}) for n, (_, kernel) in enumerate(launched)]
    traced = with_kernels_named(hlo.proto.read_trace(trace(events, str(module)))).modules[0]
    truth = Counter(name for name, _ in launched)
    assert {name: time.count for name, time in traced.times.items()} == {
        name: truth[name] for name in traced.times
    }
    counted = sum(int(note.split()[0].replace(",", "")) for note in traced.notes)
    own = {kernel for _, kernel in launched} & {name.replace(".", "_").replace("-", "_") for name in truth}
    assert counted == (len(events) if own else 0)


STEP = """HloModule step, is_scheduled=true

f { p = f32[8]{0} parameter(0)  ROOT r = f32[8]{0} negate(p) }

ENTRY e {
  p = f32[8]{0} parameter(0)
  a.1 = f32[8]{0} fusion(p), kind=kLoop, calls=f
  call = f32[8]{0} custom-call(a.1), custom_call_target="t"
  b.1 = f32[8]{0} fusion(call), kind=kLoop, calls=f
  c.1 = f32[8]{0} fusion(b.1), kind=kLoop, calls=f
  d.1 = f32[8]{0} fusion(c.1), kind=kLoop, calls=f
  ROOT e.1 = f32[8]{0} fusion(d.1), kind=kLoop, calls=f
}
"""
ORDERED = ("a_1", "gemm", "reduce", "b_1", "c_1", "c_1", "e_1")
"""In each run: the fusion d.1 launches the kernel of its equal c.1."""


def in_runs(*runs: Sequence[str]) -> list[Event]:
    return [(name, 10 * n, 2, {}) for n, name in enumerate(name for one in runs for name in one)]


def counts(events: Sequence[Event], *texts: str) -> tuple[dict[str, int], str]:
    traced = with_kernels_named(hlo.proto.read_trace(trace(events, *texts))).modules[0]
    return {name: time.count for name, time in traced.times.items()}, " ".join(traced.notes)


def test_order_tells_equal_fusions_apart_and_finds_a_librarys_kernels() -> None:
    found, notes = counts(in_runs(*[ORDERED] * 4), STEP)
    assert found == {"a.1": 4, "call": 8, "b.1": 4, "c.1": 4, "d.1": 4, "e.1": 4}
    assert notes.startswith("28 kernels name no operation")
    assert "may belong to" not in notes


def test_kernels_side_by_side_stay_open() -> None:
    """Where the order of one run is another, order says nothing: only names of one thunk are joined."""
    other = ("b_1", "gemm", "reduce", "a_1", "c_1", "c_1", "e_1")
    found, notes = counts(in_runs(ORDERED, other, ORDERED), STEP)
    assert found == {"a.1": 3, "b.1": 3, "e.1": 3}
    assert "6 kernels, 12.0 us, may belong to several operations, including c.1, d.1" in notes
    assert "6 library kernels and copies, 12.0 us, may belong to several operations, including call" in notes


def test_a_name_of_two_programs_is_nobodys() -> None:
    other = STEP.replace("HloModule step", "HloModule second").replace("b.1", "z.1")
    found, notes = counts(in_runs(*[ORDERED] * 2), STEP, other)
    assert found == {"b.1": 2}
    assert "may belong to several" in notes


def test_what_names_an_operation_is_left_alone(tmp_path: Path) -> None:
    """Kernels with names are as before; `show` says what was joined."""
    events: list[Event] = [
        (name, at, length, {"hlo_op": "a.1", "program_id": 0} if name == "a_1" else {})
        for name, at, length, _ in in_runs(*[ORDERED] * 2)
    ]
    found, _ = counts(events, STEP)
    assert found["a.1"] == 2
    place = tmp_path / "t.xplane.pb"
    place.write_bytes(trace(in_runs(ORDERED, ORDERED), STEP))
    text = " ".join(run("show", place).stdout.split())
    assert "14 kernels name no operation and were matched to thunks by name and order" in text
    (module,) = run_json("show", place)["traces"][0]["modules"]
    assert {row["name"]: row["count"] for row in module["measured"]}["call"] == 4
    assert len(module["notes"]) == 1
