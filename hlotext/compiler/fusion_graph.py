"""Fusions while they are being formed: a light graph over a computation, and its way back into the module.

Models of fusion passes decide on the graph, which costs nothing to change; `Graph.commit` makes the module of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.enums import FusionKind
from hlotext.ir.values.shape import Shape
from hlotext.memory.value_sets import shape_of
from hlotext.rewrite.kit.annotations import NOT_COPIED
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.control import replace_uses_and_control, set_control
from hlotext.rewrite.kit.edits import Editor


@attrs.define(eq=False, repr=False)
class Member:
    """An instruction inside a fusion. Its operands are other members, or nodes outside."""

    origin: Instruction
    operands: list[Member | Node]
    users: dict[Member, None] = attrs.field(factory=dict)

    @property
    def opcode(self) -> str:
        """The opcode."""
        return self.origin.opcode

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return shape_of(self.origin)


@attrs.define(eq=False, repr=False)
class Body:
    """The body of a fusion."""

    root: Member
    kind: FusionKind
    operands: dict[Node, None] = attrs.field(factory=dict)
    """The fusion's operands in order, each once."""
    readers: dict[Node, dict[Member, None]] = attrs.field(factory=dict)
    """Members that read each operand."""
    members: dict[Member, None] = attrs.field(factory=dict)
    is_new: bool = True
    """False for one that the module had and that nothing was added to."""

    def in_order(self) -> Iterator[Member]:
        """Yields the members, operands first."""
        done: set[Member] = set()
        for start in self.members:
            stack = [start]
            while stack:
                member = stack[-1]
                if member in done:
                    stack.pop()
                    continue
                waiting = [o for o in member.operands if isinstance(o, Member) and o not in done]
                if waiting:
                    stack.extend(reversed(waiting))
                else:
                    stack.pop()
                    done.add(member)
                    yield member


@attrs.define(eq=False, repr=False)
class Node:
    """An instruction of the computation, or the fusion that replaced it."""

    origin: Instruction
    place: int
    """Where it stands in the order of the text, which for unscheduled modules is XLA's post-order."""
    own: list[Node] = attrs.field(factory=list)
    users: dict[Node, None] = attrs.field(factory=dict)
    body: Body | None = None
    prefix: str = ""
    """Prefix of the fusion's name in XLA."""
    is_gone: bool = False

    @property
    def name(self) -> str:
        """Name of the instruction whose result the node computes."""
        return self.origin.name

    @property
    def is_fusion(self) -> bool:
        """True if the node is a fusion by now."""
        return self.body is not None or self.origin.opcode == "fusion"

    @property
    def opcode(self) -> str:
        """Current opcode."""
        return "fusion" if self.body is not None else self.origin.opcode

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return shape_of(self.origin)

    @property
    def operands(self) -> list[Node]:
        """Current operands."""
        return list(self.body.operands) if self.body is not None else self.own

    def count(self, operand: Node) -> int:
        """Returns the number of times that the node uses an operand; 1 for a fusion."""
        return int(operand in self.body.operands) if self.body is not None else self.own.count(operand)

    def readers_of(self, operand: Node) -> int:
        """Returns the number of instructions that read an operand, counted inside a fusion."""
        if self.body is not None:
            return len(self.body.readers.get(operand, ()))
        callees = self.origin.called_computations if self.origin.opcode == "fusion" else ()
        if not callees or operand not in self.own:
            return 1
        number = self.own.index(operand)
        parameters = callees[0].parameters
        return len(parameters[number].users) if number < len(parameters) else 1

    @property
    def is_root(self) -> bool:
        """True if the node computes the computation's result."""
        return self.origin.is_root


class Graph:
    """The instructions of one computation, as nodes to be fused."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.nodes: dict[Instruction, Node] = {}
        for place, origin in enumerate(computation.instructions):
            node = self.nodes[origin] = Node(origin, place)
            node.own = [self.nodes[o] for o in origin.operands]
            for operand in node.own:
                operand.users[node] = None
        self._removed: list[Node] = []

    def of(self, instruction: Instruction) -> Node:
        """Returns the node of an instruction."""
        return self.nodes[instruction]

    # ---- forming fusions

    def open(self, node: Node, kind: FusionKind = FusionKind.LOOP) -> Body:
        """Returns the node's fusion body; for a node that is not a fusion, a new body with its instruction alone."""
        if node.body is not None:
            return node.body
        callees = node.origin.called_computations if node.origin.opcode == "fusion" else ()
        if callees and len(callees[0]):
            node.body = self._read(node, callees[0])
            return node.body
        root = Member(node.origin, list(node.own))
        body = node.body = Body(root, kind)
        body.members[root] = None
        for operand in node.own:
            self._reads(body, operand, root)
        return body

    def _read(self, node: Node, callee: Computation) -> Body:
        kind = node.origin.attributes.get("kind", FusionKind.LOOP)
        made: dict[Instruction, Member | Node] = {}
        found = []
        for inner in callee.instructions:
            number = inner.parameter_number
            if inner.opcode == "parameter" and number is not None:
                made[inner] = node.own[number]
                continue
            member = Member(inner, [made[o] for o in inner.operands])
            made[inner] = member
            found.append(member)
        root = made[callee.root]
        if not isinstance(root, Member):
            root = Member(callee.root, [root])
        body = Body(root, kind, is_new=False)
        body.operands = dict.fromkeys(node.own)
        for member in found:
            body.members[member] = None
            for operand in member.operands:
                if isinstance(operand, Member):
                    operand.users[member] = None
                else:
                    self._reads(body, operand, member)
        return body

    @staticmethod
    def _reads(body: Body, operand: Node, member: Member) -> None:
        body.operands[operand] = None
        body.readers.setdefault(operand, {})[member] = None

    def fuse(self, producer: Node, consumer: Node, *, keep: bool = False) -> Member:
        """Fuses a copy of a producer into a consumer, which becomes a fusion if it is not one.

        Removes the producer if it is then unused, unless `keep` (`CloneAndAppendInstructionIntoCalledComputation`).
        """
        body = self.open(consumer)
        body.is_new = True
        member = Member(producer.origin, list(producer.own))
        body.members[member] = None
        for reader in body.readers.pop(producer, {}):
            reader.operands = [member if o is producer else o for o in reader.operands]
            member.users[reader] = None
        body.operands.pop(producer, None)
        producer.users.pop(consumer, None)
        for operand in producer.own:
            self._reads(body, operand, member)
            operand.users[consumer] = None
        if not keep:
            self.drop_if_unused(producer)
        return member

    def merge(self, producer: Node, consumer: Node) -> None:
        """Merges a producer fusion into a consumer (`HloFusionInstruction::MergeFusionInstruction`).

        As in XLA, members are moved one at a time from the root backwards; members that are not yet moved are operands
        of the consumer meanwhile.
        """
        given = self.open(producer)
        body = self.open(consumer)
        body.is_new = True
        order = list(given.in_order())
        operands: dict[Node | Member, None] = {
            given.root if o is producer else o: None for o in body.operands
        }
        readers: dict[Node | Member, dict[Member, None]] = dict(body.readers.items())
        readers[given.root] = readers.pop(producer, {})
        for reader in readers[given.root]:
            reader.operands = [given.root if o is producer else o for o in reader.operands]
        for old in reversed(order):
            copy = Member(old.origin, list(old.operands))
            body.members[copy] = None
            operands.pop(old, None)
            for reader in readers.pop(old, {}):
                reader.operands = [copy if o is old else o for o in reader.operands]
                copy.users[reader] = None
            for operand in old.operands:
                operands[operand] = None
                readers.setdefault(operand, {})[copy] = None
        body.operands = {o: None for o in operands if isinstance(o, Node)}
        body.readers = {o: found for o, found in readers.items() if isinstance(o, Node)}
        producer.users.pop(consumer, None)
        for outer in given.operands:
            outer.users[consumer] = None
        self.drop_if_unused(producer)

    def drop_if_unused(self, node: Node) -> None:
        """Removes a node if it is unused and not the computation's result."""
        if node.users or node.is_root or node.is_gone:
            return
        node.is_gone = True
        self._removed.append(node)
        for operand in node.operands:
            operand.users.pop(node, None)

    # ---- back into the module

    def commit(self, editor: Editor) -> int:
        """Creates the fusions in the module. Returns the number of new or enlarged fusions."""
        count = 0
        results: dict[Node, Instruction] = {}
        for node in self.nodes.values():
            if node.is_gone or node.body is None or not node.body.is_new:
                continue
            count += 1
            editor.place = node.origin
            new = _fusion(editor, self.computation, node, node.body, results)
            results[node] = new
            set_aside = node.origin
            replace_uses_and_control(set_aside, new)
        gone = [node.origin for node in self._removed if node.origin.computation is self.computation]
        for origin in gone:
            _drop_control(origin)
        self._remove(gone)
        editor.place = None
        return count

    def _remove(self, gone: list[Instruction]) -> None:
        doomed = set(gone)
        doomed |= {node.origin for node in self.nodes.values() if node.body is not None and node.body.is_new}
        doomed = {i for i in doomed if i.computation is self.computation and not i.is_root}
        bodies = [i.called_computations[0] for i in doomed if i.opcode == "fusion" and i.called_computations]
        self.computation.remove_all(doomed)
        module = self.computation.module
        for body in bodies:
            if module is not None and body.module is module and not body.callers:
                module.remove(body)


def _fusion(
    editor: Editor, home: Computation, node: Node, body: Body, results: dict[Node, Instruction]
) -> Instruction:
    """The fusion with its computation."""
    module = editor.module
    builder = Builder.new(module, "fused_computation", before=home)
    made: dict[Member | Node, Instruction] = {}
    for operand in body.operands:
        made[operand] = builder.parameter(operand.shape)
    for member in body.in_order():
        old = member.origin
        operands = tuple(made[o] for o in member.operands)
        copy = Instruction(
            module.instruction_names.unique(old.name), old.opcode, old.shape, operands, _inner_attributes(old),
            old.literal if old.literal is not None else old.parameter_number,
        )  # fmt: skip
        made[member] = builder.computation.add(copy, typed=False)
    computation = builder.finish(made[body.root])
    outside = [results.get(o, o.origin) for o in body.operands]
    old = node.origin
    attributes: dict[str, Any] = {"kind": body.kind, "calls": computation}
    if old.opcode == "fusion":
        attributes = {
            k: v for k, v in old.attributes.items() if k not in (*NOT_COPIED, "kind", "calls")
        } | attributes
    for name in ("metadata", "frontend_attributes", "sharding"):
        if name in old.attributes:
            attributes[name] = old.attributes[name]
    name = node.prefix or old.name
    return editor.create("fusion", shape_of(old), outside, **attributes, computation=home, name=name)


def _inner_attributes(old: Instruction) -> dict[str, Any]:
    """Attributes of a copy inside a fusion: all but control dependencies, which end at the fusion."""
    return {k: v for k, v in old.attributes.items() if k != "control-predecessors"}


def _drop_control(old: Instruction) -> None:
    """Takes an instruction out of all control dependencies (`SafelyDropAllControlDependencies`)."""
    predecessors, successors = old.control_predecessors, old.control_successors
    for successor in successors:
        kept = dict.fromkeys((*(p for p in successor.control_predecessors if p is not old), *predecessors))
        set_control(successor, tuple(kept))
    if predecessors:
        set_control(old, ())
