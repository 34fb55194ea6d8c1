"""Fingerprints: what stays the same of a finding when a program is compiled again.

Names, numbers, metadata, channel ids and backend configs change with every compilation, and so do positions. What an
instruction does, to which shapes, in which kind of computation does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.raw_value import value_text
from hlotext.lint.rule import Context, Report

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late_module("hashlib")

_LASTING = (
    "dimensions", "replica_groups", "source_target_pairs", "custom_call_target", "kind", "index", "direction",
    "lhs_contracting_dims", "rhs_contracting_dims", "dynamic_slice_sizes", "slice", "padding", "window",
)  # fmt: skip
"""Attributes that say what an instruction does and refer to nothing by name."""


def fingerprint(code: str, report: Report, context: Context) -> str:
    """Returns the fingerprint of a finding: 16 hexadecimal digits; callers number equal ones."""
    parts = [code, report.key]
    if report.instruction is not None:
        parts += _form(report.instruction)
        computation = report.instruction.computation
        if computation is not None:
            parts.append(context.graph.use(computation))
            parts.append("in loop" if context.loop_around(computation) is not None else "")
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def text_fingerprint(code: str, message: str) -> str:
    """Returns the fingerprint of a finding without instruction, such as a syntax error."""
    return hashlib.sha256(f"{code}\n{message}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _form(instruction: Instruction) -> list[str]:
    operands = [f"{operand.opcode} {operand.shape}" for operand in instruction.operands]
    attributes = instruction.attributes
    lasting = [f"{name}={value_text(attributes[name], name)}" for name in _LASTING if name in attributes]
    return [instruction.opcode, str(instruction.shape), *operands, *lasting]
