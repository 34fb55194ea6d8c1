"""Changing a shape and all shapes that follow from it, across computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotext.edit import values
from hlotext.edit.cloning import clone_computation
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType
from hlotext.rewrite.kit.builder import Builder, attribute_name, default_laid_out, laid_out, retyped
from hlotext.rewrite.kit.typed_numbers import START_INDICES
from hlotext.semantics.infer import Agreement, CannotInfer, ShapeInferenceError, agreement, infer_shape

MAX_CHANGES = 64
"""Times that one instruction may change before the propagation gives up: no real module needs more than a few."""


def change_shape(instruction: Instruction, shape: Shape | str) -> list[Instruction]:
    """Changes the shape of a value (usually a parameter), and propagates it to all dependent instructions.

    Updates users, callers and called computations including reducers; operand, body and result of a loop keep the same
    shape. If an element type changes, constants among the other operands are converted, and a reducer with other
    callers is copied. Properties that operands do not determine (the sizes of a reshape, the type of a convert) are
    kept. Returns the modified instructions.

    Inside `module.transaction(typed=False)`, propagation is deferred to the end of the block, so that changes that are
    only valid together can be made one by one. Raises EditError, and changes nothing, if an operation no longer accepts
    its operands.
    """
    return _change(instruction, values.shape(shape, instruction.name))


def change_operands(
    instruction: Instruction, operands: Sequence[Instruction], shape: Shape | str | None = None
) -> list[Instruction]:
    """Replaces the operands of an instruction with values of any shape, infers its shape, and propagates it.

    Propagation works as in `change_shape`; parameters of called computations get the shapes of the operands. If only a
    layout differs, a copy after the parameter keeps the old layout for its users.

    Args:
        instruction: The instruction.
        operands: All operands, in order.
        shape: The new shape; None infers it.

    Returns:
        The modified instructions.

    Raises:
        EditError: An operation no longer accepts its operands. Nothing is changed then.
    """
    return _change(instruction, _given(shape, instruction), operands=operands)


def change_attributes(
    instruction: Instruction, shape: Shape | str | None = None, **attributes: Any
) -> list[Instruction]:
    """Sets attributes of an instruction, infers its shape, and propagates it as `change_shape` does.

    Replica groups of another size resize a collective and everything that depends on it.

    Args:
        instruction: The instruction.
        shape: The new shape; None infers it.
        **attributes: Attributes by their names in HLO text, with underscores for hyphens. None removes an attribute.

    Returns:
        The modified instructions.

    Raises:
        EditError: An operation no longer accepts its operands, or the opcode does not have an attribute. Nothing is
            changed then.

    >>> import hlotext as hlo
    >>> module = hlo.parse(
    ...     "ENTRY e { x = f32[2,8] parameter(0)  s = f32[1,8] slice(x), slice={[0:1], [0:8]}  ROOT r = f32[1,8] negate(s) }"
    ... )
    >>> [i.name for i in change_attributes(module.find("s"), slice="{[0:2], [0:4]}")]
    ['s', 'r']
    """
    row = opcodes.opcode(instruction.opcode)
    given = {attribute_name(row, name): value for name, value in attributes.items()}
    attributes = {**dict(instruction.attributes), **given}
    kept = {name: value for name, value in attributes.items() if value is not None}
    return _change(instruction, _given(shape, instruction), attributes=kept)


def _given(shape: Shape | str | None, instruction: Instruction) -> Shape | None:
    return None if shape is None else values.shape(shape, instruction.name)


def _change(instruction: Instruction, shape: Shape | None, **changes: Any) -> list[Instruction]:
    """Makes one change, and lets others follow: now, or at the end of a transaction without types."""
    module = _module_of(instruction)
    untyped = module._journal.untyped if module._journal is not None else None
    with module.transaction():
        propagation = _Propagation(module) if untyped is None or untyped.follow is None else untyped.follow
        old = instruction.operands
        if changes:
            instruction.change(**changes, typed=False)
        for before, after in zip(old, instruction.operands, strict=False):
            if before is not after:
                propagation.before.setdefault(after, before.shape)
        propagation.start(instruction, shape)
        if untyped is None:
            return propagation.run()
        untyped.follow = propagation
        return [instruction]


def _module_of(instruction: Instruction) -> Module:
    computation = instruction.computation
    if computation is None or computation.module is None:
        raise EditError(f"{instruction.name} is not in a module")
    return computation.module


def _inferred(instruction: Instruction) -> Shape:
    try:
        return laid_out(infer_shape(instruction), instruction)
    except (ShapeInferenceError, CannotInfer) as error:
        raise EditError(f"{instruction.name}: {error}") from None


class _Propagation:
    """Changes on their way through a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.starts: dict[Instruction, Shape | None] = {}
        """The instructions at which changes began, with the shapes that were asked for."""
        self.changes: dict[Instruction, int] = {}
        self.before: dict[Instruction, Shape | None] = {}
        """The shapes that instructions had before they changed."""
        self.reducers: dict[tuple[Computation, tuple[ElementType, ...]], Computation] = {}
        """Copies of reducers that others call, by the types of their parameters."""
        self.pending: dict[Instruction, None] = {}

    def start(self, instruction: Instruction, shape: Shape | None) -> None:
        """Sets the shape that an instruction is given, or has by its operands if those fit already."""
        journal, starts = self.module._journal, self.starts
        if instruction in starts:
            journal.push_undo(starts.__setitem__, instruction, starts[instruction])
        else:
            journal.push_undo(starts.pop, instruction, None)
        starts[instruction] = shape
        if shape is None:
            try:
                shape = _inferred(instruction)
            except EditError:
                if journal.untyped is None and not instruction.called_computations:
                    raise
                self.pending[instruction] = None  # called computations come first
        if shape is not None:
            self.set(instruction, shape)

    def run(self) -> list[Instruction]:
        """Lets everything follow. Raises EditError for what accepts its operands no more once all have changed."""
        self.pending = {**dict.fromkeys(self.starts), **self.pending}
        refused: dict[Instruction, EditError] = {}
        steps = -1
        while self.pending:
            instruction = next(iter(self.pending))
            del self.pending[instruction]
            try:
                self.visit(instruction)
            except EditError as error:
                refused[instruction] = error  # a caller fits only once the bodies that it calls are done
            if not self.pending and refused:
                if steps == (steps := sum(self.changes.values())):
                    raise next(iter(refused.values()))
                self.pending, refused = dict.fromkeys(refused), {}
        for instruction, shape in self.starts.items():
            if shape is not None and instruction.computation is not None and not _same(instruction, shape):
                raise EditError(
                    f"{instruction.name} cannot be {shape}: its operands or callers make it {instruction.shape}"
                )
        return list(self.changes)

    def set(self, instruction: Instruction, shape: Shape) -> None:
        """Changes one shape and remembers who must look at it."""
        if instruction.literal is not None:
            raise EditError(
                f"{instruction.name} is a constant, whose value has its shape: replace it by another, "
                f"b.constant(..., {_element_name(shape)!r})"
            )
        if instruction.shape is not None and any(leaf.layout for _, leaf in instruction.shape.leaves()):
            shape = default_laid_out(shape)
        before = instruction.shape.rank if instruction.shape is not None else 0
        self.before.setdefault(instruction, instruction.shape)
        changes = self.changes.get(instruction, 0)
        if changes == MAX_CHANGES:  # not counted: `run` ends once nothing changes any more
            raise EditError(_unsettled(instruction))
        self.changes[instruction] = changes + 1
        computation = instruction.computation
        assert computation is not None
        followers = list(instruction.users)
        if instruction.is_root or instruction.opcode == "parameter":
            followers += computation.callers
        instruction.change(shape=shape, typed=False)
        if instruction.sharding is not None and shape.rank != before:
            del instruction.attributes["sharding"]  # it says how to cut dimensions that are others now
        self.pending.update(dict.fromkeys(followers))

    def visit(self, instruction: Instruction) -> None:
        """Brings parameters of called computations, and the shape of one instruction, up to date."""
        if instruction.computation is None:
            return  # it went meanwhile
        for computation, shapes in _parameters(instruction):
            parameters = computation.parameters
            if len(parameters) != len(shapes):
                raise EditError(
                    f"{instruction.name} passes {len(shapes)} values, but {computation.name} takes {len(parameters)}"
                )
            for parameter, shape in zip(parameters, shapes, strict=True):
                if shape is not None and not _same(parameter, shape):
                    self.set(parameter, shape)
                    self.pending[instruction] = None
                elif (
                    shape is not None
                    and parameter not in self.starts
                    and _has_another_layout(parameter, shape)
                ):
                    self.lay_out(parameter, shape)
        self.retype_operands(instruction)
        self.retype_reducer(instruction)
        if instruction in self.pending:
            return  # the bodies come first
        if instruction.opcode in ("parameter", "constant"):
            return
        inferred = self.product_type(instruction, _inferred(instruction))
        if not _same(instruction, inferred) or self.follows_type(instruction, inferred):
            self.set(instruction, inferred)

    def lay_out(self, parameter: Instruction, shape: Shape) -> None:
        """Gives a parameter a caller's layout; its users keep the old one."""
        if parameter not in self.before:
            inside = Builder.after(parameter).copy(parameter, shape=parameter.shape)
            for user in parameter.users:
                if user is not inside:
                    self.replace(user, parameter, inside)
        self.set(parameter, shape)

    # ---- element types

    def retyped(self, value: Instruction) -> tuple[ElementType, ElementType] | None:
        """The element type that an array had, and the one that it has now, where they differ."""
        old, new = self.before.get(value), value.shape
        if old is None or new is None or not (old.is_array and new.is_array):
            return None
        types = old.element_type, new.element_type
        return types if types[0] is not types[1] else None

    def follows_type(self, instruction: Instruction, inferred: Shape) -> bool:
        """True for a result of the type that an operand had before, where XLA would let it stay another float."""
        stated = instruction.shape
        if stated is None or stated == inferred:
            return False
        sources = [*instruction.operands, *(c.root for c in instruction.called_computations)]
        old = {types[0] for types in map(self.retyped, sources) if types is not None}
        pairs = zip(stated.leaves(), inferred.leaves(), strict=True)
        return any(a.element_type is not b.element_type and a.element_type in old for (_, a), (_, b) in pairs)

    def product_type(self, instruction: Instruction, inferred: Shape) -> Shape:
        """The result of a dot or convolution, which states its type, in that of its operands if it was theirs before."""
        is_asked_for = self.starts.get(instruction) is not None
        if is_asked_for or instruction.opcode not in traits.CONTRACTIONS or not inferred.is_array:
            return inferred
        changed = [types for types in map(self.retyped, instruction.operands[:2]) if types is not None]
        now = {o.shape.element_type for o in instruction.operands[:2] if o.shape is not None}
        is_theirs = bool(changed) and changed[0] == (inferred.element_type, *now)
        return retyped(inferred, changed[0][1]) if is_theirs else inferred

    def retype_operands(self, instruction: Instruction) -> None:
        """Converts constants among operands that had one type with another operand, which has another type now."""
        if instruction.opcode in _UNRELATED_OPERANDS:
            return
        related = instruction.operands[: START_INDICES.get(instruction.opcode)]
        changed = next((types for types in map(self.retyped, related) if types is not None), None)
        wanted = self.starts.get(instruction)
        if instruction.opcode in traits.REPEATS_ELEMENTS and wanted is not None and wanted.is_array:
            (source,) = instruction.operands
            if source.shape is not None and source.shape.is_array:
                changed = source.shape.element_type, wanted.element_type
        if changed is None or changed[0] is changed[1]:
            return
        old, new = changed
        for operand in related:
            if operand.shape is not None and operand.shape.is_array and operand.shape.element_type is old:
                converted = self.converted_constant(operand, new)
                if converted is not None:
                    self.replace(instruction, operand, converted)
                    if not (operand.users or operand.is_root):
                        _erase_chain(operand)

    def converted_constant(self, value: Instruction, type_: ElementType) -> Instruction | None:
        """A constant, or what is only a broadcast or another arrangement of one, in another type; None for other values."""
        assert value.shape is not None
        shape, b = retyped(value.shape, type_), Builder.after(value)
        if value.literal is not None:
            array = value.literal.known_array
            new = b.constant(array.astype(type_.dtype), type_, name=value.name) if array is not None else None
        elif value.opcode in traits.REPEATS_ELEMENTS:
            inner = self.converted_constant(value.operands[0], type_)
            own = {k: v for k, v in value.attributes.items() if k != "control-predecessors"}
            new = b.op(value.opcode, (inner,), shape=shape, **own) if inner is not None else None
        else:
            new = None
        if new is not None:
            self.changes[new] = 1
        return new

    def retype_reducer(self, instruction: Instruction) -> None:
        """Lets the parameters of a reducer have its operands' types; a reducer that others call is copied before."""
        if instruction.opcode not in _REDUCING or not instruction.called_computations:
            return
        (reducer,) = instruction.called_computations
        arrays = len(instruction.operands) // (
            1 if instruction.opcode in traits.REDUCES_ACROSS_DEVICES else 2
        )
        given = [self.retyped(operand) for operand in instruction.operands[: arrays or 1]]
        if not any(given) or len(reducer.parameters) % len(given):
            return
        pairs = list(zip(reducer.parameters, given * (len(reducer.parameters) // len(given)), strict=True))
        wanted = tuple(
            types[1]
            if types is not None and parameter.shape.element_type is types[0]
            else parameter.shape.element_type
            for parameter, types in pairs
            if parameter.shape is not None
        )
        if len(wanted) != len(pairs):
            return
        if all(
            p.shape is not None and p.shape.element_type is t for (p, _), t in zip(pairs, wanted, strict=True)
        ):
            return
        if len(reducer.callers) > 1:
            key = reducer, wanted
            if key not in self.reducers:
                self.reducers[key] = clone_computation(reducer)
            copy = self.reducers[key]
            attributes = {k: copy if v is reducer else v for k, v in instruction.attributes.items()}
            instruction.change(attributes=attributes, typed=False)
            reducer = copy
        for parameter, type_ in zip(reducer.parameters, wanted, strict=True):
            if parameter.shape is not None and parameter.shape.element_type is not type_:
                self.set(parameter, retyped(parameter.shape, type_))
        self.pending[instruction] = None

    def replace(self, user: Instruction, old: Instruction, new: Instruction) -> None:
        user.change(operands=[new if operand is old else operand for operand in user.operands], typed=False)


_REDUCING = traits.REDUCTIONS | traits.REDUCES_ACROSS_DEVICES
_UNRELATED_OPERANDS = (
    traits.MIXES_PRECISION | traits.BINDS_OPERANDS | traits.CONTROL_FLOW | {"tuple", "gather"}
)
"""Opcodes whose operands may have types that have nothing to do with each other."""


def _unsettled(instruction: Instruction) -> str:
    computation = instruction.computation
    if instruction.opcode == "parameter" and computation is not None:
        calls = [callee for caller in computation.callers for callee in caller.called_computations]
        if calls.count(computation) > 1:
            return f"the calls of {computation.name} pass {instruction.name} different shapes; give each its own copy"
    return f"the shape of {instruction.name} does not converge"


def _erase_chain(value: Instruction) -> None:
    """Erases what arranged a constant, and that, where nothing uses it any more."""
    while not (value.users or value.is_root):
        operands = value.operands
        value.erase()
        if not operands:
            return
        value = operands[0]


def _element_name(shape: Shape) -> str:
    return shape.element_type.name if shape.is_array else "f32"


def _has_another_layout(parameter: Instruction, shape: Shape) -> bool:
    own = parameter.shape
    if own is None or own.layout is None or shape.layout is None:
        return False
    return (own.layout.minor_to_major, own.layout.tiles) != (shape.layout.minor_to_major, shape.layout.tiles)


def _same(instruction: Instruction, shape: Shape) -> bool:
    stated = instruction.shape
    return stated is not None and agreement(instruction.opcode, stated, shape) is not Agreement.NONE


def _parameters(caller: Instruction) -> list[tuple[Computation, Sequence[Shape | None]]]:
    """Shapes that a caller passes to each computation whose parameters are its operands."""
    shapes = [operand.shape for operand in caller.operands]
    if caller.opcode in traits.BINDS_OPERANDS:
        return [(caller.called_computations[0], shapes)]
    if caller.opcode == "while":
        return [(callee, shapes) for callee in caller.called_computations]
    if caller.opcode == "conditional":
        return [
            (callee, [shape]) for callee, shape in zip(caller.called_computations, shapes[1:], strict=False)
        ]
    return []
