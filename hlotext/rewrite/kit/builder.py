"""New instructions and computations: one method for each opcode, shapes inferred, names as XLA makes them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.edit import values
from hlotext.edit.cloning import derived_attributes
from hlotext.edit.structure import detached_computation
from hlotext.ir import caches
from hlotext.ir.errors import EditError
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import nearest, suggestion
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.tables.attributes import ATTRIBUTES, Multiplicity
from hlotext.ir.tables.opcode import Family, Opcode, Payload
from hlotext.ir.tables.other_names import opcode_suggested
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape, default_layout, sizes_of
from hlotext.ir.values.types import ElementType, type_meant
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.rewrite.kit.opcode_methods import OpcodeMethods
from hlotext.rewrite.kit.typed_numbers import check_number, number_operands
from hlotext.semantics.infer import CannotInfer, Open, ShapeInferenceError, infer_shape, rule_of

if TYPE_CHECKING:
    from hlotext.rewrite.kit.typed_numbers import Operand

INHERITED = ("metadata", "frontend_attributes")
"""Attributes that a new instruction inherits from the one it replaces (`HloInstruction::SetupDerivedInstruction`);
the sharding too, where the sizes are the same."""

_SHAPES = caches.Cache(1 << 13)
"""Shapes with layouts that opcode, shapes of operands and attributes alone decide."""


@functools.cache
def _decisive(row: Opcode) -> tuple[str, ...] | None:
    """The attributes that decide a shape beside the operands; None if computations, devices or a stated shape do."""
    rule = rule_of(row.name)
    if rule is None or rule.open is not Open.NOTHING or row.payload is not Payload.OPERANDS:
        return None
    if row.called_attributes or row.family is Family.COLLECTIVE:
        return None
    return tuple(use.name for use in row.attributes)


def shape_of(element_type: ElementType | str | Any, dimensions: Iterable[int] = ()) -> Shape:
    """Creates an array shape without layout.

    Args:
        element_type: The element type, or its name, such as `f32`, or a dtype of numpy or JAX.
        dimensions: Sizes by dimension; none for a scalar.

    Raises:
        KeyError: No element type has this name.
        TypeError: A size is not an integer, or `element_type` is not an element type, name or dtype.
        ValueError: A size is negative.
    """
    sizes = sizes_of(dimensions)
    if any(size < 0 for size in sizes):
        raise ValueError(f"sizes must not be negative, but are {sizes}")
    return Shape(type_meant(element_type), sizes)


@with_foreign_names
@attrs.define
class Builder(OpcodeMethods):
    """Adds instructions to a computation, at its end or before one of its instructions.

    Every opcode is a method: hyphens become underscores, and `and`, `or`, `not`, `while` get a trailing one (`b.add(x,
    y)`, `b.custom_call(x, shape=s, custom_call_target="f")`). Positional arguments are operands; keywords are
    attributes, named as in the text. `shape=` is needed if the operands do not determine the result; `name=` requests a
    name. Raises EditError if the operands do not fit.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }")
    >>> b = Builder.before(module.entry.root)
    >>> print(b.multiply(b.parameter_number(0), 2))
    multiply = f32[4] multiply(x, broadcast)
    """

    computation: Computation
    place: Instruction | None = None
    """The instruction before which new ones are inserted. None appends."""
    like: Instruction | None = None
    """Instruction to copy metadata, frontend attributes and sharding from; None copies nothing."""
    _next: Computation | None = None
    """The computation of the module before which a new one is to stand; None: at the end."""
    _last: Instruction | None = None
    """The instruction that was built last; where the place is gone, building goes on behind it."""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.computation, Computation):
            expect(self.computation, Computation)

    @classmethod
    def before(cls, instruction: Instruction, like: Instruction | None = None) -> Builder:
        """Creates a builder that inserts before an instruction.

        New instructions copy metadata and sharding from `like`, by default that instruction. Raises EditError if the
        instruction is not in a computation.
        """
        if instruction.computation is None:
            raise EditError(f"{instruction.name} is not in a computation")
        return cls(instruction.computation, instruction, like or instruction)

    @classmethod
    def after(cls, instruction: Instruction, like: Instruction | None = None) -> Builder:
        """Creates a builder that inserts after an instruction.

        New instructions copy metadata and sharding from `like`, by default that instruction. Raises EditError if the
        instruction is not in a computation.
        """
        computation = instruction.computation
        if computation is None:
            raise EditError(f"{instruction.name} is not in a computation")
        place = computation.order.index(instruction) + 1
        following = computation._instructions[place] if place < len(computation) else None
        return cls(computation, following, like or instruction)

    @classmethod
    def new(
        cls,
        module: Module,
        name: str,
        shapes: Sequence[Shape | str] = (),
        before: Computation | None = None,
        *,
        like: Instruction | None = None,
    ) -> Builder:
        """Creates a builder for a new computation with a parameter for each shape.

        Args:
            module: The module to which `finish` adds the computation.
            name: Requested name, made unique.
            shapes: Shapes of the parameters, as values or text.
            before: Computation to insert before; None appends.
            like: Instruction to copy metadata and sharding from; None copies nothing.

        Raises:
            EditError: A shape is invalid.

        >>> b = Builder.new(Module("m"), "sum", [shape_of("f32"), shape_of("f32")])
        >>> print(b.finish(b.add(*b.computation.parameters)))
        ENTRY %sum (param_0: f32[], param_1: f32[]) -> f32[] {
          %param_0 = f32[] parameter(0)
          %param_1 = f32[] parameter(1)
          ROOT %add = f32[] add(%param_0, %param_1)
        }
        """
        builder = cls(detached_computation(module, name), None, None, before)
        for shape in shapes:
            builder.parameter(values.shape(shape, f"a parameter of {name}"))
        builder.like = like
        return builder

    def finish(self, root: Instruction) -> Computation:
        """Sets the root and returns the computation, after adding it to the module if it is new.

        Raises EditError if `root` is in another computation, or if the module rejects the computation.
        """
        self.computation.root = root
        module = self.computation.module
        if module is not None and self.computation._is_draft:
            module.add(self.computation, self._next)
        return self.computation

    # ---- any opcode

    def op(
        self,
        opcode: str,
        operands: Sequence[Operand] = (),
        *,
        shape: Shape | str | None = None,
        name: str | None = None,
        argument: int | Literal | None = None,
        **attributes: Any,
    ) -> Instruction:
        """Adds an instruction of any opcode, and returns it.

        Args:
            opcode: The opcode.
            operands: Instructions, or numbers, which become constants with the type of the other operands, and with
                their sizes for elementwise operations.
            shape: The result shape; required if the operands do not determine it, otherwise it may add a layout.
            name: Requested name.
            argument: The number of a parameter or the literal of a constant.
            attributes: Attributes in any form that can be converted to their values: a list, text, a mapping, the name
                of a computation. None omits an attribute.

        Raises:
            EditError: The instruction would be invalid.
        """
        operands = number_operands(self, opcode, operands)
        row = opcodes.opcode(opcode)
        named = {attribute_name(row, key): value for key, value in attributes.items() if value is not None}
        own_name = self._name(name or opcode)
        if shape is not None:
            shape = values.shape(shape, own_name)
        new = Instruction(own_name, opcode, shape, operands, {}, argument)
        named = {
            key: values.attribute(new, opcode, key, self._called(key, value)) for key, value in named.items()
        }
        new._attributes = named = {**self._inherited(), **named}
        found = new._shape = self._shape(new, row, shape)
        like = self.like
        if (
            like is not None
            and like.sharding is not None
            and "sharding" not in named
            and like.shape is not None
            and like.shape.text_without_layout() == found.text_without_layout()
        ):
            new._attributes = {**named, "sharding": like.sharding}
        last = self._last
        is_gone = self.place is not None and self.place.computation is None
        if is_gone and last is not None and last.computation is self.computation:
            self.place = Builder.after(last).place
        self._last = new
        return self.computation.add(new, self.place)

    def _called(self, key: str, value: Any) -> Any:
        """The computation that an attribute calls by its name; other values as they are."""
        info, module = ATTRIBUTES.get(key), self.computation.module
        if module is None or info is None or info.kind.form is not Multiplicity.COMPUTATION:
            return value
        name = value.removeprefix("%") if isinstance(value, str) else ""
        return next((c for c in module.computations if c.name == name), value) if name else value

    def _inherited(self) -> dict[str, Any]:
        like = self.like._attributes if self.like is not None else {}
        own = {k: like[k] for k in INHERITED if k in like}
        return dict(derived_attributes(own)) if own else own

    def _name(self, name: str) -> str:
        module = self.computation.module
        if module is not None:
            return module.instruction_names.unique(name)
        number, unique = 0, name
        while unique in self.computation:
            number += 1
            unique = f"{name}.{number}"
        return unique

    def _shape(self, new: Instruction, row: Opcode | None, shape: Shape | None) -> Shape:
        """The result's shape, with layouts where the operands have some."""
        if row is None or row.shape_rule is None:
            if shape is None:
                if row is None:
                    raise EditError(
                        f"{new.opcode} is not an opcode",
                        opcode_suggested(new.opcode) or "give its shape=",
                    )
                raise EditError(f"{new.opcode} needs shape=, since its operands do not determine it")
            return shape
        if new.opcode == "tuple" and all(o.shape is not None for o in new.operands):
            return Shape.tuple(tuple(o.shape for o in new.operands if o.shape is not None))
        key = None
        if shape is None and (decisive := _decisive(row)) is not None:
            given = new._attributes
            own = tuple([given.get(name) for name in decisive]) if decisive else ()
            key = row.name, tuple([o._head.shape for o in new._operands]), own
            known: Shape | None = _SHAPES.results.get(key)
            if known is not None:
                return known
        # What names other computations is seen through the module, which the instruction is not yet in.
        new._computation = self.computation
        try:
            inferred = infer_shape(new)
        except (ShapeInferenceError, CannotInfer) as error:
            raise EditError(f"{new.opcode}({', '.join(o.name for o in new.operands)}): {error}") from None
        finally:
            new._computation = None
        found = shape if shape is not None else laid_out(inferred, new)
        if key is not None:
            _SHAPES.put(key, found)
        return found

    # ---- opcodes whose payload or open shape is better said otherwise

    def constant(
        self, value: Any, element_type: ElementType | str | None = None, name: str | None = None
    ) -> Instruction:
        """Adds a constant, and returns it.

        Args:
            value: A `Literal`, an array, a number, or a list of numbers.
            element_type: The element type, or its name, to which arrays are converted. None uses that of the array or
                numpy scalar. A literal keeps its own.
            name: Requested name; None uses the opcode.

        Raises:
            EditError: A Python number or list has no element type, or the type cannot represent a number.
            KeyError: No element type has this name.
            TypeError: No element type corresponds to the array's dtype.
        """
        if not isinstance(value, Literal):
            import numpy as np

            if element_type is None and not hasattr(value, "dtype"):
                raise EditError(
                    f"a constant of {value!r} needs its element type: b.constant({value!r}, 'f32'), "
                    f"or b.full_like(x, {value!r}) for the type and sizes of x"
                )

            type_ = type_meant(element_type) if element_type is not None else None
            array = np.asarray(value)
            if array.dtype.kind in "OSUmM":
                raise EditError(f"a constant is a number, an array or a Literal, not {type(value).__name__}")
            if type_ is not None and not hasattr(value, "dtype"):
                for number in array.reshape(-1).tolist():
                    check_number(number, type_)
            value = Literal.from_array(array.astype(type_.dtype) if type_ is not None else array)
        shape = value.shape
        if (shape.is_array and not shape.dimensions) or not self._uses_layouts():
            shape = shape.without_layout()
        return self.op("constant", shape=shape, argument=value, name=name)

    def _uses_layouts(self) -> bool:
        return any(
            leaf.layout is not None for i in self.computation if i.shape for _, leaf in i.shape.leaves()
        )

    def parameter(self, shape: Shape, name: str | None = None) -> Instruction:
        """Adds the next parameter of a computation without callers. If it has callers, use `rewrite.add_parameter`.

        The default name is `param_N`.
        """
        number = sum(i.opcode == "parameter" for i in self.computation)
        return self.op("parameter", shape=shape, argument=number, name=name or f"param_{number}")

    def parameter_number(self, number: int) -> Instruction:
        """Returns the existing parameter `number`. Raises IndexError if there is none."""
        return self.computation.parameters[number]

    def get_tuple_element(self, value: Instruction, index: int, **settings: Any) -> Instruction:
        """Adds a `get-tuple-element` of element `index`. Further keywords are those of `op`, such as `name`."""
        return self.op("get-tuple-element", (value,), index=index, **settings)

    def tuple(self, *elements: Instruction, **settings: Any) -> Instruction:
        """Adds a `tuple` of these elements. Keywords are those of `op`, such as `name`."""
        return self.op("tuple", elements, **settings)

    def convert(
        self,
        value: Instruction,
        element_type: ElementType | str | None = None,
        *,
        shape: Shape | str | None = None,
        **settings: Any,
    ) -> Instruction:
        """Adds a `convert` of a value to another element type, or to `shape=`.

        Further keywords are those of `op`. Raises TypeError unless exactly one of `element_type` and `shape` is given,
        and KeyError for an unknown name of an element type.
        """
        one_of("convert", element_type=element_type, shape=shape)
        if element_type is not None:
            shape = retyped(_shape(value), shape_of(element_type).element_type)
        return self.op("convert", (value,), shape=shape, **settings)

    def reshape(
        self,
        value: Instruction,
        dimensions: Iterable[int] | None = None,
        *,
        shape: Shape | str | None = None,
        **settings: Any,
    ) -> Instruction:
        """Adds a `reshape` of a value to other sizes, or to `shape=`.

        Further keywords are those of `op`. Raises TypeError unless exactly one of `dimensions` and `shape` is given, and
        EditError if the element counts differ.
        """
        one_of("reshape", dimensions=dimensions, shape=shape)
        if dimensions is not None:
            shape = self._like(value, dimensions)
        return self.op("reshape", (value,), shape=shape, **settings)

    def broadcast(
        self,
        value: Instruction,
        sizes: Iterable[int] | None = None,
        dimensions: Iterable[int] = (),
        *,
        shape: Shape | str | None = None,
        **settings: Any,
    ) -> Instruction:
        """Adds a `broadcast` of a value to these sizes, or to `shape=`.

        Operand dimension i becomes result dimension `dimensions[i]`. Further keywords are those of `op`. Raises TypeError
        unless exactly one of `sizes` and `shape` is given.
        """
        one_of("broadcast", sizes=sizes, shape=shape)
        if sizes is not None:
            shape = self._like(value, sizes)
        return self.op("broadcast", (value,), shape=shape, dimensions=tuple(dimensions), **settings)

    def slice(
        self,
        value: Instruction,
        starts: Iterable[int] | None = None,
        limits: Iterable[int] | None = None,
        strides: Iterable[int] | None = None,
        *,
        slice: SliceDimensions | Sequence[Sequence[int]] | str | None = None,
        **settings: Any,
    ) -> Instruction:
        """Adds a `slice` of a value from start to limit by stride in each dimension, or `slice="{[0:2], [0:8:2]}"`.

        Strides are 1 by default. Further keywords are those of `op`. Raises TypeError unless exactly one of `starts` (with
        `limits`) and `slice` is given, and EditError if a length is not the number of dimensions.
        """
        one_of("slice", starts=starts, slice=slice)
        if starts is None:
            return self.op("slice", (value,), slice=slice, **settings)
        if limits is None:
            raise TypeError("slice needs limits after starts")
        steps = strides if strides is not None else [1] * _shape(value).rank
        bounds = [sizes_of(one) for one in (starts, limits, steps)]
        rank = _shape(value).rank
        if any(len(one) != rank for one in bounds):
            raise EditError(
                f"slice takes starts, limits and strides for each of the {rank} dimensions of {value.name}, "
                f"not {', '.join(str(len(one)) for one in bounds)}"
            )
        ranges = tuple(SliceDimension(*r) for r in zip(*bounds, strict=True))
        return self.op("slice", (value,), slice=SliceDimensions(ranges), **settings)

    def compare(
        self, a: Operand, b: Operand, direction: ComparisonDirection | str, **settings: Any
    ) -> Instruction:
        """Adds an elementwise `compare` of two values in a `direction` such as `"LT"`.

        Keywords are those of `op`. Raises ValueError for an unknown direction.
        """
        return self.op("compare", (a, b), direction=_direction(direction), **settings)

    def iota(
        self,
        shape: Shape | str,
        dimension: int | None = None,
        *,
        iota_dimension: int | None = None,
        **settings: Any,
    ) -> Instruction:
        """Adds an `iota` of a shape, which counts from 0 along one dimension.

        Further keywords are those of `op`. Raises TypeError unless exactly one of `dimension` and `iota_dimension`, its
        name in HLO text, is given.
        """
        one_of("iota", dimension=dimension, iota_dimension=iota_dimension)
        number = iota_dimension if dimension is None else dimension
        return self.op("iota", shape=shape, iota_dimension=number, **settings)

    def bitcast(self, value: Instruction, shape: Shape, **settings: Any) -> Instruction:
        """Adds a `bitcast` of a value to another shape and layout of the same bytes. Keywords are those of `op`."""
        return self.op("bitcast", (value,), shape=shape, **settings)

    def full_like(self, value: Instruction, number: complex) -> Instruction:
        """Adds a constant, broadcast to the shape of a value, and returns the result.

        Raises EditError if the element type cannot represent the number.
        """
        shape = _shape(value)
        scalar = self.constant(number, shape.element_type)
        if not shape.dimensions:
            return scalar
        if shape.layout is None:
            return self.broadcast(scalar, shape.dimensions)
        whole = _in_default_memory(Shape(shape.element_type, shape.dimensions, layout=shape.layout))
        return self.op("broadcast", (scalar,), shape=whole, dimensions=())

    def _like(self, value: Instruction, dimensions: Iterable[int]) -> Shape:
        """The shape of these sizes, with a default layout where the operand has a layout."""
        old = _shape(value)
        shape = Shape(old.element_type, sizes_of(dimensions))
        has_layouts = self._uses_layouts() if not old.rank else old.layout is not None
        return default_laid_out(shape) if has_layouts else shape


def laid_out(shape: Shape, instruction: Instruction) -> Shape:
    """Returns an inferred shape with layouts if operands or called computations have layouts.

    A tuple element, call and the like keep the layout of the value that they forward, a copy keeps its operand's except
    for the memory space. Otherwise an array takes the layout of an operand with the same sizes, preferably of the same
    type, without memory space; for opcodes that keep layouts, such as a slice, that of an operand of the same rank;
    else the descending layout.
    """
    if instruction.opcode == "copy" and instruction.operands[0].shape is not None:
        return _in_default_memory(instruction.operands[0].shape)
    given = _passed_on(instruction)
    if given is not None and given.text_without_layout() == shape.text_without_layout():
        return given
    sources = [leaf for o in instruction.operands if o.shape is not None for _, leaf in o.shape.leaves()]
    if not any(leaf.layout is not None for leaf in sources):
        return shape
    return _with_layouts(shape, sources, instruction.opcode in traits.KEEPS_LAYOUT)


def _with_layouts(shape: Shape, sources: list[Shape], keeps: bool) -> Shape:
    if shape.is_tuple:
        return Shape.tuple(tuple(_with_layouts(part, sources, keeps) for part in shape.tuple_shapes))
    if not shape.is_array:
        return shape
    known = [s for s in sources if s.layout is not None and s.dimensions]
    alike = [s for s in known if s.dimensions == shape.dimensions]
    if not alike and keeps:
        alike = [s for s in known if s.rank == shape.rank]
    for source in sorted(alike, key=lambda source: source.element_type is not shape.element_type):
        assert source.layout is not None
        bits = source.layout.element_size_in_bits if source.element_type is shape.element_type else 0
        return shape.with_layout(attrs.evolve(source.layout, memory_space=0, element_size_in_bits=bits))
    return default_laid_out(shape)


def _in_default_memory(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple(tuple(map(_in_default_memory, shape.tuple_shapes)))
    if shape.layout is None:
        return shape
    return shape.with_layout(attrs.evolve(shape.layout, memory_space=0))


def default_laid_out(shape: Shape) -> Shape:
    """Returns a shape with descending layouts for all arrays without layout, except for scalars."""
    if shape.is_tuple:
        return Shape.tuple(tuple(map(default_laid_out, shape.tuple_shapes)))
    if shape.is_array and shape.layout is None and shape.dimensions:
        return shape.with_layout(default_layout(shape.rank))
    return shape


_GIVES_OPERAND = traits.FORWARDS_OPERAND | {"while", "dynamic-update-slice"}
"""Opcodes whose result has the shape and layout of operand 0."""


def _passed_on(instruction: Instruction) -> Shape | None:
    """The shape of the very value that an instruction hands on; None for one that computes."""
    operands = instruction.operands
    if instruction.opcode == "get-tuple-element" and operands[0].shape is not None:
        index: int = instruction.attributes["index"]
        return operands[0].shape.tuple_shapes[index]
    if instruction.opcode in ("call", "fusion"):
        return instruction.called_computations[0].shape
    if instruction.opcode in _GIVES_OPERAND:
        return operands[0].shape
    if instruction.opcode == "conditional":
        return instruction.called_computations[0].shape
    return None


def one_of(opcode: str, **given: object) -> None:
    """Raises TypeError unless exactly one of several alternative arguments is given."""
    if sum(value is not None for value in given.values()) != 1:
        raise TypeError(f"{opcode} takes exactly one of {', '.join(f'{name}=' for name in given)}")


def attribute_name(row: Opcode | None, key: str) -> str:
    """Returns the attribute's name in HLO text for a keyword: `control-predecessors` for `control_predecessors`."""
    if row is not None and key not in ATTRIBUTES:
        for name in opcodes.allowed_attributes(row):
            if name.replace("-", "_") == key.rstrip("_"):
                return name
    return key


_COMPARISONS = {"==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
"""Directions by Python's operators."""


def _direction(given: ComparisonDirection | str) -> ComparisonDirection:
    try:
        return ComparisonDirection(given)
    except ValueError:
        known = [one.value for one in ComparisonDirection]
        meant = [_COMPARISONS[given]] if given in _COMPARISONS else nearest(str(given), known)
        raise EditError(
            f"{given!r} is not a direction of comparison", suggestion(meant) or f"use {', '.join(known)}"
        ) from None


def _shape(value: Instruction) -> Shape:
    if value.shape is None:
        raise EditError(f"the shape of {value.name} is unknown")
    return value.shape


def retyped(shape: Shape, element_type: ElementType) -> Shape:
    """Returns a shape with another element type in the same layout, without memory space.

    An element size in bits is kept for sub-byte integers only, as that of the new type.
    """
    layout = shape.layout
    if layout is not None:
        bits = element_type.bits if element_type.bits < 8 and element_type.is_integral else 0
        layout = attrs.evolve(
            layout, element_size_in_bits=bits if layout.element_size_in_bits else 0, memory_space=0
        )
    return Shape(element_type, shape.dimensions, shape.dynamic_dimensions, layout)
