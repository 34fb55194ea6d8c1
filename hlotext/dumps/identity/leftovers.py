"""Matches operations that no walk from known ones reaches: by text, by position, or by contents."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable

from hlotext.dumps.identity.looking import MOVES, PARTITIONING, moved_through
from hlotext.dumps.identity.pairing import AMBIGUOUS, LIKELY, MOST, SURE, Edge, Pairing
from hlotext.dumps.identity.states import Op, State, stem
from hlotext.ir.tables import opcodes, traits

_FEW, _MANY = 2, 6


def complete(pairing: Pairing) -> None:
    """Pairs the remaining operations by weaker evidence."""
    by_suffix(pairing)
    merged(pairing, whole=True)
    if pairing.mode:
        places(pairing, _MANY)
        alike(pairing, in_parts=True)
        places(pairing, _MANY)
        alike(pairing, in_parts=False)
    else:
        replaced(pairing, marked=True)
        alike(pairing, in_parts=True)
        places(pairing, _FEW)
        alike(pairing, in_parts=False)
        places(pairing, _MANY)
    replaced(pairing)
    split(pairing)
    merged(pairing)


def _open(pairing: Pairing) -> list[Op]:
    return [op for op in pairing.fresh if op.name not in pairing.edges]


def by_suffix(pairing: Pairing) -> None:
    """Pairs operations by suffix: `add.5.clone.1` and `add.5.remat` are derived from `add.5`."""
    if not pairing.trusts_names:
        return
    for op in _open(pairing):
        name = op.name
        while op.name not in pairing.edges and "." in name:
            name, _, last = name.rpartition(".")
            if not last.startswith(("clone", "remat")) and not last.isdigit():
                break
            old = pairing.old.ops.get(name)
            if old is not None and last.startswith(("clone", "remat")) and pairing.same_kind(op, old):
                if old.plain == op.plain and old.attributes == op.attributes:
                    pairing.link(op, None, old, None, SURE, "cloned")
                break
    pairing.follow()


def places(pairing: Pairing, most: int) -> None:
    """Matches by position: a known user read an operation of the same kind here, through data movement."""
    opcodes = PARTITIONING if pairing.mode == "partitioned" else MOVES
    at = 0
    while at < len(pairing.missed):
        new, context, old, before = pairing.missed[at]
        at += 1
        if not pairing.is_fresh(new):
            continue
        others = list(moved_through(pairing.old, old, before, MOVES, most))
        best = None
        for a, inner, i in moved_through(pairing.new, new, context, opcodes, most):
            if not pairing.is_open(a):
                continue
            for b, outer, j in others:
                if not pairing.may(a, b) or (not i and not j):
                    continue
                if pairing.mode == "partitioned" and _disagree(a, b):
                    continue
                if not pairing.mode and not pairing.is_gone(b):
                    continue
                if a.opcode == "custom-call" and a.attributes != b.attributes:
                    continue  # what it does stands there
                rank = (i + j + _differ(a, b), i)
                if best is None or rank < best[0]:
                    best = rank, a, inner, b, outer
        if best is not None:
            _, a, inner, b, outer = best
            kind = "" if pairing.mode else "place"
            pairing.link(a, inner, b, outer, SURE if pairing.mode else LIKELY, kind)
            pairing.follow()


def _disagree(new: Op, old: Op) -> bool:
    return bool(new.op_name and old.op_name) and new.op_name != old.op_name


def _differ(new: Op, old: Op) -> int:
    return (new.plain != old.plain) + (new.attributes != old.attributes) + (new.op_name != old.op_name)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


_KEYS: tuple[Callable[[State, Op], object], ...] = (
    lambda s, op: (s.base(op), op.plain, op.attributes, op.op_name, s.location(op), stem(op.name)),
    lambda s, op: (s.base(op), op.plain, op.attributes, _last(op.op_name), s.location(op)),
    lambda s, op: (s.base(op), op.plain, op.attributes, _last(op.op_name)),
    lambda s, op: (s.base(op), op.plain, op.attributes),
)
_KEYS_OF_PARTS: tuple[Callable[[State, Op], object], ...] = (
    lambda s, op: (s.base(op), op.op_name, s.location(op)),
    lambda s, op: (s.base(op), op.op_name),
)
"""Where shapes change."""


def alike(pairing: Pairing, *, in_parts: bool) -> None:
    """Pairs operations with equal text, in corresponding computations or, without `in_parts`, anywhere."""
    keys = _KEYS_OF_PARTS if pairing.mode == "partitioned" else _KEYS
    for key in keys:
        groups: dict[tuple[str, str, object], list[Op]] = defaultdict(list)
        for op in _open(pairing):
            home = pairing.new.home[op.name]
            part = pairing.parts.get(home.name)
            if in_parts and part is None:
                continue
            where = (part.name, home.name) if in_parts and part is not None else ("", "")
            groups[*where, key(pairing.new, op)].append(op)
        if not groups:
            continue
        wanted = {(part_name, said) for part_name, _, said in groups}
        candidates: dict[object, list[Op]] = defaultdict(list)
        for part, op in pairing.gone:
            if not pairing.claimed.get(op.name):
                found = (part.name if in_parts else "", key(pairing.old, op))
                if found in wanted:
                    candidates[found].append(op)
        for (part_name, _, said), group in groups.items():
            left = [op for op in candidates.get((part_name, said), ()) if not pairing.claimed.get(op.name)]
            mine = [op for op in group if op.name not in pairing.edges]
            if mine and left:
                _share(pairing, mine, left)


def _share(pairing: Pairing, mine: list[Op], left: list[Op]) -> None:
    """Resolves a match among several equal operations."""
    if len(mine) == 1 and len(left) == 1:
        same = _last(mine[0].op_name) == _last(left[0].op_name)
        pairing.link(mine[0], None, left[0], None, SURE if same else LIKELY)
        pairing.follow()
        return
    equals = tuple(op.name for op in left[:MOST])
    rest = iter(left)
    free: list[Op] = []
    for op in mine:
        if op.name in pairing.edges:
            continue
        free = [other for other in free if not pairing.claimed.get(other.name)]
        free += itertools.islice((o for o in rest if not pairing.claimed.get(o.name)), MOST - len(free))
        if not free:
            return
        was = {w.name for name in op.operands[:MOST] if (w := pairing.was(name)) is not None}
        scores = [len(was.intersection(other.operands)) for other in free]
        best = max(scores)
        chosen = free[scores.index(best)]
        weight = LIKELY if best and scores.count(best) == 1 else AMBIGUOUS
        pairing.link(op, None, chosen, None, weight, "", equals if weight == AMBIGUOUS else ())
        pairing.follow()


def replaced(pairing: Pairing, *, marked: bool = False) -> None:
    """Matches operations of another kind at the operand of a removed one; `marked`: with its op_name.

    Passes copy the metadata of an operation to its replacement.
    """
    for new, _, old, _ in pairing.missed:
        if not pairing.is_open(new) or not pairing.is_gone(old) or new.opcode in _PASSED_ON:
            continue
        if marked and (not new.op_name or new.op_name != old.op_name or pairing.claimed.get(old.name)):
            continue
        if marked and pairing.same_kind(new, old):
            continue
        if marked and any(_is_rival(pairing, new, name) for name in old.operands):
            continue
        pairing.edges[new.name] = Edge("replaced", (old.name,), LIKELY)
        pairing.claimed[old.name].append(new.name)


_PASSED_ON = traits.TUPLES | {"parameter"}
_NEVER_MERGED = traits.CONTROL_FLOW | {"tuple", "fusion"}


def _is_rival(pairing: Pairing, new: Op, name: str) -> bool:
    """True if an operand of a gone one is of the new one's kind and bears its mark too."""
    op = pairing.old.ops.get(name)
    return op is not None and pairing.same_kind(new, op) and op.op_name == new.op_name


def split(pairing: Pairing) -> None:
    """Links the start of an asynchronous operation to what its done originates from."""
    for op in _open(pairing):
        if not op.opcode.endswith("-start"):
            continue
        for user, _ in pairing.new.home[op.name].users_of(op.name)[:MOST]:
            edge = pairing.edges.get(user.name)
            if edge is not None and user.opcode.endswith(("-done", "-update")):
                pairing.edges[op.name] = Edge("split", edge.before, edge.weight, edge.equals)
                break


def merged(pairing: Pairing, *, whole: bool = False) -> None:
    """Links a collective to the removed ones whose operands it has; with `whole`, only if it has exactly all of their
    operands.
    """
    for op in _open(pairing):
        if len(op.operands) < 2 or op.opcode in _NEVER_MERGED:
            continue
        was = [(_was_passed(pairing, name) if whole else pairing.was(name)) for name in op.operands]
        if whole and (pairing.new.base(op) not in opcodes.COLLECTIVES or None in was):
            continue
        read = dict.fromkeys(old.name for old in was if old is not None)
        gone = {name: _gone_readers(pairing, op, name, set(read) if whole else None) for name in read}
        found = tuple(dict.fromkeys(itertools.chain.from_iterable(gone.values())))
        if not found or (whole and (len(found) < 2 or not all(gone.values()))):
            continue
        is_sure = whole and all(len(readers) == 1 for readers in gone.values())
        pairing.edges[op.name] = Edge("merged", found, SURE if is_sure else LIKELY)
        for name in found:
            pairing.claimed[name].append(op.name)


def _was_passed(pairing: Pairing, name: str) -> Op | None:
    """The old operation of a value, or of what it is another form of."""
    op = pairing.new.ops.get(name)
    for inner, _, _ in () if op is None else moved_through(pairing.new, op, None, MOVES, _FEW):
        if (was := pairing.was(inner.name)) is not None:
            return was
    return None


def _gone_readers(pairing: Pairing, new: Op, name: str, read: set[str] | None) -> list[str]:
    """The gone operations of one's kind that read an old value; `read`: and nothing but these values."""
    return [
        user.name
        for user, _ in pairing.old.home[name].users_of(name)[:MOST]
        if pairing.is_gone(user)
        and pairing.same_kind(new, user)
        and (read is None or read.issuperset(user.operands))
    ]
