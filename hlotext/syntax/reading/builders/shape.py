"""Values of the rules in shape.lark and layout.lark."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hlotext.findings.errors import TermError
from hlotext.ir.values.shape import COMBINE_DIMENSION, UNBOUNDED_SIZE, Layout, Shape, SplitConfig, Tile
from hlotext.ir.values.types import ElementType, element_type
from hlotext.syntax.language.words import integer
from hlotext.syntax.reading.builders.values import Children
from hlotext.syntax.source.limits import MAX_DIMENSIONS, MAX_NESTING


class _Dimension(NamedTuple):
    size: int
    is_dynamic: bool


def _position(token: Any) -> int:
    return getattr(token, "start_pos", None) or 0


def _non_negative(token: str, what: str) -> int:
    value = integer(token)
    if value < 0:
        raise TermError(f"{what} must not be negative, but is {token}", _position(token))
    return value


class ShapeBuilder:
    """Builds the values of the rules in shape.lark and layout.lark."""

    def shape(self, children: Children) -> Shape:
        shape: Shape = children[0]
        return shape

    def dimension(self, children: Children) -> _Dimension:
        return _Dimension(_non_negative(children[0], "a dimension's size"), False)

    def bounded_dimension(self, children: Children) -> _Dimension:
        return _Dimension(_non_negative(children[1], "a dimension's bound"), True)

    def unbounded_dimension(self, children: Children) -> _Dimension:
        return _Dimension(UNBOUNDED_SIZE, True)

    def array_shape(self, children: Children) -> Shape:
        word, *dimensions, layout = children
        sizes = [d for d in dimensions if d is not None]
        if len(sizes) > MAX_DIMENSIONS:
            message = f"the shape has {len(sizes)} dimensions, more than {MAX_DIMENSIONS}"
            raise TermError(message, _position(word), code="X124")
        type_ = element_type(str(word))
        if layout is not None and type_.is_array_type and len(layout.minor_to_major) != len(sizes):
            raise TermError(
                f"the shape has {len(sizes)} dimensions, but its layout {layout} lists {len(layout.minor_to_major)}",
                _position(word),
            )
        if not type_.is_array_type and (sizes or layout is not None):
            raise TermError(f"{word} has neither dimensions nor a layout", _position(word))
        return Shape(type_, tuple(d.size for d in sizes), tuple(d.is_dynamic for d in sizes), layout)

    def tuple_shape(self, children: Children) -> Shape:
        opening, *elements = children
        shape = Shape.tuple(tuple(element for element in elements if element is not None))
        if shape.depth > MAX_NESTING:
            message = f"tuples nest deeper than {MAX_NESTING} levels"
            raise TermError(message, opening.start_pos, code="X124")
        return shape

    def buffer_shape(self, children: Children) -> Shape:
        if not children[1].is_array:
            raise TermError(f"only an array can be a buffer, not {children[1]}", _position(children[0]))
        return Shape.buffer(children[1])

    # ---- layout.lark: each part gives (Layout field, value)

    def layout(self, children: Children) -> Layout:
        opening, *rest = children
        numbers = [integer(child) for child in rest if child is not None and not isinstance(child, tuple)]
        parts = [child for child in rest if isinstance(child, tuple)]
        fields: dict[str, Any] = dict(parts)
        if len(fields) != len(parts):
            raise TermError("a part of the layout appears twice", _position(opening))
        if "physical_shape" in fields:
            message = "a layout with a physical shape P(...) is only for sparse arrays"
            raise TermError(message, _position(opening))
        layout = Layout(tuple(numbers), **fields)
        order = [_PART_ORDER.index(field) for field in fields]
        if order != sorted(order):
            message = "the parts of a layout must be in the order D T L # * E S SC P M"
            raise TermError(message, _position(opening), f"write `{layout}`")
        return layout

    def layout_part(self, children: Children) -> tuple[str, Any]:
        part: tuple[str, Any] = children[0]
        return part

    def dim_levels(self, children: Children) -> tuple[str, Any]:
        return "dim_level_types", tuple(re.sub(r"\s", "", token) for token in children if token is not None)

    def tiles(self, children: Children) -> tuple[str, Any]:
        return "tiles", tuple(children[1:]) or (Tile(()),)

    def tile(self, children: Children) -> Tile:
        sizes = []
        for token in children:
            if token is None:
                continue
            size = COMBINE_DIMENSION if token == "*" else integer(token)
            if size < 0 and size != COMBINE_DIMENSION:
                raise TermError(f"a tile's size must not be negative, but is {token}", _position(token))
            sizes.append(size)
        return Tile(tuple(sizes))

    def tail_padding(self, children: Children) -> tuple[str, Any]:
        if (value := integer(children[0])) < 1:
            raise TermError(
                f"tail padding L(n) needs n of at least 1, but is {value}", _position(children[0])
            )
        return "tail_padding_alignment_in_elements", value

    def index_type(self, children: Children) -> tuple[str, ElementType]:
        return "index_type", element_type(str(children[0]))

    def pointer_type(self, children: Children) -> tuple[str, ElementType]:
        return "pointer_type", element_type(str(children[0]))

    def element_size(self, children: Children) -> tuple[str, int]:
        return "element_size_in_bits", integer(children[0])

    def memory_space(self, children: Children) -> tuple[str, int]:
        return "memory_space", integer(children[0])

    def split_configs(self, children: Children) -> tuple[str, tuple[SplitConfig, ...]]:
        return "split_configs", tuple(children)

    def split_config(self, children: Children) -> SplitConfig:
        dimension, *indices = (integer(token) for token in children if token is not None)
        return SplitConfig(dimension, tuple(indices))

    def physical_shape(self, children: Children) -> tuple[str, Shape]:
        return "physical_shape", children[0]

    def metadata_prefix(self, children: Children) -> tuple[str, int]:
        return "dynamic_shape_metadata_prefix_bytes", integer(children[0])


_PART_ORDER = (
    "dim_level_types", "tiles", "tail_padding_alignment_in_elements", "index_type", "pointer_type",
    "element_size_in_bits", "memory_space", "split_configs", "physical_shape", "dynamic_shape_metadata_prefix_bytes",
)  # fmt: skip
