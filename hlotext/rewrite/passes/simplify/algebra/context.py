"""The context of the rules of `algsimp`: the options of `AlgebraicSimplifier`.

Each rule is for the opcodes of one of XLA's handlers. Its result replaces the instruction; if there is none, the next rule
for that opcode is tried, in the order of XLA's handler. Its docstring is an example, `before => after`, in op lines that
omit inferable shapes; lines that a side needs precede it, separated by `;`. In the examples `x y z` are f32[4,3], `i j`
s32[4,3], `a b` u32[4,3], `p q` pred[4,3], `w` is c64[4,3], `s` f32[], `n` s32[]; `f0 f1 f2` and `i0 i1` are splats of those
numbers, `yes no` of true and false, `fneg1` and `ineg1` of -1, `fhalf` of a half.
"""

from __future__ import annotations

from datetime import date

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.age import XlaAge
from hlotext.rewrite.kit.facts import is_all, is_typed
from hlotext.rewrite.kit.rules import Rewrite


@attrs.frozen
class AlgebraicSimplifierOptions:
    """Options of `algsimp`, named as in XLA's `AlgebraicSimplifierOptions`."""

    is_layout_sensitive: bool = False
    executing_on_cpu: bool = False
    enable_dot_strength_reduction: bool = True
    enable_dot_to_multiply_rewrite: bool = True
    supports_non_canonical_dots: bool = True
    keeps_dot_param_on_rhs: bool = False
    """Keep the transpose of a dot if only its second operand is derived from a parameter (seen in dumps for TPU)."""
    enable_unconditional_reduce_of_concat_replacement: bool = True
    unconditionally_simplify_reduce_of_transpose_or_reshape: bool = False
    rewrite_reshape_transpose_as_slice_concatenate: bool = True
    rewrite_no_op_bitcast_convert_to_bitcast: bool = False
    enable_hoist_transpose_of_reshape: bool = False
    enable_conditional_simplification: bool = False
    enable_remove_no_op_reduce_precision: bool = False
    prefers_transposes: bool = False
    """Replace a broadcast that repeats nothing and keeps the rank with a transpose (seen in dumps for TPU)."""
    enable_fast_math: bool = False
    """Allow rewrites that round differently. On CPU, `xla_cpu_enable_fast_math` enables them."""
    age: XlaAge = attrs.field(factory=XlaAge)
    """Age of the XLA version whose rules are applied; the newest if unknown."""


class AlgebraRewrite(Rewrite):
    """Context of an algebraic rule: a `Rewrite` with the options of `algsimp` and steps shared by rules."""

    options: AlgebraicSimplifierOptions

    def __init__(self, module: Module, options: AlgebraicSimplifierOptions) -> None:
        super().__init__(module, options, is_layout_sensitive=options.is_layout_sensitive)
        self.sums: dict[str, Computation] = {}
        """Computations that add two numbers, by type, created when first needed."""

    def has(self, change: date) -> bool:
        """Returns True if the modeled XLA version includes a change made on a date."""
        return self.options.age.has(change)

    def is_loose(self, change: date) -> bool:
        """Returns True if a rule that rounds differently applies: before `change` always, since then with fast math."""
        return self.options.enable_fast_math or not self.has(change)

    def may_rewrite(self, i: Instruction) -> bool:
        """Returns True if rules may rewrite an instruction. Excludes sparse dots, as `HandleDot` does."""
        return is_typed(i) and (i.opcode != "dot" or len(i.operands) == 2)

    def drop_neutral(self, number: float) -> bool:
        """Rewrites `op(x, number) => x`, with the number on either side. Returns True if it was rewritten."""
        i = self.instruction
        x, y = i.operands
        return (is_all(y, number) and self.replace_if_compatible(i, x)) or (
            is_all(x, number) and self.replace_if_compatible(i, y)
        )

    def keep_absorbing(self, number: float) -> bool:
        """Rewrites `op(x, number) => number`, with the number on either side. Returns True if it was rewritten."""
        i = self.instruction
        x, y = i.operands
        return (is_all(y, number) and self.replace_if_compatible(i, y)) or (
            is_all(x, number) and self.replace_if_compatible(i, x)
        )
