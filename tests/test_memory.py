"""Memory computed from the text against what XLA's compilers wrote: one folder in tests/data/memory for each compilation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import memory
from hlotext.memory.assignment import peak_bytes
from hlotext.testing import inspect
from tests.support import DATA, read_text

DUMPS = sorted((DATA / "memory").iterdir())
"""The module's text, XLA's four files, what JAX's `memory_analysis` said (`facts`), and XLA's own numbering and traces
(`witness`)."""
RELEASE = "0.10.2"
"""The jaxlib that compiled them."""


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
    got = memory.assign(module_of(dump), chip=chip_of(dump), age=RELEASE).statistics
    for field, number in said.items():
        mine = getattr(got, field, None)
        if mine is not None:
            assert (field, mine) == (field, number)
    unknown = {field for field in said if getattr(got, field, None) is None} - {
        "host_generated_code_size_in_bytes"
    }
    assert unknown <= {"generated_code_size_in_bytes", "temp_size_in_bytes"}


def test_reads_and_writes_what_xla_wrote(dump: Path) -> None:
    """XLA's four files come back byte for byte from what was read of them."""
    read = memory.load(dump)
    assert read.notes == ()
    written = memory.texts(read)
    for path in dump.iterdir():
        name = path.name.removesuffix(".xz")
        suffix = next((suffix for suffix in written if name.endswith(suffix)), None)
        if suffix is not None:
            assert written[suffix] == read_text(path).decode(), name


def test_computed_is_what_xla_wrote(dump: Path) -> None:
    """Values, positions, uses, live ranges, allocations and offsets; what TPU's memory space assignment placed aside."""
    computed = memory.assign(module_of(dump), chip=chip_of(dump), age=RELEASE)
    found = memory.differences(memory.load(dump), computed)
    assert [str(difference) for difference in found if not difference.is_estimated] == []


def test_a_difference_is_found() -> None:
    """Other rules give other places, and `differences` says so."""
    dump = next(path for path in DUMPS if path.name.startswith("cpu.mlp_train"))
    computed = memory.assign(module_of(dump), platform="gpu", age=RELEASE)
    items = {difference.item for difference in memory.differences(memory.load(dump), computed)}
    assert items == {"offset"}


@pytest.mark.parametrize("suffix", [".txt.xz", "-buffer-assignment.txt.xz", "-live-range.txt.xz"])
def test_one_file_finds_the_others(suffix: str) -> None:
    """The folder, the text and each of the files name the same dump."""
    dump = DUMPS[0]
    whole = memory.load(dump)
    one = memory.load(
        next(path for path in sorted(dump.iterdir()) if path.name.endswith("optimizations" + suffix))
    )
    assert memory.differences(whole, one) == ()
    assert len(one.values) == len(whole.values) > 0


def test_traces_of_the_fast_memory_are_those_of_libtpu(dump: Path) -> None:
    """What lives when in the memory that TPU fills before buffers are assigned, at each moment by name."""
    chip = chip_of(dump)
    if chip is None:
        pytest.skip("not for TPU")
    computed = memory.assign(module_of(dump), chip=chip, age=RELEASE)
    read = memory.load(dump)
    mine = [
        (event.kind, event.value.name, event.value.index)
        for heap in computed.heaps
        if heap.is_assigned_before
        for event in heap.events
    ]
    names = {value.number: (value.name, value.index) for value in read.values}
    witness = json.loads(read_text(dump / "witness.json.xz"))
    traces = [[(kind, *names[number]) for kind, number, _ in trace] for trace in witness["traces"]]
    assert not mine or sorted(mine) in [sorted(trace) for trace in traces]


def test_the_peak_needs_no_places(dump: Path) -> None:
    """Bytes that live at once are the same where each lies by itself as where XLA puts them, and nothing else changes."""
    module = module_of(dump)
    peak = peak_bytes(module)
    assert peak == memory.assign(module).peak().bytes == memory.assign(module_of(dump)).peak().bytes


def test_peak_memory_in_a_line() -> None:
    """What a test of a program asks: `inspect(x).peak_memory`."""
    dump = next(path for path in DUMPS if path.name.startswith("gpu.mlp_train"))
    module = module_of(dump)
    assert inspect(module).peak_memory == memory.assign(module).peak().bytes > 0


ASYNCHRONOUS = """\
HloModule jit_f, is_scheduled=true, num_partitions=2

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%async_computation (p: f32[8], q: f32[8]) -> (f32[4], f32[4]) {
  %p = f32[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  ROOT %rs.1 = (f32[4]{0}, f32[4]{0}) reduce-scatter(%p, %q), replica_groups={{0,1}}, dimensions={0}, to_apply=%add
}

%async_computation.1 (p.1: f32[8], q.1: f32[8]) -> (f32[4], f32[4]) {
  %p.1 = f32[8]{0} parameter(0)
  %q.1 = f32[8]{0} parameter(1)
  ROOT %rs.2 = (f32[4]{0}, f32[4]{0}) reduce-scatter(%p.1, %q.1), replica_groups={{0,1}}, dimensions={0}, to_apply=%add
}

ENTRY %main (a: f32[8], b: f32[8]) -> (f32[4], f32[4]) {
  %a = f32[8]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %start.2 = ((f32[8]{0}, f32[8]{0}), (f32[4]{0}, f32[4]{0})) async-start(%a, %b), calls=%async_computation.1
  %done.2 = (f32[4]{0}, f32[4]{0}) async-done(%start.2)
  %start.1 = ((f32[8]{0}, f32[8]{0}), (f32[4]{0}, f32[4]{0})) async-start(%b, %a), calls=%async_computation
  %done.1 = (f32[4]{0}, f32[4]{0}) async-done(%start.1)
  %u = f32[4]{0} get-tuple-element(%done.1), index=0
  %v = f32[4]{0} get-tuple-element(%done.2), index=1
  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%u, %v)
}
"""


def test_ties_between_computations_go_by_their_order_in_the_text() -> None:
    """Not by the schedule, which starts the second of them first: XLA stores instructions as before scheduling.

    Tuples of asynchronous computations, one allocation each, are joined from the last one on.
    """
    assigned = memory.assign(hlo.parse(ASYNCHRONOUS), "gpu", "h100")
    offsets = {
        piece.value.instruction.name: piece.offset
        for allocation in assigned.allocations
        for piece in allocation.slices
        if piece.value.instruction is not None and not piece.value.index
    }
    assert offsets["rs.2"] < offsets["rs.1"]


TRANSPOSED = """\
HloModule jit_f, is_scheduled=true

%negated (n: f32[512,512]) -> f32[512,512] {
  %n = f32[512,512]{1,0} parameter(0)
  ROOT %negate = f32[512,512]{1,0} negate(%n)
}

%both (p: f32[512,512], q: f32[512,512]) -> (f32[512,512], f32[512,512]) {
  %p = f32[512,512]{1,0} parameter(0)
  %q = f32[512,512]{1,0} parameter(1)
  %turned = f32[512,512]{1,0} transpose(%q), dimensions={1,0}
  %add = f32[512,512]{1,0} add(%p, %turned)
  %subtract = f32[512,512]{1,0} subtract(%p, %turned)
  ROOT %tuple = (f32[512,512]{1,0}, f32[512,512]{1,0}) tuple(%add, %subtract)
}

ENTRY %main (a: f32[512,512], b: f32[512,512]) -> f32[8,512] {
  %a = f32[512,512]{1,0} parameter(0)
  %b = f32[512,512]{1,0} parameter(1)
  %before = f32[512,512]{1,0} fusion(%a), kind=kLoop, calls=%negated
  %two = (f32[512,512]{1,0}, f32[512,512]{1,0}) fusion(%before, %b), kind=kInput, calls=%both
  %first = f32[512,512]{1,0} get-tuple-element(%two), index=0
  %second = f32[512,512]{1,0} get-tuple-element(%two), index=1
  %sum = f32[512,512]{1,0} dot(%first, %second), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %part = f32[8,512]{1,0} slice(%sum), slice={[0:8], [0:512]}
}
"""


def test_results_through_a_transpose_in_shared_memory_are_not_written_over_an_operand() -> None:
    """Two results whose hero is a transpose, though each is elementwise on that operand (`FusionCanShareBufferHint`)."""
    assigned = memory.assign(hlo.parse(TRANSPOSED), "gpu", "h100")
    offsets = {
        (piece.value.instruction.name, piece.value.index): piece.offset
        for allocation in assigned.allocations
        if allocation.is_temporary
        for piece in allocation.slices
        if piece.value.instruction is not None
    }
    assert offsets["before", ()] not in (offsets["two", (0,)], offsets["two", (1,)])
