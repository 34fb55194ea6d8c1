"""Shape rules of transforms, matrix factorizations, normalization, sorting and random numbers."""

from __future__ import annotations

from hlotext.ir.values.enums import FftType, RandomDistribution, TransposeA
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, TypeKind
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import Open, rule
from hlotext.semantics.infer.shapes import (
    PRED,
    S32,
    array,
    compatible,
    component_type,
    dimensions,
    is_scalar,
    is_unbounded,
    one_or_tuple,
    same_sizes,
    same_type_or_floats,
    scalar,
    sizes_agree,
    with_type,
)
from hlotext.semantics.infer.signatures import check_scalar_parameters

_SPECTRUM = {ELEMENT_TYPES["f32"]: ELEMENT_TYPES["c64"], ELEMENT_TYPES["f64"]: ELEMENT_TYPES["c128"]}


# ---- transforms and factorizations


@rule("fft")
def infer_fft(op: Op) -> Shape:
    """Infers the shape of an fft: the operand's, with the last dimension of a real transform halved or restored.

    Corresponds to `ShapeInference::InferFftShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, kind, lengths = op.array(0), op.get("fft_type", FftType), op.integers("fft_length")
    if not 1 <= len(lengths) <= min(3, operand.rank):
        raise ShapeInferenceError(
            f"fft_length needs one to three entries, at most the rank {operand.rank} of {operand}",
            attribute="fft_length",
        )
    if min(lengths) < 0:
        raise ShapeInferenceError("fft_length cannot be negative", attribute="fft_length")
    if kind is FftType.RFFT:
        if operand.element_type not in _SPECTRUM:
            raise ShapeInferenceError(f"RFFT takes f32 or f64, not {operand}", operand=0)
        _check_lengths(op, operand, lengths)
        last = lengths[-1] // 2 + 1 if lengths[-1] else operand.dimensions[-1]
        return _with_last(with_type(operand, _SPECTRUM[operand.element_type]), last)
    if not operand.element_type.is_complex:
        raise ShapeInferenceError(f"{kind} takes complex numbers, not {operand}", operand=0)
    if kind is not FftType.IRFFT:
        return operand
    half = lengths[-1] // 2 + 1 if lengths[-1] or operand.dimensions[-1] else 0
    _check_lengths(op, operand, (*lengths[:-1], half))
    return _with_last(with_type(operand, component_type(operand.element_type)), lengths[-1])


def _check_lengths(op: Op, operand: Shape, lengths: tuple[int, ...]) -> None:
    for size, length in zip(operand.dimensions[-len(lengths) :], lengths, strict=True):
        if not sizes_agree(size, length):
            raise ShapeInferenceError(
                f"fft_length does not match the last dimensions of {operand}", attribute="fft_length"
            )


def _with_last(shape: Shape, size: int) -> Shape:
    """The shape with another last size, dynamic where the old one was bounded and dynamic."""
    *others, (old, dynamic) = dimensions(shape)
    return array(shape.element_type, [*others, (size, dynamic and not is_unbounded(old))])


def _matrices(op: Op) -> Shape:
    """Operand 0: square matrices of floats or complex numbers in the last two dimensions."""
    operand = op.array(0)
    if operand.element_type.kind not in (TypeKind.FLOAT, TypeKind.COMPLEX):
        raise ShapeInferenceError(f"{op.opcode} takes floats or complex numbers, not {operand}", operand=0)
    if operand.rank < 2 or not sizes_agree(*operand.dimensions[-2:]):
        raise ShapeInferenceError(f"{op.opcode} takes square matrices, not {operand}", operand=0)
    return operand


@rule("cholesky")
def infer_cholesky(op: Op) -> Shape:
    """Infers the shape of a cholesky: the operand's (`ShapeInference::InferCholeskyShape`)."""
    return _matrices(op)


@rule("triangular_solve")
def infer_triangular_solve(op: Op) -> Shape:
    """Infers the shape of a triangular-solve: that of the right-hand sides, operand 1 (`InferTriangularSolveShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    matrices, sides = _matrices(op), op.array(1)
    if sides.element_type is not matrices.element_type or sides.rank != matrices.rank:
        raise ShapeInferenceError(f"{sides} differs in type or rank from {matrices}", operand=1)
    shared = -2 if op.get("left_side", bool, False) else -1
    if sides.dimensions[:-2] != matrices.dimensions[:-2] or not sizes_agree(
        sides.dimensions[shared], matrices.dimensions[-1]
    ):
        raise ShapeInferenceError(f"{sides} does not match the matrices {matrices}", operand=1)
    if op.get("transpose_a", TransposeA, TransposeA.INVALID) is TransposeA.INVALID:
        raise ShapeInferenceError("triangular-solve needs a valid transpose_a", attribute="transpose_a")
    return sides


# ---- normalization


def _normalized(op: Op, vectors: tuple[int, ...]) -> tuple[Shape, Shape]:
    """Operand 0 and the shape of one value for each feature; the operands `vectors` have such shapes."""
    operand, feature = op.array(0), op.get("feature_index", int)
    op.check_dimension("feature_index", feature, operand.rank)
    if not operand.element_type.is_floating:
        raise ShapeInferenceError(f"{op.opcode} takes floats, not {operand}", operand=0)
    for number in vectors:
        vector = op.array(number)
        if (
            vector.rank != 1
            or not sizes_agree(vector.dimensions[0], operand.dimensions[feature])
            or not same_type_or_floats(vector.element_type, operand.element_type)
        ):
            raise ShapeInferenceError(
                f"{vector} does not have one value per feature of {operand}", operand=number
            )
    return operand, array(operand.element_type, [dimensions(operand)[feature]])


@rule("batch_norm_training")
def infer_batch_norm_training(op: Op) -> Shape:
    """Infers the shape of a batch-norm-training: output, mean and variance (`InferBatchNormTrainingShape`)."""
    operand, features = _normalized(op, (1, 2))
    return Shape.tuple((operand, features, features))


@rule("batch_norm_inference")
def infer_batch_norm_inference(op: Op) -> Shape:
    """Infers the shape of a batch-norm-inference: that of operand 0 (`InferBatchNormInferenceShape`)."""
    return _normalized(op, (1, 2, 3, 4))[0]


@rule("batch_norm_grad")
def infer_batch_norm_grad(op: Op) -> Shape:
    """Infers the shape of a batch-norm-grad: gradients of operand, scale and offset (`InferBatchNormGradShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, features = _normalized(op, (1, 2, 3))
    if not compatible(op.array(4), operand, any_float=True):
        raise ShapeInferenceError(f"the gradient {op.operands[4]} differs from {operand}", operand=4)
    return Shape.tuple((operand, features, features))


# ---- sorting


@rule("sort")
def infer_sort(op: Op) -> Shape:
    """Infers the shape of a sort: the operands' shapes. The comparator takes two elements of each and returns `pred`.

    Corresponds to `ShapeVerifier::HandleSort`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operands = op.arrays()
    op.dimension(operands[0].rank)
    for number, operand in enumerate(operands):
        if not same_sizes(operand, operands[0]):
            raise ShapeInferenceError(f"sort of different sizes: {operands[0]} and {operand}", operand=number)
    compare = op.program("to_apply")
    if compare.result != scalar(PRED):
        raise ShapeInferenceError(
            f"to_apply of sort must return pred[], not {compare.result}", attribute="to_apply"
        )
    check_scalar_parameters(
        op, "to_apply", compare, tuple(o.element_type for o in operands for _ in range(2))
    )
    return one_or_tuple(operands)


@rule("topk")
def infer_topk(op: Op) -> Shape:
    """Infers the shape of a topk: k values of the last dimension, and their indices as s32
    (`ShapeInference::InferTopKShape`).

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    operand, k = op.array(0), op.get("k", int)
    if not operand.rank:
        raise ShapeInferenceError(f"topk takes arrays, not {operand}", operand=0)
    last = operand.dimensions[-1]
    if not 0 <= k <= last:
        raise ShapeInferenceError(
            f"the last dimension of {operand} has fewer than {k} elements", attribute="k"
        )
    values = array(operand.element_type, [*dimensions(operand)[:-1], (k, False)])
    return Shape.tuple((values, with_type(values, S32)))


# ---- random numbers


@rule("rng", Open.DIMENSIONS)
def infer_rng(op: Op) -> Shape:
    """Infers the shape of an rng: the stated sizes, with the type of the distribution's two scalar parameters.

    Corresponds to `ShapeVerifier::HandleRng`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    first, second = op.array(0), op.array(1)
    if len(op.operands) != 2 or not is_scalar(first) or second != first:
        raise ShapeInferenceError("rng takes two scalars of one type")
    normal = op.get("distribution", RandomDistribution) is RandomDistribution.NORMAL
    if first.element_type.is_complex or (normal and not first.element_type.is_floating):
        raise ShapeInferenceError(f"there is no such distribution of {first.element_type}", operand=0)
    return with_type(op.open_array("dimensions"), first.element_type)


@rule("rng_bit_generator", Open.PART)
def infer_rng_bit_generator(op: Op) -> Shape:
    """Infers the shape of an rng-bit-generator: the state, and bits in the stated shape; in old text, the bits alone.

    Corresponds to `ShapeVerifier::HandleRngBitGenerator`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    state, stated = op.operand(0), op.open_shape("shape of the bits")
    if not stated.is_tuple:
        return stated
    if len(stated.tuple_shapes) != 2:
        raise ShapeInferenceError(f"rng-bit-generator must return a state and bits, not {stated}")
    return Shape.tuple((state, stated.tuple_shapes[1]))
