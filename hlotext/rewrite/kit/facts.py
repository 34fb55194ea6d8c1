"""Facts about an instruction for rules and passes: its shape, its sizes, its users, the numbers that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from hlotext import layout as layouts
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind

if TYPE_CHECKING:
    import numpy as np
else:
    np = late_module("numpy")

PRED = ELEMENT_TYPES["pred"]


def shape_of(i: Instruction) -> Shape:
    """Returns the shape of an instruction, which must be known."""
    assert i.shape is not None
    return i.shape


def static(shape: Shape) -> Shape:
    """Returns the shape with dynamic sizes replaced by their bounds (`ShapeUtil::MakeStaticShape`).

    Raises ValueError for an unbounded dimension.
    """
    if shape.is_unbounded:
        raise ValueError(f"{shape} has an unbounded dimension")
    return shape if shape.is_static else layouts.make_static(shape)


def sizes(i: Instruction) -> tuple[int, ...]:
    """Returns the dimension sizes of an instruction's result."""
    return shape_of(i).dimensions


def dims(i: Instruction) -> tuple[int, ...]:
    """Returns the attribute `dimensions`; empty if absent."""
    return tuple(i.attributes.get("dimensions", ()))


def type_of(i: Instruction) -> ElementType:
    """Returns the element type of an instruction's result."""
    return shape_of(i).element_type


def is_whole(i: Instruction) -> bool:
    """Returns True if the element type is an integer type (`IsIntegralType`)."""
    return type_of(i).is_integral


def is_pred(i: Instruction) -> bool:
    """Returns True if the element type is `pred`."""
    return type_of(i) is PRED


def is_scalar(i: Instruction) -> bool:
    """Returns True if the result is an array without dimensions."""
    return shape_of(i).is_array and not sizes(i)


def is_one_element(i: Instruction) -> bool:
    """Returns True if the result is an array with a single element (`IsEffectiveScalar`)."""
    return shape_of(i).is_array and all(size == 1 for size in sizes(i))


def is_constant(i: Instruction) -> bool:
    """Returns True if an instruction is a constant."""
    return i.opcode == "constant"


def splat_constant(i: Instruction) -> Instruction | None:
    """Returns the scalar constant that an instruction broadcasts, or None (`Broadcast(ConstantScalar())`)."""
    if i.opcode == "broadcast" and is_constant(i.operands[0]) and is_scalar(i.operands[0]):
        return i.operands[0]
    return None


def array_of(i: Instruction) -> np.ndarray[Any, Any] | None:
    """Returns the elements of a constant, or None for others and if any element is elided."""
    return i.literal.known_array if i.literal is not None else None


def is_all(i: Instruction, value: float) -> bool:
    """Returns True if every element equals a number, for a constant or a broadcast of one (`IsAll`)."""
    while i.opcode == "broadcast":
        i = i.operands[0]
    array = array_of(i)
    if array is None or not array.size:
        return False
    if array.dtype == bool and value not in (0, 1):
        return False
    type_ = type_of(i)
    if value < 0 and type_.kind in (TypeKind.UNSIGNED, TypeKind.PREDICATE):
        return False
    return bool((array.astype(np.complex128 if type_.is_complex else np.float64) == value).all())


def constant_value(i: Instruction) -> float | None:
    """Returns the number of a constant with one element, or None for others (`GetConstantValue`)."""
    array = array_of(i)
    if array is None or array.size != 1 or not (type_of(i).is_floating or is_whole(i)):
        return None
    return float(array.reshape(-1)[0]) if type_of(i).is_floating else int(array.reshape(-1)[0])


def one_user(i: Instruction) -> bool:
    """Returns True if an instruction has exactly one user."""
    return len(i.user_view) == 1


def one_use(i: Instruction) -> bool:
    """Returns True if an instruction has exactly one use: one operand of one user."""
    users = i.users
    return len(users) == 1 and users[0].operands.count(i) == 1


def count(i: Instruction) -> int:
    """Returns the number of elements of an instruction's result."""
    return shape_of(i).element_count


def is_empty(i: Instruction) -> bool:
    """Returns True if the result has no elements (`IsZeroElementArray`)."""
    return 0 in sizes(i)


def resized(shape: Shape, new_sizes: Sequence[int]) -> Shape:
    """Returns the shape with other sizes and the same layout."""
    return Shape(shape.element_type, tuple(new_sizes), layout=shape.layout)


def without_dimensions(shape: Shape, numbers: Iterable[int]) -> Shape:
    """Returns the shape without some dimensions (`ShapeUtil::DeleteDimensions`)."""
    gone = set(numbers)
    kept = [d for d in range(shape.rank) if d not in gone]
    layout = shape.layout
    if layout is not None:
        place = {d: n for n, d in enumerate(kept)}
        order = tuple(place[d] for d in layout.minor_to_major if d in place)
        layout = attrs.evolve(layout, minor_to_major=order) if kept or layout.tiles else None
    return Shape(
        shape.element_type, tuple(shape.dimensions[d] for d in kept), tuple(shape.dynamic_dimensions[d] for d in kept),
        layout,
    )  # fmt: skip


def without_ones(shape: Shape) -> Shape:
    """Returns the shape without dimensions of size 1 (`DropDegenerateDimensions`)."""
    return without_dimensions(shape, [d for d, size in enumerate(shape.dimensions) if size == 1])


def is_typed(i: Instruction) -> bool:
    """Returns True if the shapes of an instruction and its operands are known."""
    return i.shape is not None and all(o.shape is not None for o in i.operands)


def is_unused(i: Instruction) -> bool:
    """Returns True if an instruction has no users and is not the root (`HloInstruction::IsDead`)."""
    return not i.user_view and not i.is_root


def is_unbounded(i: Instruction) -> bool:
    """Returns True if the result or an operand has an unbounded dimension.

    Tuple operands are ignored: the instructions that extract their elements are checked themselves.
    """
    arrays = (o.shape for o in i.operands if o.shape is not None and not o.shape.is_tuple)
    return shape_of(i).is_unbounded or any(shape.is_unbounded for shape in arrays)


# ---- memory


def moves_nothing(source: Shape, target: Shape) -> bool:
    """Returns True if a reshape between arrays with layouts leaves every element in place."""
    if not _can_compare(source, target):
        return False
    if _tiles(source) or _tiles(target):
        return _is_same_memory(source, target)
    return layouts.reshape_is_bitcast(source, target)


def _can_compare(a: Shape, b: Shape) -> bool:
    plain = all(s.is_array and (s.layout is not None or not s.dimensions) and s.is_static for s in (a, b))
    return plain and all(s.layout is None or len(s.layout.minor_to_major) == s.rank for s in (a, b))


MAX_COMPARED = 1 << 20
"""Elements of tiled arrays that are compared one by one."""


def _tiles(shape: Shape) -> tuple[Any, ...]:
    return shape.layout.tiles if shape.layout is not None else ()


def _is_same_memory(a: Shape, b: Shape) -> bool:
    """True if the elements of two tiled arrays, in logical order, lie in the same places."""
    count = a.element_count
    if a.element_type is not b.element_type or count != b.element_count or count > MAX_COMPARED:
        return False
    if layouts.allocated_bytes(a) != layouts.allocated_bytes(b):
        return False
    numbers = np.arange(count)
    first, second = (
        layouts.linear_indices(shape, np.stack(np.unravel_index(numbers, shape.dimensions), -1))
        if shape.dimensions
        else np.zeros(1, np.int64)
        for shape in (a, b)
    )
    return bool(np.array_equal(first, second))
