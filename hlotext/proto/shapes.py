"""Shapes and layouts to and from `ShapeProto` and `LayoutProto`, as `Shape::FromProto` and `Shape::ToProto` do it.

Both ways each distinct shape is made once: by its bytes, and by its value.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir.values.shape import (
    UNBOUNDED_SIZE,
    ComputationLayout,
    Layout,
    Shape,
    SplitConfig,
    Tile,
    default_layout,
)
from hlotext.ir.values.types import BUFFER, ELEMENT_TYPES, TUPLE, ElementType, element_type
from hlotext.proto.errors import ProtoError
from hlotext.proto.pool import Classes

MAX_DEPTH = 90
"""Messages inside each other; protobuf's own readers stop at 100, counted from the outermost message."""

_BY_NUMBER = {type_.number: type_ for type_ in (*ELEMENT_TYPES.values(), TUPLE, BUFFER)}
_UNKNOWN = "primitive_type_"


def type_of_number(number: int) -> ElementType:
    """Returns the element type of a `PrimitiveType`, of kind UNKNOWN for a number unknown to this release."""
    return _BY_NUMBER.get(number) or element_type(f"{_UNKNOWN}{number}")


def number_of_type(type_: ElementType) -> int:
    """Returns the `PrimitiveType` of an element type. Raises ProtoError for an unknown type."""
    if type_.number:
        return type_.number
    if type_.name.startswith(_UNKNOWN):
        return int(type_.name.removeprefix(_UNKNOWN))
    raise ProtoError(f"element type {type_} has no number that this release knows")


class ShapeReader:
    """Parser of shapes, cached by their bytes."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._shapes: dict[bytes, Shape] = {}
        self._layouts: dict[bytes, Layout] = {}

    def shape(self, raw: bytes, depth: int = 0) -> Shape:
        """Parses a `ShapeProto`. Raises ProtoError if it is invalid."""
        found = self._shapes.get(raw)
        if found is None:
            found = self._shapes[raw] = self._shape(raw, depth)
        return found

    def _shape(self, raw: bytes, depth: int) -> Shape:
        if depth > MAX_DEPTH:
            raise ProtoError(f"shapes nest deeper than {MAX_DEPTH} levels")
        message = decoded(self._classes, "ShapeProto", raw)
        type_ = type_of_number(message.element_type)
        if type_ is TUPLE or type_ is BUFFER:
            if message.HasField("layout"):
                raise ProtoError(f"a shape of type {type_} has no layout")
            parts = tuple([self.shape(part, depth + 1) for part in message.tuple_shapes])
            if type_ is BUFFER and (len(parts) != 1 or not parts[0].is_array):
                raise ProtoError("a buffer contains exactly one array")
            return Shape(type_, tuple_shapes=parts)
        if not type_.number and not message.element_type:
            raise ProtoError("a shape has no element type")
        if not type_.is_array_type:
            return Shape(type_)
        sizes = tuple(message.dimensions)
        dynamic = tuple(message.is_dynamic_dimension) or (False,) * len(sizes)
        if len(dynamic) != len(sizes):
            raise ProtoError(f"{len(dynamic)} sizes are said to be dynamic or not, of {len(sizes)}")
        for size, is_dynamic in zip(sizes, dynamic, strict=True):
            if size < 0 and not (is_dynamic and size == UNBOUNDED_SIZE):
                raise ProtoError(f"a dimension cannot have {size} elements")
        layout = self._layout(message.layout, depth) if message.HasField("layout") else None
        if not sizes and layout == _PLAIN:
            layout = None  # `{}` is what the text does not show
        return Shape(type_, sizes, dynamic, layout)

    def _layout(self, raw: bytes, depth: int) -> Layout:
        found = self._layouts.get(raw)
        if found is None:
            found = self._layouts[raw] = self._make_layout(raw, depth)
        return found

    def _make_layout(self, raw: bytes, depth: int) -> Layout:
        m = decoded(self._classes, "LayoutProto", raw)
        tiles = [Tile(tuple(decoded(self._classes, "TileProto", tile).dimensions)) for tile in m.tiles]
        splits = [decoded(self._classes, "SplitConfigProto", split) for split in m.split_configs]
        return Layout(
            tuple(m.minor_to_major),
            tuple(tiles),
            m.tail_padding_alignment_in_elements or 1,
            type_of_number(m.index_primitive_type) if m.index_primitive_type else None,
            type_of_number(m.pointer_primitive_type) if m.pointer_primitive_type else None,
            m.element_size_in_bits,
            m.memory_space,
            tuple([SplitConfig(split.dimension, tuple(split.split_indices)) for split in splits]),
            self.shape(m.physical_shape, depth + 1) if m.HasField("physical_shape") else None,
            m.dynamic_shape_metadata_prefix_bytes,
        )

    def program_shape(self, raw: bytes) -> ComputationLayout:
        """Parses a `ProgramShapeProto`. Raises ProtoError if it is invalid."""
        message = decoded(self._classes, "ProgramShapeProto", raw)
        parameters = tuple([self.shape(part) for part in message.parameters])
        return ComputationLayout(parameters, self.shape(message.result))


_PLAIN = Layout()


def decoded(classes: Classes, name: str, raw: bytes) -> Any:
    """Parses a message of a type, given by name. Raises ProtoError if it is invalid."""
    try:
        return getattr(classes, name).FromString(raw)
    except classes.DecodeError:
        raise ProtoError(f"this is not a {name}") from None


class ShapeWriter:
    """Serializer of shapes, cached."""

    def __init__(self, classes: Classes, is_filled: bool = True) -> None:
        self._classes = classes
        self._is_filled = is_filled
        self._by_id: dict[int, tuple[Shape, bytes]] = {}
        self._bytes: dict[Shape, bytes] = {}
        self._layouts: dict[Layout, bytes] = {}

    def shape(self, shape: Shape) -> bytes:
        """Serializes to `ShapeProto`, with the descending layout for arrays without one, unless configured otherwise.

        Raises ProtoError for an element type without a number.
        """
        known = self._by_id.get(id(shape))  # equal shapes of a module are mostly one object
        if known is not None:
            return known[1]
        raw = self._bytes.get(shape)
        if raw is None:
            raw = self._bytes[shape] = self._shape(shape)
        self._by_id[id(shape)] = shape, raw
        return raw

    def _shape(self, shape: Shape) -> bytes:
        message = self._classes.ShapeProto(element_type=number_of_type(shape.element_type))
        if shape.tuple_shapes:
            message.tuple_shapes.extend([self.shape(part) for part in shape.tuple_shapes])
        elif shape.is_array:
            message.dimensions.extend(shape.dimensions)
            message.is_dynamic_dimension.extend(shape.dynamic_dimensions)
            if shape.layout is not None or self._is_filled or not shape.rank:
                message.layout = self._layout(shape.layout or default_layout(shape.rank))
        raw: bytes = message.SerializeToString()
        return raw

    def _layout(self, layout: Layout) -> bytes:
        raw = self._layouts.get(layout)
        if raw is None:
            raw = self._layouts[layout] = self._make_layout(layout)
        return raw

    def _make_layout(self, layout: Layout) -> bytes:
        m = self._classes.LayoutProto(
            minor_to_major=layout.minor_to_major,
            tail_padding_alignment_in_elements=layout.tail_padding_alignment_in_elements,
            element_size_in_bits=layout.element_size_in_bits,
            memory_space=layout.memory_space,
            dynamic_shape_metadata_prefix_bytes=layout.dynamic_shape_metadata_prefix_bytes,
        )
        for tile in layout.tiles:
            m.tiles.append(self._classes.TileProto(dimensions=tile.dimensions).SerializeToString())
        for split in layout.split_configs:
            made = self._classes.SplitConfigProto(
                dimension=split.dimension, split_indices=split.split_indices
            )
            m.split_configs.append(made.SerializeToString())
        if layout.index_type is not None:
            m.index_primitive_type = number_of_type(layout.index_type)
        if layout.pointer_type is not None:
            m.pointer_primitive_type = number_of_type(layout.pointer_type)
        if layout.physical_shape is not None:
            m.physical_shape = self.shape(layout.physical_shape)
        raw: bytes = m.SerializeToString()
        return raw

    def program_shape(self, parameters: list[tuple[str, Shape]], result: Shape) -> bytes:
        """Serializes named parameters and a result to `ProgramShapeProto`."""
        message = self._classes.ProgramShapeProto(
            parameters=[self.shape(shape) for _, shape in parameters],
            result=self.shape(result),
            parameter_names=[name for name, _ in parameters],
        )
        raw: bytes = message.SerializeToString()
        return raw
