"""D105: a matrix product in several passes."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_librarys, is_solvers
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class HighestPrecision(Rule):
    code = "D105"
    name = "highest-precision"
    title = "a matrix product in several passes"
    severity = Severity.NOTE
    backends = frozenset({Backend.TPU})
    opcodes = frozenset({"dot", "convolution"})

    min_flops: int = 100_000_000
    """Operations in all runs from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        stated = instruction.attributes.get("operand_precision", ())
        # A word that this release does not know is kept as text.
        precision = [str(p) for p in stated] if isinstance(stated, tuple) else [str(stated)]
        passes = max((_PASSES.get(p, 1) for p in precision), default=1)
        shapes = [operand.shape for operand in instruction.operands[:2]]
        # Operands of 16 bits and fewer are multiplied in one pass whatever is asked for.
        if passes == 1 or any(s is None or s.element_type.name != "f32" for s in shapes):
            return
        if not _is_programs(instruction) or is_librarys(instruction) or is_solvers(instruction):
            return
        flops = context.flops(instruction)
        if flops >= self.min_flops:
            yield Report(
                instruction,
                f"{instruction.opcode} of f32 at precision {' and '.join(dict.fromkeys(precision))} takes {passes} passes",
                "use the default precision, or bf16, where the values allow it",
                flops=flops,
            )


def _is_programs(product: Instruction) -> bool:
    """Whether the program asks for the product: Fourier transforms and the like are made of exact ones by the compiler."""
    metadata = product.metadata
    last = metadata.op_name.rpartition("/")[2] if metadata is not None else ""
    return not last or "dot" in last or "conv" in last or "->" in last


_PASSES = {"high": 3, "highest": 6}
"""How many products of bf16 parts make one of f32 (`jax.lax.Precision`)."""
