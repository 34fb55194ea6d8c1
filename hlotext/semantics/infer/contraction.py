"""Shape rules of dots and convolutions.

The element type of the result is the stated one, since it is the type of the sums (XLA's
`preferred_element_type`); where none is stated it is the more precise of the operands' types.
"""

from __future__ import annotations

import attrs

from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.values.sparsity import OperandSparsity, SparsityConfig
from hlotext.ir.values.types import ElementType
from hlotext.ir.values.window import Window
from hlotext.semantics.infer.errors import ShapeInferenceError
from hlotext.semantics.infer.op import Op
from hlotext.semantics.infer.rules import Open, rule
from hlotext.semantics.infer.shapes import Dimension, array, dimensions, is_unbounded, sizes_agree
from hlotext.semantics.infer.windows import window_output
from hlotext.semantics.message_text import plural


def _sum_type(op: Op, lhs: Shape, rhs: Shape) -> ElementType:
    if op.stated is not None and op.stated.is_array:
        return op.stated.element_type
    return op.common_type(lhs.element_type, rhs.element_type)


# ---- dots


@attrs.frozen
class _Sides:
    """The batch and contracting dimensions of both operands of a dot."""

    lhs: Shape
    rhs: Shape
    lhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    @property
    def lhs_free(self) -> list[int]:
        """The dimensions of the left side that are neither batch nor contracting."""
        return [i for i in range(self.lhs.rank) if i not in self.lhs_batch and i not in self.lhs_contracting]

    def result(self, rhs_dropped: tuple[int, ...] = ()) -> list[Dimension]:
        """Batch dimensions, then those of the left side, then those of the right side."""
        left, right = dimensions(self.lhs), dimensions(self.rhs)
        gone = (*self.rhs_batch, *self.rhs_contracting, *rhs_dropped)
        return [left[i] for i in (*self.lhs_batch, *self.lhs_free)] + [
            d for i, d in enumerate(right) if i not in gone
        ]


def _sides(op: Op) -> _Sides:
    """The dimension numbers of a dot, checked (as `CheckDotDimensionConstraints`)."""
    lhs, rhs = op.array(0), op.array(1)
    found = {
        name: op.dimension_numbers(name, shape.rank, ())
        for side, shape in (("lhs", lhs), ("rhs", rhs))
        for name in (f"{side}_batch_dims", f"{side}_contracting_dims")
    }
    for side in ("lhs", "rhs"):
        if set(found[f"{side}_batch_dims"]) & set(found[f"{side}_contracting_dims"]):
            raise ShapeInferenceError(
                "a dimension is both a batch and a contracting dimension",
                attribute=f"{side}_contracting_dims",
            )
    for kind in ("batch_dims", "contracting_dims"):
        left, right = found[f"lhs_{kind}"], found[f"rhs_{kind}"]
        if len(left) != len(right):
            raise ShapeInferenceError(f"lhs_{kind} and rhs_{kind} differ in length", attribute=f"rhs_{kind}")
        for i, j in zip(left, right, strict=True):
            if not sizes_agree(_full_size(op, "lhs", lhs, i), _full_size(op, "rhs", rhs, j)):
                raise ShapeInferenceError(
                    f"dimension {i} of {lhs} and dimension {j} of {rhs} differ in size",
                    attribute=f"rhs_{kind}",
                )
    return _Sides(lhs, rhs, *found.values())


def _full_size(op: Op, side: str, shape: Shape, dimension: int) -> int:
    """The size of a dimension with the elements that structured sparsity leaves out."""
    size = shape.dimensions[dimension]
    sparsity: OperandSparsity | None = getattr(
        op.get("sparsity_config", SparsityConfig, SparsityConfig()), side
    )
    if (
        sparsity is None
        or sparsity.dimension != dimension
        or sparsity.numerator < 1
        or size == UNBOUNDED_SIZE
    ):
        return size
    return size * sparsity.denominator // sparsity.numerator


@rule("dot", Open.ELEMENT_TYPE)
def infer_dot(op: Op) -> Shape:
    """Infers the shape of a dot: batch dimensions, then those of lhs, then those of rhs
    (`ShapeInference::InferDotOpShape`).
    """
    sides = _sides(op)
    return array(_sum_type(op, sides.lhs, sides.rhs), sides.result())


@rule("scaled_dot", Open.ELEMENT_TYPE)
def infer_scaled_dot(op: Op) -> Shape:
    """Infers the shape of a scaled-dot: as for a dot of operands 0 and 1, whose block scales are operands 2 and 3.

    Corresponds to `ShapeVerifier::HandleScaledDot`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    sides = _sides(op)
    for number in (0, 1):
        _check_scales(op, number, number + 2)
    if not op.operands[2].dimensions and not op.operands[3].dimensions:
        raise ShapeInferenceError("at least one of the scales must not be a scalar", operand=2)
    return array(_sum_type(op, sides.lhs, sides.rhs), sides.result())


def _check_scales(op: Op, number: int, scale_number: int) -> None:
    """Sizes are multiples of those of the scales; a lone bf16 scale of a bf16 operand stands for none."""
    operand, scales = op.array(number), op.array(scale_number)
    no_op = (
        scales.element_type is operand.element_type
        and str(scales.element_type) == "bf16"
        and scales.true_rank == 0
    )
    if no_op and operand.true_rank:
        return
    fits = scales.rank == operand.rank and all(
        is_unbounded(size) or is_unbounded(count) or (count > 0 and size % count == 0)
        for size, count in zip(operand.dimensions, scales.dimensions, strict=True)
    )
    if not fits:
        raise ShapeInferenceError(f"{scales} cannot scale blocks of {operand}", operand=scale_number)


@rule("ragged_dot", Open.ELEMENT_TYPE)
def infer_ragged_dot(op: Op) -> Shape:
    """Infers the shape of a ragged-dot: as for a dot, with a leading group dimension if the ragged dimension is
    contracted.

    If the ragged dimension is not contracted, rhs has a group dimension, which is not in the result. Corresponds to
    `ShapeInference::InferRaggedDotOpShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    sides, sizes = _sides(op), op.array(2)
    ragged = op.dimension(sides.lhs.rank, "lhs_ragged_dims")
    groups = op.dimension_numbers("rhs_group_dims", sides.rhs.rank, ())
    if set(groups) & {*sides.rhs_batch, *sides.rhs_contracting}:
        raise ShapeInferenceError(
            "a group dimension is also a batch or contracting dimension", attribute="rhs_group_dims"
        )
    count = _group_count(op, sides, sizes, ragged)
    element_type = _sum_type(op, sides.lhs, sides.rhs)
    if ragged in sides.lhs_free:
        if len(groups) != 1 or not sizes_agree(count[0], sides.rhs.dimensions[groups[0]]):
            raise ShapeInferenceError(
                f"{sides.rhs} needs one group dimension of size {count[0]}", attribute="rhs_group_dims"
            )
        return array(element_type, sides.result(groups))
    if groups:
        raise ShapeInferenceError(
            "a ragged batch or contracting dimension has no group dimension", attribute="rhs_group_dims"
        )
    in_front = [count] if ragged in sides.lhs_contracting else []
    return array(element_type, in_front + sides.result())


def _group_count(op: Op, sides: _Sides, sizes: Shape, ragged: int) -> Dimension:
    """The last dimension of the group sizes; before it come the left side's outside the ragged one."""
    prefix: list[int] = list(sides.lhs_batch)
    for kind in (sides.lhs_batch, sides.lhs_contracting, tuple(sides.lhs_free)):
        if ragged in kind:
            outer = list(kind[: kind.index(ragged)])
            prefix = outer if kind is sides.lhs_batch else prefix + outer
    expected = [sides.lhs.dimensions[i] for i in prefix]
    if not sizes.rank or (sizes.rank != 1 and list(sizes.dimensions[:-1]) != expected):
        wanted = ",".join(map(str, (*expected, "groups")))
        raise ShapeInferenceError(f"group sizes must be [{wanted}], not {sizes}", operand=2)
    return dimensions(sizes)[-1]


# ---- convolution


@rule("convolution", Open.ELEMENT_TYPE)
def infer_convolution(op: Op) -> Shape:
    """Infers the shape of a convolution: batch, output features and window positions, in the order of `dim_labels`.

    Corresponds to `ShapeInference::InferConvolveShape`.

    Raises ShapeInferenceError if the operands or attributes are invalid.
    """
    lhs, rhs = op.array(0), _kernel(op)
    labels = op.get("dim_labels", ConvolutionDimensionNumbers)
    window = op.get("window", Window, Window())
    _check_labels(op, labels, lhs, rhs)
    feature_groups, batch_groups = _groups(op)
    batch, features = (
        lhs.dimensions[labels.input_batch_dimension],
        lhs.dimensions[labels.input_feature_dimension],
    )
    outputs = rhs.dimensions[labels.kernel_output_feature_dimension]
    _check_groups(
        op, (batch, features, _kernel_features(op, labels, rhs), outputs), feature_groups, batch_groups
    )
    kernel = tuple(rhs.dimensions[i] for i in labels.kernel_spatial_dimensions)
    if kernel != tuple(d.size for d in window.dimensions):
        raise ShapeInferenceError(
            f"window={window} does not match the sizes of kernel {rhs}", attribute="window"
        )
    spatial = [(lhs.dimensions[i], lhs.dynamic_dimensions[i]) for i in labels.input_spatial_dimensions]
    result: list[Dimension] = [(0, False)] * lhs.rank
    batch_size = batch if is_unbounded(batch) else batch // batch_groups
    result[labels.output_batch_dimension] = batch_size, lhs.dynamic_dimensions[labels.input_batch_dimension]
    result[labels.output_feature_dimension] = outputs, False
    windows = window_output(op, spatial, window)
    for i, (size, dynamic) in enumerate(windows):
        kernel_dynamic = rhs.dynamic_dimensions[labels.kernel_spatial_dimensions[i]]
        result[labels.output_spatial_dimensions[i]] = size, dynamic or kernel_dynamic
    return array(_sum_type(op, lhs, rhs), result)


def _kernel(op: Op) -> Shape:
    """Operand 1, or its first element where a sparse kernel is a tuple of values and metadata."""
    kernel = op.operand(1)
    if kernel.is_tuple and len(kernel.tuple_shapes) == 2 and kernel.tuple_shapes[0].is_array:
        return kernel.tuple_shapes[0]
    return op.array(1)


def _check_labels(op: Op, labels: ConvolutionDimensionNumbers, lhs: Shape, rhs: Shape) -> None:
    """Each dimension of input, kernel and output is labelled once, and all have one rank."""
    rank = len(labels.input_spatial_dimensions) + 2
    for number, shape in enumerate((lhs, rhs)):
        if shape.rank != rank:
            raise ShapeInferenceError(
                f"dim_labels={labels} is for rank {rank}, unlike {shape}", operand=number
            )
    every = (
        (labels.input_batch_dimension, labels.input_feature_dimension, *labels.input_spatial_dimensions),
        (
            labels.kernel_input_feature_dimension,
            labels.kernel_output_feature_dimension,
            *labels.kernel_spatial_dimensions,
        ),
        (labels.output_batch_dimension, labels.output_feature_dimension, *labels.output_spatial_dimensions),
    )
    if any(sorted(numbers) != list(range(rank)) for numbers in every):
        raise ShapeInferenceError(
            f"dim_labels={labels} must name each dimension once", attribute="dim_labels"
        )
    if rhs.dynamic_dimensions[labels.kernel_output_feature_dimension]:
        raise ShapeInferenceError("the output feature dimension of a kernel cannot be dynamic", operand=1)


def _groups(op: Op) -> tuple[int, int]:
    features, batches = op.get("feature_group_count", int, 1), op.get("batch_group_count", int, 1)
    for name, count in (("feature_group_count", features), ("batch_group_count", batches)):
        if count < 1:
            raise ShapeInferenceError(f"{name} must be positive", attribute=name)
    if features > 1 and batches > 1:
        raise ShapeInferenceError(
            "a convolution can have feature groups or batch groups, not both", attribute="batch_group_count"
        )
    return features, batches


def _kernel_features(op: Op, labels: ConvolutionDimensionNumbers, rhs: Shape) -> int:
    """Input features of the kernel; a sparse one stores one of every `denominator`."""
    features = rhs.dimensions[labels.kernel_input_feature_dimension]
    sparsity = op.get("sparsity_config", SparsityConfig, SparsityConfig())
    if sparsity.rhs is None:
        return features
    if sparsity.rhs.numerator != 1:
        raise ShapeInferenceError("only one element of a block can be kept", attribute="sparsity_config")
    return features * sparsity.rhs.denominator


def _check_groups(op: Op, sizes: tuple[int, int, int, int], feature_groups: int, batch_groups: int) -> None:
    """Groups divide the features evenly: each sees its part of the input and makes its part of the output."""
    batch, features, kernel_features, outputs = sizes
    if features % feature_groups or features // feature_groups != kernel_features:
        raise ShapeInferenceError(
            f"{features} input features in {plural(feature_groups, 'group')} do not match a kernel with {kernel_features}",
            operand=1,
        )
    if outputs % feature_groups:
        raise ShapeInferenceError(
            f"{outputs} output features are not divisible into {feature_groups} groups",
            attribute="feature_group_count",
        )
    if outputs % batch_groups or (not is_unbounded(batch) and batch % batch_groups):
        raise ShapeInferenceError(
            f"a batch of {batch} and {outputs} output features are not divisible into {batch_groups} groups",
            attribute="batch_group_count",
        )
