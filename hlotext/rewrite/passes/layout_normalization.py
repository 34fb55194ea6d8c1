"""Layouts made explicit: descending ones, with bitcasts at the borders."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext import layout as layouts
from hlotext import matchers as m
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.ir.opcodes import ELEMENTWISE
from hlotext.ir.shape import Shape, default_layout
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.properties import DESCENDING, LAYOUTS
from hlotext.rewrite.rewriter import Rewrite, apply_rules, pattern, remove_dead_operands

NORMALIZED = ELEMENTWISE | {"copy"}
"""Opcodes that the pass computes in descending layouts."""


def _is_plain(shape: Shape | None) -> bool:
    """Whether a shape is an array whose layout is an order of dimensions and nothing else."""
    if shape is None or not shape.is_array or shape.layout is None or not shape.is_static:
        return False
    plain = attrs.evolve(shape.layout, minor_to_major=(), memory_space=0)
    return plain == attrs.evolve(default_layout(0), minor_to_major=())


def _normal(shape: Shape) -> Shape:
    """The descending shape that is the same in memory (`ShapeUtil::MakeShapeWithDescendingLayoutAndSamePhysicalLayout`)."""
    assert shape.layout is not None
    normal = layouts.normalize(shape)
    assert normal.layout is not None
    return normal


@attrs.frozen
class LayoutNormalization(Pass):
    """Computes elementwise operations in descending layouts (XLA's `LayoutNormalization`).

    `f32[10,20,30]{2,0,1}` becomes `f32[20,10,30]{2,1,0}`: the dimensions in the order in which they lie in memory. Operands
    and results pass through bitcasts, which move nothing; a bitcast of a bitcast is one. Only operations whose operands and
    result have one layout, without tiles, are taken; bodies of fusions stay.
    """

    name: ClassVar[str] = "layout-normalization"
    summary: ClassVar[str] = "Computes in descending layouts, with bitcasts at the borders."
    requires = (LAYOUTS,)
    ensures = (DESCENDING,)

    def run(self, module: Module) -> PassResult:
        count = 0
        chosen = [c for c in module.computations if not c.is_fusion_body and not c.is_implicit]
        for computation in chosen:
            for instruction in computation.instructions:
                count += self._normalize(instruction)
        counts = {"instructions": count, **apply_rules(module, BITCASTS, computations=chosen)}
        return PassResult.of(counts)

    def _normalize(self, i: Instruction) -> int:
        if i.opcode not in NORMALIZED or not _is_plain(i.shape):
            return 0
        shape = i.shape
        assert shape is not None and shape.layout is not None  # noqa: PT018 - narrows both for mypy
        order = shape.layout.minor_to_major
        if order == default_layout(shape.rank).minor_to_major:
            return 0
        operands = [o for o in i.operands if o.shape is not None and o.shape.rank]
        if any(not _is_plain(o.shape) or o.shape.layout.minor_to_major != order for o in operands):  # type: ignore[union-attr]
            return 0
        b = Builder.before(i)
        inputs = [b.bitcast(o, _normal(o.shape)) if o in operands and o.shape else o for o in i.operands]
        own = {k.replace("-", "_"): v for k, v in i._attributes.items() if k not in ("sharding", "metadata")}
        new = b.op(i.opcode, inputs, shape=_normal(shape), **own)
        i.replace_with(b.bitcast(new, shape))
        return 1


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
class ReshapeDecomposer(Pass):
    """Makes every reshape one that moves nothing: a bitcast, with a copy to a descending layout where needed.

    XLA's `ReshapeDecomposer`: where the layouts make a reshape a bitcast it becomes one; else operand or result, or both,
    are copied to the descending layout, in which every reshape is a bitcast.
    """

    name: ClassVar[str] = "reshape-decomposer"
    summary: ClassVar[str] = "Makes reshapes bitcasts, with copies where they move elements."
    requires = (LAYOUTS,)

    def run(self, module: Module) -> PassResult:
        counts = {"bitcasts": 0, "copies": 0}
        for computation in module.computations:
            if computation.is_fusion_body or computation.is_implicit:
                continue
            for i in computation.instructions:
                source = i.operands[0].shape if i.opcode == "reshape" else None
                if i.shape is None or source is None or not (_is_plain(source) and _is_plain(i.shape)):
                    continue
                b, value = Builder.before(i), i.operands[0]
                if not layouts.is_bitcast(source, i.shape):
                    value = self._descending(b, value, counts)
                    flat = i.shape.with_layout(default_layout(i.shape.rank))
                    new = b.bitcast(value, flat)
                    if str(flat) != str(i.shape):
                        new = b.op("copy", (new,), shape=i.shape)
                        counts["copies"] += 1
                else:
                    new = b.bitcast(value, i.shape)
                i.replace_with(new)
                counts["bitcasts"] += 1
        return PassResult.of(counts)

    def _descending(self, b: Builder, value: Instruction, counts: dict[str, int]) -> Instruction:
        shape = value.shape
        assert shape is not None
        flat = shape.with_layout(default_layout(shape.rank))
        if str(flat) == str(shape):
            return value
        counts["copies"] += 1
        return b.op("copy", (value,), shape=flat)


@attrs.frozen
class BitcastSimplifier(Pass):
    """Reshapes, transposes and copies that move nothing in memory become bitcasts, and bitcasts in a row one.

    The bitcast part of XLA's `AlgebraicSimplifier` in its layout-sensitive mode.
    """

    name: ClassVar[str] = "bitcast-simplifier"
    summary: ClassVar[str] = "Makes what moves nothing in memory a bitcast."
    requires = (LAYOUTS,)

    def run(self, module: Module) -> PassResult:
        count = 0
        chosen = [c for c in module.computations if not c.is_fusion_body and not c.is_implicit]
        for computation in chosen:
            for i in computation.instructions:
                if i.opcode not in ("reshape", "transpose") or not _is_plain(i.shape):
                    continue
                source = i.operands[0].shape
                if (
                    source is None
                    or i.shape is None
                    or not _is_plain(source)
                    or not _moves_nothing(i, source)
                ):
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
