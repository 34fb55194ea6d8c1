"""Totals of two modules side by side: operations, bytes, collectives, memory."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import attrs

import hlotext as hlo
from hlotext import analysis, cost, memory
from hlotext.analysis.communication import is_further_part
from hlotext.diff.alignment import Pairs, cost_the_same
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.tables.traits import COLLECTIVES

T = TypeVar("T")
_VMEM = 1
"""Memory space of VMEM on TPU."""


@attrs.frozen
class TotalChange:
    """Values of a metric on both sides, or None if unknown."""

    name: str
    unit: str
    """Unit for formatting: `flops` or `bytes`; empty for a count."""
    old: float | None
    new: float | None
    unknown_calls: tuple[int, int] = (0, 0)
    """Number of calls of unknown cost on each side. If nonzero, the value is a lower bound."""

    @property
    def difference(self) -> float | None:
        """New value minus old value, or None if either is unknown."""
        return None if self.old is None or self.new is None else self.new - self.old

    @property
    def percent(self) -> float | None:
        """Increase in percent of the old value; 0 if both values are zero.

        None if a value is unknown, or if only the old value is zero.
        """
        if self.old is None or self.new is None:
            return None
        if not self.old:
            return 0.0 if not self.new else None
        return 100 * (self.new - self.old) / self.old


class Totals:
    """Metrics of two modules, computed on access."""

    def __init__(self, old: hlo.Module, new: hlo.Module, differing: Pairs | None = None) -> None:
        """`differing` are the operations that differ between modules of one form, where that is known."""
        self._modules, self._differing = (old, new), differing

    @functools.cached_property
    def _costly(self) -> tuple[hlo.Module, hlo.Module]:
        """The modules whose costs and memory are asked for: the old one twice where those of the new one are the same."""
        old, new = self._modules
        if self._differing is not None and cost_the_same(old, new, self._differing):
            return old, old
        return old, new

    def _both(self, name: str, unit: str, figure: Callable[[hlo.Module], float | None]) -> TotalChange:
        old, new = (figure(module) for module in self._modules)
        return TotalChange(name, unit, old, new)

    def _costs(self, name: str, unit: str, field: str) -> TotalChange:
        """A figure of costs, with the calls that it knows nothing of."""
        old, new = self._costly
        return TotalChange(
            name, unit, _cost(old, field), _cost(new, field), (_unknown_calls(old), _unknown_calls(new))
        )

    @functools.cached_property
    def flops(self) -> TotalChange:
        """FLOPs of one run, scaled by trip counts (`hlotext.cost`)."""
        return self._costs("flops", "flops", "flops")

    @functools.cached_property
    def bytes(self) -> TotalChange:
        """Bytes read and written in one run (`hlotext.cost`)."""
        return self._costs("bytes", "bytes", "bytes_accessed")

    @functools.cached_property
    def collectives(self) -> TotalChange:
        """Number of collectives and transfers between devices, regardless of execution counts."""
        return self._both("collectives", "", lambda module: len(_between_devices(module)))

    @functools.cached_property
    def collective_bytes(self) -> TotalChange:
        """Bytes that each device sends to other devices in collectives and transfers in one run.

        Scaled by trip counts; unknown trip counts are assumed to be 1, as in `flops`. The value of a side is None if the
        bytes of one of its collectives are unknown, as for an unknown number of devices.
        """
        return self._both("collective_bytes", "bytes", _wire)

    @functools.cached_property
    def peak_memory(self) -> TotalChange:
        """Peak memory in bytes (`hlotext.memory`); None for a module that is not scheduled or cannot be assigned."""
        old, new = self._costly
        return TotalChange("peak_memory", "bytes", _peak(old), _peak(new))

    @functools.cached_property
    def peak_vmem(self) -> TotalChange:
        """Peak in bytes of a TPU's VMEM, as `peak_memory`; None for a module of another platform."""
        old, new = self._costly
        return TotalChange("peak_vmem", "bytes", _peak_vmem(old), _peak_vmem(new))

    @functools.cached_property
    def operations(self) -> TotalChange:
        """Number of operations, including those inside fusions."""
        return self._both("operations", "", lambda module: sum(_counts(module).values()))

    @functools.cached_property
    def opcodes(self) -> dict[str, TotalChange]:
        """Number of operations by opcode.

        A collective split over fusions counts once.
        """
        old, new = map(_counts, self._modules)
        return {opcode: TotalChange(opcode, "", old[opcode], new[opcode]) for opcode in sorted({*old, *new})}

    NAMES = ("operations", "flops", "bytes", "collectives", "collective_bytes", "peak_memory", "peak_vmem")
    """Names of the metrics, excluding opcodes."""

    def __getitem__(self, name: str) -> TotalChange:
        """Returns a figure by name, or the number of operations of an opcode. Raises KeyError, listing the known names."""
        if name in self.NAMES:
            found: TotalChange = getattr(self, name)
            return found
        if name in self.opcodes:
            return self.opcodes[name]
        if name in _opcodes():
            return TotalChange(name, "", 0, 0)
        raise KeyError(f"unknown metric {name!r}; expected {', '.join(self.NAMES)}, or an opcode")


def _opcodes() -> frozenset[str]:
    return frozenset(OPCODES)


def _counts(module: hlo.Module) -> Counter[str]:
    return Counter(
        f"{node.opcode}, further parts"
        if node.opcode in COLLECTIVES and is_further_part(node)
        else node.opcode
        for node in module.instructions()
    )


def _cost(module: hlo.Module, name: str) -> float | None:
    try:
        figure: float = getattr(cost.analyze(module).run, name)
    except (ValueError, KeyError, ArithmeticError):
        return None
    return figure


def _unknown_calls(module: hlo.Module) -> int:
    try:
        return len(cost.analyze(module).run.unknown_calls)
    except (ValueError, KeyError, ArithmeticError):
        return 0


def _between_devices(module: hlo.Module) -> list[analysis.Communication]:
    return [one for one in analysis.communications(module) if not one.is_host_transfer]


def _wire(module: hlo.Module) -> float | None:
    found = _between_devices(module)
    if any(one.wire_bytes is None for one in found):
        return None
    runs = ((one, one.counted_runs if one.runs is None else one.runs) for one in found)
    return sum(one.sent_bytes * (1 if count is None else count) for one, count in runs)


def _peak_vmem(module: hlo.Module) -> float | None:
    return _peak(module, _VMEM) if analysis.backend_of(module) is analysis.Backend.TPU else None


def _peak(module: hlo.Module, memory_space: int = 0) -> float | None:
    if not module.is_scheduled:
        return None
    try:
        return memory.assignment.peak_bytes(module, memory_space)
    except ValueError:
        return None
