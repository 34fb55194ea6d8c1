"""Rows of values that share memory, in the order in which they are written, while copies are taken out of them.

After `ValueNode` and `CopyRemover` (`xla/service/copy_removal.cc`). XLA compares each value of one row with each of another.
Most of that follows from a few comparisons, since paths between instructions are transitive, as is a schedule: where in both
rows all reads of each value come before the next one is written, and all reads of the last of the first row before the first
of the second, all of the first row is over before any of the second begins. So each row knows those of its values that are
perhaps still read when the next one is written (they are loose) and have to be compared themselves; what is seen of values
are the instructions that run them in one computation, the row's level.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hlotext.compiler.ordering import Ordering
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.values import Use, Value

_MANY = 8
"""Uses of a value from which on it is remembered how many are over."""


class ValueList:
    """Facts about the values that share a buffer, one after another, or about several such lists merged."""

    __slots__ = ("homes", "joined", "level", "loose", "roots", "unordered")

    def __init__(self) -> None:
        self.joined: ValueList | None = None
        """The row that it became a part of."""
        self.level: Computation | None = None
        """The innermost computation in which all is written and read, there or in what it runs; None if none is known."""
        self.loose: dict[Node, None] = {}
        """Values that are perhaps read after the next one is written."""
        self.unordered: set[Node] = set()
        """Values of which it is not even certain that they are written before the next one."""
        self.roots: set[Computation] = set()
        """Computations that give a value of the row back."""
        self.homes: set[Computation] = set()
        """Computations that write a value of the row."""

    @property
    def size(self) -> int:
        """Number of recorded facts; the smaller list is merged into the larger."""
        return sum(map(len, (self.homes, self.roots, self.loose, self.unordered)))


class Node:
    """A value in its list. Lists are circular."""

    __slots__ = ("_readers", "next", "over", "prev", "row", "uses", "value", "writer")

    def __init__(self, value: Value, row: ValueList) -> None:
        self.value = value
        assert value.instruction is not None
        self.writer: Instruction = value.instruction
        """Definition of the value."""
        self.uses: list[Use] = list(value.uses)
        self._readers: list[Instruction] | bool | None = False
        """The readers as they were found; False where they are to be found anew."""
        self.next = self.prev = self
        self.row = row
        self.over: tuple[Instruction, int] | None = None
        """Number of uses, from the first, that end before an instruction begins."""

    @property
    def readers(self) -> list[Instruction] | None:
        """Users of the value, or its definition if it has none; None if not all users are known."""
        if isinstance(self._readers, bool):
            found = [use.instruction for use in self.uses if use.instruction is not None]
            self._readers = None if len(found) < len(self.uses) else found or [self.writer]
        return self._readers

    def add_use(self, use: Use) -> None:
        """Appends a use."""
        self.uses.append(use)
        self._readers = False

    def forget_use(self, reader: Instruction) -> None:
        """Removes the first use by an instruction."""
        for number, use in enumerate(self.uses):
            if use.instruction is reader:
                del self.uses[number]
                self._readers = False
                if self.over is not None and number < self.over[1]:
                    self.over = self.over[0], self.over[1] - 1
                return


class Rows:
    """All value lists of a module."""

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._heads: set[Node] = set()
        self._nodes: dict[Value, Node] = {}
        self._with_new_root: set[Computation] = set()
        """Where another instruction became the root: in a schedule it now runs before none, whatever was found of it."""

    def __getitem__(self, value: Value) -> Node:
        return self._nodes[value]

    def add(self, values: Iterable[Value]) -> None:
        """Creates a list of values that are in order."""
        row = ValueList()
        nodes = [Node(value, row) for value in values]
        for node, after in zip(nodes, (*nodes[1:], nodes[0]), strict=True):
            node.next, after.prev = after, node
            self._nodes[node.value] = node
            self._note(node, row)
        self._heads.add(nodes[0])
        row.level = self._level_of(nodes)
        if row.level is not None and not all(self._is_read_behind(node, row.level) for node in nodes):
            row.level = None
        for node in nodes[:-1]:  # behind the last nothing is written
            self.look_again(node)

    @staticmethod
    def _note(node: Node, row: ValueList) -> None:
        home = node.writer._computation
        if home is not None:
            row.homes.add(home)
        for place in (node.writer, *node.value.flat_positions()[::2]):
            if (
                isinstance(place, Instruction)
                and (home := place._computation) is not None
                and home.root is place
            ):
                row.roots.add(home)

    def has_root(self, computation: Computation, values: Iterable[Value | None]) -> None:
        """Records that a computation now returns these values."""
        self._with_new_root.add(computation)
        for value in values:
            node = self._nodes.get(value) if value is not None else None
            if node is not None:
                self.row(node).roots.add(computation)

    # ---- neighbours

    def is_head(self, node: Node) -> bool:
        """Returns True if a value is the first of its list."""
        return node in self._heads

    def next(self, node: Node) -> Node | None:
        """Returns the value that is written next to the same memory, or None."""
        return None if node.next in self._heads else node.next

    def prev(self, node: Node) -> Node | None:
        """Returns the value that was previously in the same memory, or None."""
        return None if node in self._heads else node.prev

    def row(self, node: Node) -> ValueList:
        """Returns the list that contains a value."""
        row = node.row
        while row.joined is not None:
            if row.joined.joined is not None:
                row.joined = row.joined.joined  # a shorter way from the next time on
            row = row.joined
        node.row = row
        return row

    # ---- edits

    def splice(self, head: Node, behind: Node) -> None:
        """Inserts a whole list after a value of another list."""
        self._heads.remove(head)
        tail = head.prev
        row, other = self.row(behind), self.row(head)
        tail.next, behind.next.prev = behind.next, tail
        behind.next, head.prev = head, behind
        self._join(row, other)
        self.look_again(behind)
        self.look_again(tail)

    def _join(self, row: ValueList, other: ValueList) -> None:
        if row is other:
            return
        if row.size < other.size:
            row, other = other, row
        other.joined = row
        row.level = self._common(row.level, other.level)
        row.loose |= other.loose
        row.unordered |= other.unordered
        row.homes |= other.homes
        row.roots |= other.roots

    def remove(self, node: Node) -> None:
        """Removes a value that is not the first from its list."""
        row = self.row(node)
        row.loose.pop(node, None)
        row.unordered.discard(node)
        before = node.prev
        before.next, node.next.prev = node.next, before

    def look_again(self, node: Node) -> None:
        """Recomputes whether a value ends before the next one is written."""
        row, after = self.row(node), self.next(node)
        row.loose.pop(node, None)
        row.unordered.discard(node)
        if after is None or row.level is None or self._is_over(node, after, row.level, may_be_one=True):
            return
        row.loose[node] = None
        if not self._is_written_before(node, after, row.level):
            row.unordered.add(node)

    # ---- in time

    def level(self, last: Node, first: Node) -> Computation | None:
        """Returns the computation in which two lists can be compared, or None if all values must be compared."""
        row, other = self.row(last), self.row(first)
        if row is other or not self._ordering.has_its_paths:
            return None
        return self._known(self._common(row.level, other.level))

    def _known(self, level: Computation | None) -> Computation | None:
        """A computation, if what was found about its order still holds."""
        return None if self._ordering.is_sequential and level in self._with_new_root else level

    def is_over(self, node: Node, after: Node, level: Computation) -> bool:
        """Returns True if a value, and those before it back to the next unordered one, end before another one begins."""
        return after.writer.computation not in self.row(node).roots and self._is_over(node, after, level)

    def are_loose_over(self, last: Node, after: Node, level: Computation) -> bool:
        """Returns True if all unordered values of a list end before a value of another list begins."""
        return all(self._is_over(node, after, level) for node in self.row(last).loose)

    def is_over_for_all(self, last: Node, first: Node) -> bool:
        """Returns True if values that end before the first value of a list also end before all later ones."""
        other = self.row(first)
        return (
            other.level is not None and not other.unordered and other.homes.isdisjoint(self.row(last).roots)
        )

    def uses_over(self, node: Node, after: Node) -> int:
        """Returns the number of a value's uses, from the first, known to precede another value's definition.

        Resumes from the previous result, since the copies of a value are mostly queried in text order.
        """
        ordering, writer = self._ordering, after.writer
        if len(node.uses) < _MANY or not ordering.has_its_paths or writer.opcode.startswith("async-"):
            return 0
        known, home = node.over, node.writer.computation
        level = known[0].computation if known is not None else self._common(home, writer.computation)
        level = self._known(level)
        target = ordering.within(writer, level) if level is not None else None
        if target is None or level is None or target.opcode == "parameter":
            return 0
        count = 0
        if known is not None and (known[0] is target or ordering.runs_before(known[0], target)):
            count = known[1]
        for use in itertools.islice(node.uses, count, None):
            place = ordering.within(use.instruction, level) if use.instruction is not None else None
            if place is None or place is target or not ordering.runs_before(place, target):
                break
            count += 1
        node.over = target, count
        return count

    def _is_over(self, node: Node, after: Node, level: Computation, *, may_be_one: bool = False) -> bool:
        """True if paths lead from all that reads a value to what writes another, or, if allowed, they are run by one."""
        ordering, writer = self._ordering, after.writer
        opcode = writer._head.opcode
        if opcode.startswith("async-") or (opcode == "parameter" and writer._computation is level):
            return False  # of these other rules tell than paths
        target, readers = ordering.within(writer, level), node.readers
        if target is None or readers is None:
            return False
        return ordering.all_run_before(readers, target, level, may_be_one=may_be_one)

    def _is_written_before(self, node: Node, after: Node, level: Computation) -> bool:
        """True if a value is certain to be written before another one, or one instruction runs what writes both."""
        ordering = self._ordering
        first, second = ordering.within(node.writer, level), ordering.within(after.writer, level)
        if (
            first is None
            or second is None
            or second.opcode == "parameter"
            or after.writer.opcode.startswith("async-")
        ):
            return False
        return first is second or ordering.runs_before(first, second)

    def _is_read_behind(self, node: Node, level: Computation) -> bool:
        """True if what reads a value stands behind what writes it, as it should."""
        ordering, readers = self._ordering, node.readers
        writer = ordering.within(node.writer, level)
        for reader in readers or ():
            place = ordering.within(reader, level)
            if writer is None or place is None:
                return False
            if place is not writer and not ordering.runs_before(writer, place):
                return False
        return readers is not None

    def _level_of(self, nodes: list[Node]) -> Computation | None:
        level = nodes[0].writer._computation
        for node in nodes:
            for i in (node.writer, *(node.readers or ())):
                if i._computation is not level:
                    level = self._common(level, i._computation)
        return level

    def _common(self, a: Computation | None, b: Computation | None) -> Computation | None:
        """The innermost computation that runs two."""
        if a is None or b is None or a is b:
            return a if a is b else None
        first, second = self._ordering.chain(a), self._ordering.chain(b)
        for step in range(1, min(len(first), len(second)) + 1):
            if first[-step] is not second[-step]:
                return first[1 - step] if step > 1 else None
        return first[-min(len(first), len(second))]


__all__ = ["Node", "Rows", "ValueList"]
