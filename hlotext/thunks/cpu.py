"""CPU thunk rules: one row for each opcode and each custom-call target.

The rows follow `xla/service/cpu/thunk_emitter.cc`; those marked `is_seen=False` are from that source alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hlotext.ir.tables import traits
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.shape import Shape
from hlotext.thunks.emission import (
    EmissionRule,
    Emitter,
    Steps,
    branches,
    condition_and_body,
    config,
    loop_facts,
    nothing,
    part,
)
from hlotext.thunks.thunk import CALLED, Thunk

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction

_SUB_BYTE = 8
"""Elements of fewer bits share bytes: the copy thunk does not take them."""


def _plain(kind: str, emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    thunk = emitter.thunk(kind, instruction)
    emitter.buffers.arguments(thunk, instruction)
    return [thunk]


_kernel = partial(_plain, "kernel")


def _call(emitter: Emitter, call: Instruction) -> Steps | list[Thunk]:
    if call.frontend_attributes.get("xla_cpu_small_call") == "true":
        return _kernel(emitter, call)
    return _called(emitter, call)


def _called(emitter: Emitter, call: Instruction) -> Steps:
    inside = yield call.called_computations[0]
    return [emitter.thunk("call", call, children=((CALLED, tuple(inside)),))]


def _while(emitter: Emitter, loop: Instruction) -> Steps:
    condition, body = condition_and_body(loop)
    inside = (yield condition), (yield body)
    children = (("condition", tuple(inside[0])), ("body", tuple(inside[1])))
    thunk = emitter.thunk("while", loop, children=children, facts=loop_facts(loop))
    emitter.buffers.reads(thunk, condition.root)
    return [thunk]


def _conditional(emitter: Emitter, conditional: Instruction) -> Steps:
    found = []
    for branch in conditional.called_computations:
        found.append((yield branch))
    thunk = emitter.thunk("conditional", conditional, children=branches(found))
    emitter.buffers.reads(thunk, conditional.operands[0])
    return [thunk]


def _fusion(emitter: Emitter, fusion: Instruction) -> list[Thunk]:
    if fusion.attributes.get("kind") != "kCustom":
        return _kernel(emitter, fusion)
    kind = str(part(config(fusion), "fusion_config").get("kind", ""))
    if kind.startswith("__ynn"):
        return _plain("ynn-fusion", emitter, fusion)
    if kind.startswith("__onednn"):
        return _plain("onednn-fusion", emitter, fusion)
    emitter.note(fusion, f"XLA:CPU has no custom fusions of kind {kind or 'unknown'}")
    return _plain("ynn-fusion", emitter, fusion)


def _copy(emitter: Emitter, copy: Instruction) -> list[Thunk]:
    """Arrays whose elements share bytes have no byte strides and are copied by a kernel."""
    shape = copy.shape
    bits = (shape.layout.element_size_in_bits if shape and shape.layout else 0) or _SUB_BYTE
    return _kernel(emitter, copy) if bits < _SUB_BYTE else _plain("copy", emitter, copy)


def _sort(emitter: Emitter, sort: Instruction) -> list[Thunk]:
    """In place: operands that have a buffer of their own are copied first."""
    thunks = []
    for position, operand in enumerate(sort.operands):
        index = (position,) if len(sort.operands) > 1 else ()
        if emitter.buffers.differ(operand, (), sort, index):
            copy = emitter.thunk("copy", sort)
            emitter.buffers.reads(copy, operand)
            emitter.buffers.writes(copy, sort, index)
            thunks.append(copy)
    kernel = emitter.thunk("sort", sort)
    emitter.buffers.writes_all(kernel, sort)
    return [*thunks, kernel]


# ---- products

_LIBRARY_TYPES = frozenset({"f16", "f32", "f64", "c64", "c128", "s32"})
"""Element types of matrix products that Eigen computes (`AreGemmShapes`)."""
_SMALL = 3
"""A product of matrices with a side no longer than this on both sides is a plain loop."""


def _dot(emitter: Emitter, dot: Instruction) -> list[Thunk]:
    return _plain("dot" if is_library_dot(dot) else "kernel", emitter, dot)


def is_library_dot(dot: Instruction) -> bool:
    """True if XLA:CPU calls Eigen for a dot (`GetDotImplementationStrategy`). Batch dimensions are disregarded."""
    lhs = _inner(dot.operands[0].shape, dot.attributes.get("lhs_batch_dims", ()))
    rhs = _inner(dot.operands[1].shape, dot.attributes.get("rhs_batch_dims", ()))
    result = dot.shape
    if lhs is None or rhs is None or result is None:
        return False
    batch = len(dot.attributes.get("lhs_batch_dims", ()))
    sizes = result.dimensions[batch:]
    is_real = not result.element_type.is_complex
    if is_real and (len(sizes) <= 1 or (len(sizes) == 2 and 1 in sizes)):
        return False
    if is_real and all(len(side) <= 1 or (len(side) == 2 and min(side) <= _SMALL) for side in (lhs, rhs)):
        return False
    if 0 in lhs or 0 in rhs or str(result.element_type) not in _LIBRARY_TYPES:
        return False
    return len(lhs) == len(rhs) == len(sizes) == 2


def _inner(shape: Shape | None, batch: tuple[int, ...]) -> tuple[int, ...] | None:
    if shape is None:
        return None
    return tuple(size for number, size in enumerate(shape.dimensions) if number not in batch)


def _convolution(emitter: Emitter, convolution: Instruction) -> list[Thunk]:
    return _plain("convolution" if is_library_convolution(convolution) else "kernel", emitter, convolution)


def is_library_convolution(convolution: Instruction) -> bool:
    """True if XLA:CPU calls Eigen for a convolution: forward, NHWC, HWIO, row-major, f16 or f32.

    As `PotentiallyImplementedAsEigenConvolution`.
    """
    shapes = [
        shape for shape in (*(o.shape for o in convolution.operands), convolution.shape) if shape is not None
    ]
    labels = convolution.attributes.get("dim_labels")
    if len(shapes) != 3 or not isinstance(labels, ConvolutionDimensionNumbers):
        return False
    if any(0 in shape.dimensions for shape in shapes[:2]) or not all(map(_is_row_major, shapes)):
        return False
    if str(shapes[0].element_type) not in ("f16", "f32"):
        return False
    window = convolution.attributes.get("window")
    if window is not None and any(dimension.window_reversal for dimension in window.dimensions):
        return False
    spatial = len(labels.output_spatial_dimensions)
    order = tuple(range(spatial))
    return (
        1 <= spatial <= 3
        and tuple(labels.input_spatial_dimensions) == tuple(n + 1 for n in order)
        and tuple(labels.output_spatial_dimensions) == tuple(n + 1 for n in order)
        and tuple(labels.kernel_spatial_dimensions) == order
        and (labels.input_batch_dimension, labels.output_batch_dimension) == (0, 0)
        and (labels.input_feature_dimension, labels.output_feature_dimension) == (spatial + 1, spatial + 1)
        and (labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension)
        == (spatial, spatial + 1)
    )


def _is_row_major(shape: Shape) -> bool:
    order = shape.layout.minor_to_major if shape.layout is not None else None
    return order is None or order == tuple(range(len(shape.dimensions) - 1, -1, -1))


# ---- the table

_SOURCE = "cpu::ThunkEmitter::EmitHloInstruction"


def _row(thunks: str, emit: Any, *, is_seen: bool = True, source: str = _SOURCE) -> EmissionRule:
    return EmissionRule(thunks=thunks, emit=emit, source=source, is_seen=is_seen)


_COLLECTIVES = traits.COLLECTIVE_KINDS - traits.HAS_PARTIAL_GROUPS - {"ragged-all-to-all"}
"""Collectives for which the CPU compiler has thunks."""
_NONE = _row("none: handled by buffer assignment", nothing)
_COLLECTIVE = _row("collective", partial(_plain, "collective"))
_KERNEL = _row("kernel", _kernel)
RULES: dict[str, EmissionRule] = {
    **dict.fromkeys(sorted(traits.IS_FREE), _NONE),
    "call": _row("call{its computation}; kernel for xla_cpu_small_call", _call, source="EmitCallThunk"),
    "while": _row("while{condition, body}", _while, source="EmitWhileThunk"),
    "conditional": _row("conditional{branches}", _conditional, source="EmitConditionThunk"),
    "fusion": _row("kernel; ynn-fusion or onednn-fusion for kCustom", _fusion),
    "copy": _row("copy; kernel for elements that share bytes", _copy),
    "sort": _row("copy for each operand with its own buffer, then sort", _sort, source="EmitSortThunk"),
    "dot": _row("dot if Eigen computes it, else kernel", _dot, source="GetDotImplementationStrategy"),
    "convolution": _row(
        "convolution if Eigen computes it, else kernel", _convolution, source="EmitConvolutionThunk"
    ),
    **dict.fromkeys(sorted(_COLLECTIVES), _COLLECTIVE),
    **{
        opcode: _row(opcode, partial(_plain, opcode), is_seen=opcode == "fft")
        for opcode in sorted(traits.HOST_QUEUES | traits.DEVICE_IDS | {"fft", "rng-get-and-update-state"})
    },
}
"""By opcode, but for those of `ELEMENTAL`."""
# fmt: off
ELEMENTAL = frozenset({
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "bitcast-convert",
    "broadcast", "cbrt", "ceil", "clamp", "compare", "complex", "concatenate", "convert", "cosh",
    "cosine", "count-leading-zeros", "divide", "dynamic-slice", "dynamic-update-slice", "erf",
    "exponential", "exponential-minus-one", "floor", "gather", "imag", "iota", "is-finite", "log",
    "log-plus-one", "map", "maximum", "minimum", "multiply", "negate", "not", "or", "pad", "popcnt",
    "power", "real", "reduce", "reduce-precision", "reduce-window", "remainder", "reshape", "reverse",
    "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "slice", "sqrt",
    "subtract", "tan", "tanh", "transpose", "xor", "mulhi",
})
# fmt: on
"""Opcodes that become one kernel."""
TARGETS: dict[str, EmissionRule] = {
    "TopK": _row("topk", partial(_plain, "topk"), source="EmitTopKThunk"),
    "SliceToDynamic": _row("kernel", _kernel, is_seen=False, source="EmitSliceToDynamicThunk"),
    "GetRngSeed": _row("rng-seed", partial(_plain, "rng-seed"), is_seen=False, source="EmitRngSeedThunk"),
}
"""By target of a custom call."""
OTHER_TARGET = _row("custom-call", partial(_plain, "custom-call"), source="EmitCustomCallThunk")


def rule_of(instruction: Instruction) -> EmissionRule | None:
    """Returns the rule by which XLA emits an instruction; None if XLA:CPU cannot emit it."""
    if instruction.opcode == "custom-call":
        return TARGETS.get(str(instruction.attributes.get("custom_call_target")), OTHER_TARGET)
    if instruction.opcode in ELEMENTAL:
        return _KERNEL
    return RULES.get(instruction.opcode)
