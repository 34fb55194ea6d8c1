"""Edits of uses: replacing one operand, and replacing one instruction by another."""

from __future__ import annotations

from hlotext.edit import asynchronous, dirty_lines, graph_checks, structure, values
from hlotext.edit.graph_checks import (
    CONTROL,
    check_members,
    module_of,
    moves_before,
    same_shape,
)
from hlotext.edit.instructions import (
    apply,
    buffers_around,
    has_memories,
    move_uses,
    same_type,
)
from hlotext.edit.journal import Edit, Journal
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.operand_index import has_many_operands, operand_at, operand_count, wires_of
from hlotext.ir.tables import traits

# ---- one operand


def replace_operand(instruction: Instruction, number: object, operand: Instruction) -> None:
    """Implements `Instruction.replace_operand`."""
    if not isinstance(number, int):
        raise EditError(
            f"the operand number of {instruction._name} must be an integer, not {values.shown(number)}"
        )
    try:
        old = operand_at(instruction, number)
    except IndexError:
        count = operand_count(instruction)
        raise IndexError(f"{instruction._name} has no operand {number}; it has {count}") from None
    graph_checks.new_operand(operand, f"an operand of {instruction._name}")
    if old is operand:
        return
    place = range(operand_count(instruction))[number]
    module = module_of(instruction)
    if not has_many_operands(instruction) or module is None:
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
        edit.check_used((old, operand))
        dirty_lines.mark_dirty(edit.journal, instruction)
        set_operand(edit.journal, instruction, old, operand, place)
        graph_checks.move_all(edit.journal, computation, moves, instruction)


def _replace_one(instruction: Instruction, module: Module | None, place: int, operand: Instruction) -> None:
    found = list(instruction._operands)
    found[place] = operand
    apply(instruction, module, {"_operands": tuple(found)}, typed=True)


def set_operand(
    journal: Journal, user: Instruction, old: Instruction, new: Instruction, place: int | None = None
) -> None:
    """Replaces an operand at one position, or without `place`, at every position where it occurs."""
    if not has_many_operands(user) or journal.module is None:
        before = user._operands
        if place is None:
            after = tuple([new if operand is old else operand for operand in before])
        else:
            after = (*before[:place], new, *before[place + 1 :])
        journal.push_undo(move_uses, user, after, before)
        user._operands = after
        _use_instead(user, old, new, stays=old in after)
    else:
        places = tuple(wires_of(user).places[old]) if place is None else (place,)
        _rewire(user, places, old, new)
        journal.push_undo(_rewire, user, places, new, old)
    dirty_lines.split_lines(journal, (new,))


def _rewire(user: Instruction, places: tuple[int, ...], old: Instruction, new: Instruction) -> None:
    _use_instead(user, old, new, stays=wires_of(user).exchange(places, old, new))


def _use_instead(user: Instruction, old: Instruction, new: Instruction, *, stays: bool) -> None:
    if not stays and old._users is not None:
        old._users.pop(user, None)
    if new._users is not None:
        new._users.setdefault(user, None)


# ---- one in the place of another


def replace_uses(old: Instruction, new: Instruction, *, leaving: bool = False) -> None:
    """Implements `Instruction.replace_all_uses_with`.

    With `leaving`, the old instruction is removed next, so it may be a start or done whose counterpart stays.
    """
    module = module_of(old)
    graph_checks.new_operand(new, f"the replacement of {old._name}")
    computation = old._computation
    if computation is None or new._computation is not computation:
        raise EditError(f"{new.name} {graph_checks.elsewhere(new, computation)}")
    if old is new:
        return
    module_of(new)
    is_same = same_shape(old._head.shape, new._head.shape)
    if not is_same and (module is None or module._journal is None or module._journal.untyped is None):
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
        graph_checks.check_root(computation, new)
    with Edit(module) as edit:
        journal = edit.journal
        _watch_replacement(edit, old, new, users, is_same=is_same)
        edit.check_used((old, new))
        for user in users:
            dirty_lines.mark_dirty(journal, user)
            set_operand(journal, user, old, new)
        if is_root:
            journal.set(computation, "_root", new)
        if first is not None:
            graph_checks.move_all(journal, computation, moves, first)
        if is_root:
            dirty_lines.mark_dirty(journal, old)
            dirty_lines.mark_dirty(journal, new)
            dirty_lines.touch_signature(journal, computation)


def _watch_replacement(
    edit: Edit, old: Instruction, new: Instruction, users: list[Instruction], *, is_same: bool
) -> None:
    """Watches what another type, another layout, another buffer, or another sharding may make wrong."""
    computation, module = old._computation, edit.journal.module
    buffers = buffers_around(old, (new,))
    is_root = old.is_root
    if is_root and graph_checks.passes_sharding(old) and old.sharding != new.sharding:
        edit.recheck_module()
    if (
        is_same
        and not buffers
        and (
            module is None
            or not ((module.is_scheduled and old._head.shape != new._head.shape) or has_memories(module))
        )
    ):
        return
    edit.recheck((*users, *buffers))
    if is_root and computation is not None:
        edit.recheck(computation.calls)
        if computation.is_entry:
            edit.recheck_header()


def replace(old: Instruction, new: Instruction) -> None:
    """Implements `Instruction.replace_with`."""
    with Edit(module_of(old)):
        if hand_over(old, new) and old._computation is not None:
            structure.remove(old._computation, (old,))


def hand_over(old: Instruction, new: Instruction) -> bool:
    """Transfers users and control dependencies from one instruction to another. Returns True if the old one can be
    removed.

    Raises EditError if they are not in the same computation.
    """
    module = module_of(old)
    graph_checks.new_operand(new, f"the replacement of {old._name}")
    computation = old._computation
    if computation is None:
        raise EditError(f"{old.name} is not in a computation")
    if new is old:
        return False
    if new._computation is not computation:
        raise EditError(f"{new.name} is not in the computation of {old.name}")
    is_done = bool(old._operands) and asynchronous.is_finished_by(old._operands[0], old)
    leaving = old._head.opcode != "parameter" and not is_done
    replace_uses(old, new, leaving=leaving)
    for successor in old.control_successors:
        kept = [p for p in successor._attributes[CONTROL] if p is not old]
        if new is not successor and new not in kept:
            kept.append(new)
        attributes = {**successor._attributes, CONTROL: tuple(kept)}
        apply(successor, module, {"_attributes": attributes}, typed=True)
    is_unused = old._head.opcode != "parameter" and not old.user_view and not old.is_root
    if is_unused and new._head.opcode not in traits.GIVEN:  # those run at no time
        _take_predecessors(old, new, module)
    return is_unused and leaving


def _take_predecessors(old: Instruction, new: Instruction, module: Module | None) -> None:
    """Lets an instruction wait for what the one waited for whose place it takes, or any part of an asynchronous one."""
    parts = old.async_chain or (old,)
    theirs = [p for part in parts for p in part.control_predecessors if p is not new and p not in parts]
    own = new._attributes.get(CONTROL, ())
    if any(p not in own for p in theirs):
        attributes = {**new._attributes, CONTROL: tuple(dict.fromkeys((*own, *theirs)))}
        try:
            apply(new, module, {"_attributes": attributes}, typed=True)
        except EditError as error:
            names = values.shortened(p._name for p in theirs)
            raise EditError(f"{old._name} runs after {names}, and {new._name} cannot: {error}") from None
