"""A copy that only changes the layout of a large array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import COLLECTIVES
from hlotext.lint.beside import is_worth_time
from hlotext.lint.exchanged_sorts import is_next_to_exchange
from hlotext.lint.helpers import changes_layout, is_of_convolution, is_of_expansion, is_solvers, times
from hlotext.lint.moving import comes_from_argument, is_in_main_memory, moved_bytes
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, is_spread, source


class RelayoutCopy(Rule):
    needs_optimized = True
    opcodes = frozenset({"copy", "copy-start"})

    min_bytes: ClassVar[int] = 4 << 20
    """Bytes written in all runs, from which on it is worth a finding."""
    min_percent: ClassVar[float] = 3
    """Percent of all that the module writes that this takes, likewise."""
    min_time_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module that this takes, likewise."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if not changes_layout(instruction) or not context.is_stepped(
            instruction
        ):  # it does not change a layout in the schedule
            return
        if comes_from_argument(instruction.operands[0], context) or not is_in_main_memory(
            instruction
        ):  # it copies an argument, or is not in main memory
            return
        if (
            is_solvers(instruction)
            or _is_convolutions(instruction)
            or is_spread(instruction.operands[0])  # the compiler could write it in either order
            or _is_handed_out(instruction, context)
            or _is_received(instruction)
            or is_next_to_exchange(instruction, context)
            or is_of_expansion(instruction)
        ):  # a solver, a convolution, a collective or a result requires its layout
            return
        runs, size = context.runs(instruction), written_bytes(instruction)
        is_much = size * runs >= max(self.min_bytes, self.min_percent * context.written / 100)
        if is_much and is_worth_time(instruction, context, self.min_time_percent):  # it copies too few bytes
            yield Report(
                instruction,
                f"a copy writes {byte_text(size)}{times(runs)} only to change the layout from "
                f"{_order(instruction.operands[0])} to {_order(instruction)}",
                "make producer and consumer agree on one dimension order",
                moved_bytes(instruction, instruction.operands[0]) * runs,
            )


def _order(instruction: Instruction) -> str:
    shape = instruction.shape
    if shape is not None and shape.is_tuple:
        shape = shape.tuple_shapes[0]
    numbers = shape.layout.minor_to_major if shape is not None and shape.layout is not None else ()
    return "{" + ",".join(map(str, numbers)) + "}"


def _is_handed_out(copy: Instruction, context: Context) -> bool:
    """True if it only brings a result into the layout that the caller expects."""
    root = context.module.entry.root
    return bool(copy.users) and all(user is root and user.opcode == "tuple" for user in copy.users)


def _is_received(copy: Instruction) -> bool:
    """True if it reorders the result of a collective, which is part of the collective's cost."""
    return source(Value(copy.operands[0]), VIEWS | {"get-tuple-element"}).instruction.opcode in COLLECTIVES


def _is_convolutions(copy: Instruction) -> bool:
    """True if it serves a convolution, whose operands the compiler slices and transposes as it chooses."""
    return any(is_of_convolution(i) for i in (copy, *copy.operands, *copy.users))
