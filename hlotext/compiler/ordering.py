"""Execution order of instructions across computations: by dependences, or by the schedule if there is one.

After `HloOrdering`, `DependencyHloOrdering` and `SequentialHloOrdering` (`xla/hlo/analysis/hlo_ordering.cc`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from enum import Enum

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.age import XlaAge
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.sharing import Sharing
from hlotext.memory.values import Use, Value

MOST_INSTRUCTIONS = 40_000
"""Instructions of a computation between which paths are looked for: a table of bits, 200 MB at that size."""
_ASYNC = traits.GENERIC_ASYNC


class Relation(Enum):
    """Execution order of one instruction relative to another (`ExecutionConstraint`)."""

    SAME = "same"
    BEFORE = "before start"
    BEFORE_END = "before end"
    AFTER = "after"
    EXCLUSIVE_BEFORE = "in an earlier branch"
    EXCLUSIVE_AFTER = "in a later branch"
    UNORDERED = "unordered"


class Ordering:
    """The execution order of a module's instructions at the time of construction."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.is_sequential = module.is_scheduled
        self.has_its_paths = True
        """True if the order is the module's own, by paths or by its schedule; it is then transitive."""
        self._caller: dict[Computation, Instruction | None] = {}
        self._above: dict[Computation, tuple[Computation, ...]] = {}
        self._reach: dict[Computation, tuple[dict[Instruction, int], list[int]]] = {}
        callers: dict[Computation, list[Instruction]] = {c: [] for c in module.computations}
        for computation in module.computations:
            for instruction in computation._instructions:
                if instruction._head.opcode not in CALLS_NOTHING:
                    for callee in instruction.called_computations:
                        if callee in callers:
                            callers[callee].append(instruction)
        for computation, found in callers.items():
            is_async = any(caller.opcode in _ASYNC for caller in found)
            if is_async:
                found = [caller for caller in found if caller.opcode == "async-start"] or found
            self._caller[computation] = found[0] if len(found) == 1 or (found and is_async) else None

    # ---- computations in each other

    def chain(self, computation: Computation) -> tuple[Computation, ...]:
        """Returns a computation and those that contain its calls, innermost first."""
        known = self._above.get(computation)
        if known is None:
            found = [computation]
            seen = {computation}
            caller = self._caller.get(computation)
            while caller is not None and caller.computation is not None and caller.computation not in seen:
                found.append(caller.computation)
                seen.add(caller.computation)
                caller = self._caller.get(caller.computation)
            known = self._above[computation] = tuple(found)
        return known

    def is_nested(self, i: Instruction, computation: Computation) -> bool:
        """Returns True if an instruction executes inside a computation (`InstructionIsNestedIn`)."""
        return i.computation is not None and computation in self.chain(i.computation)

    def ancestors(self, a: Instruction, b: Instruction) -> tuple[Instruction, Instruction] | None:
        """Returns the ancestors of both instructions in one computation, or None (`NearestAncestorsInSameComputation`)."""
        if a.computation is b.computation:
            return a, b
        assert a.computation is not None
        assert b.computation is not None
        others = {computation: depth for depth, computation in enumerate(self.chain(b.computation))}
        for depth, computation in enumerate(self.chain(a.computation)):
            if computation in others:
                return self._climb(a, depth), self._climb(b, others[computation])
        return None

    def within(self, i: Instruction, computation: Computation) -> Instruction | None:
        """Returns the instruction of a computation that is, or calls, the given one; None if none does."""
        home = i._computation
        if home is computation:
            return i
        assert home is not None
        inner = self.chain(home)
        steps = len(inner) - len(self.chain(computation))
        return self._climb(i, steps) if steps >= 0 and inner[steps] is computation else None

    def _climb(self, i: Instruction, steps: int) -> Instruction:
        for _ in range(steps):
            assert i.computation is not None
            caller = self._caller[i.computation]
            assert caller is not None
            i = caller
        return i

    # ---- in one computation

    def runs_before(self, a: Instruction, b: Instruction) -> bool:
        """Returns True if `a` executes before `b` of the same computation (`ExecutesBeforeInSameComputation`)."""
        home = a._computation
        if a is b or home is None:
            return False
        if self.is_sequential:
            places = home.order.positions
            return a is not home.root and places[a] < places[b]
        place, reach = self._paths(home)
        if a not in place or b not in place:
            return False
        return bool(reach[place[b]] >> place[a] & 1)

    def all_run_before(
        self,
        some: Iterable[Instruction],
        target: Instruction,
        level: Computation,
        *,
        may_be_one: bool = False,
    ) -> bool:
        """Returns True if the ancestors, in `level`, of all these instructions execute before that of `target`.

        With `may_be_one`, an ancestor may also be that of `target`.
        """
        order, root = level.order.positions if self.is_sequential else None, level.root
        limit = order[target] if order is not None else 0
        for i in some:
            source = i if i._computation is level else self.within(i, level)
            if source is target:
                if not may_be_one:
                    return False
            elif source is None or not (
                self.runs_before(source, target)
                if order is None
                else source is not root and order[source] < limit
            ):
                return False
        return True

    def _paths(self, computation: Computation) -> tuple[dict[Instruction, int], list[int]]:
        """The place of each instruction, and as bits the places from which a path leads to each."""
        known = self._reach.get(computation)
        if known is None:
            if len(computation) > MOST_INSTRUCTIONS:
                raise ValueError(
                    f"{computation.name} has {len(computation):,} instructions: too many to compute all paths between them"
                )
            place = {i: number for number, i in enumerate(computation)}
            reach: list[int] = []
            for number, i in enumerate(computation):
                bits = 1 << number
                for before in (*i.operands, *i.control_predecessors):
                    if before in place and place[before] < number:
                        bits |= reach[place[before]]
                reach.append(bits)
            known = self._reach[computation] = place, reach
        return known

    def add_path(self, before: Instruction, after: Instruction) -> None:
        """Updates the order for a new control dependency."""
        self.has_its_paths = False
        assert after.computation is not None
        place, reach = self._paths(after.computation)
        bits = reach[place[before]]
        pending = [after]
        while pending:
            i = pending.pop()
            if i in place and reach[place[i]] | bits != reach[place[i]]:
                reach[place[i]] |= bits
                pending += (*i.users, *i.control_successors)

    def prepare(self, computation: Computation) -> None:
        """Computes the paths of a computation now; later edits are ignored."""
        if not self.is_sequential:
            self._paths(computation)

    # ---- anywhere

    def relation(self, a: Instruction, b: Instruction) -> Relation:
        """Returns when `a` executes relative to `b` (`GetExecutionConstraint`)."""
        if a is b or _wraps(a, b) or _wraps(b, a):
            return Relation.SAME
        found = self.ancestors(a, b)
        if found is None:
            return Relation.UNORDERED
        above_a, above_b = found
        if above_a is above_b and above_a.opcode == "while":
            loop = above_a.attributes
            if self.is_nested(a, loop["condition"]) and self.is_nested(b, loop["body"]):
                return Relation.BEFORE_END
        if above_a is above_b and above_a.opcode == "conditional":
            branches = above_a.called_computations
            in_a = next((n for n, branch in enumerate(branches) if self.is_nested(a, branch)), -1)
            in_b = next((n for n, branch in enumerate(branches) if self.is_nested(b, branch)), -1)
            if in_b == -1:
                return Relation.BEFORE_END
            if in_a == -1:
                return Relation.AFTER
            if in_a != in_b:
                return Relation.EXCLUSIVE_BEFORE if in_a < in_b else Relation.EXCLUSIVE_AFTER
        if self.runs_before(above_a, above_b):
            return Relation.BEFORE
        if self.runs_before(above_b, above_a):
            return Relation.AFTER
        return Relation.UNORDERED

    def runs_before_anywhere(self, a: Instruction, b: Instruction) -> bool:
        """Returns True if `a` is known to execute before `b` ends, or calls it."""
        return self.relation(a, b) in (Relation.BEFORE, Relation.BEFORE_END, Relation.SAME)

    def executes_before(self, a: Instruction, b: Instruction) -> bool:
        """Returns True if `a` is known to execute before `b` (`ExecutesBefore`)."""
        return self.relation(a, b) in (Relation.BEFORE, Relation.BEFORE_END, Relation.EXCLUSIVE_BEFORE)

    def is_defined_before(self, a: Value, b: Value) -> bool:
        """Returns True if a value is defined before another one (`IsDefinedBefore`), considering where phis start."""
        first, second = _writer(a), _writer(b)
        entry = self.module.entry
        if second.opcode == "parameter" and second.computation is entry:
            return False
        if first.opcode == "parameter" and first.computation is entry:
            return True
        a_is_state = a.is_phi and first.opcode == "parameter"
        b_is_state = b.is_phi and second.opcode == "parameter"
        if (
            a_is_state
            and not b_is_state
            and first.computation is not None
            and self.is_nested(second, first.computation)
        ):
            return True
        if b_is_state and second.computation is not None and self.is_nested(first, second.computation):
            return False
        if (
            b.is_phi
            and second.opcode in ("while", "conditional")
            and any(self.is_nested(first, callee) for callee in second.called_computations)
        ):
            return True
        return self.executes_before(first, second)


def _wraps(a: Instruction, b: Instruction) -> bool:
    return a.opcode in _ASYNC and a.async_wrapped_instruction is b


def _writer(value: Value) -> Instruction:
    assert value.instruction is not None
    return value.instruction


class UsesBefore:
    """Decides if all uses of a value precede another value's definition (`UsesBeforeValueDefinition`)."""

    def __init__(self, ordering: Ordering, flow: Dataflow, sharing: Sharing, age: XlaAge) -> None:
        self.ordering, self.flow, self.sharing = ordering, flow, sharing
        self._is_even_handed = age.has(xla_changes.COPIES_OF_ALL_BRANCHES)
        """True if it makes no difference which branch forwards its argument."""

    def late_use(self, uses: list[Use], value: Value, known: int = 0) -> Use | None:
        """Returns the first use that does not precede the value's definition, or None; the first `known` uses are not
        checked.
        """
        self._in_other_branch = False
        self._escapes = False
        for use in itertools.islice(uses, known, None):
            if not self._is_before(use, value):
                return use
        return None

    def _is_before(self, use: Use, value: Value) -> bool:
        ordering, writer, reader = self.ordering, _writer(value), use.instruction
        assert reader is not None
        match ordering.relation(reader, writer):
            case Relation.SAME:
                if self._shares(use, value):
                    return True
            case Relation.EXCLUSIVE_AFTER:
                if not self._escapes:
                    self._in_other_branch = True
                    return True
            case Relation.EXCLUSIVE_BEFORE | Relation.BEFORE | Relation.BEFORE_END:
                return True
        if reader.opcode == "while":
            if ordering.is_nested(writer, reader.attributes["body"]):
                return True
            condition: Computation = reader.attributes["condition"]
            if ordering.is_nested(writer, condition):
                return writer is condition.parameters[0]
        if writer.opcode == "while" and any(
            ordering.is_nested(reader, c) for c in writer.called_computations
        ):
            return True
        if reader.opcode in ("call", *_ASYNC) and any(
            ordering.is_nested(writer, c) for c in reader.called_computations
        ):
            return True
        return reader.opcode == "conditional" and self._is_before_branches(use, reader, value)

    def _shares(self, use: Use, value: Value) -> bool:
        """True if the instruction that writes the value may do so over what it reads."""
        reader, writer = use.instruction, _writer(value)
        assert reader is not None
        operand, index = reader.operands[use.operand_number], use.operand_index
        body = (
            reader.called_computations[0] if reader.opcode in _ASYNC and reader.called_computations else None
        )
        if body is not None and writer.computation is body:
            if reader.opcode == "async-start":
                operand = body.parameters[use.operand_number]
            elif len(index) > 1:
                operand, index = body.parameters[index[1]], index[2:]
        return self.sharing.may_share(operand, index, writer, value.index)

    def _is_before_branches(self, use: Use, conditional: Instruction, value: Value) -> bool:
        """A value that a conditional takes is read before its branches write, unless a loop around could bring it back."""
        writer = _writer(value)
        if writer is conditional:
            return True
        for branch in conditional.called_computations:
            if not self.ordering.is_nested(writer, branch):
                continue
            operand = conditional.operands[use.operand_number]
            given = self.flow.at[operand][0] if operand in self.flow.at else None
            is_new = given is not None and given.instruction is operand and not given.index
            if not is_new and any(u.instruction is not None and u.instruction.is_root for u in value.uses):
                self._escapes = True
            if not (self._escapes if self._is_even_handed else self._in_other_branch):
                return True
        return False


def instruction_ids(module: Module) -> dict[Instruction, int]:
    """Numbers the instructions: parameters first, callees before callers (`assign_ids_dfs`).

    Fusion bodies without calls are not numbered, since their order does not matter.
    """
    found: dict[Instruction, int] = {}
    seen: set[Computation] = set()
    stack: list[_Visit] = []
    for start in (module.entry, *module.computations):
        if start not in seen:
            seen.add(start)
            stack.append(_Visit(start, found))
        while stack:
            visit = stack[-1]
            callee = next((c for c in visit.callees if c not in seen), None)
            if callee is not None:
                seen.add(callee)
                if visit.is_at_fusion and all(i._head.opcode in CALLS_NOTHING for i in callee._instructions):
                    continue
                stack.append(_Visit(callee, found))
                continue
            if visit.current is not None:
                found[visit.current] = len(found)
            if not visit.advance():
                stack.pop()
    return found


class _Visit:
    """A computation that is being numbered."""

    def __init__(self, computation: Computation, found: dict[Instruction, int]) -> None:
        self._found = found
        for parameter in computation.parameters:
            found[parameter] = len(found)
        self._rest = iter([i for i in computation._instructions if i._head.opcode != "parameter"])
        self.current: Instruction | None = None
        self.callees: tuple[Computation, ...] = ()

    @property
    def is_at_fusion(self) -> bool:
        """True if what is called next is the body of a fusion."""
        return self.current is not None and self.current._head.opcode == "fusion"

    def advance(self) -> bool:
        """Numbers what calls nothing up to the next instruction that does; False where there is none."""
        found = self._found
        for i in self._rest:
            opcode = i._head.opcode
            callees = () if opcode in CALLS_NOTHING else i.called_computations
            if callees:
                self.current = i
                is_loop = opcode == "while"
                self.callees = (i.attributes["condition"], i.attributes["body"]) if is_loop else callees
                return True
            found[i] = len(found)
        self.current, self.callees = None, ()
        return False
