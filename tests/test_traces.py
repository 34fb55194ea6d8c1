"""Profiler traces: kernels of several devices, the host's launches beside them, what the CPU begins and is done later.

The traces are written here, field by field, in the form of those that JAX wrote on AMD's GPUs (eight devices, calls of the
host that name operations) and on CPUs (`hlo_op` at the start, `end: ` where it is done).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from tests.cli_support import run, run_json

pytest.importorskip("google.protobuf")

TEXT = """HloModule jit_step, is_scheduled=true

ENTRY %main (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  %conv.1 = f32[64]{0} custom-call(%p), custom_call_target="conv", metadata={op_name="jit(step)/conv"}
  ROOT %sine = f32[64]{0} sine(%conv.1), metadata={op_name="jit(step)/sin"}
}
"""


def number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(key: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value


Event = tuple[str, int, int, dict[str, int | str]]
"""Name, start and length in microseconds, and statistics."""


@attrs.define
class Plane:
    """One `XPlane`; names get their numbers as they come."""

    name: str
    events: list[str] = attrs.field(factory=list)
    statistics: list[str] = attrs.field(factory=list)
    lines: list[bytes] = attrs.field(factory=list)

    @staticmethod
    def _number(names: list[str], name: str) -> int:
        if name not in names:
            names.append(name)
        return names.index(name) + 1

    def line(self, name: str, events: Iterable[Event]) -> None:
        """Adds a line."""
        data = field(2, name.encode())
        for title, start, length, values in events:
            body = field(1, self._number(self.events, title))
            body += field(2, start * 1_000_000) + field(3, length * 1_000_000)
            for key, value in values.items():
                stat = field(1, self._number(self.statistics, key))
                stat += (
                    field(4, value)
                    if isinstance(value, int)
                    else field(7, self._number(self.statistics, value))
                )
                body += field(4, stat)
            data += field(4, body)
        self.lines.append(data)

    def __bytes__(self) -> bytes:
        data = field(2, self.name.encode()) + b"".join(field(3, line) for line in self.lines)
        for key, names in ((4, self.events), (5, self.statistics)):
            for place, name in enumerate(names, 1):
                data += field(key, field(1, place) + field(2, field(1, place) + field(2, name.encode())))
        return data


def space(planes: Sequence[Plane], *modules: tuple[str, str]) -> bytes:
    """An `XSpace` with the HLO of modules, by their titles."""
    metadata = field(2, b"/host:metadata")
    for place, (title, text) in enumerate(modules, 1):
        proto = hlo.proto.wrapped(hlo.parse(text).to_proto())
        body = field(1, place) + field(2, title.encode()) + field(5, field(1, 1) + field(6, proto))
        metadata += field(4, field(1, place) + field(2, body))
    return field(1, metadata) + b"".join(field(1, bytes(plane)) for plane in planes)


def op(name: str, **more: int) -> dict[str, int | str]:
    return {"hlo_op": name, "hlo_module": "jit_step", "program_id": 7, **more}


def on_gpus(devices: int) -> bytes:
    """Two runs of a call of two kernels and of a fusion of one, on each device, with the launches on the host."""
    planes, host = [], Plane("/host:CPU")
    for device in range(devices):
        plane = Plane(f"/device:GPU:{device}")
        stream: list[Event] = []
        for start in (0, 1000):
            stream += [
                ("im2col", start, 10 + device, op("conv.1")),
                ("gemm", start + 50, 100, op("conv.1")),
                ("sine_kernel", start + 200, 20, op("sine")),
                ("memcpy", start + 300, 500, {"correlation_id": 3}),
            ]
        plane.line("Stream #1", stream)
        # What the profiler derives from the streams tells the same a second time.
        plane.line("XLA Ops", stream)
        planes.append(plane)
        calls = [("hipLaunchKernel", 5 * n, 3, op("conv.1" if n % 3 else "sine")) for n in range(6)]
        host.line(f"Host Threads/{device}", calls)
    return space(
        [*planes, host], ("jit_step(7)", TEXT), ("jit_other(9)", TEXT.replace("jit_step", "jit_other"))
    )


def on_cpu() -> bytes:
    """Three runs on two devices; what is begun is done later, on another thread, for one of the two operations."""
    plane = Plane("/host:CPU")
    for device in range(2):
        begun: list[Event] = []
        done: list[Event] = []
        for turn in range(3):
            start, context = 1000 * turn, 100 * device + 10 * turn
            known = {"run_id": 40 + turn, "device_ordinal": device}
            begun += [
                ("conv.1", start, 5, op("conv.1", **known, _p=context)),
                ("sine", start + 200, 30, op("sine", **known, _p=context + 1)),
            ]
            done += [
                ("end: conv.1", start + 150 + device, 1, {"_c": context}),
                ("end: sine", start + 230, 1, {"_c": context + 1}),
            ]
        plane.line(f"client/{device}", begun)
        plane.line(f"pool/{device}", done)
    return space([plane], ("jit_step(7)", TEXT))


def test_kernels_are_of_the_devices_alone() -> None:
    """The host's launches are counted apart, derived lines not again, devices not added up to one time."""
    traced, other = hlo.proto.read_trace(on_gpus(4)).modules
    conv = traced.times["conv.1"]
    assert (conv.count, len(conv.devices), conv.devices[0].device) == (16, 4, "/device:GPU:3")
    assert round(conv.seconds * 1e6) == 2 * (13 + 100)
    assert round(conv.total_seconds * 1e6) == sum(2 * (110 + device) for device in range(4))
    assert round(conv.mean_seconds * 1e6, 1) == 223.0
    assert (conv.launches, round(conv.launch_seconds * 1e6)) == (16, 48)
    assert traced.counts_kernels
    assert (traced.runs, traced.seconds) == (None, None)
    assert other.times == {}


def test_show_says_kernels_and_devices(tmp_path: Path) -> None:
    path = tmp_path / "trace.xplane.pb"
    path.write_bytes(on_gpus(4))
    (row, *_) = run_json("show", path)["traces"][0]["modules"][0]["measured"]
    assert (row["name"], row["count"], row["devices"], row["launches"]) == ("conv.1", 16, 4, 16)
    text = run("show", path).stdout
    assert "kernels  devices     sum    mean     max  launches  launching" in text
    assert "jit_step: measured on 4 devices (sum, mean and maximum over devices), summed over runs" in text
    assert "times run" not in text
    path.write_bytes(on_gpus(1))
    text = run("show", path).stdout
    assert "kernels    time  launches  launching" in text
    assert "conv.1  custom-call        4  220 µs" in text


def test_what_the_cpu_begins_lasts_until_it_is_done() -> None:
    """A start is no run of its length: the operation ends where its end says; runs are counted on one device."""
    (traced,) = hlo.proto.read_trace(on_cpu()).modules
    assert traced.runs == 3
    assert traced.seconds is not None
    assert round(traced.seconds * 1e6) == 3 * 230
    conv, sine = traced.times["conv.1"], traced.times["sine"]
    assert [(one.device, one.count, round(one.seconds * 1e6)) for one in conv.devices] == [
        ("CPU:1", 3, 453),
        ("CPU:0", 3, 450),
    ]
    assert round(sine.seconds * 1e6) == 90
    assert not traced.counts_kernels


LOOP = """HloModule jit_step

body {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4]{0} get-tuple-element(p), index=1
  sort.1 = f32[4]{0} custom-call(x), custom_call_target="sort"
  sine = f32[4]{0} sine(sort.1)
  ROOT r = (s32[], f32[4]{0}) tuple(i, sine)
}

condition {
  p = (s32[], f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  c = s32[] constant(2)
  ROOT l = pred[] compare(i, c), direction=LT
}

ENTRY main {
  p = (s32[], f32[4]{0}) parameter(0)
  ROOT while.1 = (s32[], f32[4]{0}) while(p), condition=condition, body=body
}
"""


def with_loop(*, runs: int = 3, cut: str = "", late: int = 0) -> bytes:
    """Runs of a loop of two iterations. Of the last run `cut` is missing, or all ends; ends of sorts are `late`."""
    plane = Plane("/host:CPU")
    begun: list[Event] = []
    done: list[Event] = []
    for turn in range(runs):
        known = {"run_id": 40 + turn, "device_ordinal": 0}
        spans = [("while.1", 0, 800)]
        for start in (0, 400):
            spans += [("sort.1", start, 300), ("sine", start + 300, 100)]
        for place, (name, start, length) in enumerate(spans):
            context, start = 100 * turn + place, start + 1000 * turn
            if turn == runs - 1 and cut == name:
                continue
            begun.append((name, start, 5, op(name, **known, _p=context)))
            if turn < runs - 1 or cut != "ends":
                delay = late if name == "sort.1" else 0
                done.append((f"end: {name}", start + length + delay, 1, {"_c": context}))
    plane.line("client", begun)
    plane.line("pool", done)
    return space([plane], ("jit_step(7)", LOOP))


@pytest.mark.parametrize("cut", ["while.1", "ends"])
@pytest.mark.parametrize("runs", [2, 3])
def test_runs_that_the_trace_cuts_off_are_left_out(tmp_path: Path, runs: int, cut: str) -> None:
    """Of a loop that is not done when profiling ends the trace has what ran in it, which took longer than the loops."""
    whole, some = (
        hlo.proto.read_trace(with_loop(runs=n, cut=c)).modules[0] for n, c in ((runs - 1, ""), (runs, cut))
    )
    assert (some.times, some.runs, some.seconds) == (whole.times, whole.runs, whole.seconds)
    assert some.runs == runs - 1
    assert not whole.notes
    path = tmp_path / "trace.xplane.pb"
    path.write_bytes(with_loop(runs=runs, cut=cut))
    assert "1 run is not counted: the trace has only a part" in run("show", path).stdout


def test_ends_that_are_written_late_are_bounded_by_the_users() -> None:
    """The CPU's runtime goes on with what follows in the same thread, and says then that the operation is done."""
    (late,) = hlo.proto.read_trace(with_loop(late=250)).modules
    (plain,) = hlo.proto.read_trace(with_loop()).modules
    assert late.times == plain.times
    assert sum(late.times[name].seconds for name in ("sort.1", "sine")) <= late.times["while.1"].seconds


def test_the_name_without_the_number_finds_a_module(tmp_path: Path) -> None:
    """As the command's help shows; where several have it, which there are."""
    path = tmp_path / "trace.xplane.pb"
    path.write_bytes(on_gpus(1))
    for name in ("jit_step", "jit_step(7)"):
        assert run("convert", path, "--module", name, "-o", "-").stdout.startswith("HloModule jit_step")
    path.write_bytes(space([], ("jit_step(7)", TEXT), ("jit_step(8)", TEXT)))
    result = run("convert", path, "--module", "jit_step", "-o", "-")
    assert result.exit_code == 2
    assert "several modules jit_step; choose one of jit_step(7), jit_step(8)" in result.stderr


def test_traces_without_modules_and_damaged_ones_are_called_traces(tmp_path: Path) -> None:
    path = tmp_path / "trace.xplane.pb"
    path.write_bytes(space([]))
    assert "no HLO in this trace" in run("show", path).stdout
    assert "no HLO in this trace" in run("convert", path, "-o", "-").stderr
    path.write_bytes(on_gpus(1)[:500])
    for command in (("show", path), ("convert", path, "-o", "-")):
        result = run(*command)
        assert result.exit_code == 2
        assert "a damaged profiler trace (XSpace)" in result.stderr
