"""Rules about one value everywhere: moving it changes nothing but the shape."""

from __future__ import annotations

from hlotext import matchers as m
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.passes.algebra.common import make
from hlotext.rewrite.rewriter import Rewrite, pattern

SCALAR = m.op("s").with_rank(0)
SPLAT = m.broadcast(SCALAR)


@pattern(m.reshape(SPLAT))
def reshape_splat(r: Rewrite) -> Instruction | None:
    """b = f32[4,3] broadcast(s), dimensions={}; f32[12] reshape(b) => f32[12] broadcast(s), dimensions={}"""
    return make(r, "broadcast", r["s"], dimensions=())


@pattern(m.transpose(SPLAT))
def transpose_splat(r: Rewrite) -> Instruction | None:
    """b = f32[4,3] broadcast(s), dimensions={}; transpose(b), dimensions={1,0} => f32[3,4] broadcast(s), dimensions={}"""
    return make(r, "broadcast", r["s"], dimensions=())


@pattern(m.slice(SPLAT))
def slice_splat(r: Rewrite) -> Instruction | None:
    """b = f32[4,3] broadcast(s), dimensions={}; f32[2,3] slice(b), slice={[0:2], [0:3]}
    => f32[2,3] broadcast(s), dimensions={}"""
    return make(r, "broadcast", r["s"], dimensions=())


@pattern(m.reverse(SPLAT))
def reverse_splat(r: Rewrite) -> Instruction | None:
    """b = f32[4,3] broadcast(s), dimensions={}; reverse(b), dimensions={0} => f32[4,3] broadcast(s), dimensions={}"""
    return make(r, "broadcast", r["s"], dimensions=())


@pattern(m.pad(SPLAT, m.op("s")))
def pad_splat(r: Rewrite) -> Instruction | None:
    """b = f32[4,3] broadcast(s), dimensions={}; pad(b, s), padding=1_0x0_0 => f32[5,3] broadcast(s), dimensions={}"""
    return make(r, "broadcast", r["s"], dimensions=())


RULES = (reshape_splat, transpose_splat, slice_splat, reverse_splat, pad_splat)
