"""Batch dimensions of gathers and scatters made indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import resized, shape_of, sizes, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.simplify.gather_scatter_utils import (
    is_whole_gather,
    is_whole_scatter,
    numbers,
    set_flags,
)


@attrs.frozen
class BatchedGatherScatterNormalizer(Pass):
    """Rewrites batch dimensions of gathers and scatters as index dimensions (XLA's `BatchedGatherScatterNormalizer`).

    An iota per batch dimension is prepended to the index vectors, which then index these dimensions too.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[12,9] parameter(0)  i = s32[12,1] parameter(1)  ROOT g = f32[12] gather(x, i),"
    ...     "  offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0},"
    ...     "  start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1} }")
    >>> BatchedGatherScatterNormalizer().run(m).statistics
    {'batches': 1}
    >>> print(m.entry.root.operands[1])
    concatenate = s32[12,2] concatenate(iota, i), dimensions={1}
    """

    name: ClassVar[str] = "batched-gather-scatter-normalizer"
    summary: ClassVar[str] = "Rewrites batch dimensions of gathers and scatters as index dimensions."

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [normalize], driver="once"))


@pattern(("gather", "scatter"), name="batches")
def normalize(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(i):
        return None
    if i.opcode == "gather":
        return _gather(r, i)
    return _scatter(r, i)


def _matches(i: Instruction) -> bool:
    if i.opcode == "gather":
        batches = numbers(i, "operand_batching_dims")
        meets = any(d in numbers(i, "start_index_map") for d in batches)
        return is_whole_gather(i) and bool(batches) and not meets
    return is_whole_scatter(i) and bool(numbers(i, "input_batching_dims"))


def _gather(r: Rewrite, i: Instruction) -> Instruction:
    """`NormalizeBatchGather`."""
    batches, places = numbers(i, "operand_batching_dims"), numbers(i, "start_indices_batching_dims")
    map_ = (*batches, *numbers(i, "start_index_map"))
    indices = _with_iotas(r, i, i.operands[1], places)
    own: dict[str, Any] = {
        "offset_dims": numbers(i, "offset_dims"),
        "collapsed_slice_dims": tuple(sorted((*numbers(i, "collapsed_slice_dims"), *batches))),
        "start_index_map": map_,
        "index_vector_dim": i.attributes["index_vector_dim"],
        "slice_sizes": numbers(i, "slice_sizes"),
        **_sorted_flag(i, places, map_),
    }
    return r.create_like(i, "gather", shape_of(i), (i.operands[0], indices), **own)


def _scatter(r: Rewrite, i: Instruction) -> Instruction:
    """`NormalizeBatchScatter`."""
    count = len(i.operands) // 2
    batches, places = numbers(i, "input_batching_dims"), numbers(i, "scatter_indices_batching_dims")
    map_ = (*batches, *numbers(i, "scatter_dims_to_operand_dims"))
    indices = _with_iotas(r, i, i.operands[count], places)
    own: dict[str, Any] = {
        "update_window_dims": numbers(i, "update_window_dims"),
        "inserted_window_dims": tuple(sorted((*numbers(i, "inserted_window_dims"), *batches))),
        "scatter_dims_to_operand_dims": map_,
        "index_vector_dim": i.attributes["index_vector_dim"],
        **_sorted_flag(i, places, map_),
        **set_flags(i, "unique_indices"),
        "to_apply": i.called_computations[0],
    }
    operands = (*i.operands[:count], indices, *i.operands[count + 1 :])
    return r.create_like(i, "scatter", shape_of(i), operands, **own)


def _sorted_flag(i: Instruction, places: Sequence[int], map_: Sequence[int]) -> dict[str, Any]:
    """`GetUpdatedIndicesAreSorted`."""
    stays = list(places) == sorted(places) and list(map_) == sorted(map_)
    return set_flags(i, "indices_are_sorted") if stays else {}


def _with_iotas(r: Rewrite, i: Instruction, indices: Instruction, places: Sequence[int]) -> Instruction:
    """`CreateConcatIndices`."""
    vector_dim = i.attributes["index_vector_dim"]
    type_ = type_of(indices)
    for d in places:
        type_ = _wide_enough(type_, sizes(indices)[d])
    if type_ is not type_of(indices):
        indices = r.create("convert", retyped(shape_of(indices), type_), (indices,))
    if vector_dim == len(sizes(indices)):
        indices = r.create_like(i, "reshape", r.shape(type_, (*sizes(indices), 1)), (indices,))
    rows = _sized(shape_of(indices), vector_dim, 1)
    iotas = [r.create("iota", rows, iota_dimension=d) for d in places]
    whole = _sized(rows, vector_dim, len(places) + sizes(indices)[vector_dim])
    return r.create_like(i, "concatenate", whole, (*iotas, indices), dimensions=(vector_dim,))


def _sized(shape: Shape, dimension: int, size: int) -> Shape:
    return resized(shape, [size if d == dimension else old for d, old in enumerate(shape.dimensions)])


def _wide_enough(type_: ElementType, size: int) -> ElementType:
    """A type of whole numbers that holds a size (`PromoteTypeForSize`)."""
    if not type_.is_integral or size < 1 << (type_.bits - (type_.kind is TypeKind.SIGNED)):
        return type_
    return ELEMENT_TYPES["s32" if size < 1 << 31 else "s64"]
