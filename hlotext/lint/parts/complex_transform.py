"""Fourier transforms of real data in complex numbers."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import fusions_around
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.selectors import is_zero
from hlotext.lint.values import VIEWS, Value, consumers, source
from hlotext.lint.wording import sizes

_HALF = 0.5
"""Part of the work and the bytes that a transform of real data takes."""


@attrs.frozen
class ComplexTransform(Rule):
    needs_optimized = True
    opcodes = frozenset({"fft"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        kind = str(instruction.attributes.get("fft_type"))
        value = Value(instruction, fusions_around(instruction, context))
        if not (kind == "FFT" and _was_real(value)) and not (
            kind == "IFFT" and _is_then_real(value)
        ):  # it is not a complex transform of real values
            return
        loop = context.loop_around(instruction.computation)
        does = (
            "transforms real data"
            if kind == "FFT"
            else "transforms back what was real, and only the real part is used,"
        )
        yield Report(
            instruction,
            f"an {kind} of {sizes(instruction.shape)} {does} in complex numbers",
            "use jnp.fft.rfft2 and irfft2 (rfft, irfftn, ...): half the work and half the bytes, since one half of the "
            "spectrum mirrors the other",
            seconds=context.prices.seconds(instruction) * _HALF,
            cause=f"transforms of {loop.name if loop is not None else 'the program'}",  # one edit changes them all
        )


def _was_real(transform: Value) -> bool:
    """True if all imaginary parts are zero before a transform."""
    made = source(transform.operands()[0], VIEWS | {"transpose"})
    one, operands = made.instruction, made.operands()
    if one.opcode == "complex":
        return is_zero(operands[1])
    before = one.operands[0].shape if one.opcode == "convert" else None
    return before is not None and before.is_array and not str(before.element_type).startswith("c")


def _is_then_real(transform: Value) -> bool:
    """True if only real parts of the result are used, possibly scaled, and its spectrum is that of real data."""
    users = [user.instruction.opcode for user, _ in consumers(transform, VIEWS | {"transpose"})]
    if not users or set(users) != {"real"} or (transform.instruction.is_root and not transform.fusions):
        return False
    pending = [transform.operands()[0]]
    for _ in range(8):
        if not pending:
            break
        made = source(pending.pop(), VIEWS | {"transpose", "convert"})
        if made.instruction.opcode == "fft":
            return str(made.instruction.attributes.get("fft_type")) == "FFT" and _was_real(made)
        if made.instruction.opcode in ("divide", "multiply"):
            pending += made.operands()
    return False
