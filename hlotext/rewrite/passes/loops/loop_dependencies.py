"""Dependences of the elements of a loop's state."""

from __future__ import annotations

from collections import defaultdict

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.loops.loop_rebuilding import parameter_of


class Needs:
    """Loop state elements that each value depends on, and elements that depend on each other."""

    def __init__(self, editor: Editor, body: Computation, condition: Computation) -> None:
        self.needs: dict[Instruction, frozenset[int]] = {}
        self.effects: set[int] = set()
        self._parents: dict[Instruction, Instruction] = {}
        self._inputs: list[Instruction] = []
        interned: dict[frozenset[int], frozenset[int]] = {}
        for computation in (body, condition):
            given = parameter_of(computation)
            for i in computation.instructions:
                if i is given or (computation is body and i is body.root):
                    continue
                self._parents.setdefault(i, i)
                if i.opcode == "get-tuple-element" and i.operands[0] is given:
                    index = i.attributes["index"]
                    found = frozenset((index,))
                    self._inputs.append(i)
                    end = body.root.operands[index]
                    self._join(end, i)
                else:
                    sets = {self.needs.get(o, frozenset()) for o in i.operands}
                    found = next(iter(sets)) if len(sets) == 1 else frozenset().union(*sets)
                    for o in i.operands:
                        self._join(o, i)
                found = interned.setdefault(found, found)
                self.needs[i] = found
                if editor.has_effect(i) or (computation is condition and i is condition.root):
                    self.effects |= found
        for end in body.root.operands:
            self.needs.setdefault(end, frozenset())

    def _join(self, a: Instruction, b: Instruction) -> None:
        a, b = self._leader(a), self._leader(b)
        if a is not b:
            self._parents[b] = a

    def _leader(self, i: Instruction) -> Instruction:
        path = []
        while self._parents.setdefault(i, i) is not i:
            path.append(i)
            i = self._parents[i]
        for step in path:
            self._parents[step] = i
        return i

    def groups(self, ends: tuple[Instruction, ...]) -> list[set[int]]:
        """Returns the sets of elements that depend on each other, in the body or through its results."""
        found: dict[Instruction, set[int]] = defaultdict(set)
        for n, end in enumerate(ends):
            found[self._leader(end)].add(n)
        for i in self._inputs:
            found[self._leader(i)].add(i.attributes["index"])
        return list(found.values())
