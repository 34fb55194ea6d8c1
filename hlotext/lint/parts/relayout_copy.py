"""A copy that only changes the layout of a large array."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, byte_text, written_bytes
from hlotext.analysis.heroes import MOVES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import COLLECTIVES
from hlotext.lint.beside import is_worth_time
from hlotext.lint.exchanged_sorts import is_next_to_exchange
from hlotext.lint.helpers import (
    changes_layout,
    is_of_convolution,
    is_of_expansion,
    is_of_own_function,
    is_solvers,
    times,
)
from hlotext.lint.moving import comes_from_argument, is_in_main_memory, moved_array, moved_bytes
from hlotext.lint.parts.parameter_relayout import operation_key
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, is_spread, source


class RelayoutCopy(Rule):
    needs_optimized = True

    min_bytes: ClassVar[int] = 4 << 20
    """Bytes written in all runs, from which on it is worth a finding."""
    min_percent: ClassVar[float] = 3
    """Percent of all that the module writes that this takes, likewise."""
    min_time_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module that this takes, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        together: dict[str, list[Instruction]] = defaultdict(list)
        for opcode in _OPCODES:
            for instruction in context.census.by_opcode.get(opcode, ()):
                if written_bytes(instruction) * context.runs(instruction) < self.min_bytes:
                    continue
                if self._moves(instruction, context):
                    together[operation_key(instruction)].append(instruction)
        for group in together.values():
            # What is done to the arrays of each layer has one cause.
            written = sum(written_bytes(one) * context.runs(one) for one in group)
            if written < self.min_percent * context.written / 100:
                continue
            for instruction in group:
                if is_worth_time(instruction, context, self.min_time_percent):  # it copies too few bytes
                    yield _report(instruction, context)

    def _moves(self, instruction: Instruction, context: Context) -> bool:
        if not context.is_stepped(instruction) or not _changes_layout(instruction, context):
            return False  # it does not change a layout in the schedule
        if comes_from_argument(instruction.operands[0], context) or not is_in_main_memory(
            instruction
        ):  # it copies an argument, or is not in main memory
            return False
        return not (
            is_solvers(instruction)
            or _is_convolutions(instruction)
            or is_spread(instruction.operands[0])  # the compiler could write it in either order
            or _is_handed_out(instruction, context)
            or _is_received(instruction)
            or is_next_to_exchange(instruction, context)
            or is_of_expansion(instruction)
        )  # a solver, a convolution, a collective or a result requires its layout


_OPCODES = (*sorted(traits.COPIES - traits.DONES), "fusion")


def _changes_layout(instruction: Instruction, context: Context) -> bool:
    """True for a copy, and where the GPU compiler transposes an array that the program updates in a part, as a cache."""
    if instruction.opcode != "fusion":
        return changes_layout(instruction)
    if context.backend is not Backend.GPU or len(instruction.operands) != 1:
        return False
    name = instruction.metadata.op_name if instruction.metadata is not None else ""
    if name.rpartition("/")[2] in MOVES or is_of_own_function(instruction):
        return False
    moved = moved_array(instruction, context)
    return moved is not None and source(Value(moved), VIEWS).instruction.opcode in traits.UPDATES_ELEMENTS


def _report(instruction: Instruction, context: Context) -> Report:
    runs, size = context.runs(instruction), written_bytes(instruction)
    orders = (
        f" from {_order(instruction.operands[0])} to {_order(instruction)}"
        if instruction.opcode != "fusion"
        else ""
    )
    return Report(
        instruction,
        f"a copy writes {byte_text(size)}{times(runs)} only to change the layout{orders}",
        "make producer and consumer agree on one dimension order"
        + (
            ", such as (batch, heads, positions, size) for a cache of keys or values"
            if instruction.opcode == "fusion"
            else ""
        ),
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
