"""G120: the inverse of a matrix that is only multiplied."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis.formatting import pluralize
from hlotext.cost.custom_calls import TRIANGULAR_SOLVES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.low_rank import rank_of
from hlotext.lint.products import SAME, Product, products
from hlotext.lint.rounds import is_same_in_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import selector, writers
from hlotext.lint.values import VIEWS, Value, consumers, source
from hlotext.lint.wording import sizes

_MOST_SOLVES = 4
_PERMUTED = SAME | {"gather", "negate"}
"""Opcodes behind which the solution for a right side is still one, as LU swaps its rows."""


class ExplicitInverse(Rule):
    code = "G120"
    name = "explicit-inverse"
    title = "a matrix inverse that is only multiplied, where a solve would do"
    waste = "dense"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        uses: dict[Instruction, list[tuple[Product, int]]] = {}
        for product in products(context):
            for side, made in enumerate(product.origins):
                if not made.fusions and _solve_behind(made):  # no operand is the result of a triangular solve
                    uses.setdefault(made.instruction, []).append((product, side))
        for inverse, found in uses.items():
            if (report := _report(inverse, found, context)) is not None:  # the inverse has other uses
                yield report


def _report(inverse: Instruction, uses: list[tuple[Product, int]], context: Context) -> Report | None:
    chain = _solves(Value(inverse))
    if chain is None or inverse.shape is None or inverse.is_root or not _is_identity(chain.right):
        return None
    if is_same_in_rounds(
        inverse, context
    ):  # computed once before the loop it is cheaper than a solve in each iteration
        return None
    readers = {user.instruction for user, _ in consumers(Value(inverse), SAME | VIEWS)}
    if readers != {product.dot for product, _ in uses}:
        return None
    columns, size, backward = 0, inverse.shape.dimensions[-1], set[Instruction]()
    for product, side in uses:
        gradient = _solves(product.operands[1 - side])
        rank = rank_of(gradient.right) if gradient is not None else None
        if gradient is not None and rank is not None and rank < size:
            columns += rank
            backward.update(gradient.solves)
        else:
            columns += product.columns if side == 0 else product.rows
    if columns >= size:
        return None
    left = columns / size
    solves = [*chain.solves, *writers(chain.right)]
    solving = context.prices.together([*solves, *backward])
    multiplying = context.prices.together(product.whole for product, _ in uses)
    more = f", and in the backward pass by {pluralize(len(backward), 'more solve')}" if backward else ""
    return Report(
        chain.solves[0],
        f"the inverse of a {sizes(inverse.shape)} matrix is computed, by solving for each column of the identity{more}, only "
        f"to be multiplied by {pluralize(columns, 'column')}",
        "solve for these columns: jnp.linalg.solve(a, b), or jax.scipy.linalg.cho_solve(cho_factor(a), b) where a is "
        "positive definite; that is also more accurate",
        seconds=solving * (1 - left) + multiplying,
        spares=dict.fromkeys(solves, 1 - left),
        covers=frozenset([*solves, *backward, *(product.whole for product, _ in uses)]),
    )


@attrs.frozen
class _Chain:
    solves: list[Instruction]
    """Triangular solves, each for the result of the next one."""
    right: Value
    """The right-hand side of the last one."""


def _solves(value: Value) -> _Chain | None:
    """The triangular solves that compute a value; None if it is not the result of one."""
    found: list[Instruction] = []
    for _ in range(_MOST_SOLVES):
        made = source(value, _PERMUTED)
        solve = _solve_behind(made) if not made.fusions else None
        if solve is None:
            break
        found.append(solve)
        value = Value(solve.operands[1])
    return _Chain(found, value) if found else None


def _is_identity(right: Value) -> bool:
    """True for an identity, also with its rows in another order, as LU swaps them."""
    shape, found = right.instruction.shape, selector(right)
    return found is not None and shape is not None and set(shape.dimensions[-2:]) == {found.classes}


def _solve_behind(value: Value) -> Instruction | None:
    """The triangular solve for several columns that a value is the result of, as libraries return it beside a workspace."""
    one = value.instruction
    if one.opcode == "get-tuple-element" and one.attributes.get("index") == 0:
        one = one.operands[0]
    is_solve = (
        one.opcode == "triangular-solve" or one.attributes.get("custom_call_target") in TRIANGULAR_SOLVES
    )
    shape = value.instruction.shape
    return one if is_solve and len(one.operands) > 1 and shape is not None and shape.is_array else None
