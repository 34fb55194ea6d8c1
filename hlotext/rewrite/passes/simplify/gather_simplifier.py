"""Gathers brought into one form."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.facts import shape_of, sizes, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.simplify.gather_scatter_utils import (
    elide_ones,
    expand_first,
    index_rows,
    is_whole_gather,
    numbers,
    set_flags,
    transpose,
)


@attrs.frozen
class GatherSimplifier(Pass):
    """Rewrites gathers to a two-dimensional index array and full slices (XLA's `GatherSimplifier`).

    The simple gather takes one slice, with every operand dimension, per row of indices; reshapes and a transpose restore the
    old result. A gather from a scalar becomes a broadcast, one of empty slices a zero.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[12,9] parameter(0)  i = s32[7,1] parameter(1)  ROOT g = f32[7,9] gather(x, i),"
    ...     "  offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,9} }")
    >>> GatherSimplifier().run(m).statistics
    {'gathers': 1}
    >>> print(m.entry.root)
    ROOT reshape = f32[7,9] reshape(gather)
    """

    name: ClassVar[str] = "gather-simplifier"
    summary: ClassVar[str] = "Canonicalizes gathers to a two-dimensional index array and full slices."

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [simplify], driver="once"))


@pattern("gather", name="gathers")
def simplify(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not (is_whole_gather(i) and not numbers(i, "operand_batching_dims") and not _is_simplified(i)):
        return None
    operand, start = i.operands
    slices = numbers(i, "slice_sizes")
    if 0 in slices:
        zero = np.zeros((), type_of(i).dtype)
        scalar = Shape(type_of(i))
        constant = r.create_like(i, "constant", scalar, argument=Literal.from_array(zero, scalar))
        return r.create_like(i, "broadcast", shape_of(i), (constant,), dimensions=())
    if not slices:
        return r.create_like(i, "broadcast", shape_of(i), (operand,), dimensions=())
    vector_dim = i.attributes["index_vector_dim"]
    rows = index_rows(r, start, vector_dim)
    new = r.create_like(
        i,
        "gather",
        r.shape(type_of(operand), [sizes(rows)[0], *slices]),
        (operand, rows),
        offset_dims=tuple(range(1, len(slices) + 1)),
        collapsed_slice_dims=(),
        start_index_map=numbers(i, "start_index_map"),
        index_vector_dim=1,
        slice_sizes=slices,
        **set_flags(i, "indices_are_sorted"),
    )
    return _back(r, i, new, [size for d, size in enumerate(sizes(start)) if d != vector_dim])


def _is_simplified(i: Instruction) -> bool:
    """`IsSimplifiedGather`."""
    offsets = numbers(i, "offset_dims")
    if not offsets or numbers(i, "collapsed_slice_dims"):
        return False
    matrix = len(sizes(i.operands[1])) == 2 and i.attributes["index_vector_dim"] == 1
    return matrix and offsets[0] == 1 and offsets[-1] == len(offsets)


def _back(r: Rewrite, i: Instruction, new: Instruction, batch: list[int]) -> Instruction:
    """The result of a gather made of that of the simple one."""
    collapsed = numbers(i, "collapsed_slice_dims")
    if collapsed:
        new = elide_ones(r, new, [d + 1 for d in collapsed])
    if len(batch) > 1:
        new = expand_first(r, new, batch)
    elif not batch:
        new = elide_ones(r, new, [0])
    offsets = numbers(i, "offset_dims")
    rows, windows = iter(range(len(batch))), iter(range(len(batch), len(batch) + len(offsets)))
    order = [next(windows) if d in offsets else next(rows) for d in range(len(batch) + len(offsets))]
    return transpose(r, new, order)
