"""Factorizations of banded matrices as dense ones."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.cost.custom_calls import CHOLESKY_FACTORIZATIONS, LU_FACTORIZATIONS, TRIANGULAR_SOLVES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.diagonals import diagonals
from hlotext.lint.helpers import size_of, times
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import writers
from hlotext.lint.values import Value
from hlotext.lint.wording import sizes

_TRIDIAGONAL = frozenset({-1, 0, 1})
_NARROW = 1 / 64
"""Width of a band, of the rows of the matrix, up to which a dense factorization is mostly zeros."""
_MOST_STEPS = 100


class FactoredBand(Rule):
    code = "G126"
    name = "factored-band"
    title = "a dense factorization of a matrix that is zero except on a few diagonals"
    waste = "dense"
    needs_optimized = True
    opcodes = frozenset({"custom-call", "cholesky"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        target = instruction.attributes.get("custom_call_target")
        is_lu = target in LU_FACTORIZATIONS
        if not (is_lu or target in CHOLESKY_FACTORIZATIONS or instruction.opcode == "cholesky"):
            return
        shape = instruction.operands[0].shape if instruction.operands else None
        if shape is None or not shape.is_array or shape.rank < 2:
            return
        bands, size = diagonals(Value(instruction.operands[0])), shape.dimensions[-1]
        if not bands or max(bands) - min(bands) + 1 > _NARROW * size:
            return
        prices, runs = context.prices, context.prices.runs(instruction.computation)
        solves, chain = _solves(instruction)
        made = [one for one in writers(Value(instruction.operands[0])) if len(one.users) == 1]
        # The diagonals are read, and the right-hand sides read and written.
        sides = sum(size_of(one.operands[1].shape) for one in solves[:1])
        instead = prices.reading((size_of(shape) // size * len(bands) + 2 * sides) * runs)
        seconds = prices.together([instruction, *chain, *made]) - instead
        if seconds <= 0:
            return
        yield Report(
            instruction,
            f"{'an LU' if is_lu else 'a Cholesky'} factorization of a {sizes(shape)} matrix is computed as if it were dense"
            f"{times(context.runs(instruction))}, although it is zero except on {len(bands)} diagonals",
            "solve with the diagonals alone: jax.lax.linalg.tridiagonal_solve(lower, diagonal, upper, b)"
            if bands <= _TRIDIAGONAL
            else "use a solver for banded matrices: a scan over the rows, or blocks of the width of the band as a block "
            "tridiagonal system",
            seconds=seconds,
            spares=dict.fromkeys([instruction, *chain, *made], 1.0),
            is_proved=bands <= _TRIDIAGONAL,
            covers=frozenset([*chain, *made]),
        )


def _solves(factored: Instruction) -> tuple[list[Instruction], list[Instruction]]:
    """The triangular solves with the factors, and what stands between, as the permutation of the rows."""
    after: dict[Instruction, list[Instruction]] = {factored: []}
    pending, solves = [factored], list[Instruction]()
    while pending and len(after) < _MOST_STEPS:
        one = pending.pop()
        for user in one.users:
            is_new = user not in after
            after.setdefault(user, []).append(one)
            if is_new:
                pending.append(user)
                if user.opcode == "triangular-solve" or (
                    user.attributes.get("custom_call_target") in TRIANGULAR_SOLVES and len(user.operands) > 1
                ):
                    solves.append(user)
    between, waiting = set(solves), list(solves)
    while waiting:
        new = [one for one in after.get(waiting.pop(), ()) if one not in between]
        between.update(new)
        waiting += new
    return solves, [one for one in after if one in between and one is not factored]
