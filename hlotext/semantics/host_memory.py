"""Memory of the host, `S(5)`: what moves data to and from it, and what computes on it."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcode import Family
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.shape import Shape
from hlotext.layout.errors import shorten
from hlotext.semantics.forwarded_layouts import SPACE, equal_but_for
from hlotext.semantics.problems import Problem

HOST_SPACE = 5
"""Memory space of the host (`Layout::kHostMemorySpace`)."""

_COMPUTING = frozenset(
    {
        Family.ELEMENTWISE_UNARY,
        Family.ELEMENTWISE_BINARY,
        Family.ELEMENTWISE_TERNARY,
        Family.REDUCTION,
        Family.SORTING,
        Family.CONTRACTION,
        Family.LINEAR_ALGEBRA,
        Family.NORMALIZATION,
        Family.RANDOM,
    }
)
"""Families of opcodes that work on values, so that the values must lie where the work is done."""


def _space(shape: Shape | None) -> int:
    return shape.layout.memory_space if shape is not None and shape.layout is not None else 0


def _is_host(shape: Shape | None) -> bool:
    return _space(shape) == HOST_SPACE


def asks_for_host(instruction: Instruction) -> bool:
    return instruction.frontend_attributes.get("_xla_compute_type") == "host"


def move_problems(instruction: Instruction) -> Iterator[Problem]:
    """Checks copies, slices and bitcasts between host and device memory.

    Corresponds to `CheckShape` of copy, `HandleBitcast` and `HostOffloadInstructionCanChangeMemorySpace`.
    """
    shape, operand = instruction.shape, instruction.operands[0].shape if instruction.operands else None
    if shape is None or operand is None or _is_host(shape) == _is_host(operand):
        return
    opcode, message = instruction.opcode, ""
    if opcode == "copy" and _is_host(shape) and shape.element_type is not operand.element_type:
        message = f"a copy to the host must preserve the element type, so {operand} cannot become {shape}"
    elif opcode == "copy" and _is_host(operand) and not equal_but_for(shape, operand, frozenset({SPACE})):
        message = f"a copy from the host must preserve the layout, so {operand} cannot become {shape}"
    elif opcode == "dynamic-slice" and _is_host(shape):
        message = "a dynamic-slice cannot move its result to the host"
    elif opcode == "dynamic-update-slice" and _is_host(operand):
        message = "a dynamic-update-slice cannot move its operand to the device"
    elif opcode == "bitcast" and not _is_constant(instruction.operands[0]):
        message = f"a bitcast moves no data, so {shorten(str(operand))} cannot become {shorten(str(shape))}"
    if message:
        yield Problem("V208", message, help="copy it unchanged, and convert it before or after",
            related=(("moved value", instruction.operands[0]),),
        )  # fmt: skip


def _is_constant(instruction: Instruction) -> bool:
    """A constant, or copies of one, which XLA may place anew."""
    while instruction.opcode == "copy" and instruction.operands:
        instruction = instruction.operands[0]
    return instruction.opcode == "constant"


def computation_problems(instruction: Instruction) -> Iterator[Problem]:
    row = OPCODES.get(instruction.opcode)
    if row is None or row.family not in _COMPUTING:
        return
    for number, operand in enumerate(instruction.operands):
        if _is_host(operand.shape):
            yield Problem("V209", f"{instruction.opcode} reads {shorten(str(operand.shape))} in host memory", number,
                'copy it to the device first, or mark the work with _xla_compute_type="host"',
                (("the operand", operand),),
            )  # fmt: skip
            return
    if _is_host(instruction.shape):
        yield Problem("V209", f"{instruction.opcode} writes {shorten(str(instruction.shape))} into host memory",
            help='copy the result to the host, or mark the work with _xla_compute_type="host"',
        )  # fmt: skip
