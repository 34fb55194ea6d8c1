"""Edits of what holds what: instructions in computations, computations in modules, roots and the entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hlotext.edit import asynchronous, calls, dirty_lines, graph_checks, names, validation, values
from hlotext.edit.graph_checks import check_control, check_members, module_of
from hlotext.edit.journal import Edit, Journal
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import NodeState, Place
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.tables.opcodes import CALLS_NOTHING, OPCODES
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape, holds_buffer
from hlotext.semantics.infer import infer_shape

_NO_ORIGINALS: Mapping[Instruction, Instruction] = {}

# ---- instructions of a computation


def add(
    computation: Computation,
    instruction: Instruction,
    before: Instruction | None,
    *,
    typed: bool,
    original: Instruction | None = None,
) -> None:
    """Implements `Computation.add`. Errors that the `original` of a copy has are allowed in the copy."""
    graph_checks.instruction(instruction, f"the instruction added to {computation.name}")
    if instruction._computation is not None:
        raise EditError(
            f"{instruction.name} is already in computation {instruction._computation.name}", "clone it"
        )
    if before is not None and graph_checks.instruction(before, "before=")._computation is not computation:
        raise EditError(
            f"{before.name}, which {instruction.name} should come before, is not in {computation.name}"
        )
    name = names.checked(instruction._name, "instruction")
    if name in computation:
        raise EditError(
            f"{computation._name} already has an instruction named {name}", "see `Module.instruction_names`"
        )
    if instruction._head.opcode == "parameter" and computation.calls:
        raise EditError(f"{computation._name} has callers", "add parameters with rewrite.add_parameter")
    attributes, argument = checked(instruction, original)
    attributes = dirty_lines.with_known_names(computation, attributes)
    check_members(computation, name, instruction._operands, attributes)
    check_control(computation, attributes)
    called = calls.check(computation, instruction, instruction._head.opcode, attributes)
    order = computation.order
    needed = (*instruction._operands, *graph_checks.present(attributes))
    if before is not None and needed:
        late = next((i for i in needed if order[i] >= order[before]), None)
        if late is not None:
            raise EditError(f"{name} would come before {late.name}, which it needs")
    asynchronous.check_taken(instruction, instruction._head.opcode, instruction._operands)
    graph_checks.check_added(computation, instruction)
    module = computation._module
    with Edit(module) as edit:
        journal = edit.journal
        edit.recheck(_buffers(computation, instruction), typed=typed)
        if instruction._head.opcode in ROLES:
            edit.recheck_module()  # what is begun must be finished
        if instruction._head.shape is None:
            journal.set(instruction, "_shape", _shape_of(instruction, computation))
        insert(edit, computation, instruction, before, name, attributes, argument)
        edit.check_new(
            instruction,
            typed=typed,
            before=validation.NO_ERRORS if original is None else validation.count_errors(original),
        )
        if called and module is not None:
            calls.bring_before(journal, module, computation, called)


def _shape_of(instruction: Instruction, computation: Computation) -> Shape:
    """The shape of a new instruction that states none. Raises EditError if it does not follow from the operands."""
    if isinstance(instruction._head.argument, Literal):
        return instruction._head.argument.shape
    instruction._computation = computation  # what names other computations is seen through the module
    try:
        return infer_shape(instruction)
    except ValueError as error:
        raise EditError(f"{instruction._name} has no shape, and {error}") from None
    finally:
        instruction._computation = None


def _buffers(computation: Computation, instruction: Instruction) -> list[Instruction]:
    if not any(holds_buffer(operand._head.shape) for operand in instruction._operands):
        return []
    return [i for i in computation._instructions if holds_buffer(i._head.shape)]


def checked(instruction: Instruction, original: Instruction | None = None) -> tuple[Mapping[str, Any], Any]:
    """Returns the attributes and argument of a new instruction, converted. Raises EditError if they are invalid.

    A copy may have an unknown opcode, like its original.
    """
    opcode, where = instruction._head.opcode, instruction._name
    row = OPCODES.get(opcode)
    is_copied = (
        original is not None and original._head.opcode == opcode and not isinstance(original, BadInstruction)
    )
    if row is None and not is_copied and not isinstance(instruction, BadInstruction):
        raise EditError(
            f"{values.shown(opcode)}, the new opcode of {where}, is not an opcode",
            values.closest_match(opcode, OPCODES),
        )
    if instruction._head.shape is not None:
        values.shape(instruction._head.shape, where)
    if not isinstance(instruction._operands, tuple):
        raise EditError(f"the operands of {where} must be a tuple, not {values.shown(instruction._operands)}")
    attributes = instruction._attributes
    if not isinstance(attributes, Mapping):
        raise EditError(f"the attributes of {where} must be a dict, not {values.shown(attributes)}")
    found: Mapping[str, Any] = {
        name: values.attribute(instruction, opcode, name, value)
        for name, value in attributes.items()
        if values.is_printed(row, name, value)
    }
    if len(found) == len(attributes) and all(found[name] is value for name, value in attributes.items()):
        found = attributes
    argument = instruction._head.argument
    payload = row.payload if row is not None else Payload.OPERANDS
    if payload is Payload.LITERAL:
        argument = values.literal(argument, instruction._head.shape, where)
    elif payload is Payload.PARAMETER_NUMBER:
        if isinstance(argument, bool) or not isinstance(argument, int) or argument < 0:
            raise EditError(
                f"the number of parameter {where} must be 0 or more, not {values.shown(argument)}"
            )
    elif argument is not None:
        raise EditError(f"{where} is {opcode}, which has neither a value nor a number")
    if payload is not Payload.OPERANDS and instruction._operands:
        raise EditError(f"{where} is {opcode}, which takes no operands")
    return found, argument


def insert(
    edit: Edit,
    computation: Computation,
    instruction: Instruction,
    before: Instruction | None,
    name: str,
    attributes: Mapping[str, Any],
    argument: Any,
) -> None:
    """Inserts a checked instruction into a computation. The first instruction becomes the root."""
    journal, module = edit.journal, computation._module
    root = computation.root if computation._instructions else None
    if attributes is not instruction._attributes:
        journal.set(instruction, "_attributes", attributes)
    if name is not instruction._name:
        journal.set(instruction, "_name", name)
    if argument is not instruction._head.argument:
        journal.set(instruction, "_argument", argument)
    journal.set(instruction, "_computation", computation)
    if computation._root is None:
        journal.set(computation, "_root", root or instruction)
    order = computation.order
    graph_checks.insert(
        journal,
        computation,
        len(computation._instructions) if before is None else order.index(before),
        instruction,
    )
    _know_name(computation, instruction)
    journal.push_undo(_forget_name, computation, name)
    journal.set(instruction, "_users", {})
    add_uses(journal, instruction)
    graph_checks.add_control_edges(journal, instruction, (), instruction.control_predecessors)
    if module is not None:
        module.instruction_names.register(name)
        if not computation._is_draft:
            module._add_call_edge(instruction)
            journal.push_undo(module._remove_call_edge, instruction)
        graph_checks.shape_added(journal, module, instruction._head.shape)
    journal.note("inserted", instruction)
    edit.check_used((instruction, *instruction._operands))
    dirty_lines.mark_dirty(journal, instruction)
    if instruction._head.opcode == "parameter":
        edit.numbers(computation)
        dirty_lines.touch_signature(journal, computation)


def _forget_name(computation: Computation, name: str) -> None:
    if computation._by_name is not None:
        computation._by_name.pop(name, None)


def _know_name(computation: Computation, instruction: Instruction) -> None:
    if computation._by_name is not None:
        computation._by_name[instruction._name] = instruction


def add_uses(journal: Journal, instruction: Instruction) -> None:
    """Adds an instruction to the users of its operands."""
    for operand in dict.fromkeys(instruction._operands):
        _use_one(operand, instruction)
        journal.push_undo(_leave_one, operand, instruction)


def _use_one(operand: Instruction, user: Instruction) -> None:
    if operand._users is not None:
        operand._users[user] = None


def _leave_one(operand: Instruction, user: Instruction) -> None:
    if operand._users is not None:
        operand._users.pop(user, None)


def remove(computation: Computation, instructions: Iterable[Instruction]) -> None:
    """Implements `Computation.remove_all`."""
    gone = dict.fromkeys(graph_checks.instruction(one, "the instruction to remove") for one in instructions)
    for instruction in gone:
        if instruction._computation is not computation:
            raise EditError(f"{instruction.name} is not in computation {computation._name}")
        module_of(instruction)
        if instruction.is_root:
            raise EditError(
                f"{instruction.name} is the root of {computation._name}", "set another root first"
            )
        if instruction._head.opcode == "parameter" and computation._module is not None:
            raise EditError(f"{instruction.name} is a parameter", "use rewrite.remove_parameter")
        asynchronous.check_left(instruction, [o for o in instruction._operands if o not in gone])
        used = [u for u in (*instruction.user_view, *instruction.control_successors) if u not in gone]
        if used:
            raise EditError(
                f"{instruction.name} is still used by {values.shortened(u.name for u in used)}",
                "replace its uses first",
            )
    if not gone:
        return
    with Edit(computation._module) as edit:
        remove_all(edit, computation, gone)


FEW = 16
"""Instructions are taken out one by one where there are so many times more of them: else the list is made anew."""


def _shorten(spans: list[tuple[int, int]], length: int) -> None:
    del spans[length:]


def remove_all(edit: Edit, computation: Computation, gone: dict[Instruction, None]) -> None:
    """Removes instructions. The caller has checked that this is possible."""
    journal, module = edit.journal, computation._module
    edit.check_used(
        operand for instruction in gone for operand in instruction._operands if operand not in gone
    )
    if computation._root is None:
        journal.set(computation, "_root", computation.root)
    dirty_lines.give_up_names(journal, computation, [instruction._name for instruction in gone])
    dirty_lines.split_lines(
        journal, dict.fromkeys(operand for instruction in gone for operand in instruction._operands)
    )
    spans = [bounds for bounds in (i.bounds for i in gone) if bounds[0] >= 0]
    if spans:
        if not computation._removed_spans:
            computation._removed_spans = []
        journal.push_undo(_shorten, computation._removed_spans, len(computation._removed_spans))
        computation._removed_spans += spans  # type: ignore[operator]
    if len(gone) * FEW <= len(computation):
        for instruction in gone:
            graph_checks.detach(journal, computation, instruction)
    else:
        before = list(computation._instructions)
        computation.order.remove_all(gone)
        journal.push_undo(computation.order.restore, before)
    kept: list[tuple[Instruction, NodeState | Place]] = []
    journal.push_undo(_put_back, computation, kept)
    checks_shapes = module is not None and module._mixes_precisions is not None
    for instruction in gone:
        opcode = instruction._head.opcode
        if opcode == "fusion":  # more is allowed in what a fusion runs
            edit.recheck((i for c in instruction.called_computations for i in c._instructions), typed=False)
        kept.append((instruction, instruction._state))
        for operand in instruction._operands:
            _leave_one(operand, instruction)
        _forget_name(computation, instruction._name)
        if "control-predecessors" in instruction._attributes:
            graph_checks.add_control_edges(journal, instruction, instruction.control_predecessors, ())
        if opcode == "parameter":
            edit.numbers(computation)
            dirty_lines.touch_signature(journal, computation)
        if checks_shapes and module is not None:
            graph_checks.shape_removed(journal, module, instruction._head.shape)
        callees = () if opcode in CALLS_NOTHING else instruction.called_computations
        if callees and module is not None and not computation._is_draft:
            module._remove_call_edge(instruction)
            journal.push_undo(module._add_call_edge, instruction)
        for callee in callees:
            if callee.is_printed_inline:  # its text goes with the line
                dirty_lines.split_body(journal, callee)
        instruction._state = NodeState(None, is_modified=True) if instruction._is_modified else None
        instruction._computation = None
        journal.note("removed", instruction)
    dirty_lines.touch_computation(journal, computation)


def _put_back(computation: Computation, gone: list[tuple[Instruction, NodeState | Place]]) -> None:
    """The contrary of taking these out, with the states that they had."""
    for instruction, state in reversed(gone):
        instruction._computation, instruction._state = computation, state
        _know_name(computation, instruction)
        for operand in reversed(dict.fromkeys(instruction._operands)):
            _use_one(operand, instruction)


def set_root(computation: Computation, root: Instruction, *, typed: bool = True) -> None:
    """Implements the setter of `Computation.root`; without `typed`, types are checked at the end of the enclosing
    transaction.
    """
    if graph_checks.instruction(root, f"the root of {computation._name}")._computation is not computation:
        raise EditError(f"{root.name} is not in computation {computation._name}")
    module_of(root)
    old = computation.root
    if root is old:
        return
    if isinstance(old, BadInstruction) or isinstance(root, BadInstruction):
        raise EditError(f"the root of {computation._name} could not be read, so it cannot be changed")
    graph_checks.check_root(computation, root)
    with Edit(computation._module) as edit:
        edit.recheck(computation.calls, typed=typed)
        if computation.is_entry:
            edit.recheck_header(typed=typed)
        if graph_checks.passes_sharding(old) and old.sharding != root.sharding:
            edit.recheck_module()
        edit.check_used((old, root))
        edit.journal.set(computation, "_root", root)
        for instruction in (old, root):
            dirty_lines.mark_dirty(edit.journal, instruction)
        dirty_lines.touch_signature(edit.journal, computation)


# ---- computations


def set_thread(computation: Computation, thread: object) -> None:
    """Implements the setter of `Computation.execution_thread`."""
    if not isinstance(thread, str) or not values.reads_as_thread(thread):
        raise EditError(
            f"the thread of {computation.name} must consist of letters, digits, `_`, `.` and `-`, not {values.shown(thread)}"
        )
    if thread == computation._execution_thread:
        return
    with Edit(computation._module) as edit:
        edit.recheck_module()
        edit.journal.set(computation, "_execution_thread", thread)
        edit.journal.set(computation, "_has_new_thread", True)
        dirty_lines.touch_signature(edit.journal, computation)


def rename_computation(computation: Computation, name: str) -> None:
    """Implements the setter of `Computation.name`."""
    name = names.checked(name, "computation")
    if name == computation._name:
        return
    module = computation._module
    if module is not None:
        check_free(module, name)
    with Edit(module) as edit:
        callers = computation.callers
        edit.journal.set(computation, "_name", name)
        if module is not None:
            module.computation_names.register(name)
        dirty_lines.touch_signature(edit.journal, computation)
        for caller in callers:
            dirty_lines.mark_dirty(edit.journal, caller)


def check_free(module: Module, name: str) -> None:
    """Raises EditError if a computation of the module has this name."""
    if module.computation_names.may_be_taken(name) and any(c._name == name for c in module._computations):
        raise EditError(
            f"module {module._name} already has a computation named {name}", "see `Module.computation_names`"
        )


def add_computation(
    module: Module,
    computation: object,
    before: Computation | None,
    originals: Mapping[Instruction, Instruction | None] = _NO_ORIGINALS,
) -> None:
    """Implements `Module.add`. `originals` maps each copied instruction to its source, whose errors are allowed in the
    copy; or to None, if the copy is known to have the same ones.
    """
    if not isinstance(computation, Computation):
        raise EditError(
            f"only a computation can be added to module {module._name}, not {values.shown(computation)}"
        )
    name = names.checked(computation._name, "computation")
    check_free(module, name)
    if computation._module is not None and not (computation._is_draft and computation._module is module):
        raise EditError(f"{computation.name} is already in module {computation._module.name}")
    if before is not None and before._module is not module:
        raise EditError(f"{before.name}, which {name} should come before, is not in module {module._name}")
    calling = [i for i in computation._instructions if i._head.opcode not in CALLS_NOTHING]
    for instruction in calling:
        for callee in instruction.called_computations:
            if callee._module is not module and callee is not computation:
                raise EditError(f"{instruction.name} calls {callee.name}, which is not in the module")
    with Edit(module) as edit:
        journal = edit.journal
        entry = module.entry if module._computations else computation
        place = len(module._computations) if before is None else calls.place_before(module, before)
        journal.set(computation, "_name", name)
        module.order.insert(place, computation)
        journal.push_undo(module.order.remove, computation)
        journal.set(module, "_entry", entry)
        journal.set(computation, "_module", module)
        journal.set(computation, "_is_draft", False)
        module.computation_names.register(name)
        journal.note("inserted", computation)
        register = module.instruction_names.register
        for instruction in computation._instructions:
            register(instruction._name)
            journal.note("inserted", instruction)
            if instruction not in originals:
                edit.check_new(instruction, typed=False)
            elif (original := originals[instruction]) is not None:
                edit.check_new(instruction, typed=False, before=validation.count_errors(original))
        for instruction in calling:
            module._add_call_edge(instruction)
            journal.push_undo(module._remove_call_edge, instruction)
        for shape in dict.fromkeys(i._head.shape for i in computation._instructions):
            graph_checks.shape_added(journal, module, shape)
        inside = [c for i in calling for c in i.called_computations if c._is_inline]
        for callee in inside:  # it is called from two places now
            dirty_lines.split_body(journal, callee)
        calls.bring_before(journal, module, computation, inside)
        edit.numbers(computation)
        dirty_lines.touch_signature(journal, computation)


def detached_computation(module: Module, name: str) -> Computation:
    """Creates a computation under construction: it may refer to the module's computations, but is not part of it yet."""
    made = Computation(module.computation_names.unique(name), module=module)
    made._is_draft = True
    return made


def remove_computations(module: Module, computations: Iterable[object]) -> None:
    """Implements `Module.remove_all`."""
    gone: dict[Computation, None] = {}
    for computation in computations:
        if not isinstance(computation, Computation):
            raise EditError(
                f"expected a computation, not {values.shown(computation)}",
                values.found_by(computation, Computation),
            )
        if computation._module is not module:
            raise EditError(f"{values.shown(computation)} is not in module {module._name}")
        if computation.is_entry:
            raise EditError(f"{computation.name} is the entry computation", "set another entry first")
        gone[computation] = None
    for computation in gone:
        callers = [c for c in module.calls_of(computation) if c._computation not in gone]
        if callers:
            raise EditError(
                f"{computation.name} is still called by {values.shortened(c.name for c in callers)}"
            )
    if not gone:
        return
    with Edit(module) as edit:
        journal = edit.journal
        journal.set(module, "_entry", module.entry)
        before = list(module._computations)
        module.order.remove_all(gone)
        journal.push_undo(module.order.restore, before)
        texts = [c for c in gone if c._start >= 0 and not c._is_inline]
        if texts:
            journal.set(module, "_removed", [*module._removed, *texts])
        for computation in gone:
            for instruction in computation._instructions:
                module._remove_call_edge(instruction)
                journal.push_undo(module._add_call_edge, instruction)
                journal.note("removed", instruction)
            for callee in {c: None for i in computation._instructions for c in i.called_computations}:
                if callee.is_printed_inline and callee not in gone:  # its text goes with this one's
                    dirty_lines.split_body(journal, callee)
            journal.set(computation, "_module", None)
            journal.note("removed", computation)
        dirty_lines.mark_module_dirty(journal, module)


def set_entry(module: Module, computation: object, *, may_have_callers: bool = False) -> None:
    """Implements `Module.set_entry`. With `may_have_callers`, callers may remain until the end of the enclosing
    transaction.
    """
    if not isinstance(computation, Computation):
        raise EditError(
            f"expected a computation, not {values.shown(computation)}",
            values.found_by(computation, Computation),
        )
    if computation._module is not module:
        raise EditError(f"{values.shown(computation)} is not in module {module._name}")
    if computation.calls and not may_have_callers:
        raise EditError(f"{computation.name} is called by {computation.callers[0].name}")
    old = module.entry
    if computation is old:
        return
    with Edit(module) as edit:
        edit.recheck_module()
        journal = edit.journal
        dirty_lines.touch_signature(journal, old)
        if computation.is_printed_inline:
            dirty_lines.split_body(journal, computation)
        journal.set(module, "_entry", computation)
        dirty_lines.touch_signature(journal, computation)
