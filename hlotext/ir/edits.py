"""What every edit must prove before it happens: no cycle, no dangling use, no broken type.

The list of a computation's instructions is a topological order (the reader asks it of texts, edits keep it). So an operand
that stands before its user cannot close a cycle, and one that stands behind it must be moved, with all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlotext.ir import inference, opcodes
from hlotext.ir.attributes import RawValue
from hlotext.ir.errors import EditError
from hlotext.ir.literal import Literal

if TYPE_CHECKING:
    from hlotext.ir.computation import Computation
    from hlotext.ir.instruction import Instruction
    from hlotext.ir.shape import Shape

CONTROL = "control-predecessors"


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """Whether one shape may stand for the other: they differ in layouts at most."""
    return a is b or (a is not None and b is not None and a.text_without_layout() == b.text_without_layout())


def check_members(
    computation: Computation | None, name: str, operands: Iterable[Instruction], attributes: Mapping[str, Any]
) -> None:
    """Raises EditError unless operands and control predecessors are of the computation, and callees of its module."""
    for operand in operands:
        if operand.computation is not computation or computation is None:
            where = computation.name if computation is not None else "any computation"
            raise EditError(f"operand {operand.name} of {name} is not in {where}")
    for attribute, value in attributes.items():
        for item in value if type(value) is tuple else (value,):
            if hasattr(item, "execution_thread"):
                if computation is not None and item.module is not computation.module:
                    raise EditError(f"{attribute} of {name} names {item.name}, which is not in its module")
            elif attribute == CONTROL and getattr(item, "computation", None) is not computation:
                raise EditError(f"control predecessor {item} of {name} is not in its computation")


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
    operands = new.get("_operands", instruction._operands)
    attributes = new.get("_attributes", instruction._attributes)
    computation = instruction.computation
    shape = new.get("_shape")
    if shape is not None and any(part.dimensions for _, part in shape.subshapes() if not part.is_array):
        raise EditError(f"only arrays have dimensions: {shape}")
    _check_attributes(instruction, new)
    check_pair(new.get("_opcode", instruction._opcode), operands)
    if "_opcode" in new and instruction._opcode in _PAIRED and computation is not None and instruction.users:
        raise EditError(f"{instruction.name} is one half of an asynchronous operation")
    moves: list[Instruction] = []
    if computation is not None:
        if "_operands" in new or "_attributes" in new:
            check_members(computation, instruction.name, operands, attributes)
            moves = moves_before((*operands, *attributes.get(CONTROL, ())), instruction)
    elif "_operands" in new and any(operand is instruction for operand in operands):
        raise EditError(f"{instruction.name} would need its own result")
    if typed:
        _check_types(instruction, old, new)
    for name, value in new.items():
        setattr(instruction, name, value)
    if "_operands" in new:
        _move_uses(instruction, old["_operands"])
    if computation is not None:
        if CONTROL in attributes or CONTROL in old.get("_attributes", ()):
            computation._successors = None
        computation.move_all(moves, instruction)
    _touch(instruction, new)


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


_PAIRED = ("async-start", "async-update")


def check_pair(opcode: str, operands: Sequence[Instruction]) -> None:
    """Raises EditError where an async-update or -done would not follow its start (`HloParser` reads no such text)."""
    if opcode not in ("async-update", "async-done"):
        return
    first = operands[0] if operands else None
    if first is None or not (first._opcode in _PAIRED or first.form.value == "implicit"):
        raise EditError(f"the operand of {opcode} is an async-start or async-update")


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


def _check_types(instruction: Instruction, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raises EditError if the change makes a type wrong that was right."""
    shape_stays = "_shape" not in new or same_shape(old["_shape"], new["_shape"])
    argument = new.get("_argument")
    shape = new.get("_shape", instruction._shape)
    if isinstance(argument, Literal) and shape is not None and not same_shape(argument.shape, shape):
        raise EditError(f"the value of {instruction.name} is {argument.shape}, not {shape}")
    operands_stay = "_operands" not in new or (
        len(old["_operands"]) == len(new["_operands"])
        and all(
            same_shape(a._shape, b._shape) for a, b in zip(old["_operands"], new["_operands"], strict=True)
        )
    )
    if shape_stays and operands_stay and "_attributes" not in new and "_opcode" not in new:
        return
    watched = [instruction, *(() if shape_stays else _dependents(instruction))]
    before = [inference.type_problem(i) for i in watched]
    for name, value in new.items():
        setattr(instruction, name, value)
    after = [inference.type_problem(i) for i in watched]
    for name, value in old.items():
        setattr(instruction, name, value)
    for watched_one, was, now in zip(watched, before, after, strict=True):
        if now is not None and was is None:
            raise EditError(f"{watched_one.name}: {now}")


def _dependents(instruction: Instruction) -> list[Instruction]:
    """The instructions whose types follow from this one's shape: users, and callers of a parameter or root."""
    found = list(instruction.users)
    computation = instruction.computation
    if computation is not None and (instruction.is_root or instruction._opcode == "parameter"):
        found.extend(computation.callers)
    return found


def replace_uses(old: Instruction, new: Instruction) -> None:
    """Makes all users of one instruction take another in its place; see `Instruction.replace_all_uses_with`."""
    computation = old.computation
    if computation is None or new.computation is not computation:
        raise EditError(f"{new.name} is not in the computation of {old.name}")
    if old is new:
        return
    if not same_shape(old._shape, new._shape):
        raise EditError(f"{new.name} is {new._shape}, not {old._shape} as {old.name}")
    users = [user for user in old.users if user is not new]
    for user in users:
        check_pair(user._opcode, tuple(new if operand is old else operand for operand in user._operands))
    if users:
        first = min(users, key=computation.order.__getitem__)
        moves = moves_before([new], first)
        if any(user in moves for user in users):
            raise EditError(f"{new.name} needs the result of a user of {old.name}")
        computation.move_all(moves, first)
    for user in users:
        before = user._operands
        user._operands = tuple(new if operand is old else operand for operand in before)
        _move_uses(user, before)
        user.touch()
    if computation.root is old:
        computation.root = new
