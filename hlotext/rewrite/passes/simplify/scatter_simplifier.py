"""Scatters brought into one form."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.facts import shape_of, sizes
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.simplify.gather_scatter_utils import (
    collapse_first,
    index_rows,
    insert_ones,
    is_whole_scatter,
    numbers,
    set_flags,
    transpose,
)


@attrs.frozen
class ScatterSimplifier(Pass):
    """Rewrites scatters to a two-dimensional index array and full windows (XLA's `ScatterSimplifier`).

    Indices become a matrix with one row per window; updates have the rows first and then every operand dimension, with size 1
    where the window has none. Scatters of scalars, which XLA inlines, are kept.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { p = f32[] parameter(0)  ROOT q = f32[] parameter(1) }  ENTRY e { x = f32[5,8] parameter(0)"
    ...     "  i = s32[9,1] parameter(1)  u = f32[9,8] parameter(2)  ROOT s = f32[5,8] scatter(x, i, u),"
    ...     "  update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
    ...     "  to_apply=f }")
    >>> ScatterSimplifier().run(m).statistics
    {'scatters': 1}
    >>> print(m.entry.root.operands[2])
    reshape = f32[9,1,8] reshape(u)
    """

    name: ClassVar[str] = "scatter-simplifier"
    summary: ClassVar[str] = "Canonicalizes scatters to a two-dimensional index array and full windows."

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [simplify], driver="once"))


@pattern("scatter", name="scatters")
def simplify(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not (is_whole_scatter(i) and bool(_rank(i)) and not _has_batches(i) and not _is_simplified(i)):
        return None
    count = len(i.operands) // 2
    operands, updates = i.operands[:count], i.operands[count + 1 :]
    indices = index_rows(r, i.operands[count], i.attributes["index_vector_dim"])
    flat = [_flatten(r, i, update) for update in updates]
    shape = shape_of(operands[0]) if count == 1 else Shape.tuple(tuple(map(shape_of, operands)))
    own = {
        "update_window_dims": tuple(range(1, _rank(i) + 1)),
        "inserted_window_dims": (),
        "scatter_dims_to_operand_dims": numbers(i, "scatter_dims_to_operand_dims"),
        "index_vector_dim": 1,
        "to_apply": i.called_computations[0],
        **set_flags(i, "indices_are_sorted", "unique_indices"),
    }
    return r.create_like(i, "scatter", shape, (*operands, indices, *flat), **own)


def _rank(i: Instruction) -> int:
    return len(numbers(i, "update_window_dims")) + len(numbers(i, "inserted_window_dims"))


def _has_batches(i: Instruction) -> bool:
    """True if batch dimensions are still to be made indices, which is another pass's work."""
    return bool(numbers(i, "input_batching_dims"))


def _is_simplified(i: Instruction) -> bool:
    """`IsSimplifiedScatter`."""
    count = len(i.operands) // 2
    window = numbers(i, "update_window_dims")
    indices, update = i.operands[count], i.operands[count + 1]
    return (
        i.attributes["index_vector_dim"] + 1 == len(sizes(indices))
        and len(sizes(update)) - len(window) <= 1
        and 0 not in window
        and list(window) == sorted(window)
        and not numbers(i, "inserted_window_dims")
    )


def _flatten(r: Rewrite, i: Instruction, update: Instruction) -> Instruction:
    """`FlattenAndTransposeUpdates`."""
    window = numbers(i, "update_window_dims")
    rank = len(sizes(update))
    outer = [d for d in range(rank) if d not in window]
    update = transpose(r, update, [*outer, *window])
    if len(outer) > 1:
        update = collapse_first(r, update, len(outer))
    elif not outer:
        update = insert_ones(r, update, [0])
    inserted = numbers(i, "inserted_window_dims")
    return insert_ones(r, update, [d + 1 for d in inserted]) if inserted else update
