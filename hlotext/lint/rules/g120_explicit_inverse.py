"""G120: the inverse of a matrix that is only multiplied."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis.formatting import pluralize
from hlotext.cost.custom_calls import TRIANGULAR_SOLVES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.products import SAME, Product, products
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import selector, writers
from hlotext.lint.values import VIEWS, Value, consumers, source
from hlotext.lint.wording import sizes

_MOST_SOLVES = 4


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
                if not made.fusions and _is_solve(
                    made.instruction
                ):  # no operand is the result of a triangular solve
                    uses.setdefault(made.instruction, []).append((product, side))
        for inverse, found in uses.items():
            if (report := _report(inverse, found, context)) is not None:  # the inverse has other uses
                yield report


def _report(inverse: Instruction, uses: list[tuple[Product, int]], context: Context) -> Report | None:
    chain = _solves(inverse)
    if chain is None or inverse.shape is None or inverse.is_root:
        return None
    readers = {user.instruction for user, _ in consumers(Value(inverse), SAME | VIEWS)}
    if readers != {product.dot for product, _ in uses}:
        return None
    columns = sum(product.columns if side == 0 else product.rows for product, side in uses)
    size = inverse.shape.dimensions[-1]
    if columns >= size:
        return None
    left = columns / size
    solving = context.prices.together(chain)
    multiplying = context.prices.together(product.whole for product, _ in uses)
    return Report(
        inverse,
        f"the inverse of a {sizes(inverse.shape)} matrix is computed, by solving for each column of the identity, only "
        f"to be multiplied by {pluralize(columns, 'column')}",
        "solve for these columns: jnp.linalg.solve(a, b), or jax.scipy.linalg.cho_solve(cho_factor(a), b) where a is "
        "positive definite; that is also more accurate",
        seconds=solving * (1 - left) + multiplying,
        spares=dict.fromkeys(chain, 1 - left),
        covers=frozenset([*chain, *(product.whole for product, _ in uses)]),
    )


def _solves(inverse: Instruction) -> list[Instruction] | None:
    """The triangular solves of an inverse, the last one first, and what writes the identity; None for other right sides."""
    found = [inverse]
    for _ in range(_MOST_SOLVES):
        right = Value(found[-1].operands[1])
        made = source(right, SAME)
        if made.fusions or not _is_solve(made.instruction):
            return [*found, *writers(right)] if _is_identity(right) else None
        found.append(made.instruction)
    return None


def _is_identity(right: Value) -> bool:
    """True for an identity, also with its rows in another order, as LU swaps them."""
    shape, found = right.instruction.shape, selector(right)
    return found is not None and shape is not None and set(shape.dimensions[-2:]) == {found.classes}


def _is_solve(one: Instruction) -> bool:
    """True for a triangular solve for several columns."""
    if one.opcode == "get-tuple-element":
        return False
    is_solve = (
        one.opcode == "triangular-solve" or one.attributes.get("custom_call_target") in TRIANGULAR_SOLVES
    )
    return is_solve and len(one.operands) > 1 and one.shape is not None and one.shape.is_array
