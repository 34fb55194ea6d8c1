"""Reshapes and transposes moved behind the elementwise operations that take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.layout.permutations import inverse
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Pass, PassResult, is_platform, nonfusion_computations
from hlotext.rewrite.passes.compilation_stage import computes_in_bf16
from hlotext.rewrite.passes.properties import NOT_SCHEDULED
from hlotext.rewrite.passes.simplify.dimensions import is_identity, left_unmodified


@attrs.frozen
class ReshapeMover(Pass):
    """Moves reshapes and transposes past elementwise operations (XLA's `ReshapeMover`).

    `add(reshape(x), reshape(y))` becomes `reshape(add(x, y))`. An operation qualifies if all its operands are rearranged the
    same way, or are as cheap to produce in the other shape: constants, broadcasts, a random number with one use. Those, and
    transposed operands, get an explicit inverse reshape or transpose, which `algsimp` removes. All users of a rearranged
    operand must qualify, since otherwise nothing is saved. Runs one round; XLA repeats the pass.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[2,3] parameter(0)  y = f32[2,3] parameter(1)  a = f32[6] reshape(x)"
    ...     "  b = f32[6] reshape(y)  ROOT r = f32[6] add(a, b) }")
    >>> ReshapeMover().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root, m.entry.root.operands[0], sep="; ")
    ROOT reshape = f32[6] reshape(r.1); r.1 = f32[2,3] add(x, y)
    """

    name: ClassVar[str] = "reshape-mover"
    summary: ClassVar[str] = "Sinks reshapes and transposes below elementwise operations."
    requires = (NOT_SCHEDULED,)
    is_one_round: ClassVar[bool] = True

    reshape_of_1d_broadcast_is_cheap: bool = False
    """Also takes broadcasts of more than a number, where their dimensions stay whole, as always for GPU."""
    platform: str = attrs.field(default="", validator=is_platform)
    """`cpu`, `gpu` or `tpu`; empty: GPU where the text adds or multiplies bf16, which the CPU compiler has widened before,
    else all others."""

    def run(self, module: Module) -> PassResult:
        is_gpu = self.platform == "gpu" or (self.platform in ("", "auto") and computes_in_bf16(module))
        mover = _Mover(module, self.reshape_of_1d_broadcast_is_cheap or is_gpu)
        return PassResult.of({"instructions": sum(map(mover.move_all, nonfusion_computations(module)))})


class _Mover(Editor):
    def __init__(self, module: Module, broadcasts_are_cheap: bool) -> None:
        super().__init__(module)
        self.broadcasts_are_cheap = broadcasts_are_cheap

    def move_all(self, computation: Computation) -> int:
        """`ReshapeMover::TryReshapeMoveOnCandidates`; how many operations it took."""
        found = {i: None for i in computation.instructions if self._is_candidate(i)}
        moved = dict.fromkeys(o for i in found for o in i.operands if is_rearrange(o))
        pending = list(moved)
        while pending:
            operand = pending.pop()
            if all(user in found for user in operand.users):
                continue
            for user in operand.users:
                if user in found:
                    del found[user]
                    pending += [o for o in user.operands if is_rearrange(o)]
        for i in found:
            self.place = i
            self._sink(i)
        return len(found)

    def _is_candidate(self, i: Instruction) -> bool:
        """`ReshapeMover::IsReshapeMoveCandidate`."""
        if i.opcode not in ELEMENTWISE or i.shape is None or not i.operands:
            return False
        if i.control_predecessors or i.control_successors:
            return False
        if i.opcode == "bitcast-convert" and i.shape.dimensions != _sizes(i.operands[0]):
            return False
        rearrange = self._first_rearrange(i.operands)
        if rearrange is None:
            return False
        return all(
            same_rearrange(o, rearrange) if is_rearrange(o) else self._is_trivial(o, rearrange)
            for o in i.operands
        )

    def _first_rearrange(self, operands: Sequence[Instruction]) -> Instruction | None:
        """The first operand whose rearrangement is worth moving (`FirstNontrivialRearrange`).

        None if it undoes what an earlier run has put in front of it, which the simplifier takes out.
        """
        found = next(
            (o for o in operands if is_rearrange(o) and not self._is_trivial(o.operands[0], o)), None
        )
        return None if found is not None and _undoes(found) else found

    def _is_trivial(self, i: Instruction, rearrange: Instruction) -> bool:
        """True if a value can be had in the sizes before a rearrangement at no cost (`CanTriviallyRearrange`)."""
        before, after = rearrange.operands[0].shape, rearrange.shape
        if before is None or after is None or not (before.is_static and after.is_static):
            return False
        if rearrange.opcode == "reshape" and before.dimensions == after.dimensions:
            return before == after
        order = tuple(rearrange.attributes.get("dimensions", ()))
        if rearrange.opcode == "transpose" and is_identity(order):
            return True
        if i.opcode == "constant":
            return True
        if i.opcode == "rng":
            return len(i.user_view) == 1
        if i.opcode != "broadcast":
            return False
        dimensions = tuple(i.attributes.get("dimensions", ()))
        if list(dimensions) != sorted(dimensions):
            return False
        if rearrange.opcode == "reshape":
            inner = i.operands[0].shape
            return inner is not None and (
                not inner.dimensions
                or (
                    self.broadcasts_are_cheap
                    and (
                        inner.true_rank <= 1
                        or left_unmodified(after.dimensions, before.dimensions, dimensions) is not None
                    )
                )
            )
        places = [order[d] for d in dimensions]
        return places == sorted(places)

    def _sink(self, i: Instruction) -> None:
        """Computes in the sizes before the rearrangement, and rearranges the result (`SinkRearrangeOperands`)."""
        rearrange = self._first_rearrange(i.operands)
        if rearrange is None or i.shape is None:
            return
        source = rearrange.operands[0].shape
        assert source is not None
        operands = [self._undo(rearrange, o) for o in i.operands]
        inner = self.clone(i, operands, retyped(source, i.shape.element_type))
        if "sharding" in inner.attributes:
            del inner.attributes["sharding"]
        order = rearrange.attributes["dimensions"] if rearrange.opcode == "transpose" else None
        outer = self.create(rearrange.opcode, i.shape, (inner,), dimensions=order)
        self.replace(i, outer, relay_control=False)

    def _undo(self, rearrange: Instruction, operand: Instruction) -> Instruction:
        """An operand in the sizes before the rearrangement (`ApplyInverseRearrange`)."""
        shape = operand.shape
        assert shape is not None
        if shape.dimensions != _sizes(rearrange):
            return operand  # a clamp's bounds may be scalars
        if rearrange.opcode == "reshape":
            source = rearrange.operands[0].shape
            assert source is not None
            wanted = retyped(source, shape.element_type)
            if shape == wanted:
                return operand
            if operand.opcode == "reshape" and operand.operands[0].shape == wanted:
                return operand.operands[0]
            return self.create("reshape", wanted, (operand,), like=operand)
        order = tuple(rearrange.attributes["dimensions"])
        if is_identity(order):
            return operand
        back = inverse(order)
        return self.create("transpose", transposed(shape, back), (operand,), like=operand, dimensions=back)


def is_rearrange(i: Instruction) -> bool:
    """Returns True for a reshape or a transpose."""
    return i.opcode in ("reshape", "transpose")


def _undoes(i: Instruction) -> bool:
    """True if a transpose inverts the one before it."""
    inner = i.operands[0]
    if i.opcode != "transpose" or inner.opcode != "transpose":
        return False
    return tuple(inner.attributes["dimensions"]) == inverse(tuple(i.attributes["dimensions"]))


def same_rearrange(a: Instruction, b: Instruction) -> bool:
    """Returns True if two reshapes or transposes do the same (`AreEquivalentRearranges`)."""
    if a.opcode != b.opcode or _sizes(a) != _sizes(b):
        return False
    if a.opcode == "transpose":
        return tuple(a.attributes["dimensions"]) == tuple(b.attributes["dimensions"])
    return _sizes(a.operands[0]) == _sizes(b.operands[0])


def transposed(shape: Shape, order: Sequence[int]) -> Shape:
    """Returns the shape whose dimension i is `order[i]` of this one, laid out so that no element moves.

    Corresponds to `ShapeInference::InferTransposeShape`.
    """
    sizes = tuple(shape.dimensions[d] for d in order)
    dynamic = tuple(shape.dynamic_dimensions[d] for d in order)
    layout = shape.layout
    if layout is not None:
        back = inverse(order)
        layout = attrs.evolve(layout, minor_to_major=tuple(back[d] for d in layout.minor_to_major))
    return Shape(shape.element_type, sizes, dynamic, layout)


def _sizes(i: Instruction) -> tuple[int, ...] | None:
    return i.shape.dimensions if i.shape is not None else None
