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
    """Traffic of one communication: per execution (`sent`) and over all executions (`total`)."""

    communication: Communication
    axes: tuple[str, ...] | None
    """Mesh axes, or None if there is no mesh or the groups match no axes."""
    sent: int | None
    """Bytes that a device sends per execution, or None if unknown, as for an unknown number of devices."""
    runs: int | None
    """Execution count, or None if unknown."""
    place: SourceLocation | None
    """Source line, possibly propagated from a neighbor, or None if unknown."""

    @property
    def total(self) -> int | None:
        """Bytes that a device sends over all executions, or None if the bytes per execution are unknown.

        If the execution count is unknown, branches of conditionals are assumed to be taken, and loops of unknown trip
        count to run once per execution.
        """
        runs = self.communication.counted_runs if self.runs is None else self.runs
        return None if self.sent is None else self.sent * (1 if runs is None else runs)

    @property
    def row(self) -> str:
        """Row label: the mesh axes, or the interconnect for DCN and host transfers."""
        if self.communication.link is not Interconnect.DEVICE:
            return str(self.communication.link.value)
        if self.axes is None:
            return NO_AXES
        return ",".join(self.axes) or NOBODY


@attrs.frozen
class HostCopy:
    """A copy between device and host, with its bytes and number of executions."""

    instruction: Instruction
    bytes: int
    runs: int | None


@attrs.frozen
class TrafficTotal:
    """Number and bytes of several communications, with the direction of any uncertainty."""

    count: int = 0
    bytes: int = 0
    """Bytes that a device sends in one run of the module, excluding unknown amounts."""
    unknown: int = 0
    """Number of communications of unknown size."""
    is_at_least: bool = False
    """True if a communication is in a loop of unknown trip count, which is counted once per execution."""
    is_at_most: bool = False
    """True if a size, or the choice of a branch, is known only at run time."""

    @property
    def mark(self) -> str:
        """Prefix for displayed bytes: `<= ` or `>= ` for a bound, `~ ` if inexact in both directions, otherwise empty."""
        is_at_least = self.is_at_least or self.unknown > 0
        return "~ " if is_at_least and self.is_at_most else ">= " if is_at_least else "<= " * self.is_at_most

    def plus(self, flow: CollectiveTraffic) -> TrafficTotal:
        """Returns this total plus one communication."""
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
        """Returns the totals by row label (mesh axes or interconnect) and kind of collective."""
        found: dict[tuple[str, str], TrafficTotal] = {}
        for flow in self.flows:
            key = flow.row, flow.communication.kind
            found[key] = found.get(key, TrafficTotal()).plus(flow)
        return found

    def by_link(self) -> Mapping[Interconnect, TrafficTotal]:
        """Returns the totals by interconnect, excluding host copies."""
        found: dict[Interconnect, TrafficTotal] = {}
        for flow in self.flows:
            link = flow.communication.link
            found[link] = found.get(link, TrafficTotal()).plus(flow)
        return found

    @property
    def host_copy_bytes(self) -> int:
        """Bytes copied between device and host in one run. Unknown execution counts are assumed to be 1."""
        return sum(copy.bytes * (1 if copy.runs is None else copy.runs) for copy in self.copies)


def traffic(
    module: Module, mesh: DeviceMesh | FoundMesh | None = None, algorithm: Algorithm = "ring"
) -> Traffic:
    """Computes the communication traffic of one device in one run of a module, scaled by trip counts.

    Args:
        module: The module.
        mesh: The device mesh. None uses the module's own.
        algorithm: The algorithm of collectives, `ring` or `tree` (`Communication.wire_bytes_by`).

    Raises:
        ValueError: The mesh and the module have different numbers of devices, or the algorithm is unknown.
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
