"""Shapes and layouts: what an HLO value is, and how its elements are ordered in memory. Pure values, no arithmetic."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator

import attrs

from hlotext.ir.arguments import caller_level
from hlotext.ir.caches import weighted_cache
from hlotext.ir.errors import UnknownSizeError
from hlotext.ir.foreign_names import text_formatted, with_foreign_names
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.values.types import BUFFER, OPAQUE, TOKEN, TUPLE, ElementType, type_meant
from hlotext.ir.values.value import Value, mimebundle

UNBOUNDED_SIZE = -(2**63)
"""Size of a dimension printed `?`, as XLA's `Shape::kUnboundedSize`."""

COMBINE_DIMENSION = -(2**63)
"""Tile size printed `*`: merge this dimension into the next more minor one (XLA's `Tile::kCombineDimension`)."""

_INTEGERS, _TRUTHS = frozenset({int}), frozenset({bool})

_WIDE = 16
"""Elements of tuples from which on equal ones are kept once."""


def join_indexed(texts: list[str]) -> str:
    """Joins texts with `, `, with `/*index=N*/` before every fifth one, as XLA prints tuples and operands."""
    if len(texts) <= 5:
        return ", ".join(texts)
    return ", ".join(f"/*index={i}*/{text}" if i and i % 5 == 0 else text for i, text in enumerate(texts))


@attrs.frozen(repr=False)
class Tile(Value):
    """A tile of a tiled layout, with its sizes major to minor: `(8,128)`."""

    dimensions: tuple[int, ...]
    """Sizes in elements; `COMBINE_DIMENSION` for `*`."""

    def __str__(self) -> str:
        return "(" + ",".join("*" if d == COMBINE_DIMENSION else str(d) for d in self.dimensions) + ")"


@attrs.frozen(repr=False)
class SplitConfig(Value):
    """Split of a physical dimension across memories: `(1:1,2)`."""

    dimension: int
    """Physical dimension number, counted from the major end."""
    split_indices: tuple[int, ...]
    """Split indices, ascending."""

    def __str__(self) -> str:
        return f"({self.dimension}:{','.join(map(str, self.split_indices))})"


@with_foreign_names
@attrs.frozen(cache_hash=True, repr=False)
class Layout(Value, Abbreviated):
    """Memory layout of an array: `{3,2,0,1:T(8,128)(2,1)S(1)}`.

    Nothing is validated against a shape: `minor_to_major` need not be a permutation, as in XLA's parser.
    """

    minor_to_major: tuple[int, ...] = ()
    """Logical dimension numbers, fastest varying first."""
    tiles: tuple[Tile, ...] = ()
    """Tiles, in order of application."""
    tail_padding_alignment_in_elements: int = 1
    """Alignment of the number of elements, after tiling; 1 if absent."""
    index_type: ElementType | None = None
    """Type of the indices of a sparse array, or None if absent."""
    pointer_type: ElementType | None = None
    """Type of the pointers of a sparse array, or None if absent."""
    element_size_in_bits: int = 0
    """Bits per element in memory; 0 for the type's size in whole bytes."""
    memory_space: int = 0
    """Memory space: 0 is the default device memory, 1 is VMEM on TPU, 5 is host memory."""
    split_configs: tuple[SplitConfig, ...] = ()
    physical_shape: Shape | None = None
    """Physical shape of a sparse array, or None if absent."""
    dynamic_shape_metadata_prefix_bytes: int = 0
    """Bytes before the data that hold the sizes of a dynamic shape; 0 if absent."""
    dim_level_types: tuple[str, ...] = attrs.field(default=(), eq=False)
    """Level types of old sparse layouts (`C+`). As in XLA, they are parsed but neither compared nor printed."""

    def __attrs_post_init__(self) -> None:
        if type(self.minor_to_major) is not tuple:
            given = type(self.minor_to_major).__name__
            more = "; hlotext.parse_layout(text) reads one" if given == "str" else ""
            raise TypeError(
                f"Layout() takes a tuple of dimension numbers as minor_to_major, not {given}{more}"
            )

    def __str__(self) -> str:
        numbers = ",".join(map(str, self.minor_to_major))
        parts = self._parts()
        return f"{{{numbers}:{parts}}}" if parts else f"{{{numbers}}}"

    def _parts(self) -> str:
        """Everything behind the colon, in XLA's fixed order; defaults print nothing."""
        if self == Layout(self.minor_to_major):
            return ""
        out = []
        if self.tiles:
            out.append("T" + "".join(map(str, self.tiles)))
        if self.tail_padding_alignment_in_elements != 1:
            out.append(f"L({self.tail_padding_alignment_in_elements})")
        for mark, type_ in (("#", self.index_type), ("*", self.pointer_type)):
            if type_ is not None:
                out.append(f"{mark}({type_ if type_.is_integral else 'invalid'})")
        if self.element_size_in_bits:
            out.append(f"E({self.element_size_in_bits})")
        if self.memory_space:
            out.append(f"S({self.memory_space})")
        if self.split_configs:
            out.append("SC" + "".join(map(str, self.split_configs)))
        if self.physical_shape is not None:
            out.append(f"P({self.physical_shape})")
        if self.dynamic_shape_metadata_prefix_bytes > 0:
            out.append(f"M({self.dynamic_shape_metadata_prefix_bytes})")
        return "".join(out)


@with_foreign_names
@attrs.frozen(cache_hash=True, repr=False, unsafe_hash=True)
class Shape(Abbreviated):
    """The type of an HLO value: an array, a tuple of shapes, a token, an opaque value or a buffer.

    `str()` prints layouts; call `without_layout()` first to omit them. Equality compares all fields, including layouts.
    """

    element_type: ElementType = attrs.field(converter=type_meant)
    """Element type; `types.TUPLE`, `TOKEN`, `OPAQUE` or `BUFFER` for non-arrays."""
    dimensions: tuple[int, ...] = ()
    """Sizes by logical dimension number; the bound for bounded dynamic dimensions, `UNBOUNDED_SIZE` for `?`."""
    dynamic_dimensions: tuple[bool, ...] = attrs.field()
    """For each dimension, True if its size is only known at run time."""
    layout: Layout | None = None
    """The layout, or None if the text has none, for which XLA uses the descending layout."""
    tuple_shapes: tuple[Shape, ...] = ()
    """Element shapes of a tuple, or the array shape of a buffer; otherwise empty."""
    depth: int = attrs.field(eq=False, init=False)
    """Nesting depth of tuples: 0 for an array, 1 for a tuple of arrays."""
    _text: str | None = attrs.field(default=None, eq=False, init=False)
    _text_without_layout: str | None = attrs.field(default=None, eq=False, init=False)

    __format__ = text_formatted
    _repr_mimebundle_ = mimebundle

    @dynamic_dimensions.default
    def _all_static(self) -> tuple[bool, ...]:
        try:
            return (False,) * len(self.dimensions)
        except TypeError:  # which `sizes_of` says
            return ()

    @depth.default
    def _deepest(self) -> int:
        return 1 + max([s.depth for s in self.tuple_shapes], default=0) if self.element_type is TUPLE else 0

    def __attrs_post_init__(self) -> None:
        sizes, layout = self.dimensions, self.layout
        if type(sizes) is not tuple or not _INTEGERS.issuperset(map(type, sizes)):
            object.__setattr__(self, "dimensions", sizes_of(sizes))
        dynamic = self.dynamic_dimensions
        if len(dynamic) != len(sizes) or not _TRUTHS.issuperset(map(type, dynamic)):
            raise TypeError(f"dynamic_dimensions is True or False for each dimension, not {dynamic!r}")
        if layout is not None and not isinstance(layout, Layout):
            more = "; hlotext.parse_layout(text) reads one" if isinstance(layout, str) else ""
            raise TypeError(f"the layout of a shape is a Layout, not {type(layout).__name__}{more}")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Shape):
            if isinstance(other, str):
                _warn_of_text(other)
            return NotImplemented
        mine, others = self.tuple_shapes, other.tuple_shapes
        if (
            self.element_type is not other.element_type
            or self.dimensions != other.dimensions
            or self.dynamic_dimensions != other.dynamic_dimensions
            or self.layout != other.layout
            or (mine is not others and mine != others)
        ):
            return False
        if len(mine) > _WIDE and mine is not others:
            # Equal shapes of two texts may be compared for each of their elements: from now on at a glance.
            object.__setattr__(other, "tuple_shapes", mine)
        return True

    def __str__(self) -> str:
        if self._text is None:
            # A frozen value writes to itself only here, above and below: its own text, made once.
            object.__setattr__(self, "_text", self._make_text())
        return self._text  # type: ignore[return-value]

    def text_without_layout(self) -> str:
        """Returns the text of the shape without layouts, as in computation headers."""
        if self._text_without_layout is None:
            object.__setattr__(self, "_text_without_layout", str(self.without_layout()))
        return self._text_without_layout  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Shape({self})"

    def _make_text(self) -> str:
        if self.element_type is TUPLE:
            return f"({join_indexed([str(s) for s in self.tuple_shapes])})"
        if self.element_type is BUFFER:
            return f"b({self.tuple_shapes[0]})"
        if not (self.dimensions or self.layout):
            return f"{self.element_type}[]"
        sizes = self.dimensions
        if any(self.dynamic_dimensions):
            names = [
                ("?" if size == UNBOUNDED_SIZE else f"<={size}") if dynamic else str(size)
                for size, dynamic in zip(sizes, self.dynamic_dimensions, strict=True)
            ]
        else:
            names = [str(size) for size in sizes]
        layout = str(self.layout) if self.layout is not None else ""
        return f"{self.element_type}[{','.join(names)}]{layout if layout != '{}' else ''}"

    # ---- kinds

    @property
    def is_array(self) -> bool:
        """True for arrays, including scalars."""
        return self.element_type.is_array_type

    @property
    def is_tuple(self) -> bool:
        """True for tuples, including the empty tuple."""
        return self.element_type is TUPLE

    @property
    def is_token(self) -> bool:
        """True for `token[]`."""
        return self.element_type is TOKEN

    @property
    def is_opaque(self) -> bool:
        """True for `opaque[]`."""
        return self.element_type is OPAQUE

    @property
    def is_buffer(self) -> bool:
        """True for a buffer, `b(array)`."""
        return self.element_type is BUFFER

    @property
    def is_static(self) -> bool:
        """True if all dimension sizes, in every leaf, are known at compile time."""
        return not any(self.dynamic_dimensions) and all(s.is_static for s in self.tuple_shapes)

    @property
    def is_unbounded(self) -> bool:
        """True if a dimension of any leaf is unbounded, printed as `?` (`Shape::is_unbounded_dynamic`)."""
        return any(UNBOUNDED_SIZE in leaf.dimensions for _, leaf in self.leaves())

    # ---- sizes

    @property
    def rank(self) -> int:
        """Number of dimensions; 0 for scalars and non-arrays."""
        return len(self.dimensions)

    @property
    def true_rank(self) -> int:
        """Number of dimensions whose size is not 1; size 0 counts (`ShapeUtil::TrueNumDimensions`)."""
        return sum(size != 1 for size in self.dimensions)

    @property
    def element_count(self) -> int:
        """Product of the dimension sizes, using bounds for dynamic dimensions; 1 for a scalar.

        Raises UnknownSizeError (a ValueError) for an unbounded dimension, and ValueError for non-arrays.
        """
        if not self.is_array:
            raise ValueError(f"{self} has no elements")
        count = 1
        for size in self.dimensions:
            if size == UNBOUNDED_SIZE:
                raise UnknownSizeError(
                    f"{self} has an unbounded dimension, so its elements cannot be counted"
                )
            count *= size
        return count

    # ---- parts

    def subshapes(self) -> Iterator[tuple[tuple[int, ...], Shape]]:
        """Yields the shape index and the shape of every subshape in pre-order, starting with this one."""
        stack: list[tuple[tuple[int, ...], Shape]] = [((), self)]
        while stack:
            index, shape = stack.pop()
            yield index, shape
            if shape.is_tuple:
                parts = shape.tuple_shapes
                stack.extend(((*index, i), parts[i]) for i in range(len(parts) - 1, -1, -1))

    def leaves(self) -> Iterator[tuple[tuple[int, ...], Shape]]:
        """Yields the shape index and the shape of every leaf (non-tuple subshape), left to right.

        A shape that is not a tuple is its own leaf, at index `()`.
        """
        if not self.is_tuple:
            return iter((((), self),))
        return ((index, shape) for index, shape in self.subshapes() if not shape.is_tuple)

    def subshape(self, index: tuple[int, ...]) -> Shape:
        """Returns the shape at a shape index such as `(0, 1)`. Raises IndexError if the index is invalid."""
        shape = self
        for i in index:
            if not shape.is_tuple or not 0 <= i < len(shape.tuple_shapes):
                raise IndexError(f"{{{','.join(map(str, index))}}} is not a shape index of {self}")
            shape = shape.tuple_shapes[i]
        return shape

    # ---- changed copies

    def with_layout(self, layout: Layout | None) -> Shape:
        """Returns this array shape with another layout, or without one for None. The layout is not checked."""
        return self if layout == self.layout else attrs.evolve(self, layout=layout)

    def without_layout(self) -> Shape:
        """Returns this shape without layouts, in every leaf."""
        if self.tuple_shapes:
            return attrs.evolve(self, tuple_shapes=tuple(s.without_layout() for s in self.tuple_shapes))
        return self if self.layout is None else attrs.evolve(self, layout=None)

    def with_default_layout(self) -> Shape:
        """Returns this shape, with the descending layout for arrays without a layout, as in XLA's parser."""
        if self.tuple_shapes:
            filled = [s.with_default_layout() for s in self.tuple_shapes]
            if all(map(operator.is_, filled, self.tuple_shapes)):
                return self
            return attrs.evolve(self, tuple_shapes=tuple(filled))
        if self.layout is not None or not self.is_array:
            return self
        return attrs.evolve(self, layout=default_layout(self.rank))

    # ---- making; last, because `tuple` means this method in what follows it

    @classmethod
    def tuple(cls, shapes: tuple[Shape, ...]) -> Shape:
        """Creates a tuple shape from its element shapes."""
        return cls(TUPLE, tuple_shapes=shapes)

    @classmethod
    def buffer(cls, shape: Shape) -> Shape:
        """Returns the buffer `b(shape)` of an array shape."""
        return cls(BUFFER, tuple_shapes=(shape,))


def _warn_of_text(text: str) -> None:
    """A text may have layouts or not, so none is equal to a shape in a way that hashes could follow."""
    warnings.warn(
        f"a Shape never equals a string; compare text_without_layout(), or str(shape), with {text!r}",
        RuntimeWarning,
        stacklevel=caller_level(),
    )


def sizes_of(dimensions: object) -> tuple[int, ...]:
    """Converts dimension sizes to a tuple of Python integers. Raises TypeError unless all are integers."""
    if isinstance(dimensions, str | bytes) or not isinstance(dimensions, Iterable):
        more = "; hlotext.parse_shape(text) reads a whole shape" if isinstance(dimensions, str) else ""
        raise TypeError(
            f"sizes are a list of integers, one for each dimension, not {type(dimensions).__name__}{more}"
        )
    try:
        return tuple(map(operator.index, dimensions))
    except TypeError:
        raise TypeError(f"sizes are integers, not {dimensions!r}") from None


def holds_buffer(shape: Shape | None) -> bool:
    """Returns True if a shape is or contains a buffer."""
    if shape is None or not shape.tuple_shapes:
        return False
    return shape.is_buffer or _part_holds_buffer(shape)


@weighted_cache(1 << 12)
def _part_holds_buffer(shape: Shape) -> bool:
    """Asked again for each of the thousands that take a part of one tuple."""
    return any(map(holds_buffer, shape.tuple_shapes))


def default_layout(rank: int) -> Layout:
    """Returns the descending layout `{rank-1,...,1,0}`, in which dimension 0 is the most major."""
    return Layout(tuple(range(rank - 1, -1, -1)))


@attrs.frozen(repr=False)
class ComputationLayout(Value):
    """`entry_computation_layout=` (`ComputationLayout`): `{(f32[2]{0}, s32[])->f32[2]{0}}`.

    A shape without a layout lets the compiler choose one.
    """

    parameter_shapes: tuple[Shape, ...]
    result_shape: Shape

    def __str__(self) -> str:
        return f"{{({join_indexed([str(shape) for shape in self.parameter_shapes])})->{self.result_shape}}}"
