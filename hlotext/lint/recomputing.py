"""The cost of computing values of the forward pass again, and the amount of memory that is worth it."""

from __future__ import annotations

from collections.abc import Collection

from hlotext.analysis.formatting import format_count, seconds
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context

MUCH_OF_PEAK = 0.3
"""Part of the peak, or of what is too much, that checkpointing saves, from which on it is worth a second forward pass.
Whether any memory is worth time, `Config.scarce_memory` decides."""


def of_body(body: Computation, context: Context) -> str:
    """Returns text on the work of a loop body in all iterations."""
    times = [time for time in context.prices.estimate.instructions if time.instruction.computation is body]
    flops = sum(time.least.flops * time.runs for time in times)
    return _words(flops, context.prices.inside.get(body, 0.0))


def of_forward(instructions: Collection[Instruction], context: Context) -> str:
    """Returns text on the work of instructions of the forward pass."""
    times = [time for time in context.prices.estimate.instructions if time.instruction in instructions]
    return _words(sum(time.least.flops * time.runs for time in times), context.prices.together(instructions))


def _words(flops: float, time: float) -> str:
    return f"{format_count(flops)}FLOP, in at most {seconds(time)}"
