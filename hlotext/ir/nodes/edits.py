"""What every edit must prove before it happens: no cycle, no dangling use, no broken type.

The list of a computation's instructions is a topological order (the reader asks it of texts, edits keep it). So an operand
that stands before its user cannot close a cycle, and one that stands behind it must be moved, with all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hlotext.ir.errors import EditError
from hlotext.ir.nodes import calls, uses
from hlotext.ir.nodes.async_ops import ROLES, extra_operation, is_single_operation
from hlotext.ir.nodes.judge import Watch, operation_problems
from hlotext.ir.tables import opcodes
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import holds_buffer

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.values.shape import Shape

CONTROL = "control-predecessors"

_NO_ATTRIBUTES: Mapping[str, Any] = {}


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """Whether one shape may stand for the other: they differ in layouts at most."""
    return a is b or (a is not None and b is not None and a.text_without_layout() == b.text_without_layout())


def check_members(
    computation: Computation | None, name: str, operands: Iterable[Instruction], attributes: Mapping[str, Any]
) -> None:
    """Raises EditError unless operands and control predecessors are of the computation."""
    for operand in operands:
        if operand.computation is not computation or computation is None:
            where = computation.name if computation is not None else "any computation"
            raise EditError(f"operand {operand.name} of {name} is not in {where}")
    for predecessor in attributes.get(CONTROL, ()):
        if getattr(predecessor, "computation", None) is not computation:
            raise EditError(f"control predecessor {predecessor} of {name} is not in its computation")


def check_control(
    computation: Computation, attributes: Mapping[str, Any], before: Mapping[str, Any] = _NO_ATTRIBUTES
) -> None:
    """Raises EditError for a new control dependency inside of a fusion, which runs as one: there is nothing to order."""
    wanted = attributes.get(CONTROL)
    if wanted and wanted != before.get(CONTROL) and computation.is_fusion_body:
        raise EditError(f"{computation.name} is run by a fusion, in which there is no order to keep")


def moves_before(needed: Iterable[Instruction], anchor: Instruction) -> list[Instruction]:
    """The instructions that must move so that all needed ones stand before the anchor, in order.

    Raises EditError where one of them needs the anchor itself.
    """
    computation = anchor.computation
    assert computation is not None
    order = computation.order
    limit = order[anchor]
    found: set[Instruction] = set()
    stack = [i for i in needed if order[i] >= limit]
    while stack:
        instruction = stack.pop()
        if instruction is anchor:
            raise EditError(f"{anchor.name} would need its own result")
        if instruction not in found:
            found.add(instruction)
            before = (*instruction._operands, *instruction.control_predecessors)
            stack.extend(i for i in before if order[i] >= limit)
    return sorted(found, key=order.__getitem__)


def change(instruction: Instruction, changes: Mapping[str, Any], *, typed: bool = True) -> None:
    """Sets some of an instruction's private fields at once, or raises EditError and changes nothing.

    The names are `_opcode`, `_shape`, `_operands`, `_attributes` and `_argument`. With `typed` the result, its users and,
    for parameters and roots, the callers must be well-typed, as far as they were before.
    """
    old = {name: getattr(instruction, name) for name in changes}
    new = {name: value for name, value in changes.items() if value is not old[name]}
    if not new:
        return
    opcode = new.get("_opcode", instruction._opcode)
    operands = new.get("_operands", instruction._operands)
    attributes = new.get("_attributes", instruction._attributes)
    computation = instruction.computation
    shape = new.get("_shape")
    if shape is not None and any(part.dimensions for _, part in shape.subshapes() if not part.is_array):
        raise EditError(f"only arrays have dimensions: {shape}")
    _check_attributes(instruction, new)
    if "_opcode" in new and {instruction._opcode, opcode} & ROLES.keys():
        raise EditError(f"{instruction.name} cannot become, or cease to be, half of something asynchronous")
    if "_operands" in new:
        uses.check_taken(instruction, opcode, operands, old["_operands"])
        uses.check_left(instruction, (o for o in old["_operands"] if o not in operands))
    moves: list[Instruction] = []
    called: list[Computation] = []
    if computation is not None:
        check_control(computation, attributes, old.get("_attributes", attributes))
        if "_operands" in new or "_attributes" in new:
            check_members(computation, instruction.name, operands, attributes)
            called = calls.check(
                computation, instruction, opcode, attributes, old.get("_attributes", attributes)
            )
            moves = moves_before((*operands, *attributes.get(CONTROL, ())), instruction)
    elif "_operands" in new and any(operand is instruction for operand in operands):
        raise EditError(f"{instruction.name} would need its own result")
    watch = _watch(instruction, old, new) if typed else None
    _set(instruction, new)
    if watch is not None:
        try:
            watch.check()
        except EditError:
            _set(instruction, old)
            raise
    if computation is not None:
        if CONTROL in attributes or CONTROL in old.get("_attributes", ()):
            computation._successors = None
        computation.move_all(moves, instruction)
        if called and computation.module is not None:
            computation.module.bring_before(computation, called)
    _touch(instruction, new)


def _set(instruction: Instruction, fields: Mapping[str, Any]) -> None:
    """Sets private fields, and brings users and callers up to date."""
    module = instruction.computation.module if instruction.computation is not None else None
    may_call = "_attributes" in fields or "_opcode" in fields
    if module is not None and may_call:
        module.forget_calls(instruction)
    before = instruction._operands
    for name, value in fields.items():
        setattr(instruction, name, value)
    if "_operands" in fields:
        _move_uses(instruction, before)
    if module is not None and may_call:
        module.note_calls(instruction)


def _check_attributes(instruction: Instruction, new: Mapping[str, Any]) -> None:
    """Raises EditError for a new attribute that the opcode does not take; unknown ones stay if they were there."""
    opcode = new.get("_opcode", instruction._opcode)
    row = opcodes.opcode(opcode)
    if row is None or not ("_attributes" in new or "_opcode" in new):
        return
    allowed = opcodes.allowed_attributes(row)
    kept = instruction._attributes if "_opcode" not in new else {}
    for name, value in new.get("_attributes", instruction._attributes).items():
        if name not in allowed and name not in kept and not isinstance(value, RawValue):
            raise EditError(f"{opcode} takes no attribute {name}")


def _touch(instruction: Instruction, new: Mapping[str, Any]) -> None:
    """Marks the lines that an edit changed: users only where they may show the shape of their operand."""
    instruction.touch()
    computation = instruction.computation
    if computation is None or not ("_shape" in new or "_argument" in new):
        return
    if "_shape" in new:
        for user in instruction.users:
            user.touch()
    if instruction.is_root or instruction._opcode == "parameter":
        computation.touch_signature()


def _move_uses(instruction: Instruction, old: tuple[Instruction, ...]) -> None:
    """Brings the users of old and new operands up to date."""
    for operand in {*old, *instruction._operands}:
        if operand._users is not None:
            if operand in instruction._operands:
                operand._users[instruction] = None
            else:
                operand._users.pop(instruction, None)


def _watch(instruction: Instruction, old: Mapping[str, Any], new: Mapping[str, Any]) -> Watch | None:
    """Watches what a change may make wrong; None where it can make nothing wrong.

    Raises EditError where a constant's value and shape would differ.
    """
    module = instruction.computation.module if instruction.computation is not None else None
    alike = _same if module is not None and module.is_scheduled else same_shape
    argument, shape = new.get("_argument"), new.get("_shape", instruction._shape)
    if isinstance(argument, Literal) and shape is not None and not same_shape(argument.shape, shape):
        raise EditError(f"the value of {instruction.name} is {argument.shape}, not {shape}")
    if "_operands" in new and not ({"_shape", "_attributes", "_opcode"} & new.keys()):
        before, after = [o._shape for o in old["_operands"]], [o._shape for o in new["_operands"]]
        fit = len(before) == len(after) and all(map(alike, before, after))
        if fit and not any(map(holds_buffer, after)):
            return None
    if new.keys() == {"_attributes"} and _drops_notes(old["_attributes"], new["_attributes"]):
        return None
    watched = [instruction, *_buffers_around(instruction, new.get("_operands", ()))]
    header = None
    if "_shape" in new and not alike(old["_shape"], new["_shape"]):
        watched += _dependents(instruction)
        header = module if instruction.computation is not None and instruction.computation.is_entry else None
    return Watch(watched, header)


_NOTES = frozenset({"metadata", "origin", "statistics", "sharding", "backend_config"})
"""Attributes without which nothing is wrong that was right."""


def _drops_notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether attributes differ in that some notes are gone; taking metadata out of a module is six times as fast so."""
    return (
        all(
            after.get(name) is value or (name in _NOTES and name not in after)
            for name, value in before.items()
        )
        and after.keys() <= before.keys()
    )


def _same(a: Shape | None, b: Shape | None) -> bool:
    return a == b


def _buffers_around(instruction: Instruction, operands: Iterable[Instruction]) -> list[Instruction]:
    """The values in buffers whose writers change when an instruction takes these operands: those are counted over users."""
    computation = instruction.computation
    if computation is None or not any(holds_buffer(operand._shape) for operand in operands):
        return []
    return [i for i in computation._instructions if holds_buffer(i._shape)]


def _dependents(instruction: Instruction) -> list[Instruction]:
    """The instructions whose types follow from this one's shape: users, and callers of a parameter or root."""
    found = list(instruction.users)
    computation = instruction.computation
    if computation is not None and (instruction.is_root or instruction._opcode == "parameter"):
        found.extend(computation.callers)
    return found


def replace_uses(old: Instruction, new: Instruction, *, leaving: bool = False) -> None:
    """Makes all users of one instruction take another in its place; see `Instruction.replace_all_uses_with`.

    `leaving`: the old one is taken out next, so that it may be half of an asynchronous operation whose other half stays.
    """
    computation = old.computation
    if computation is None or new.computation is not computation:
        raise EditError(f"{new.name} is not in the computation of {old.name}")
    if old is new:
        return
    if not same_shape(old._shape, new._shape):
        raise EditError(f"{new.name} is {new._shape}, not {old._shape} as {old.name}")
    taken = {user: user._operands for user in old.users if user is not new}
    given = {user: tuple(new if o is old else o for o in operands) for user, operands in taken.items()}
    for user, operands in given.items():
        uses.check_taken(user, user._opcode, operands, taken[user])
        if not leaving:
            uses.check_left(user, (old,))
    first = min(given, key=computation.order.__getitem__, default=None)
    moves = moves_before([new], first) if first is not None else []
    if any(user in moves for user in given):
        raise EditError(f"{new.name} needs the result of a user of {old.name}")
    is_root = computation.root is old
    if is_root:
        check_root(computation, new)
    watch = _watch_replacement(old, new, given)
    _redirect(given, computation, new if is_root else None)
    if watch is not None:
        try:
            watch.check()
        except EditError:
            _redirect(taken, computation, old if is_root else None)
            raise
    if first is not None:
        computation.move_all(moves, first)
    for user in given:
        user.touch()
    if is_root:
        touch_roots(computation, old, new)


def _redirect(
    operands: Mapping[Instruction, Any], computation: Computation, root: Instruction | None
) -> None:
    for user, taken in operands.items():
        before = user._operands
        user._operands = taken
        _move_uses(user, before)
    if root is not None:
        computation._root = root


def _watch_replacement(old: Instruction, new: Instruction, users: Iterable[Instruction]) -> Watch | None:
    """Watches what another layout, or another buffer, may make wrong; None where there is neither."""
    computation = old.computation
    module = computation.module if computation is not None else None
    buffers = _buffers_around(old, (new,))
    if not buffers and (module is None or not module.is_scheduled or old._shape == new._shape):
        return None
    if computation is None or not old.is_root:
        return Watch((*users, *buffers))
    return Watch((*users, *computation.callers, *buffers), module if computation.is_entry else None)


def check_root(computation: Computation, root: Instruction) -> None:
    """Raises EditError where another root would make what an async-start runs more than one operation."""
    if is_single_operation(computation) and extra_operation(computation, computation._instructions, root):
        raise EditError(f"{computation.name} is run by an async-start, and would be more than {root.name}")


def check_added(computation: Computation, instruction: Instruction) -> None:
    """Raises EditError where a new instruction would make what an async-start runs more than one operation."""
    if instruction._opcode == "parameter" or not is_single_operation(computation):
        return
    instructions = [*computation._instructions, instruction]
    if extra_operation(computation, instructions, computation.root) and not extra_operation(
        computation, computation._instructions, computation.root
    ):
        raise EditError(
            f"{computation.name} is run by an async-start, so it is {computation.root.name} alone"
        )


def check_typed(computation: Computation, instruction: Instruction) -> None:
    """Raises EditError where an instruction that is about to be added is wrong by itself."""
    watch = Watch(_buffers_around(instruction, instruction._operands))
    instruction.computation = computation  # what names other computations is seen through the module
    try:
        for _, message in operation_problems(instruction):
            raise EditError(f"{instruction.name}: {message}")
        watch.check()
    finally:
        instruction.computation = None


def touch_roots(computation: Computation, old: Instruction, new: Instruction) -> None:
    """Marks the lines of the old and the new root, and the signature."""
    for instruction in (old, new):
        instruction.touch()
    computation.touch_signature()
