"""The least time of single instructions on a chip: operations at its peak, bytes at its bandwidth."""

from __future__ import annotations

import enum
import re

import attrs

from hlotext.analysis import memory_space
from hlotext.analysis.chips import HOST, Chip
from hlotext.cost.counting import Counting
from hlotext.cost.work import Taken, Work
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction

OVERHEAD = 5e-6
"""Seconds below which fixed costs decide, which a roofline does not know."""


class Bound(enum.Enum):
    """What an instruction's least time comes from."""

    COMPUTE = "compute"
    MEMORY = "memory"
    LINK = "link"
    HOST = "host link"
    OVERHEAD = "overhead"
    """Less than 5 microseconds: the time of starting it, which is not known, is likely more."""
    UNKNOWN = "unknown"
    """A custom call or a rate that nothing is known of."""


@attrs.frozen
class Least:
    """The least time of one instruction that runs once, by what takes it."""

    flops: float
    bytes: float
    """In main memory, with the padding of the first tile."""
    compute: float | None
    """Seconds. None where the chip's peak is not known; so are the next."""
    memory: float | None
    host: float | None
    is_unknown: bool = False
    fast_bytes: float = 0.0
    """In the chip's fast memory, whose rate is not known: they count nothing here."""
    fast: float = 0.0
    """Seconds of main memory that these would take."""

    @property
    def seconds(self) -> float:
        """The largest of them, as far as they are known."""
        return max(self.compute or 0.0, self.memory or 0.0, self.host or 0.0)

    @property
    def weight(self) -> float:
        """Seconds with bytes of fast memory at the rate of main memory: no bound, for ranking as the TPU compiler does."""
        return max(self.seconds, (self.memory or 0.0) + self.fast)

    @property
    def bound(self) -> Bound:
        """What decides."""
        seconds = self.seconds
        missing = (self.flops and self.compute is None) or (self.bytes and self.memory is None)
        if self.is_unknown or missing:
            return Bound.UNKNOWN
        if seconds < OVERHEAD:
            return Bound.OVERHEAD
        if seconds == self.compute:
            return Bound.COMPUTE
        return Bound.MEMORY if seconds == self.memory else Bound.HOST


class Roofline:
    """The least time of each instruction of a module on a chip."""

    def __init__(self, counting: Counting, chip: Chip) -> None:
        self._counting = counting
        self.chip = chip
        self._products: dict[Computation, tuple[float, str]] = {}
        for computation in counting.callees_first:
            self._products[computation] = self._largest_product(computation)

    def of(self, instruction: Instruction, work: Work) -> Least:
        """Of one instruction that runs once, with the body of a fusion, without the bodies of loops and calls."""
        flops = self._counting.own(instruction, work).flops
        kind = "bf16"
        if work.taken is Taken.OPERATIONS:
            flops += sum(self._counting.amounts[body].flops for body in work.bodies)
            kind = max((self._products[body] for body in work.bodies), default=(0.0, "bf16"))[1]
        elif instruction.opcode in _PRODUCTS:
            kind = kind_of(instruction)
        main = host = fast = 0.0
        for space, size in self._counting.accesses(instruction, work):
            if space == 0:
                main += size
            elif space == HOST:
                host += size
            elif space == self.chip.fast_memory_space:
                fast += size
        rates = self.chip.rates
        peak = rates.peak(kind)
        return Least(
            flops,
            main,
            flops / peak.value if peak is not None else None,
            main / rates.bandwidth.value if rates.bandwidth is not None else None,
            host / rates.host_link.value if rates.host_link is not None else None,
            work.is_unknown and not self._counting.is_known(instruction, work),
            fast,
            fast / rates.bandwidth.value if rates.bandwidth is not None else 0.0,
        )

    def _largest_product(self, computation: Computation) -> tuple[float, str]:
        """Operations and kind of type of the largest product in a computation and in what it calls."""
        found = (0.0, "bf16")
        for instruction, work in zip(
            computation.instructions, self._counting.works[computation], strict=True
        ):
            if instruction.opcode in _PRODUCTS:
                found = max(found, (float(work.flops), kind_of(instruction)))
            for body in work.bodies:
                found = max(found, self._products.get(body, found))
        return found


_PRODUCTS = frozenset({"convolution", "dot", "ragged-dot", "scaled-dot"})


def kind_of(product: Instruction) -> str:
    """The kind of type of a product by its operands: `int8` and `fp8` where both are so narrow, else `bf16`."""
    types = [
        operand.shape.element_type
        for operand in product.operands[:2]
        if operand.shape is not None and operand.shape.is_array
    ]
    if types and all(one.bits <= 8 for one in types):
        return "int8" if all(one.is_integral for one in types) else "fp8"
    return "bf16"


_CYCLES = re.compile(r'"estimated_cycles":"?([0-9]{1,19})')
_NOT_ESTIMATED = 2**63 - 1


def estimated_cycles(instruction: Instruction) -> int | None:
    """What the TPU compiler expects of a fusion or copy; None where it says nothing, or that it does not know."""
    config = instruction.backend_config
    match = _CYCLES.search(config.text) if config is not None else None
    cycles = int(match[1]) if match is not None else None
    return None if cycles in (None, _NOT_ESTIMATED) else cycles


def is_host_copy(instruction: Instruction) -> bool:
    """Whether a copy goes to or comes from the memory of the host."""
    shapes = [operand.shape for operand in instruction.operands[:1]]
    shape = instruction.shape
    shapes.append(
        shape.tuple_shapes[0] if shape is not None and shape.is_tuple and shape.tuple_shapes else shape
    )
    return any(shape is not None and shape.is_array and memory_space(shape) == HOST for shape in shapes)
