"""Edits of single instructions: opcode and attributes, operands, replacement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hlotext.edit import asynchronous, calls, dirty_lines, graph_checks, validation, values
from hlotext.edit.graph_checks import (
    CONTROL,
    LOOPING,
    check_control,
    check_members,
    module_of,
    moves_before,
    same_shape,
)
from hlotext.edit.journal import Edit, Journal
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ON_BOTH, ROLES
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcode import Payload
from hlotext.ir.tables.opcodes import CALLS_NOTHING, OPCODES, allowed_attributes
from hlotext.ir.tables.other_names import opcode_suggested
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import Shape, holds_buffer

_NOTES = traits.PROVENANCE | {"backend_config"}
"""Attributes that decide nothing of types, places and callees."""


# ---- what an instruction is


def change(instruction: Instruction, changes: Mapping[str, Any], *, typed: bool) -> None:
    """Implements `Instruction.change`."""
    module = module_of(instruction)
    check_readable(instruction)
    new = _converted(instruction, changes)
    if new:
        apply(instruction, module, new, typed=typed)


def check_readable(instruction: Instruction) -> None:
    if isinstance(instruction, BadInstruction):
        raise EditError(f"{instruction._name or 'this line'} could not be read, so it cannot be changed")


def _converted(instruction: Instruction, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The private fields that change, with values as they are kept. Raises EditError."""
    new: dict[str, Any] = {}
    where = instruction._name
    opcode = instruction._head.opcode
    if "opcode" in changes:
        opcode = _opcode(instruction, changes)
        new["_opcode"] = opcode
    shape = instruction._head.shape
    if "shape" in changes:
        shape = new["_shape"] = values.shape(changes["shape"], where)
    if "operands" in changes:
        new["_operands"] = _operands(instruction, opcode, changes["operands"])
    if "attributes" in changes or "opcode" in changes:
        new["_attributes"] = _attributes(
            instruction, opcode, changes.get("attributes", instruction._attributes)
        )
    if "literal" in changes:
        if opcode != "constant":
            raise EditError(f"{where} is {opcode}, and only a constant has a value")
        new["_argument"] = values.literal(changes["literal"], shape, where)
    elif opcode == "constant" != instruction._head.opcode:
        raise EditError(f"{where} needs literal= to become a constant")
    elif isinstance(instruction._head.argument, Literal):
        if opcode != "constant":
            new["_argument"] = None
        elif shape is not instruction._head.shape:
            new["_argument"] = values.literal(instruction._head.argument, shape, where)
    return {
        name: value
        for name, value in new.items()
        if value is not (old := getattr(instruction, name))
        and not (name == "_attributes" and _equal(value, old))
    }


def _equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and list(a) == list(b) and all(a[name] is b[name] for name in a)


def _opcode(instruction: Instruction, changes: Mapping[str, Any]) -> str:
    opcode = changes["opcode"]
    where = instruction._name
    if not isinstance(opcode, str) or opcode not in OPCODES:
        wanted = opcode_suggested(opcode) if isinstance(opcode, str) else ""
        raise EditError(f"{values.shown(opcode)}, the new opcode of {where}, is not an opcode", wanted)
    if opcode == instruction._head.opcode:
        return instruction._head.opcode
    if {instruction._head.opcode, opcode} & ROLES.keys():
        raise EditError(f"{where} cannot become, or stop being, part of an asynchronous operation")
    before = OPCODES.get(instruction._head.opcode)
    if before is not None and "parameter" in (opcode, instruction._head.opcode):
        raise EditError(
            f"{where} is {instruction._head.opcode}, and cannot become {opcode}",
            "see `rewrite.add_parameter`",
        )
    return opcode


def _operands(instruction: Instruction, opcode: str, operands: object) -> tuple[Instruction, ...]:
    where = instruction._name
    if not isinstance(operands, Iterable) or isinstance(operands, str | Mapping | Computation | Instruction):
        raise EditError(
            f"the operands of {where} must be a list of instructions, not {values.shown(operands)}",
            "put it in a list: [it]" if isinstance(operands, Instruction) else "",
        )
    found = tuple(operands)
    own = frozenset(instruction._operands)
    for operand in found:
        if operand not in own:
            graph_checks.new_operand(operand, f"an operand of {where}")
    row = OPCODES.get(opcode)
    if found and row is not None and row.payload is not Payload.OPERANDS:
        raise EditError(f"{where} is {opcode}, which takes no operands")
    return found


def _attributes(instruction: Instruction, opcode: str, attributes: object) -> dict[str, Any]:
    """All attributes of an instruction; those that it has already are as they should be, but for another opcode."""
    where = instruction._name
    if not isinstance(attributes, Mapping):
        raise EditError(f"the attributes of {where} must be a mapping, not {values.shown(attributes)}")
    old = instruction._attributes
    row = OPCODES.get(opcode)
    is_other = opcode != instruction._head.opcode
    found = {}
    for name, value in attributes.items():
        if name in old and old[name] is value:
            if (
                is_other
                and row is not None
                and name not in allowed_attributes(row)
                and type(value) is not RawValue
            ):
                raise EditError(f"{opcode} takes no attribute {name}", f"set attributes= of {where} too")
            found[name] = value
        else:
            found[name] = values.attribute(instruction, opcode, name, value)
    _forget_shardy(old, found)
    return found


def set_attribute(instruction: Instruction, name: str, value: Any) -> None:
    """Implements setting an attribute in `Instruction.attributes`."""
    module = module_of(instruction)
    check_readable(instruction)
    old = instruction._attributes
    value = values.attribute(instruction, instruction._head.opcode, name, value)
    before = old.get(name)
    if before is value or (type(value) in _PLAIN and type(before) is type(value) and before == value):
        return
    new = {**old, name: value}
    if name == "sharding":
        _forget_shardy(old, new)
    if (
        module is None
        or instruction._head.opcode in ROLES
        or (name in _OF_OTHERS if instruction._head.opcode in CALLS_NOTHING else name not in _OF_NO_OTHER)
        or (name == "sharding" and graph_checks.passes_sharding(instruction))
    ):
        apply(instruction, module, {"_attributes": new}, typed=True)
        return
    # Nothing but the instruction itself depends on it: most edits take this short way.
    with Edit(module) as edit:
        if name not in _FREE:
            edit.recheck((instruction,))
        dirty_lines.mark_dirty(edit.journal, instruction)
        if CONTROL in new and instruction._computation is not None:
            edit.journal.set(
                instruction, "_attributes", dirty_lines.with_known_names(instruction._computation, new)
            )
        else:
            edit.journal.set(instruction, "_attributes", new)


_PLAIN = frozenset({int, bool, str, tuple})
"""Classes of values that are compared quickly."""

_SHARDY = "xla.sdy.sharding"
"""The frontend attribute in which Shardy says the sharding again, in its own words."""


def _forget_shardy(before: Mapping[str, Any], after: dict[str, Any]) -> None:
    """Takes Shardy's note of a sharding that is another one now out of new attributes, where they leave it as it was."""
    if "frontend_attributes" not in after:
        return
    notes = after["frontend_attributes"]
    is_given = id(notes) != id(before.get("frontend_attributes"))
    if is_given or _SHARDY not in notes:
        return
    if after.get("sharding") is before.get("sharding"):
        return
    kept = {key: value for key, value in notes.items() if key != _SHARDY}
    if kept:
        after["frontend_attributes"] = type(notes)(kept)
    else:
        del after["frontend_attributes"]


_OF_OTHERS = frozenset({CONTROL, "custom_call_target"})
"""Attributes that other instructions may have to fit to."""

_OF_NO_OTHER = traits.PROVENANCE | traits.ANNOTATIONS | traits.SHARDING
"""Attributes of what calls computations that neither those nor other instructions depend on."""

_FREE = frozenset({"statistics", "backend_config"})
"""Attributes of which nothing is demanded but that they can be read."""


def remove_attribute(instruction: Instruction, name: str) -> None:
    """Implements deleting an attribute from `Instruction.attributes`."""
    module = module_of(instruction)
    kept = {key: value for key, value in instruction._attributes.items() if key != name}
    if name == "sharding":
        _forget_shardy(instruction._attributes, kept)
    apply(instruction, module, {"_attributes": kept}, typed=True)


def apply(instruction: Instruction, module: Module | None, new: dict[str, Any], *, typed: bool) -> None:
    """Sets private fields to values that were converted and checked. Raises EditError, and then changes nothing."""
    old = {name: getattr(instruction, name) for name in new}
    opcode = new.get("_opcode", instruction._head.opcode)
    operands: tuple[Instruction, ...] = new.get("_operands", instruction._operands)
    attributes: dict[str, Any] = new.get("_attributes", instruction._attributes)
    before: dict[str, Any] = old.get("_attributes", attributes)
    computation = instruction._computation
    if "_operands" in new:
        asynchronous.check_taken(instruction, opcode, operands, old["_operands"])
        asynchronous.check_left(instruction, (o for o in old["_operands"] if o not in operands))
    moves: list[Instruction] = []
    called: list[Computation] = []
    depends = CONTROL in attributes or CONTROL in before
    if computation is not None:
        if "_operands" in new or depends:
            check_control(computation, attributes, before)
            check_members(computation, instruction._name, operands, attributes)
            moves = moves_before((*operands, *graph_checks.present(attributes)), instruction)
        if ("_attributes" in new or "_opcode" in new) and opcode not in CALLS_NOTHING:
            called = calls.check(computation, instruction, opcode, attributes, before)
    elif any(operand is instruction for operand in operands):
        raise EditError(f"{instruction._name} would depend on its own result")
    with Edit(module) as edit:
        journal = edit.journal
        _watch(edit, instruction, old, new, typed=typed)
        if "_operands" in new:
            edit.check_used((*old["_operands"], *operands))
        dirty_lines.mark_dirty(journal, instruction)
        if depends and computation is not None and "_attributes" in new:
            new = {**new, "_attributes": dirty_lines.with_known_names(computation, attributes)}
        set_fields(journal, instruction, new)
        if computation is not None:
            if depends:
                graph_checks.add_control_edges(
                    journal, instruction, graph_checks.present(before), graph_checks.present(attributes)
                )
            graph_checks.move_all(journal, computation, moves, instruction)
            if called and computation._module is not None:
                calls.bring_before(journal, computation._module, computation, called)
        touch_around(edit, instruction, old, new)


def set_fields(journal: Journal, instruction: Instruction, fields: Mapping[str, Any]) -> None:
    """Sets private fields, and updates users and callers."""
    module = instruction._computation._module if instruction._computation is not None else None
    may_call = module is not None and ("_attributes" in fields or "_opcode" in fields)
    if may_call and module is not None:
        module._remove_call_edge(instruction)
        journal.push_undo(module._add_call_edge, instruction)
    for name, value in fields.items():
        if name == "_operands":
            set_operands(journal, instruction, value)
        else:
            journal.set(instruction, name, value)
    if may_call and module is not None:
        module._add_call_edge(instruction)
        journal.push_undo(module._remove_call_edge, instruction)


def set_operands(journal: Journal, user: Instruction, operands: tuple[Instruction, ...]) -> None:
    """Sets the operands of an instruction, and updates the users of old and new operands."""
    before = user._operands
    move_uses(user, before, operands)
    journal.push_undo(move_uses, user, operands, before)
    dirty_lines.split_lines(journal, operands)


def move_uses(user: Instruction, before: tuple[Instruction, ...], after: tuple[Instruction, ...]) -> None:
    user._operands = after
    old, new = set(before), set(after)
    for operand in before:
        if operand not in new and operand._users is not None:
            operand._users.pop(user, None)
    for operand in after:
        if operand not in old and operand._users is not None:
            operand._users[user] = None


def touch_around(
    edit: Edit, instruction: Instruction, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Marks the other lines that an edit changed: users only where they may show the shape of their operand."""
    journal = edit.journal
    computation = instruction._computation
    if "_shape" in new:
        shape = new["_shape"]
        module = journal.module
        if module is not None:
            graph_checks.shape_added(journal, module, shape)
            graph_checks.shape_removed(journal, module, old["_shape"])
        for user in instruction.users:
            dirty_lines.mark_dirty(journal, user)
        before: Shape | None = old["_shape"]
        if shape is not None and before is not None and same_shape(before, shape):
            lasting = edit.outermost
            if lasting.relaid is None:
                lasting.relaid = {}
            lasting.relaid[instruction] = None
        elif instruction._head.opcode in ROLES:
            body = instruction.async_wrapped_computation
            # Spelled short, the wrapped operation would be read with the shape of the last in the chain.
            if body is not None and body._is_sugared:
                dirty_lines.touch_computation(journal, body)
    if "_attributes" in new:
        lost = [c for value in old["_attributes"].values() for c in _called(value) if not c.calls]
        for callee in (*instruction.called_computations, *lost):
            if callee._is_inline or (callee.is_printed_inline and callee in lost and callee._instructions):
                dirty_lines.split_body(journal, callee)
        if (
            lost and instruction._head.opcode in ROLES
        ):  # the others may be spelled short, after what is no longer called
            for part in instruction.async_chain:
                dirty_lines.mark_dirty(journal, part)
        if instruction._head.opcode in ROLES:
            _spell_in_full(journal, instruction, old["_attributes"], new["_attributes"])
    is_outside = instruction._head.opcode == "parameter" or instruction.is_root
    if computation is not None and is_outside and new.keys() & {"_shape", "_argument"}:
        dirty_lines.touch_signature(journal, computation)


def _spell_in_full(
    journal: Journal, instruction: Instruction, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Gives the body behind a short spelling a text where that would say one thing of start and wrapped operation."""
    if any(before.get(name) is not after.get(name) for name in ON_BOTH):
        for callee in instruction.async_chain[0].called_computations:
            if callee._is_sugared:
                dirty_lines.touch_computation(journal, callee)


def _watch(
    edit: Edit, instruction: Instruction, old: Mapping[str, Any], new: Mapping[str, Any], *, typed: bool
) -> None:
    """Watches what a change may make wrong."""
    module = edit.journal.module
    alike = same_type if module is not None and module.is_scheduled else same_shape
    if "_operands" in new and len(new) == 1 and (module is None or not has_memories(module)):
        before, after = old["_operands"], new["_operands"]
        if len(before) == len(after) and all(
            a is b or alike(a._head.shape, b._head.shape) for a, b in zip(before, after, strict=True)
        ):
            return
    if len(new) == 1 and "_attributes" in new and _differ_in_notes(old["_attributes"], new["_attributes"]):
        if "metadata" in new["_attributes"] or "origin" in new["_attributes"]:
            edit.recheck((instruction,), typed=typed)
        return
    edit.recheck((instruction, *buffers_around(instruction, new.get("_operands", ()))), typed=typed)
    if "_shape" in new and module is not None and _loses_tiles(old["_shape"], new["_shape"]):
        edit.recheck_module()
    if "_shape" in new and not alike(old["_shape"], new["_shape"]):
        edit.recheck(_dependents(instruction), typed=typed)
        if instruction._computation is not None and instruction._computation.is_entry:
            edit.recheck_header(typed=typed)
    if "_attributes" in new or "_opcode" in new:
        _watch_attributes(edit, instruction, old, new)


def _loses_tiles(before: Shape | None, after: Shape) -> bool:
    """True if a change of shape removes tiles: without any, precisions may not mix, anywhere in the module."""
    return dirty_lines.has_tiles(before) and not dirty_lines.has_tiles(after)


def _watch_attributes(
    edit: Edit, instruction: Instruction, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Watches what other instructions hold against an instruction's attributes."""
    opcode = instruction._head.opcode
    before: Mapping[str, Any] = old.get("_attributes", instruction._attributes)
    after: Mapping[str, Any] = new.get("_attributes", instruction._attributes)
    names_ = {name for name in {**before, **after} if before.get(name) is not after.get(name)}
    if opcode in ROLES and names_ - _NOTES - {"sharding"}:
        edit.recheck(instruction.async_chain)
        edit.recheck_module()
    if "custom_call_target" in names_ and any(
        operand._head.opcode in ROLES for operand in instruction._operands
    ):
        edit.recheck_module()
    if "sharding" in names_ and graph_checks.passes_sharding(instruction):
        edit.recheck_module()
    if "_opcode" in new or opcode in LOOPING or opcode == "fusion":
        callees = [
            callee
            for name in names_
            for value in (before.get(name), after.get(name))
            for callee in _called(value)
        ]
        if callees and opcode in LOOPING:
            edit.recheck_module()
        bodies = callees if callees or "_opcode" not in new else instruction.called_computations
        for body in bodies:
            edit.recheck(body._instructions)
            edit.check_used(body._instructions)


def _called(value: object) -> Iterable[Computation]:
    items = value if isinstance(value, tuple) else (value,)
    return [item for item in items if isinstance(item, Computation)]


def has_memories(module: Module) -> bool:
    """Returns True if a module has values in buffers or in host memory, so that more than operand shapes must be
    checked.
    """
    return any(validation.memory_kinds(module))


def _differ_in_notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return all(
        name in _NOTES or (name == "sharding" and name not in after) or before.get(name) is after.get(name)
        for name in {**before, **after}
    )


def same_type(a: Shape | None, b: Shape | None) -> bool:
    return a == b


def buffers_around(instruction: Instruction, operands: Iterable[Instruction]) -> list[Instruction]:
    """Returns the values in buffers whose number of writers may change if an instruction gets these operands."""
    computation = instruction._computation
    if computation is None or not any(holds_buffer(operand._head.shape) for operand in operands):
        return []
    return [i for i in computation._instructions if holds_buffer(i._head.shape)]


def _dependents(instruction: Instruction) -> list[Instruction]:
    """The instructions whose types follow from this one's shape: users, and callers of a parameter or root."""
    found = list(instruction.users)
    computation = instruction._computation
    if computation is not None and (instruction.is_root or instruction._head.opcode == "parameter"):
        found.extend(computation.calls)
    return found
