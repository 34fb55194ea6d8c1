"""Shape rules of slices at run-time places: dynamic-slice, dynamic-update-slice, gather, scatter."""

from __future__ import annotations

import attrs

from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import rule
from hlotext.semantics.infer.shapes import (
    Dimension,
    array,
    compatible,
    dimensions,
    is_unbounded,
    one_or_tuple,
    same_type_or_floats,
    scalar,
    sizes_agree,
)
from hlotext.semantics.infer.signatures import reduced_types
from hlotext.semantics.message_text import plural


@rule("dynamic_slice")
def infer_dynamic_slice(op: Op) -> Shape:
    """Infers the shape of a dynamic-slice: the slice sizes (`ShapeInference::InferDynamicSliceShape`).

    A dynamic dimension stays dynamic if the slice covers it and has more than one element.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    _check_starts(op, operand, first=1)
    sizes = op.integers("dynamic_slice_sizes")
    if len(sizes) != operand.rank:
        raise ShapeInferenceError(
            f"dynamic_slice_sizes needs one entry per dimension of {operand}", attribute="dynamic_slice_sizes"
        )
    for size, whole in zip(sizes, operand.dimensions, strict=True):
        if size < 0 or (size > whole and not is_unbounded(whole)):
            raise ShapeInferenceError(
                f"a slice of size {size} does not fit into a dimension of size {whole}",
                attribute="dynamic_slice_sizes",
            )
    return array(
        operand.element_type,
        [
            (size, dynamic and size == whole and size > 1)
            for size, (whole, dynamic) in zip(sizes, dimensions(operand), strict=True)
        ],
    )


@rule("dynamic_update_slice")
def infer_dynamic_update_slice(op: Op) -> Shape:
    """Infers the shape of a dynamic-update-slice: that of operand 0, which may be a buffer.

    A dimension becomes dynamic if the update covers it and is dynamic there. Corresponds to
    `ShapeInference::InferDynamicUpdateSliceShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    whole = op.operand(0)
    operand = whole.tuple_shapes[0] if whole.is_buffer else op.array(0)
    update = op.array(1)
    _check_starts(op, operand, first=2)
    if update.rank != operand.rank or not same_type_or_floats(update.element_type, operand.element_type):
        raise ShapeInferenceError(f"{update} cannot update a slice of {operand}", operand=1)
    for size, available in zip(update.dimensions, operand.dimensions, strict=True):
        if size > available and not is_unbounded(available):
            raise ShapeInferenceError(f"{update} is larger than the updated {operand}", operand=1)
    pairs = zip(dimensions(operand), dimensions(update), strict=True)
    result = array(
        operand.element_type, [(size, dynamic or (size == s and d)) for (size, dynamic), (s, d) in pairs]
    )
    return Shape.buffer(result) if whole.is_buffer else result


def _check_starts(op: Op, operand: Shape, first: int) -> None:
    """The start indices are integers: one scalar for each dimension, all of one type, or one vector."""
    starts = op.operands[first:]
    for number in range(first, len(op.operands)):
        if not op.array(number).element_type.is_integral:
            raise ShapeInferenceError(
                f"a start index must be an integer, not {op.operands[number]}", operand=number
            )
    if starts and starts[0].rank == 1:
        if len(starts) != 1 or starts[0].dimensions[0] != operand.rank:
            raise ShapeInferenceError(
                f"the start indices of {operand} do not match {starts[0]}", operand=first
            )
        return
    if len(starts) != operand.rank:
        raise ShapeInferenceError(
            f"{op.opcode} of {operand} needs one start index per dimension, not {len(starts)}"
        )
    for number, start in enumerate(starts):
        if not compatible(start, scalar(starts[0].element_type)):
            raise ShapeInferenceError(
                f"start indices must be scalars of one type, not {starts[0]} and {start}",
                operand=first + number,
            )


@attrs.frozen
class _Indices:
    """The indices of a gather or scatter with their index vectors in a dimension of their own."""

    dimensions: list[Dimension]
    vector: int
    """Number of the dimension that the index vectors lie in."""

    @property
    def batch(self) -> list[Dimension]:
        """All other dimensions: one entry for each slice."""
        return [d for i, d in enumerate(self.dimensions) if i != self.vector]


def _indices(op: Op, number: int, mapped: str) -> _Indices:
    """Operand `number` as indices; `mapped` lists the operand dimension for each entry of an index vector."""
    indices = op.array(number)
    if not indices.element_type.is_integral:
        raise ShapeInferenceError(f"{op.opcode} needs integer indices, not {indices}", operand=number)
    vector = op.get("index_vector_dim", int)
    op.check_dimension("index_vector_dim", vector, indices.rank + 1)
    found = dimensions(indices)
    if vector == indices.rank:  # scalar indices: vectors of one entry
        found.append((1, False))
    entries = len(op.integers(mapped))
    if not sizes_agree(entries, found[vector][0]):
        raise ShapeInferenceError(
            f"{mapped} has {entries} entries, but the index vectors in {indices} have {found[vector][0]}",
            attribute=mapped,
        )
    return _Indices(found, vector)


def _check_batching(
    op: Op, rank: int, indices: _Indices, operand_name: str, indices_name: str
) -> tuple[int, ...]:
    """The operand's batching dimensions, ascending, which are as many as those of the indices."""
    own = op.sorted_dimension_numbers(operand_name, rank, ())
    others = op.dimension_numbers(indices_name, len(indices.dimensions), ())
    if len(own) != len(others):
        raise ShapeInferenceError(
            f"{operand_name} and {indices_name} differ in length", attribute=indices_name
        )
    return own


@rule("gather")
def infer_gather(op: Op) -> Shape:
    """Infers the shape of a gather: the slice's remaining dimensions at `offset_dims`, batch dimensions elsewhere.

    Corresponds to `ShapeInference::InferGatherShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand = op.array(0)
    indices = _indices(op, 1, "start_index_map")
    op.dimension_numbers("start_index_map", operand.rank)
    batching = _check_batching(
        op, operand.rank, indices, "operand_batching_dims", "start_indices_batching_dims"
    )
    collapsed = op.sorted_dimension_numbers("collapsed_slice_dims", operand.rank)
    kept = [i for i in range(operand.rank) if i not in collapsed and i not in batching]
    offset_count = len(op.integers("offset_dims"))
    offsets = op.sorted_dimension_numbers("offset_dims", offset_count + len(indices.dimensions) - 1)
    sizes = _slice_sizes(op, operand, (*collapsed, *batching))
    if operand.rank != offset_count + len(collapsed) + len(batching):
        raise ShapeInferenceError(
            f"each dimension of {operand} must be an offset, collapsed or batching dimension",
            attribute="offset_dims",
        )
    if len(kept) != offset_count:
        raise ShapeInferenceError(
            "a dimension is both collapsed and a batching dimension", attribute="operand_batching_dims"
        )
    # A dimension stays dynamic when all of it is taken.
    window = [(sizes[i], operand.dynamic_dimensions[i] and sizes[i] == operand.dimensions[i]) for i in kept]
    return array(operand.element_type, _interleaved(window, offsets, indices.batch))


def _slice_sizes(op: Op, operand: Shape, dropped: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of the slices, each at most the operand's, and at most 1 in dropped dimensions."""
    sizes = op.integers("slice_sizes")
    if len(sizes) != operand.rank:
        raise ShapeInferenceError(
            f"slice_sizes needs one entry per dimension of {operand}", attribute="slice_sizes"
        )
    for i, (size, whole) in enumerate(zip(sizes, operand.dimensions, strict=True)):
        if not is_unbounded(whole) and not 0 <= size <= whole:
            raise ShapeInferenceError(
                f"a slice of size {size} does not fit into dimension {i} of {operand}",
                attribute="slice_sizes",
            )
        if i in dropped and size > 1:
            raise ShapeInferenceError(
                f"dimension {i} of {operand} is collapsed, so its slice size must be 1",
                attribute="slice_sizes",
            )
    return sizes


def _interleaved(window: list[Dimension], places: tuple[int, ...], batch: list[Dimension]) -> list[Dimension]:
    """Window dimensions at their places, batch dimensions in between, each in order."""
    windows, batches = iter(window), iter(batch)
    return [next(windows if i in places else batches) for i in range(len(window) + len(batch))]


@rule("scatter")
def infer_scatter(op: Op) -> Shape:
    """Infers the shape of a scatter: those of the operands that are updated (`ShapeInference::InferScatterShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    count = len(op.operands) // 2
    if len(op.operands) % 2 != 1 or not count:
        raise ShapeInferenceError(
            f"scatter takes N arrays, indices and N updates, not {plural(len(op.operands), 'operand')}"
        )
    indices = _indices(op, count, "scatter_dims_to_operand_dims")
    operands = tuple(op.array(number) for number in range(count))
    for number, operand in enumerate(operands):
        _check_updates(op, operand, count + 1 + number, indices)
    updates = tuple(op.operands[count + 1 + number].element_type for number in range(count))
    reduced_types(op, "to_apply", tuple(scalar(o.element_type) for o in operands), updates)
    return one_or_tuple(operands)


def _check_updates(op: Op, operand: Shape, number: int, indices: _Indices) -> None:
    """The updates have window dimensions no larger than the operand's, and the indices' batch dimensions."""
    updates = op.array(number)
    op.dimension_numbers("scatter_dims_to_operand_dims", operand.rank)
    batching = _check_batching(
        op, operand.rank, indices, "input_batching_dims", "scatter_indices_batching_dims"
    )
    inserted = op.sorted_dimension_numbers("inserted_window_dims", operand.rank)
    windows = op.sorted_dimension_numbers("update_window_dims", updates.rank)
    if updates.rank != len(windows) + len(indices.batch):
        raise ShapeInferenceError(
            f"updates must have rank {len(windows) + len(indices.batch)}, unlike {updates}", operand=number
        )
    kept = [size for i, size in enumerate(operand.dimensions) if i not in inserted and i not in batching]
    if len(windows) + len(inserted) + len(batching) != operand.rank or len(kept) != len(windows):
        raise ShapeInferenceError(
            f"each dimension of {operand} must be a window, inserted or batching dimension",
            attribute="update_window_dims",
        )
    for place, size in zip(windows, kept, strict=True):
        if updates.dimensions[place] > size:  # XLA lets nothing bounded update an unbounded dimension
            raise ShapeInferenceError(f"the windows in {updates} are larger than {operand}", operand=number)
    rest = [size for i, size in enumerate(updates.dimensions) if i not in windows]
    for size, (wanted, _) in zip(rest, indices.batch, strict=True):
        if not sizes_agree(size, wanted):
            raise ShapeInferenceError(f"{updates} does not have one window per index vector", operand=number)
