"""Agreement of a stated result shape with the inferred one."""

from __future__ import annotations

import enum

from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer.shapes import compatible, without_layout


class Agreement(enum.Enum):
    """Difference between a stated and an inferred shape, ignoring layouts."""

    EQUAL = "nothing"
    FLOAT_PRECISION = "in float precision; XLA allows this once its passes mix precisions"
    DYNAMIC = "in which dimensions are dynamic; XLA's verifier ignores this"
    NONE = "the shape"


def agreement(opcode: str, stated: Shape, inferred: Shape) -> Agreement:
    """Compares the stated shape of an instruction with the inferred shape, and returns the kind of difference.

    For opcodes that only move data (`traits.KEEPS_TYPES`), mixed precision counts as a different shape.
    """
    stated = without_layout(stated)
    if stated == inferred:
        return Agreement.EQUAL
    if compatible(stated, inferred):
        return Agreement.DYNAMIC
    if opcode not in traits.KEEPS_TYPES and compatible(stated, inferred, any_float=True):
        return Agreement.FLOAT_PRECISION
    return Agreement.NONE
