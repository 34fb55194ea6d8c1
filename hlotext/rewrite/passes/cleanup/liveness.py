"""Liveness of value parts, through tuples, loops and calls (XLA's `HloLivenessAnalysis`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits

Index = tuple[int, ...]
"""The place of a part in nested tuples."""


class Liveness:
    """The live subshapes of each instruction, determined from the entry's root and from side effects."""

    def __init__(self) -> None:
        self._live: dict[Instruction, set[Index]] = {}
        self._waiting: dict[Instruction, None] = {}
        self._queue: deque[Instruction] = deque()
        self._entered: set[Computation] = set()
        self._given: dict[Instruction, dict[Computation, Instruction]] = {}

    @classmethod
    def of(cls, module: Module) -> Liveness:
        """Analyzes a module."""
        found = cls()
        if len(module.computations) and len(module.entry):
            found._mark_all(module.entry.root)
        for i in module.instructions():
            if has_side_effect(i):
                found._mark_all(i)
        while found._queue:
            i = found._queue.popleft()
            del found._waiting[i]
            STEPS.get(i.opcode, Liveness._through_others)(found, i)
            found._through_control_flow(i)
        return found

    def is_live(self, i: Instruction, index: Index) -> bool:
        """Returns True if any use needs the subshape of a value at an index."""
        return index in self._live.get(i, ())

    # ---- marks

    def _mark(self, i: Instruction, indices: Iterable[Index]) -> None:
        live = self._live.setdefault(i, set())
        before = len(live)
        live.update(indices)
        if len(live) > before and i not in self._waiting:
            self._waiting[i] = None
            self._queue.append(i)

    def _mark_all(self, i: Instruction) -> None:
        if i.shape is not None:
            self._mark(i, (index for index, _ in i.shape.subshapes()))

    # ---- steps

    def _through_tuple(self, i: Instruction) -> None:
        parts: dict[int, list[Index]] = {}
        for index in self._live[i]:
            if index and index[0] < len(i.operands):
                parts.setdefault(index[0], [()]).append(index[1:])
        for n, indices in parts.items():
            self._mark(i.operands[n], indices)

    def _through_element(self, i: Instruction) -> None:
        place = i.attributes["index"]
        self._mark(i.operands[0], [(), *((place, *index) for index in self._live[i])])

    def _through_while(self, i: Instruction) -> None:
        body, condition = i.attributes.get("body"), i.attributes.get("condition")
        for target in (_root(body), *i.operands):
            if target is not None:
                self._mark(target, self._live[i])
        test = _root(condition)
        if test is not None:
            self._mark(test, [()])

    def _through_call(self, i: Instruction) -> None:
        for callee in i.called_computations:
            if len(callee):
                self._mark(callee.root, self._live[i])

    def _through_parameter(self, i: Instruction) -> None:
        for caller in _callers(i):
            if caller.opcode == "while":
                root = _root(caller.attributes.get("body"))
                for target in (caller, *((root,) if root is not None else ()), *caller.operands):
                    self._mark(target, self._live[i])
            elif caller.opcode == "call" and (i.parameter_number or 0) < len(caller.operands):
                self._mark(caller.operands[i.parameter_number or 0], self._live[i])

    def _through_others(self, i: Instruction) -> None:
        for callee in i.called_computations:
            if len(callee):
                self._mark_all(callee.root)
        for operand in i.operands:
            self._mark_all(operand)

    def _through_control_flow(self, i: Instruction) -> None:
        """Makes live what decides whether an instruction runs."""
        home = i.computation
        is_first = home is not None and home not in self._entered
        if home is None or not (is_first or i.opcode == "parameter"):
            return  # what decides is the same for all that a computation holds
        self._entered.add(home)
        for caller in _callers(i):
            if caller.opcode == "while":
                test = _root(caller.attributes.get("condition"))
                if test is not None:
                    self._mark(test, [()])
            elif caller.opcode == "conditional" and caller.operands:
                self._mark(caller.operands[0], [()])
                self._mark(caller, [()])
                operand = self._given_to(caller).get(home)
                if operand is not None:
                    self._mark(operand, [(), *(self._live[i] if i.opcode == "parameter" else ())])

    def _given_to(self, conditional: Instruction) -> dict[Computation, Instruction]:
        """The operand that each branch takes; of one that stands in several places the first."""
        if conditional not in self._given:
            pairs = list(zip(conditional.called_computations, conditional.operands[1:], strict=False))
            self._given[conditional] = dict(reversed(pairs))
        return self._given[conditional]


STEPS: dict[str, Callable[[Liveness, Instruction], None]] = {
    "tuple": Liveness._through_tuple,
    "get-tuple-element": Liveness._through_element,
    "while": Liveness._through_while,
    "call": Liveness._through_call,
    "parameter": Liveness._through_parameter,
}


def _root(computation: object) -> Instruction | None:
    return computation.root if isinstance(computation, Computation) and len(computation) else None


def _callers(i: Instruction) -> tuple[Instruction, ...]:
    """Control-flow callers of an instruction's computation."""
    home = i.computation
    if home is None:
        return ()
    return tuple(c for c in home.callers if c.opcode in traits.CONTROL_FLOW)
