"""Communication of a module in the form of `hlotext show`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.communication import (
    Exchange,
    Interconnect,
    chain_of,
    exchange,
    is_started,
    is_sync,
    link_of,
    surroundings,
)
from hlotext.analysis.origins import SourceLocation, SourceLocations
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.text import braced


@attrs.frozen
class Collective:
    """A collective or transfer, as plain values."""

    name: str
    """The instruction; for a wrapped asynchronous one its `async-start`."""
    kind: str
    """`all-gather`, `send`, ..."""
    is_async: bool
    """True if other work can overlap; False for a pair that the GPU compiler marks as `is_sync`."""
    computation: str
    """Its computation; for one in a fusion the fusion's."""
    fusion: str | None
    """The fusion that it is part of."""
    groups: str
    """Replica groups or source-target pairs verbatim; empty if there are none."""
    group_count: int | None
    """Number of groups, or of pairs; None if there are none: for collectives one group of all devices."""
    group_size: int | None
    """Devices in each group; None if there are none or they differ."""
    operand_bytes: int
    """Input bytes per device, without padding."""
    result_bytes: int
    """Bytes that each device gets."""
    runs: int | None
    """Execution count in one run of the module; None if it depends on values."""
    channel_id: int | None
    place: SourceLocation | None
    op_name: str

    @property
    def is_host_transfer(self) -> bool:
        """True for a transfer between a device and its host."""
        return link_of(self.kind) is Interconnect.HOST


@attrs.frozen
class CollectiveGroup:
    """Collectives of one kind over the same groups."""

    kind: str
    is_async: bool
    groups: str
    group_count: int | None
    group_size: int | None
    count: int
    runs: int | None
    """All of them together; None if that is not known of one."""
    operand_bytes: int
    """Input bytes per device if each runs once. Also for the next field."""
    result_bytes: int
    largest_bytes: int
    """Largest operand or result of one of them."""
    name: str
    """The largest one."""
    in_fusions: int
    in_loops: int


@attrs.frozen
class Named:
    """Properties of the instruction that names a communication in reports."""

    name: str
    is_sync: bool
    place: SourceLocation | None
    op_name: str


@attrs.frozen
class Begun:
    """Properties of a communication that its own instruction shows."""

    home: Computation
    named: Named
    exchange: Exchange
    channel_id: int | None
    is_first: bool
    """True for the part of a chain that names it."""


def named(origins: SourceLocations, instruction: Instruction) -> Named:
    """Returns the properties of an instruction that may name a communication."""
    metadata = instruction.metadata
    op_name = metadata.op_name if metadata is not None else ""
    return Named(instruction.name, is_sync(instruction), origins.place(instruction), op_name)


def begun(origins: SourceLocations, home: Computation, instruction: Instruction) -> Begun:
    """Returns the properties of an instruction that starts a communication."""
    channel_id = instruction.attributes.get("channel_id")
    is_first = chain_of(instruction) is not None and is_started(instruction)
    return Begun(home, named(origins, instruction), exchange(instruction), channel_id, is_first)


def collective(graph: CallGraph, starts: Mapping[tuple[Computation, int], Named], one: Begun) -> Collective:
    """Converts a communication to plain values. `starts` are the `async-start`s of the module, by position."""
    around, found = surroundings(graph, one.home), one.exchange
    call, home = around.wrapping, around.computation
    start = starts[call.computation, call.place] if call is not None else one.named
    return Collective(
        name=start.name,
        kind=found.kind,
        is_async=around.is_async(found, start.is_sync),
        computation=home.name if home is not None else "",
        fusion=around.fusion_call.name if around.fusion_call is not None else None,
        groups=_groups_text(found),
        group_count=found.group_count,
        group_size=found.group_size,
        operand_bytes=found.operand_bytes,
        result_bytes=found.result_bytes,
        runs=around.runs,
        channel_id=one.channel_id,
        place=start.place,
        op_name=start.op_name,
    )


def _groups_text(one: Exchange) -> str:
    if one.groups is not None:
        return str(one.groups)
    return braced(map(braced, one.pairs)) if one.pairs is not None else ""


def collective_groups(found: Iterable[Collective], graph: CallGraph) -> tuple[CollectiveGroup, ...]:
    """Groups collectives by kind and groups, most bytes first."""
    together: dict[tuple[object, ...], list[Collective]] = {}
    for one in found:
        key = one.kind, one.is_async, one.groups, one.group_count, one.group_size
        together.setdefault(key, []).append(one)
    looped = {c.name for c in graph.callers if graph.loop_call(c) is not None}
    rows = []
    for members in together.values():
        first, largest = members[0], max(members, key=lambda one: max(one.operand_bytes, one.result_bytes))
        runs = [one.runs for one in members]
        rows.append(
            CollectiveGroup(
                first.kind, first.is_async, first.groups, first.group_count, first.group_size, len(members),
                None if None in runs else sum(run or 0 for run in runs),
                sum(one.operand_bytes for one in members),
                sum(one.result_bytes for one in members),
                max(largest.operand_bytes, largest.result_bytes),
                largest.name,
                sum(one.fusion is not None for one in members),
                sum(one.computation in looped for one in members),
            )
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -max(row.operand_bytes, row.result_bytes)))
