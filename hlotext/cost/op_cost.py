"""Cost of one instruction in one run without its bodies, as a cost rule returns it. The rules by name."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hlotext.cost.sizes import ShapeSizes
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction

Rule = Callable[[Instruction, ShapeSizes], "OpCost"]


class CalleeCost(enum.Enum):
    """Contribution of called computations to the cost of an instruction."""

    SUM = "the sum of all"
    LARGEST = "the largest"
    OPERATIONS = "the sum of their flops; bytes are the instruction's own"


class OpCost(NamedTuple):
    """Operations and bytes of one instruction that runs once."""

    flops: int = 0
    """Operations that are not transcendental."""
    transcendentals: int = 0
    written: tuple[float, ...] = ()
    """Bytes by leaf of the result; only their sum means something where there are not as many as leaves."""
    read: tuple[float, ...] = ()
    """Bytes by operand."""
    constants: int = 0
    """Bytes of the constants inside a fusion, read besides its operands."""
    at_once: bool = False
    """True if XLA adds the bytes as integers, not one after the other in float32."""
    applied: tuple[tuple[Computation, int], ...] = ()
    """Bodies whose operations are multiplied: a reducer and how often it is applied."""
    bodies: tuple[Computation, ...] = ()
    """Computations that it runs."""
    taken: CalleeCost = CalleeCost.SUM
    touched: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    """Bytes written and read by our own count: what a fusion touches of its operands, asynchronous work where it is begun.
    None if it is XLA's.
    """
    performed: float | None = None
    """Operations by our own count, of an FFT. None if it is XLA's."""
    is_unknown: bool = False
    """True if XLA does not know its cost and counts -1."""
    products: Mapping[str, float] | None = None
    """The part of its flops that are matrix products, by the kind of type (`Rates.peaks`), where a custom call tells."""
    is_at_most: bool = False
    """True if branches of a kernel count that it may not take."""
    left_open: str = ""
    """The reason why a custom call may do more than is counted."""


NOTHING = OpCost()
"""Cost of an operation that neither computes nor moves data."""


NOT_WELL_FORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of rules, which take instructions as XLA accepts them; verify says what is wrong with others."""


class CannotCountError(Exception):
    """Raised if an instruction lacks what its cost rule needs, or exceeds its limits."""


RULES: dict[str, Rule] = {}
"""Every rule by the name in the opcode table; filled when `hlotext.cost.rules` is imported."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Decorator that registers a cost rule under a name."""

    def register(function: Rule) -> Rule:
        if name in RULES:
            raise ValueError(f"duplicate cost rule {name}")
        RULES[name] = function
        return function

    return register


def moved(instruction: Instruction, sizes: ShapeSizes, flops: int = 0, transcendentals: int = 0) -> OpCost:
    """Returns the cost of writing the whole result and reading all operands, XLA's default."""
    return OpCost(
        flops,
        transcendentals,
        sizes.leaves(instruction.shape),
        tuple([sizes.operand(operand) for operand in instruction.operands]),
    )
