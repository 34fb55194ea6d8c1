"""What the dimensions of a convolution's operands and result mean, and structured sparsity."""

from __future__ import annotations

import attrs


def _labels(places: dict[int, str]) -> str:
    return "".join(places.get(i, "?") for i in range(max(places, default=-1) + 1))


@attrs.frozen
class ConvolutionDimensionNumbers:
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


@attrs.frozen
class OperandSparsity:
    """Structured sparsity of one convolution operand: `{sparsity=1x4 dimension=1 stride=2}`."""

    numerator: int = 0
    """Elements kept of every `denominator`."""
    denominator: int = 0
    dimension: int = 0
    stride: int = 0

    def __str__(self) -> str:
        ratio = f"{self.numerator}x{self.denominator}"
        return f"{{sparsity={ratio} dimension={self.dimension} stride={self.stride}}}"


@attrs.frozen
class SparsityConfig:
    """`sparsity_config=` of convolution (`SparsityConfig`); None for an operand that is dense."""

    lhs: OperandSparsity | None = None
    rhs: OperandSparsity | None = None

    def __str__(self) -> str:
        sides = [
            f"{name}={side}" for name, side in (("lhs", self.lhs), ("rhs", self.rhs)) if side is not None
        ]
        return f"{{{' '.join(sides)}}}"


@attrs.frozen
class SparsityDescriptor:
    """n:m sparsity of one dot operand (`SparsityDescriptor`), in text of 2024 and 2025: `L.1@2:4`."""

    index: int
    """Operand number: 0 for `L`, 1 for `R`."""
    dimension: int
    n: int
    """Elements kept of every `m`."""
    m: int

    def __str__(self) -> str:
        return f"{'LR'[self.index]}.{self.dimension}@{self.n}:{self.m}"


@attrs.frozen
class DotSparsity:
    """`sparsity=` of a dot in text of 2024 and 2025: `L.1@2:4_R.0@2:4`."""

    descriptors: tuple[SparsityDescriptor, ...]

    def __str__(self) -> str:
        return "_".join(map(str, self.descriptors))
