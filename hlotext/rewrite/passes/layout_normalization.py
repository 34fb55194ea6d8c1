"""Layouts made explicit: descending ones, with bitcasts at the borders."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext import layout as layouts
from hlotext import matchers as m
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.rewrite.builder import Builder, retyped
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.properties import DESCENDING, LAYOUTS, NORMALIZED, is_descending, is_plain
from hlotext.rewrite.rewriter import Rewrite, apply_rules, pattern, remove_dead_operands


@attrs.frozen
class LayoutNormalization(Pass):
    """Computes elementwise operations in descending layouts (XLA's `LayoutNormalization`).

    `f32[10,20,30]{2,0,1}` becomes `f32[20,10,30]{2,1,0}`: the dimensions in the order in which they lie in memory. Operands
    and results pass through bitcasts, which move nothing; a bitcast of a bitcast is one. An operand in another layout than
    the result is transposed, as a copy into another layout is. Results with tiles stay, as do bodies of fusions.
    """

    name: ClassVar[str] = "layout-normalization"
    summary: ClassVar[str] = "Computes in descending layouts, with bitcasts at the borders."
    requires = (LAYOUTS,)
    ensures = (DESCENDING,)

    def run(self, module: Module) -> PassResult:
        count = 0
        chosen = nonfusion_computations(module)
        for computation in chosen:
            for instruction in computation.instructions:
                count += self._normalize(instruction)
        counts = {"instructions": count, **apply_rules(module, BITCASTS, computations=chosen)}
        return PassResult.of(counts)

    def _normalize(self, i: Instruction) -> int:
        shape = i.shape
        if i.opcode not in NORMALIZED or not is_plain(shape) or is_descending(shape):
            return 0
        b = Builder.before(i)
        inputs = [_normal_operand(b, operand, shape) for operand in i.operands]
        own = {k.replace("-", "_"): v for k, v in i._attributes.items() if k not in ("sharding", "metadata")}
        new = b.op(i.opcode, inputs, shape=layouts.normalize(shape), **own)
        i.replace_with(b.bitcast(new, shape))
        return 1


def _normal_operand(b: Builder, operand: Instruction, result: Shape) -> Instruction:
    """An operand with its dimensions in the order in which those of the result lie in memory."""
    shape = operand.shape
    if shape is None or not shape.rank:
        return operand
    if not is_plain(shape):
        shape = retyped(result, shape.element_type).with_layout(default_layout(shape.rank))
        operand = b.op("copy", (operand,), shape=shape)
    normal, wanted = layouts.normalize(shape), layouts.normalize(retyped(result, shape.element_type))
    lies = layouts.major_to_minor(shape)
    order = tuple(lies.index(d) for d in layouts.major_to_minor(result))
    value = b.bitcast(operand, normal)
    return value if order == tuple(sorted(order)) else b.transpose(value, shape=wanted, dimensions=order)


@pattern(m.bitcast(m.bitcast(m.op("x"))))
def bitcast_twice(r: Rewrite) -> Instruction | None:
    """bitcast(bitcast(x)) => bitcast(x)"""
    return r.b.bitcast(r["x"], shape=r.instruction.shape)  # type: ignore[arg-type]


@pattern(m.bitcast(m.op("x")))
def bitcast_to_same(r: Rewrite) -> Instruction | None:
    """bitcast(x) => x, where shape and layout are the same"""
    return r["x"] if str(r["x"].shape) == str(r.instruction.shape) else None


BITCASTS = (bitcast_twice, bitcast_to_same)


@attrs.frozen
class BitcastSimplifier(Pass):
    """Reshapes and transposes that move nothing in memory become bitcasts, and bitcasts in a row one.

    The bitcast part of XLA's `AlgebraicSimplifier` in its layout-sensitive mode.
    """

    name: ClassVar[str] = "bitcast-simplifier"
    summary: ClassVar[str] = "Makes what moves nothing in memory a bitcast."
    requires = (LAYOUTS,)

    def run(self, module: Module) -> PassResult:
        count = 0
        chosen = nonfusion_computations(module)
        for computation in chosen:
            for i in computation.instructions:
                if i.opcode not in ("reshape", "transpose") or not is_plain(i.shape):
                    continue
                source = i.operands[0].shape
                if not is_plain(source) or not _moves_nothing(i, source):
                    continue
                value = i.operands[0]
                i.replace_with(Builder.before(i).bitcast(value, i.shape))
                remove_dead_operands([value])
                count += 1
        return PassResult.of({"instructions": count, **apply_rules(module, BITCASTS, computations=chosen)})


def _moves_nothing(i: Instruction, source: Shape) -> bool:
    assert i.shape is not None
    if i.opcode == "reshape":
        return layouts.reshape_is_bitcast(source, i.shape)
    return layouts.transpose_is_bitcast(source, i.shape, i.attributes["dimensions"])
