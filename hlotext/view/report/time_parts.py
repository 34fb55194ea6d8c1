"""Parts of the minimum time of a run: work by its limit, launches, stalls. Figures and charts share them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

import attrs

from hlotext import cost
from hlotext.cost.roofline import Bound
from hlotext.cost.schedule import ScheduledTransfer, ScheduleStep
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits

LAUNCH, COPIES = "launch overhead", "copies"
WAITS = {True: "stalled on collectives", False: "stalled on copies"}
_WORK = {
    Bound.COMPUTE: "compute-bound",
    Bound.MEMORY: "memory-bound",
    Bound.HOST: "host link",
    Bound.UNKNOWN: "unknown cost",
}
_MOVES = traits.REARRANGES_ELEMENTS | traits.IS_FREE


@attrs.frozen
class TimePart:
    """Seconds of one kind of work."""

    kind: str
    is_launch: bool
    """True for what starts kernels of this kind, which is overhead."""
    seconds: float


_Sums = Mapping[tuple[str, bool], float]
"""Seconds by kind, those of launches apart."""


@attrs.frozen(slots=False)
class TimeParts:
    """Seconds of one run of each computation by kind; those of the entry add up to the minimum time."""

    estimate: cost.Estimate
    _by_computation: Mapping[Computation, _Sums]

    @functools.cached_property
    def run(self) -> Mapping[str, float]:
        """Seconds of one run of the module by kind, with all launches merged, the largest first."""
        found: dict[str, float] = {}
        for (kind, is_launch), seconds in self._by_computation[self.estimate.module.entry].items():
            name = LAUNCH if is_launch else kind
            found[name] = found.get(name, 0.0) + seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @functools.cached_property
    def least(self) -> Mapping[Instruction, cost.LowerBound]:
        """The lower bound of each operation that runs on the core."""
        return {one.instruction: one.least for one in self.estimate.instructions}

    def of(self, step: ScheduleStep) -> list[TimePart]:
        """Returns a step's seconds by kind, launches first. A loop or call is divided in proportion to what it runs."""
        return list(_parts(step, self._by_computation, self.estimate))


def time_parts(found: cost.Estimate) -> TimeParts:
    """Sums up the steps of each computation by kind."""
    sums: dict[Computation, _Sums] = {}
    for computation, walk in found.walks.items():
        kinds: dict[tuple[str, bool], float] = {}
        for step in walk.steps:
            for part in _parts(step, sums, found):
                key = part.kind, part.is_launch
                kinds[key] = kinds.get(key, 0.0) + part.seconds
        sums[computation] = dict(sorted(kinds.items(), key=lambda item: (item[0][0], not item[0][1])))
    return TimeParts(found, sums)


def _parts(step: ScheduleStep, sums: Mapping[Computation, _Sums], found: cost.Estimate) -> Iterator[TimePart]:
    whole = step.end - step.begin
    if step.awaited is not None:
        yield TimePart(WAITS[step.awaited.communication is not None], False, whole)
    elif step.least is not None:
        kind, launch = kind_of(step.instruction, step.least), min(step.least.launch, whole)
        if launch:
            yield TimePart(kind, True, launch)
        if whole > launch:
            yield TimePart(kind, False, whole - launch)
    else:
        inside = _inside(step.instruction, found, sums)
        total = sum(inside.values())
        for (kind, is_launch), seconds in inside.items():
            yield TimePart(kind, is_launch, whole * seconds / total)


def _inside(caller: Instruction, found: cost.Estimate, sums: Mapping[Computation, _Sums]) -> _Sums:
    """Seconds in the computations of a loop or a call; of a conditional those of its costliest branch, which counts."""
    bodies: Iterable[Computation] = [body for body in caller.called_computations if body in sums]
    if caller.opcode == "conditional":
        bodies = sorted(bodies, key=lambda body: -found.walks[body].seconds)[:1]
    kinds: dict[tuple[str, bool], float] = {}
    for body in bodies:
        for key, seconds in sums[body].items():
            kinds[key] = kinds.get(key, 0.0) + seconds
    return kinds if sum(kinds.values()) else {(_WORK[Bound.UNKNOWN], False): 1.0}


def kind_of(instruction: Instruction, least: cost.LowerBound) -> str:
    """Returns the kind of an operation's own work: moving elements, or the resource that limits it."""
    bodies = instruction.called_computations if instruction.opcode == "fusion" else ()
    if instruction.opcode in traits.REARRANGES_ELEMENTS or any(
        all(one.opcode in _MOVES for one in body) for body in bodies
    ):
        return COPIES
    return _WORK[least.term]


def transfer_kind(transfer: ScheduledTransfer, waited: float) -> str:
    """Returns the kind of a transfer, and whether it is hidden, partly exposed or fully exposed."""
    whole = transfer.end - transfer.begin
    how = "fully exposed" if waited >= whole * _WHOLE else "partly exposed" if waited else "hidden"
    return f"{'collective' if transfer.communication is not None else 'copy'}, {how}"


_WHOLE = 1 - 1e-9
"""Share from which a transfer is waited for whole: sums of times are rounded."""
