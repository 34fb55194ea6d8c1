"""Shape rules of what calls computations: call, fusion, map, while, conditional, asynchronous wrappers."""

from __future__ import annotations

from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op, ProgramShape
from hlotext.semantics.infer.rules import Open, rule
from hlotext.semantics.infer.shapes import (
    PRED,
    S32,
    U32,
    array,
    compatible,
    dimensions,
    is_scalar,
    same_type_or_floats,
    scalar,
)
from hlotext.semantics.infer.signatures import check_parameters, check_scalar_parameters
from hlotext.semantics.message_text import plural


@rule("call")
def infer_call(op: Op) -> Shape:
    """Infers the shape of a call: the result of the computation (`ShapeInference::InferCallShape`)."""
    program = op.program("to_apply")
    check_parameters(op, "to_apply", program, op.operands)
    return program.result


@rule("fusion")
def infer_fusion(op: Op) -> Shape:
    """Infers the shape of a fusion: the result of the fused computation, which may ignore the last operands.

    Corresponds to `ShapeVerifier::HandleFusion`.
    """
    program = op.program("calls")
    check_parameters(op, "calls", program, op.operands[: len(program.parameters)])
    return program.result


@rule("map")
def infer_map(op: Op) -> Shape:
    """Infers the shape of a map: the operands' sizes, with the type that `to_apply` returns. Scalars match any size.

    Corresponds to `ShapeInference::InferMapShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operands = op.arrays()
    full = operands[0]
    for number, operand in enumerate(operands):
        if compatible(operand, full, any_type=True):
            continue
        if not same_type_or_floats(operand.element_type, full.element_type) or not (
            is_scalar(operand) or is_scalar(full)
        ):
            raise ShapeInferenceError(f"map of different sizes: {full} and {operand}", operand=number)
        full = full if is_scalar(operand) else operand
    program = op.program("to_apply")
    check_scalar_parameters(op, "to_apply", program, tuple(o.element_type for o in operands))
    if not is_scalar(program.result):
        raise ShapeInferenceError(
            f"to_apply of map must return a scalar, not {program.result}", attribute="to_apply"
        )
    return array(program.result.element_type, dimensions(full))


@rule("while")
def infer_while(op: Op) -> Shape:
    """Infers the shape of a while: the operand's, which must also be that of the body's and condition's parameter and
    body's root.

    Corresponds to `ShapeInference::InferWhileShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    init = op.operand(0)
    body, condition = op.program("body"), op.program("condition")
    for name, program in (("condition", condition), ("body", body)):
        check_parameters(op, name, program, (init,))
    if not compatible(body.result, init):
        raise ShapeInferenceError(f"body takes {init}, but returns {body.result}", attribute="body")
    if condition.result != scalar(PRED):
        raise ShapeInferenceError(
            f"condition must return pred[], not {condition.result}", attribute="condition"
        )
    return init


@rule("conditional")
def infer_conditional(op: Op) -> Shape:
    """Infers the shape of a conditional: the common result of its branches, dynamic where that of any branch is.

    Corresponds to `ShapeInference::InferConditionalShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    selector = op.operand(0)
    if selector not in (scalar(PRED), scalar(S32)):
        raise ShapeInferenceError(
            f"operand 0 of conditional must be pred[] or s32[], not {selector}", operand=0
        )
    branches = _branches(op, selector)
    if len(op.operands) != len(branches) + 1:
        raise ShapeInferenceError(
            f"conditional needs one operand per branch ({len(branches)}), not {len(op.operands) - 1}"
        )
    first = branches[0][1].result
    result = first
    for (name, program), operand in zip(branches, op.operands[1:], strict=True):
        check_parameters(op, name, program, (operand,))
        if not compatible(program.result, first):
            raise ShapeInferenceError(f"branches return {first} and {program.result}", attribute=name)
        result = _dynamic_in_either(result, program.result)
    return result


def _branches(op: Op, selector: Shape) -> list[tuple[str, ProgramShape]]:
    """Every branch with the attribute that names it."""
    if selector == scalar(PRED):
        return [(name, op.program(name)) for name in ("true_computation", "false_computation")]
    return [("branch_computations", program) for program in op.programs("branch_computations")]


def _dynamic_in_either(a: Shape, b: Shape) -> Shape:
    """Shape `a`, dynamic also where the compatible shape `b` is."""
    if a == b or b.is_static:
        return a
    if a.is_tuple:
        return Shape.tuple(tuple(map(_dynamic_in_either, a.tuple_shapes, b.tuple_shapes)))
    if not a.is_array:
        return a
    return array(
        a.element_type, [(s, d or e) for (s, d), e in zip(dimensions(a), b.dynamic_dimensions, strict=True)]
    )


# ---- asynchronous wrappers


def is_bound(early: Shape, late: Shape) -> bool:
    """Returns True if binding more operands may turn the shape `early` into `late` (`ShapeVerifier::IsShapePrefix`).

    This holds for equal shapes, for the empty tuple and any shape, and for tuples if it holds for each element of
    `early`.
    """
    if compatible(early, late) or (early.is_tuple and not early.tuple_shapes):
        return True
    parts, others = early.tuple_shapes, late.tuple_shapes
    return bool(parts) and len(parts) <= len(others) and early.is_tuple and all(map(is_bound, parts, others))


def _state(op: Op) -> tuple[Shape, ...]:
    """The elements of the stated result of an async-start or async-update. Raises CannotInfer or ShapeInferenceError."""
    stated = op.open_shape("context")
    parts = stated.tuple_shapes
    if len(parts) < 2 or not stated.is_tuple or not parts[0].is_tuple:
        raise ShapeInferenceError(
            f"the result of {op.opcode} must be ((operands), result, contexts...), not {stated}"
        )
    return parts


def _check_handed_in(op: Op, taken: tuple[Shape, ...], bound: int, first: int) -> None:
    """The operands from `first` on are what the result has taken beyond the elements that were bound before."""
    operands = op.operands[first:]
    if len(operands) != len(taken) - bound:
        raise ShapeInferenceError(
            f"{plural(len(taken) - bound, 'operand')} bound here, but {len(operands)} passed"
        )
    for number, (operand, wanted) in enumerate(zip(operands, taken[bound:], strict=True), first):
        if not compatible(operand, wanted):
            raise ShapeInferenceError(
                f"operand {number} is bound as {wanted}, but is {operand}", operand=number
            )


@rule("async_start", Open.CONTEXTS)
def infer_async_start(op: Op) -> Shape:
    """Infers the shape of an async-start: the operands bound so far, the result if all are bound, and contexts.

    Corresponds to `ShapeVerifier::CheckAsyncStartOperands` and `CheckAsyncOpComputationShapes`.
    """
    program = op.program("calls")
    taken, result, *contexts = _state(op)
    _check_handed_in(op, taken.tuple_shapes, 0, 0)
    check_parameters(
        op, "calls", ProgramShape(program.parameters[: len(op.operands)], program.result), op.operands
    )
    if not is_bound(result, program.result):
        result = program.result
    return Shape.tuple((Shape.tuple(op.operands), result, *contexts))


def _started(op: Op) -> tuple[Shape, ...]:
    """The elements of operand 0: what an asynchronous operation that has begun holds."""
    parts = op.operand(0).tuple_shapes
    if len(parts) < 2 or not op.operands[0].is_tuple or not parts[0].is_tuple:
        raise ShapeInferenceError(
            f"operand 0 of {op.opcode} must be ((operands), result, contexts...), not {op.operands[0]}",
            operand=0,
        )
    return parts


@rule("async_update", Open.CONTEXTS)
def infer_async_update(op: Op) -> Shape:
    """Infers the shape of an async-update: operand 0's, with newly bound operands; contexts may differ.

    Corresponds to `ShapeVerifier::CheckAsyncUpdateOperands`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    before, earlier, *_ = _started(op)
    taken, result, *contexts = _state(op)
    if not is_bound(before, taken):
        raise ShapeInferenceError(
            f"operand 0 has taken {before}, so {op.opcode} cannot return {taken}", operand=0
        )
    _check_handed_in(op, taken.tuple_shapes, len(before.tuple_shapes), 1)
    return Shape.tuple((taken, result if is_bound(earlier, result) else earlier, *contexts))


@rule("async_done", Open.ALL)
def infer_async_done(op: Op) -> Shape:
    """Infers the shape of an async-done: the result in the state of the operation, or what it was bound to.

    The wrapped computation is not checked, since that takes more than one instruction.
    """
    result = _started(op)[1]
    stated = op.stated
    return stated if stated is not None and is_bound(result, stated) else result


@rule("copy_start")
def infer_copy_start(op: Op) -> Shape:
    """Infers the shape of a copy-start: the copy, the operand and a context (`ShapeVerifier::HandleCopyStart`)."""
    operand = op.operand(0)
    return Shape.tuple((operand, operand, scalar(U32)))


@rule("copy_done")
def infer_copy_done(op: Op) -> Shape:
    """Infers the shape of a copy-done: that of the copy, which must equal its source (`ShapeVerifier::HandleCopyDone`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    parts = op.operand(0).tuple_shapes
    if not op.operands[0].is_tuple or len(parts) < 2 or not compatible(parts[0], parts[1]):
        raise ShapeInferenceError(
            f"operand 0 of copy-done must be (copy, source, context), not {op.operands[0]}", operand=0
        )
    return parts[0]
