"""Numbers among operands: constants of the type that they meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.values.types import ElementType, TypeKind

if TYPE_CHECKING:
    import numpy as np

    from hlotext.rewrite.kit.builder import Builder

    Operand: TypeAlias = Instruction | bool | int | float | complex | np.generic
    """An instruction, or a number that becomes a constant of the other operands' type."""


START_INDICES = {"dynamic-slice": 1, "dynamic-update-slice": 2}
"""Opcodes whose operands from one on are start indices."""


def number_operands(
    b: Builder, opcode: str, operands: Sequence[Any], like: Instruction | None = None
) -> tuple[Instruction, ...]:
    """Converts numbers among operands to constants, with the type of another operand, and for elementwise opcodes its
    sizes.

    `like` gives the type if all operands are numbers. Start indices have the type of another start index, or else s32.
    Raises EditError for a number without a type, and for one that the type cannot represent.
    """
    if all(isinstance(one, Instruction) for one in operands):
        return tuple(operands)
    if opcode in START_INDICES:
        first = START_INDICES[opcode]
        found = next((one for one in operands[first:] if isinstance(one, Instruction)), None)
        starts = [
            one
            if isinstance(one, Instruction)
            else number_like(b, one, found, is_whole=False)
            if found is not None
            else b.constant(one, "s32")
            for one in operands[first:]
        ]
        return (*number_operands(b, "", operands[:first]), *starts)
    own = operands[1:] if opcode == "select" else operands
    other = next((one for one in own if isinstance(one, Instruction)), like)
    is_whole = opcode in opcodes.ELEMENTWISE
    return tuple(
        one if isinstance(one, Instruction) else _constant(b, one, opcode, other, is_whole)
        for one in operands
    )


def _constant(b: Builder, value: Any, opcode: str, like: Instruction | None, is_whole: bool) -> Instruction:
    if not isinstance(value, bool | int | float | complex) and not hasattr(value, "dtype"):
        is_list = isinstance(value, list | tuple) and all(isinstance(one, Instruction) for one in value)
        way = "pass them one by one, with a star" if is_list else ""
        if isinstance(value, str):
            way = f"module.instruction({value!r}) finds one"
        elif not is_list and isinstance(value, list | tuple):
            way = "attributes are given by keyword, as in dimensions=(1, 0)"
        raise EditError(f"{opcode} takes instructions and numbers, not a {type(value).__name__}", way)
    if like is None:
        raise EditError(
            f"{value!r} has no operand to take its type from; b.constant({value!r}, 'f32') gives it one"
        )
    return number_like(b, value, like, is_whole=is_whole)


def number_like(b: Builder, value: Any, like: Instruction, *, is_whole: bool) -> Instruction:
    """Creates a constant with an instruction's element type, and with its sizes if `is_whole`.

    Raises EditError if the type cannot represent the number.
    """
    shape = like.shape
    if shape is None or not shape.is_array:
        raise EditError(f"{value} cannot take its type from {like.name}, which is not an array")
    given = getattr(value, "dtype", None)
    if given is not None and (given != shape.element_type.dtype or getattr(value, "shape", ())):
        raise EditError(f"a number of type {given} is not {shape.element_type.name} like {like.name}")
    check_number(value, shape.element_type)
    return b.full_like(like, value) if is_whole else b.constant(value, shape.element_type)


def check_number(value: Any, type_: ElementType) -> None:
    """Raises EditError if an element type cannot represent a Python number, such as 1.5 in s32 or 2 in pred."""
    if hasattr(value, "dtype"):
        return
    is_truth = isinstance(value, bool)
    if is_truth != (type_.kind is TypeKind.PREDICATE):
        raise EditError(f"{value!r} is not a value of type {type_.name}")
    if is_truth or type_.kind is TypeKind.COMPLEX:
        return
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, complex) or not (is_whole or type_.is_floating):
        raise EditError(f"{value!r} is not a value of type {type_.name}")
    if type_.kind in (TypeKind.SIGNED, TypeKind.UNSIGNED):
        bits = type_.bits
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if type_.kind is TypeKind.SIGNED else (0, (1 << bits) - 1)
        )
        if not low <= int(value) <= high:
            raise EditError(f"{value!r} is not a value of type {type_.name}")
