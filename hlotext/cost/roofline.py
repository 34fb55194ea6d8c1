"""The least time of single instructions on a chip: operations at its peak, bytes at its bandwidth."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping

import attrs

from hlotext.analysis import Backend, memory_space
from hlotext.analysis.chips import HOST, Chip
from hlotext.analysis.communication import KINDS
from hlotext.analysis.sizes import VIEWS
from hlotext.cost import undercounted
from hlotext.cost.counting import MOST, Counting
from hlotext.cost.op_cost import CalleeCost, OpCost
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.enums import PrecisionAlgorithm

OVERHEAD = 5e-6
"""Seconds of work below which the fixed costs of a kernel decide, which a roofline knows in part."""


_FASTER = 22
"""Rate of a TPU's VMEM over that of its HBM, about (the JAX scaling book): what takes longer there than all else is not bound
by the rest, and no more is known of the rate."""


class Bound(enum.Enum):
    """Resource that limits an instruction's time."""

    COMPUTE = "compute"
    MEMORY = "memory"
    LINK = "link"
    HOST = "host link"
    OVERHEAD = "overhead"
    """A kernel that runs for less than 5 microseconds excluding its launch, so that fixed costs likely dominate.

    Not used on TPU, where the core launches no kernels.
    """
    UNKNOWN = "unknown"
    """A custom call, or a resource of unknown rate, such as a TPU's VMEM."""


@attrs.frozen
class LowerBound:
    """Lower bound on the time of one execution of an instruction, in seconds by resource."""

    flops: float
    bytes: float
    """Bytes moved in main memory, including padding of the first tile."""
    compute: float | None
    """Seconds at the chip's peak FLOP rate, or None if unknown."""
    memory: float | None
    host: float | None
    is_unknown: bool = False
    is_at_most: bool = False
    """True if the FLOPs of all branches of a kernel are counted."""
    fast_bytes: float = 0.0
    """Bytes moved in the chip's fast memory. Not part of the bound, since its bandwidth is unknown."""
    fast: float = 0.0
    """Seconds that `fast_bytes` would take at main-memory bandwidth."""
    launch: float = 0.0
    """Kernel launch time in seconds; 0 if unknown for the chip."""
    has_kernels: bool = False
    """True if the device launches a kernel per operation, rather than running one program."""
    products: Mapping[str, float] = attrs.field(factory=dict, eq=False)
    """FLOPs of matmuls and convolutions by the peak rate used (as in `Rates.rate`)."""

    @property
    def seconds(self) -> float:
        """Lower bound in seconds, including the launch: the maximum over compute, memory and host link."""
        return self.working + self.launch

    @property
    def working(self) -> float:
        """Lower bound in seconds, excluding the launch."""
        return max(self.compute or 0.0, self.memory or 0.0, self.host or 0.0)

    @property
    def weight(self) -> float:
        """Seconds for ranking, with fast-memory traffic at the rate of main memory as in the TPU compiler; not a bound."""
        return max(self.seconds, (self.memory or 0.0) + self.fast)

    @property
    def bound(self) -> Bound:
        """The limiting resource; `OVERHEAD` for very short kernels."""
        term = self.term
        is_small = self.has_kernels and self.working < OVERHEAD
        return Bound.OVERHEAD if is_small and term is not Bound.UNKNOWN else term

    @property
    def term(self) -> Bound:
        """The limiting resource of the work itself, ignoring overhead."""
        missing = (self.flops and self.compute is None) or (self.bytes and self.memory is None)
        if self.is_unknown or missing or self.fast > _FASTER * self.working:
            return Bound.UNKNOWN
        if self.working == self.compute:
            return Bound.COMPUTE
        return Bound.MEMORY if self.working == self.memory else Bound.HOST


class Roofline:
    """Lower bounds on the time of each instruction of a module on a chip."""

    def __init__(self, counting: Counting, chip: Chip) -> None:
        self._counting = counting
        self.chip = chip
        self._products: dict[Computation, Mapping[str, float]] = {}
        for computation in counting.callees_first:
            first = counting.counted_as.get(computation)
            self._products[computation] = (
                self._products_in(computation) if first is None else self._products[first]
            )

    def of(self, instruction: Instruction, work: OpCost) -> LowerBound:
        """Returns the bound for one execution of an instruction, including the body of a fusion but not those of loops
        and calls.
        """
        flops = self._counting.own(instruction, work).flops
        known = self._counting.known(instruction, work) if work.is_unknown else work
        products: Mapping[str, float] = _NONE
        if work.taken is CalleeCost.OPERATIONS:
            flops += sum(self._counting.amounts[body].flops for body in work.bodies)
            if len(work.bodies) == 1:
                products = self._products[work.bodies[0]]
            else:
                products = _summed(self._products[body] for body in work.bodies)
        elif known.products is not None:
            products = known.products
        elif instruction.opcode in _PRODUCTS or work.is_unknown:
            # Custom calls do not tell which unit they use: they take at least the time of the fastest one.
            products = {kind_of(instruction): flops}
        main = host = fast = 0.0
        for space, size in self._counting.accesses(instruction, work):
            if space == 0:
                main += size
            elif space == HOST:
                host += size
            elif space == self.chip.fast_memory_space:
                fast += size
        rates = self.chip.rates
        compute = self._compute_seconds(flops, products)
        memory = main / rates.bandwidth.value if rates.bandwidth is not None else None
        if instruction.opcode in _MAY_SORT and memory is not None:
            memory *= undercounted.passes(instruction)
        if instruction.opcode == "custom-call" and rates.launch is not None and compute is not None:
            compute = max(compute, undercounted.least_seconds(instruction))
        is_started = rates.launch is not None and starts_kernel(instruction)
        return LowerBound(
            flops,
            main,
            compute,
            memory,
            host / rates.host_link.value if rates.host_link is not None else None,
            known.is_unknown,
            known.is_at_most,
            fast,
            fast / rates.bandwidth.value if rates.bandwidth is not None else 0.0,
            rates.launch.value if is_started and rates.launch is not None else 0.0,
            rates.launch is not None or (self.chip.backend is Backend.CPU and starts_kernel(instruction)),
            self._by_rate(products),
        )

    def _compute_seconds(self, flops: float, products: Mapping[str, float]) -> float | None:
        """Products on one unit, all else on the other beside it."""
        rates = self.chip.rates
        vector = rates.vector or rates.peak("bf16")
        if vector is None:
            return None
        multiplied = seconds = 0.0
        for kind, amount in products.items():
            peak = rates.peak(kind) or vector
            multiplied += amount
            seconds += amount / peak.value
        rest = max(0.0, flops - multiplied) / vector.value
        return max(seconds, rest) if rates.vector is not None else seconds + rest

    def _by_rate(self, products: Mapping[str, float]) -> Mapping[str, float]:
        """The operations of each kind of product by the name of the rate used."""
        found: dict[str, float] = {}
        for kind, amount in products.items():
            rate = self.chip.rates.rate(kind)
            if rate is not None and amount:
                found[rate[0]] = found.get(rate[0], 0.0) + amount
        return found or _NONE

    def _products_in(self, computation: Computation) -> Mapping[str, float]:
        """Operations of the products in a computation, and in what it calls, by kind of type."""
        found: dict[str, float] = {}
        for instruction, work in zip(
            computation.instructions, self._counting.works[computation], strict=True
        ):
            if instruction._head.opcode in _PRODUCTS:
                kind = kind_of(instruction)
                found[kind] = min(found.get(kind, 0.0) + float(work.flops), MOST)
            for body in work.bodies:
                for kind, amount in self._products.get(body, _NONE).items():
                    found[kind] = min(found.get(kind, 0.0) + amount, MOST)
        return found or _NONE


_NONE: Mapping[str, float] = {}
_MAY_SORT = frozenset({"fusion", "sort"})


def _summed(parts: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        for kind, amount in part.items():
            found[kind] = found.get(kind, 0.0) + amount
    return found


_NO_KERNEL = VIEWS | {"constant", "iota"}


def starts_kernel(instruction: Instruction) -> bool:
    """Returns True if the device launches a kernel for an instruction: not for views, constants, starts and dones."""
    opcode = instruction.opcode
    return opcode not in _NO_KERNEL and opcode not in ROLES and opcode not in KINDS


_PRODUCTS = frozenset({"convolution", "dot", "ragged-dot", "scaled-dot"})


def kind_of(product: Instruction) -> str:
    """Returns the kind of a product: a key of `Rates.peaks`, or a type with its passes, such as `bf16x6`.

    Determined by the `algorithm` of a dot if set, otherwise by the operand types, and for f32 by the precision.
    """
    algorithm = product.attributes.get("algorithm")
    if isinstance(algorithm, PrecisionAlgorithm) and algorithm in _ALGORITHMS:
        return _ALGORITHMS[algorithm]
    types = [
        operand.shape.element_type
        for operand in product.operands[:2]
        if operand.shape is not None and operand.shape.is_array
    ]
    if types and all(one.bits <= 8 for one in types):
        return "int8" if all(one.is_integral for one in types) else "fp8"
    if any(one.name in ("f64", "c128") for one in types):
        return "f64"
    if any(one.name in ("f32", "c64") for one in types):
        return _KINDS_OF_F32[max(map(_PRECISIONS.index, _precisions(product)), default=0)]
    return "bf16"


_ALGORITHMS = {
    PrecisionAlgorithm.DOT_ANY_F8_ANY_F8_F32: "fp8",
    PrecisionAlgorithm.DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM: "fp8",
    PrecisionAlgorithm.DOT_F16_F16_F16: "bf16",
    PrecisionAlgorithm.DOT_F16_F16_F32: "bf16",
    PrecisionAlgorithm.DOT_BF16_BF16_BF16: "bf16",
    PrecisionAlgorithm.DOT_BF16_BF16_F32: "bf16",
    PrecisionAlgorithm.DOT_BF16_BF16_F32_X3: "bf16x3",
    PrecisionAlgorithm.DOT_BF16_BF16_F32_X6: "bf16x6",
    PrecisionAlgorithm.DOT_BF16_BF16_F32_X9: "bf16x9",
    PrecisionAlgorithm.DOT_TF32_TF32_F32: "tf32",
    PrecisionAlgorithm.DOT_TF32_TF32_F32_X3: "tf32x3",
    PrecisionAlgorithm.DOT_F32_F32_F32: "f32",
    PrecisionAlgorithm.DOT_F64_F64_F64: "f64",
}
"""Kinds of the algorithms that tell the type of the operands and the passes."""
_PRECISIONS = ("default", "high", "highest")
_KINDS_OF_F32 = ("tf32", "f32x3", "f32")
_STATED = re.compile(r'"operand_precision":\[([^\]]*)\]')


def _precisions(product: Instruction) -> list[str]:
    """Operand precisions of a product or of a library call's configuration; unknown words are left out."""
    stated = product.attributes.get("operand_precision", ())
    words = [str(one) for one in stated] if isinstance(stated, tuple) else [str(stated)]
    config = product.backend_config if product.opcode == "custom-call" else None
    if config is not None and (match := _STATED.search(config.text)) is not None:
        words = match[1].replace('"', "").lower().split(",")
    return [word for word in words if word in _PRECISIONS]


_CYCLES = re.compile(r'"estimated_cycles":"?([0-9]{1,19})')
_NOT_ESTIMATED = 2**63 - 1


def estimated_cycles(instruction: Instruction) -> int | None:
    """Returns the TPU compiler's cycle estimate of a fusion or copy, or None if absent or unknown."""
    config = instruction.backend_config
    match = _CYCLES.search(config.text) if config is not None else None
    cycles = int(match[1]) if match is not None else None
    return None if cycles in (None, _NOT_ESTIMATED) else cycles


def is_host_copy(instruction: Instruction) -> bool:
    """Returns True if a copy reads or writes host memory."""
    shapes = [operand.shape for operand in instruction.operands[:1]]
    shape = instruction.shape
    shapes.append(
        shape.tuple_shapes[0] if shape is not None and shape.is_tuple and shape.tuple_shapes else shape
    )
    return any(shape is not None and shape.is_array and memory_space(shape) == HOST for shape in shapes)
