"""Loops that carry less, or run no more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import attrs
import numpy as np

from hlotext.analysis.trip_count import counted_trips
from hlotext.edit.cloning import own_attributes
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.passes.base import Growth, Pass, PassResult
from hlotext.rewrite.passes.call_inliner import EARLY, LATE, Inliner
from hlotext.rewrite.passes.dce import DeadCodeElimination
from hlotext.rewrite.passes.editor import CONTROL

Nodes = dict[Instruction, Instruction | None]
"""What stands for each instruction in a copy; None: nothing."""
Finish = Callable[[Nodes], Instruction]
Copier = Callable[["Loops", Computation, Nodes], None]

COUNTERS = ("s8", "u8", "s32", "u32", "s64", "u64")
MADE = frozenset({"clone", "sunk", "wide"})
TRANSFERS = frozenset({"send", "send-done", "recv", "recv-done"})


@attrs.frozen
class WhileLoopSimplifier(Pass):
    """Takes out what loops carry for nothing, and loops that run once or never (XLA's `WhileLoopSimplifier`).

    Of the first of these that fits, for each loop: an element that repeats another; tuples in tuples; elements that nothing
    needs; constants that stay. Then constants that the body hands on are written into it, a loop that never runs becomes its
    start and one that runs once its body; and counters that all count in step become one. Last comes DCE.

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
    summary: ClassVar[str] = "Takes out what loops carry for nothing, and loops that run once."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        loops = Loops(module)
        own = [c for c in module.computations if not c.is_implicit]
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
    """Whether a pass made a computation: such ones XLA keeps behind the others, whose loops come first."""
    return not MADE.isdisjoint(computation.name.split("."))


def _is_plain(loop: Instruction) -> bool:
    """Whether a loop is whole, and nothing else runs its computations."""
    callees = [loop.attributes.get(name) for name in ("body", "condition")]
    return loop.shape is not None and len(loop.operands) == 1 and all(
        isinstance(c, Computation) and len(c.parameters) == 1 and c.callers == (loop,) for c in callees
    )  # fmt: skip


def _body(loop: Instruction) -> Computation:
    found: Computation = loop.attributes["body"]
    return found


def _condition(loop: Instruction) -> Computation:
    found: Computation = loop.attributes["condition"]
    return found


def _parameter(computation: Computation) -> Instruction:
    return computation.parameters[0]


def _is_element(i: Instruction, computation: Computation, index: int) -> bool:
    """Whether an instruction is an element of what a computation is given, as it is."""
    return (
        i.opcode == "get-tuple-element"
        and i.operands[0] is _parameter(computation)
        and i.attributes["index"] == index
    )


def _users_take_elements(loop: Instruction) -> bool:
    """`AllWhileParamConsumersGte`."""
    return all(
        user.opcode == "get-tuple-element"
        for c in (_body(loop), _condition(loop))
        for user in _parameter(c).users
    )


class Loops(Inliner):
    """The transformations; each gives the loop that takes the old one's place, or None where it does not fit."""

    def __init__(self, module: Module) -> None:
        super().__init__(module, Growth("simplify-while-loops", module))

    def simplify(self, loop: Instruction) -> list[str]:
        """Does the first of the transformations that fits; the names of those that did."""
        for step in (self.repeated, self.nested, self.dead, self.constants):
            self.place = loop
            if step(loop):
                return [step.__name__]
        inside = [i.opcode for c in (_body(loop), _condition(loop)) for i in c]
        if not TRANSFERS.isdisjoint(inside):
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
            merged = self.merge_counters(loop, word)
            if merged is not None:
                loop = merged
                done.append("merged_counters")
        return done

    # ---- copies

    def copy(self, source: Computation, parameter: Shape, prepare: Copier, finish: Finish | None) -> Computation:  # fmt: skip
        """A copy of a computation with another parameter; `prepare` says what stands for the old one."""
        self.growth.add(len(source))
        name = self.module.computation_names.unique(f"{source.name}.clone")
        copy = self.module.add(Computation(name), before=source)
        old = _parameter(source)
        new = self.add("parameter", parameter, argument=0, computation=copy, name=old.name)
        nodes: Nodes = {}
        nodes[old] = new
        prepare(self, copy, nodes)
        for i in source.instructions:
            if i in nodes or (
                finish is not None and i is source.root and i not in nodes and _skips_root(nodes, i)
            ):
                continue
            operands = [nodes.get(o) for o in i.operands]
            if any(o is None for o in operands):
                nodes[i] = None
                continue
            own = {k: v for k, v in own_attributes(i).items() if k != CONTROL}
            waits = [nodes.get(p) for p in i.control_predecessors]
            if any(p is not None for p in waits):
                own[CONTROL] = tuple(p for p in waits if p is not None)
            shape = i.shape
            assert shape is not None
            nodes[i] = self.add(
                i.opcode, shape, [o for o in operands if o is not None], argument=i.literal, attributes=own,
                computation=copy, name=i.name,
            )  # fmt: skip
        root = finish(nodes) if finish is not None else nodes[source.root]
        assert root is not None
        copy.root = root
        return copy

    def elements(self, value: Instruction) -> list[Instruction]:
        """All elements of a tuple, taken out of it."""
        shape = value.shape
        assert shape is not None
        return [self.element(value, n) for n in range(len(shape.tuple_shapes))]

    def element(self, value: Instruction, index: int) -> Instruction:
        """An element of a tuple."""
        shape = value.shape
        assert shape is not None
        return self.add("get-tuple-element", shape.tuple_shapes[index], (value,), attributes={"index": index},
                        computation=value.computation)  # fmt: skip

    def tuple(self, elements: Iterable[Instruction], computation: Computation | None = None) -> Instruction:
        """A tuple of values."""
        parts = tuple(elements)
        shape = Shape.tuple(tuple(part.shape for part in parts if part.shape is not None))
        if computation is None and parts:
            computation = parts[0].computation
        return self.add("tuple", shape, parts, computation=computation)

    def loop(
        self, old: Instruction, shape: Shape, condition: Computation, body: Computation, init: Instruction
    ) -> Instruction:
        """The new loop, with the settings and notes of the old one."""
        own: dict[str, Any] = {"condition": condition, "body": body}
        for name in ("backend_config", "frontend_attributes", "metadata"):
            if name in old.attributes:
                own[name] = old.attributes[name]
        return self.add("while", shape, (init,), attributes=own, name=old.name)

    # ---- elements that go

    def without(
        self, loop: Instruction, kept: list[int], instead: dict[int, int] | None = None
    ) -> Instruction:
        """The loop with some of its elements only (`RemoveDeadTupleIndices`); what stands for the others is what they start
        with, or another element."""
        init = loop.operands[0]
        body = _body(loop)
        shape = init.shape
        assert shape is not None
        narrow = Shape.tuple(tuple(shape.tuple_shapes[n] for n in kept))
        place = {old: new for new, old in enumerate(kept)}

        def prepare(source: Computation) -> Copier:
            def take(loops: Loops, copy: Computation, nodes: Nodes) -> None:
                old = _parameter(source)
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
        condition = self.copy(_condition(loop), narrow, prepare(_condition(loop)), None)
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
        """Keeps one of several elements that start alike and stay (`TryRemoveRepeatedWhileTupleIndices`)."""
        init, body = loop.operands[0], _body(loop)
        if not self._may_change(loop) or init.opcode != "tuple" or not _users_take_elements(loop):
            return False
        alike: dict[Any, list[int]] = defaultdict(list)
        for n, (start, end) in enumerate(zip(init.operands, body.root.operands, strict=True)):
            if _is_element(end, body, n):
                alike[start].append(n)
        found = self._without_repeated(loop, alike, keeps_start=True)
        loop = found or loop
        init, body = loop.operands[0], _body(loop)
        alike = defaultdict(list)
        for n, (start, end) in enumerate(zip(init.operands, body.root.operands, strict=True)):
            if end.opcode == "dynamic-update-slice" and _is_element(end.operands[0], body, n):
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
        for computation in (_body(loop), _condition(loop)):
            first: dict[int, Instruction] = {}
            parameter = _parameter(computation)
            for user in parameter.users:
                kept = instead.get(user.attributes["index"])
                if kept is not None:
                    self.place = user
                    if kept not in first:
                        first[kept] = self.element(parameter, kept)
                    self.replace(user, first[kept])
        self.place = loop
        count = len(_body(loop).root.operands)
        left = [n for n in range(count) if n not in instead]
        return self.without(loop, left, None if keeps_start else instead)

    def dead(self, loop: Instruction) -> bool:
        """Takes out elements that nothing needs (`TryRemoveDeadWhileParams`)."""
        init, body, condition = loop.operands[0], _body(loop), _condition(loop)
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
        analysis = _Needs(self, body, condition)
        ends = body.root.operands
        affecting = {n for i, end in enumerate(ends) for n in analysis.needs[end] if n != i}
        dead = {
            n
            for n in range(count)
            if n not in affecting and n not in used_after and n not in analysis.effects
        }
        for group in analysis.groups(ends):
            if not any(
                n in analysis.effects or (n in used_after and not _is_element(ends[n], body, n))
                for n in group
            ):
                dead |= group
        if not dead:
            return False
        self.without(loop, [n for n in range(count) if n not in dead])
        return True

    def _may_change(self, loop: Instruction) -> bool:
        shape = loop.shape
        tied = loop.control_predecessors or loop.control_successors
        return shape is not None and shape.is_tuple and not tied and _body(loop).root.opcode == "tuple"

    # ---- elements that become others

    def transformed(
        self, loop: Instruction, shape: Shape, init: Instruction,
        old_form: Callable[[Instruction], Instruction], new_form: Callable[[Instruction, Instruction], Instruction],
    ) -> Instruction:  # fmt: skip
        """The loop over a state of another form: `old_form` makes the old one of it, `new_form` that of the body's new
        result."""

        def prepare(source: Computation) -> Copier:
            def take(loops: Loops, copy: Computation, nodes: Nodes) -> None:
                new = nodes[_parameter(source)]
                assert new is not None
                nodes[_parameter(source)] = old_form(new)
                self._given = new

            return take

        def finish(nodes: Nodes) -> Instruction:
            root = nodes[_body(loop).root]
            assert root is not None
            return new_form(root, self._given)

        outside, self.place = self.place, None
        condition = self.copy(_condition(loop), shape, prepare(_condition(loop)), None)
        body = self.copy(_body(loop), shape, prepare(_body(loop)), finish)
        self.place = outside
        new = self.loop(loop, shape, condition, body, init)
        self.replace(loop, old_form(new), relay_control=False)
        return new

    _given: Instruction

    def nested(self, loop: Instruction) -> bool:
        """Makes tuples in tuples one tuple (`TryFlattenNestedTuples`)."""
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
        """Takes out constants that stay what they are (`TryRemoveConstantParams`)."""
        init, body, shape = loop.operands[0], _body(loop), loop.shape
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
                    parts.append(self.add("constant", part, argument=literal, computation=value.computation))
            return self.tuple(parts)

        def narrowed(value: Instruction) -> Instruction:
            return self.tuple([self.element(value, n) for n in kept])

        self.transformed(loop, narrow, narrowed(init), widened, lambda root, _: narrowed(root))
        return True

    def propagate(self, loop: Instruction) -> bool:
        """Writes scalar constants that the body hands on into it (`TryPropagateConstant`)."""
        init, body = loop.operands[0], _body(loop)
        if init.opcode != "tuple" or body.root.opcode != "tuple":
            return False
        known = {
            n: start
            for n, (start, end) in enumerate(zip(init.operands, body.root.operands, strict=False))
            if start.literal is not None and start.shape is not None and not start.shape.dimensions
            and _is_element(end, body, n)
        }  # fmt: skip
        changed = False
        for computation in (_condition(loop), body):
            for user in _parameter(computation).users:
                start = known.get(user.attributes["index"]) if user.opcode == "get-tuple-element" else None
                if start is None or start.shape is None:
                    continue
                self.place = user
                copy = self.add("constant", start.shape, argument=start.literal, computation=computation)
                user.replace_all_uses_with(copy)
                changed = True
        return changed

    # ---- loops that go

    def remove(self, loop: Instruction) -> str | None:
        """Replaces a loop that never runs, or runs once (`TryRemoveWhileLoop`)."""
        if loop.control_predecessors or loop.control_successors:
            return None
        if any(self.has_effect(i) for i in _condition(loop)):
            return None
        trips = counted_trips(loop)
        if trips == 0:
            return "never_run" if self.replace(loop, loop.operands[0]) else None
        notes = loop.frontend_attributes
        skipped = notes.get("skip-simplify-while-loops_trip-count-one") == "true" or (
            notes.get("inlineable") in LATE and notes.get("inlineable") not in EARLY
        )
        if trips != 1 or skipped or any(self.has_effect(i) for i in _body(loop)):
            return None
        shape = loop.shape
        assert shape is not None
        body = _body(loop)
        call = self.add("call", shape, loop.operands, attributes={"to_apply": body})
        self.replace(loop, call)
        assert call.computation is not None
        self.inline(call.computation, [call])
        return "run_once"

    # ---- counters

    def merge_counters(self, loop: Instruction, word: str) -> Instruction | None:
        """Makes counters that all count in step one (`TryMergeInductionVariables`)."""
        init, body, shape = loop.operands[0], _body(loop), loop.shape
        if init.opcode != "tuple" or body.root.opcode != "tuple" or shape is None:
            return None
        if loop.control_predecessors or loop.control_successors:
            return None
        counter: int | None = None
        steps: dict[int, Literal] = {}
        for n, end in enumerate(body.root.operands):
            step = (
                _step(end, body, n) if end.shape is not None and end.shape.element_type.name == word else None
            )
            if step is None:
                continue
            start = init.operands[n].literal
            starts_at_zero = (
                start is not None and start.known_array is not None and not start.known_array.any()
            )
            if (
                counter is None
                and step.known_array is not None
                and step.known_array.reshape(-1)[0] == 1
                and starts_at_zero
            ):
                counter = n
            else:
                steps[n] = step
        if len(steps) + (counter is not None) < 2:
            return None
        count = len(shape.tuple_shapes)
        is_new = counter is None
        place = count if counter is None else counter
        type_ = next(iter(steps.values())).shape.element_type
        scalar = Shape(type_)
        wide = Shape.tuple((*shape.tuple_shapes, scalar)) if is_new else shape

        def number(value: int, computation: Computation | None) -> Instruction:
            literal = Literal.from_array(np.asarray(value).astype(type_.dtype), scalar)
            return self.add("constant", scalar, argument=literal, computation=computation)

        def binary(opcode: str, part: Shape, x: Instruction, y: Instruction) -> Instruction:
            operands = []
            for o in (x, y):
                fits = o.shape is not None and o.shape.dimensions == part.dimensions
                operands.append(o if fits else self.add("reshape", part, (o,), computation=o.computation))
            return self.add(opcode, part, operands, computation=x.computation)

        def old_form(value: Instruction) -> Instruction:
            parts = []
            for n, part in enumerate(shape.tuple_shapes):
                if n not in steps:
                    parts.append(self.element(value, n))
                    continue
                step = self.add("constant", steps[n].shape, argument=steps[n], computation=value.computation)
                first = self.element(value, n)
                product = binary("multiply", part, self.element(value, place), step)
                parts.append(binary("add", part, first, product))
            return self.tuple(parts)

        def new_form(root: Instruction, given: Instruction) -> Instruction:
            parts = [self.element(given if n in steps else root, n) for n in range(count)]
            if is_new:
                parts.append(binary("add", scalar, self.element(given, place), number(1, given.computation)))
            return self.tuple(parts)

        start_ = self.tuple((*self.elements(init), number(0, loop.computation))) if is_new else init
        return self.transformed(loop, wide, start_, old_form, new_form)


def _skips_root(nodes: Nodes, root: Instruction) -> bool:
    return nodes.get(root, root) is None


def _step(end: Instruction, body: Computation, index: int) -> Literal | None:
    """What is added to an element at each turn, if a constant is."""
    if end.opcode != "add":
        return None
    for x, c in (end.operands, end.operands[::-1]):
        if _is_element(x, body, index) and c.literal is not None and not c.literal.shape.dimensions:
            return c.literal
    return None


class _Needs:
    """Which elements of a loop's state each value needs, and which elements hang together."""

    def __init__(self, editor: Loops, body: Computation, condition: Computation) -> None:
        self.needs: dict[Instruction, frozenset[int]] = {}
        self.effects: set[int] = set()
        self._parents: dict[Instruction, Instruction] = {}
        self._inputs: list[Instruction] = []
        interned: dict[frozenset[int], frozenset[int]] = {}
        for computation in (body, condition):
            given = _parameter(computation)
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
        """The elements that hang together, by what is made of them and what they become."""
        found: dict[Instruction, set[int]] = defaultdict(set)
        for n, end in enumerate(ends):
            found[self._leader(end)].add(n)
        for i in self._inputs:
            found[self._leader(i)].add(i.attributes["index"])
        return list(found.values())
