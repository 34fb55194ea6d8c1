"""Pairs the operations of any two modules.

What is equal is not looked into: computations that hold the same on both sides are settled. In the rest, operations are
paired that stand in one place of modules of one form (`hlotext.diff.alignment`). In other modules those are paired that
compute the same from the same inputs; from these pairs on, inputs, readers and callees are followed as long as they say the
same; and what then is left is weighed (`hlotext.diff.node_matching`).
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping

import hlotext as hlo
from hlotext.diff.alignment import Pairs, differing
from hlotext.diff.moved_products import moved_products
from hlotext.diff.node_matching import Matching
from hlotext.diff.value_graph import Graph, base_opcode
from hlotext.diff.value_numbering import ValueNumbering
from hlotext.ir.tables.opcodes import CALLS_NOTHING

MOST_WEIGHED = 20_000
"""Operations that are weighed one by one; where more are left over, two texts have little to do with each other."""


class Pairing:
    """Pairing of the operations of two modules."""

    def __init__(
        self, old: hlo.Module, new: hlo.Module, earlier_names: Mapping[str, str] | None = None
    ) -> None:
        """`earlier_names` are the names that operations of `new` had in `old`, where that is known."""
        self._earlier_names = earlier_names
        self.structure = ValueNumbering()
        self.old_classes = self.structure.classes(old)
        self.new_classes = self.structure.classes(new, old)
        entries = self.old_classes.get(old.entry), self.new_classes.get(new.entry)
        self.is_same = entries[0] == entries[1] and Counter(self.old_classes.values()) == Counter(
            self.new_classes.values()
        )
        """True if both are equal up to names."""
        settled = self._settled()
        self.old = _graph(old, self.old_classes, settled)
        self.new = _graph(new, self.new_classes, settled)
        self.partner: dict[hlo.Instruction, hlo.Instruction] = {}
        """The operation of the old module that one of the new module is. Only those that are not settled are there."""
        self.back: dict[hlo.Instruction, hlo.Instruction] = {}
        """The same, the other way round."""
        self.renumbered: set[hlo.Instruction] = set()
        """Arguments of the new module that others before them have shifted."""
        self.computations: dict[hlo.Computation, hlo.Computation] = {}
        self._pending: deque[tuple[hlo.Instruction, hlo.Instruction]] = deque()
        self.differing: Pairs | None = None
        """The lines that differ, if both have one form; None else."""
        if earlier_names is None:
            self.differing = differing(self.structure, self.old_classes, self.new_classes, settled)
        self.structure.said.clear()
        if self.differing is not None:
            self.partner = dict(zip(self.new.nodes, self.old.nodes, strict=True))
            self.back = dict(zip(self.old.nodes, self.new.nodes, strict=True))
        elif not self.is_same:
            self._run()

    def _settled(self) -> set[int]:
        """The classes of computations of which both modules have as many."""
        counts = Counter(self.old_classes.values()), Counter(self.new_classes.values())
        return {number for number, count in counts[0].items() if counts[1][number] == count}

    # ---- finding pairs

    def _run(self) -> None:
        self._old_real, self._new_real = self.old.real, self.new.real
        self._trusted()
        self._arguments()
        self._same_values()
        local = self.structure.local
        self._computation(self.new.module.entry, self.old.module.entry, local)
        self._follow(local)
        self._same_values(in_order=True)
        self._follow(local)
        if self._is_done():
            return
        loose = self.structure.loose
        self._computation(self.new.module.entry, self.old.module.entry, loose)
        self._pending.extend(self.partner.items())
        self._follow(loose)
        left = [node for node in self._new_real if node not in self.partner]
        gone = [node for node in self._old_real if node not in self.back]
        for node, other in list(moved_products(left, gone, self.new, self.old, self.partner)):
            self.partner[node] = other
            self.back[other] = node
        left = [node for node in left if node not in self.partner]
        if left and gone and max(len(left), len(gone)) <= MOST_WEIGHED:
            self._weigh(left)

    def _trusted(self) -> None:
        """Pairs what is known to be the same, those that kept their names first."""
        if self._earlier_names is None:
            return
        names = {node.name: node for node in self._old_real}
        nodes = sorted(
            (node for node in self._new_real if node.name in self._earlier_names),
            key=lambda node: self._earlier_names[node.name] != node.name,  # type: ignore[index]
        )
        for node in nodes:
            old = names.get(self._earlier_names[node.name])
            if old is not None and old not in self.back and base_opcode(old) == base_opcode(node):
                self._pair(node, old)

    def _arguments(self) -> None:
        """Pairs arguments by name where one was added or removed, which shifts the numbers of those behind it."""
        sides = [_by_name(graph) for graph in (self.old, self.new)]
        if len(sides[0]) == len(sides[1]):
            return
        for name, node in sides[1].items():
            old = sides[0].get(name)
            if old is None or old in self.back or node in self.partner:
                continue
            if old.parameter_number != node.parameter_number:
                self.renumbered.add(node)
            self._pair(node, old)

    def _is_done(self) -> bool:
        """True if one side has nothing left to pair."""
        return len(self.partner) in (len(self._old_real), len(self._new_real))

    def _pair(self, new: hlo.Instruction, old: hlo.Instruction) -> None:
        self.partner[new] = old
        self.back[old] = new
        self._pending.append((new, old))

    def _same_values(self, *, in_order: bool = False) -> None:
        """Operations that compute the same from the same inputs: those that are alone with it, or all in order."""
        old, new = self._numbers
        by_value: dict[int, list[hlo.Instruction]] = defaultdict(list)
        for node in self._old_real:
            if node not in self.back:
                by_value[old[node]].append(node)
        mine: dict[int, list[hlo.Instruction]] = defaultdict(list)
        for node in self._new_real:
            if node not in self.partner:
                mine[new[node]].append(node)
        for number, nodes in mine.items():
            theirs = by_value.get(number, [])
            if len(nodes) == len(theirs) and (in_order or len(nodes) == 1):
                for node, other in zip(nodes, theirs, strict=True):
                    self._pair(node, other)

    @functools.cached_property
    def _numbers(self) -> tuple[dict[hlo.Instruction, int], dict[hlo.Instruction, int]]:
        """Numbers for what operations compute, in the old module and in the new one: the same for the same."""
        numbers: dict[Hashable, int] = {}
        return self._values(self.old, numbers), self._values(self.new, numbers)

    def _values(self, graph: Graph, numbers: dict[Hashable, int]) -> dict[hlo.Instruction, int]:
        """A number for what each operation computes, from its inputs on."""
        found: dict[hlo.Instruction, int] = {}
        classes = self.old_classes if graph is self.old else self.new_classes
        for node in graph.real:
            if node in found:
                continue
            stack = [node]
            while stack:
                current = stack[-1]
                if current in found:
                    stack.pop()
                    continue
                operands = graph.inputs(current)
                waiting = [o for o in operands if o not in found and o is not current]
                if waiting and len(stack) < len(graph.nodes) + 1:
                    stack.extend(waiting)
                    continue
                callees = tuple(
                    [classes.get(callee, -1) for callee in current.called_computations]
                    if current.opcode not in CALLS_NOTHING
                    else ()
                )
                inputs = tuple([found.get(o, -1) for o in operands])
                key = (self.structure.local(current), callees, inputs)
                found[current] = numbers.setdefault(key, len(numbers))
                stack.pop()
        return found

    def _computation(
        self, new: hlo.Computation, old: hlo.Computation, say: Callable[[hlo.Instruction], int]
    ) -> None:
        """Pairs two computations: their parameters by number, and their roots."""
        self.computations.setdefault(new, old)
        for mine, theirs in zip(new.parameters, old.parameters, strict=False):
            self._try(mine, theirs, say)
        if len(new) and len(old):
            self._try(new.root, old.root, say)

    def _try(
        self, mine: hlo.Instruction, theirs: hlo.Instruction, say: Callable[[hlo.Instruction], int]
    ) -> None:
        mine, theirs = self.new.source(mine), self.old.source(theirs)
        if mine in self.partner or theirs in self.back:
            return
        if mine in self.new.place and theirs in self.old.place and say(mine) == say(theirs):
            self._pair(mine, theirs)

    def _follow(self, say: Callable[[hlo.Instruction], int]) -> None:
        """Follows inputs, readers and callees of pairs, as long as they say the same."""
        while self._pending:
            new, old = self._pending.popleft()
            mine, theirs = self.new.inputs(new), self.old.inputs(old)
            if len(mine) == len(theirs):
                for a, b in zip(mine, theirs, strict=True):
                    self._try(a, b, say)
            if new.opcode in CALLS_NOTHING:
                self._readers(new, old, say)
                continue
            for a_called, b_called in zip(new.called_computations, old.called_computations, strict=False):
                if self.new_classes.get(a_called) != self.old_classes.get(b_called):
                    self._computation(a_called, b_called, say)
            self._readers(new, old, say)

    def _readers(
        self, new: hlo.Instruction, old: hlo.Instruction, say: Callable[[hlo.Instruction], int]
    ) -> None:
        """Pairs readers that are the only ones that say what they say."""
        mine = [(user, slot) for user, slot in self.new.users.get(new, ()) if user not in self.partner]
        if not mine:
            return
        theirs = [(user, slot) for user, slot in self.old.users.get(old, ()) if user not in self.back]
        if not theirs or len(mine) > 1000 or len(theirs) > 1000:
            return
        if len(mine) == len(theirs) == 1:
            if mine[0][1] == theirs[0][1]:
                self._try(mine[0][0], theirs[0][0], say)
            return
        by_key: dict[tuple[int, int], list[hlo.Instruction]] = defaultdict(list)
        for user, slot in theirs:
            by_key[say(user), slot].append(user)
        wanted: dict[tuple[int, int], list[hlo.Instruction]] = defaultdict(list)
        for user, slot in mine:
            wanted[say(user), slot].append(user)
        for key, users in wanted.items():
            others = by_key.get(key, ())
            if len(users) == 1 and len(others) == 1:
                self._try(users[0], others[0], say)

    def _weigh(self, left: list[hlo.Instruction]) -> None:
        """Weighs what is left over."""
        matching = Matching(self.old, self.new, dict(self.partner))
        for node in left:
            other = matching.partner(node)
            if other is not None and other not in self.back:
                self.partner[node] = other
                self.back[other] = node


def _by_name(graph: Graph) -> dict[str, hlo.Instruction]:
    """The entry's parameters by JAX's names of them; empty unless all have one of their own."""
    parameters = [node for node in graph.module.entry.parameters if node in graph.place]
    found = {
        node.metadata.op_name: node
        for node in parameters
        if node.metadata is not None and node.metadata.op_name
    }
    return found if len(found) == len(parameters) else {}


def _graph(module: hlo.Module, classes: dict[hlo.Computation, int], settled: set[int]) -> Graph:
    """The part of a module that is not settled; settled computations are not looked into."""
    opaque = {computation for computation, number in classes.items() if number in settled}
    return Graph(module, opaque)
