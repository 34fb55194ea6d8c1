"""Edits with the semantics of XLA's computations: adding, replacing and removing instructions, and the walk over them.

Passes that are to leave what XLA's leave share these: what a new instruction takes over from an old one, what goes with
an instruction that nothing uses any more, and in which order a visitor comes by.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hlotext import layout as layouts
from hlotext.edit import structure
from hlotext.edit.cloning import own_attributes
from hlotext.edit.parameters import remove_unused_parameters
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.operand_index import has_repeated_operands
from hlotext.ir.tables import traits
from hlotext.ir.values.configs import FrontendAttributes
from hlotext.ir.values.enums import FusionKind
from hlotext.ir.values.left_out import LeftOut
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.ir.values.types import ElementType
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.shardings import check_sharding

CONTROL = "control-predecessors"
NOT_COPIED = traits.PROVENANCE | traits.CONTROL | traits.SHARDING | {"frontend_attributes"}
"""Attributes that a clone has from `derive`, or not at all."""


class XlaEditor:
    """Changes a module as XLA's `HloComputation` and `HloInstruction` do.

    New instructions stand before the instruction `place`, or behind their last operand where that stands later.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.place: Instruction | None = None
        self.changed = False
        self.has_layouts = has_layouts(module)
        self._effects: dict[Computation, bool] = {}
        self._facts = VerifierOptions(False, True, num_partitions=module.attributes.get("num_partitions", 1))

    def has_effect(self, i: Instruction) -> bool:
        """True if an instruction or what it calls has an effect (`HloInstruction::HasSideEffect`)."""
        if has_side_effect(i):
            return True
        callees = i.called_computations
        if not callees:
            return False
        for callee in callees:
            if callee not in self._effects:
                for computation in post_order([callee], self._effects):
                    self._effects[computation] = any(
                        has_side_effect(inner)
                        or any(self._effects.get(c, False) for c in inner.called_computations)
                        for inner in computation
                    )
        return any(self._effects[callee] for callee in callees)

    # ---- shapes

    def shape(self, element_type: ElementType, dimensions: Iterable[int] = ()) -> Shape:
        """An array shape with the descending layout, where the module's text has layouts (`ShapeUtil::MakeShape`)."""
        sizes = tuple(dimensions)
        layout = default_layout(len(sizes)) if sizes and self.has_layouts else None
        return Shape(element_type, sizes, layout=layout)

    # ---- new instructions

    def add(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[Instruction] = (),
        *,
        like: Instruction | None = None,
        argument: int | Literal | None = None,
        attributes: Mapping[str, Any] | None = None,
        computation: Computation | None = None,
        name: str | None = None,
        original: Instruction | None = None,
    ) -> Instruction:
        """Adds an instruction to the computation; with `like`, sharding and metadata come from that one (`AddInstruction`).

        For a copy, pass its `original`: an unknown opcode is accepted then.
        """
        home = computation
        if home is None and self.place is not None:
            home = self.place.computation
        if home is None and operands:
            home = operands[0].computation
        assert home is not None
        given = dict(attributes or {})
        if like is not None:
            had_sharding = "sharding" in given
            given = derived_attributes(like, opcode, shape, given)
            if not had_sharding and opcode in ("reshape", "transpose"):
                given.pop("sharding", None)
        wanted = name or opcode
        unique = self.module.instruction_names.unique(wanted)
        new = Instruction(unique, opcode, shape, tuple(operands), given, argument)
        if like is not None and "sharding" in given and any(check_sharding(new, self._facts)):
            # A sharding for another rank, or for devices that the module lacks, is not handed on.
            del given["sharding"]
            new = Instruction(unique, opcode, shape, tuple(operands), given, argument)
        structure.add(home, new, self._before(home, new), typed=False, original=original)
        return new

    def _before(self, home: Computation, new: Instruction) -> Instruction | None:
        place = self.place if self.place is not None and self.place.computation is home else None
        order = home.order
        needed = (*new.operands, *new.control_predecessors)
        last = max(needed, key=order.__getitem__, default=None)
        if place is not None and (last is None or order[last] < order[place]):
            return place
        instructions = home.instructions
        if last is None:
            return instructions[0] if instructions else None
        number = order.index(last) + 1
        return instructions[number] if number < len(instructions) else None

    def constant(self, literal: Literal, like: Instruction | None = None) -> Instruction:
        """A constant, with a layout where the module's text has layouts."""
        shape = literal.shape
        if shape.is_array and not self.has_layouts:
            shape = shape.without_layout()
        elif shape.is_array and shape.layout is None and shape.dimensions:
            shape = shape.with_default_layout()
        return self.add("constant", shape, like=like, argument=literal)

    def clone(
        self, i: Instruction, operands: Sequence[Instruction], shape: Shape | None = None
    ) -> Instruction:
        """A copy with other operands, and perhaps another shape (`CloneWithNewOperands`)."""
        wanted = shape if shape is not None else i.shape
        assert wanted is not None
        own = {k: v for k, v in own_attributes(i).items() if k not in NOT_COPIED}
        own = derived_attributes(i, i.opcode, wanted, own)
        return self.add(
            i.opcode,
            wanted,
            operands,
            attributes=own,
            argument=i.literal or i.parameter_number,
            name=i.name,
            original=i,
        )

    # ---- replacing and removing

    def replace(
        self,
        old: Instruction,
        new: Instruction,
        *,
        preserve_sharding: bool = False,
        relay_control: bool = True,
        remove_unused: bool = True,
        preserve_frontend: bool = True,
    ) -> bool:
        """Makes the users of one instruction take another, and takes out what nothing uses then.

        `HloComputation::ReplaceInstruction`; False, and nothing changed, where that gives up.
        """
        if old is new:
            return False
        theirs = new.sharding
        if preserve_sharding and theirs is not None and old.sharding is not None and theirs != old.sharding:
            return False
        if not relay_control and (old.control_predecessors or old.control_successors):
            return False
        home = old.computation
        assert home is not None
        users = [user for user in old.users if user is not new]
        try:
            replace_uses_and_control(old, new)
        except EditError:
            return False
        is_sound = old.sharding is None or not any(check_sharding(old, self._facts))
        copy_annotations(new, old, preserve_frontend=preserve_frontend, preserve_sharding=is_sound)
        for user in users:
            if user.opcode == "fusion":
                deduplicate_fusion_operands(user)
        self._drop(old, home, remove_unused)
        if old.computation is None and old.opcode == new.opcode and new.opcode != "parameter":
            with contextlib.suppress(EditError):
                new.name = old.name
        self.changed = True
        return True

    def _drop(self, old: Instruction, home: Computation, unused: bool) -> None:
        if old.computation is None or old.user_view or old.is_root:
            return
        if unused:
            self.remove_unused(old)
        elif old.opcode != "parameter":
            home.remove(old)

    def remove_unused(self, i: Instruction) -> int:
        """Takes out an instruction that nothing uses and then operands without users and effects; how many.

        `HloComputation::RemoveInstructionAndUnusedOperands`.
        """
        home = i.computation
        assert home is not None
        gone: dict[Instruction, None] = {}
        pending = [i]
        while pending:
            item = pending.pop()
            if item in gone or item.computation is not home or item.opcode == "parameter" or item.is_root:
                continue
            if any(user not in gone for user in item.user_view):
                continue
            if item.control_predecessors or item.control_successors:
                continue
            if item is not i and self.has_effect(item):
                continue
            gone[item] = None
            pending.extend(item.operands)
        if not gone:
            return 0
        with contextlib.suppress(EditError):
            home.remove_all(gone)
            return len(gone)
        return 0


def has_layouts(module: Module) -> bool:
    """True if a module's text gives arrays layouts at all."""
    for i in module.instructions():
        shape = i.shape
        if shape is None:
            continue
        for _, leaf in shape.leaves():
            if leaf.is_array and leaf.dimensions:
                return leaf.layout is not None
    return False


def is_unused(i: Instruction) -> bool:
    """True if nothing uses an instruction (`HloInstruction::IsDead`)."""
    return not i.user_view and not i.is_root


def derived_attributes(
    like: Instruction, opcode: str, shape: Shape, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The attributes of an instruction that is made after another (`HloInstruction::SetupDerivedInstruction`)."""
    found = dict(given)
    if like.shape is None or not layouts.compatible_kind(like.shape, shape):
        found.pop("sharding", None)
    elif like.sharding is not None:
        found["sharding"] = like.sharding
    for name in ("metadata", "result_accuracy"):
        value = like.attributes.get(name)
        if value is not None and (name == "metadata" or name in found or opcode == like.opcode):
            found[name] = value
    notes = like.attributes.get("frontend_attributes")
    if notes and "_xla_compute_type" in notes:
        notes = FrontendAttributes({k: v for k, v in notes.items() if k != "_xla_compute_type"})
    if notes:
        found["frontend_attributes"] = notes
    else:
        found.pop("frontend_attributes", None)
    if like.opcode == opcode and like.backend_config is not None and "backend_config" not in found:
        found["backend_config"] = like.backend_config
    return found


def copy_annotations(
    new: Instruction, old: Instruction, *, preserve_frontend: bool = True, preserve_sharding: bool = True
) -> None:
    """Copies annotations to an instruction from the one that it replaces, where it has none of its own."""
    found: dict[str, Any] = {}
    mine, theirs = new.metadata, old.metadata
    if theirs is not None and theirs.op_name and not (mine is not None and mine.op_name):
        found["metadata"] = theirs
    if preserve_frontend and old.frontend_attributes and not new.frontend_attributes:
        found["frontend_attributes"] = old.attributes["frontend_attributes"]
    if preserve_sharding and new.sharding is None and old.sharding is not None:
        found["sharding"] = old.sharding
    if found:
        with contextlib.suppress(EditError):
            new.change(attributes={**new.attributes, **found}, typed=False)


def post_order_from(i: Instruction, done: Container[Instruction]) -> Iterator[Instruction]:
    """An instruction behind all that it needs and is not done yet; each is to be done before the next is asked for."""
    pending = [i]
    while pending:
        item = pending[-1]
        needed = [o for o in item.operands if o not in done]
        if needed and item not in done:
            pending += reversed(needed)
            continue
        pending.pop()
        if item not in done:
            yield item


def replace_uses_and_control(old: Instruction, new: Instruction) -> None:
    """Makes users take another instruction, which takes over control dependencies too; the old one stays."""
    predecessors, successors = old.control_predecessors, old.control_successors
    old.replace_all_uses_with(new)
    if predecessors or successors:
        relay_control(old, new, predecessors, successors)


def relay_control(
    old: Instruction,
    new: Instruction,
    predecessors: Sequence[Instruction],
    successors: Sequence[Instruction],
) -> None:
    """Hands control dependencies from one instruction to another (`CopyAllControlDepsFrom`, `DropAllControlDeps`)."""
    for successor in successors:
        kept = [p for p in successor.control_predecessors if p is not old]
        if new is not successor and new not in kept:
            kept.append(new)
        set_control(successor, kept)
    if predecessors:
        if old.computation is not None:
            set_control(old, ())
        joined = dict.fromkeys((*new.control_predecessors, *(p for p in predecessors if p is not new)))
        set_control(new, tuple(joined))


def set_control(i: Instruction, predecessors: Sequence[Instruction]) -> None:
    """Gives an instruction these control predecessors."""
    own = {k: v for k, v in i.attributes.items() if k != CONTROL}
    if predecessors:
        left_out = [one for one in i.attributes.get(CONTROL, ()) if isinstance(one, LeftOut)]
        own[CONTROL] = (*predecessors, *left_out)
    i.change(attributes=own, typed=False)


def deduplicate_fusion_operands(fusion: Instruction) -> None:
    """Gives a fusion each operand once (`HloFusionInstruction::DeduplicateFusionOperands`)."""
    if not has_repeated_operands(fusion) or fusion.attributes.get("kind") is FusionKind.CUSTOM:
        return
    operands = fusion.operands
    callees = fusion.called_computations
    if not callees or callees[0].callers != (fusion,):
        return
    body = callees[0]
    parameters = body.parameters
    first: dict[Instruction, int] = {}
    repeated = []
    for number, operand in enumerate(operands):
        if first.setdefault(operand, number) != number:
            repeated.append((number, first[operand]))
    with contextlib.suppress(EditError):
        for number, kept in reversed(repeated):
            parameters[number].replace_all_uses_with(parameters[kept])
        remove_unused_parameters(body, [parameters[number] for number, _ in repeated])


class PostOrderVisitor(XlaEditor):
    """Comes by every instruction of a computation, operands first (`DfsHloRewriteVisitor`).

    The walk looks at operands when it first comes to an instruction, so that what a replacement makes is visited only where
    somebody else uses it too; see `HloComputation::Accept`.
    """

    def visit(self, i: Instruction) -> None:
        """Visits an instruction."""
        raise NotImplementedError

    def mark_visited(self, i: Instruction) -> None:
        """Keeps the walk from an instruction that was just made (`SetVisited`)."""
        self._visited.add(i)

    def visit_again(self, i: Instruction) -> None:
        """Lets the walk come by once more, as if an instruction were new, where something that it comes to uses it."""
        self._visited.discard(i)
        self._entered.discard(i)

    _visited: set[Instruction]
    _entered: set[Instruction]

    def run(self, computation: Computation) -> bool:
        """Visits a computation; whether anything changed."""
        self.changed = False
        visited = self._visited = set()
        entered = self._entered = set()
        starts = [i for i in computation.instructions if is_unused(i) and not i.control_successors]
        for start in (*starts, None):
            stack = [start if start is not None else computation.root]
            while stack:
                i = stack[-1]
                if i in visited or i.computation is not computation:
                    stack.pop()
                elif i in entered:
                    stack.pop()
                    visited.add(i)
                    self.place = i
                    self.visit(i)
                else:
                    entered.add(i)
                    children = (*i.operands, *i.control_predecessors)
                    stack.extend(child for child in reversed(children) if child not in entered)
        self.place = None
        return self.changed


def run_visitor(visitor: PostOrderVisitor, computations: Iterable[Computation]) -> bool:
    """Visits several computations (`DfsHloRewriteVisitor::RunOnModule`); whether anything changed."""
    changed = False
    for computation in computations:
        if len(computation):
            changed |= visitor.run(computation)
    return changed
