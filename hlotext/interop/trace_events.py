"""A module's schedule as JSON trace events, for Perfetto, chrome://tracing and other viewers.

Lanes are those of `hlotext cost --chip`: one for the core, one for each link and copy engine, where slices follow each
other and add up to the estimate's seconds. On the core's lane loops are drawn as one slice with their first iteration inside,
conditionals with the branch that is counted. What runs asynchronously in several steps has a lane of its own, beside that of
its transfer. Counters hold the live bytes of each memory space; arrows lead from a start to its done. Times of a profiler's
trace go beside, as a process of their own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hlotext.analysis import scopes, source_locations
from hlotext.cost import Estimate, InstructionTime, analyze
from hlotext.cost.schedule import CORE, ScheduledTransfer, Walk
from hlotext.findings import escape
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory import Assignment, usage
from hlotext.proto.traces import TracedModule

ESTIMATED, MEASURED = 1, 2
"""Numbers of the processes."""
_CORE_LANE = 1
_PICO = 1e12
MOST_DEEP = 16
"""Loops and calls inside each other that are drawn."""

Event = Mapping[str, Any]


def trace_events(
    estimate: Estimate, memory: Assignment | None = None, measured: TracedModule | None = None
) -> Iterator[Event]:
    """Yields the events of one run in Chrome's trace event format.

    Args:
        estimate: The least times; their chip names the process.
        memory: The assignment whose live bytes are drawn; None for no counters.
        measured: Times of a profiler's trace, each operation as long as its mean run on the slowest device.

    Yields:
        Events as the trace event format has them: `X` slices, `C` counters, `s` and `f` arrows, `M` names. Times are in
        microseconds. `args.picoseconds` is the exact least time of one execution, `args.executions` how many there are in one
        run of the module; of what lasts for another reason (loops, waits) there are none.
    """
    yield from _names(ESTIMATED, f"estimated ({estimate.chip.name})", 1)
    drawn = _Drawn(estimate)
    yield from drawn.events()
    if memory is not None:
        yield from _counters(memory, drawn.begins, estimate.seconds)
    if measured is not None:
        yield from _measured(estimate, measured)


def packed(events: Iterator[Event]) -> bytes:
    """Returns events as gzipped JSON; equal events give equal bytes."""
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in events)
    text = f'{{"displayTimeUnit":"ns","traceEvents":[\n{lines}\n]}}\n'
    return gzip.compress(text.encode(), 6, mtime=0)


def _names(process: int, name: str, order: int) -> Iterator[Event]:
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "pid": process, "name": "process_sort_index", "args": {"sort_index": order}}


def _lane(process: int, number: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": name}}
    yield {
        "ph": "M",
        "pid": process,
        "tid": number,
        "name": "thread_sort_index",
        "args": {"sort_index": number},
    }


def _micro(picoseconds: int) -> float:
    """Microseconds with six digits, so that no float is added up."""
    return round(picoseconds / 1e6, 6)


@attrs.frozen
class _Transfer:
    """A transfer where it is drawn."""

    transfer: ScheduledTransfer
    begin: int
    """In picoseconds, as the next."""
    end: int
    exposed: float
    """Seconds for which the core waits for it."""
    done: int | None
    """When its end is come to; None if nothing waits for it."""
    lane: int
    """The lane of what starts and ends it."""


@attrs.define
class _Drawn:
    """The walk through the entry, with the first iterations of loops."""

    estimate: Estimate
    begins: dict[Instruction, int] = attrs.field(factory=dict)
    """When each instruction of the entry begins, in picoseconds."""
    _lanes: dict[str, list[tuple[int, int]]] = attrs.field(factory=dict)
    """Of each queue its lanes: number, and when it is free again."""
    _numbers: int = _CORE_LANE
    _arrows: int = 0
    _transfers: list[_Transfer] = attrs.field(factory=list)
    """Transfers of all walks, in the order of the walks."""
    _facts: _Facts = attrs.field(init=False)
    _timed: dict[Instruction, InstructionTime] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._facts = _Facts(self.estimate)
        self._timed = {one.instruction: one for one in (*self.estimate.instructions, *self.estimate.beside)}

    def events(self) -> Iterator[Event]:
        """All slices and arrows, and the names of the lanes."""
        yield from _lane(ESTIMATED, _CORE_LANE, CORE)
        yield from self._walk(self.estimate.walk, 0, None, _CORE_LANE, 0)
        while self._transfers:  # what runs asynchronously may transfer on its own
            waiting, self._transfers = self._transfers, []
            for one in sorted(waiting, key=lambda one: one.begin):
                yield from self._transfer(one)

    def _walk(self, walk: Walk, begin: int, end: int | None, lane: int, depth: int) -> Iterator[Event]:
        """The steps of one walk; `end` bounds those inside a slice, whose lengths are rounded apart from its own."""
        begins: dict[Instruction, int] = {}

        def clipped(time: float) -> int:
            at = begin + round(time * _PICO)
            return at if end is None else min(at, end)

        for step in walk.steps:
            a, b = clipped(step.begin), clipped(step.end)
            begins.setdefault(step.instruction, a)
            yield self._slice(step.instruction, lane, a, b, step.least, step.awaited)
            if step.least is None and step.awaited is None and depth < MOST_DEEP:
                yield from self._bodies(step.instruction, a, b, lane, depth)
        if walk is self.estimate.walk:
            self.begins = begins
        for transfer in walk.transfers:
            a, b = clipped(transfer.begin), clipped(transfer.end)
            if b > a:
                done = begins.get(transfer.done) if transfer.done is not None else None
                self._transfers.append(_Transfer(transfer, a, b, walk.exposed.get(transfer, 0.0), done, lane))

    def _bodies(self, call: Instruction, begin: int, end: int, lane: int, depth: int) -> Iterator[Event]:
        """The first iteration of a loop, or what a call runs, inside its slice."""
        at = begin
        for body in call.called_computations:
            walk = self.estimate.walks.get(body)
            if call.opcode == "conditional" and not any(one in self._timed for one in body):
                continue  # another branch is counted
            if walk is not None and at < end:
                yield from self._walk(walk, at, end, lane, depth + 1)
                at = min(end, at + round(walk.seconds * _PICO))

    def _slice(self, one: Instruction, lane: int, begin: int, end: int, least: Any, awaited: Any) -> Event:
        arguments = self._facts.of(one)
        if least is not None:
            arguments["bound"] = least.bound.value
            arguments["picoseconds"] = round(least.seconds * _PICO, 6)
            arguments["executions"] = self._timed[one].runs if one in self._timed else 0
        elif awaited is not None:
            arguments["waits_for"] = escape.line(awaited.start.name)
        name = f"wait for {one.name}" if awaited is not None and least is None else one.name
        return {
            "ph": "X",
            "pid": ESTIMATED,
            "tid": lane,
            "name": escape.line(name),
            "cat": one.opcode,
            "ts": _micro(begin),
            "dur": round(_micro(end) - _micro(begin), 6),
            "args": arguments,
        }

    def _transfer(self, drawn: _Transfer) -> Iterator[Event]:
        transfer, lane = drawn.transfer, _CORE_LANE
        for number, queue in enumerate(transfer.queues):
            lane, named = self._free(queue, drawn.begin, drawn.end)
            yield from named
            whole = dict(self._slice(transfer.start, lane, drawn.begin, drawn.end, None, None))
            whole["args"]["exposed_picoseconds"] = round(drawn.exposed * _PICO)
            if number == 0:
                inside = list(self._bodies(transfer.start, drawn.begin, drawn.end, lane, 0))
                if len(inside) == 1 and "picoseconds" in inside[0]["args"]:
                    # One operation is what the transfer does, and no slice beside it.
                    whole["cat"] = inside[0]["cat"]
                    whole["args"] = {
                        **inside[0]["args"],
                        "exposed_picoseconds": whole["args"]["exposed_picoseconds"],
                    }
                elif inside:
                    below, named = self._free(f"{queue}: inside", drawn.begin, drawn.end)
                    yield from named
                    yield from ({**one, "tid": below} for one in inside)
            yield whole
        if drawn.done is not None:
            self._arrows += 1
            both = {"pid": ESTIMATED, "cat": "transfer", "name": "transfer", "id": self._arrows}
            yield {"ph": "s", **both, "tid": lane, "ts": _micro(drawn.begin)}
            # Who waits may have begun to before a busy queue began the transfer.
            end = max(drawn.begin, drawn.done)
            yield {"ph": "f", "bp": "e", **both, "tid": drawn.lane, "ts": _micro(end)}

    def _free(self, queue: str, begin: int, end: int) -> tuple[int, list[Event]]:
        """A lane of a queue in which nothing overlaps: the first that is free, else a new one, with its name."""
        lanes = self._lanes.setdefault(queue, [])
        for place, (number, until) in enumerate(lanes):
            if until <= begin:
                lanes[place] = number, end
                return number, []
        self._numbers += 1
        lanes.append((self._numbers, end))
        name = queue if len(lanes) == 1 else f"{queue} ({len(lanes)})"
        return self._numbers, list(_lane(ESTIMATED, self._numbers, name))


class _Facts:
    """Arguments of slices."""

    def __init__(self, estimate: Estimate) -> None:
        module = estimate.module
        self._lines, self._scopes = source_locations(module), scopes(module)
        self._costs = {share.instruction: share.cost for share in analyze(module).shares()}

    def of(self, one: Instruction) -> dict[str, Any]:
        """Scope, line, bytes and flops of an instruction, those that are known."""
        found: dict[str, Any] = {"opcode": one.opcode, "shape": _cut(str(one.shape))}
        if one.metadata is not None and one.metadata.op_name:
            found["op_name"] = _cut(one.metadata.op_name)
        scope, place, cost = str(self._scopes.of(one)), self._lines.get(one), self._costs.get(one)
        if scope:
            found["scope"] = _cut(scope)
        if place is not None:
            found["line"] = _cut(f"{place[0].file}:{place[0].line}")
        if cost is not None:
            found["bytes"] = int(cost.bytes_accessed)
            if cost.flops:
                found["flops"] = int(cost.flops)
        return found


def _cut(text: str, most: int = 300) -> str:
    text = escape.line(text)
    return text if len(text) <= most else f"{text[:most]}..."


def _counters(memory: Assignment, begins: Mapping[Instruction, int], seconds: float) -> Iterator[Event]:
    """Live bytes of each memory space, where they change; moments without a time of their own take that of the last one."""
    schedule = memory.schedule
    whole = round(seconds * _PICO)
    for space in memory.memory_spaces():
        line = memory.timeline(space)
        if not any(size for _, size in line):
            continue
        at, last = 0, None
        peaks: dict[int, int] = {}
        for moment, size in line:
            one = schedule[moment] if moment < len(schedule) else None
            if isinstance(one, Instruction):
                at = max(at, begins.get(one, at))
            if size != last:
                # Several moments at one time: the most of them, so that the maximum is the peak.
                peaks[at] = max(size, peaks.get(at, 0))
                last = size
        name = f"live bytes, {usage.space_name(memory, space)}"
        for time, size in peaks.items():
            yield {"ph": "C", "pid": ESTIMATED, "name": name, "ts": _micro(time), "args": {"bytes": size}}
        yield {"ph": "C", "pid": ESTIMATED, "name": name, "ts": _micro(whole), "args": {"bytes": line[-1][1]}}


def _measured(estimate: Estimate, traced: TracedModule) -> Iterator[Event]:
    """Measured operations in the order of the schedule, one behind the other, each as long as in one run on average."""
    yield from _names(MEASURED, "measured (mean of the runs)", 2)
    yield from _lane(MEASURED, _CORE_LANE, "operations, in schedule order")
    runs = traced.runs or 1
    at = 0
    facts = _Facts(estimate)
    for one in estimate.module.entry.instructions:
        found = traced.time_of(one)
        if found is None or not found.seconds:
            continue
        length = round(found.seconds / runs * _PICO)
        yield {
            "ph": "X",
            "pid": MEASURED,
            "tid": _CORE_LANE,
            "name": escape.line(one.name),
            "cat": one.opcode,
            "ts": _micro(at),
            "dur": round(_micro(at + length) - _micro(at), 6),
            "args": {**facts.of(one), "kernels": found.count, "total_seconds": found.total_seconds},
        }
        at += length
