"""Zeros in the place of a value."""

from __future__ import annotations

import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.builder import Builder


def has_zero(shape: Shape) -> bool:
    """Returns True if zeros of a shape can be created: static arrays of known types, and not too many."""
    leaves = [leaf for _, leaf in shape.leaves()]
    return len(leaves) <= 4 and all(
        leaf.is_array and leaf.is_static and leaf.element_type.dtype_name for leaf in leaves
    )


def zero_of(b: Builder, shape: Shape, scalars: dict[str, Instruction]) -> Instruction:
    """Creates zeros of a shape; `scalars` caches the constants that are broadcast."""
    if shape.is_tuple:
        return b.tuple(*(zero_of(b, part, scalars) for part in shape.tuple_shapes), shape=shape)
    kind = str(shape.element_type)
    scalar_shape = shape if not shape.rank else Shape(shape.element_type, ())
    key = kind if shape.rank else str(shape)
    if key not in scalars:
        zero = Literal.from_array(np.zeros((), shape.element_type.dtype), scalar_shape)
        scalars[key] = b.op("constant", shape=scalar_shape, argument=zero, name="zero")
    scalar = scalars[key]
    return b.op("broadcast", (scalar,), shape=shape, dimensions=()) if shape.rank else scalar
