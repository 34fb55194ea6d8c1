"""The figures of XLA:TPU's own cost analysis, which `compiled.cost_analysis()` gives there.

It is `HloCostAnalysis` with sizes of its own, other rules for gathers, scatters and custom calls, and a rate for each kind
work. The source of libtpu is not public: these rules were found by compiling for seven chips, libtpu 0.0.42.1 and 0.0.52.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import attrs

from hlotext.analysis import byte_text, communications
from hlotext.analysis.backend import Backend
from hlotext.analysis.chips import Chip, Rates
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.communication import chain_of
from hlotext.analysis.facts import fact
from hlotext.cost.counting import Counting
from hlotext.cost.custom_calls import known_work
from hlotext.cost.op_cost import NOTHING, CalleeCost, OpCost, moved
from hlotext.cost.rules.fusion import without_handed_on
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.cost.xla_sums import Figures, figures_of, sums_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.targets import FREE_TARGETS
from hlotext.ir.values.shape import Shape
from hlotext.layout import host_shape_size, xla_array_size
from hlotext.layout.checks import element_bits, layout_of
from hlotext.memory.platforms import rounded_up, table_alignment

_ALIGNMENT = 1024
"""Elements that an array without tiles is rounded up to."""
_SPARSE_CORE_SCALARS = frozenset({8, 10})
"""Memory spaces of SparseCores whose arrays without tiles count their own bytes alone."""
_POINTER = 4
"""Bytes of an element of a tuple's table."""


@attrs.frozen
class TpuCost:
    """XLA:TPU's own cost of a module, in float32: loop bodies count once, calls of unknown cost -1."""

    chip: Chip
    flops: float
    transcendentals: float
    bytes_accessed: float
    """Bytes in all memory spaces, including padding of all tiles."""
    optimal_seconds: float
    """Seconds at the compiler's own rates. As in XLA, each call of unknown cost subtracts one second."""
    unknown_calls: int
    """Number of calls of unknown cost."""
    free_calls: int = 0
    """Number of `unknown_calls` that only annotate or join arrays (`ConcatBitcast`), which XLA counts but cost nothing.
    """
    carried: int = 0
    """Number of collectives implemented by several fusions, whose byte count is estimated.

    In six programs with such collectives, total bytes were between 13% too low and 5% too high. Without them, total
    bytes are exact."""

    @property
    def moved(self) -> str:
        """`bytes_accessed` as text, marked if estimated."""
        return f"{'about ' if self.carried else ''}{byte_text(int(self.bytes_accessed))}"

    @property
    def left_out(self) -> int:
        """Number of calls of unknown cost that do work, none of which is counted: `unknown_calls` without `free_calls`."""
        return self.unknown_calls - self.free_calls

    @property
    def least_seconds(self) -> float:
        """Seconds without calls of unknown cost, never negative; a lower bound if there are such calls."""
        return max(0.0, self.optimal_seconds + self.unknown_calls)


def as_tpu(module: Module, chip: Chip | str) -> TpuCost:
    """Returns XLA:TPU's cost analysis of a module for a chip. Cached until the module is edited.

    Raises ValueError if the chip is unknown, or not a TPU with known compiler rates.
    """
    return _figures(module, chip_named(chip) if isinstance(chip, str) else chip)


@fact
def _figures(module: Module, chip: Chip) -> TpuCost:
    return _TpuCounting(module, _rates_of(chip)).cost(chip)


class _Rates(NamedTuple):
    """A chip's rates as its compiler has them."""

    flops: float
    bandwidth: float
    transcendentals: float
    least_compute_seconds: float
    least_access_seconds: float
    table_alignment: int


def _rates_of(chip: Chip) -> _Rates:
    rates: Rates = chip.rates
    limits = rates.compiler_limits
    if (
        chip.backend is not Backend.TPU
        or rates.compiler_peak is None
        or rates.compiler_bandwidth is None
        or limits is None
    ):
        raise ValueError(f"{chip.name} is not a TPU with known compiler rates")
    return _Rates(
        rates.compiler_peak.value,
        rates.compiler_bandwidth.value,
        limits.transcendentals,
        1 / limits.clock,
        1 / limits.accesses if limits.accesses is not None else 0.0,
        table_alignment(chip),
    )


class _TpuSizes(ShapeSizes):
    """Sizes with all padding; arrays without tiles in whole blocks of 1,024 elements."""

    counts_touched = False

    def __init__(self, table_alignment: int) -> None:
        super().__init__(functools.partial(_size, table_alignment=table_alignment))

    def constant(self, shape: Shape | None) -> int:
        """The compiler has the constant itself, not its text: `E(n)` is kept."""
        return self.of(shape)


def _size(shape: Shape, table_alignment: int) -> int:
    if shape.is_tuple:
        return rounded_up(_POINTER * len(shape.tuple_shapes), table_alignment)
    if not shape.is_array:
        return host_shape_size(shape)
    if shape.layout is None or not shape.layout.tiles:
        if shape.layout is not None and shape.layout.memory_space in _SPARSE_CORE_SCALARS:
            return host_shape_size(shape)
        return rounded_up(elements(shape), _ALIGNMENT) * element_bits(shape) // 8
    return xla_array_size(shape)


class _Timed(NamedTuple):
    """The compiler's figures of a computation that its cost properties leave out."""

    seconds: float = 0.0
    unknown_calls: int = 0
    free_calls: int = 0


class _TpuCounting(Counting):
    """The work of every instruction by the TPU's rules."""

    def __init__(self, module: Module, rates: _Rates) -> None:
        self._rates = rates
        super().__init__(module, _TpuSizes(rates.table_alignment))

    def cost(self, chip: Chip) -> TpuCost:
        """The figures of the entry."""
        entry = self.graph.module.entry
        timed: dict[Computation, _Timed] = {}
        for computation in self.callees_first:
            first = self.counted_as.get(computation)
            timed[computation] = self._timed(computation, timed) if first is None else timed[first]
        carried = sum(chain_of(one.instruction) is not None for one in communications(self.graph.module))
        return TpuCost(chip, *self.figures[entry], *timed[entry], carried)

    def _timed(self, computation: Computation, known: Mapping[Computation, _Timed]) -> _Timed:
        seconds: dict[int, tuple[float, ...]] = {}
        unknown_calls = free_calls = 0
        works = self.works[computation]
        for place, (instruction, work) in enumerate(zip(computation.instructions, works, strict=True)):
            if work is not NOTHING:
                one = self._time_of(instruction, work, known)
                seconds[place] = (one.seconds,)
                unknown_calls += one.unknown_calls
                free_calls += one.free_calls
        if not seconds:
            return _Timed()
        return _Timed(sums_of(computation, seconds, self.orders)[0], unknown_calls, free_calls)

    def _time_of(self, instruction: Instruction, work: OpCost, known: Mapping[Computation, _Timed]) -> _Timed:
        if work.is_unknown:
            return _Timed(-1.0, 1, instruction.attributes.get("custom_call_target") in FREE_TARGETS)
        is_own = not work.bodies or work.taken is CalleeCost.OPERATIONS or instruction.opcode == "async-start"
        if is_own:
            return _Timed(self._roofline(figures_of(work, self.figures)))
        bodies = [known.get(body, _Timed()) for body in work.bodies]
        if work.taken is CalleeCost.LARGEST:
            return max(bodies)
        columns = zip(*bodies, strict=True)
        return _Timed(*map(sum, columns)) if bodies else _Timed()

    def _roofline(self, figures: Figures) -> float:
        """Seconds of the dearest kind of work. What is negative, because all of it is unknown, takes one cycle."""
        flops, transcendentals, accessed = figures
        rates = self._rates
        return max(
            max(flops / rates.flops, rates.least_compute_seconds) if flops else 0.0,
            transcendentals / rates.transcendentals,
            max(accessed / rates.bandwidth, rates.least_access_seconds) if accessed else 0.0,
        )

    def _rule_work(self, instruction: Instruction) -> OpCost:
        work = super()._rule_work(instruction)
        inner = _custom_indexing(instruction)
        if inner is not None:
            return (_gather if inner.opcode == "gather" else _scatter)(inner, self.sizes)
        if instruction.opcode == "custom-call":
            return _custom_call(instruction, self.sizes)
        return without_handed_on(instruction, work) if instruction.opcode == "fusion" else work


def _custom_indexing(instruction: Instruction) -> Instruction | None:
    """The gather or scatter that an instruction is, or that a custom fusion is there for."""
    if instruction.opcode in ("gather", "scatter"):
        return instruction
    if instruction.opcode != "fusion" or instruction.attributes.get("kind") != "kCustom":
        return None
    callees = instruction.called_computations
    return next((i for i in callees[0] if i.opcode in ("gather", "scatter")), None) if callees else None


def _gather(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    table, indices = instruction.operands
    numbers = instruction.attributes
    size = sizes.of(instruction.shape)
    collapsed = {*numbers["collapsed_slice_dims"], *numbers.get("operand_batching_dims", ())}
    return OpCost(
        written=(size,),
        read=(size * _rows_charged(table.shape, collapsed), sizes.operand(indices)),
        at_once=True,
    )


def _scatter(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    operands = instruction.operands
    count = (len(operands) - 1) // 2
    numbers = instruction.attributes
    collapsed = {*numbers["inserted_window_dims"], *numbers.get("input_batching_dims", ())}
    updates = [sizes.operand(operand) for operand in operands[count + 1 :]]
    charged = [
        size * _rows_charged(array.shape, collapsed)
        for array, size in zip(operands[:count], updates, strict=True)
    ]
    return OpCost(
        written=(sum(charged),),
        read=(*charged, sizes.operand(operands[count]), *updates),
        at_once=True,
        applied=((instruction.called_computations[0], elements(operands[count + 1].shape)),),
    )


def _rows_charged(table: Shape | None, collapsed: set[int]) -> int:
    """Multiple of its own size charged for an element taken from a table: the whole (8,128) tile around it."""
    if table is None:
        return 1
    order = layout_of(table).minor_to_major
    if len(order) == 1:
        return 1024 if order[0] in collapsed else 1
    times = 1
    for dimension, tile in zip(order[:2], (128, 8), strict=False):
        times *= tile if dimension in collapsed else 1
    return times


_FREE = frozenset({"AllocateBuffer", "PartialReduce"})
_KERNEL = "tpu_custom_call"


def _custom_call(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Two targets are free, top-k has a cost, a kernel says its own or is free; all others are unknown."""
    target = instruction.attributes.get("custom_call_target")
    if target in _FREE:
        return NOTHING
    work = moved(instruction, sizes)
    if target == "TopK":
        result = instruction.shape.tuple_shapes[0] if instruction.shape is not None else None
        if result is None:
            return NOTHING
        return work._replace(flops=elements(instruction.operands[0].shape) * result.dimensions[-1])
    if target == _KERNEL:
        return known_work(instruction, work) or NOTHING
    return work._replace(is_unknown=True)
