"""G121: LU of a symmetric matrix."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import arrays_of
from hlotext.cost.custom_calls import LU_FACTORIZATIONS, TRIANGULAR_SOLVES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import times
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.symmetric import is_symmetric
from hlotext.lint.training import is_backward
from hlotext.lint.values import Value, elements_of
from hlotext.lint.wording import sizes

_FACTORS, _PIVOTS = 0, 1
"""Results of a factorization, by index."""
_MOST_STEPS = 50
"""Bound on the operations that are followed from a result."""


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
        if _is_inverted(
            instruction
        ):  # its derivative computes the inverse, and that of Cholesky would compute more
            return
        yield Report(
            instruction,
            f"an LU factorization of a symmetric {sizes(instruction.operands[0].shape)} matrix is computed"
            f"{times(context.runs(instruction))}: Cholesky needs half the operations",
            "if the matrix is positive definite, as kernel matrices and a.T @ a + c * I are, use "
            "jax.scipy.linalg.cho_factor and cho_solve, or solve(..., assume_a='pos'); its log-determinant is twice the sum "
            "of the logarithms of the factor's diagonal",
            seconds=_halved(instruction, context) + context.prices.together(_of_pivots(instruction)),
            cause=f"factors of {instruction.name}",
        )


def _halved(factored: Instruction, context: Context) -> float:
    """Seconds less with half the operations, and as many bytes and launches."""
    least = context.prices.own_least.get(factored)
    if least is None or not least.seconds:
        return 0.0
    then = max((least.compute or 0.0) / 2, least.memory or 0.0, least.host or 0.0) + least.launch
    return context.prices.seconds(factored) * (1 - then / least.seconds)


def _parts_of(factored: Instruction, index: int) -> list[Instruction]:
    """A result of a factorization, as the instructions that take it out."""
    return [one for one in factored.users if one.attributes.get("index") == index]


def _of_pivots(factored: Instruction) -> set[Instruction]:
    """The operations that make a permutation of the pivots, and those that permute rows by it: Cholesky has no pivots."""
    found, pending = set[Instruction](), _parts_of(factored, _PIVOTS)
    while pending and len(found) < _MOST_STEPS:
        for user in pending.pop().users:
            if user not in found:
                found.add(user)
                if not any(array.element_type.is_floating for _, array in arrays_of(user.shape)):
                    pending.append(user)
    return found


def _is_inverted(factored: Instruction) -> bool:
    """True if a backward pass solves with the factors for as many right sides as there are rows: for the inverse, as that of
    a determinant does."""
    size = elements_of(factored.operands[0].shape)
    found, pending = set[Instruction](), _parts_of(factored, _FACTORS)
    while pending and len(found) < _MOST_STEPS:
        for user in pending.pop().users:
            if user in found:
                continue
            found.add(user)
            if _is_solve(user):
                if is_backward(user) and elements_of(user.operands[1].shape) >= size:
                    return True
            elif elements_of(user.shape) == size:
                pending.append(user)
    return False


def _is_solve(one: Instruction) -> bool:
    is_call = one.attributes.get("custom_call_target") in TRIANGULAR_SOLVES
    return (is_call or one.opcode == "triangular-solve") and len(one.operands) > 1
