"""Neural networks whose matmuls are all computed in several passes, or without the units for matmuls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_librarys, is_solvers
from hlotext.lint.parts.wide_model import is_numerical
from hlotext.lint.products import Multiplication, multiplications
from hlotext.lint.rule import Context, Report, Rule

_DEFAULT = "tf32"
"""The rate of f32 matmuls at default precision (see `hlotext.analysis.chips.Rates`)."""


class HighestPrecision(Rule):
    severity = Severity.NOTE
    backends = frozenset({Backend.GPU, Backend.TPU})
    min_flops: ClassVar[int] = 100_000_000
    """Operations in all runs from which on a matmul is worth a finding."""
    min_percent: ClassVar[float] = 3
    """Percent of the estimated time of the module that default precision saves, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        found: list[Multiplication] = []
        for product in multiplications(context):
            one = product.dot
            if not _is_wide(one):  # it is not a matmul of f32 operands
                continue
            if (
                not _is_programs(one) or is_librarys(one) or is_solvers(one)
            ):  # the program does not request its precision
                continue
            if context.flops(one) < self.min_flops:  # it has too few FLOPs
                continue
            if "highest" not in _precision(one):  # it is not computed at the highest precision
                return  # the program sets the precision of each matmul, or uses three passes
            found.append(product)
        if not found:
            return
        if is_numerical(context.module):  # the program is numerical, so it may need this precision
            return
        saved = {product.whole: _saved(product.whole, context) for product in found}
        if (
            100 * sum(saved.values()) < self.min_percent * context.prices.step
        ):  # its share of the step is too small
            return
        first = max(found, key=lambda product: (saved[product.whole], context.flops(product.dot)))
        is_gpu = context.backend is Backend.GPU
        how = "without TensorFloat-32" if is_gpu else "in six passes of bf16"
        yield Report(
            first.dot,
            f"all f32 matmuls and convolutions of a network, {len(found):,}, are computed at precision highest, {how}",
            "use the default precision (precision=None, no jax_default_matmul_precision), or bf16, where accuracy permits, "
            "and request more only for the matmuls that need it",
            flops=sum(context.flops(product.dot) for product in found),
            seconds=sum(saved.values()),
            is_at_most=is_gpu,  # vendors' libraries seldom reach the rate
            cause="precision",
        )


def _saved(whole: Instruction, context: Context) -> float:
    """Seconds saved in all runs at the default rate: reading and writing takes as long."""
    rates, least = context.prices.chip.rates, context.prices.own_least.get(whole)
    default = rates.peak(_DEFAULT) or rates.peak("bf16")
    if least is None or not least.compute or not least.working or default is None:
        return 0.0
    then = least.compute
    for kind in ("f32x3", "f32"):
        rate = rates.peak(kind)
        if rate is not None:
            then -= least.products.get(kind, 0.0) * max(0.0, 1 / rate.value - 1 / default.value)
    return context.prices.seconds(whole) * max(0.0, 1 - max(then, least.memory or 0.0) / least.working)


def _precision(product: Instruction) -> set[str]:
    stated = product.attributes.get("operand_precision", ())
    # A word that this release does not know is kept as text.
    return {str(p) for p in stated} if isinstance(stated, tuple) else {str(stated)}


def _is_wide(product: Instruction) -> bool:
    """True if both operands are f32: operands of 16 bits or fewer take one pass at any precision."""
    shapes = [operand.shape for operand in product.operands[:2]]
    return all(s is not None and s.is_array and s.element_type.name == "f32" for s in shapes)


def _is_programs(product: Instruction) -> bool:
    """True if the program contains the matmul: Fourier transforms and the like are expanded into exact ones by the
    compiler.
    """
    metadata = product.metadata
    last = metadata.op_name.rpartition("/")[2] if metadata is not None else ""
    return not last or "dot" in last or "conv" in last or "->" in last
