"""Lower bound on a module's run time on a chip: what bounds each instruction, what overlaps, the critical path."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping

import attrs

from hlotext import memory
from hlotext.analysis import (
    Backend,
    CallGraph,
    Communication,
    DeviceMesh,
    FoundMesh,
    backend_of,
    call_graph,
    chip_or_default,
    is_optimized,
    mesh_of,
)
from hlotext.analysis.census import census
from hlotext.analysis.chips import Chip, Figure
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.facts import fact
from hlotext.analysis.formatting import seconds as time_text
from hlotext.cost import undercounted
from hlotext.cost.analysis import KEYS, Key, naming
from hlotext.cost.counting import MOST, Counting
from hlotext.cost.roofline import Bound, LowerBound, Roofline, estimated_cycles
from hlotext.cost.schedule import CORE, ScheduledTransfer, Scheduler, Walk
from hlotext.cost.sizes import ShapeSizes, device_size
from hlotext.cost.target_costs import TargetCosts
from hlotext.cost.tpu import as_tpu
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module


@attrs.frozen
class InstructionTime:
    """Lower bound on the time of one instruction."""

    instruction: Instruction
    runs: int
    """Execution count in one run of the module; loops of unknown trip count are counted once."""
    least: LowerBound
    """Lower bound per execution."""
    cycles: int | None
    """The compiler's own cycle estimate per execution, or None if absent."""
    cycle_seconds: float | None
    """`cycles` converted to seconds, or None if the chip's clock rate is unknown."""

    started_by: Instruction | None = None
    """The start of a wrapped asynchronous operation, whose name is more telling, or None for other instructions."""

    @property
    def name(self) -> str:
        """Name of the instruction in the schedule."""
        return (self.started_by or self.instruction).name

    @property
    def seconds(self) -> float:
        """Lower bound over all executions, in seconds."""
        return self.least.seconds * self.runs

    @property
    def weight(self) -> float:
        """Seconds over all executions for ranking, with fast-memory traffic at the rate of main memory; not a bound."""
        return self.least.weight * self.runs

    @property
    def bound(self) -> Bound:
        """The resource that limits the time."""
        return self.least.bound


@attrs.frozen
class TransferTime:
    """Lower bound on the time of a collective or copy that a link or copy engine executes."""

    start: Instruction
    communication: Communication | None
    """The collective or transfer, or None for copies and for computations on other threads."""
    queues: tuple[str, ...]
    """Resources that the transfer occupies: links by mesh axis, the DCN, the host link, copy engines."""
    runs: int
    seconds: float
    """Seconds over all executions."""
    exposed: float
    """Seconds during which the core waits for it."""
    is_known: bool
    """False if its bytes or rate are unknown, in which case `seconds` is 0."""
    is_pair: bool
    """True for an asynchronous start/done pair; False if the core runs it synchronously."""

    @property
    def hidden(self) -> float:
        """Fraction of the transfer that overlaps with other work; 0 if it takes no time."""
        return max(0.0, 1 - self.exposed / self.seconds) if self.seconds else 0.0


@attrs.frozen
class PathStep:
    """An instruction on the critical path, with its seconds and the resource that executes it."""

    instruction: Instruction
    seconds: float
    """Seconds over all executions on the path."""
    resource: str


@with_foreign_names
@attrs.frozen(eq=False)
class Estimate:
    """Lower bound on the run time of a module on a chip, derived from rates and sizes; not a prediction.

    Before optimization it is not a bound: see `is_bound`.
    """

    module: Module
    chip: Chip
    seconds: float
    """Length of the schedule in seconds, with loops scaled by trip counts and transfers overlapping the core."""
    instructions: tuple[InstructionTime, ...]
    """Instructions that the core executes in sequence, largest `InstructionTime.weight` first."""
    beside: tuple[InstructionTime, ...]
    """Work of asynchronous operations that overlaps the core, ordered like `instructions`.

    The total time of each operation is in `transfers`.
    """
    transfers: tuple[TransferTime, ...]
    """Transfers, most exposed first."""
    busy: Mapping[str, float]
    """Busy seconds of each resource."""
    critical_path: tuple[PathStep, ...]
    """The critical path in schedule order; its seconds add up to `seconds`."""
    unknown_loops: tuple[Instruction, ...]
    """Loops of unknown trip count, counted once."""
    unknown_calls: tuple[Instruction, ...]
    """Custom calls of unknown cost, for which only bytes are counted."""
    at_most_calls: tuple[Instruction, ...]
    """Kernels whose branches are all counted although some may not execute."""
    is_scheduled: bool
    """False if the module has no schedule. The order of the text is then used instead."""
    walks: Mapping[Computation, Walk]
    """Timeline of one execution of each computation, starting at 0, with loops and calls as single steps."""
    _revision: int
    """The revision of the module that was estimated."""
    cached_bytes: int | None = None
    """Peak live bytes if they fit in the chip's cache, so that arrays stay resident between runs; otherwise None.

    `chip` then has the bandwidth of the cache. Also None if the peak is unknown or the chip has no such cache."""

    @property
    def walk(self) -> Walk:
        """Simulated timeline of one run of the entry, from time 0."""
        return self.walks[self.module.entry]

    @property
    def counted(self) -> str:
        """Text saying whether the bound includes launch overhead and latency."""
        launch = self.chip.rates.launch
        if launch is None:
            return "excludes launch overhead and latency"
        return f"includes {time_text(launch.value)} of launch overhead per kernel, but not latency"

    @property
    def compiled_for(self) -> str:
        """Name of the platform that the module was compiled for, if it is known and not the chip's; otherwise empty."""
        backend = backend_of(self.module)
        return "" if backend in (None, self.chip.backend) else str(backend.name)

    @property
    def is_bound(self) -> bool:
        """True if the estimate is a lower bound.

        False before optimization, when operations are charged for memory traffic that fusion will remove, and if a
        kernel may execute fewer branches than were counted.
        """
        return is_optimized(self.module) and not self.at_most_calls

    @functools.cached_property
    def roofline_seconds(self) -> float | None:
        """Seconds by libtpu's `optimal_seconds` without custom calls, or None if the chip is not a TPU.

        Each loop body counts once, and nothing overlaps. Computed on first access, which raises RuntimeError if the
        module was edited since the estimate.
        """
        if self.module.revision != self._revision:
            raise RuntimeError(f"module {self.module.name} was edited after the estimate; estimate it again")
        try:
            return as_tpu(self.module, self.chip).least_seconds
        except ValueError:
            return None

    @functools.cached_property
    def scatters(self) -> Mapping[Instruction, int]:
        """Scatters on TPU, alone or fused, that write rows sequentially, with the number of rows over all executions.

        Only their bytes are counted, since the rate of sequential writes is unknown; they can take far longer.
        """
        if self.chip.backend is not Backend.TPU or "scatter" not in census(self.module).by_opcode:
            return {}
        rows = {
            one.instruction: undercounted.rows_in_turn(one.instruction) * one.runs
            for one in self.instructions
        }
        return {one: count for one, count in rows.items() if count > 1}

    @property
    def exposed(self) -> float:
        """Seconds during which the core waits for transfers."""
        return sum(one.exposed for one in self.transfers)

    def busy_instructions(self) -> Iterator[tuple[Instruction, float]]:
        """Yields instructions with the seconds of the unit that executes them: the core, a link or a copy engine."""
        yield from ((one.instruction, one.seconds) for one in self.instructions)
        yield from ((one.start, one.seconds) for one in self.transfers)

    def seconds_by(
        self, key: Key, *, only_transfers: bool = False, depth: int | None = None
    ) -> dict[str, float] | None:
        """Groups the busy seconds of all units by a key. Units overlap, so the sum may exceed the run time.

        Args:
            key: `scope`, `line`, `caller`, `computation` or `instruction`, as for `Analysis.by`; `opcode` gives None.
            only_transfers: Count links and copy engines only.
            depth: Maximum number of names in a scope, or None for all.

        Returns:
            Seconds by key, or None for `opcode`, since the time of a fusion cannot be divided among its operations.

        Raises:
            ValueError: The key is unknown.
        """
        if key not in KEYS:
            raise ValueError(f"seconds can be grouped by {', '.join(KEYS)}, not by {key!r}")
        if key == "opcode":
            return None
        subject, text = naming(self.module, key, depth)
        found: dict[str, float] = {}
        texts: dict[int, str] = {}  # by identity: many instructions have one scope, or one line
        transfers = ((one.start, one.seconds) for one in self.transfers)
        for instruction, seconds in transfers if only_transfers else self.busy_instructions():
            one = subject(instruction)
            name = texts.get(id(one)) or texts.setdefault(id(one), text(one))
            found[name] = found.get(name, 0.0) + seconds
        return found

    @functools.cached_property
    def compiler(self) -> CompilerEstimate | None:
        """The total of the compiler's cycle estimates, or None if there are none or the chip's clock rate is unknown."""
        priced = [one for one in self.instructions if one.cycle_seconds is not None]
        if not priced:
            return None
        weight = sum(one.weight for one in self.instructions)
        return CompilerEstimate(
            sum((one.cycle_seconds or 0.0) * one.runs for one in priced),
            len(priced),
            len(self.instructions),
            sum(one.weight for one in priced) / weight if weight else 1.0,
        )

    @property
    def utilization(self) -> float | None:
        """Upper bound on utilization: FLOPs of a run divided by `utilized_peak` times `seconds`.

        None if a cost or the peak is unknown, or if the time is not a bound.
        """
        peak = self.utilized_peak
        if not self.is_bound or self.unknown_calls or not self.seconds or peak is None:
            return None
        return sum(one.least.flops * one.runs for one in self.instructions) / (peak.value * self.seconds)

    @property
    def utilized_peak(self) -> Figure | None:
        """The peak rate that `utilization` refers to; None if unknown.

        This is the chip's peak for bf16, or a higher one that matmuls use, such as that for int8.
        """
        known = [self.chip.rates.peak(name) for name in ("bf16", *self.product_rates)]
        return max((one for one in known if one is not None), key=lambda one: one.value, default=None)

    @functools.cached_property
    def product_rates(self) -> Mapping[str, float]:
        """FLOPs of matmuls and convolutions in one run by the peak rate used (as in `Rates.rate`), largest first.

        On GPU, `tf32` is the rate for f32 operands at default precision, with libraries as well as Triton; `f32` is the
        rate at highest precision.
        """
        found: dict[str, float] = {}
        for one in (*self.instructions, *self.beside):
            for rate, amount in one.least.products.items():
                found[rate] = found.get(rate, 0.0) + amount * one.runs
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @functools.cached_property
    def by_bound(self) -> Mapping[Bound, float]:
        """Seconds of the core by the resource that limits them, most first."""
        found: dict[Bound, float] = {}
        for one in self.instructions:
            found[one.bound] = found.get(one.bound, 0.0) + one.seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))


@attrs.frozen
class CompilerEstimate:
    """The TPU compiler's own cycle estimates (`estimated_cycles`), summed over the instructions with an estimate."""

    seconds: float
    """Total over all executions."""
    instructions: int
    """Number of instructions with an estimate."""
    of_instructions: int
    """Number of instructions that the core executes, with or without an estimate."""
    priced_share: float
    """Fraction of the total time (`InstructionTime.weight`) spent in instructions with an estimate."""

    @property
    def coverage(self) -> str:
        """Text describing the part of the program that has estimates."""
        return (
            f"for {self.instructions:,} of {self.of_instructions:,} instructions, "
            f"which take {100 * self.priced_share:.0f}% of the core's busy time"
        )


def estimate(
    module: Module,
    chip: str | Chip | None = None,
    mesh: DeviceMesh | None = None,
    trips: Mapping[str, int] | None = None,
    costs: TargetCosts | None = None,
) -> Estimate:
    """Computes a lower bound on the run time of a module on a chip. Cached until the module is edited.

    Uses the chip's peak rates, bandwidths and kernel launch times. On CPU, uses last-level cache bandwidth if the
    module's peak memory fits in the cache, since its arrays then stay resident between runs. Latencies are unknown and
    not counted, so small programs take longer than estimated. Useful for telling whether compute, memory or links are
    the limit, and for ranking large instructions; estimates are within a factor of 2 for matrix products and 4 for
    other instructions.

    Args:
        module: The module.
        chip: The chip, or its name. None uses the chip identified in the module text, or else the platform's default.
        mesh: The device mesh. None uses the module's own.
        trips: Trip counts by the name of a `while` or of its body, overriding those in the text.
        costs: Costs of custom-call targets (`target_costs`).

    Raises:
        ValueError: The chip is unknown, the mesh has the wrong size, or a name in `trips` is neither a loop nor a loop
            body.
    """
    if chip is None:
        row = chip_or_default(module).chip
    else:
        row = chip if isinstance(chip, Chip) else chip_named(chip)
    if mesh is not None:
        expect(mesh, DeviceMesh)
    return _estimate(module, row, mesh_of(module, mesh), tuple(sorted((trips or {}).items())), costs)


def _cached(module: Module, chip: Chip) -> tuple[Chip, int | None]:
    """The chip as the module's working set finds it, and its bytes if the chip's cache keeps them: see `Estimate`."""
    if chip.rates.cache_bytes is None:
        return chip, None
    try:
        size = memory.assignment.peak_bytes(module)
    except memory.MemoryModelError:
        return chip, None
    rates = chip.rates.with_working_set(size)
    return (chip, None) if rates is chip.rates else (attrs.evolve(chip, rates=rates), size)


@fact
def _estimate(
    module: Module,
    row: Chip,
    found: FoundMesh | None,
    trips: tuple[tuple[str, int], ...],
    costs: TargetCosts | None,
) -> Estimate:
    row, cached_bytes = _cached(module, row)
    graph = call_graph(module)
    counting = Counting(
        module, ShapeSizes(device_size), graph.with_trips(dict(trips)) if trips else graph, costs
    )
    roofline = Roofline(counting, row)
    walks = Scheduler(module, counting, roofline, found.mesh if found is not None else None).walks
    weights = _weights(counting)
    instructions: list[InstructionTime] = []
    beside: list[InstructionTime] = []
    transfers: list[TransferTime] = []
    busy: dict[str, float] = {CORE: 0.0}
    starts = _starts(walks, graph)
    # The core waits for what starts a thread, and no longer for the collectives of that thread.
    awaited = {one.start: walk.exposed.get(one, 0.0) for walk in walks.values() for one in walk.transfers}
    threads: dict[Instruction, float] = {}
    """By what starts it, how long a thread waits for its own transfers in each run."""
    for computation, walk in walks.items():
        start = starts[computation]
        waits = sum(walk.exposed.values())
        if start is not None and start.computation is not None and waits and weights.get(start.computation):
            often = weights.get(computation, 0) / weights[start.computation]
            threads[start] = threads.get(start, 0.0) + waits * often
    for computation, walk in walks.items():
        runs = weights.get(computation, 0)
        if not runs:
            continue
        started_by = starts[computation]
        for step in walk.steps:
            if step.least is not None:
                cycles = estimated_cycles(step.instruction)
                clock = row.rates.clock
                (instructions if started_by is None else beside).append(
                    InstructionTime(
                        step.instruction,
                        runs,
                        step.least,
                        cycles,
                        cycles / clock.value if cycles is not None and clock is not None else None,
                        started_by,
                    )
                )
                if started_by is None:
                    busy[CORE] += step.least.seconds * runs
        for one in walk.transfers:
            if one.start not in threads:
                exposed = walk.exposed.get(one, 0.0)
                start = starts[computation]
                if start in threads:
                    exposed *= awaited.get(start, 0.0) / threads[start]
                transfers.append(_transfer_time(one, runs, exposed))
            for queue in one.queues:
                busy[queue] = busy.get(queue, 0.0) + one.seconds * runs
    unknown = [i.instruction for i in (*instructions, *beside) if i.least.is_unknown]
    return Estimate(
        module,
        row,
        walks[module.entry].seconds,
        tuple(sorted(instructions, key=_largest_first)),
        tuple(sorted(beside, key=_largest_first)),
        tuple(sorted(transfers, key=lambda one: (-one.exposed, -one.seconds))),
        dict(sorted(busy.items(), key=lambda item: -item[1])),
        _critical_path(counting, walks, module),
        tuple(
            loop for loop, trips in counting.graph.loops() if trips is None and loop.computation in weights
        ),
        tuple(unknown),
        tuple(one.instruction for one in (*instructions, *beside) if one.least.is_at_most),
        module.is_scheduled,
        walks,
        module.revision,
        cached_bytes,
    )


def _starts(
    computations: Iterable[Computation], graph: CallGraph
) -> dict[Computation | None, Instruction | None]:
    """The instruction that starts the thread in which each computation runs; None if the core runs it."""
    starts: dict[Computation | None, Instruction | None] = {None: None}
    for each in computations:
        computation: Computation | None = each
        path: dict[Computation | None, None] = {}
        while computation not in starts:
            # Computations that only call each other are run by nothing.
            caller = (
                graph.caller(computation) if computation is not None and computation not in path else None
            )
            path[computation] = None
            if caller is not None and ROLES.get(caller.opcode) == "start":
                starts[computation] = caller
            else:
                computation = caller.computation if caller is not None else None
        starts.update(dict.fromkeys(path, starts[computation]))
    return starts


def _largest_first(one: InstructionTime) -> tuple[float, float]:
    return -one.weight, -one.seconds


def _transfer_time(one: ScheduledTransfer, runs: int, exposed: float) -> TransferTime:
    return TransferTime(
        one.start,
        one.communication,
        one.queues,
        runs,
        one.seconds * runs,
        exposed * runs,
        one.is_known,
        one.is_pair,
    )


def _weights(counting: Counting) -> dict[Computation, int]:
    """Number of sequential runs of each computation."""
    return {computation: accesses for computation, (_, accesses) in counting.weights.items() if accesses}


_MOST_STEPS = 20_000
"""Steps of a critical path beyond those that the module has instructions, from which on calls stay as they are."""


def _critical_path(
    counting: Counting, walks: Mapping[Computation, Walk], module: Module
) -> tuple[PathStep, ...]:
    """The entry's critical path with loops and calls replaced by the paths of their bodies, in the order of the schedule.

    Calls that would make it too long stay: where each computation calls another one twice, it doubles with each of them.
    """
    found: list[PathStep] = []
    limit = _MOST_STEPS + sum(map(len, module.computations))
    pending: list[tuple[Computation, int]] = [(module.entry, 1)]
    while pending:
        computation, times = pending.pop()
        walk = walks[computation]
        works = counting.works[computation]
        places = {instruction: place for place, instruction in enumerate(computation.instructions)}
        inner: list[tuple[Computation, int]] = []
        for instruction, seconds, resource in reversed(walk.critical()):
            place = places[instruction]
            bodies = (
                counting.calls(computation, place, works[place])
                if resource == CORE and works[place].bodies
                else ()
            )
            entered = [
                (body, min(times * count, MOST)) for body, count, _ in bodies if body in walks and count
            ]
            if entered and instruction.opcode != "fusion" and len(found) + len(pending) + len(inner) < limit:
                inner.extend(entered)
            else:
                found.append(PathStep(instruction, seconds * times, resource))
        pending.extend(inner)
    return tuple(found)
