"""Loops made anew over a state of another form: what passes over loops share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hlotext.edit.cloning import own_attributes
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.control import CONTROL
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.calls.call_inliner import Inliner

Nodes = dict[Instruction, Instruction | None]
"""Replacement of each instruction in a copy; None: none."""
Finish = Callable[[Nodes], Instruction]
Copier = Callable[["LoopEditor", Computation, Nodes], None]


def body_of(loop: Instruction) -> Computation:
    """Returns the body of a loop."""
    found: Computation = loop.attributes["body"]
    return found


def condition_of(loop: Instruction) -> Computation:
    """Returns the condition of a loop."""
    found: Computation = loop.attributes["condition"]
    return found


def parameter_of(computation: Computation) -> Instruction:
    """Returns the only parameter of a loop's body or condition: the state."""
    return computation.parameters[0]


def is_element(i: Instruction, computation: Computation, index: int) -> bool:
    """Returns True if an instruction is element `index` of a computation's parameter."""
    return (
        i.opcode == "get-tuple-element"
        and i.operands[0] is parameter_of(computation)
        and i.attributes["index"] == index
    )


def invariant_elements(body: Computation) -> list[tuple[int, Instruction]]:
    """Returns the state elements that a body forwards unchanged (`GetInvariantGTEsForWhileBody`)."""
    ends = body.root.operands if body.root.opcode == "tuple" else ()
    return [(n, end) for n, end in enumerate(ends) if is_element(end, body, n)]


def is_whole(loop: Instruction) -> bool:
    """Returns True if a loop has one operand, and a body and condition with one parameter each."""
    callees = [loop.attributes.get(name) for name in ("body", "condition")]
    return loop.shape is not None and len(loop.operands) == 1 and loop.operands[0].shape is not None and all(
        isinstance(c, Computation) and len(c) and len(c.parameters) == 1 for c in callees
    )  # fmt: skip


class LoopEditor(Inliner):
    """Editor that copies the computations of loops, and creates loops with them."""

    def __init__(self, module: Module, growth: InstructionBudget) -> None:
        super().__init__(module, growth)
        self.origins: dict[Instruction | Computation, str | None] = {}
        """Of what was made here, the name of what it is a copy of; None: of nothing."""
        self.copying: Computation | None = None
        """A copy that is being filled, in the order of its source."""

    def _before(self, home: Computation, new: Instruction) -> Instruction | None:
        return None if home is self.copying else super()._before(home, new)

    # ---- copies

    def copy(self, source: Computation, parameter: Shape, prepare: Copier, finish: Finish | None) -> Computation:  # fmt: skip
        """Copies a computation with another parameter; `prepare` returns the replacement of the old one."""
        self.growth.add(len(source))
        name = self.module.computation_names.unique(f"{source.name}.clone")
        copy = self.module.add(Computation(name), before=source)
        old = parameter_of(source)
        outer, self.copying = self.copying, copy
        new = self.create("parameter", parameter, argument=0, computation=copy, name=old.name)
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
            nodes[i] = self.create(
                i.opcode, shape, [o for o in operands if o is not None], argument=i.literal, **own,
                computation=copy, name=i.name,
            )  # fmt: skip
        root = finish(nodes) if finish is not None else nodes[source.root]
        assert root is not None
        copy.root = root
        self.copying = outer
        self.origins.update({copy: source.name, new: old.name})
        pairs = [(old, made) for old, made in nodes.items() if made is not None]
        for old, made in [*pairs, (source.root, root)]:
            if made.opcode == old.opcode:
                self.origins[made] = old.name
        return copy

    def elements(self, value: Instruction) -> list[Instruction]:
        """Returns a get-tuple-element for each element of a tuple."""
        shape = value.shape
        assert shape is not None
        return [self.element(value, n) for n in range(len(shape.tuple_shapes))]

    def element(self, value: Instruction, index: int) -> Instruction:
        """Returns an element of a tuple."""
        shape = value.shape
        assert shape is not None
        new = self.create("get-tuple-element", shape.tuple_shapes[index], (value,), index=index,
                       computation=value.computation)  # fmt: skip
        self.origins[new] = None
        return new

    def tuple(self, elements: Iterable[Instruction], computation: Computation | None = None) -> Instruction:
        """Creates a tuple of values."""
        parts = tuple(elements)
        shape = Shape.tuple(tuple(part.shape for part in parts if part.shape is not None))
        if computation is None and parts:
            computation = parts[0].computation
        return self.create("tuple", shape, parts, computation=computation)

    def loop(
        self, old: Instruction, shape: Shape, condition: Computation, body: Computation, init: Instruction
    ) -> Instruction:
        """Creates a loop with the annotations and backend config of the old one."""
        own: dict[str, Any] = {"condition": condition, "body": body}
        for name in ("backend_config", "frontend_attributes", "metadata"):
            if name in old.attributes:
                own[name] = old.attributes[name]
        new = self.create("while", shape, (init,), **own, name=old.name)
        self.origins[new] = old.name
        return new

    # ---- another form

    def transformed(
        self, loop: Instruction, shape: Shape, init: Instruction,
        old_form: Callable[[Instruction], Instruction], new_form: Callable[[Instruction, Instruction], Instruction],
        instead: Mapping[Instruction, int] | None = None, *, relay_control: bool = False,
    ) -> Instruction:  # fmt: skip
        """Replaces a loop by one with a state of another form, and returns it.

        `old_form` converts the new state to the old one, and `new_form` the body's new result to the new state.
        `instead` maps instructions of the body to elements of the new state that replace them.
        """

        def prepare(source: Computation) -> Copier:
            def take(loops: LoopEditor, copy: Computation, nodes: Nodes) -> None:
                new = nodes[parameter_of(source)]
                assert new is not None
                nodes[parameter_of(source)] = old_form(new)
                if source is body_of(loop):
                    nodes.update({i: loops.element(new, n) for i, n in (instead or {}).items()})
                self._given = new

            return take

        def finish(nodes: Nodes) -> Instruction:
            root = nodes[body_of(loop).root]
            assert root is not None
            return new_form(root, self._given)

        outside, self.place = self.place, None
        condition = self.copy(condition_of(loop), shape, prepare(condition_of(loop)), None)
        body = self.copy(body_of(loop), shape, prepare(body_of(loop)), finish)
        self.place = outside
        new = self.loop(loop, shape, condition, body, init)
        self.replace(loop, old_form(new), relay_control=relay_control)
        return new

    _given: Instruction


def _skips_root(nodes: Nodes, root: Instruction) -> bool:
    return nodes.get(root, root) is None
