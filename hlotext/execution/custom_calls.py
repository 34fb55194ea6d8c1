"""Custom calls whose meaning is known, as plain operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlotext.execution.convolutions import convolution
from hlotext.execution.errors import NotExecutable
from hlotext.execution.lines import Lines, Plain
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import element_type

_U32, _U64, _F32, _F64 = map(element_type, ("u32", "u64", "f32", "f64"))
_SAME = frozenset(
    {
        *("AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked", "MoveToHost", "MoveToDevice"),
        *("Sharding", "annotate_device_placement", "Pin", "Unpin", "xla.sdy.FuncResultSharding"),
        *("OptimizationBarrier", "LayoutConstraint", "CompactWithSharding"),
    }
)
"""They give their first operand."""
_AS_IT_IS = frozenset({"TopK"})
"""The CPU client has them too."""


def custom_call(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain | None:
    """Emits lines for a custom call and returns its result; None if the CPU client runs the call itself.

    Raises NotExecutable for a target that is not modeled.
    """
    target = str(i.attributes.get("custom_call_target", ""))
    if target in _SAME and operands:
        return operands[0]
    if target in _AS_IT_IS:
        return None
    rule = _RULES.get(target)
    if rule is None:
        raise NotExecutable(
            f"hlotext does not know what custom call {target!r} computes; run a computation without it"
        )
    return rule(lines, i, operands, shape)


def _allocate(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain:
    """Memory without contents, for which zeros are as good as anything."""
    return lines.zeros(shape)


def _low(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain:
    (value,) = operands
    if value.type.is_floating:
        rounded = lines.convert(lines.convert(value, _F32), value.type)
        return lines.convert(lines.binary("subtract", value, rounded), shape.element_type)
    return _as(lines, lines.convert(_as(lines, value, 64), _U32), shape)


def _high(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain:
    (value,) = operands
    if value.type.is_floating:
        return lines.convert(value, shape.element_type)
    shifted = lines.binary("shift-right-logical", *_with(lines, _as(lines, value, 64), "32"))
    return _as(lines, lines.convert(shifted, _U32), shape)


def _combine(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain:
    low, high = operands
    if low.type.is_floating:
        parts = [lines.convert(part, shape.element_type) for part in operands]
        return lines.binary("add", *parts)
    wide = [lines.convert(_as(lines, part, 32), _U64) for part in (low, high)]
    moved = lines.binary("shift-left", *_with(lines, wide[1], "32"))
    return _as(lines, lines.binary("or", wide[0], moved), shape)


def _with(lines: Lines, value: Plain, number: str) -> tuple[Plain, Plain]:
    scalar = lines.scalar(value.type, number)
    return value, lines.filled(scalar, value.sizes) if value.sizes else scalar


def _as(lines: Lines, value: Plain, shape: Shape | int) -> Plain:
    """The bits of an integer as those of another one; of a width the unsigned one."""
    type_ = shape.element_type if isinstance(shape, Shape) else (_U32 if shape == 32 else _U64)
    if value.type is type_:
        return value
    return lines.add("bitcast-convert", Shape(type_, value.sizes), (value,))


# ---- libraries


def _config(i: Instruction, key: str) -> Mapping[str, Any]:
    if i.backend_config is None:
        raise NotExecutable("its configuration is not in the text")
    try:
        found = i.backend_config.json()
    except ValueError as error:
        raise NotExecutable(str(error)) from None
    inner = found.get(key, found) if isinstance(found, dict) else None
    if not isinstance(inner, dict):
        raise NotExecutable(f"its configuration has no {key}")
    return inner


_DOT_SIZES = (
    "lhs_batch_dimensions",
    "lhs_contracting_dimensions",
    "rhs_batch_dimensions",
    "rhs_contracting_dimensions",
)
_EPILOGUES = frozenset({"DEFAULT", "BIAS", "RELU", "BIAS_RELU", "GELU", "BIAS_GELU", "SILU", "BIAS_SILU"})


def _gemm(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain:
    """alpha * A * B + beta * C, and what follows it (`GemmBackendConfig`)."""
    config = _config(i, "gemm_backend_config")
    epilogue = str(config.get("epilogue", "DEFAULT"))
    if epilogue not in _EPILOGUES:
        raise NotExecutable(f"a matrix product with {epilogue}")
    result = shape.tuple_shapes[0] if shape.is_tuple else shape
    numbers = config.get("dot_dimension_numbers", {})
    dimensions = [[int(d) for d in numbers.get(name, ())] for name in _DOT_SIZES]
    type_ = result.element_type if result.element_type.bits >= 32 else _F32
    a, b = (lines.convert(value, type_) for value in operands[:2])
    words = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
    attributes = [
        f"{word}={{{','.join(map(str, some))}}}" for word, some in zip(words, dimensions, strict=True) if some
    ]
    found = lines.add("dot", Shape(type_, _dot_sizes(a, b, dimensions)), (a, b), *attributes)
    alpha, beta = float(config.get("alpha_real", 1)), float(config.get("beta", 0))
    if float(config.get("alpha_imag", 0)):
        raise NotExecutable("a matrix product with a complex factor")
    if alpha != 1:
        found = lines.binary("multiply", *_with(lines, found, repr(alpha)))
    rest = list(operands[2:])
    if beta:
        if not rest:
            raise NotExecutable("a matrix product with beta but no addend")
        c = lines.convert(rest.pop(0), type_)
        found = lines.binary(
            "add", found, c if beta == 1 else lines.binary("multiply", *_with(lines, c, repr(beta)))
        )
    if epilogue.startswith("BIAS"):
        bias = lines.convert(rest.pop(0), type_)
        axis = len(found.sizes) - 1
        spread = lines.add("broadcast", found.shape, (bias,), f"dimensions={{{axis}}}")
        found = lines.binary("add", found, spread)
    found = lines.convert(_activated(lines, found, epilogue.removeprefix("BIAS_")), result.element_type)
    return _with_workspace(lines, found, shape)


def _dot_sizes(a: Plain, b: Plain, dimensions: Sequence[Sequence[int]]) -> tuple[int, ...]:
    batch, ours, theirs_batch, theirs = dimensions
    return (
        *(a.sizes[d] for d in batch),
        *(size for d, size in enumerate(a.sizes) if d not in (*batch, *ours)),
        *(size for d, size in enumerate(b.sizes) if d not in (*theirs_batch, *theirs)),
    )


def _activated(lines: Lines, value: Plain, name: str) -> Plain:
    if name in ("DEFAULT", "BIAS"):
        return value
    if name == "RELU":
        return lines.binary("maximum", *_with(lines, value, "0"))
    if name == "SILU":
        return lines.binary("multiply", value, lines.add("logistic", value.shape, (value,)))
    cube = lines.binary("multiply", value, lines.binary("multiply", value, value))
    inner = lines.binary("add", value, lines.binary("multiply", *_with(lines, cube, "0.044715")))
    bent = lines.add(
        "tanh", value.shape, (lines.binary("multiply", *_with(lines, inner, "0.7978845608028654")),)
    )
    half = lines.binary("multiply", *_with(lines, value, "0.5"))
    return lines.binary("multiply", half, lines.binary("add", *_with(lines, bent, "1")))


def _with_workspace(lines: Lines, value: Plain, shape: Shape) -> Plain:
    """The result, with empty workspaces behind it where the call has some."""
    if not shape.is_tuple:
        return value
    return lines.tuple([value, *(lines.zeros(part) for part in shape.tuple_shapes[1:])])


def _convolution(lines: Lines, i: Instruction, operands: Sequence[Plain], shape: Shape) -> Plain:
    result = shape.tuple_shapes[0] if shape.is_tuple else shape
    found = convolution(lines, i, operands, result, _config(i, "cudnn_conv_backend_config"))
    return _with_workspace(lines, found, shape)


_RULES: dict[str, Callable[[Lines, Instruction, Sequence[Plain], Shape], Plain]] = {
    "AllocateBuffer": _allocate,
    "CreateBuffer": _allocate,
    "X64SplitLow": _low,
    "X64SplitHigh": _high,
    "X64Combine": _combine,
    "__cublas$gemm": _gemm,
    "__cublas$lt$matmul": _gemm,
    "__cudnn$convForward": _convolution,
    "__cudnn$convBackwardFilter": _convolution,
    "__cudnn$convBackwardInput": _convolution,
    "__cudnn$convBiasActivationForward": _convolution,
}
