"""Roles of the dimensions of a convolution's operands and result."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


def _labels(places: dict[int, str]) -> str:
    return "".join(places.get(i, "?") for i in range(max(places, default=-1) + 1))


@attrs.frozen(repr=False)
class ConvolutionDimensionNumbers(Value):
    """`dim_labels=` (`ConvolutionDimensionNumbers`): `b01f_01io->b01f`, for input, kernel and output.

    Each field is a dimension number, or a tuple with one for each spatial dimension.
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

    @property
    def numbers(self) -> tuple[int, ...]:
        """All dimension numbers of operands and result."""
        return (
            self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions,
            self.kernel_input_feature_dimension, self.kernel_output_feature_dimension, *self.kernel_spatial_dimensions,
            self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions,
        )  # fmt: skip

    def __str__(self) -> str:
        # Spatial dimensions are numbered by one digit in the text; XLA has no way to write more than ten.
        lhs = {d: str(i) for i, d in enumerate(self.input_spatial_dimensions)}
        lhs |= {self.input_batch_dimension: "b", self.input_feature_dimension: "f"}
        rhs = {d: str(i) for i, d in enumerate(self.kernel_spatial_dimensions)}
        rhs |= {self.kernel_input_feature_dimension: "i", self.kernel_output_feature_dimension: "o"}
        out = {d: str(i) for i, d in enumerate(self.output_spatial_dimensions)}
        out |= {self.output_batch_dimension: "b", self.output_feature_dimension: "f"}
        return f"{_labels(lhs)}_{_labels(rhs)}->{_labels(out)}"
