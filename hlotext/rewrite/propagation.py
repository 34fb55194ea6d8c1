"""Changing a shape and all shapes that follow from it, across computations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotext.edit import values
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.builder import attribute_name, default_laid_out, laid_out
from hlotext.semantics.infer import Agreement, CannotInfer, ShapeInferenceError, agreement, infer_shape

MAX_CHANGES = 64
"""Times that one instruction may change before the propagation gives up: no real module needs more than a few."""


def change_shape(instruction: Instruction, shape: Shape | str) -> list[Instruction]:
    """Gives a value (a parameter, most of the time) another shape, and every shape that follows from it.

    Follows users, callers and called computations; loops keep one shape for operand, body and result. Shapes that an
    instruction alone states (a reshape's sizes) stay. Raises EditError, and changes nothing, where an operation does not
    accept its operands any more. Returns the instructions that changed. Inside `module.transaction(typed=False)` the others
    follow at its end, so that several changes that are right only together can be made one after the other.
    """
    return _change(instruction, values.shape(shape, instruction.name))


def change_operands(
    instruction: Instruction, operands: Sequence[Instruction], shape: Shape | None = None
) -> list[Instruction]:
    """Gives an instruction operands of any shape, infers its own, and propagates it as `change_shape` does."""
    return _change(instruction, shape, operands=operands)


def change_attributes(
    instruction: Instruction, shape: Shape | None = None, **attributes: Any
) -> list[Instruction]:
    """Gives an instruction other attributes, infers its shape, and propagates it as `change_shape` does.

    Replica groups of another size resize a collective with all that uses it. None takes an attribute away; names are those of
    the text, with underscores.

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
    return _change(instruction, shape, attributes=kept)


def _change(instruction: Instruction, shape: Shape | None, **changes: Any) -> list[Instruction]:
    """Makes one change, and lets others follow: now, or at the end of a transaction without types."""
    module = _module_of(instruction)
    untyped = module._journal.untyped if module._journal is not None else None
    with module.transaction():
        if changes:
            instruction.change(**changes, typed=False)
        propagation = _Propagation(module) if untyped is None or untyped.follow is None else untyped.follow
        propagation.start(instruction, shape)
        if untyped is None:
            return propagation.run()
        untyped.follow = propagation
        return [instruction]


def _module_of(instruction: Instruction) -> Module:
    computation = instruction.computation
    if computation is None or computation.module is None:
        raise EditError(f"{instruction.name} is in no module")
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
                if journal.untyped is None:
                    raise
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
                raise EditError(f"{instruction.name} is {instruction.shape} by what it is given, not {shape}")
        return list(self.changes)

    def set(self, instruction: Instruction, shape: Shape) -> None:
        """Changes one shape and remembers who must look at it."""
        if instruction.literal is not None:
            raise EditError(f"{instruction.name} is a constant: its value has its shape")
        if instruction.shape is not None and any(leaf.layout for _, leaf in instruction.shape.leaves()):
            shape = default_laid_out(shape)
        before = instruction.shape.rank if instruction.shape is not None else 0
        self.changes[instruction] = self.changes.get(instruction, 0) + 1
        if self.changes[instruction] > MAX_CHANGES:
            raise EditError(f"the shape of {instruction.name} does not settle")
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
        if instruction in self.pending:
            return  # the bodies come first
        if instruction.opcode in ("parameter", "constant"):
            return
        inferred = _inferred(instruction)
        if not _same(instruction, inferred):
            self.set(instruction, inferred)


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
