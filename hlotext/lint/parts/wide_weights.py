"""f32 weights that a program without a backward pass only reads."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend, byte_text
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import UNKNOWN_MEMORY, Context, Report, Rule
from hlotext.lint.training import has_backward_pass, state_of

_MUCH = 0.1
"""Part of the chip's memory that they take, from which on it is worth knowing: nobody is short of what is hardly used."""
_MATRIX = 2
_HELP = (
    "store them in bf16 (jax.tree.map(lambda w: w.astype(jnp.bfloat16), params) once, outside of the step): half the "
    "memory and half the bytes of each read, with results rounded to 8 bits of mantissa"
)
_HELP_ON_CPU = (
    "in bf16 they take half the memory (jax.tree.map(lambda w: w.astype(jnp.bfloat16), params) once, outside of the step), "
    "unless the CPU compiler converts them back to f32 in each call, which takes more than it saves: compare `hlotext "
    "memory` of both modules"
)


class WideWeights(Rule):
    severity = Severity.NOTE
    is_proved = False  # whether the results bear narrower weights is for the author to say
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        least_bytes = _MUCH * (context.prices.chip.memory_bytes or UNKNOWN_MEMORY)
        weights = [p for p in context.arguments if p.users and _is_wide_matrix(p)]
        total_bytes = sum(size_of(p.shape) for p in weights)
        if total_bytes < least_bytes:  # the f32 weights are small
            return
        if has_backward_pass(context):  # the module trains the weights
            return
        state = state_of(context)
        weights = [p for p in weights if p not in state]
        total_bytes = sum(size_of(p.shape) for p in weights)
        if total_bytes < least_bytes:  # the wide weights are too small
            return
        # A public decoder (Gemma 4) with 5.3 GiB of bf16 weights holds 10.0 GiB of f32 copies on CPU, and none on GPU.
        is_kept_narrow = context.backend is not Backend.CPU
        yield Report(
            max(weights, key=lambda p: size_of(p.shape)),
            f"{len(weights):,} f32 weights, {byte_text(total_bytes)} in total, are only read",
            _HELP if is_kept_narrow else _HELP_ON_CPU,
            total_bytes // 2 if is_kept_narrow else None,
            is_held=is_kept_narrow,
            cause="weights",
        )


def _is_wide_matrix(parameter: Instruction) -> bool:
    shape = parameter.shape
    return shape is not None and shape.is_array and shape.rank >= _MATRIX and shape.element_type.name == "f32"
