"""G121: LU of a symmetric matrix."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.cost.custom_calls import LU_FACTORIZATIONS
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import times
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.symmetric import is_symmetric
from hlotext.lint.values import Value
from hlotext.lint.wording import sizes


class LuOfSymmetric(Rule):
    code = "G121"
    name = "lu-of-symmetric"
    title = "LU of a symmetric matrix, where a Cholesky factorization may suffice"
    waste = "dense"
    needs_optimized = True
    is_proved = False
    opcodes = frozenset({"custom-call"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if (
            instruction.attributes.get("custom_call_target") not in LU_FACTORIZATIONS
            or not instruction.operands
        ):  # it is not an LU factorization
            return
        matrix = Value(instruction.operands[0])
        if not is_symmetric(matrix):
            return
        yield Report(
            instruction,
            f"an LU factorization of a symmetric {sizes(instruction.operands[0].shape)} matrix is computed"
            f"{times(context.runs(instruction))}: Cholesky needs half the operations",
            "if the matrix is positive definite, as kernel matrices and a.T @ a + c * I are, use "
            "jax.scipy.linalg.cho_factor and cho_solve, or solve(..., assume_a='pos'); its log-determinant is twice the sum "
            "of the logarithms of the factor's diagonal",
            seconds=context.prices.seconds(instruction) / 2,
            cause=f"factors of {instruction.name}",
        )
