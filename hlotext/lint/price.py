"""Cost of instructions in seconds of a step and bytes of peak memory: the currency of findings."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import attrs

from hlotext import cost
from hlotext.analysis import Backend, CallGraph, call_graph, chip_or_default, most_trips, total_of
from hlotext.analysis.chips import Chip
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

UNKNOWN_ROUNDS = 32
"""Rounds of a loop that runs nobody knows how often: iterations until something has converged, or a text is complete."""
_BY_TYPE = frozenset({"bf16", "int8", "fp8", "f64"})
"""Rates of matmuls that follow from their type; those of f32 also depend on precision and algorithm."""
_DEEPEST = 50
"""Loops inside one another that are looked out of."""


@attrs.frozen(eq=False, slots=False)
class Prices:
    """Times of a module's instructions on a chip. Loops with unknown trip counts run `rounds` times."""

    estimate: cost.Estimate
    graph: CallGraph
    rounds: Mapping[Instruction, int]
    """Loops whose rounds the text does not tell, and what they are taken for."""
    basis: str
    """The basis of the figures, see `Finding.basis`."""

    @property
    def chip(self) -> Chip:
        return self.estimate.chip

    @property
    def step(self) -> float:
        """Seconds of one run of the module."""
        return self.estimate.seconds

    @functools.cached_property
    def own(self) -> Mapping[Instruction, float]:
        """Seconds of each instruction itself in all runs; for transfers only the exposed time."""
        found: dict[Instruction, float] = defaultdict(float)
        for time in self.estimate.instructions:
            found[time.instruction] += time.seconds
        for transfer in self.estimate.transfers:
            found[transfer.start] += transfer.exposed
        return dict(found)

    @functools.cached_property
    def own_least(self) -> Mapping[Instruction, cost.LowerBound]:
        """Lower bound on each instruction's time, for one execution."""
        return {time.instruction: time.least for time in self.estimate.instructions}

    @functools.cached_property
    def _by_compiler(self) -> Mapping[Instruction, float]:
        return {
            one.instruction: one.cycle_seconds * one.runs
            for one in self.estimate.instructions
            if one.cycle_seconds is not None
        }

    def compiler_seconds(self, instruction: Instruction) -> float:
        """Returns the seconds of an instruction in all runs by the TPU compiler's own estimate; 0 without one."""
        return self._by_compiler.get(instruction, 0.0)

    @functools.cached_property
    def compiler_step(self) -> float:
        """Seconds of everything that the TPU compiler estimated."""
        return math.fsum(self._by_compiler.values())

    @functools.cached_property
    def inside(self) -> Mapping[Computation, float]:
        """Seconds of everything that runs in a computation, including what it calls."""
        found: dict[Computation, float] = defaultdict(float)
        for time in self.estimate.instructions:
            if time.instruction.computation is not None:
                found[time.instruction.computation] += time.seconds
        for transfer in self.estimate.transfers:
            if transfer.start.computation is not None:
                found[transfer.start.computation] += transfer.exposed
        total: dict[Computation, float] = defaultdict(float)
        for computation, seconds in found.items():
            around: Computation | None = computation
            for _ in range(_DEEPEST):
                if around is None:
                    break
                total[around] += seconds
                caller = self.graph.caller(around)
                around = caller.computation if caller is not None else None
        return dict(total)

    def seconds(self, instruction: Instruction) -> float:
        """Returns the seconds of an instruction in all runs, including called bodies; inside a fusion, those of the
        fusion.
        """
        caller = self.graph.caller(instruction.computation)
        if caller is not None and caller.opcode == "fusion":
            instruction = caller
        found = self.own.get(instruction, 0.0)
        if instruction.opcode in ("while", "call", "conditional"):
            found += sum(self.inside.get(body, 0.0) for body in instruction.called_computations)
        return found

    def spared(self, start: Instruction, part: float) -> float:
        """Returns the seconds of exposed time saved if a transfer moves a fraction `part` less."""
        return min(self.own.get(start, 0.0), self.transferring(start) * part)

    def transferring(self, start: Instruction) -> float:
        """Returns the seconds of a transfer in all runs, exposed or not."""
        return math.fsum(one.seconds for one in self.estimate.transfers if one.start is start)

    def reading(self, size: float) -> float:
        """Returns the seconds to read or write `size` bytes; 0 if the chip's bandwidth is unknown."""
        bandwidth = self.chip.rates.bandwidth
        return size / bandwidth.value if bandwidth is not None else 0.0

    def writing(self, part: Instruction, writer: Instruction) -> float:
        """Returns the seconds of one result of an operation; if it has several, in proportion to their bytes."""
        if part is writer:
            return self.seconds(writer)
        sizes = {user: total_of(user.shape).allocated_bytes for user in writer.users}
        return self.seconds(writer) * sizes.get(part, 0) / (sum(sizes.values()) or 1)

    def together(self, instructions: Iterable[Instruction]) -> float:
        """Returns the seconds of several instructions, each counted once."""
        return math.fsum(
            self.seconds(one) for one in set(instructions)
        )  # equal in whatever order a set gives them

    def runs(self, computation: Computation | None) -> int:
        """Returns the number of runs of a computation; 1 if it is unknown."""
        known = self.graph.runs.get(computation) if computation is not None else None
        return 1 if known is None else known

    def trips(self, loop: Instruction) -> int:
        """Returns the trip count of a loop, which may be assumed (see `rounds`)."""
        home = loop.computation
        body = loop.attributes.get("body")
        around = max(1, self.runs(home))
        return max(1, self.runs(body) // around) if isinstance(body, Computation) else 1

    def unknown_rounds(self, instruction: Instruction | None) -> int:
        """Returns the product of the assumed trip counts of loops around an instruction; 1 if all are known."""
        product, where = 1, instruction.computation if instruction is not None else None
        for _ in range(_DEEPEST):
            loop = self.graph.loop_around(where) if where is not None and self.rounds else None
            if loop is None:
                break
            product *= self.rounds.get(loop, 1)
            where = loop.computation
        return product

    @functools.cached_property
    def least_step(self) -> float:
        """Seconds of the module if loops of unknown trip count run once."""
        if not self.rounds:
            return self.step
        return cost.estimate(self.estimate.module, self.chip).seconds


def chip_row(
    module: Module, backend: Backend | None, chip: str = "", of_folder: Chip | None = None
) -> tuple[Chip, str]:
    """Returns the requested chip, or that of the dump folder or text, or the platform's default, with text on its
    source.

    Raises ValueError for an unknown chip.
    """
    if chip:
        row = chip_named(chip)
        return row, row.name
    choice = chip_or_default(module, None, of_folder, backend)
    return choice.chip, f"{choice.chip.name} ({_CHOSEN[choice.source]})"


_CHOSEN = {"folder": "the dump's chip", "text": "the module's chip", "assumed": "default chip"}


def prices_of(
    module: Module,
    backend: Backend | None,
    chip: str = "",
    trips: Mapping[str, int] | None = None,
    of_folder: Chip | None = None,
) -> Prices:
    """Returns the prices of a module on the chip of `chip_row`.

    Names in `trips` that are not loop bodies of this module are ignored. Raises ValueError for an unknown chip.
    """
    graph = call_graph(module)
    row, name = chip_row(module, backend, chip, of_folder)
    told = graph.trips_by_body(trips or {})
    taken: dict[str, int] = {}
    rounds: dict[Instruction, int] = {}
    bounded = 0
    for loop, count in graph.loops():
        body = loop.attributes.get("body")
        if not isinstance(body, Computation) or graph.runs.get(loop.computation, 0) == 0:  # type: ignore[arg-type]
            continue
        if body.name in told:
            taken[body.name] = told[body.name]
        elif count is None:
            most = most_trips(loop)
            bounded += most is not None
            rounds[loop] = taken[body.name] = most if most is not None else UNKNOWN_ROUNDS
    estimate = cost.estimate(module, row, trips=taken)
    parts = [f"although compiled for {estimate.compiled_for}"] if estimate.compiled_for else []
    chosen = [rate for rate in estimate.product_rates if rate not in _BY_TYPE]
    if chosen and len(estimate.chip.rates.peaks) > 1:
        parts.append(f"with f32 matmuls at the {' and '.join(chosen)} rate")
    if estimate.cached_bytes is not None:
        parts.append("with all arrays in its cache")
    if free := len(rounds) - bounded:
        parts.append(
            f"assuming {UNKNOWN_ROUNDS} iterations for {pluralize(free, 'loop')} of unknown trip count"
        )
    if bounded:
        parts.append(f"with {pluralize(bounded, 'loop')} at the maximum trip count")
    if unknown := len(estimate.unknown_calls):
        parts.append(f"excluding {pluralize(unknown, 'custom call')} of unknown cost")
    basis = ", ".join([name, *parts])
    return Prices(estimate, graph.with_trips(taken) if taken else graph, rounds, basis)
