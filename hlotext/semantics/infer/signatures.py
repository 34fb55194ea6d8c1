"""Signatures of the computations that an operation calls."""

from __future__ import annotations

from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op, ProgramShape
from hlotext.semantics.infer.shapes import compatible, scalar
from hlotext.semantics.message_text import plural


def check_parameters(op: Op, attribute: str, program: ProgramShape, operands: tuple[Shape, ...]) -> None:
    """Raises ShapeInferenceError unless the parameters have the operands' shapes (`CheckOperandAndParameter`)."""
    if len(program.parameters) != len(operands):
        raise ShapeInferenceError(
            f"{attribute} of {op.opcode} takes {plural(len(program.parameters), 'parameter')}, not {len(operands)}",
            attribute=attribute,
        )
    for number, (parameter, operand) in enumerate(zip(program.parameters, operands, strict=True)):
        if not compatible(parameter, operand):
            raise ShapeInferenceError(
                f"parameter {number} of {attribute} is {parameter}, but receives {operand}",
                attribute=attribute,
            )


def check_scalar_parameters(
    op: Op, attribute: str, program: ProgramShape, types: tuple[ElementType, ...]
) -> None:
    """Raises ShapeInferenceError unless the parameters are scalars of these types. Floating-point types may mix."""
    if len(program.parameters) != len(types):
        raise ShapeInferenceError(
            f"{attribute} of {op.opcode} takes {plural(len(program.parameters), 'parameter')}, not {len(types)}",
            attribute=attribute,
        )
    for number, (parameter, element_type) in enumerate(zip(program.parameters, types, strict=True)):
        if not compatible(parameter, scalar(element_type), any_float=True):
            raise ShapeInferenceError(
                f"parameter {number} of {attribute} must be {element_type}[], not {parameter}",
                attribute=attribute,
            )


def reduced_types(
    op: Op, attribute: str, inits: tuple[Shape, ...], element_types: tuple[ElementType, ...]
) -> tuple[ElementType, ...]:
    """Returns the element types that a reduction computation returns, one for each reduced array.

    Its parameters are the accumulators, then one element of each array, all scalars, and it returns the accumulators.
    Raises ShapeInferenceError otherwise (`VerifyReducerShape`).
    """
    program = op.program(attribute)
    result = program.result
    results = result.tuple_shapes if result.is_tuple else (result,)
    if len(results) != len(inits) or not all(r.is_array and not r.dimensions for r in results):
        raise ShapeInferenceError(
            f"{attribute} of {op.opcode} must return {plural(len(inits), 'scalar')}, not {result}",
            attribute=attribute,
        )
    given = tuple(r.element_type for r in results)
    check_scalar_parameters(op, attribute, program, given + given)
    check_scalar_parameters(op, attribute, program, given + element_types)
    for accumulator, parameter in zip(results, program.parameters, strict=False):
        if not compatible(accumulator, parameter):
            raise ShapeInferenceError(
                f"{attribute} of {op.opcode} takes the accumulator as {parameter}, but returns {accumulator}",
                attribute=attribute,
            )
    for accumulator, init in zip(results, inits, strict=True):
        if not compatible(accumulator, init, any_float=True):
            raise ShapeInferenceError(
                f"{attribute} of {op.opcode} accumulates {accumulator}, but starts from {init}",
                attribute=attribute,
            )
    return given
