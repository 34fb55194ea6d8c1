"""Shape inference: the shape of an instruction's result, from its operands and attributes.

Rules are functions from an `Op` (operand shapes and attributes) to a shape, with one file per family of opcodes. The
opcode table names the rule of each opcode. Rules follow XLA's `ShapeInference` and `ShapeVerifier` and ignore layouts.
"""

from __future__ import annotations

from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer import (
    communication,
    contraction,
    control,
    elementwise,
    indexing,
    linear_algebra,
    movement,
    windows,
)
from hlotext.semantics.infer.agreement import Agreement, agreement
from hlotext.semantics.infer.errors import CannotInfer, ShapeInferenceError
from hlotext.semantics.infer.omitted_shapes import with_layouts
from hlotext.semantics.infer.op import Op, ProgramShape, op_of
from hlotext.semantics.infer.rules import RULES, Open, ShapeRule

__all__ = [
    "Agreement",
    "CannotInfer",
    "Op",
    "Open",
    "ProgramShape",
    "ShapeInferenceError",
    "ShapeRule",
    "agreement",
    "infer_left_out",
    "infer_op",
    "infer_shape",
    "rule_of",
]

FAMILIES = (communication, contraction, control, elementwise, indexing, linear_algebra, movement, windows)
"""The modules that hold the rules."""


def rule_of(opcode: str) -> ShapeRule | None:
    """Returns the shape rule of an opcode, or None if it has none.

    That is the case for unknown opcodes, and if operands do not affect the shape (`parameter`, `custom-call`).
    """
    row = opcodes.opcode(opcode)
    return RULES[row.shape_rule] if row is not None and row.shape_rule is not None else None


def infer_shape(instruction: Instruction) -> Shape:
    """Infers the shape of an instruction's result from its operands and attributes, without layouts.

    Undetermined parts (a convert's element type, a broadcast's sizes: see `Open`) are taken from the instruction's
    stated shape. Raises ShapeInferenceError if operands and attributes contradict each other, and CannotInfer if they
    do not determine the shape and the instruction states none. Results are cached by operation.
    """
    row = opcodes.opcode(instruction.opcode)
    if row is None or row.shape_rule is None:
        raise CannotInfer(f"the operands of {instruction.opcode} do not determine its result")
    rule = RULES[row.shape_rule]
    return infer_op(op_of(instruction, row, with_stated=rule.open is not Open.NOTHING))


def infer_left_out(instruction: Instruction) -> Shape:
    """Infers the shape of an op line without one, with the layout of XLA's parser. Raises the errors of `infer_shape`."""
    return with_layouts(instruction, infer_shape(instruction))


@weighted_cache(1 << 15)
def infer_op(op: Op) -> Shape:
    """Infers the result shape of an `Op`. Raises the errors of `infer_shape`."""
    rule = rule_of(op.opcode)
    if rule is None:
        raise CannotInfer(f"the operands of {op.opcode} do not determine its result")
    return rule.infer(op)
