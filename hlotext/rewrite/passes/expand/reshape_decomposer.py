"""Reshapes made bitcasts."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext import layout as layouts
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.drivers import PostOrder
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.properties import LAYOUTS, is_plain


@attrs.frozen
class ReshapeDecomposer(Pass):
    """Turns every reshape into a bitcast, with a copy where data must move.

    XLA's `ReshapeDecomposer`: a reshape whose layouts allow it becomes a bitcast; otherwise the operand is copied to the
    layout aligned with the result, or the result is copied from the layout aligned with the operand, or both pass through
    descending layouts.
    """

    name: ClassVar[str] = "reshape-decomposer"
    summary: ClassVar[str] = "Decomposes reshapes into bitcasts, with a copy where data moves."
    requires = (LAYOUTS,)

    def run(self, module: Module) -> PassResult:
        decomposer = _Decomposer(module)
        walk = PostOrder(decomposer.visit)
        for computation in nonfusion_computations(module):
            walk.walk(computation)
        return PassResult.of({"bitcasts": decomposer.bitcasts, "copies": decomposer.copies})


class _Decomposer(Editor):
    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.bitcasts = self.copies = 0

    def visit(self, i: Instruction) -> None:
        """`ReshapeDecomposerVisitor::HandleReshape`."""
        if i.opcode != "reshape" or i.shape is None:
            return
        self.place = i
        operand, result = i.operands[0], i.shape
        source = operand.shape
        if source is None or not (_has_order(source) and _has_order(result)):
            return
        if layouts.reshape_is_bitcast(source, result):
            new = self._bitcast(operand, result)
        elif (aligned := layouts.align_layouts(result, source)) is not None:
            new = self._bitcast(self._copy(operand, aligned), result)
        elif (aligned := layouts.align_layouts(source, result)) is not None:
            new = self._copy(self._bitcast(operand, aligned), result)
        else:
            flat = self._copy(operand, self.shape(source.element_type, source.dimensions))
            new = self._copy(self._bitcast(flat, self.shape(result.element_type, result.dimensions)), result)
        self.replace(i, new)

    def _bitcast(self, value: Instruction, shape: Shape) -> Instruction:
        self.bitcasts += 1
        return self.create("bitcast", shape, (value,), metadata=value.metadata)

    def _copy(self, value: Instruction, shape: Shape) -> Instruction:
        self.copies += 1
        return self.create("copy", shape, (value,), like=value)


def _has_order(shape: Shape) -> bool:
    return not shape.dimensions or is_plain(shape)
