"""Plain HLO text, line by line: what a module is turned into for the CPU client. Shapes without layouts, generated names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from hlotext.execution.errors import NotExecutable
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType, TypeKind, element_type


@attrs.frozen
class Plain:
    """A value of the text that is executed."""

    name: str
    shape: Shape
    """Without layout, of the element type that it has in the plain text."""

    @property
    def type(self) -> ElementType:
        """The element type of the value."""
        return self.shape.element_type

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dimensions of the value."""
        return self.shape.dimensions


class Lines:
    """Builds the text of one computation, instruction by instruction."""

    def __init__(self, numbers: list[int]) -> None:
        self.lines: list[str] = []
        self._numbers = numbers  # shared by all computations of a module

    def add(self, opcode: str, shape: Shape, operands: Iterable[Plain | str] = (), *attributes: str) -> Plain:
        """Adds an instruction and returns its value.

        Operands given as text are written verbatim, such as the literal of a constant. Empty attributes are left out.
        """
        self._numbers[0] += 1
        name = f"v{self._numbers[0]}"
        inside = ", ".join(one if isinstance(one, str) else f"%{one.name}" for one in operands)
        parts = [f"{shape.text_without_layout()} {opcode}({inside})", *(one for one in attributes if one)]
        self.lines.append(f"%{name} = {', '.join(parts)}")
        return Plain(name, shape.without_layout())

    def text(self, name: str, root: Plain, is_entry: bool = False) -> str:
        """Returns the text of the computation, in which the instruction of `root` is marked as the root."""
        marker = f"%{root.name} = "
        lines = [f"  ROOT {line}" if line.startswith(marker) else f"  {line}" for line in self.lines]
        return "\n".join([f"{'ENTRY ' if is_entry else ''}%{name} {{", *lines, "}"])

    # ---- what is needed again and again

    def scalar(self, type_: ElementType, text: str) -> Plain:
        """Adds a scalar constant with this literal."""
        return self.add("constant", Shape(type_), (text,))

    def zero(self, type_: ElementType) -> Plain:
        """Adds a scalar zero of an element type."""
        return self.scalar(type_, _zero(type_))

    def filled(self, value: Plain, sizes: Sequence[int]) -> Plain:
        """Broadcasts a scalar to these dimensions."""
        return self.add("broadcast", Shape(value.type, tuple(sizes)), (value,), "dimensions={}")

    def zeros(self, shape: Shape) -> Plain:
        """Adds zeros of a shape, which may be a tuple. Raises NotExecutable for a token or an opaque shape."""
        if shape.is_tuple:
            parts = [self.zeros(part) for part in shape.tuple_shapes]
            return self.add("tuple", Shape.tuple(tuple(part.shape for part in parts)), parts)
        if not shape.is_array:
            raise NotExecutable(f"no zero value of {shape}")
        scalar = self.zero(shape.element_type)
        return self.filled(scalar, shape.dimensions) if shape.dimensions else scalar

    def convert(self, value: Plain, type_: ElementType) -> Plain:
        """Converts the elements to another type."""
        if value.type is type_:
            return value
        return self.add("convert", Shape(type_, value.sizes), (value,))

    def reshape(self, value: Plain, sizes: Sequence[int]) -> Plain:
        """Reshapes a value to these dimensions."""
        if value.sizes == tuple(sizes):
            return value
        return self.add("reshape", Shape(value.type, tuple(sizes)), (value,))

    def transpose(self, value: Plain, order: Sequence[int]) -> Plain:
        """Transposes a value; dimension i of the result is dimension `order[i]` of the value."""
        if tuple(order) == tuple(range(len(order))):
            return value
        sizes = tuple(value.sizes[d] for d in order)
        return self.add(
            "transpose", Shape(value.type, sizes), (value,), f"dimensions={{{','.join(map(str, order))}}}"
        )

    def resize(self, value: Plain, sizes: Sequence[int]) -> Plain:
        """Slices or pads each dimension at its end to these sizes. Padding is zero."""
        least = tuple(min(a, b) for a, b in zip(value.sizes, sizes, strict=True))
        if least != value.sizes:
            ranges = ", ".join(f"[0:{size}]" for size in least)
            value = self.add("slice", Shape(value.type, least), (value,), f"slice={{{ranges}}}")
        if least != tuple(sizes):
            edges = "x".join(f"0_{size - have}" for have, size in zip(least, sizes, strict=True))
            value = self.add(
                "pad", Shape(value.type, tuple(sizes)), (value, self.zero(value.type)), f"padding={edges}"
            )
        return value

    def element(self, value: Plain, index: int) -> Plain:
        """Takes an element of a tuple."""
        return self.add("get-tuple-element", value.shape.tuple_shapes[index], (value,), f"index={index}")

    def tuple(self, parts: Sequence[Plain]) -> Plain:
        """Makes a tuple of values."""
        return self.add("tuple", Shape.tuple(tuple(part.shape for part in parts)), parts)

    def binary(self, opcode: str, a: Plain, b: Plain) -> Plain:
        """Adds an elementwise operation on two values of one shape."""
        return self.add(opcode, a.shape, (a, b))


def _zero(type_: ElementType) -> str:
    if type_.kind is TypeKind.PREDICATE:
        return "false"
    return "(0, 0)" if type_.is_complex else "0"


def wider(types: Iterable[ElementType]) -> ElementType:
    """Returns the widest of these floating-point types; for bf16 and f16 together f32."""
    found = list(dict.fromkeys(types))
    if len(found) == 1:
        return found[0]
    widest = max(found, key=lambda type_: type_.bits)
    alike = [type_ for type_ in found if type_.bits == widest.bits]
    return widest if len(alike) == 1 else element_type("f32")
