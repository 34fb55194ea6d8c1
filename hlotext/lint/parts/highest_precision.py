"""A matmul in several passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import is_worth_time
from hlotext.lint.helpers import DEEPEST, fusions_around, is_librarys, is_solvers
from hlotext.lint.rule import Context, Report, Rule


class HighestPrecision(Rule):
    severity = Severity.NOTE
    backends = frozenset({Backend.TPU})
    min_flops: ClassVar[int] = 100_000_000
    """Operations in all runs from which on it is worth a finding."""
    min_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module that it takes, with what is fused with it, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        found: list[tuple[Instruction, str, int, int]] = []
        for instruction in context.census.of("dot", "convolution"):
            if not _is_wide(instruction):  # it is not a matmul of f32 operands
                continue
            if (
                not _is_programs(instruction) or is_librarys(instruction) or is_solvers(instruction)
            ):  # the program does not request its precision
                continue
            flops = context.flops(instruction)
            if flops < self.min_flops:  # it has too few FLOPs
                continue
            precision = _precision(instruction)
            passes = max((_PASSES.get(p, 1) for p in precision), default=1)
            if passes == 1:  # it takes a single pass
                return  # the program says of each matmul how exact it has to be
            found.append((instruction, " and ".join(dict.fromkeys(precision)), passes, flops))
        together: dict[Instruction, int] = {}
        for instruction, _, _, flops in found:
            whole = _whole(instruction, context)
            together[whole] = together.get(whole, 0) + flops
        for instruction, words, passes, flops in found:
            whole = _whole(instruction, context)
            if not is_worth_time(whole, context, self.min_percent):  # its share of the step is too small
                continue
            yield Report(
                instruction,
                f"an f32 {instruction.opcode} at precision {words} takes {passes} passes",
                "use the default precision, or bf16, where accuracy permits",
                flops=flops,
                seconds=_saved(whole, passes, context) * flops / together[whole],
            )


def _whole(product: Instruction, context: Context) -> Instruction:
    """The operation that runs with a product in it."""
    for _ in range(DEEPEST):
        fusions = fusions_around(product, context)
        if not fusions:
            break
        product = fusions[0]
    return product


def _saved(whole: Instruction, passes: int, context: Context) -> float:
    """Seconds saved in all runs by one pass in place of several: reading and writing takes as long."""
    least = context.prices.own_least.get(whole)
    if least is None or not least.compute or not least.working:
        return 0.0
    then = max(least.compute / passes, least.memory or 0.0)
    return context.prices.seconds(whole) * max(0.0, 1 - then / least.working)


def _precision(product: Instruction) -> list[str]:
    stated = product.attributes.get("operand_precision", ())
    # A word that this release does not know is kept as text.
    return [str(p) for p in stated] if isinstance(stated, tuple) else [str(stated)]


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


_PASSES = {"high": 3, "highest": 6}
"""Number of bf16 products that make one f32 product (`jax.lax.Precision`)."""
