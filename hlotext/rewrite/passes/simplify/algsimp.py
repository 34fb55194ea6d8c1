"""Algebraic simplification."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.analysis.age import age_for
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import xla_changes
from hlotext.rewrite.kit.drivers import RulesInPostOrder
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age, is_platform, nonfusion_computations
from hlotext.rewrite.passes.compilation_stage import (
    is_for_gpu,
    is_raw,
    is_tpu,
    layouts_count,
    was_walked_once,
)
from hlotext.rewrite.passes.simplify.algebra import RULES, AlgebraicSimplifierOptions, AlgebraRewrite
from hlotext.rewrite.passes.simplify.dimensions import is_identity

RERUNS = 50
"""Walks over a computation at most (`kAlgSimpRerunLimit`)."""

PLATFORMS = {
    "cpu": AlgebraicSimplifierOptions(
        executing_on_cpu=True, supports_non_canonical_dots=False, rewrite_no_op_bitcast_convert_to_bitcast=True
    ),
    "gpu": AlgebraicSimplifierOptions(
        enable_dot_strength_reduction=False, supports_non_canonical_dots=False,
        enable_unconditional_reduce_of_concat_replacement=False, rewrite_no_op_bitcast_convert_to_bitcast=True,
        enable_conditional_simplification=True, unconditionally_simplify_reduce_of_transpose_or_reshape=True,
        rewrite_reshape_transpose_as_slice_concatenate=False, enable_hoist_transpose_of_reshape=True,
    ),
    "tpu": AlgebraicSimplifierOptions(
        prefers_transposes=True, keeps_dot_param_on_rhs=True, enable_dot_to_multiply_rewrite=False
    ),
}  # fmt: skip
"""Options of the compilers (`cpu_compiler.cc`, `gpu_compiler.cc`); TPU's are not public, so XLA's defaults."""


@attrs.frozen
class AlgebraicSimplifier(Pass):
    """Applies the rules of `passes/simplify/algebra`, as XLA's `AlgebraicSimplifier` does.

    Visits every instruction, operands first, and applies the first matching rule; repeats until no rule matches. Each rule's
    docstring is its example and names the XLA handler that it comes from. Once layouts are assigned, a value is replaced only
    by one with the same layout, and operations that move no data become bitcasts. Fusion bodies are not changed.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  z = f32[] constant(0)  ROOT r = f32[] add(x, z) }")
    >>> AlgebraicSimplifier().run(m).statistics
    {'add_zero': 1}
    """

    name: ClassVar[str] = "algsimp"
    summary: ClassVar[str] = "Simplifies expressions by rules such as add(x, 0) => x."

    is_layout_sensitive: str = "auto"
    """`true`, `false`, or `auto`: as the module's text shows that layouts are assigned."""
    platform: str = attrs.field(default="auto", validator=is_platform)
    """`cpu`, `gpu` or `tpu`, whose compilers ask for different rules. `auto`: TPU where the header's layouts are tiled, GPU
    where the text shows that the simplifier was run once and not to the end, else CPU; before layouts are assigned the text
    often does not tell GPU from CPU."""
    max_iterations: int = 0
    """Walks over a computation at most; 0: as the platform's compiler does, one on GPU before layouts are assigned and on TPU
    over what no pass has seen yet (inferred from dumps), else 50."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age whose rules are applied, as `0.10.2` or a day; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        words = {"true": True, "false": False}
        sensitive = words.get(self.is_layout_sensitive)
        if sensitive is None:
            sensitive = layouts_count(module)
        platform = self._platform(module, sensitive)
        is_first = platform == "tpu" and not sensitive and is_raw(module)
        once = is_first or (platform == "gpu" and not sensitive)
        age = age_for(module, self.age or None)
        options = attrs.evolve(PLATFORMS[platform], is_layout_sensitive=sensitive, age=age)
        if is_first:
            options = attrs.evolve(options, keeps_dot_param_on_rhs=False)
        rewrite = AlgebraRewrite(module, options)
        driver = RulesInPostOrder(rewrite, RULES)
        for computation in nonfusion_computations(module):
            if not len(computation):
                continue
            for _ in range(self.max_iterations or (1 if once else RERUNS)):
                if not driver.walk(computation):
                    break
            if is_first and age.has(xla_changes.ALGSIMP_TPU_IDENTITIES):
                _drop_identities(rewrite, computation)
        return PassResult.of(driver.counts)

    def _platform(self, module: Module, sensitive: bool) -> str:
        if self.platform in PLATFORMS:
            return self.platform
        if is_tpu(module):
            return "tpu"
        looks_like_gpu = is_for_gpu if sensitive else was_walked_once
        return "gpu" if looks_like_gpu(module) else "cpu"


def _drop_identities(rewrite: AlgebraRewrite, computation: Computation) -> None:
    """Takes out the transposes that move nothing which one walk has left; who reads them is not looked at again.

    A walk makes such of broadcasts to the operand's own shape, and does not visit what it makes.
    """
    for i in tuple(computation):
        if i.opcode == "transpose" and is_identity(i.attributes["dimensions"]):
            rewrite.replace_if_compatible(i, i.operands[0])
