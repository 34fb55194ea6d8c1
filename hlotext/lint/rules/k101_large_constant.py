"""K101: a large constant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.held import largest_written, least_held
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


class LargeConstant(Rule):
    code = "K101"
    name = "large-constant"
    title = "a large constant"
    severity = Severity.NOTE  # as an argument it takes the same memory: what is spared is the executable's
    opcodes = frozenset({"constant"})
    needs_any = opcodes

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes from which on it is worth a finding."""
    min_folded_bytes: ClassVar[int] = 16 << 20
    """The same of what the program computes and the compiler has computed in advance."""
    min_percent: ClassVar[float] = 10
    """Percent of the arguments, the results and the largest array that is written that it is, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        large = [
            i for i in context.census.by_opcode.get("constant", ()) if size_of(i.shape) >= self._least(i)
        ]
        whole = least_held(context) + largest_written(context) if large else 0
        for constant in large:
            size = size_of(constant.shape)
            if 100 * size >= self.min_percent * whole:  # it is too small a part of the module
                yield Report(
                    constant,
                    f"a constant of {byte_text(size)} is embedded in the program and in each of its executables",
                    "compute it from an argument"
                    if _is_folded(constant)
                    else "pass it as an argument, or compute it",
                    size,
                    is_held=True,
                )

    def _least(self, constant: Instruction) -> int:
        return self.min_folded_bytes if _is_folded(constant) else self.min_bytes


def _is_folded(constant: Instruction) -> bool:
    """True if the compiler has computed it: what is folded keeps the name of its operation, while what JAX captures has none,
    or that of the control flow it is passed to."""
    name = constant.metadata.op_name if constant.metadata is not None else ""
    return bool(name) and name.rpartition("/")[2] not in _CONTROL_FLOW


_CONTROL_FLOW = frozenset({"cond", "scan", "while"})
"""Primitives of JAX that constants are passed to."""
