"""Edits with the semantics of XLA's computations: creating, cloning, replacing and removing instructions.

Rules and passes share these: what a new instruction takes over from an old one, and what goes with an instruction that
nothing uses any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hlotext import layout as layouts
from hlotext.edit import structure
from hlotext.edit.cloning import own_attributes
from hlotext.edit.parameters import remove_unused_parameters
from hlotext.ir.errors import EditError
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.operand_index import has_repeated_operands
from hlotext.ir.values.enums import FusionKind
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.ir.values.types import ElementType, TypeKind
from hlotext.rewrite.kit.annotations import NOT_COPIED, copy_annotations, derived_attributes
from hlotext.rewrite.kit.control import replace_uses_and_control
from hlotext.rewrite.kit.facts import moves_nothing, shape_of, static
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.shardings import check_sharding

if TYPE_CHECKING:
    import numpy as np
else:
    np = late_module("numpy")


class Editor:
    """Edits a module with the operations of XLA's `HloComputation` and `HloInstruction`.

    New instructions are inserted before the instruction `place`, or after their last operand if it comes later.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] sine(x) }")
    >>> root = module.entry.root
    >>> Editor(module).replace_with_new(root, "cosine", root.operands)
    True
    >>> print(module.entry.root)
    ROOT cosine = f32[4] cosine(x)
    """

    def __init__(self, module: Module, *, is_layout_sensitive: bool = False) -> None:
        expect_module(module)
        self.module = module
        self.place: Instruction | None = None
        """New instructions are inserted before this one; None inserts them after their operands."""
        self.changed = False
        """True once `replace` has changed the module."""
        self.is_layout_sensitive = is_layout_sensitive
        """True if a value may replace another only with the same layout, in a module with layouts."""
        self.has_layouts = has_layouts(module)
        self._effects: dict[Computation, bool] = {}
        self._facts = VerifierOptions(False, True, num_partitions=module.attributes.get("num_partitions", 1))

    def has_effect(self, i: Instruction) -> bool:
        """Returns True if an instruction or one of its callees has side effects (`HloInstruction::HasSideEffect`)."""
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
        """Creates an array shape, with the descending layout if the module has layouts (`ShapeUtil::MakeShape`)."""
        sizes = tuple(dimensions)
        layout = default_layout(len(sizes)) if sizes and self.has_layouts else None
        return Shape(element_type, sizes, layout=layout)

    # ---- new instructions

    def create(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[Instruction] = (),
        *,
        like: Instruction | None = None,
        argument: int | Literal | None = None,
        computation: Computation | None = None,
        name: str | None = None,
        original: Instruction | None = None,
        **attributes: Any,
    ) -> Instruction:
        """Creates an instruction and returns it (`HloComputation::AddInstruction`). Attributes that are None are omitted.

        Args:
            opcode: The opcode.
            shape: The result shape.
            operands: The operands, in order.
            like: Instruction to copy sharding, metadata and frontend attributes from (`SetupDerivedInstruction`); None
                copies nothing.
            argument: The literal of a constant, or the number of a parameter.
            computation: The computation to insert into. None (the default) uses the computation of `place`, or else
                that of the operands.
            name: Requested name, made unique. None (the default) uses the opcode.
            original: The instruction that this is a copy of, if any; its opcode may then be unknown.
            attributes: Attributes by name.
        """
        home = computation
        if home is None and self.place is not None:
            home = self.place.computation
        if home is None and operands:
            home = operands[0].computation
        assert home is not None
        given = {key: value for key, value in attributes.items() if value is not None}
        if like is not None:
            had_sharding = "sharding" in given
            given = derived_attributes(like, opcode, shape, given)
            if not had_sharding and opcode in ("reshape", "transpose"):
                given.pop("sharding", None)
        unique = self.module.instruction_names.unique(name or opcode)
        new = Instruction(unique, opcode, shape, tuple(operands), given, argument)
        if like is not None and "sharding" in given and any(check_sharding(new, self._facts)):
            # A sharding for another rank, or for devices that the module lacks, is not handed on.
            del given["sharding"]
            new = Instruction(unique, opcode, shape, tuple(operands), given, argument)
        structure.add(home, new, self._before(home, new), typed=False, original=original)
        return new

    def create_like(
        self,
        like: Instruction,
        opcode: str,
        shape: Shape,
        operands: Sequence[Instruction] = (),
        **settings: Any,
    ) -> Instruction:
        """Creates an instruction with annotations copied from `like` (`HloInstruction::AddInstruction`).

        Further keywords are those of `create`.
        """
        return self.create(opcode, shape, operands, like=like, **settings)

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

    def clone(
        self, i: Instruction, operands: Sequence[Instruction], shape: Shape | None = None
    ) -> Instruction:
        """Returns a clone of an instruction with other operands, and optionally another shape (`CloneWithNewOperands`)."""
        wanted = shape if shape is not None else shape_of(i)
        own = {k: v for k, v in own_attributes(i).items() if k not in NOT_COPIED}
        own = derived_attributes(i, i.opcode, wanted, own)
        argument = i.literal or i.parameter_number
        return self.create(i.opcode, wanted, operands, argument=argument, name=i.name, original=i, **own)

    def copy_annotations_from(self, like: Instruction, new: Instruction) -> Instruction:
        """Copies sharding, metadata and frontend attributes from `like` to `new`, and returns `new`.

        Corresponds to XLA's `HloInstruction::SetupDerivedInstruction`.
        """
        own = dict(new.attributes)
        new.change(attributes=derived_attributes(like, new.opcode, shape_of(new), own), typed=False)
        return new

    def number(self, like: Instruction, value: Any, type_: ElementType) -> Instruction:
        """Creates a scalar constant of a type, with annotations copied from `like`. Integers wrap around."""
        array = np.asarray(value)
        if array.dtype.kind in "iu" and type_.is_integral:
            array = _wrapped(array, type_)
        literal = Literal.from_array(array.astype(type_.dtype).reshape(()), Shape(type_))
        return self.create_like(like, "constant", Shape(type_), argument=literal)

    def scalar_like(self, base: Instruction, value: float) -> Instruction:
        """Creates a constant, broadcast to the shape of `base`, with its annotations (`MakeScalarLike`)."""
        shape = static(shape_of(base))
        scalar = self.number(base, value, shape.element_type)
        if not shape.dimensions:
            return scalar
        return self.create_like(base, "broadcast", shape, (scalar,), dimensions=())

    def zeros(self, shape: Shape) -> Instruction:
        """Creates a broadcast of a zero to a shape (`BroadcastZeros`). Dynamic dimensions have their bounds."""
        plain = static(shape).with_default_layout() if self.has_layouts else static(shape)
        literal = Literal.from_array(np.zeros((), shape.element_type.dtype), Shape(shape.element_type))
        zero = self.create("constant", Shape(shape.element_type), argument=literal)
        return self.create("broadcast", plain, (zero,), dimensions=())

    def binary(self, opcode: str, x: Instruction, y: Instruction) -> Instruction:
        """Creates an elementwise operation on two values, with the shape of `x` (`MakeBinaryHlo`)."""
        return self.create(opcode, shape_of(x), (x, y))

    def reshape(self, shape: Shape, x: Instruction) -> Instruction:
        """Creates a reshape of `x` to a shape, with annotations copied from `x` (`MakeReshapeHlo`)."""
        return self.create_like(x, "reshape", shape, (x,))

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
        """Replaces all uses of one instruction with another, and removes instructions that become unused.

        Corresponds to XLA's `HloComputation::ReplaceInstruction`.

        Args:
            old: The instruction to replace.
            new: Its replacement.
            preserve_sharding: Do not replace an instruction with one of another sharding.
            relay_control: Transfer control dependencies to `new`; otherwise instructions with any are not replaced.
            remove_unused: Remove `old`, and operands that become unused.
            preserve_frontend: Copy the frontend attributes of `old` if `new` has none.

        Returns:
            True if the instruction was replaced. Otherwise nothing is changed: an option forbids it, or the edit is
            invalid.
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

    def replace_with_new(
        self,
        old: Instruction,
        opcode: str,
        operands: Sequence[Instruction],
        shape: Shape | None = None,
        *,
        relay_control: bool = False,
        **settings: Any,
    ) -> bool:
        """Replaces an instruction with a new one, by default of the same shape (`ReplaceWithNewInstruction`).

        Further keywords are those of `create`. Returns False if the instruction has control dependencies, unless
        `relay_control` is set, or if the replacement is invalid; the new instruction is then left unused.
        """
        if not relay_control and (old.control_predecessors or old.control_successors):
            return False
        new = self.create(opcode, shape if shape is not None else shape_of(old), operands, **settings)
        return self.replace(old, new, relay_control=relay_control)

    def replace_if_compatible(self, old: Instruction, new: Instruction) -> bool:
        """Replaces an instruction if shapes are equal and no sharding is lost (`ReplaceInstructionIfCompatible`).

        Returns False, without changes, otherwise, and if the instruction has control predecessors.
        """
        if old.control_predecessors or not self.same_shape(shape_of(old), shape_of(new)):
            return False
        return self.replace(old, new, preserve_sharding=True)

    def replace_with_bitcast(self, i: Instruction, operand: Instruction | None = None) -> bool:
        """Replaces an instruction with a bitcast of `operand`, by default its first operand (`ReplaceWithBitcast`).

        Returns False if the replacement is invalid; the bitcast is then left unused.
        """
        value = operand if operand is not None else i.operands[0]
        return self.replace(i, self.create_like(i, "bitcast", shape_of(i), (value,)))

    def replace_uses(self, old: Instruction, new: Instruction) -> bool:
        """Replaces all uses of an instruction without removing it (`ReplaceAllUsesWith`).

        Returns False, without changes, if the edit is rejected.
        """
        with contextlib.suppress(EditError):
            old.replace_all_uses_with(new)
            return True
        return False

    def set_operands(self, i: Instruction, operands: Sequence[Instruction]) -> bool:
        """Replaces all operands of an instruction (`ReplaceOperandWith`).

        Returns False, without changes, if the edit is rejected.
        """
        with contextlib.suppress(EditError):
            i.change(operands=operands, typed=False)
            return True
        return False

    def same_shape(self, a: Shape, b: Shape) -> bool:
        """Returns True if two shapes are equal, ignoring layouts unless the module is layout-sensitive (`SameShape`)."""
        if self.is_layout_sensitive:
            return layouts.shapes_equal(a, b) if self.has_layouts else a == b
        return a.text_without_layout() == b.text_without_layout()

    def reshape_is_bitcast(self, source: Shape, target: Shape) -> bool:
        """Returns True if layouts are final and the reshape is a bitcast (`ReshapeIsBitcast`)."""
        return self.is_layout_sensitive and moves_nothing(source, target)

    def _drop(self, old: Instruction, home: Computation, unused: bool) -> None:
        if old.computation is None or old.user_view or old.is_root:
            return
        if unused:
            self.remove_unused(old)
        elif old.opcode != "parameter":
            home.remove(old)

    def remove_unused(self, i: Instruction) -> int:
        """Removes an unused instruction, then operands that became unused and have no side effects.

        Returns the number of removed instructions. Corresponds to XLA's
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
    """Returns True if arrays of the module have layouts."""
    for i in module.instructions():
        shape = i.shape
        if shape is None:
            continue
        for _, leaf in shape.leaves():
            if leaf.is_array and leaf.dimensions:
                return leaf.layout is not None
    return False


def post_order_from(i: Instruction, done: Container[Instruction]) -> Iterator[Instruction]:
    """Yields an instruction after all of its operands that are not in `done`, in post-order. The caller adds each to
    `done`.
    """
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


def deduplicate_fusion_operands(fusion: Instruction) -> None:
    """Removes repeated operands of a fusion (`HloFusionInstruction::DeduplicateFusionOperands`)."""
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


def _wrapped(array: np.ndarray[Any, Any], type_: ElementType) -> np.ndarray[Any, Any]:
    """Whole numbers as they are in a type of so many bits."""
    value = int(array) & ((1 << type_.bits) - 1)
    if type_.kind is TypeKind.SIGNED and value >> (type_.bits - 1):
        value -= 1 << type_.bits
    return np.asarray(value, np.int64 if value < 0 else np.uint64)
