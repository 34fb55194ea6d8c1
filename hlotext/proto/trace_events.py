"""The events of a profiler's trace that name an operation: which program ran when, and what operations took on each device.

Planes of devices tell what ran there. A host's plane tells of a trace without devices what the CPU ran, and of others the
calls that launched the kernels, which take no time on the device and are counted apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import attrs
import numpy as np

from hlotext.proto import wire
from hlotext.proto.metadata import text
from hlotext.proto.trace_runs import RecordedRun, cut_runs

NUMBERED = re.compile(r"(.*)\((-?\d+)\)")
"""A module's name, and the program's number."""
_WANTED = ("hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "_p")
_DEVICE = re.compile(r"/device:(?!CUSTOM)\w+:\d+")
_OPERATIONS = "XLA Ops"
"""The line of a device's plane that the profiler derives for operations. Others repeat them: by framework's operation, by
line of source, asynchronous ones from start to end."""
_END = "end: "
"""Name prefix of the CPU's event at the end of an operation; its context (`_c`) leads to the start (`_p`)."""
_RUN_UNKNOWN = -1


@attrs.define
class Sum:
    """Number and total duration of several events."""

    count: int = 0
    picoseconds: int = 0

    def add(self, picoseconds: int) -> None:
        """Adds an event."""
        self.count += 1
        self.picoseconds += picoseconds


@attrs.define(eq=False)
class Program:
    """The records of one program in a trace."""

    name: str = ""
    spans: dict[str, dict[int, tuple[int, int]]] = attrs.field(factory=dict)
    """For each device the first and the last moment of each run, in picoseconds."""
    runs_known: bool = False
    times: dict[str, dict[str, Sum]] = attrs.field(factory=dict)
    """For each operation what it took on each device."""
    launches: dict[str, Sum] = attrs.field(factory=dict)
    """For each operation the host's calls that launched it."""
    recorded: dict[str, dict[int, RecordedRun]] = attrs.field(factory=dict)
    """For each device its runs as far as they are told apart, until they are summed up."""
    cut: int = 0
    """Runs that the trace cut off, which nothing else counts, on the device with most of them."""

    def ran(self, device: str, run: int, first: int, last: int) -> None:
        """Extends the span of a run on a device by an event from `first` to `last`, in picoseconds."""
        spans = self.spans.setdefault(device, {})
        known = spans.get(run)
        spans[run] = (first, last) if known is None else (min(known[0], first), max(known[1], last))

    def took(self, device: str, operation: str, first: int, last: int) -> None:
        """Adds an execution of an operation on a device, from `first` to `last`, in picoseconds."""
        self.times.setdefault(operation, {}).setdefault(device, Sum()).add(last - first)

    def sum_up(self, users: Callable[[], Mapping[str, Collection[str]]] = dict) -> None:
        """Adds up the recorded runs, except those that the trace cuts off, and discards all of them.

        `users` returns the users of each operation by name; it is called only if operations overlap.
        """
        if any(run.has_overlaps() for runs in self.recorded.values() for run in runs.values()):
            known = users()
            for runs in self.recorded.values():
                for run in runs.values():
                    run.bound(known)
        for device, runs in self.recorded.items():
            cut = cut_runs(runs)
            self.cut = max(self.cut, len(cut))
            for number, run in runs.items():
                if number in cut:
                    continue
                self.ran(device, number, run.first, run.last)
                for first, last, operation in run.events:
                    self.took(device, operation, first, last)
        self.recorded.clear()

    @property
    def runs(self) -> int | None:
        """Number of runs on the device with most of them; None if runs cannot be distinguished."""
        return max(map(len, self.spans.values()), default=0) if self.runs_known else None

    @property
    def seconds(self) -> float | None:
        """Total seconds of all runs, on the device with the largest total; None if runs cannot be distinguished."""
        if not self.runs_known:
            return None
        sums = [sum(last - first for first, last in spans.values()) for spans in self.spans.values()]
        return max(sums, default=0) / 1e12


class Kernel(NamedTuple):
    """A kernel or copy on a device whose event names no operation, as in command buffers. Times are in picoseconds."""

    name: str
    first: int
    last: int


class _Line(NamedTuple):
    start: int
    end: int
    name: str


@attrs.define(eq=False)
class _Plane:
    """One `XPlane`: its lines where they stand, and its names."""

    name: str = ""
    lines: list[_Line] = attrs.field(factory=list)
    events: dict[int, str] = attrs.field(factory=dict)
    statistics: dict[int, str] = attrs.field(factory=dict)

    @property
    def is_device(self) -> bool:
        return _DEVICE.match(self.name) is not None

    def operations(self) -> list[_Line]:
        """The lines that tell of operations, each of them once."""
        derived = [line for line in self.lines if line.name == _OPERATIONS]
        return (self.streams() or derived or self.lines) if self.is_device else self.lines

    def streams(self) -> list[_Line]:
        """The lines of a GPU's streams, which tell of each kernel and copy once."""
        return [line for line in self.lines if line.name.startswith("Stream")]


class _Event(NamedTuple):
    """One event that names an operation."""

    program: int | str
    module: str
    operation: str
    run: int | None
    device: int | None
    first: int
    last: int
    is_open: bool
    """True if it is begun, and the trace ends before it is done."""


def programs(data: bytes, name: str) -> tuple[dict[int | str, Program], dict[str, tuple[Kernel, ...]]]:
    """Returns the programs of a serialized `XSpace`, by program id or else module name, and the kernels without
    operation, by device.

    Raises ProtoError for bytes that are no `XSpace`.
    """
    reader = _Reader(wire.Buffer.of(data, name))
    return reader.programs(), reader.unnamed


class _Reader:
    def __init__(self, buffer: wire.Buffer) -> None:
        self._buffer = buffer
        self._found: dict[int | str, Program] = {}
        self.unnamed: dict[str, tuple[Kernel, ...]] = {}

    def programs(self) -> dict[int | str, Program]:
        data, name = self._buffer.data, self._buffer.name
        planes = [
            self._plane(start, end)
            for number, kind, start, end in wire.scan(data, 0, len(data), name)
            if number == 1 and kind == wire.BYTES
        ]
        for plane in planes:
            if plane.is_device:
                self._device(plane)
        has_devices = any(program.times for program in self._found.values())
        for plane in planes:
            if not plane.is_device:
                self._host(plane, has_devices)
        return self._found

    def _program(self, key: int | str, name: str) -> Program:
        program = self._found.setdefault(key, Program())
        program.name = program.name or name
        return program

    def _device(self, plane: _Plane) -> None:
        for line in plane.lines:
            if line.name == "XLA Modules":
                self._modules(plane, line)
        has_modules = any(line.name == "XLA Modules" for line in plane.lines)
        for event in self._events(plane, plane.operations()):
            program = self._program(event.program, event.module)
            program.took(plane.name, event.operation, event.first, event.last)
            if event.run is not None and not has_modules:
                program.runs_known = True
                program.ran(plane.name, event.run, event.first, event.last)
        unnamed = tuple(self._unnamed(plane))
        if unnamed:
            self.unnamed[plane.name] = unnamed

    def _unnamed(self, plane: _Plane) -> Iterator[Kernel]:
        """The events of a GPU's streams that name no operation."""
        ids = {title: key for key, title in plane.statistics.items() if title == "hlo_op"}
        for line in plane.streams():
            found, first, last = self._columns(line)
            named = self._statistics(found, plane, ids).get("hlo_op", {}) if ids else {}
            keys = _numbers(found, 1, len(first)).tolist()
            for event, (key, begin, end) in enumerate(zip(keys, first.tolist(), last.tolist(), strict=True)):
                if event not in named:
                    yield Kernel(plane.events.get(key, ""), begin, end)

    def _modules(self, plane: _Plane, line: _Line) -> None:
        """The line on which each event is a run of a program."""
        found, first, last = self._columns(line)
        for key, start, end in zip(
            _numbers(found, 1, len(first)).tolist(), first.tolist(), last.tolist(), strict=True
        ):
            match = NUMBERED.fullmatch(plane.events.get(key, ""))
            if match is not None:
                program = self._program(int(match[2]), match[1])
                program.runs_known = True
                program.ran(plane.name, len(program.spans.get(plane.name, ())), start, end)

    def _host(self, plane: _Plane, has_devices: bool) -> None:
        for event in self._events(plane, plane.lines):
            program = self._program(event.program, event.module)
            if has_devices:
                program.launches.setdefault(event.operation, Sum()).add(event.last - event.first)
                continue
            device = "CPU" if event.device is None else f"CPU:{event.device}"
            if event.run is None:
                program.took(device, event.operation, event.first, event.last)
                program.ran(device, _RUN_UNKNOWN, event.first, event.last)
                continue
            program.runs_known = True
            run = program.recorded.setdefault(device, {}).setdefault(event.run, RecordedRun())
            run.events.append((event.first, event.last, event.operation))
            run.is_open |= event.is_open

    # ---- reading

    def _plane(self, start: int, end: int) -> _Plane:
        data, plane = self._buffer.data, _Plane()
        for number, kind, a, b in wire.scan(data, start, end, self._buffer.name):
            if kind != wire.BYTES:
                continue
            if number == 2:
                plane.name = text(data[a:b])
            elif number == 3:
                plane.lines.append(_Line(a, b, self._line_name(a, b)))
            elif number in (4, 5):
                key, title = self._entry(a, b)
                (plane.events if number == 4 else plane.statistics)[key] = title
        return plane

    def _line_name(self, start: int, end: int) -> str:
        data = self._buffer.data
        for number, kind, a, b in wire.scan(data, start, end, self._buffer.name):
            if number == 2 and kind == wire.BYTES:
                return text(data[a:b])
        return ""

    def _entry(self, start: int, end: int) -> tuple[int, str]:
        """Key and name of an entry of a map of metadata."""
        data = self._buffer.data
        key, title = 0, ""
        for number, kind, a, b in wire.scan(data, start, end, self._buffer.name):
            if number == 1 and kind == wire.VARINT:
                key = a
            elif number == 2 and kind == wire.BYTES:
                for field, field_kind, c, d in wire.scan(data, a, b, self._buffer.name):
                    if field == 2 and field_kind == wire.BYTES:
                        title = text(data[c:d])
        return key, title

    def _columns(self, line: _Line) -> tuple[dict[int, wire.Column], Any, Any]:
        """The fields of a line's events, and the first and last moment of each, in picoseconds."""
        data, begin = self._buffer.data, 0
        starts: list[int] = []
        ends: list[int] = []
        for number, kind, a, b in wire.scan(data, line.start, line.end, self._buffer.name):
            if number == 4 and kind == wire.BYTES and a < b:
                starts.append(a)
                ends.append(b)
            elif number == 3 and kind == wire.VARINT:
                begin = a
        if not starts:
            return {}, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        found, _ = wire.columns(self._buffer, np.array(starts), np.array(ends))
        first = begin * 1000 + _numbers(found, 2, len(starts))
        return found, first, first + _numbers(found, 3, len(starts))

    def _events(self, plane: _Plane, lines: list[_Line]) -> Iterator[_Event]:
        """The events of some lines that name an operation; what the CPU begins and is done later lasts until then."""
        if "hlo_op" not in plane.statistics.values():
            return
        ids = {title: key for key, title in plane.statistics.items() if title in _WANTED}
        done = self._done(plane)
        for line in lines:
            found, first, last = self._columns(line)
            values = self._statistics(found, plane, ids)
            for event, operation in values.get("hlo_op", {}).items():
                title = str(values["hlo_module"].get(event, ""))
                program = values["program_id"].get(event, title)
                start, end = int(first[event]), int(last[event])
                context = values["_p"].get(event)
                is_open = bool(done) and isinstance(context, int) and context not in done
                if isinstance(context, int):
                    end = max(end, done.get(context, end))
                yield _Event(
                    title if isinstance(program, str) else program,
                    title,
                    str(operation),
                    _whole(values["run_id"].get(event)),
                    _whole(values["device_ordinal"].get(event)),
                    start,
                    end,
                    is_open,
                )

    def _done(self, plane: _Plane) -> dict[int, int]:
        """The moments at which what the CPU had begun was done, by the number of the context."""
        ends = {key for key, title in plane.events.items() if title.startswith(_END)}
        number = next((key for key, title in plane.statistics.items() if title == "_c"), None)
        done: dict[int, int] = {}
        if not ends or number is None or plane.is_device:
            return done
        for line in plane.lines:
            found, first, _ = self._columns(line)
            names = _numbers(found, 1, len(first))
            for event, context in self._statistics(found, plane, {"_c": number}).get("_c", {}).items():
                if int(names[event]) in ends and isinstance(context, int):
                    done[context] = int(first[event])
        return done

    def _statistics(
        self, found: dict[int, wire.Column], plane: _Plane, ids: dict[str, int]
    ) -> dict[str, dict[int, int | str]]:
        """The wanted statistics by name and event."""
        column = found.get(4)
        if column is None:
            return {}
        inner, _ = wire.columns(self._buffer, column.start, column.end)
        kinds = _numbers(inner, 1, len(column.rows))
        numbers = np.full(len(column.rows), -1, dtype=np.int64)
        for number in (3, 4):  # uint64, int64
            part = inner.get(number)
            if part is not None and (part.wire_type == wire.VARINT).all():
                numbers[part.rows] = part.start
        words: dict[int, str] = {}
        part = inner.get(5)
        if part is not None:
            for row, a, b in zip(part.rows.tolist(), part.start.tolist(), part.end.tolist(), strict=True):
                words[row] = text(self._buffer.data[a:b])
        part = inner.get(7)  # the number of a name
        if part is not None and (part.wire_type == wire.VARINT).all():
            for row, number in zip(part.rows.tolist(), part.start.tolist(), strict=True):
                words[row] = plane.statistics.get(number, "")
        values: dict[str, dict[int, int | str]] = {}
        for name in ("_c", *_WANTED):
            rows = np.flatnonzero(kinds == ids.get(name, -1))
            values[name] = {
                int(column.rows[row]): words[row] if row in words else int(numbers[row])
                for row in rows.tolist()
            }
        return values


def _whole(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None


def _numbers(found: dict[int, wire.Column], number: int, count: int) -> Any:
    values = np.zeros(count, dtype=np.int64)
    column = found.get(number)
    if column is not None and (column.wire_type == wire.VARINT).all():
        values[column.rows] = column.start
    return values
