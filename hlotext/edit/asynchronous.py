"""Operands of asynchronous operations: a start is finished once, by its own done, and has no other user."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import FINISHERS, STARTS
from hlotext.ir.nodes.instruction import Form, Instruction


def check_taken(
    user: Instruction, opcode: str, operands: Sequence[Instruction], before: Container[Instruction] = ()
) -> None:
    """Raises EditError if an instruction with this opcode must not have these operands. Operands in `before` are
    allowed.
    """
    first = operands[0] if operands else None
    if opcode in STARTS:
        _check_start(opcode, first)
    for operand in operands:
        if operand._head.opcode in FINISHERS and operand not in before:
            _check_finisher(user, opcode, operand, is_first=operand is first)


def check_one(user: Instruction, operand: Instruction, *, is_first: bool) -> None:
    """Raises EditError if an instruction must not have this additional operand."""
    if is_first and user._head.opcode in STARTS:
        _check_start(user._head.opcode, operand)
    if operand._head.opcode in FINISHERS:
        _check_finisher(user, user._head.opcode, operand, is_first=is_first)


def _check_start(opcode: str, first: Instruction | None) -> None:
    starts = STARTS[opcode]
    if first is None or not (first._head.opcode in starts or first._form is Form.IMPLICIT):
        raise EditError(f"the operand of {opcode} is {' or '.join(starts)}")


def _check_finisher(user: Instruction, opcode: str, operand: Instruction, *, is_first: bool) -> None:
    finishers = FINISHERS[operand._head.opcode]
    if not (opcode in finishers and is_first) and not _is_control(user):
        raise EditError(f"only {' or '.join(finishers)} may use {operand.name}, not {opcode}")
    if any(other is not user and is_finished_by(operand, other) for other in operand.users):
        raise EditError(f"{operand.name} is already completed")


def check_left(user: Instruction, operands: Iterable[Instruction]) -> None:
    """Raises EditError if a start among these operands would lose its done with this user."""
    for operand in operands:
        if is_finished_by(operand, user):
            raise EditError(f"{user.name} completes {operand.name}, which would never complete without it")


def is_finished_by(start: Instruction, user: Instruction) -> bool:
    """Returns True if `user` is an update or done of the asynchronous operation started by `start`."""
    finishers = FINISHERS.get(start._head.opcode)
    return finishers is not None and user._head.opcode in finishers and user._operands[:1] == (start,)


def _is_control(user: Instruction) -> bool:
    """True if an instruction uses a start for the order alone (XLA's `control_dep`)."""
    return user._attributes.get("custom_call_target") == "control_dep"
