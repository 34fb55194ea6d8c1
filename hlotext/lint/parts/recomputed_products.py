"""Matrix products that are computed more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis.formatting import format_count
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import fusions_around, is_computed_again, is_product_call
from hlotext.lint.repairs import Reuse
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, source


@attrs.frozen
class RecomputedProducts(Rule):
    severity = Severity.NOTE
    needs_optimized = True

    share: ClassVar[float] = 0.05
    """Share of the operations of all matrix products that are computed again, from which on it is worth a finding."""
    min_flops: ClassVar[int] = 10_000_000
    """Operations that are computed again, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        by_opcode = context.census.by_opcode
        products = [one for opcode in ("dot", "convolution") for one in by_opcode.get(opcode, ())]
        products += [one for one in by_opcode.get("custom-call", ()) if is_product_call(one)]
        total, again = 0, Counter[str]()
        first: Instruction | None = None
        known: dict[tuple[object, ...], Instruction] = {}
        pairs: list[tuple[Instruction, Instruction]] = []
        for product in products:
            flops = context.flops(product)
            total += flops
            fusions = fusions_around(product, context)
            why = ""
            if is_computed_again(product):
                continue  # jax.checkpoint says what is computed again
            if any(".remat" in one.name for one in (product, *fusions)):
                why = "by the compiler, for lack of memory"
            elif (key := _key(product, fusions)) in known:
                why = "because the program contains the same product more than once"
                if product.computation is known[key].computation and not fusions:
                    pairs.append((product, known[key]))
            else:
                known[key] = product
            if why and flops:  # it is computed once
                again[why] += flops
                first = first or product
        twice = again.total()
        if first is None or twice < max(self.min_flops, self.share * total):  # too little is computed twice
            return
        parts = ", ".join(f"{100 * flops / total:.2g} % {why}" for why, flops in again.most_common())
        yield Report(
            first,
            f"{100 * twice / total:.2g} % of all matrix-product FLOPs, "
            f"{format_count(twice)}FLOP, are computed twice: "
            f"{parts}",
            "keep the first result where memory allows (a jax.checkpoint policy such as dots_saveable)",
            flops=twice,
            cause="again",
            repair=Reuse(tuple(pairs)) if pairs and len(again) == 1 else None,
        )


def _key(product: Instruction, fusions: tuple[Instruction, ...]) -> tuple[object, ...]:
    """Key that equal products share: where they run, their operands, and their attributes."""
    home: Computation | None = fusions[0].computation if fusions else product.computation
    taken = []
    for operand in product.operands:
        value = source(Value(operand, fusions), ("bitcast", "copy"))
        taken.append((value.instruction, value.fusions, operand.shape))
    attributes = tuple((name, str(value)) for name, value in product.attributes.items())
    return home, product.opcode, product.shape, tuple(taken), attributes
