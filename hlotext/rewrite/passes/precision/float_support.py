"""Element types in which compilers compute operations: narrow ones kept, or widened (XLA's `FloatSupport`)."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.tables.opcodes import COLLECTIVES
from hlotext.ir.values.age import XlaAge
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType, TypeKind
from hlotext.rewrite.passes.properties import is_descending

PASSED_ON = traits.CONTROL_FLOW | traits.TUPLES | {"custom-call", "domain", "opt-barrier"}
"""Opcodes that take every type (`SupportsLowPrecisionOperand`)."""
BITWISE = frozenset({"count-leading-zeros", "shift-right-logical", "shift-right-arithmetic"})
"""Opcodes that have another result in another type."""
SAME_PRECISION = frozenset(
    {
        "abs", "all-gather", "all-to-all", "broadcast", "clamp", "collective-broadcast", "collective-permute", "concatenate",
        "convert", "copy", "domain", "get-tuple-element", "maximum", "minimum", "pad", "ragged-all-to-all", "reshape",
        "reverse", "slice", "sort", "transpose", "tuple", "opt-barrier",
    }
)  # fmt: skip
"""Opcodes that need their operands no more precisely than their result (`EffectiveOperandPrecisionIsOutputPrecision`)."""
ON_GPU = frozenset(
    {
        "all-reduce", "all-reduce-start", "all-reduce-done", "reduce-scatter", "scaled-dot", "convolution", "ragged-dot",
        "all-gather", "all-to-all", "broadcast", "collective-permute", "concatenate", "copy", "constant", "dynamic-slice",
        "dynamic-update-slice", "gather", "pad", "ragged-all-to-all", "reshape", "reverse", "scatter", "select",
        "select-and-scatter", "slice", "transpose", "bitcast", "bitcast-convert", "convert", "compare", "reduce-precision",
        "xor",
    }
)  # fmt: skip
"""Opcodes that the GPU compiler computes in every narrow type (`GpuFloatSupport::IsSupported`)."""
BF16_ON_HOPPER = frozenset(
    {"dot", "exponential", "log", "abs", "maximum", "minimum", "negate", "add", "multiply", "subtract"}
)
"""Opcodes that it computes in bf16 besides, on NVIDIA GPUs from Hopper on."""


BF16_ON_CPU = frozenset(
    {
        "broadcast", "reshape", "transpose", "copy", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate", "pad",
        "reverse", "gather", "scatter", "sort", "select", "maximum", "minimum", "clamp", "negate", "abs", "sign", "compare",
    }
)  # fmt: skip
"""Opcodes that the CPU compiler computes in bf16 since `xla_changes.CPU_MOVES_BF16`: what moves, chooses and changes signs
(found by compiling one of each)."""


@attrs.frozen
class FloatSupport:
    """A compiler's support of a narrow float type."""

    low: ElementType
    high: ElementType
    is_gpu: bool
    age: XlaAge = attrs.field(factory=XlaAge)

    def skips(self, i: Instruction) -> bool:
        """Returns True if an instruction is left to a library (`CpuFloatSupport::ShouldSkipInstruction`)."""
        if self.is_gpu or self.low.name != "bf16":
            return False
        if i.opcode == "dot":
            return is_library_dot(i, may_give_bf16=self.age.has(xla_changes.CPU_MOVES_BF16))
        return is_library_reduction(i)

    def takes(self, i: Instruction) -> bool:
        """Returns True if operands may be narrow (`SupportsLowPrecisionOperand`)."""
        if i.opcode == "convert":
            source = i.operands[0].shape
            return source is not None and source.element_type is self.low
        return i.opcode in PASSED_ON or i.opcode in BITWISE or self._computes(i)

    def gives(self, i: Instruction) -> bool:
        """Returns True if the result may be narrow (`SupportsLowPrecisionOutput`)."""
        if i.opcode == "convert":
            return i.shape is not None and i.shape.element_type is self.low
        return i.opcode in PASSED_ON or i.opcode in BITWISE or self._computes(i)

    def mixes(self, i: Instruction) -> bool:
        """Returns True if narrow and wide values may be mixed (`SupportsMixedPrecisions`)."""
        if i.opcode == "convert" or (i.opcode in PASSED_ON and i.opcode != "domain"):
            return True
        if not self.is_gpu:
            return False
        if i.opcode == "dot":
            types = [o.shape.element_type.name for o in (*i.operands, i) if o.shape is not None]
            return types in (["f16", "f16", "f32"], ["bf16", "bf16", "f32"])
        return i.opcode == "scaled-dot"

    def skips_computations(self, i: Instruction) -> bool:
        """Returns True if the callees are left unchanged (`ShouldAvoidNormalizingComputationsForInstruction`)."""
        is_custom = not self.is_gpu and i.opcode == "fusion" and str(i.attributes.get("kind")) == "kCustom"
        return i.opcode in ("all-reduce", "reduce-scatter") or is_custom or self.skips(i)

    def _computes(self, i: Instruction) -> bool:
        if not self.is_gpu:
            moves = self.low.name == "bf16" and self.age.has(xla_changes.CPU_MOVES_BF16)
            return moves and i.opcode in BF16_ON_CPU
        if (
            i.opcode in COLLECTIVES
            and i.shape is not None
            and any(_is_packed(s) for _, s in i.shape.leaves())
        ):
            return False
        if i.opcode in ("reduce", "sort"):
            return all(x.opcode == "parameter" or self._computes(x) for c in i.called_computations for x in c)
        return i.opcode in ON_GPU or (self.low.name == "bf16" and i.opcode in BF16_ON_HOPPER)


def _is_packed(shape: Shape) -> bool:
    return (
        shape.is_array and shape.element_type.bits < 8 and shape.element_type.kind is not TypeKind.PREDICATE
    )


LIBRARY_SIZE = 8
"""Minimum size of a product for which the CPU compiler calls a library."""


def is_library_dot(i: Instruction, *, may_give_bf16: bool) -> bool:
    """Returns True if the CPU compiler calls a library for a bf16 dot with result in f32 or bf16
    (`IsDotSupportedByYnn`).

    Only for dots in the form produced by `dot-decomposer`.
    """
    names = [x.shape.element_type.name for x in (*i.operands, i) if x.shape is not None]
    shapes = [o.shape for o in i.operands if o.shape is not None]
    results = ("f32", "bf16") if may_give_bf16 else ("f32",)
    if names[:2] != ["bf16", "bf16"] or names[2:3] not in [[name] for name in results] or len(shapes) != 2:
        return False
    if any(
        x.shape.layout is not None and not is_descending(x.shape)
        for x in (*i.operands, i)
        if x.shape is not None
    ):
        return False
    lhs, rhs = shapes
    first, second = (tuple(i.attributes.get(f"{side}_contracting_dims", ())) for side in ("lhs", "rhs"))
    batch = len(tuple(i.attributes.get("lhs_batch_dims", ())))
    if (
        lhs.rank != batch + 2
        or rhs.rank != batch + 2
        or first != (batch + 1,)
        or second not in ((batch,), (batch + 1,))
    ):
        return False
    rows, inner = lhs.dimensions[batch:]
    columns = rhs.dimensions[2 * batch + 1 - second[0]]
    return 1 not in (rows, columns, inner) and max(rows, columns, inner) >= LIBRARY_SIZE


LIBRARY_COUNT = 4096
"""Elements that one side of a reduction must have for the CPU compiler to call a library."""


def is_library_reduction(i: Instruction) -> bool:
    """Returns True if the CPU compiler calls a library for a bf16 maximum or minimum (`IsReduceLikeOpSupportedByYnn`)."""
    if (
        i.opcode != "reduce"
        or len(i.operands) != 2
        or not i.attributes.get("dimensions")
        or not i.called_computations
    ):
        return False
    shapes = [x.shape for x in (i, *i.operands) if x.shape is not None and x.shape.is_array]
    if len(shapes) != 3 or any(shape.element_type.name != "bf16" for shape in shapes):
        return False
    root = i.called_computations[0].root
    numbers = sorted(o.parameter_number for o in root.operands if o.parameter_number is not None)
    is_extreme = root.opcode in ("maximum", "minimum") and numbers == [0, 1]
    return is_extreme and max(shape.element_count for shape in shapes) >= LIBRARY_COUNT


def needs_no_more(i: Instruction, numbers: Collection[int]) -> bool:
    """Returns True if operands need no more precision than the result (`EffectiveOperandPrecisionIsOutputPrecision`)."""
    if i.opcode in SAME_PRECISION:
        return True
    if i.opcode == "bitcast":
        source = i.operands[0].shape
        return source is not None and i.shape is not None and source.element_type is i.shape.element_type
    if i.opcode in ("dynamic-slice", "gather"):
        return max(numbers) == 0
    if i.opcode == "dynamic-update-slice":
        return max(numbers) < 2
    if i.opcode == "select":
        return min(numbers) > 0
    if i.opcode in ("reduce", "reduce-window"):
        inner = [x for c in i.called_computations[:1] for x in c if x.opcode != "parameter"]
        return all(
            x.opcode not in ("reduce", "reduce-window")
            and (not x.operands or needs_no_more(x, range(len(x.operands))))
            for x in inner
        )
    return False
