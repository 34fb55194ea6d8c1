"""Which instruction may take which: a start is finished once, by its own done, and nothing else takes it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import FINISHERS, STARTS

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction


def check_taken(
    user: Instruction, opcode: str, operands: Sequence[Instruction], before: Container[Instruction] = ()
) -> None:
    """Raises EditError where an instruction of that opcode may not take these operands, those aside that it took before."""
    starts = STARTS.get(opcode)
    first = operands[0] if operands else None
    if starts is not None and (
        first is None or not (first._opcode in starts or first.form.value == "implicit")
    ):
        raise EditError(f"the operand of {opcode} is {' or '.join(starts)}")
    for operand in operands:
        finishers = FINISHERS.get(operand._opcode)
        if finishers is None or operand in before:
            continue
        if (opcode not in finishers or operand is not first) and not _is_control(user):
            raise EditError(f"only {' or '.join(finishers)} may take {operand.name}, not {opcode}")
        if any(other is not user and is_finished_by(operand, other) for other in operand.users):
            raise EditError(f"{operand.name} is finished already")


def check_left(user: Instruction, operands: Iterable[Instruction]) -> None:
    """Raises EditError where a start among these operands would not be finished once an instruction is no user of it."""
    for operand in operands:
        if is_finished_by(operand, user):
            raise EditError(f"{user.name} finishes {operand.name}, which would never end without it")


def is_finished_by(start: Instruction, user: Instruction) -> bool:
    """Whether a user of an instruction finishes what that began."""
    finishers = FINISHERS.get(start._opcode)
    return finishers is not None and user._opcode in finishers and user._operands[:1] == (start,)


def _is_control(user: Instruction) -> bool:
    """Whether an instruction takes a start for the order alone (XLA's `control_dep`)."""
    return user._attributes.get("custom_call_target") == "control_dep"
