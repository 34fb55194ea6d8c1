"""What a module costs: XLA's own figures, and the same with every loop as often as it runs."""

from __future__ import annotations

import functools

import attrs

from hlotext.analysis.facts import fact
from hlotext.cost.counting import Amount, Counting
from hlotext.cost.sizes import padded_size
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module


@attrs.frozen
class Cost:
    """Operations and bytes."""

    flops: float = 0
    """Operations that are not transcendental, integer ones and comparisons included."""
    transcendentals: float = 0
    """Elements of exponentials, logarithms, square roots and the like."""
    bytes_accessed: float = 0
    """Bytes read and written, without padding, in whatever memory space."""


@attrs.frozen
class RunCost(Cost):
    """The cost of one run of a module: loops as often as they run, asynchronous work once, custom calls where known."""

    unknown_loops: tuple[Instruction, ...] = ()
    """Loops that count once because the text does not say how often they run."""
    conditionals: tuple[Instruction, ...] = ()
    """Conditionals whose branches cost differently; the costliest counts."""
    unknown_calls: tuple[Instruction, ...] = ()
    """Custom calls of unknown cost, which count nothing."""
    uncounted: tuple[tuple[Instruction, str], ...] = ()
    """Other instructions that count nothing, and why."""
    has_unsized: bool = False
    """Whether a shape without a known size counts nothing."""

    @property
    def is_exact(self) -> bool:
        """Whether nothing is left open: False where a trip count, a branch, a custom call or a size is not known."""
        return not (
            self.unknown_loops or self.conditionals or self.unknown_calls or self.uncounted or self.has_unsized
        )


def _cost(amount: Amount) -> Cost:
    return Cost(*amount)


class Analysis:
    """What a module costs. Made by `analyze`."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._counting = Counting(module)
        figures = self._counting.figures[module.entry]
        self.flops: float = figures[0]
        """As XLA counts: the body of a loop once, custom calls -1, in float32."""
        self.transcendentals: float = figures[1]
        self.bytes_accessed: float = figures[2]


@fact
def analyze(module: Module) -> Analysis:
    """What a module costs, by the rules of XLA's `HloCostAnalysis`. Kept until the module is edited."""
    return Analysis(module)
