"""Edits of an instruction's name, parameter number and position in its computation."""

from __future__ import annotations

from hlotext.edit import dirty_lines, graph_checks, names, values
from hlotext.edit.graph_checks import (
    module_of,
)
from hlotext.edit.instructions import (
    check_readable,
)
from hlotext.edit.journal import Edit
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction

# ---- parameters' numbers


def renumber(parameter: Instruction, number: object) -> None:
    """Implements the setter of `Instruction.parameter_number`."""
    module = module_of(parameter)
    where = parameter._name
    if parameter._head.opcode != "parameter":
        raise EditError(f"{where} is {parameter._head.opcode}, and only a parameter has a number")
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise EditError(f"the number of parameter {where} must be 0 or more, not {values.shown(number)}")
    if number == parameter._head.argument:
        return
    computation = parameter._computation
    with Edit(module) as edit:
        if computation is not None:
            edit.numbers(computation)
            edit.recheck(computation.calls, typed=False)
            if computation.is_entry:
                edit.recheck_header(typed=False)
        edit.journal.set(parameter, "_argument", number)
        dirty_lines.mark_dirty(edit.journal, parameter)
        if computation is not None:
            dirty_lines.touch_signature(edit.journal, computation)


# ---- names and places


def rename(instruction: Instruction, name: str) -> None:
    """Implements the setter of `Instruction.name`."""
    module = module_of(instruction)
    check_readable(instruction)
    name = names.checked(name, "instruction")
    if name == instruction._name:
        return
    computation = instruction._computation
    with Edit(module) as edit:
        journal = edit.journal
        if computation is not None:
            dirty_lines.give_up_names(journal, computation, [instruction._name])
            if name in computation:
                raise EditError(
                    f"{computation._name} already has an instruction named {name}",
                    "see `Module.instruction_names`",
                )
            _know(computation, instruction, instruction._name, name)
            journal.push_undo(_know, computation, instruction, name, instruction._name)
        journal.set(instruction, "_name", name)
        if module is not None:
            module.instruction_names.register(name)
        for touched in (instruction, *instruction.users, *instruction.control_successors):
            dirty_lines.mark_dirty(journal, touched)
        if computation is not None and instruction._head.opcode == "parameter":
            dirty_lines.touch_signature(journal, computation)


def _know(computation: Computation, instruction: Instruction, before: str, after: str) -> None:
    """Makes an instruction found by another name."""
    if computation._by_name is not None:
        if computation._by_name.get(before) is instruction:  # a broken text may have a name twice
            del computation._by_name[before]
        computation._by_name[after] = instruction


def move_before(instruction: Instruction, other: Instruction) -> None:
    """Implements `Instruction.move_before`."""
    module = module_of(instruction)
    computation = instruction._computation
    graph_checks.instruction(other, f"the instruction to put {instruction._name} before")
    if computation is None or other._computation is not computation:
        raise EditError(f"{instruction.name} and {other.name} are not in the same computation")
    if other is instruction:
        return
    module_of(other)
    order = computation.order
    needed = (*instruction._operands, *instruction.control_predecessors)
    if any(order[i] >= order[other] for i in needed) or any(
        order[i] < order[other] for i in (*instruction.users, *instruction.control_successors)
    ):
        raise EditError(
            f"{instruction.name} cannot come before {other.name}, because of a dependency on what is in between"
        )
    with Edit(module) as edit:
        graph_checks.move_all(edit.journal, computation, [instruction], other)
