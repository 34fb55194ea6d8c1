"""Mesh axes that split nothing, so that the devices along them compute the same."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from hlotext.analysis import mesh_of
from hlotext.analysis.alike_devices import alike_devices
from hlotext.analysis.formatting import format_percent
from hlotext.dumps.collectives.steps import read
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.lint.alike_results import alike_by_results
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule


class IdleAxis(Rule):
    code = "C118"
    name = "idle-axis"
    title = "a mesh axis along which nothing is sharded"
    waste = "again"

    def check_module(self, context: Context) -> Iterator[Report]:
        program, groups = _alike(context)
        alone = alike_by_results(context) if groups is None and context.is_optimized else None
        if alone is not None:
            groups = alone.groups
        if groups is None:  # the devices compute different results, or the text does not show whether they do
            return
        count = len(groups[0])
        times = context.prices.own
        axes = _axes(program, groups) if program is not None else ""
        who, why = (
            f"the {count * len(groups)} devices form groups of {count} that",
            "no sharding distinguishes them",
        )
        if len(groups) == 1:
            who, why = f"all {count} devices", "no array is sharded"
        elif axes:
            who, why = f"the {count} devices along mesh axis {axes}", "no sharding uses that axis"
        part, seconds = 1 - 1 / count, context.prices.step
        alike: Collection[Instruction] = times
        spares: dict[Any, float] = {}
        if alone is not None:
            alike = (alone.instructions & times.keys()) - context.communication_of.keys()
            seconds = context.prices.together(alike)
            if (
                seconds < _MOSTLY * context.prices.step
            ):  # the devices compute the same only for a small part of the step
                return
            spares = dict.fromkeys(alone.arrays, part)
            why = "each computes the same scalar result from its own full copy of the operands"
            if alone.is_joined:
                who += f", for {format_percent(seconds, context.prices.step)} of the step,"
                why = "nothing on the way to the same scalar result is split among them but what collectives join"
        yield Report(
            max(alike, key=lambda one: (_multiplies(one), times[one]), default=None),
            f"{who} do identical work: {why}",
            "shard the batch or the weights over them too, such as a batch over two axes with P(('data', 'model')), or use "
            "a mesh with fewer devices",
            seconds=part * seconds,
            spares=spares,
            is_at_most=True,  # what is split then may have to be sent
            is_proved=alone is None or not alone.is_joined,  # the axis may be meant for the other work
            cause="idle axis",
        )


_MOSTLY = 0.5
"""Part of the step that devices must do alike for them to be idle: a small part is replicated on purpose."""


def _multiplies(one: Instruction) -> bool:
    return any(part.opcode in _PRODUCTS for part in parts_of(one))


_PRODUCTS = traits.DOTS | {"convolution"}


def _alike(context: Context) -> tuple[Module | None, tuple[tuple[int, ...], ...] | None]:
    """The text that tells, and the groups of devices that compute the same: the module itself, else the program before
    optimization, which has all shardings."""
    if (groups := alike_devices(context.module)) is not None:
        return context.module, groups
    program = read(context.compilation.first) if context.compilation is not None else None
    return program, alike_devices(program) if program is not None else None


def _axes(program: Module, groups: tuple[tuple[int, ...], ...]) -> str:
    """The axes along which the devices of each group differ, by the program's names; empty if it has none."""
    found = mesh_of(program)
    names = found.mesh.axes_of(groups) if found is not None and found.has_names else None
    return " and ".join(f"'{name}'" for name in names or ())
