"""Making and changing array shapes with their layouts: the everyday part of XLA's `ShapeUtil` and
`LayoutUtil`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import attrs

from hlotext.ir.values.shape import UNBOUNDED_SIZE, Layout, Shape, Tile, default_layout
from hlotext.ir.values.types import ElementType, TypeKind, element_type
from hlotext.layout.checks import INT64_MAX, array_of, check_permutation, layout_of
from hlotext.layout.errors import LayoutError
from hlotext.layout.permutations import compose, descending, inverse

# ---- making


def make_shape(
    type_: ElementType | str,
    dimensions: Sequence[int],
    *,
    dynamic: Sequence[bool] | None = None,
    minor_to_major: Sequence[int] | None = None,
    tiles: Sequence[Sequence[int]] = (),
    element_size_in_bits: int = 0,
    memory_space: int = 0,
) -> Shape:
    """Creates an array shape, with the descending layout unless `minor_to_major` is given.

    Like XLA's `MakeShape` and `MakeShapeWithDenseLayout`, including their rule for `E`: an element size equal to the
    type's own width in whole bytes is dropped.

    Args:
        type_: The element type, or its name in HLO text; an unknown name is kept.
        dimensions: Sizes by logical dimension; `UNBOUNDED_SIZE` for an unbounded dimension.
        dynamic: For each dimension, whether its size is a bound; None if all sizes are static.
        minor_to_major: Dimension numbers, fastest varying first.
        tiles: Sizes of each tile, major to minor.
        element_size_in_bits: Bits per element in memory; 0 for the type's size in whole bytes.
        memory_space: Number of the memory space.

    Raises:
        LayoutError: The shape is invalid (see `layout_of`), `dynamic` has another length than `dimensions`, or the
            element type has no arrays.
    """
    type_ = element_type(type_) if isinstance(type_, str) else type_
    if not type_.is_array_type:
        raise LayoutError("element type", f"{type_} cannot be an array element type")
    sizes = tuple(dimensions)
    order = descending(len(sizes)) if minor_to_major is None else tuple(minor_to_major)
    bits = 0 if element_size_in_bits == 8 * type_.byte_width else element_size_in_bits
    layout = Layout(
        order, tuple(Tile(tuple(t)) for t in tiles), element_size_in_bits=bits, memory_space=memory_space
    )
    flags = (False,) * len(sizes) if dynamic is None else tuple(dynamic)
    if len(flags) != len(sizes):
        raise LayoutError("dynamic dimensions", f"{len(flags)} flags for {len(sizes)} dimensions")
    shape = Shape(type_, sizes, flags, layout)
    if UNBOUNDED_SIZE not in sizes:
        layout_of(shape)
    return shape


def _packs(type_: ElementType) -> bool:
    """True for the types that a back end packs with `E(bits)`: narrower than a byte, and not `pred`."""
    return 0 < type_.bits < 8 and type_.kind is not TypeKind.PREDICATE


def make_maybe_tuple(shapes: Sequence[Shape]) -> Shape:
    """Returns a tuple of these shapes, or the shape itself if there is only one (XLA's `MakeMaybeTupleShape`)."""
    return shapes[0] if len(shapes) == 1 else Shape.tuple(tuple(shapes))


def make_static(shape: Shape) -> Shape:
    """Returns the shape with dynamic sizes replaced by their bounds and metadata prefixes removed.

    Corresponds to XLA's `MakeStaticShape`. Applies to every leaf of a tuple.
    """

    def static(array: Shape) -> Shape:
        layout = array.layout and attrs.evolve(array.layout, dynamic_shape_metadata_prefix_bytes=0)
        return attrs.evolve(array, dynamic_dimensions=(False,) * array.rank, layout=layout)

    return _map_arrays(static, shape)


def device_to_host(shape: Shape) -> Shape:
    """Returns the shape without device-specific parts: tiles, tail padding, memory space, element size, metadata.

    The order of dimensions and the split configs are kept (XLA's `DeviceShapeToHostShape`).
    """

    def on_host(array: Shape) -> Shape:
        layout = array.layout and attrs.evolve(
            array.layout,
            tiles=(),
            tail_padding_alignment_in_elements=1,
            element_size_in_bits=0,
            memory_space=0,
            physical_shape=None,
            dynamic_shape_metadata_prefix_bytes=0,
        )
        return attrs.evolve(array, layout=layout)

    return _map_arrays(on_host, shape)


def update_element_size(shape: Shape, pack: bool = True) -> Shape:
    """Sets or removes `E(bits)` in the arrays of a shape (XLA's `UpdateElementSizeInBits`).

    With `pack`, sets it on arrays of types narrower than a byte (except `pred`). Otherwise, removes it from all arrays.
    """

    def packed(array: Shape) -> Shape:
        bits = array.element_type.bits if pack and _packs(array.element_type) else 0
        layout = default_layout(array.rank) if array.layout is None else array.layout
        return attrs.evolve(array, layout=attrs.evolve(layout, element_size_in_bits=bits))

    return _map_arrays(packed, shape)


def change_element_type(shape: Shape, type_: ElementType | str) -> Shape:
    """Returns the shape with another element type, in every array of a tuple. The layout is kept, except `E`.

    As in XLA's `ChangeElementType`, `E` becomes 0 unless the new type is narrower than a byte and not `pred`.
    """
    new = element_type(type_) if isinstance(type_, str) else type_

    def changed(array: Shape) -> Shape:
        layout = array.layout
        if layout is not None and not _packs(new):
            layout = attrs.evolve(layout, element_size_in_bits=0)
        return attrs.evolve(array, element_type=new, layout=layout)

    return _map_arrays(changed, shape)


def _map_arrays(change: Callable[[Shape], Shape], shape: Shape) -> Shape:
    if shape.tuple_shapes:
        return attrs.evolve(
            shape, tuple_shapes=tuple(_map_arrays(change, part) for part in shape.tuple_shapes)
        )
    return change(shape) if shape.is_array else shape


# ---- changing dimensions


def permute_dimensions(shape: Shape, permutation: Sequence[int]) -> Shape:
    """Returns the shape whose dimension i is dimension `permutation[i]` of this one, laid out so that no element moves.

    Corresponds to XLA's `PermuteDimensions`. Tiles and the other parts of the layout are kept. Raises LayoutError if
    `permutation` is not a permutation.
    """
    layout = layout_of(array_of(shape))
    check_permutation("the permutation", permutation, shape.rank)
    order = compose(inverse(permutation), layout.minor_to_major)
    return attrs.evolve(
        shape,
        dimensions=compose(shape.dimensions, permutation),
        dynamic_dimensions=tuple(shape.dynamic_dimensions[number] for number in permutation),
        layout=attrs.evolve(layout, minor_to_major=order),
    )


def normalize(shape: Shape) -> Shape:
    """Returns the shape with its dimensions in physical order and the descending layout: the same bytes, row-major.

    `f32[10,20,30]{2,0,1}` becomes `f32[20,10,30]{2,1,0}`; tiles and the other parts of the layout are kept. Corresponds
    to XLA's `MakeShapeWithDescendingLayoutAndSamePhysicalLayout`. Raises LayoutError for an invalid layout.
    """
    return permute_dimensions(shape, layout_of(array_of(shape)).minor_to_major[::-1])


def delete_dimensions(shape: Shape, numbers: Sequence[int]) -> Shape:
    """Returns the shape without these dimensions (XLA's `DeleteDimensions`). Tiles are kept.

    Negative numbers count from the end. Raises LayoutError for a dimension that does not exist.
    """
    gone = {dimension_number(shape, number) for number in numbers}
    kept = [number for number in range(shape.rank) if number not in gone]
    renumbered = {number: place for place, number in enumerate(kept)}
    layout = layout_of(array_of(shape))
    order = tuple(renumbered[number] for number in layout.minor_to_major if number in renumbered)
    return attrs.evolve(
        shape,
        dimensions=tuple(shape.dimensions[number] for number in kept),
        dynamic_dimensions=tuple(shape.dynamic_dimensions[number] for number in kept),
        layout=attrs.evolve(layout, minor_to_major=order),
    )


def append_major_dimension(shape: Shape, size: int) -> Shape:
    """Returns the shape with a new last dimension of this size that varies slowest (XLA's `AppendMajorDimension`).

    Raises LayoutError for an invalid shape.
    """
    layout = layout_of(array_of(shape))
    return _with_new_last(shape, size, (*layout.minor_to_major, shape.rank))


def append_minor_dimension(shape: Shape, size: int) -> Shape:
    """Returns the shape with a new last dimension of this size that varies fastest (XLA's `AppendMinorDimension`).

    Raises LayoutError for an invalid shape.
    """
    layout = layout_of(array_of(shape))
    return _with_new_last(shape, size, (shape.rank, *layout.minor_to_major))


def _with_new_last(shape: Shape, size: int, order: tuple[int, ...]) -> Shape:
    return attrs.evolve(
        shape,
        dimensions=(*shape.dimensions, size),
        dynamic_dimensions=(*shape.dynamic_dimensions, False),
        layout=attrs.evolve(layout_of(shape), minor_to_major=order),
    )


def prepend_major_dimension(shape: Shape, size: int) -> Shape:
    """Returns the shape with a new dimension 0 of this size that varies slowest (XLA's `PrependMajorDimension`).

    Of the layout, only the order of dimensions is kept. Raises LayoutError for an invalid shape.
    """
    order = (*(number + 1 for number in layout_of(array_of(shape)).minor_to_major), 0)
    flags = (False, *shape.dynamic_dimensions)
    return Shape(shape.element_type, (size, *shape.dimensions), flags, Layout(order))


def move_dimension_to_major(shape: Shape, number: int) -> Shape:
    """Returns the shape with one dimension moved to the most major position; other parts of the layout are dropped.

    Corresponds to XLA's `ShapeUtil::MoveDimToMajor`. A shape whose dimension is already most major is returned
    unchanged. A negative number counts from the end. Raises LayoutError if there is no such dimension.
    """
    number = dimension_number(shape, number)
    layout = layout_of(array_of(shape))
    if layout.minor_to_major[-1] == number:
        return shape
    order = (*(other for other in layout.minor_to_major if other != number), number)
    return attrs.evolve(shape, layout=Layout(order))


# ---- asking


def dimension_number(shape: Shape, number: int) -> int:
    """Normalizes a dimension number, counting negative numbers from the end (XLA's `GetDimensionNumber`).

    Raises LayoutError for numbers outside -rank to rank-1 (XLA does not check the upper bound).
    """
    if not -shape.rank <= number < shape.rank:
        raise LayoutError(f"dimension {number}", f"does not exist in rank {shape.rank}", shape)
    return number % shape.rank


_LETTERS = {2: "yx", 3: "zyx", 4: "pzyx"}


def dimension_letters(rank: int) -> tuple[str, ...] | None:
    """Returns the names of the dimensions in XLA's documentation: y,x or z,y,x or p,z,y,x, or None for other ranks."""
    return tuple(_LETTERS[rank]) if rank in _LETTERS else None


def major_to_minor(shape: Shape) -> tuple[int, ...]:
    """Returns the logical dimension numbers, most major first; XLA's `Major(layout, k)` is element k.

    Raises LayoutError for an invalid shape.
    """
    return layout_of(array_of(shape)).minor_to_major[::-1]


def physical_dimensions(shape: Shape) -> tuple[int, ...]:
    """Returns the dimension sizes in elements, most major first. Raises LayoutError for an invalid shape."""
    return compose(shape.dimensions, major_to_minor(shape))


def logical_to_physical(shape: Shape) -> tuple[int, ...]:
    """Returns the physical position of each logical dimension, 0 for the most major (XLA's `MakeLogicalToPhysical`).

    Raises LayoutError for an invalid shape.
    """
    return inverse(major_to_minor(shape))


def is_monotonic_with_dim0_major(shape: Shape) -> bool:
    """Returns True if dimensions are in descending minor-to-major order, as in `{2,1,0}`. Tiles are ignored.

    Raises LayoutError for an invalid shape.
    """
    return layout_of(array_of(shape)).minor_to_major == descending(shape.rank)


def is_monotonic_with_dim0_minor(shape: Shape) -> bool:
    """Returns True if dimensions are in ascending minor-to-major order, as in `{0,1,2}`. Tiles are ignored.

    Raises LayoutError for an invalid shape.
    """
    return layout_of(array_of(shape)).minor_to_major == tuple(range(shape.rank))


def is_effectively_most_major(shape: Shape, number: int) -> bool:
    """Returns True if all dimensions more major than this one have size 1 (XLA's `IsEffectivelyMostMajorDimension`).

    A negative number counts from the end. Raises LayoutError if there is no such dimension.
    """
    order = major_to_minor(shape)
    slower = itertools.takewhile(lambda other: other != dimension_number(shape, number), order)
    return all(shape.dimensions[other] == 1 for other in slower)


def are_dimensions_consecutive(shape: Shape, numbers: Sequence[int]) -> bool:
    """Returns True if these dimensions are adjacent in minor_to_major, in any order.

    Negative numbers count from the end. Raises LayoutError if there is no such dimension.
    """
    order = layout_of(array_of(shape)).minor_to_major
    places = sorted(order.index(dimension_number(shape, number)) for number in numbers)
    return all(b - a == 1 for a, b in itertools.pairwise(places))


def is_zero_element_array(shape: Shape) -> bool:
    """Returns True for an array with a dimension of size 0."""
    return shape.is_array and 0 in shape.dimensions


def is_effective_scalar(shape: Shape) -> bool:
    """Returns True for scalars and for arrays whose dimensions all have size 1."""
    return shape.is_array and shape.true_rank == 0


def has_degenerate_dimensions(shape: Shape) -> bool:
    """Returns True if any dimension has size 1."""
    return 1 in shape.dimensions


def subshape_count(shape: Shape) -> int:
    """Returns the number of subshapes, including tuples and the shape itself (XLA's `SubshapeCount`)."""
    return sum(1 for _ in shape.subshapes())


def leaf_count(shape: Shape) -> int:
    """Returns the number of non-tuple subshapes (XLA's `GetLeafCount`)."""
    return sum(1 for _ in shape.leaves())


def byte_strides(shape: Shape) -> tuple[int, ...]:
    """Returns the byte stride of each logical dimension, ignoring tiles and `E` (XLA's `ByteStrides`).

    Meaningful for untiled, unpacked arrays only. For example, the strides of `f32[2,3]{0,1}` are (4, 8). Raises
    LayoutError for an invalid layout and for strides above 2^63 - 1.
    """
    strides = [0] * shape.rank
    stride = array_of(shape).element_type.byte_width
    for number in layout_of(array_of(shape)).minor_to_major:
        if stride > INT64_MAX:
            raise LayoutError(f"the stride of dimension {number}", "is more than 2^63 - 1 bytes", shape)
        strides[number] = stride
        stride *= shape.dimensions[number]
    return tuple(strides)
