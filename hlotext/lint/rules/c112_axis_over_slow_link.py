"""C112: the axis that carries most goes over the slowest links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend, Interconnect, axes_of, byte_text, mesh_of, participant_groups
from hlotext.analysis.communication import Communication
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class AxisOverSlowLink(Rule):
    code = "C112"
    name = "axis-over-slow-link"
    title = "most traffic uses the slowest links"
    waste = "waited"
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_optimized = True
    is_default: ClassVar[bool] = False

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes that a device sends over the slow links from which on they are worth a finding."""
    min_percent: ClassVar[int] = 50
    """Percent of all that it sends, likewise."""
    devices_per_host: int = 8
    """GPUs that are joined by NVLink: between them and others there is a network."""

    def check_module(self, context: Context) -> Iterator[Report]:
        slow: list[tuple[Communication, int]] = []
        fast = 0
        for one in context.communications:
            sent = one.sent_bytes * context.runs(one.start)
            kind = one.kind.removeprefix("dcn ")
            if (
                not sent or one.is_host_transfer or kind not in COLLECTIVE_KINDS
            ):  # it sends nothing between devices
                continue
            if one.link is Interconnect.DCN or (
                context.backend is Backend.GPU and self._leaves_host(one, context)
            ):  # it stays on fast links
                slow.append((one, sent))
            else:
                fast += sent
        total = sum(sent for _, sent in slow)
        # Where everything goes over the slow links there is no other axis to lay there.
        if (
            not fast or total < self.min_bytes or 100 * total < self.min_percent * (total + fast)
        ):  # too few bytes go over slow links
            return
        largest = max(slow, key=lambda row: row[1])[0]
        network = (
            "between slices"
            if largest.link is Interconnect.DCN
            else f"between hosts ({self.devices_per_host} devices each)"
        )
        yield Report(
            largest.start,
            f"{_axes(largest, context)}{byte_text(total)} of the {byte_text(total + fast)} that a device sends cross the "
            f"network {network}, the slowest link",
            "map the axis with the least traffic onto the network, through the device order of the mesh",
            total,
            cause="network",
        )

    def _leaves_host(self, one: Communication, context: Context) -> bool:
        if one.pairs is not None:
            groups: tuple[tuple[int, ...], ...] = one.pairs
        else:
            groups = participant_groups(context.module, one.instruction) or ()
        return any(len({device // self.devices_per_host for device in group}) > 1 for group in groups)


def _axes(one: Communication, context: Context) -> str:
    try:
        mesh = mesh_of(context.module)
    except ValueError:
        return ""
    axes = axes_of(context.module, one, mesh.mesh if mesh is not None else None)
    return f"axis {','.join(axes)}: " if axes else ""
