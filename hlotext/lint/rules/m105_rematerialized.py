"""M105: values that XLA rematerializes to save memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import written_bytes
from hlotext.analysis.sizes import VIEWS
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import counted
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import has_backward_pass
from hlotext.lint.values import changed_bytes, is_spread


class Rematerialized(Rule):
    code = "M105"
    name = "rematerialized"
    title = "values that XLA rematerializes to save memory"
    waste = "again"
    needs_optimized = True

    share: ClassVar[float] = 0.01
    """Share of all written bytes from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        if not [
            one for one in context.census.instructions if ".remat" in one.name
        ]:  # nothing is rematerialized
            return
        first: Instruction | None = None
        total = again = count = 0
        for instruction in context.graph.sequential_instructions():
            is_again = ".remat" in instruction.name
            if not is_again and instruction.opcode in VIEWS:
                continue
            size = min(written_bytes(instruction), changed_bytes(instruction)) * context.runs(instruction)
            total += size
            if is_again and not is_spread(instruction):  # each of several writers needs its own zeros
                again += size
                count += 1
                first = first or instruction
        if first is not None and again >= self.share * total:  # too few bytes are rematerialized
            yield Report(
                first,
                f"{counted(count, 'is', 'are')} rematerialized, writing {100 * again / max(1, total):.2g} % of all bytes "
                "written",
                "lower peak memory (`hlotext memory FILE` shows what occupies it), so that XLA need not recompute them"
                + (", or choose what to recompute with jax.checkpoint" if has_backward_pass(context) else ""),
                again,
                "share",
            )
