"""Checks of the graph before an edit: no cycle, no dangling use, no node of another module.

The list of a computation's instructions is a topological order (the reader asks it of texts, edits keep it). So an operand
before its user cannot close a cycle, and one after it must be moved, with its own operands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hlotext.edit import dirty_lines, validation
from hlotext.edit.journal import Journal
from hlotext.edit.values import found_by, shown
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import extra_operation, is_single_operation
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.shape import Shape

CONTROL = "control-predecessors"

LOOPING = frozenset({"while", "conditional"})
"""Opcodes through which shardings do not change."""

_NO_ATTRIBUTES: Mapping[str, Any] = {}


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """Returns True if two shapes are equal, ignoring layouts."""
    return a is b or (a is not None and b is not None and a.text_without_layout() == b.text_without_layout())


def module_of(instruction: Instruction) -> Module | None:
    """Returns the module of an instruction, or None. Raises EditError if the instruction was unloaded.

    A walk over a lazily loaded module unloads what it has parsed (`Module.walk`).
    """
    computation = instruction._computation
    if computation is None:
        return None
    module = computation._module
    source = module._source if module is not None else None
    if source is not None and source.lets_go and instruction not in computation.order:
        raise EditError(
            f"{instruction.name} belongs to a computation that was unloaded and is read again when accessed",
            f"fetch it from {computation.name} again, or call Module.materialize() first",
        )
    return module


def instruction(value: object, what: str) -> Instruction:
    """Returns a value that must be an instruction. Raises EditError otherwise; `what` names it in the message."""
    if not isinstance(value, Instruction):
        raise EditError(f"{what} is an instruction, not {shown(value)}", found_by(value, Instruction))
    return value


def new_operand(value: object, what: str) -> Instruction:
    """Returns a value that must be an instruction, for use as an operand. Raises EditError otherwise.

    Also raises EditError for a line that could not be parsed, whose result is unknown.
    """
    found = instruction(value, what)
    if isinstance(found, BadInstruction):
        raise EditError(f"{what} cannot be {found._name or 'a line'}, which could not be read")
    return found


def elsewhere(value: Instruction, computation: Computation | None) -> str:
    """Describes where an instruction outside a computation is, and how to use it."""
    home = value.computation
    if home is None:
        return "is in no computation: it was removed, or not yet added"
    if computation is None or home.module is not computation.module:
        return (
            f"is in another module, {home.module.name}; rewrite.import_computation takes computations from it"
            if home.module is not None
            else "is in no module"
        )
    return f"is in {home.name}, not in {computation.name}; pass the value as a parameter"


def check_members(
    computation: Computation | None, name: str, operands: Iterable[Instruction], attributes: Mapping[str, Any]
) -> None:
    """Raises EditError unless operands and control predecessors are in the computation."""
    for operand in operands:
        if (
            instruction(operand, f"an operand of {name}")._computation is not computation
            or computation is None
        ):
            raise EditError(f"operand {operand.name} of {name} {elsewhere(operand, computation)}")
        module_of(operand)
    for predecessor in present(attributes):
        if getattr(predecessor, "computation", None) is not computation:
            raise EditError(f"control predecessor {shown(predecessor)} of {name} is not in its computation")
        module_of(predecessor)


def present(attributes: Mapping[str, Any]) -> tuple[Instruction, ...]:
    """Returns the control predecessors that are instructions, without those known by name only."""
    return tuple(one for one in attributes.get(CONTROL, ()) if type(one) is not LeftOut)


def check_control(
    computation: Computation, attributes: Mapping[str, Any], before: Mapping[str, Any] = _NO_ATTRIBUTES
) -> None:
    """Raises EditError for a new control dependency inside a fusion, which has no execution order."""
    wanted = attributes.get(CONTROL)
    if wanted and wanted != before.get(CONTROL) and computation.is_fusion_body:
        raise EditError(f"{computation.name} is the body of a fusion, which has no order")


def moves_before(needed: Iterable[Instruction], anchor: Instruction) -> list[Instruction]:
    """Returns the instructions that must move so that all of `needed` precede the anchor, in order.

    Raises EditError if one of them depends on the anchor.
    """
    computation = anchor._computation
    assert computation is not None
    order = computation.order
    limit = order[anchor]
    found: set[Instruction] = set()
    stack = [i for i in needed if order[i] >= limit]
    while stack:
        one = stack.pop()
        if one is anchor:
            raise EditError(f"{anchor.name} would depend on its own result")
        if one not in found:
            found.add(one)
            before = (*one._operands, *one.control_predecessors)
            stack.extend(i for i in before if order[i] >= limit)
    return sorted(found, key=order.__getitem__)


def move_all(
    journal: Journal, computation: Computation, instructions: Iterable[Instruction], before: Instruction
) -> None:
    """Moves instructions, in this order, before another one. The caller has checked that this is possible."""
    for one in instructions:
        dirty_lines.give_up_names(journal, computation, [one._name])
        detach(journal, computation, one)
        insert(journal, computation, computation.order.index(before), one)
        journal.note("modified", one)
        dirty_lines.touch_computation(journal, computation)
        dirty_lines.bring_inside(journal, computation, one)


def know_root(journal: Journal, computation: Computation) -> None:
    """Records an implicit root, the last instruction, before another instruction takes that position."""
    if computation._root is None and computation._instructions:
        journal.set(computation, "_root", computation.root)


def know_entry(journal: Journal, module: Module) -> None:
    """Records an implicit entry, the last computation, before another computation takes that position."""
    if module._entry is None and module._computations:
        journal.set(module, "_entry", module.entry)


def insert(journal: Journal, computation: Computation, place: int, instruction: Instruction) -> None:
    """Inserts an instruction into the list at an index."""
    know_root(journal, computation)
    if place and computation._instructions[place - 1]._form in dirty_lines.INSIDE:
        # It would stand in the middle of a line, between what is written inside of that and the line's own instruction.
        dirty_lines.mark_dirty(journal, computation._instructions[place - 1])
    computation.order.insert(place, instruction)
    journal.push_undo(computation.order.remove, instruction)


def detach(journal: Journal, computation: Computation, instruction: Instruction) -> None:
    """Removes an instruction from the list."""
    know_root(journal, computation)
    if instruction._form in dirty_lines.INSIDE:
        dirty_lines.mark_dirty(journal, instruction)
    dirty_lines.split_lines(journal, instruction._operands)
    order = computation.order
    place = order.index(instruction)
    order.remove(instruction)
    journal.push_undo(order.insert, place, instruction)


def add_control_edges(
    journal: Journal,
    instruction: Instruction,
    before: Collection[Instruction],
    after: Collection[Instruction],
) -> None:
    """Updates the computation's control-dependence index for an instruction, if there is one."""
    computation = instruction._computation
    if computation is None or not (before or after):
        return
    if computation._successors is None:
        journal.set(computation, "_successors", None)  # a step back forgets what is found out until then
        return
    were, are = set(before), set(after)
    for predecessor in (*before, *after):
        if (predecessor in were) != (predecessor in are):
            _waits(computation, predecessor, instruction, predecessor in are)
            journal.push_undo(_waits, computation, predecessor, instruction, predecessor in were)


def _waits(computation: Computation, predecessor: Instruction, instruction: Instruction, is_so: bool) -> None:
    if computation._successors is None:
        return
    found = computation._successors.setdefault(predecessor, {})
    if is_so:
        found[instruction] = None
    else:
        found.pop(instruction, None)
    if not found:
        del computation._successors[predecessor]


def check_root(computation: Computation, root: Instruction) -> None:
    """Raises EditError if another root would leave more than one operation in the body of an async-start."""
    if is_single_operation(computation) and extra_operation(computation, computation._instructions, root):
        raise EditError(f"{computation.name} is run by an async-start and may contain only {root.name}")


def check_added(computation: Computation, instruction: Instruction) -> None:
    """Raises EditError if a new instruction would leave more than one operation in the body of an async-start."""
    if instruction._head.opcode == "parameter" or not is_single_operation(computation):
        return
    instructions = [*computation._instructions, instruction]
    if extra_operation(computation, instructions, computation.root) and not extra_operation(
        computation, computation._instructions, computation.root
    ):
        raise EditError(
            f"{computation.name} is run by an async-start, so it may contain only {computation.root.name}",
            "wrap the operations in a called computation",
        )


def passes_sharding(instruction: Instruction) -> bool:
    """Returns True if other instructions must have the same sharding: for loops, branches, and their inputs and
    outputs.
    """
    if instruction._head.opcode in LOOPING:
        return True
    computation = instruction._computation
    if computation is None:
        return False
    is_root = instruction is (computation._root or computation._instructions[-1])
    if not is_root and instruction._head.opcode != "parameter":
        return False
    return any(caller._head.opcode in LOOPING for caller in computation.calls)


def shape_added(journal: Journal, module: Module, shape: Shape | None) -> None:
    """Updates cached facts of a module for a new shape, which may add a precision or a memory space."""
    if shape is None or (module._memories is None and module._mixes_precisions is not False):
        return
    for _, leaf in shape.leaves():
        layout = leaf.layout
        if module._memories is not None and (leaf.is_buffer or validation.is_host(leaf)):
            journal.set(module, "_memories", None)
        if layout is not None and layout.tiles and module._mixes_precisions is False:
            journal.set(module, "_mixes_precisions", None)


def shape_removed(journal: Journal, module: Module, shape: Shape | None) -> None:
    """Updates cached facts of a module for a removed shape, which may have been the last one with tiles."""
    if module._mixes_precisions is not None and dirty_lines.has_tiles(shape):
        journal.set(module, "_mixes_precisions", None)
