"""What the dimensions of a convolution's operands and result mean, and structured sparsity."""

from __future__ import annotations

import attrs

from hlotext.ir.value import Value


def _labels(places: dict[int, str]) -> str:
    return "".join(places.get(i, "?") for i in range(max(places, default=-1) + 1))


@attrs.frozen(repr=False)
class ConvolutionDimensionNumbers(Value):
    """`dim_labels=` (`ConvolutionDimensionNumbers`): `b01f_01io->b01f`, input, kernel -> output.

    Every field is a dimension number, or one for each spatial dimension.
    """

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]

    def __str__(self) -> str:
        # Spatial dimensions are numbered by one digit in the text; XLA has no way to write more than ten.
        lhs = {d: str(i) for i, d in enumerate(self.input_spatial_dimensions)}
        lhs |= {self.input_batch_dimension: "b", self.input_feature_dimension: "f"}
        rhs = {d: str(i) for i, d in enumerate(self.kernel_spatial_dimensions)}
        rhs |= {self.kernel_input_feature_dimension: "i", self.kernel_output_feature_dimension: "o"}
        out = {d: str(i) for i, d in enumerate(self.output_spatial_dimensions)}
        out |= {self.output_batch_dimension: "b", self.output_feature_dimension: "f"}
        return f"{_labels(lhs)}_{_labels(rhs)}->{_labels(out)}"


@attrs.frozen(repr=False)
class OperandSparsity(Value):
    """Structured sparsity of one convolution operand: `{sparsity=1x4 dimension=1 stride=2}`."""

    numerator: int = 0
    """Elements kept of every `denominator`."""
    denominator: int = 0
    dimension: int = 0
    stride: int = 0
    idx: int | None = None
    """Operand that says which elements are kept; None when absent, as before the middle of 2026."""

    def __str__(self) -> str:
        ratio = f"{self.numerator}x{self.denominator}"
        idx = "" if self.idx is None else f" idx={self.idx}"
        return f"{{sparsity={ratio} dimension={self.dimension} stride={self.stride}{idx}}}"


@attrs.frozen(repr=False)
class SparsityConfig(Value):
    """`sparsity_config=` of convolution (`SparsityConfig`); None for an operand that is dense."""

    lhs: OperandSparsity | None = None
    rhs: OperandSparsity | None = None

    def __str__(self) -> str:
        sides = [
            f"{name}={side}" for name, side in (("lhs", self.lhs), ("rhs", self.rhs)) if side is not None
        ]
        return f"{{{' '.join(sides)}}}"


@attrs.frozen(repr=False)
class OperandBlockScaling(Value):
    """How blocks of one operand are scaled: `{scale_idx=2 zero_idx=3 strides=1x32 steps=1x1}`."""

    scale_idx: int = 0
    """Operand number of the scales."""
    zero_idx: int | None = None
    """Operand number of the zero points; None when absent."""
    strides: tuple[int, ...] = ()
    """Empty when absent."""
    steps: tuple[int, ...] = ()
    """Empty when absent."""

    def __str__(self) -> str:
        parts = [f"scale_idx={self.scale_idx}"]
        if self.zero_idx is not None:
            parts.append(f"zero_idx={self.zero_idx}")
        if self.strides:
            parts.append(f"strides={'x'.join(map(str, self.strides))}")
        if self.steps:
            parts.append(f"steps={'x'.join(map(str, self.steps))}")
        return f"{{{' '.join(parts)}}}"


@attrs.frozen(repr=False)
class BlockScalingConfig(Value):
    """`block_scaling_config=` (`BlockScalingConfig`), in text from the middle of 2026 on."""

    lhs: OperandBlockScaling | None = None
    """None where it is not scaled."""
    rhs: OperandBlockScaling | None = None
    """None where it is not scaled."""

    def __str__(self) -> str:
        sides = (("lhs", self.lhs), ("rhs", self.rhs))
        return f"{{{' '.join(f'{name}={side}' for name, side in sides if side is not None)}}}"


@attrs.frozen(repr=False)
class SparsityDescriptor(Value):
    """n:m sparsity of one dot operand (`SparsityDescriptor`), in text of 2024 and 2025: `L.1@2:4`."""

    index: int
    """Operand number: 0 for `L`, 1 for `R`."""
    dimension: int
    n: int
    """Elements kept of every `m`."""
    m: int

    def __str__(self) -> str:
        return f"{'LR'[self.index]}.{self.dimension}@{self.n}:{self.m}"


@attrs.frozen(repr=False)
class DotSparsity(Value):
    """`sparsity=` of a dot in text of 2024 and 2025: `L.1@2:4_R.0@2:4`."""

    descriptors: tuple[SparsityDescriptor, ...]

    def __str__(self) -> str:
        return "_".join(map(str, self.descriptors))
