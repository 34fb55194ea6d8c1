"""What the rules share. The docstring of each rule is its test: `before => after`, in op lines whose
shapes are left out where they follow; what a part needs stands before it, with `;` behind.

In the examples `x y z` are f32[4,3], `i j` s32[4,3], `p q` pred[4,3], `w` is c64[4,3], `s` f32[], `n` s32[]; `f0 f1 f2` and
`i0 i1` are splats of those numbers, `yes no` of true and false, `fneg1` and `ineg1` of -1, `fhalf` of a half.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.rewriter import Rewrite

INTEGERS = frozenset({TypeKind.SIGNED, TypeKind.UNSIGNED})


def shape_of(i: Instruction) -> Shape:
    """The shape of an instruction that has one."""
    assert i.shape is not None
    return i.shape


def kind(i: Instruction) -> TypeKind:
    return shape_of(i).element_type.kind


def is_integer(i: Instruction) -> bool:
    return kind(i) in INTEGERS


def is_pred(i: Instruction) -> bool:
    return kind(i) is TypeKind.PREDICATE


def is_discrete(i: Instruction) -> bool:
    """Integers and truth values: what has no NaN and no signed zero."""
    return is_integer(i) or is_pred(i)


def is_floating(i: Instruction) -> bool:
    return kind(i) is TypeKind.FLOAT


def make(r: Rewrite, opcode: str, *operands: Instruction, **attributes: Any) -> Instruction:
    """A new instruction with the shape, and so the layout, of the one that it replaces."""
    return r.b.op(opcode, operands, shape=shape_of(r.instruction), **attributes)


def number(r: Rewrite, value: float) -> Instruction:
    """That number everywhere, in the shape of the instruction that it replaces."""
    shape = shape_of(r.instruction)
    scalar = r.b.constant(value, shape.element_type)
    return make(r, "broadcast", scalar, dimensions=()) if shape.dimensions else scalar


def same_sizes(a: Instruction, b: Instruction) -> bool:
    """Equal element types and sizes, layouts aside."""
    return shape_of(a).text_without_layout() == shape_of(b).text_without_layout()
