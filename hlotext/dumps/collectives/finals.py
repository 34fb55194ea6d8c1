"""From the collectives of the final HLO back to those of the partitioner: one, several that were combined, or none."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

import attrs

import hlotext as hlo
from hlotext.analysis import Communication
from hlotext.analysis.devices import participant_groups
from hlotext.dumps.collectives.keys import Key, Text
from hlotext.dumps.collectives.places import joined_names_of, op_name_of

_VIEWS = frozenset({"bitcast", "copy", "reshape", "transpose", "convert", "get-tuple-element", "copy-done"})
_MOST = 256
_KIN = {"reduce-scatter": "all-reduce", "all-reduce": "all-reduce"}
"""Kinds that passes turn into each other."""


@attrs.define(eq=False)
class Item:
    """A collective with the properties that identify it in another module of the compilation."""

    communication: Communication
    text: Text
    key: Key | None
    groups: Hashable
    elements: tuple[int, ...]
    """Of each operand that is data."""
    channel: int | None
    names: tuple[str, ...] = ()
    """The op_names of the collectives that a combined one says it is made of; else its own."""
    unpadded: int | None = None
    """Elements before padding, of one whose only operand is padded."""

    @property
    def node(self) -> hlo.Instruction:
        return self.communication.instruction

    @property
    def kind(self) -> str:
        return self.communication.kind

    @property
    def total(self) -> int:
        return sum(self.elements)

    @property
    def op_name(self) -> str:
        return self.names[0] if len(self.names) == 1 else ""


def item(communication: Communication, text: Text) -> Item:
    """Returns the identifying properties of a collective."""
    node = communication.instruction
    groups: Hashable = None
    if communication.pairs is not None:
        groups = frozenset(communication.pairs)
    else:
        joined = participant_groups(text.module, node)
        groups = frozenset(frozenset(group) for group in joined) if joined is not None else None
    sizes = tuple(
        math.prod(one.shape.dimensions)
        for one in node.operands
        if one.shape is not None and one.shape.is_array
    )
    channel = node.attributes.get("channel_id")
    key = text.key_of(node)
    if key is None and communication.start is not node:
        key = text.key_of(communication.start)
    return Item(
        communication,
        text,
        key,
        groups,
        sizes,
        channel if isinstance(channel, int) else None,
        joined_names_of(node) or (op_name_of(node),),
        _unpadded(node),
    )


def _unpadded(node: hlo.Instruction) -> int | None:
    padded = node.operands[0] if len(node.operands) == 1 else None
    shape = padded.operands[0].shape if padded is not None and padded.opcode == "pad" else None
    return math.prod(shape.dimensions) if shape is not None and shape.is_array else None


@attrs.define(eq=False)
class Match:
    """A collective of the final HLO with the partitioner collectives that it consists of."""

    item: Item
    parts: list[Item] = attrs.field(factory=list)
    is_any: bool = False
    """True if it is one of several indistinguishable ones."""
    is_sure: bool = True
    """False where only sizes and groups speak for it."""


def match(finals: Sequence[Item], parts: Sequence[Item]) -> list[Match]:
    """Finds the partitioner collectives that each final collective consists of. Each is used once."""
    found = [Match(one) for one in finals]
    left = _named(found, list(parts))
    for same_kind in (True, False):
        for rule in _RULES:
            left = _by_rule(found, left, rule, same_kind)
    for rule in _RULES:
        left = _by_rule(found, left, rule, False, is_padded=True)
    left = _combined(found, left)
    left = _joined_axes(found, left)
    left = _concatenated(found, left)
    _leftovers(found, left)
    return found


def _last_part(one: Item) -> Hashable:
    return one.op_name.rpartition("/")[2] or None


_RULES: tuple[Callable[[Item], Hashable], ...] = (
    lambda one: one.key,
    lambda one: one.op_name or None,
    lambda one: one.channel,
    lambda one: one.node.name,
    _last_part,
)


def kin_of(kind: str) -> str:
    """Returns the representative of the kinds of collectives that passes turn into each other."""
    return _KIN.get(kind, kind)


def _by_rule(
    found: Sequence[Match],
    left: list[Item],
    rule: Callable[[Item], Hashable],
    same_kind: bool,
    is_padded: bool = False,
) -> list[Item]:
    """Pairs what is equal by one rule, and goes along the same axes with as many elements: before a pass padded them."""

    def told(one: Item, size: int | None) -> Hashable:
        value = rule(one)
        if value is None or size is None:
            return None
        return value, one.kind if same_kind else kin_of(one.kind), one.groups, size

    buckets: dict[Hashable, list[Item]] = defaultdict(list)
    for part in left:
        if (value := told(part, part.total)) is not None:
            buckets[value].append(part)
    wanted: dict[Hashable, list[Match]] = defaultdict(list)
    for one in found:
        if one.parts:
            continue
        value = told(one.item, one.item.unpadded if is_padded else one.item.total)
        if value is not None and value in buckets:
            wanted[value].append(one)
    taken: set[int] = set()
    for value, matches in wanted.items():
        _pair(matches, buckets[value], taken)
    return [part for part in left if id(part) not in taken]


def _pair(matches: list[Match], parts: list[Item], taken: set[int]) -> None:
    """Pairs several on each side that one rule does not tell apart: by channel, name, dependences, order."""
    several = len(matches) > 1 or len(parts) > 1
    if several:
        for tell in (
            lambda one: one.channel,
            lambda one: one.node.name,
            lambda one: _dependences(one),
        ):
            by: dict[Hashable, list[Item]] = defaultdict(list)
            for part in parts:
                by[tell(part)].append(part)
            often: dict[Hashable, int] = defaultdict(int)
            for one in matches:
                if not one.parts:
                    often[tell(one.item)] += 1
            for one in matches:
                value = tell(one.item)
                same = [part for part in by.get(value, ()) if id(part) not in taken]
                if value is not None and not one.parts and len(same) == 1 and often[value] == 1:
                    one.parts = same
                    taken.add(id(same[0]))
    rest = [part for part in parts if id(part) not in taken]
    open_ = [one for one in matches if not one.parts]
    is_any = len(rest) > 1 or len(open_) > 1
    for one, part in zip(open_, rest, strict=False):
        one.parts, one.is_any = [part], is_any
        taken.add(id(part))


def _dependences(one: Item) -> Hashable:
    """The arguments that a collective depends on; computations other than the entry are not compared."""
    home = one.node.computation
    if home is None or not home.is_entry:
        return None
    return one.text.reach(one.node)[0] or None


# ---- several in one


def _named(found: Sequence[Match], left: list[Item]) -> list[Item]:
    """Collectives whose own name says which ones they were combined from.

    Sizes do not count: what was moved out of a loop has more elements. Where more have a name than were combined, those
    count that the operands are made of.
    """
    by_name: dict[Hashable, list[Item]] = defaultdict(list)
    for part in left:
        by_name[part.op_name, kin_of(part.kind), part.groups].append(part)
    taken: set[int] = set()
    for one in found:
        if len(one.item.names) < 2:
            continue
        held = _held_keys(one.item)
        for name, count in Counter(one.item.names).items():
            key = (name, kin_of(one.item.kind), one.item.groups)
            same = [part for part in by_name.get(key, ()) if id(part) not in taken]
            if len(same) > count:
                fits = [part for part in same if part.key in held or _operand_key(part) in held]
                one.is_any |= len(fits) != count
                same = (fits + [part for part in same if part not in fits])[:count]
            one.parts += same
            taken.update(map(id, same))
        one.is_sure = len(one.parts) == len(one.item.names)
    return [part for part in left if id(part) not in taken]


def _combined(found: Sequence[Match], left: list[Item]) -> list[Item]:
    """Collectives with several operands, each of which was one of its own."""
    for one in found:
        if one.parts or len(one.item.elements) < 2:
            continue
        fitting = [
            part
            for part in left
            if kin_of(part.kind) == kin_of(one.item.kind) and part.groups == one.item.groups
        ]
        by_size: dict[int, list[Item]] = defaultdict(list)
        for part in fitting:
            by_size[part.total].append(part)
        data = [n for n in one.item.node.operands if n.shape is not None and n.shape.is_array]
        parts: list[Item] = []
        missing: list[tuple[int, set[Key | None]]] = []
        for operand, size in zip(data, one.item.elements, strict=True):
            made = _makers(operand, one.item.text)
            same = [p for p in by_size.get(size, ()) if p.key in made or _operand_key(p) in made]
            if len(same) == 1:
                parts.append(same[0])
                by_size[size].remove(same[0])
            else:
                missing.append((size, made))
        for size, made in missing:
            same = by_size.get(size, [])
            best = next((p for p in same if p.key in made or _operand_key(p) in made), None)
            best = best or (same[0] if same else None)
            if best is None:
                continue
            if len(same) > 1:
                one.is_sure = False
            parts.append(best)
            same.remove(best)
        one.parts = parts
        if len(parts) < len(data):
            one.is_sure = False
        taken = {id(part) for part in parts}
        left = [part for part in left if id(part) not in taken]
    return left


def _makers(node: hlo.Instruction, text: Text) -> set[Key | None]:
    """The keys of what makes a value: through fusion roots, copies and bitcasts."""
    found: set[Key | None] = set()
    stack, seen = [node], 0
    while stack and seen < _MOST:
        seen += 1
        one = stack.pop()
        key = text.key_of(one)
        if key is not None:
            found.add(key)
        if one.opcode == "get-tuple-element" and one.operands and one.operands[0].opcode == "fusion":
            body = one.operands[0].called_computations
            index = one.attributes.get("index")
            if body and len(body[0]) and isinstance(index, int) and index < len(body[0].root.operands):
                stack.append(body[0].root.operands[index])
        elif one.opcode == "fusion":
            stack.extend(body.root for body in one.called_computations if len(body))
        elif one.opcode in _VIEWS:
            stack.extend(one.operands[:1])
    return found


def _operand_key(part: Item) -> Key | None:
    operands = part.node.operands
    return part.text.key_of(operands[0]) if operands else None


def _joined_axes(found: Sequence[Match], left: list[Item]) -> list[Item]:
    """A sum along one axis of a sum along another that became one along both."""
    for one in found:
        if one.parts or one.item.groups is None or kin_of(one.item.kind) != "all-reduce":
            continue
        same = [p for p in left if p.kind == "all-reduce" and p.total == one.item.total]
        for part in same:
            inner = _behind(part, same)
            if inner is not None and _union(part.groups, inner.groups) == one.item.groups:
                one.parts = [inner, part]
                left = [p for p in left if p is not part and p is not inner]
                break
    return left


def _behind(part: Item, others: Sequence[Item]) -> Item | None:
    """The collective whose result another one takes."""
    node = part.node.operands[0] if part.node.operands else None
    for _ in range(_MOST):
        if node is None:
            return None
        for other in others:
            if other.node is node and other is not part:
                return other
        node = node.operands[0] if node.opcode in _VIEWS and node.operands else None
    return None


def _union(one: Hashable, other: Hashable) -> Hashable:
    """The groups that two lists of groups make together, where each device of a group joins those of its others."""
    if not isinstance(one, frozenset) or not isinstance(other, frozenset):
        return None
    group_of: dict[int, frozenset[int]] = {device: group for group in other for device in group}
    joined = set()
    for group in one:
        members: set[int] = set()
        for device in group:
            members |= group_of.get(device, frozenset({device}))
        joined.add(frozenset(members))
    return frozenset(joined)


def _concatenated(found: Sequence[Match], left: list[Item]) -> list[Item]:
    """Sums of several arrays that were put into one; their elements add up."""
    for one in found:
        if one.parts or not one.item.elements:
            continue
        fitting = [
            part
            for part in left
            if kin_of(part.kind) == kin_of(one.item.kind) and part.groups == one.item.groups
        ]
        if len(fitting) < 2:
            continue
        held = _held_keys(one.item)
        for chosen in (
            [p for p in fitting if p.key in held or _operand_key(p) in held],
            fitting,
        ):
            if len(chosen) > 1 and sum(p.total for p in chosen) == one.item.total:
                one.parts = chosen
                break
        else:
            one.parts = _run(fitting, one.item.total)
            one.is_sure = False
        taken = {id(part) for part in one.parts}
        left = [part for part in left if id(part) not in taken]
    return left


def _run(parts: Sequence[Item], total: int) -> list[Item]:
    """Parts that follow each other and add up; none where that is not so of one run alone."""
    runs = []
    start, size = 0, 0
    for end, part in enumerate(parts):
        size += part.total
        while size > total:
            size -= parts[start].total
            start += 1
        if size == total and end > start:
            runs.append(list(parts[start : end + 1]))
    return runs[0] if len(runs) == 1 else []


def _held_keys(one: Item) -> set[Key | None]:
    """The keys of all that the operands of a collective are made of in one step."""
    found: set[Key | None] = set()
    stack = list(one.node.operands)
    for _ in range(_MOST):
        if not stack:
            break
        node = stack.pop()
        found.add(one.text.key_of(node))
        if node.opcode == "fusion":
            for body in node.called_computations:
                found.update(one.text.key_of(inner) for inner in body.instructions)
            stack.extend(node.operands)
        elif node.opcode in _VIEWS or node.opcode in ("concatenate", "tuple"):
            stack.extend(node.operands)
    found.discard(None)
    return found


def _leftovers(found: Sequence[Match], left: Iterable[Item]) -> None:
    """Matches the rest by axes and number of elements."""
    rest = list(left)
    for one in found:
        if one.parts:
            continue
        for kin in (False, True):
            fitting = [
                part
                for part in rest
                if (part.kind == one.item.kind or (kin and kin_of(part.kind) == kin_of(one.item.kind)))
                and part.groups == one.item.groups
                and part.total == one.item.total
            ]
            if fitting:
                one.parts = fitting[:1]
                one.is_any = len(fitting) > 1
                one.is_sure = False
                rest.remove(fitting[0])
                break
