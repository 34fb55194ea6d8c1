"""Layouts of the program's arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hlotext.edit import dirty_lines
from hlotext.findings.errors import HloSyntaxError
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.shape import ComputationLayout, Layout, Shape
from hlotext.rewrite.kit.builder import Builder
from hlotext.syntax.read_terms import parse_layout

Index = tuple[int, ...]
"""Index of an array in a tuple; `()` for an array."""


def change_entry_layout(
    module: Module,
    parameters: Mapping[int | tuple[int, Index], Layout | str] | None = None,
    results: Mapping[Index, Layout | str] | Layout | str | None = None,
) -> None:
    """Changes the layouts of a program's arguments and results, and `entry_computation_layout` in the header.

    Before layout assignment, only the header and the entry's own shapes change. In a scheduled module, where layouts
    are final, copies are inserted after parameters and before the root to convert from and to the program's layouts.

    Args:
        module: The module, modified in place.
        parameters: Layouts by parameter number, or by number and shape index for an array inside a tuple.
        results: The layout of the result, or of arrays in it by index. Layouts are values or text such as `"{0,1}"`;
            where arrays are tiled, those without tiles get the TPU compiler's.

    Raises:
        EditError: There is no such array, or the layout does not fit it. Nothing is changed then.

    >>> import hlotext as hlo
    >>> m = hlo.parse("HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}\\n"
    ...     "ENTRY e { x = f32[2,3]{1,0} parameter(0)  ROOT y = f32[2,3]{1,0} sine(x) }")
    >>> change_entry_layout(m, {0: "{0,1}"})
    >>> print(m)
    HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{1,0}}
    ENTRY e { x = f32[2,3]{0,1} parameter(0)
      copy = f32[2,3]{1,0} copy(x)  ROOT y = f32[2,3]{1,0} sine(copy) }
    """
    expect_module(module)
    entry = module.entry
    if isinstance(results, Layout | str):
        results = {(): results}
    with module.transaction():
        for key, layout in (parameters or {}).items():
            number, index = key if isinstance(key, tuple) else (key, ())
            if not 0 <= number < len(entry.parameters):
                raise EditError(f"{entry.name} has no parameter {number}")
            _change_parameter(module, entry.parameters[number], index, _layout(layout))
        for index, layout in (results or {}).items():
            _change_result(module, index, _layout(layout))
        if ENTRY_LAYOUT not in module.attributes:
            shapes = tuple(map(_known_shape, entry.parameters))
            module.attributes[ENTRY_LAYOUT] = ComputationLayout(shapes, _known_shape(entry.root))


def _layout(given: Layout | str) -> Layout:
    if not isinstance(given, str):
        return given
    try:
        return parse_layout(given)
    except HloSyntaxError as error:
        raise EditError(f"{given!r} is not a layout: {error.diagnostic.message}") from None


def _change_parameter(module: Module, parameter: Instruction, index: Index, layout: Layout) -> None:
    """Gives an array of a parameter another layout, and behind it a copy in the old one where that counts."""
    old = _known_shape(parameter)
    new = _laid_out(old, index, layout, parameter.name)
    if new == old:
        return
    users = parameter.users
    was_root = parameter.is_root
    parameter.change(shape=new, typed=False)
    if not module.is_scheduled or not (users or was_root):
        return
    b = Builder.after(parameter)
    again = _converted(b, parameter, old, new)
    for user in users:
        user.change(operands=[again if o is parameter else o for o in user.operands], typed=False)
    if was_root:
        assert parameter.computation is not None
        parameter.computation.root = again


def _change_result(module: Module, index: Index, layout: Layout) -> None:
    """Gives an array of the result another layout, by a copy in front of the root where layouts are final."""
    root = module.entry.root
    old = _known_shape(root)
    new = _laid_out(old, index, layout, root.name)
    if new == old:
        return
    if not module.is_scheduled:
        root.change(shape=new, typed=False)
        return
    module.entry.root = _converted(Builder.after(root), root, new, old)


def _converted(b: Builder, value: Instruction, wanted: Shape, given: Shape) -> Instruction:
    """A value with copies of the arrays that lie otherwise than wanted."""
    if wanted == given:
        return value
    if not wanted.is_tuple:
        return b.copy(value, shape=wanted)
    parts = []
    for number, (part, old) in enumerate(zip(wanted.tuple_shapes, given.tuple_shapes, strict=True)):
        element = b.get_tuple_element(value, number, shape=old)
        parts.append(_converted(b, element, part, old))
    return b.tuple(*parts, shape=wanted)


def _known_shape(instruction: Instruction) -> Shape:
    if instruction.shape is None:
        raise EditError(f"the shape of {instruction.name} is unknown")
    return instruction.shape


def _laid_out(shape: Shape, index: Index, layout: Layout, name: str) -> Shape:
    """The shape with another layout for one of its arrays."""

    def change(array: Shape) -> Shape:
        if not array.is_array or sorted(layout.minor_to_major) != list(range(array.rank)):
            raise EditError(f"{layout} is not a layout for {array.text_without_layout()} in {name}")
        return dirty_lines.laid_out(array.with_layout(layout), tiled=dirty_lines.has_tiles(array))

    return _at(shape, index, change, name)


def _at(shape: Shape, index: Index, change: Callable[[Shape], Shape], name: str) -> Shape:
    if not index:
        return change(shape)
    number, *rest = index
    if not shape.is_tuple or not 0 <= number < len(shape.tuple_shapes):
        raise EditError(f"{name} has no element {{{','.join(map(str, index))}}}")
    parts = list(shape.tuple_shapes)
    parts[number] = _at(parts[number], tuple(rest), change, name)
    return Shape.tuple(tuple(parts))
