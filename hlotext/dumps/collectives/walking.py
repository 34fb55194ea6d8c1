"""The way of a tensor through what the partitioner wrote: back to where it is made, on to the operation that reads it."""

from __future__ import annotations

from collections.abc import Collection

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.keys import Key
from hlotext.dumps.collectives.pairing import Sides, leaves_of
from hlotext.dumps.collectives.shardings import sharding_of
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.tables.opcode import Family

_SOURCES = traits.SOURCES - {"parameter"}
_MOST = 4096
"""Maximum number of operations followed to a tensor; usually a few."""
MOVES = (
    frozenset(
        row.name
        for row in opcodes.OPCODES.values()
        if row.family in (Family.DATA_MOVEMENT, Family.TUPLE)
        or row.name in ("dynamic-slice", "dynamic-update-slice")
    )
    | traits.CONVERSIONS
    | {"select"}
)
"""Opcodes that the partitioner writes around a collective to move data, so that they do not show the reader."""


@attrs.frozen
class Way:
    """Result of a walk from a collective along operations with its own key."""

    own: tuple[hlo.Instruction, ...]
    """The reader's own operations, the nearest first."""
    ends: tuple[hlo.Instruction, ...]
    """The first operations with another key: backward what makes the data."""
    passed: tuple[hlo.Instruction, ...]
    """Everything on the way."""


def backward(sides: Sides, collective: hlo.Instruction, key: Key | None, own: Collection[str]) -> Way:
    """Walks back to the sources of a collective's data, stopping at operations whose opcode is in `own`."""
    found: list[hlo.Instruction] = []
    ends: list[hlo.Instruction] = []
    passed: list[hlo.Instruction] = []
    seen: set[hlo.Instruction] = set()
    stack = list(reversed(_data(collective)))
    while stack and len(seen) < _MOST:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.opcode in _SOURCES:
            continue
        is_foreign = sides.after.key_of(node) != key
        if is_foreign and _is_helper(sides, node):
            passed.append(node)
            stack.extend(reversed(_data(node)))
            continue
        if is_foreign or (key is None and _is_end(node)):
            if not _is_plain(node):
                ends.append(node)
            continue
        if key is not None and _is_state(node):
            ends.append(node)
            continue
        if node.opcode in own:
            found.append(node)
            continue
        passed.append(node)
        stack.extend(reversed(_data(node)))
    return Way(tuple(found), tuple(ends), tuple(passed))


def _is_helper(sides: Sides, node: hlo.Instruction) -> bool:
    """True for what moves data inside another operation: two that need the same slice share it, under the key of one."""
    if node.opcode not in MOVES:
        return False
    named = sides.before.by_key.get(sides.after.key_of(node), ())
    return bool(named) and all(
        one.opcode != node.opcode and sides.local(one) != leaves_of(node) for one in named
    )


def _is_end(node: hlo.Instruction) -> bool:
    """True for what makes data and has no key by nature."""
    return node.opcode == "parameter" or _is_state(node)


_HOLDING_STATE = traits.CONTROL_FLOW | {"parameter"}


def _is_state(node: hlo.Instruction) -> bool:
    return node.opcode == "get-tuple-element" and node.operands[0].opcode in _HOLDING_STATE


_PLAIN = traits.KEEPS_ELEMENTS | {"broadcast", "convert"}


def _is_plain(node: hlo.Instruction) -> bool:
    """True for a constant in any shape, and for values of a device's own number."""
    while node.opcode in _PLAIN and node.operands:
        node = node.operands[0]
    return node.opcode in _SOURCES


def _data(node: hlo.Instruction) -> list[hlo.Instruction]:
    """The operands that hold data, without masks and indices."""
    operands = list(node.operands)
    if node.opcode == "select":
        return operands[1:]
    if node.opcode in ("dynamic-slice", "pad", "gather"):
        return operands[:1]
    if node.opcode == "dynamic-update-slice":
        return operands[:2]
    if node.opcode == "get-tuple-element" and operands and operands[0].opcode == "tuple":
        index = node.attributes.get("index")
        return list(operands[0].operands[index : index + 1]) if isinstance(index, int) else operands
    return operands


def forward(
    sides: Sides,
    collective: hlo.Instruction,
    key: Key | None,
    own: Collection[str],
    through: Collection[hlo.Instruction] = (),
) -> Way:
    """Walks forward from a collective's result, along operations with a key and through other named ones.

    The walk continues after operations whose opcode is in `own` and moves data.
    """
    found: list[hlo.Instruction] = []
    ends: list[hlo.Instruction] = []
    passed: list[hlo.Instruction] = []
    seen: set[hlo.Instruction] = set()
    queue = list(collective.user_view)
    at = 0
    while at < len(queue) and len(seen) < _MOST:
        node = queue[at]
        at += 1
        if node in seen:
            continue
        seen.add(node)
        if node in through:
            passed.append(node)
            queue.extend(node.user_view)
            continue
        if sides.after.key_of(node) != key:
            ends.append(node)
            continue
        if node.opcode in own:
            found.append(node)
            if node.opcode not in MOVES:
                continue
        passed.append(node)
        queue.extend(node.user_view)
    return Way(tuple(found), tuple(ends), tuple(passed))


def last_of(sides: Sides, nodes: Collection[hlo.Instruction]) -> hlo.Instruction | None:
    """Returns the reader's own operation among several with its opcode: one that computes, or else the last with its
    local shape.
    """
    for node in nodes:
        if node.opcode not in MOVES:
            return node
    fitting = [
        node for node in nodes if any(sides.local(c) == leaves_of(node) for c in sides.candidates(node))
    ]
    return next(reversed(fitting or list(nodes)), None)


@attrs.frozen
class Reading:
    """The use of a tensor that a collective's metadata names."""

    end: hlo.Instruction
    """The shard of the tensor, after partitioning."""
    tensor: hlo.Instruction
    """Before partitioning."""
    chain: tuple[hlo.Instruction, ...]
    """Collectives before and after it on the same tensor."""
    key: Key | None
    """That of the operation that reads it; None for a result of the program."""
    readers: tuple[hlo.Instruction, ...]
    """The operations before partitioning that read it; empty for a result of the program."""
    is_result: bool
    is_one_of_several: bool = False
    """True if other tensors match equally well."""


def reading(sides: Sides, collective: hlo.Instruction) -> Reading | None:
    """Returns the use of the tensor that a collective moves, for collectives with the tensor's metadata, as XLA writes
    since June 2026.

    Returns None for collectives with the metadata of their reader, and if the tensor or the reader is not found.
    """
    if not is_marked(collective) or not collective.operands:
        return None
    chain = [collective]
    end = collective.operands[0]
    while is_marked(end) and end.operands and len(chain) < _MOST:
        chain.append(end)
        end = end.operands[0]
    made = end.operands[0] if sides.after.key_of(end) is None and _is_state(end) else end
    if end.opcode in _SOURCES:
        return None
    tensor = sides.counterpart(end)
    if sides.after.key_of(made) != sides.after.key_of(collective):
        tensor = _merged(sides, collective, end)
        if tensor is None:
            return None
    if tensor is None or tensor.opcode != end.opcode or sides.local(tensor) != leaves_of(end):
        alike = _moved_by_others(sides, end)
        if not alike:
            alike, end = _in_its_place(sides, collective), collective.operands[0]
            chain = [collective]
        if not alike:
            return None
        found = _read(sides, collective, end, alike[0], chain)
        return None if found is None else attrs.evolve(found, is_one_of_several=len(alike) > 1)
    return _read(sides, collective, end, tensor, chain)


def _merged(sides: Sides, collective: hlo.Instruction, end: hlo.Instruction) -> hlo.Instruction | None:
    """The tensor of a collective whose own was merged with an equal one from another line, which is there in its place."""
    mine, other = sides.after.key_of(collective), sides.after.key_of(end)
    if mine is None or other is None or mine[0] != other[0]:
        return None
    named = [one for one in sides.before.by_key.get(mine, ()) if one.opcode == end.opcode]
    fitting = [one for one in named if sides.local(one) == leaves_of(end)]
    return fitting[0] if len(fitting) == 1 else None


def _moved_by_others(sides: Sides, end: hlo.Instruction) -> list[hlo.Instruction]:
    """The operation that only moves data, and was carried out by others than itself: a slice across shards becomes
    permutes, pads and selects. Several where they are alike; empty if none, or different ones, fit."""
    if end.opcode not in MOVES:
        return []
    named = [
        one
        for one in sides.before.by_key.get(sides.after.key_of(end), ())
        if one.opcode in MOVES and sides.local(one) == leaves_of(end)
    ]
    found = sides.narrowed(named, end) if named else []
    return found if len({(one.opcode, str(sharding_of(one))) for one in found}) == 1 else []


def _in_its_place(sides: Sides, collective: hlo.Instruction) -> list[hlo.Instruction]:
    """The operation whose result was carried out elsewhere and brought to its place before this collective moves it on."""
    key, source = sides.after.key_of(collective), collective.operands[0]
    named = [
        one
        for one in sides.before.by_key.get(key, ())
        if sides.local(one) == leaves_of(source) != leaves_of(collective)
    ]
    return sides.narrowed(named, source) if is_marked(source) and sides.after.key_of(source) == key else []


def is_marked(node: hlo.Instruction) -> bool:
    """Returns True for a collective that the partitioner marks as its own (`is_spmd_generated`)."""
    return node.opcode in opcodes.COLLECTIVES and node.frontend_attributes.get("is_spmd_generated") == "true"


def _read(
    sides: Sides,
    collective: hlo.Instruction,
    end: hlo.Instruction,
    tensor: hlo.Instruction,
    chain: list[hlo.Instruction],
) -> Reading | None:
    """The operation that reads the tensor, of those behind the collective."""
    reading_it = _readers_of(tensor)
    seen: set[hlo.Instruction] = set()
    queue = [collective]
    is_result = False
    found: list[tuple[Key | None, list[hlo.Instruction]]] = []
    for node in queue:
        if len(seen) > _MOST:
            break
        is_result = is_result or _is_result(node)
        for user in node.user_view:
            if user in seen:
                continue
            seen.add(user)
            key = sides.after.key_of(user)
            if is_marked(user) and key == sides.after.key_of(collective):
                chain.append(user)
                queue.append(user)
                continue
            if key is not None and key == sides.after.key_of(collective):
                return None  # what moves data for the reader has its metadata: so has the collective
            named = [one for one in sides.before.by_key.get(key, ()) if one in reading_it] if key else []
            if named:
                near = [reading_it[one] for one in sides.narrowed(named, user)]
                keys = {sides.before.key_of(one) for one in near}
                found.append((keys.pop() if len(keys) == 1 else key, list(dict.fromkeys(near))))
            elif user.opcode in MOVES and not (user.opcode == "tuple" and user.is_root):
                queue.append(user)
    if found:
        key, readers = found[0]
        return Reading(end, tensor, tuple(chain), key, tuple(readers), False)
    if not is_result:
        return None
    results = sides.after.reach(collective)[1]
    behind = [
        one
        for one in dict.fromkeys(reading_it.values())
        if _is_result(one) and sides.before.reach(one)[1] == results and one.opcode != "tuple"
    ]
    if behind and not any(_is_result(one) for one in (tensor, *_views_of(tensor))):
        return Reading(end, tensor, tuple(chain), sides.before.key_of(behind[0]), tuple(behind[:1]), False)
    return Reading(end, tensor, tuple(chain), None, (), True)


_MOST_VANISHED = 3
"""Maximum number of data movements that the partitioner may fold away, such as the slices of a roll."""


def _readers_of(tensor: hlo.Instruction) -> dict[hlo.Instruction, hlo.Instruction]:
    """The operations that read a tensor, each with the one to name: itself, or what moves the data for it and vanished."""
    found = {user: user for user in tensor.user_view}
    level = [user for user in found if user.opcode in MOVES and user.opcode != "tuple"]
    for _ in range(_MOST_VANISHED):
        level = [one for one in level if len(found) < _MOST]
        following = []
        for one in level:
            for user in one.user_view:
                found.setdefault(user, one)
                if user.opcode in MOVES and user.opcode != "tuple":
                    found[user] = user
                    following.append(user)
        level = following
    return found


def _views_of(tensor: hlo.Instruction) -> list[hlo.Instruction]:
    """The tuple that a result is put into, and the element that is taken out of it."""
    tuples = [user for user in tensor.user_view if user.opcode == "tuple"]
    return tuples + [user for one in tuples for user in one.user_view if user.opcode == "get-tuple-element"]


def _is_result(node: hlo.Instruction) -> bool:
    home = node.computation
    if home is None or not home.is_entry:
        return False
    return node.is_root or any(user.opcode == "tuple" and user.is_root for user in node.user_view)
