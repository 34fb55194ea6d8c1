"""Loops that carry less, or run no more."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

import attrs

from hlotext.analysis.trip_count import counted_trips
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.calls.call_inliner import EARLY, LATE
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.loops.induction_variables import COUNTERS, merge_counters
from hlotext.rewrite.passes.loops.loop_dependencies import Needs
from hlotext.rewrite.passes.loops.loop_rebuilding import (
    Copier,
    LoopEditor,
    Nodes,
    body_of,
    condition_of,
    is_element,
    parameter_of,
)

MADE = frozenset({"clone", "sunk", "wide"})


@attrs.frozen
class WhileLoopSimplifier(Pass):
    """Removes unused loop state, and loops that run at most once (XLA's `WhileLoopSimplifier`).

    For each loop, the first of these that applies: duplicate elements, nested tuples, dead elements, constant elements. Then
    constants that the body forwards are moved into it, a loop that never runs is replaced by its initial state and one that
    runs once by its body, and counters that advance together are merged. DCE comes last.

    >>> import hlotext as hlo
    >>> m = hlo.parse('''
    ... body { s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   x = f32[] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
    ...   y = f32[] sine(x)  ROOT t = (s32[], f32[]) tuple(j, y) }
    ... cond { s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(1)
    ...   ROOT lt = pred[] compare(i, n), direction=LT }
    ... ENTRY e { x = f32[] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[]) tuple(zero, x)
    ...   w = (s32[], f32[]) while(t), condition=cond, body=body  ROOT y = f32[] get-tuple-element(w), index=1 }''')
    >>> WhileLoopSimplifier().run(m).statistics["run_once"]
    1
    """

    name: ClassVar[str] = "simplify-while-loops"
    summary: ClassVar[str] = "Removes unused loop state, and loops that run at most once."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        loops = Loops(module)
        own = [c for c in module.computations if not c.is_sugared]
        found = [i for c in sorted(own, key=_was_made) for i in c.instructions if i.opcode == "while"]
        counts: dict[str, int] = defaultdict(int)
        for loop in found:
            if loop.computation is None or not _is_plain(loop):
                continue
            for name in loops.simplify(loop):
                counts[name] += 1
        if counts:
            for name, count in DeadCodeElimination().run(module).statistics.items():
                counts[name] += count
        return PassResult.of(counts)


def _was_made(computation: Computation) -> bool:
    """True if a pass made a computation: such ones XLA keeps behind the others, whose loops come first."""
    return not MADE.isdisjoint(computation.name.split("."))


def _is_plain(loop: Instruction) -> bool:
    """True if a loop is whole, and nothing else runs its computations."""
    callees = [loop.attributes.get(name) for name in ("body", "condition")]
    return loop.shape is not None and len(loop.operands) == 1 and all(
        isinstance(c, Computation) and len(c.parameters) == 1 and c.callers == (loop,) for c in callees
    )  # fmt: skip


def _users_take_elements(loop: Instruction) -> bool:
    """`AllWhileParamConsumersGte`."""
    return all(
        user.opcode == "get-tuple-element"
        for c in (body_of(loop), condition_of(loop))
        for user in parameter_of(c).users
    )


class Loops(LoopEditor):
    """The transformations of `simplify-while-loops`."""

    def __init__(self, module: Module) -> None:
        super().__init__(module, InstructionBudget("simplify-while-loops", module))

    def simplify(self, loop: Instruction) -> list[str]:
        """Applies the first transformation that fits. Returns the names of those applied."""
        for step in (self.repeated, self.nested, self.dead, self.constants):
            self.place = loop
            if step(loop):
                return [step.__name__]
        inside = [i.opcode for c in (body_of(loop), condition_of(loop)) for i in c]
        if not traits.TRANSFERS.isdisjoint(inside):
            return []
        done = ["propagated"] if self.propagate(loop) else []
        self.place = loop
        removed = self.remove(loop)
        if removed is not None:
            return [*done, removed]
        if "domain" in inside:
            return done
        for word in COUNTERS:
            self.place = loop
            merged = merge_counters(self, loop, word)
            if merged is not None:
                loop = merged
                done.append("merged_counters")
        return done

    # ---- elements that go

    def without(
        self, loop: Instruction, kept: list[int], instead: dict[int, int] | None = None
    ) -> Instruction:
        """Creates the loop with only some of its elements (`RemoveDeadTupleIndices`).

        The others are replaced by their initial values, or by the element given in `instead`.
        """
        init = loop.operands[0]
        body = body_of(loop)
        shape = init.shape
        assert shape is not None
        narrow = Shape.tuple(tuple(shape.tuple_shapes[n] for n in kept))
        place = {old: new for new, old in enumerate(kept)}

        def prepare(source: Computation) -> Copier:
            def take(loops: LoopEditor, copy: Computation, nodes: Nodes) -> None:
                old = parameter_of(source)
                new = nodes[old]
                assert new is not None
                for user in old.users:
                    if user is source.root and source is body:
                        continue
                    index = user.attributes["index"]
                    nodes[user] = loops.element(new, place[index]) if index in place else None
                if source is body:
                    nodes.setdefault(source.root, None)

            return take

        def finish(nodes: Nodes) -> Instruction:
            parts = [nodes[body.root.operands[n]] for n in kept]
            return self.tuple([part for part in parts if part is not None])

        outside = self.place
        condition = self.copy(condition_of(loop), narrow, prepare(condition_of(loop)), None)
        new_body = self.copy(body, narrow, prepare(body), finish)
        self.place = outside
        parts = [init.operands[n] if init.opcode == "tuple" else self.element(init, n) for n in kept]
        start = self.tuple(parts, loop.computation)
        new = self.loop(loop, narrow, condition, new_body, start)
        whole = []
        for n in range(len(shape.tuple_shapes)):
            if n in place:
                whole.append(self.element(new, place[n]))
            elif instead is not None:
                whole.append(self.element(new, place[instead[n]]))
            else:
                whole.append(self.element(init, n))
        self.replace(loop, self.tuple(whole))
        return new

    def repeated(self, loop: Instruction) -> bool:
        """Merges elements that start equal and stay equal (`TryRemoveRepeatedWhileTupleIndices`). Returns True if
        changed.
        """
        init, body = loop.operands[0], body_of(loop)
        if not self._may_change(loop) or init.opcode != "tuple" or not _users_take_elements(loop):
            return False
        alike: dict[Any, list[int]] = defaultdict(list)
        for n, (start, end) in enumerate(zip(init.operands, body.root.operands, strict=True)):
            if is_element(end, body, n):
                alike[start].append(n)
        found = self._without_repeated(loop, alike, keeps_start=True)
        loop = found or loop
        init, body = loop.operands[0], body_of(loop)
        alike = defaultdict(list)
        for n, (start, end) in enumerate(zip(init.operands, body.root.operands, strict=True)):
            if end.opcode == "dynamic-update-slice" and is_element(end.operands[0], body, n):
                alike[start, end.operands[1:]].append(n)
        again = self._without_repeated(loop, alike, keeps_start=False)
        return found is not None or again is not None

    def _without_repeated(
        self, loop: Instruction, alike: dict[Any, list[int]], *, keeps_start: bool
    ) -> Instruction | None:
        instead = {n: group[0] for group in alike.values() for n in group[1:]}
        if not instead:
            return None
        self.place = None
        for computation in (body_of(loop), condition_of(loop)):
            first: dict[int, Instruction] = {}
            parameter = parameter_of(computation)
            for user in parameter.users:
                kept = instead.get(user.attributes["index"])
                if kept is not None:
                    self.place = user
                    if kept not in first:
                        first[kept] = self.element(parameter, kept)
                    self.replace(user, first[kept])
        self.place = loop
        count = len(body_of(loop).root.operands)
        left = [n for n in range(count) if n not in instead]
        return self.without(loop, left, None if keeps_start else instead)

    def dead(self, loop: Instruction) -> bool:
        """Removes elements that nothing needs (`TryRemoveDeadWhileParams`). Returns True if changed."""
        init, body, condition = loop.operands[0], body_of(loop), condition_of(loop)
        shape = init.shape
        if (
            not self._may_change(loop)
            or shape is None
            or not shape.tuple_shapes
            or not _users_take_elements(loop)
        ):
            return False
        count = len(shape.tuple_shapes)
        used_after = set(range(count))
        if not loop.is_root and all(user.opcode == "get-tuple-element" for user in loop.users):
            used_after = {user.attributes["index"] for user in loop.users}
        analysis = Needs(self, body, condition)
        ends = body.root.operands
        affecting = {n for i, end in enumerate(ends) for n in analysis.needs[end] if n != i}
        dead = {
            n
            for n in range(count)
            if n not in affecting and n not in used_after and n not in analysis.effects
        }
        for group in analysis.groups(ends):
            if not any(
                n in analysis.effects or (n in used_after and not is_element(ends[n], body, n)) for n in group
            ):
                dead |= group
        if not dead:
            return False
        self.without(loop, [n for n in range(count) if n not in dead])
        return True

    def _may_change(self, loop: Instruction) -> bool:
        shape = loop.shape
        tied = loop.control_predecessors or loop.control_successors
        return shape is not None and shape.is_tuple and not tied and body_of(loop).root.opcode == "tuple"

    # ---- elements that become others

    def nested(self, loop: Instruction) -> bool:
        """Flattens nested tuples in the state (`TryFlattenNestedTuples`). Returns True if changed."""
        init, shape = loop.operands[0], loop.shape
        if not self._may_change(loop) or init.opcode != "tuple" or shape is None:
            return False
        if not any(part.is_tuple for part in shape.tuple_shapes):
            return False
        flat = Shape.tuple(tuple(leaf for _, leaf in shape.leaves()))

        def leaves(value: Instruction) -> list[Instruction]:
            found: list[Instruction] = []
            pending = [value]
            while pending:
                item = pending.pop()
                if item.shape is not None and item.shape.is_tuple:
                    pending += reversed(self.elements(item))
                else:
                    found.append(item)
            return found

        def nested(value: Instruction) -> Instruction:
            parts = iter(self.elements(value))

            def join(wanted: Shape) -> Instruction:
                return self.tuple(
                    [join(p) if p.is_tuple else next(parts) for p in wanted.tuple_shapes], value.computation
                )

            return join(shape)

        start = self.tuple(leaves(init), loop.computation)
        self.transformed(
            loop, flat, start, nested, lambda root, _: self.tuple(leaves(root), root.computation)
        )
        return True

    def constants(self, loop: Instruction) -> bool:
        """Removes elements that are constant throughout (`TryRemoveConstantParams`). Returns True if changed."""
        init, body, shape = loop.operands[0], body_of(loop), loop.shape
        if not self._may_change(loop) or init.opcode != "tuple" or shape is None:
            return False
        pairs = zip(init.operands, body.root.operands, strict=True)
        known = {
            n: start.literal
            for n, (start, end) in enumerate(pairs)
            if start.literal is not None
            and start.literal == end.literal
            and not start.literal.is_partly_elided
        }
        if not known:
            return False
        kept = [n for n in range(len(shape.tuple_shapes)) if n not in known]
        if not kept:
            return self.replace(loop, init)
        narrow = Shape.tuple(tuple(shape.tuple_shapes[n] for n in kept))

        def widened(value: Instruction) -> Instruction:
            given = iter(self.elements(value))
            parts = []
            for n, part in enumerate(shape.tuple_shapes):
                literal = known.get(n)
                if literal is None:
                    parts.append(next(given))
                elif value.computation is loop.computation:
                    parts.append(init.operands[n])
                else:
                    parts.append(
                        self.create("constant", part, argument=literal, computation=value.computation)
                    )
            return self.tuple(parts)

        def narrowed(value: Instruction) -> Instruction:
            return self.tuple([self.element(value, n) for n in kept])

        self.transformed(loop, narrow, narrowed(init), widened, lambda root, _: narrowed(root))
        return True

    def propagate(self, loop: Instruction) -> bool:
        """Copies scalar constants that the body forwards into it (`TryPropagateConstant`). Returns True if changed."""
        init, body = loop.operands[0], body_of(loop)
        if init.opcode != "tuple" or body.root.opcode != "tuple":
            return False
        known = {
            n: start
            for n, (start, end) in enumerate(zip(init.operands, body.root.operands, strict=False))
            if start.literal is not None and start.shape is not None and not start.shape.dimensions
            and is_element(end, body, n)
        }  # fmt: skip
        changed = False
        for computation in (condition_of(loop), body):
            for user in parameter_of(computation).users:
                start = known.get(user.attributes["index"]) if user.opcode == "get-tuple-element" else None
                if start is None or start.shape is None:
                    continue
                self.place = user
                copy = self.create("constant", start.shape, argument=start.literal, computation=computation)
                user.replace_all_uses_with(copy)
                changed = True
        return changed

    # ---- loops that go

    def remove(self, loop: Instruction) -> str | None:
        """Replaces a loop that never runs, or runs once (`TryRemoveWhileLoop`). Returns which of the two, or None."""
        if loop.control_predecessors or loop.control_successors:
            return None
        if any(self.has_effect(i) for i in condition_of(loop)):
            return None
        trips = counted_trips(loop)
        if trips == 0:
            return "never_run" if self.replace(loop, loop.operands[0]) else None
        notes = loop.frontend_attributes
        skipped = notes.get("skip-simplify-while-loops_trip-count-one") == "true" or (
            notes.get("inlineable") in LATE and notes.get("inlineable") not in EARLY
        )
        if trips != 1 or skipped or any(self.has_effect(i) for i in body_of(loop)):
            return None
        shape = loop.shape
        assert shape is not None
        body = body_of(loop)
        call = self.create("call", shape, loop.operands, to_apply=body)
        self.replace(loop, call)
        assert call.computation is not None
        self.inline(call.computation, [call])
        return "run_once"
