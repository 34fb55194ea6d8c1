"""M107: needless rematerialization by jax.checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text, written_bytes
from hlotext.analysis.sizes import VIEWS
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_computed_again, is_product_call, size_of
from hlotext.lint.rule import Context, Report, Rule


class NeedlessRemat(Rule):
    code = "M107"
    name = "needless-remat"
    title = "needless rematerialization by jax.checkpoint"
    waste = "again"
    is_default = False  # what it costs is meant, or the text does not show how to spare it
    severity = Severity.NOTE  # the author may mean larger sizes than those of this text
    needs_optimized = True

    share: ClassVar[float] = 0.05
    """Share of the operations of all matrix products that are computed again, from which on it is worth a finding."""
    max_bytes: ClassVar[int] = 4 << 30
    """Peak bytes without rematerialization up to which memory is not short."""

    def check_module(self, context: Context) -> Iterator[Report]:
        by_opcode = context.census.by_opcode
        products = [one for opcode in ("dot", "convolution") for one in by_opcode.get(opcode, ())]
        products += [one for one in by_opcode.get("custom-call", ()) if is_product_call(one)]
        if not any(map(is_computed_again, products)):  # no matmul is recomputed for the backward pass
            return
        total = again = 0
        first: Instruction | None = None
        for instruction in products:
            flops = context.flops(instruction)
            total += flops
            if is_computed_again(instruction) and flops:
                again += flops
                first = first or instruction
        if first is None or again < self.share * total:  # the recomputed matmuls are too small
            return
        most = self._most_bytes(context)
        if most > self.max_bytes:  # without recomputation the module would need too much memory
            return
        yield Report(
            first,
            f"{100 * again / total:.2g}% of all matmul FLOPs are recomputations for jax.checkpoint, "
            f"but without it the peak would be at most {byte_text(most)}",
            "remove jax.checkpoint, or choose a policy that saves the matmul results (dots_saveable)",
            flops=again,
            cause="remat",
        )

    def _most_bytes(self, context: Context) -> int:
        """A bound of the memory without recomputation: today's peak, or everything that is written where memory cannot be
        computed, and all that is computed again, kept from every round."""
        held = context.peak
        if held is None:
            held = sum(size_of(parameter.shape) for parameter in context.arguments)
            held += sum(written_bytes(one) for one in context.graph.sequential_instructions())
        return held + sum(
            written_bytes(one) * context.runs(one)
            for one in context.graph.sequential_instructions()
            if one.opcode not in VIEWS and is_computed_again(one)
        )
