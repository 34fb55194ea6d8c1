"""Edits of uses: replacing one operand, and replacing one instruction by another."""

from __future__ import annotations

from hlotext.edit import asynchronous, marks, members, structure, values
from hlotext.edit.instructions import (
    apply,
    buffers_around,
    has_memories,
    move_uses,
    same_type,
)
from hlotext.edit.journal import Edit, Journal
from hlotext.edit.members import (
    CONTROL,
    check_members,
    module_of,
    moves_before,
    same_shape,
)
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.rewiring import is_wide, operand_at, operand_count, wires_of

# ---- one operand


def replace_operand(instruction: Instruction, number: object, operand: Instruction) -> None:
    """See `Instruction.replace_operand`."""
    if not isinstance(number, int):
        raise EditError(
            f"the number of an operand of {instruction._name} is whole, not {values.shown(number)}"
        )
    old = operand_at(instruction, number)
    members.instruction(operand, f"an operand of {instruction._name}")
    if old is operand:
        return
    place = range(operand_count(instruction))[number]
    module = module_of(instruction)
    if not is_wide(instruction) or module is None:
        _replace_one(instruction, module, place, operand)
        return
    # Of the many operands of a tuple one alone is looked at.
    computation = instruction._computation
    assert computation is not None
    alike = same_type if module.is_scheduled else same_shape
    if (
        not alike(old._head.shape, operand._head.shape)
        or has_memories(module)
        or instruction._head.opcode in ROLES
        or operand._head.opcode in ROLES
        or old._head.opcode in ROLES
    ):
        _replace_one(instruction, module, place, operand)
        return
    check_members(computation, instruction._name, (operand,), {})
    moves = moves_before((operand,), instruction)
    with Edit(module) as edit:
        edit.suspect((old, operand))
        marks.touch(edit.journal, instruction)
        exchange(edit.journal, instruction, old, operand, place)
        members.move_all(edit.journal, computation, moves, instruction)


def _replace_one(instruction: Instruction, module: Module | None, place: int, operand: Instruction) -> None:
    found = list(instruction._operands)
    found[place] = operand
    apply(instruction, module, {"_operands": tuple(found)}, typed=True)


def exchange(
    journal: Journal, user: Instruction, old: Instruction, new: Instruction, place: int | None = None
) -> None:
    """Makes an instruction take another operand in one place; without one, wherever it takes the old one."""
    if not is_wide(user) or journal.module is None:
        before = user._operands
        after = tuple(
            new if (operand is old if place is None else number == place) else operand
            for number, operand in enumerate(before)
        )
        journal.did(move_uses, user, after, before)
        user._operands = after
        _use_instead(user, old, new, stays=old in after)
    else:
        places = tuple(wires_of(user).places[old]) if place is None else (place,)
        _rewire(user, places, old, new)
        journal.did(_rewire, user, places, new, old)
    marks.own_lines(journal, (new,))


def _rewire(user: Instruction, places: tuple[int, ...], old: Instruction, new: Instruction) -> None:
    _use_instead(user, old, new, stays=wires_of(user).exchange(places, old, new))


def _use_instead(user: Instruction, old: Instruction, new: Instruction, *, stays: bool) -> None:
    if not stays and old._users is not None:
        old._users.pop(user, None)
    if new._users is not None:
        new._users.setdefault(user, None)


# ---- one in the place of another


def replace_uses(old: Instruction, new: Instruction, *, leaving: bool = False) -> None:
    """See `Instruction.replace_all_uses_with`.

    `leaving`: the old one is removed next, so it may be half of an asynchronous operation whose other half stays.
    """
    module = module_of(old)
    members.instruction(new, f"what takes the place of {old._name}")
    computation = old._computation
    if computation is None or new._computation is not computation:
        raise EditError(f"{new.name} is not in the computation of {old.name}")
    if old is new:
        return
    module_of(new)
    if not same_shape(old._head.shape, new._head.shape):
        raise EditError(f"{new.name} is {new._head.shape}, not {old._head.shape} as {old.name}")
    users = [user for user in old.users if user is not new]
    for user in users:
        asynchronous.check_one(user, new, is_first=operand_at(user, 0) is old)
        if not leaving:
            asynchronous.check_left(user, (old,))
    order = computation.order
    first = min(users, key=order.__getitem__, default=None)
    moves = moves_before([new], first) if first is not None and order[new] >= order[first] else []
    if any(user in moves for user in users):
        raise EditError(f"{new.name} needs the result of a user of {old.name}")
    is_root = computation.root is old
    if is_root:
        members.check_root(computation, new)
    with Edit(module) as edit:
        journal = edit.journal
        _watch_replacement(edit, old, new, users)
        edit.suspect((old, new))
        for user in users:
            marks.touch(journal, user)
            exchange(journal, user, old, new)
        if is_root:
            journal.set(computation, "_root", new)
        if first is not None:
            members.move_all(journal, computation, moves, first)
        if is_root:
            marks.touch(journal, old)
            marks.touch(journal, new)
            marks.touch_signature(journal, computation)


def _watch_replacement(edit: Edit, old: Instruction, new: Instruction, users: list[Instruction]) -> None:
    """Watches what another layout, another buffer, or another sharding may make wrong."""
    computation, module = old._computation, edit.journal.module
    buffers = buffers_around(old, (new,))
    is_root = old.is_root
    if is_root and members.passes_sharding(old) and old.sharding != new.sharding:
        edit.watch_all()
    if not buffers and (
        module is None
        or not ((module.is_scheduled and old._head.shape != new._head.shape) or has_memories(module))
    ):
        return
    edit.watch((*users, *buffers))
    if is_root and computation is not None:
        edit.watch(computation.calls)
        if computation.is_entry:
            edit.watch_header()


def replace(old: Instruction, new: Instruction) -> None:
    """See `Instruction.replace_with`."""
    module = module_of(old)
    members.instruction(new, f"what takes the place of {old._name}")
    computation = old._computation
    if computation is None:
        raise EditError(f"{old.name} is in no computation")
    if new is old:
        return
    if new._computation is not computation:
        raise EditError(f"{new.name} is not in the computation of {old.name}")
    with Edit(module):
        is_done = any(asynchronous.is_finished_by(operand, old) for operand in old._operands)
        leaving = old._head.opcode != "parameter" and not is_done
        replace_uses(old, new, leaving=leaving)
        for successor in old.control_successors:
            kept = [p for p in successor._attributes[CONTROL] if p is not old]
            if new is not successor and new not in kept:
                kept.append(new)
            apply(
                successor,
                module,
                {"_attributes": {**successor._attributes, CONTROL: tuple(kept)}},
                typed=True,
            )
        if leaving and not old.user_view and not old.is_root:
            structure.remove(computation, (old,))
