"""Structured sparsity and scaled blocks of the operands of convolutions and dots."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class OperandSparsity(Value):
    """Structured sparsity of a convolution operand: `{sparsity=1x4 dimension=1 stride=2}`."""

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
    """`sparsity_config=` of a convolution (`SparsityConfig`), with None for a dense operand."""

    lhs: OperandSparsity | None = None
    rhs: OperandSparsity | None = None

    def __str__(self) -> str:
        sides = [
            f"{name}={side}" for name, side in (("lhs", self.lhs), ("rhs", self.rhs)) if side is not None
        ]
        return f"{{{' '.join(sides)}}}"


@attrs.frozen(repr=False)
class OperandBlockScaling(Value):
    """Block scaling of an operand: `{scale_idx=2 zero_idx=3 strides=1x32 steps=1x1}`."""

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
    """`block_scaling_config=` (`BlockScalingConfig`); in text since mid-2026."""

    lhs: OperandBlockScaling | None = None
    """None if it is not scaled."""
    rhs: OperandBlockScaling | None = None
    """None if it is not scaled."""

    def __str__(self) -> str:
        sides = (("lhs", self.lhs), ("rhs", self.rhs))
        return f"{{{' '.join(f'{name}={side}' for name, side in sides if side is not None)}}}"


@attrs.frozen(repr=False)
class SparsityDescriptor(Value):
    """n:m sparsity of a dot operand (`SparsityDescriptor`), in text of 2024 and 2025: `L.1@2:4`."""

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
