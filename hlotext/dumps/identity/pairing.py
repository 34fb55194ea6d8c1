"""Pairs the operations of a text with those of the one before: see `Pairing`."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator

import attrs

from hlotext.dumps.identity.local_ids import LocalIds, moves
from hlotext.dumps.identity.looking import INLINE, Context, behind, seen_through
from hlotext.dumps.identity.states import Op, Part, State
from hlotext.ir.tables import traits

SAME, SURE, LIKELY, AMBIGUOUS = 0, 1, 2, 3
"""Certainty of a link: equal name; only structural candidate; by position; several equal candidates."""
MOST = 64
"""Maximum number of users of a value, and of equal candidates, that are compared."""
_WEAK = 4


@attrs.frozen
class Edge:
    """Link of an operation to the previous step."""

    kind: str
    """`replaced`, `renamed`, `cloned`, `place`, `partitioned`, `split` or `merged`."""
    before: tuple[str, ...]
    weight: int
    """`SURE`, `LIKELY` or `AMBIGUOUS`."""
    equals: tuple[str, ...] = ()
    """Of an ambiguous one all that it may have been."""


class Pairing:
    """Pairing of the operations of two consecutive steps of a compilation.

    Equal names are the same operation, since XLA never reuses a name within a module, unless the module was imported
    again. Operands of known pairs are followed: if a known user reads a new operation where it read a removed one, the
    two correspond. Fusions, calls and tuples are looked through. Operations that are not reached are matched by their
    operands.
    """

    def __init__(self, old: State, new: State, mode: str = "") -> None:
        self.old, self.new = old, new
        self.mode = mode
        """`reimported`: names mean nothing; `partitioned`: shapes changed and communication came in."""
        self.edges: dict[str, Edge] = {}
        self.trusts_names = mode != "reimported"
        self.claimed: dict[str, list[str]] = defaultdict(list)
        """The operations that an old one became, where they have other names."""
        self.parts: dict[str, Part] = {}
        """The old computation of a new one."""
        self.missed: list[tuple[Op, Context, Op, Context]] = []
        """Slots in which a known operation reads something of another kind than before."""
        self._queue: list[tuple[int, int, Op, Context, Op, Context]] = []
        self._count = itertools.count()
        self._seen: set[tuple[str, str]] = set()
        self._known: dict[str, list[str]] = {}
        """Old names of the first operands of an operation, as far as all are known."""
        changed = [part for chunk, part in new.chunks.items() if chunk not in old.chunks]
        self.fresh = [op for part in changed for op in part.ops if self.is_fresh(op)]
        """The operations whose names are new, in the order of the text."""
        if changed and not mode and new.local_ids is not None and old.local_ids is not None:
            self._told_by_ids(changed, old.local_ids, new.local_ids)
        self._start(changed)

    def _told_by_ids(self, changed: list[Part], before: LocalIds, after: LocalIds) -> None:
        """The order of ids tells renames and replacements of the same name exactly."""
        for part in changed:
            computation = after.computations.get(part.name)
            order = after.order(computation) if computation is not None else ()
            if computation is None or computation in after.as_written:
                continue
            found = moves(before.order(computation), order, self.old.opcode, self.new.opcode)
            for new, old in found.renamed:
                if new in self.new.ops and old in self.old.ops:
                    self.link(self.new.ops[new], None, self.old.ops[old], None, SURE, "renamed")
            for one in found.replaced:
                if one in self.new.ops and one in self.old.ops:
                    self.edges[one] = Edge("replaced", (one,), SURE)

    # ---- questions

    def was(self, name: str) -> Op | None:
        """Returns the operation of the previous step that an operation originates from, or None if there is none or
        several.
        """
        edge = self.edges.get(name)
        if edge is not None:
            return self.old.ops.get(edge.before[0]) if len(edge.before) == 1 else None
        return self.old.ops.get(name) if self.trusts_names else None

    def is_fresh(self, op: Op) -> bool:
        """Returns True if an operation's name is new."""
        return not self.trusts_names or op.name not in self.old.ops

    def is_gone(self, op: Op) -> bool:
        """Returns True if an old operation's name no longer exists."""
        return not self.trusts_names or op.name not in self.new.ops

    @functools.cached_property
    def gone(self) -> list[tuple[Part, Op]]:
        """The old operations whose names no longer exist, with their computations."""
        parts = [
            part
            for chunk, part in self.old.chunks.items()
            if not (self.trusts_names and chunk in self.new.chunks)
        ]
        return [(part, op) for part in parts for op in part.ops if self.is_gone(op)]

    def is_open(self, op: Op) -> bool:
        """Returns True if an operation is new and not linked yet."""
        return op.name not in self.edges and self.is_fresh(op)

    def same_kind(self, new: Op, old: Op) -> bool:
        """Returns True if two operations have the same base opcode."""
        return self.new.base(new) == self.old.base(old)

    def may(self, new: Op, old: Op) -> bool:
        """Returns True if a new operation may be an old one: of the same kind, and not inserted after or next to it."""
        if not self.same_kind(new, old):
            return False
        return self.is_gone(old) or not (self._is_beside(new, old) or self._reads(new, old.name))

    def _is_beside(self, new: Op, old: Op) -> bool:
        """True if a new copy stands in the computation of one that is still there: copies are put in, not cloned."""
        return old.base == "copy" and self.new.home[new.name].name == self.old.home[old.name].name

    def _reads(self, new: Op, name: str, depth: int = 2) -> bool:
        """True if a new operation reads a known one, by few steps and into fusions."""
        for operand in new.operands[:4]:
            op = self.new.ops.get(operand)
            while op is not None and op.opcode == "parameter" and (inner := behind(self.new, op, None)):
                op = inner[0]
            if operand == name or (op is not None and op.name == name):
                return True
            if op is not None and depth and self.is_fresh(op) and self._reads(op, name, depth - 1):
                return True
        return False

    # ---- the way

    def _start(self, changed: list[Part]) -> None:
        old, new = self.old, self.new
        if new.entry is not None and old.entry is not None:
            self.pair_parts(new.entry, None, old.entry, None)
        if self.trusts_names:
            for part in changed:
                if (before := old.parts.get(part.name)) is not None:
                    self.pair_parts(part, None, before, None)
                for op in part.ops:
                    was = old.ops.get(op.name)
                    if was is not None and was is not op:
                        self._inside(op, None, was, None)
        self.follow()
        for op in self.fresh:
            self.by_operands(op)
        self.follow()

    def follow(self) -> None:
        """Processes the queue of candidate pairs, most likely first."""
        while self._queue:
            rank, _, new, context, old, before = heapq.heappop(self._queue)
            if self.is_open(new):
                self.link(new, context, old, before, SURE if rank < _WEAK else LIKELY)

    def link(
        self,
        new: Op,
        context: Context,
        old: Op,
        before: Context,
        weight: int,
        kind: str = "",
        equals: tuple[str, ...] = (),
    ) -> None:
        """Links two operations and queues the pairs that follow."""
        self.edges[new.name] = Edge(kind or self._kind(new, old), (old.name,), weight, equals)
        self.claimed[old.name].append(new.name)
        if not self.same_kind(new, old):
            return
        self._inside(new, context, old, before)
        for user, _ in self.new.home[new.name].users_of(new.name)[:MOST]:
            if self.is_open(user):
                self.by_operands(user)

    def _kind(self, new: Op, old: Op) -> str:
        if self.mode == "partitioned":
            return "partitioned"
        home, was = self.new.home[new.name], self.old.home[old.name]
        if self.is_gone(old) and (home.name == was.name or self.parts.get(home.name) is was):
            same = new.plain == old.plain and new.attributes == old.attributes
            return "renamed" if same else "replaced"
        return "cloned"

    # ---- down from what is known

    def pair_parts(self, new: Part, context: Context, old: Part, before: Context) -> None:
        """Links two computations and queues the pairs that follow."""
        if new.name in self.parts:
            return
        self.parts[new.name] = old
        if new is old and self.trusts_names:
            return
        if self._same_form(new, old):
            for one, other in zip(new.ops, old.ops, strict=True):
                if self.is_open(one):
                    self.link(one, context, other, before, SURE)
            return
        if new.root is not None and old.root is not None:
            self.slot(new.root, context, old.root, before)
        if len(new.parameters) == len(old.parameters) or self.mode:
            for number, parameter in new.parameters.items():
                was = old.parameters.get(number)
                if was is not None and self.is_open(parameter):
                    self._push(0, parameter, context, was, before)

    def _same_form(self, new: Part, old: Part) -> bool:
        """True if two computations say the same line by line, but for names."""
        if len(new.ops) != len(old.ops) or not new.ops or not self.is_fresh(new.ops[0]):
            return False
        at = {op.name: other.name for op, other in zip(new.ops, old.ops, strict=True)}
        return all(
            a.opcode == b.opcode
            and a.plain == b.plain
            and a.attributes == b.attributes
            and len(a.operands) == len(b.operands)
            and all(at.get(x) == y for x, y in zip(a.operands, b.operands, strict=True))
            for a, b in zip(new.ops, old.ops, strict=True)
        )

    def _call_the_same(self, new: Op, old: Op) -> bool:
        """True if two operations call computations that say the same."""
        for one, other in zip(new.callees, old.callees, strict=False):
            a, b = self.new.parts.get(one), self.old.parts.get(other)
            if a is not b and (a is None or b is None or not self._same_form(a, b)):
                return a is not None and b is not None and self.parts.get(a.name) is b
        return len(new.callees) == len(old.callees)

    def _inside(self, new: Op, context: Context, old: Op, before: Context) -> None:
        """Follows operands and callees of two operations that correspond."""
        if (new.name, old.name) in self._seen:
            return
        self._seen.add((new.name, old.name))
        if new.callees and len(new.callees) == len(old.callees):
            inlines = new.opcode in INLINE and old.opcode in INLINE
            for one, other in zip(new.callees, old.callees, strict=True):
                a, b = self.new.parts.get(one), self.old.parts.get(other)
                if a is not None and b is not None and a.ops and b.ops:
                    if inlines and a.root is not None and self._wraps(a.root, b):
                        self.link(a.root, (new, context), old, before, SURE, "cloned")
                        continue
                    self.pair_parts(
                        a, (new, context) if inlines else None, b, (old, before) if inlines else None
                    )
        if new.opcode.endswith(("-done", "-update")) and not old.opcode.endswith(("-done", "-update")):
            start = self.new.ops.get(new.operands[0]) if new.operands else None
            if start is not None and self.is_open(start):
                self.link(start, context, old, before, SURE, "split")
            return
        if new.opcode == "async-start" and old.base != "async" and new.callees:
            part = self.new.parts.get(new.callees[0])
            if part is not None and part.root is not None and self.is_open(part.root):
                self.link(part.root, (new, context), old, before, SURE)
        if old.opcode.endswith("-done") and not new.opcode.endswith("-done") and old.operands:
            start = self.old.ops.get(old.operands[0])
            if start is not None:
                self._inside(new, context, start, before)
            return
        if new.opcode == "get-tuple-element":
            element, was = behind(self.new, new, context), behind(self.old, old, before)
            if element is not None and was is None:  # the tuple was put together anew
                self.missed.append((*element, old, before))
            elif was is not None and element is None:  # and here there is none any more
                whole = self.new.ops.get(new.operands[0])
                if whole is not None:
                    self.missed.append((whole, context, *was))
                return
        if new.opcode == "fusion" and len(new.operands) != len(old.operands):
            return  # they are reached through their computations
        for one, other in self._aligned(new, old):
            mine, theirs = self.new.ops.get(one), self.old.ops.get(other)
            if mine is not None and theirs is not None:
                self.slot(mine, context, theirs, before)

    def _wraps(self, root: Op, body: Part) -> bool:
        """True for a fusion inside another one that has taken its name: it does what that one did."""
        inner = self.new.parts.get(root.callees[0]) if root.opcode == "fusion" and root.callees else None
        return inner is not None and self.is_open(root) and self._same_form(inner, body)

    def _aligned(self, new: Op, old: Op) -> Iterator[tuple[str, str]]:
        """The operands that stand in the same slot."""
        mine, theirs = new.operands, old.operands
        if len(mine) == len(theirs):
            if len(mine) == 2 and new.opcode in traits.COMMUTATIVE and self._is_crossed(mine, theirs):
                theirs = theirs[::-1]
            yield from zip(mine, theirs, strict=True)
            return
        places: dict[str, list[int]] = defaultdict(list)
        for index in range(len(theirs) - 1, -1, -1):
            places[theirs[index]].append(index)
        end = 0
        gap: list[str] = []
        for name in mine:
            was = self.was(name)
            left = places.get(was.name) if was is not None else None
            while left and left[-1] < end:
                left.pop()
            if not left:
                gap.append(name)
                continue
            at = left.pop()
            if len(gap) == at - end:
                yield from zip(gap, theirs[end:at], strict=True)
            yield name, theirs[at]
            gap, end = [], at + 1
        if len(gap) == len(theirs) - end:
            yield from zip(gap, theirs[end:], strict=True)
        elif not end and new.opcode == "tuple":  # what a loop carries grows at its end
            yield from zip(mine, theirs, strict=False)

    def _is_crossed(self, mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
        """True if two operands were exchanged."""
        was = [self.was(name) for name in mine]
        if any(was):
            straight = [a.name == b for a, b in zip(was, theirs, strict=True) if a is not None]
            crossed = [a.name == b for a, b in zip(was, theirs[::-1], strict=True) if a is not None]
            return sum(crossed) > sum(straight)
        new = [self.new.base(self.new.ops[n]) if n in self.new.ops else "" for n in mine]
        old = [self.old.base(self.old.ops[n]) if n in self.old.ops else "" for n in theirs]
        return new != old and new == old[::-1]

    def slot(self, new: Op, context: Context, old: Op, before: Context) -> None:
        """Handles a known operation that reads `new` in the slot where it read `old`."""
        if self.trusts_names and not self.is_fresh(new):
            return
        if new.name in self.edges and new.opcode not in INLINE:
            return
        others = list(seen_through(self.old, old, before))
        best: tuple[int, int, Op, Context, Op, Context] | None = None
        for i, (a, inner) in enumerate(seen_through(self.new, new, context)):
            if not self.is_open(a):
                if i and a.opcode not in INLINE:
                    break  # what is passed on is known
                continue
            for j, (b, outer) in enumerate(others):
                if (best is None or i + j < best[0]) and self.may(a, b):
                    best = i + j, i, a, inner, b, outer
        if best is None:
            self.missed.append((new, context, old, before))
            return
        _, i, a, inner, b, outer = best
        self._push(self._rank(a, b), a, inner, b, outer)
        if i:
            self.missed.append((new, context, old, before))

    def _push(self, rank: int, new: Op, context: Context, old: Op, before: Context) -> None:
        heapq.heappush(self._queue, (rank, next(self._count), new, context, old, before))

    def _rank(self, new: Op, old: Op) -> int:
        """Dissimilarity of two operations of one kind; lower is better."""
        rank = (new.plain != old.plain) + (new.attributes != old.attributes)
        rank += new.op_name.rpartition("/")[2] != old.op_name.rpartition("/")[2]
        return rank + (not self.is_gone(old))

    # ---- up, by operands

    def _was_read(self, operand: str) -> Op | None:
        """Old operation of an operand; for a fusion's parameter, of the value passed."""
        found = self.was(operand)
        op = self.new.ops.get(operand)
        if found is None and op is not None and op.opcode == "parameter":
            inner = behind(self.new, op, None)
            found = self.was(inner[0].name) if inner is not None else None
        return found

    def by_operands(self, new: Op) -> None:
        """Matches an operation by its operands, if all of them are known."""
        if not new.operands or not self.is_open(new) or self.mode == "partitioned":
            return
        known = self._known.setdefault(new.name, [])
        for operand in new.operands[len(known) :]:  # where the last look ended
            found = self._was_read(operand)
            if found is None:
                return
            known.append(found.name)
        was = tuple(known)
        readers = [
            user
            for user, slot in self.old.home[was[0]].users_of(was[0])[:MOST]
            if not slot
            and user.plain == new.plain
            and user.base == new.base
            and user.attributes == new.attributes
            and user.operands == was
            and (self.is_gone(user) or self.new.home[new.name].name != self.old.home[user.name].name)
            and self._call_the_same(new, user)
        ]
        gone = [user for user in readers if self.is_gone(user) and not self.claimed.get(user.name)]
        found_ops = gone or readers
        if len(found_ops) > 1:
            found_ops = [user for user in found_ops if user.op_name == new.op_name] or found_ops
        if not found_ops or not self.may(new, found_ops[0]):
            return
        self._push(1 if len(found_ops) == 1 and gone else _WEAK, new, None, found_ops[0], None)
