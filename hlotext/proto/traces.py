"""Profiler traces (`XSpace`): which modules they hold, how often those ran and how long, and what each operation took.

The profiler keeps the `HloProto` of each module that ran in a plane of its own, as a statistic of an event's metadata
(`/host:metadata`, "Hlo Proto"), whose name ends in the program's id. Times lie in events that name an operation
(`hlo_op`, with `program_id` and `run_id`), as the CPU's and GPU's runtimes write them; a TPU's planes have lines of their own
for modules and operations ("XLA Modules", "XLA Ops"; inferred, no such trace was at hand).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.metadata import text
from hlotext.proto.reader import read_module

MAX_MODULES = 100_000
"""Modules of one trace."""


def module_spans(data: bytes, name: str = "") -> list[tuple[str, int, int]]:
    """The modules of a serialized `XSpace`: name, start and end of the `HloModuleProto`. Raises ProtoError."""
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
    """Whether these bytes are an `HloProto`: a module in its first field."""
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
class OpTime:
    """What one operation took in all runs that the trace saw, its callees included."""

    count: int
    """How often it ran: an operation in a loop as often as the loop did."""
    seconds: float
    """All these times together."""


@attrs.define(eq=False)
class TracedModule:
    """One program of a trace."""

    name: str
    """The module's name, without the program's id."""
    program_id: int | None
    """The number that the trace gives it; None where it gives none."""
    runs: int | None
    """How often it ran while the trace was on; None where the trace does not tell runs apart."""
    seconds: float | None
    """From the first operation of a run to the end of its last, for all runs together; None where nothing says it."""
    times: dict[str, OpTime]
    """What each operation took, by its name in the module; empty where the trace has no times of operations."""
    _read: Any = attrs.field(repr=False)
    _module: Module | None = attrs.field(default=None, repr=False)

    @property
    def module(self) -> Module:
        """The module, read when it is first asked for. Raises ProtoError."""
        if self._module is None:
            self._module = self._read()
        return self._module

    def time_of(self, instruction: Instruction) -> OpTime | None:
        """What an instruction of the module took; None where the trace does not say it.

        Instructions inside of a fusion have no time of their own. Of operations of several computations with one name the
        time is that of all.
        """
        return self.times.get(instruction.name)


@attrs.frozen
class Trace:
    """A profiler's trace, as far as it is about modules."""

    modules: tuple[TracedModule, ...]
    """The programs whose modules it holds, in the order of the file."""
    others: tuple[str, ...]
    """Names of programs that ran, and whose modules it does not hold."""


_NUMBERED = re.compile(r"(.*)\((-?\d+)\)")
_WANTED = ("hlo_op", "hlo_module", "program_id", "run_id")


def read_trace(data: bytes, name: str = "") -> Trace:
    """The modules of a serialized `XSpace`, with what ran how often and how long. Raises ProtoError."""
    found = module_spans(data, name)
    seen = _Events(wire.Buffer.of(data, name))
    for number, kind, start, end in wire.scan(data, 0, len(data), name):
        if number == 1 and kind == wire.BYTES:
            seen.plane(start, end)
    modules = []
    for title, start, end in found:
        match = _NUMBERED.fullmatch(title)
        label, program = (match[1], int(match[2])) if match is not None else (title, None)
        key: int | str = label if program is None or program not in seen.spans else program
        runs = seen.spans.pop(key, {})
        times = seen.times.pop(key, {})
        modules.append(
            TracedModule(
                label,
                program,
                len(runs) if key in seen.runs_known else None,
                sum(last - first for first, last in runs.values()) / 1e12 if runs else None,
                {op: OpTime(count, picoseconds / 1e12) for op, (count, picoseconds) in times.items()},
                lambda start=start, end=end: read_module(data, name, start, end),
            )
        )
    return Trace(tuple(modules), tuple(str(seen.names.get(key, key)) for key in seen.spans))


class _Events:
    """The events of all planes that name an operation."""

    def __init__(self, buffer: wire.Buffer) -> None:
        self.buffer = buffer
        self.spans: dict[int | str, dict[int, tuple[int, int]]] = {}
        """For each program the first and the last moment of each run, in picoseconds."""
        self.times: dict[int | str, dict[str, tuple[int, int]]] = {}
        """For each program how often each operation ran, and for how many picoseconds."""
        self.names: dict[int | str, str] = {}
        self.runs_known: set[int | str] = set()

    def plane(self, start: int, end: int) -> None:
        """Adds the events of one `XPlane`."""
        data = self.buffer.data
        lines: list[tuple[int, int]] = []
        stats: dict[int, str] = {}
        events: dict[int, str] = {}
        for number, kind, a, b in wire.scan(data, start, end, self.buffer.name):
            if kind != wire.BYTES:
                continue
            if number == 3:
                lines.append((a, b))
            elif number in (4, 5):
                key, title = self._entry(a, b)
                (events if number == 4 else stats)[key] = title
        ids = {title: key for key, title in stats.items() if title in _WANTED}
        for a, b in lines:
            self._line(a, b, ids, stats, events)

    def _entry(self, start: int, end: int) -> tuple[int, str]:
        """Key and name of an entry of a map of metadata."""
        data = self.buffer.data
        key, title = 0, ""
        for number, kind, a, b in wire.scan(data, start, end, self.buffer.name):
            if number == 1 and kind == wire.VARINT:
                key = a
            elif number == 2 and kind == wire.BYTES:
                for field, field_kind, c, d in wire.scan(data, a, b, self.buffer.name):
                    if field == 2 and field_kind == wire.BYTES:
                        title = text(data[c:d])
        return key, title

    def _line(
        self, start: int, end: int, ids: dict[str, int], stats: dict[int, str], events: dict[int, str]
    ) -> None:
        data = self.buffer.data
        label, begin = "", 0
        starts: list[int] = []
        ends: list[int] = []
        for number, kind, a, b in wire.scan(data, start, end, self.buffer.name):
            if number == 4 and kind == wire.BYTES and a < b:
                starts.append(a)
                ends.append(b)
            elif number == 2 and kind == wire.BYTES:
                label = text(data[a:b])
            elif number == 3 and kind == wire.VARINT:
                begin = a
        if not starts or not ("hlo_op" in ids or label == "XLA Modules"):
            return
        count = len(starts)
        found, _ = wire.columns(self.buffer, np.array(starts), np.array(ends))
        offset, duration, event = (self._numbers(found, number, count) for number in (2, 3, 1))
        first = begin * 1000 + offset
        if label == "XLA Modules":
            for key, a, length in zip(event.tolist(), first.tolist(), duration.tolist(), strict=True):
                match = _NUMBERED.fullmatch(events.get(key, ""))
                if match is not None:
                    runs = self.spans.setdefault(int(match[2]), {})
                    runs[len(runs)] = a, a + length
                    self.names[int(match[2])] = match[1]
                    self.runs_known.add(int(match[2]))
            return
        self._operations(found, ids, stats, first, duration)

    @staticmethod
    def _numbers(found: dict[int, wire.Column], number: int, count: int) -> Any:
        values = np.zeros(count, dtype=np.int64)
        column = found.get(number)
        if column is not None and (column.wire_type == wire.VARINT).all():
            values[column.rows] = column.start
        return values

    def _operations(
        self,
        found: dict[int, wire.Column],
        ids: dict[str, int],
        stats: dict[int, str],
        first: Any,
        duration: Any,
    ) -> None:
        """The events of a line that name an operation, by their statistics."""
        column = found.get(4)
        if column is None:
            return
        inner, _ = wire.columns(self.buffer, column.start, column.end)
        kinds = self._numbers(inner, 1, len(column.rows))
        values = np.full(len(column.rows), -1, dtype=np.int64)
        for number in (3, 4, 7):  # uint64, int64, reference to a name
            part = inner.get(number)
            if part is not None and (part.wire_type == wire.VARINT).all():
                values[part.rows] = part.start
        words: dict[int, str] = {}
        part = inner.get(5)
        if part is not None:
            for row, a, b in zip(part.rows.tolist(), part.start.tolist(), part.end.tolist(), strict=True):
                words[row] = text(self.buffer.data[a:b])

        def of(name: str) -> dict[int, int | str]:
            """The statistic of that name, by event."""
            rows = np.flatnonzero(kinds == ids.get(name, -1))
            return {
                int(column.rows[row]): words[row] if row in words else int(values[row])
                for row in rows.tolist()
            }

        def word(value: int | str) -> str:
            return value if isinstance(value, str) else stats.get(value, "")

        programs, runs, modules = of("program_id"), of("run_id"), of("hlo_module")
        for event, op in of("hlo_op").items():
            title = word(modules.get(event, ""))
            key: int | str = programs.get(event, title)
            key = title if isinstance(key, str) else key
            a, length = int(first[event]), int(duration[event])
            self.names[key] = title
            run = runs.get(event)
            if isinstance(run, int):
                self.runs_known.add(key)
            spans = self.spans.setdefault(key, {})
            run = run if isinstance(run, int) else 0
            known = spans.get(run)
            spans[run] = (a, a + length) if known is None else (min(known[0], a), max(known[1], a + length))
            times = self.times.setdefault(key, {})
            before = times.get(word(op), (0, 0))
            times[word(op)] = before[0] + 1, before[1] + length
