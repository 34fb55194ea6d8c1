"""Bytes sent by one device in a run of a module: by axis, kind and link."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hlotext.analysis import (
    Communication,
    DeviceMesh,
    FoundMesh,
    Interconnect,
    SourceLocation,
    axes_of,
    call_graph,
    communications,
    mesh_of,
    source_locations,
)
from hlotext.analysis.census import census
from hlotext.analysis.wire import Algorithm
from hlotext.cost.roofline import is_host_copy
from hlotext.cost.sizes import ShapeSizes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

NO_AXES = "(no axes)"
"""Where groups go that fit no axes of the mesh."""
NOBODY = "(one device)"
"""Where groups of one device go."""


@attrs.frozen
class CollectiveTraffic:
    """Traffic of one communication, summed over its executions in one run."""

    communication: Communication
    axes: tuple[str, ...] | None
    """Mesh axes; None if the groups match no axes, or if there is no mesh."""
    sent: int | None
    """Bytes that a device sends in one run; None if the number of devices is unknown."""
    runs: int | None
    """Execution count; None if unknown."""
    place: SourceLocation | None
    """Source line, possibly propagated from a neighbor; None if unknown."""

    @property
    def total(self) -> int | None:
        """Bytes over all executions.

        If execution counts are unknown, conditionals count their maximum, and loops of unknown trip count one
        iteration.
        """
        most = self.communication.most_runs if self.runs is None else self.runs
        return None if self.sent is None else self.sent * (1 if most is None else most)

    @property
    def row(self) -> str:
        """Row label: the mesh axes, or the link if it does not connect devices."""
        if self.communication.link is not Interconnect.DEVICE:
            return str(self.communication.link.value)
        if self.axes is None:
            return NO_AXES
        return ",".join(self.axes) or NOBODY


@attrs.frozen
class HostCopy:
    """A copy between device and host."""

    instruction: Instruction
    bytes: int
    runs: int | None


@attrs.frozen
class TrafficTotal:
    """Total of several communications."""

    count: int = 0
    bytes: int = 0
    """Known bytes that a device sends in one run of the module."""
    unknown: int = 0
    """Number of communications of unknown size."""
    is_at_least: bool = False
    """True if one of them runs in a loop of unknown trip count, counted once."""
    is_at_most: bool = False
    """True if a size, or whether a communication executes, is only known at run time."""

    @property
    def mark(self) -> str:
        """Prefix for the bytes: `<= ` or `>= ` if they are a bound, `~ ` if they are neither, else empty."""
        is_at_least = self.is_at_least or self.unknown > 0
        return "~ " if is_at_least and self.is_at_most else ">= " if is_at_least else "<= " * self.is_at_most

    def plus(self, flow: CollectiveTraffic) -> TrafficTotal:
        """This total with one more communication."""
        one = flow.communication
        return TrafficTotal(
            self.count + 1,
            self.bytes + (flow.total or 0),
            self.unknown + (flow.total is None),
            self.is_at_least or one.most_runs is None,
            self.is_at_most or one.is_at_most or (one.runs is None and one.most_runs is not None),
        )


@attrs.frozen(eq=False)
class Traffic:
    """Traffic of one device in one run of a module."""

    mesh: FoundMesh | None
    algorithm: Algorithm
    flows: tuple[CollectiveTraffic, ...]
    """Communications, most bytes first."""
    copies: tuple[HostCopy, ...]
    """Copies between device and host, largest first."""

    def matrix(self) -> Mapping[tuple[str, str], TrafficTotal]:
        """Totals by row label (mesh axes or link) and kind of collective."""
        found: dict[tuple[str, str], TrafficTotal] = {}
        for flow in self.flows:
            key = flow.row, flow.communication.kind
            found[key] = found.get(key, TrafficTotal()).plus(flow)
        return found

    def by_link(self) -> Mapping[Interconnect, TrafficTotal]:
        """Totals of traffic by interconnect, excluding host copies."""
        found: dict[Interconnect, TrafficTotal] = {}
        for flow in self.flows:
            link = flow.communication.link
            found[link] = found.get(link, TrafficTotal()).plus(flow)
        return found

    @property
    def host_copy_bytes(self) -> int:
        """Bytes copied between device and host in one run; unknown execution counts are taken as 1."""
        return sum(copy.bytes * (1 if copy.runs is None else copy.runs) for copy in self.copies)


def traffic(
    module: Module, mesh: DeviceMesh | FoundMesh | None = None, algorithm: Algorithm = "ring"
) -> Traffic:
    """Communication traffic of one device in one run of a module, scaled by trip counts.

    Raises ValueError if the mesh and the module have different numbers of devices, and for an unknown algorithm.
    """
    found = mesh_of(module, mesh)
    lines = source_locations(module)
    flows = []
    for one in communications(module):
        axes = axes_of(module, one, found.mesh if found is not None else None)
        place = lines.get(one.start)
        flows.append(
            CollectiveTraffic(
                one, axes, one.wire_bytes_by(algorithm), one.runs, place[0] if place is not None else None
            )
        )
    flows.sort(key=lambda flow: -(flow.total or 0))
    return Traffic(found, algorithm, tuple(flows), _host_copies(module))


def _host_copies(module: Module) -> tuple[HostCopy, ...]:
    graph, sizes = call_graph(module), ShapeSizes()
    found = [
        HostCopy(i, sizes.operand(i.operands[0]), graph.runs.get(i.computation))
        for i in census(module).of("copy", "copy-start")
        if i.computation in graph.stepped and i.operands and is_host_copy(i)
    ]
    return tuple(sorted(found, key=lambda copy: -copy.bytes))
