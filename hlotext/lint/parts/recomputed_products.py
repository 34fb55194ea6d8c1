"""Matmuls that are computed more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis.formatting import format_count
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import fusions_around, is_computed_again, is_product_call
from hlotext.lint.repairs import Reuse
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, source


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
        found: list[tuple[Instruction, str]] = []
        known: dict[tuple[object, ...], Instruction] = {}
        said: dict[tuple[object, ...], Instruction] = {}
        pairs: list[tuple[Instruction, Instruction]] = []
        for product in products:
            fusions = fusions_around(product, context)
            why = ""
            if is_computed_again(product):
                continue  # jax.checkpoint requests the recomputation
            if any(".remat" in one.name for one in (product, *fusions)):
                why = "by XLA's rematerialization"
            else:
                key = _key(product, fusions)
                before = known.setdefault(key, product)
                if before is not product:  # attributes are written out only where all else is the same
                    said.setdefault((*key, _written(before)), before)
                same = product if before is product else said.setdefault((*key, _written(product)), product)
                if same is not product:
                    why = "because the program contains the same matmul more than once"
                    if product.computation is same.computation and not fusions:
                        pairs.append((product, same))
            if why:  # it is computed only once
                found.append((product, why))
        again, first = Counter[str](), None
        for product, why in found:
            if flops := context.flops(product):
                again[why] += flops
                first = first or product
        if first is None:  # no matmul is computed twice
            return
        twice, total = again.total(), sum(map(context.flops, products))
        if twice < max(self.min_flops, self.share * total):  # the repeated matmuls are too small
            return
        parts = ", ".join(f"{100 * flops / total:.2g}% {why}" for why, flops in again.most_common())
        causes = f": {parts}" if len(again) > 1 else f" {next(iter(again))}"
        yield Report(
            first,
            f"{100 * twice / total:.2g}% of all matmul FLOPs, "
            f"{format_count(twice)}FLOP, are recomputed{causes}",
            "keep the first result where memory allows (a jax.checkpoint policy such as dots_saveable)",
            flops=twice,
            cause="again",
            repair=Reuse(tuple(pairs)) if pairs and len(again) == 1 else None,
        )


_SAME = frozenset({"bitcast", "copy"})


def _key(product: Instruction, fusions: tuple[Instruction, ...]) -> tuple[object, ...]:
    """Key that equal products share: where they run, and their operands."""
    home: Computation | None = fusions[0].computation if fusions else product.computation
    taken = []
    for operand in product.operands:
        value = source(Value(operand, fusions), _SAME)
        taken.append((value.instruction, value.fusions, operand.shape))
    return home, product.opcode, product.shape, tuple(taken)


def _written(product: Instruction) -> tuple[tuple[str, str], ...]:
    """The attributes of a product as they are written."""
    return tuple((name, str(value)) for name, value in product.attributes.items())
