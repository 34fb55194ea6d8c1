"""The memory of a module: what is found out, step by step, and what it adds up to."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

import attrs

from hlotext.analysis import (
    Backend,
    ChipChoice,
    XlaAge,
    age_for,
    backend_of,
    byte_text,
    choose_chip,
    is_optimized,
)
from hlotext.analysis.chips import CHIPS, Chip
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.facts import fact
from hlotext.ir import gc_control
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.bound_methods import Method
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import xla_changes
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.value import mimebundle
from hlotext.memory import peaks, platforms
from hlotext.memory.aliases import Buffer, find_buffers
from hlotext.memory.allocations import Allocation, PlacesByWriter
from hlotext.memory.assigner import Assigner, Heap, Result
from hlotext.memory.dataflow import Dataflow, analyse
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.fast_bounds import FastMemory, fast_memory
from hlotext.memory.in_place import InPlacePairs
from hlotext.memory.live_ranges import LiveRanges, find_live_ranges
from hlotext.memory.peaks import MemoryStatistics, Peak
from hlotext.memory.platforms import Platform
from hlotext.memory.schedule import Schedule, flatten
from hlotext.memory.sharing import Sharing
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.timed_assigner import TimedAssigner
from hlotext.memory.values import Value
from hlotext.verify.well_formed import needs_well_formed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hlotext.memory.usage import LiveArray, SpaceUsage
else:
    np = late_module("numpy")


@attrs.frozen(eq=False)
class Model:
    """Analyses behind a computed assignment."""

    flow: Dataflow
    schedule: Schedule
    pairs: InPlacePairs
    buffers: Sequence[Buffer]
    ranges: LiveRanges
    sharing: Sharing
    platform: Platform
    is_timed: bool
    """True where values are placed by time too, see `TimedAssigner`."""
    chip: Chip | None
    """None if it is not known."""
    notes: tuple[str, ...]


@with_foreign_names
@attrs.frozen(eq=False, repr=False)
class Assignment:
    """Buffer assignment of a module, computed (`assign`) or read from XLA's files (`load`)."""

    module: Module | None
    """The module, or None if only files were read."""
    backend: Backend | None
    chip: Chip | None
    """The chip, or None if unknown."""
    values: tuple[Value, ...]
    buffers: tuple[Buffer, ...] | None
    """Sets of values that must share memory, or None if read from files (`joined` adds them)."""
    schedule: tuple[Instruction | str, ...]
    """Instructions in the order of the flattened schedule, given by name if not in the module."""
    allocations: tuple[Allocation, ...]
    notes: tuple[str, ...] = ()
    """Assumptions made, and information that could not be determined."""
    is_computed: bool = True
    """True if computed from the module, False if read from XLA's files."""
    unread: tuple[str, ...] = ()
    """Names of XLA's files that could not be read completely, for reasons given in `notes`."""
    heaps: tuple[Heap, ...] = ()
    """Heaps of temporaries; empty if read from files."""
    platform: Platform | None = None
    model: Model | None = None
    """Intermediate results of the computation, or None if read from files."""
    age: XlaAge | None = None
    """Age of the XLA version whose rules were applied, or None if read from files."""
    places_fast_memory: bool = True
    """True if values in the chip's fast memory have offsets."""
    lines: Mapping[str, str] = attrs.field(factory=dict)
    """Text of instructions that are not in the module, by name, from XLA's files."""
    elements: Mapping[Instruction, str] = attrs.field(factory=dict)
    """For tuple elements written as `BASE#I` in the module text, the name of a get-tuple-element in XLA's files.
    """

    def __repr__(self) -> str:
        name = self.module.name if self.module is not None else "?"
        return f"<Assignment of {name}: {len(self.values)} values in {len(self.allocations)} allocations>"

    _repr_mimebundle_ = mimebundle

    def memory_spaces(self) -> tuple[int, ...]:
        """Returns the numbers of the memory spaces in use, ascending."""
        return tuple(sorted({a.memory_space for a in self.allocations if not a.is_thread_local}))

    @Method()
    def peak(self, memory_space: int = 0) -> Peak:
        """Returns the peak of a memory space: the time with the most live bytes, and the values live at that time.

        Memory space 0 is the default device memory, such as HBM.
        """
        return peaks.peak(self, memory_space)

    def timeline(self, memory_space: int = 0) -> tuple[tuple[int, int], ...]:
        """Returns the live bytes of a memory space, including static allocations, at each time of the schedule.

        Each row is (time, live bytes), where time is a position in `schedule`.
        """
        return tuple(enumerate(peaks.timeline(self, memory_space)))

    @functools.cached_property
    def _live_bytes(self) -> dict[Allocation, list[int]]:
        """Bytes that live in allocations at each moment, of those that were asked for (`peaks.live_bytes`)."""
        return {}

    @functools.cached_property
    def _places(self) -> PlacesByWriter:
        """The places of what instructions write."""
        return PlacesByWriter(self.allocations)

    @functools.cached_property
    def _timelines(self) -> dict[int, list[int]]:
        """Live bytes at each moment by memory space, of those that were asked for (`peaks.timeline`)."""
        return {}

    @functools.cached_property
    def _timeline_arrays(self) -> dict[int, npt.NDArray[np.int64]]:
        """The same as arrays (`without.peak_without`)."""
        return {}

    @functools.cached_property
    def _live_arrays(self) -> dict[tuple[int, int], tuple[LiveArray, ...]]:
        """Live arrays by memory space and moment, of those that were asked for (`usage.live_arrays`)."""
        return {}

    @functools.cached_property
    def _space_usages(self) -> dict[int, SpaceUsage]:
        """Use of memory spaces, of those that were asked for (`usage.space_usage`)."""
        return {}

    @functools.cached_property
    def shared_buffers(self) -> Mapping[Value, Buffer]:
        """The buffer of each value that shares a buffer with others."""
        return {value: buffer for buffer in self.buffers or () if len(buffer) > 1 for value in buffer}

    @property
    def fast_memory(self) -> FastMemory | None:
        """Bounds on XLA's allocation in the chip's fast memory.

        None if the platform has no such memory, if read from files, and if `places_fast_memory` is False.
        """
        if self.model is None or self.platform is None or self.buffers is None or not self.places_fast_memory:
            return None
        estimate = sum(heap.bytes for heap in self.heaps if heap.is_assigned_before)
        model = self.model
        return fast_memory(
            self.values,
            self.buffers,
            model.flow,
            model.schedule,
            self.platform,
            estimate,
            self._fast_capacity,
        )

    @property
    def _fast_capacity(self) -> int | None:
        """Bytes of fast memory that the chip has, or the largest of those that it may be; None if that is not known."""
        if self.module is None or self.platform is None or self.platform.fast_space is None:
            return None
        choice = choose_chip(self.module, self.chip, backend=self.backend)
        names = choice.candidates if choice is not None else ()
        sizes = [chip_named(name).capacity(self.platform.fast_space) for name in names]
        return max((size for size in sizes if size is not None), default=None) if None not in sizes else None

    @property
    def xla_peak(self) -> int | None:
        """Peak in bytes as in JAX's `memory_analysis().peak_memory_in_bytes`; on CPU, the static part only.

        None if the assignment was read from files, which do not contain it.
        """
        return peaks.xla_peak(self)

    @property
    def statistics(self) -> MemoryStatistics:
        """Statistics as reported by JAX's `memory_analysis()`."""
        return peaks.statistics(self)

    @property
    def run_bytes(self) -> int:
        """Bytes of a run according to `statistics`: arguments, results without aliased ones, and known temporaries."""
        return peaks.run_bytes(self)

    @property
    def total_bytes(self) -> int:
        """Total bytes of all allocations."""
        return sum(allocation.bytes for allocation in self.allocations)


def assign(
    module: Module,
    platform: str | Backend | None = None,
    chip: str | Chip | None = None,
    *,
    aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]] | None = None,
    age: XlaAge | date | str | None = None,
    places_fast_memory: bool = True,
) -> Assignment:
    """Computes the buffer assignment of a module as XLA's compiler for the platform does.

    Cached until the module is edited, except with `aliases`; callers must not modify it. Assumptions, such as an
    unknown chip or a missing schedule (the order of the text is then used), are listed in `notes`.

    Args:
        module: The module.
        platform: `cpu`, `gpu` or `tpu`. None (the default) detects it from the module text.
        chip: The chip whose rules apply, or its name. None (the default) assumes one that fits the module text.
        aliases: Aliases from output index to parameter number and index, replacing those of the header.
        age: The XLA version whose rules apply: an XlaAge, a date or a jaxlib release ("0.10.2"). None (the default)
            detects it from the module text, or else assumes the newest.
        places_fast_memory: Compute offsets in the fast memory of a TPU, which takes most of the time. If False, these
            offsets are omitted unless already known.

    Raises:
        MemoryModelError: Memory cannot be determined: the module has no entry, is recursive, lacks shapes or is otherwise
            invalid, the platform is unknown, or the chip is of another platform (a ValueError).
        ValueError: No chip has this name, or `age` is not an age of XLA.
    """
    known_chip = chip_named(chip) if isinstance(chip, str) else chip
    backend = _backend(module, platform, known_chip)
    if known_chip is not None and known_chip.backend is not backend:
        own = ", ".join(one.name for one in CHIPS.values() if one.backend is backend)
        raise MemoryModelError(
            f"{known_chip.name} is a {known_chip.backend.name}, but the module is for {backend.name}; its chips: {own}"
        )
    known_age = age_for(module, age)
    if aliases is not None:
        model = _model(module, backend, known_chip, known_age, aliases)
        return _assigned(model, backend, known_age, places_fast_memory)
    known = _assignments(module, backend, known_chip, known_age)
    if True not in known and places_fast_memory not in known:
        model = _own_model(module, backend, known_chip, known_age)
        known[places_fast_memory] = _assigned(model, backend, known_age, places_fast_memory)
    return known.get(True) or known[False]


@fact
def peak_bytes(module: Module, memory_space: int = 0) -> int:
    """Returns the bytes of a memory space at its peak, as `assign(module).peak().bytes`, in a fraction of its time.

    Heap offsets are not computed, since live bytes do not depend on them. Raises MemoryModelError as `assign` does.
    """
    backend, age = _backend(module, None, None), age_for(module)
    known = _assignments(module, backend, None, age)
    assignment = next(iter(known.values())) if known else _live_only(module, backend, age)
    return assignment.peak(memory_space).bytes


@fact
def _live_only(module: Module, backend: Backend, age: XlaAge) -> Assignment:
    """An assignment without offsets in heaps, asked for the peaks of several memory spaces."""
    model = _own_model(module, backend, None, age)
    return _assigned(model, backend, age, places_fast_memory=True, places_heaps=False)


@fact
def _assignments(module: Module, backend: Backend, chip: Chip | None, age: XlaAge) -> dict[bool, Assignment]:
    """The assignments that were asked for, with places in fast memory and without."""
    return {}


@fact
def _own_model(module: Module, backend: Backend, chip: Chip | None, age: XlaAge) -> Model:
    return _model(module, backend, chip, age, None)


def _model(
    module: Module,
    backend: Backend,
    chip: Chip | None,
    age: XlaAge,
    aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]] | None,
) -> Model:
    notes: list[str] = []
    choice = choose_chip(module, chip, backend=backend)
    is_timed = backend is Backend.TPU and age.has(xla_changes.FAST_MERGE)
    rules = _rules(backend, choice, is_timed, notes)
    with gc_control.gc_paused(collect_first=False), needs_well_formed(module, MemoryModelError):
        schedule = flatten(module)
        if schedule.is_assumed:
            notes.append("the module has no schedule; assuming text order")
        notes += _unknown_opcodes(module)
        flow = analyse(module, aliases)
        if flow.late_bound:
            names = ", ".join(start.name for start in flow.late_bound[:3])
            notes.append(
                f"operands or results are bound late ({names}): placed as in XLA's sources of August 2026; XLA's files for "
                "two such TPU v6e programs show 6 and 11% more in HBM"
            )
        pairs = InPlacePairs(rules.no_ops)
        buffers = find_buffers(flow, pairs)
        starts_late = age.has(xla_changes.ASYNC_RESULTS_BEGIN_LATE)
        ranges = find_live_ranges(flow, schedule, buffers, async_results_begin_late=starts_late)
        sharing = Sharing(flow, pairs, rules.hint)
    known = choice.chip if choice is not None and choice.is_known else None
    return Model(flow, schedule, pairs, buffers, ranges, sharing, rules, is_timed, known, tuple(notes))


def _assigned(
    model: Model, backend: Backend, age: XlaAge, places_fast_memory: bool, places_heaps: bool = True
) -> Assignment:
    def run(is_timed: bool, rules: Platform, places_heaps: bool) -> Result:
        return (TimedAssigner if is_timed else Assigner)(
            model.flow,
            model.schedule,
            model.buffers,
            model.ranges,
            model.sharing,
            rules,
            places_fast_memory=places_fast_memory,
            places_heaps=places_heaps,
        ).run()

    rules, notes = model.platform, model.notes
    most = rules.merged_up_to
    with gc_control.gc_paused(collect_first=False), needs_well_formed(model.flow.module, MemoryModelError):
        result = run(model.is_timed, rules, places_heaps)
        if most is not None and not places_heaps and result.main_bytes > most:
            result = run(model.is_timed, rules, True)
        if most is not None and result.main_bytes > most:
            by_size = attrs.evolve(rules, merged_spaces=frozenset())
            other = run(False, by_size, True)
            if other.main_bytes < result.main_bytes:
                notes = (*notes, _placed_again(model, result.main_bytes, most))
                result, rules = other, by_size
                if model.chip is None:
                    for allocation in result.allocations:
                        allocation.is_size_estimated |= (
                            allocation.is_temporary and not allocation.memory_space
                        )
    if age.has(xla_changes.PAGES):
        for allocation in result.allocations:
            allocation.page = 0
    return Assignment(
        module=model.flow.module,
        backend=backend,
        chip=model.chip,
        age=age,
        values=tuple(model.flow.values),
        buffers=tuple(model.buffers),
        schedule=model.schedule.instructions,
        allocations=result.allocations,
        notes=notes,
        heaps=result.heaps,
        platform=rules,
        model=model,
        places_fast_memory=places_fast_memory,
    )


def _placed_again(model: Model, needed: int, most: int) -> str:
    otherwise = "" if model.chip is not None else "; a chip with more memory would keep time order"
    return (
        f"placed in time order, arrays need {byte_text(needed)} in total; beyond {byte_text(most)}, XLA packs them by "
        f"size{otherwise}"
    )


def _is_chip(word: str) -> bool:
    try:
        chip_named(word)
    except ValueError:
        return False
    return True


def _backend(module: Module, platform: str | Backend | None, chip: Chip | None) -> Backend:
    if isinstance(platform, Backend):
        return platform
    if platform is not None:
        try:
            return Backend({"cuda": "gpu"}.get(platform.lower(), platform.lower()))
        except ValueError:
            known = ", ".join(backend.value for backend in Backend)
            way = f"it is a chip: use chip={platform!r}" if _is_chip(platform) else f"known: {known}"
            raise MemoryModelError(f"no platform is named {platform!r}; {way}") from None
    found = backend_of(module)
    if found is None and chip is not None:
        return chip.backend
    if found is None:
        what = "the text does not show the platform; "
        if not is_optimized(module):
            what = (
                "HLO before optimization shows no platform, and its memory is not the compiled program's; use "
                "compiled HLO, or "
            )
        raise MemoryModelError(f"{what}set platform= to cpu, gpu or tpu")
    return found


def _unknown_opcodes(module: Module) -> Iterator[str]:
    """A note on operations of which nothing is known; their results are placed as those of any other."""
    found = [i for i in module.instructions() if i.opcode not in OPCODES]
    if found:
        yield f"{len(found)} not fully modeled, such as {found[0].name}: opcode {found[0].opcode} is unknown"


def _rules(backend: Backend, choice: ChipChoice | None, is_timed: bool, notes: list[str]) -> Platform:
    if backend is not Backend.TPU or choice is None:
        return platforms.CPU if backend is Backend.CPU else platforms.GPU
    if choice.source in ("text", "assumed"):
        notes.append(f"chip: {choice}")
    return platforms.tpu(choice.chip, is_timed=is_timed)
