"""M110: an array that is held across the peak of memory, and cheap to compute again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext import memory
from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.held import MAIN, assignment_of, at_peak, largest_written, least_held
from hlotext.lint.rule import Context, Report, Rule
from hlotext.memory.what_if import WhatIf, rematerialize


@attrs.frozen
class CheapToComputeAgain(Rule):
    code = "M110"
    name = "cheap-to-compute-again"
    title = "an array held across the peak of memory that is cheap to compute again"
    waste = "held"
    needs_schedule = True
    is_default: ClassVar[bool] = False

    min_peak: ClassVar[int] = 4 << 30
    """Bytes of the peak up to which memory is not short, so that computing anything again gains nothing."""
    min_percent: ClassVar[int] = 5
    """Percent by which the peak is lower then, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        largest = largest_written(context)
        if 100 * largest < self.min_percent * max(self.min_peak, least_held(context) + largest):
            return
        peak = at_peak(context)
        if peak is None or peak.bytes < self.min_peak:
            return
        cheap = [
            held.value.instruction
            for held in peak.held
            if 100 * held.bytes >= self.min_percent * peak.bytes
            and held.value.instruction is not None
            and is_cheap(held.value.instruction)
        ]
        found = [(one, what) for one in cheap[:_TRIED] if (what := _measured(one, context)) is not None]
        if not found:
            return
        best, what = max(found, key=lambda row: row[1].saved)
        if what.saved > 0 and 100 * what.saved >= self.min_percent * peak.bytes:
            yield Report(
                best,
                f"computing it again behind the peak would lower that from {byte_text(what.peak_before)} to "
                f"{byte_text(what.peak_after)} (estimated), for {byte_text(written_bytes(best))} written once more",
                "let jax.checkpoint compute it again, with a policy that keeps the products",
                what.saved,
                "again",
                is_held=True,
            )


_TRIED = 3
"""Candidates whose memory is assigned anew: each takes as long as the first assignment."""
_CHEAP = ELEMENTWISE | {
    "bitcast",
    "broadcast",
    "concatenate",
    "constant",
    "iota",
    "pad",
    "parameter",
    "reshape",
    "slice",
}


def is_cheap(instruction: Instruction) -> bool:
    """Whether each element of a result is made of few elements of the operands: no product, no sum, nothing random."""
    if instruction.opcode == "fusion":
        return all(inner.opcode in _CHEAP for body in instruction.called_computations for inner in body)
    return instruction.opcode in _CHEAP - {"bitcast", "constant", "parameter"}


def _measured(instruction: Instruction, context: Context) -> WhatIf | None:
    before = assignment_of(context)
    try:
        return rematerialize(
            context.module, instruction.name, context.backend, memory_space=MAIN, before=before
        )
    except memory.MemoryModelError:
        return None
