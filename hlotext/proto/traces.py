"""Profiler traces (`XSpace`): which modules they hold, how often those ran and how long, and what each operation took.

The profiler keeps the `HloProto` of each module that ran in a plane of its own, as a statistic of an event's metadata
(`/host:metadata`, "Hlo Proto"), whose name ends in the program's id. Times lie in events that name an operation
(`hlo_op`, with `program_id` and `run_id`), as the CPU's and GPU's runtimes write them; a TPU's planes have lines of their own
for modules and operations ("XLA Modules", "XLA Ops"; inferred, no such trace was at hand). `trace_events.py` reads these.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.value import mimebundle
from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.metadata import text
from hlotext.proto.reader import read_module
from hlotext.proto.trace_events import NUMBERED, Kernel, Program, programs

_MOST_USERS = 64
"""Users that are looked at: one is enough to tell when an operation was done."""
MAX_MODULES = 100_000
"""Modules of one trace."""


def module_spans(data: bytes, name: str = "") -> list[tuple[str, int, int]]:
    """Returns name, start and end (byte offsets) of each `HloModuleProto` in a serialized `XSpace`.

    Raises ProtoError for invalid bytes and for too many modules.
    """
    found: list[tuple[str, int, int]] = []
    for event, start, end in _metadata_stats(data, name):
        span = next(
            ((a, b) for n, k, a, b in wire.scan(data, start, end, name) if n == 1 and k == wire.BYTES), None
        )
        if span is not None:
            found.append((event, *span))
        if len(found) > MAX_MODULES:
            raise ProtoError(f"a trace with more than {MAX_MODULES:,} modules", name=name)
    return found


def _metadata_stats(data: bytes, name: str) -> Iterator[tuple[str, int, int]]:
    """Bytes among the statistics of events' metadata, as far as they may be an `HloProto`, with the event's name."""
    for number, kind, plane_start, plane_end in wire.scan(data, 0, len(data), name):
        if number != 1 or kind != wire.BYTES:
            continue
        for field, field_kind, entry_start, entry_end in wire.scan(data, plane_start, plane_end, name):
            if field != 4 or field_kind != wire.BYTES:
                continue
            for part, part_kind, a, b in wire.scan(data, entry_start, entry_end, name):
                if part == 2 and part_kind == wire.BYTES:
                    yield from _stats(data, a, b, name)


def _stats(data: bytes, start: int, end: int, name: str) -> Iterator[tuple[str, int, int]]:
    title = ""
    for number, kind, a, b in wire.scan(data, start, end, name):
        if number == 2 and kind == wire.BYTES:
            title = text(data[a:b])
        elif number == 5 and kind == wire.BYTES:
            for part, part_kind, value, value_end in wire.scan(data, a, b, name):
                if part == 6 and part_kind == wire.BYTES and _is_proto(data, value, value_end):
                    yield title, value, value_end


def _is_proto(data: bytes, start: int, end: int) -> bool:
    """True if these bytes are an `HloProto`: a module in its first field."""
    try:
        fields = [(n, k, a, b) for n, k, a, b in wire.scan(data, start, end)]
        if not fields or fields[0][:2] != (1, wire.BYTES):
            return False
        inner = {n: k for n, k, _, _ in wire.scan(data, fields[0][2], fields[0][3])}
    except ProtoError:
        return False
    return inner.get(1) == wire.BYTES and inner.get(3) == wire.BYTES


# ---- times


@attrs.frozen
class DeviceTime:
    """Total time of one operation on one device in a trace."""

    device: str
    """Name of the device's plane, such as `/device:GPU:0`; `CPU`, or `CPU:0` if there are several."""
    count: int
    """Number of kernels, of which one execution may have several; on CPU, number of executions."""
    seconds: float


@attrs.frozen
class OpTime:
    """Total time of one operation in a trace, including its callees."""

    devices: tuple[DeviceTime, ...]
    """Time on each device, slowest first."""
    launches: int = 0
    """Number of host calls that launched its kernels."""
    launch_seconds: float = 0.0
    """Host time of these calls."""

    @property
    def count(self) -> int:
        """Number of kernels on all devices; on CPU, number of executions, counting every iteration of loops."""
        return sum(one.count for one in self.devices)

    @property
    def seconds(self) -> float:
        """Seconds on the slowest device, since devices run in parallel; 0 if there are none."""
        return self.devices[0].seconds if self.devices else 0.0

    @property
    def total_seconds(self) -> float:
        """Seconds summed over all devices."""
        return sum(one.seconds for one in self.devices)

    @property
    def mean_seconds(self) -> float:
        """Mean seconds over the devices that executed it; 0 if there are none."""
        return self.total_seconds / len(self.devices) if self.devices else 0.0


@attrs.define(eq=False)
class TracedModule:
    """A module in a profiler trace, with the times of its operations."""

    name: str
    """Name of the module, without the program id."""
    program_id: int | None
    """Program id in the trace, or None if there is none."""
    runs: int | None
    """Number of runs, or None if the trace does not separate runs, as on GPU."""
    seconds: float | None
    """Seconds from the first to the last operation of each run, summed over runs, on the slowest device.

    None if the trace does not separate runs.
    """
    times: dict[str, OpTime]
    """Time of each operation, by name; empty if the trace has no operation times."""
    _read: Any = attrs.field(repr=False)
    _module: Module | None = attrs.field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    """Notes on truncated runs, and on kernels that name no operation (see `thunks.with_kernels_named`)."""

    @property
    def module(self) -> Module:
        """The module, parsed on first access. Raises ProtoError if it is invalid."""
        if self._module is None:
            self._module = self._read()
        return self._module

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that executed the module, sorted (see `DeviceTime.device`)."""
        return tuple(sorted({one.device for time in self.times.values() for one in time.devices}))

    @property
    def counts_kernels(self) -> bool:
        """True if `count` is the number of kernels; False for programs that ran on CPU."""
        return any(name.startswith("/device:") for name in self.devices)

    _repr_mimebundle_ = mimebundle

    def time_of(self, instruction: Instruction) -> OpTime | None:
        """Returns the time of an instruction of the module, or None if it is not in the trace.

        Instructions inside a fusion have no time. Operations with the same name in several computations share one time.
        """
        return self.times.get(instruction.name)


@attrs.frozen
class Trace:
    """A profiler trace, reduced to modules and the times of their operations."""

    modules: tuple[TracedModule, ...]
    """Modules contained in the trace, in file order."""
    others: tuple[str, ...]
    """Names of executed modules that the trace does not contain."""
    unnamed: Mapping[str, tuple[Kernel, ...]] = attrs.field(factory=dict, repr=False)
    """Kernels and copies that name no operation, such as those in command buffers, by GPU."""

    _repr_mimebundle_ = mimebundle


def read_trace(data: bytes, name: str = "") -> Trace:
    """Reads the modules and operation times of a serialized `XSpace`, the format of `.xplane.pb`.

    Raises ProtoError, whose message names the file `name`, if it is invalid.
    """
    found = module_spans(data, name)
    seen, unnamed = programs(data, name)
    modules = []
    for title, start, end in found:
        match = NUMBERED.fullmatch(title)
        label, number = (match[1], int(match[2])) if match is not None else (title, None)
        program = seen.pop(label if number is None or number not in seen else number, None) or Program()
        read = functools.cache(functools.partial(read_module, data, name, start, end))
        program.sum_up(functools.partial(_users, read, program))
        modules.append(
            TracedModule(
                label,
                number,
                program.runs,
                program.seconds,
                {op: _time(program, op) for op in {**program.times, **program.launches}},
                read,
                notes=_left_out(program),
            )
        )
    others = tuple(program.name or str(key) for key, program in seen.items())
    return Trace(tuple(modules), others, unnamed)


def _users(read: Callable[[], Module], program: Program) -> dict[str, set[str]]:
    """The operations that use each one that ran, through those that take no time; none where the module cannot be read."""
    try:
        module = read()
    except ProtoError:
        return {}
    ran = {name for runs in program.recorded.values() for run in runs.values() for name in run.names()}
    found: dict[str, set[str]] = {}
    for node in reversed(list(module.instructions())):  # users come first
        direct = found.setdefault(node.name, set())
        for user in itertools.islice(node.user_view, _MOST_USERS):
            direct |= {user.name} if user.name in ran else found.get(user.name, set())
        if len(direct) > _MOST_USERS and node.name not in ran:
            direct.clear()
    return {name: found[name] for name in ran if name in found}


def _left_out(program: Program) -> tuple[str, ...]:
    if not program.cut:
        return ()
    runs = "1 run is" if program.cut == 1 else f"{program.cut:,} runs are"
    return (f"{runs} not counted: the trace has only a part, as profiling began or ended meanwhile",)


def _time(program: Program, operation: str) -> OpTime:
    devices = [
        DeviceTime(device, one.count, one.picoseconds / 1e12)
        for device, one in program.times.get(operation, {}).items()
    ]
    launched = program.launches.get(operation)
    return OpTime(
        tuple(sorted(devices, key=lambda one: (-one.seconds, one.device))),
        launched.count if launched is not None else 0,
        launched.picoseconds / 1e12 if launched is not None else 0.0,
    )
