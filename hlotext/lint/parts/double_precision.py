"""64-bit floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, arrays_of, written_bytes
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.lint.narrowed import saved_by_narrowing
from hlotext.lint.rule import Context, Report, Rule


class DoublePrecision(Rule):
    min_bytes: ClassVar[int] = 1 << 12
    """Bytes that 64-bit floats take in all that is written, from which on they are worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        wide = [shape for shape in context.census.shapes if _holds(shape)]
        if not wide:  # nothing is computed in f64
            return
        first: Instruction | None = None
        count = saved = 0
        for instruction in [i for i in context.census.instructions if i.shape in wide]:
            # Tuples only pass on what something else has made, and arguments and constants are not computed.
            if instruction.opcode in _PASSING:
                continue
            count += 1
            if context.is_stepped(instruction):
                saved += written_bytes(instruction) // 2 * context.runs(instruction)
            if first is None and instruction.shape is not None and instruction.shape.is_array:
                first = instruction
        if (
            first is not None and 2 * saved >= self.min_bytes and not _is_meant(context)
        ):  # too little is computed in f64, or the program uses it on purpose
            wide_type = first.shape.element_type if first.shape else "f64"
            slow = _SLOWER.get(context.backend) if context.backend is not None else None
            priced = saved_by_narrowing(context)
            yield Report(
                first,
                (
                    f"this instruction computes in {wide_type}"
                    if count == 1
                    else f"{count:,} instructions compute in {wide_type}, starting with this one"
                )
                + (f": {slow}" if slow else ""),
                "use f32, or leave jax_enable_x64 off",
                None if priced is not None else saved,
                "present",
                # On TPU every operation on 64 bits is several on 32, however small the arrays are.
                severity=Severity.WARNING if context.backend is Backend.TPU else None,
                cause="f64",
                is_at_most=True,  # kernels of f32 are other kernels
                seconds=priced[0] if priced is not None else None,
                peak_bytes=priced[1] if priced is not None else None,
                spares=dict.fromkeys(context.module.entry, 0.5) if priced is not None else {},
            )


def _is_meant(context: Context) -> bool:
    """True if all arguments from the caller have 64 bits, which is no accident. On TPU it is still a mistake."""
    arguments = (array for p in context.arguments for _, array in arrays_of(p.shape) if array.rank)
    floats = {
        a.element_type.name in _WIDE
        for a in arguments
        if a.element_type.is_floating or a.element_type.is_complex
    }
    return floats == {True} and context.backend is not Backend.TPU


_PASSING = frozenset(
    {"bitcast", "constant", "get-tuple-element", "parameter", "tuple", "while", "call", "conditional"}
)
_SLOWER = {
    Backend.TPU: "TPUs have no f64 arithmetic, so each operation is emulated by ten or more f32 operations",
    Backend.GPU: "twice the bytes, and a fraction of the f32 speed on most GPUs",
}
_WIDE = frozenset({"f64", "c128"})


def _holds(shape: Shape) -> bool:
    return any(leaf.element_type.name in _WIDE for _, leaf in shape.leaves())
