"""Rules about operations that only move elements."""

from __future__ import annotations

from hlotext import matchers as m
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.rewrite.passes.algebra.common import make, same_sizes, shape_of
from hlotext.rewrite.rewriter import Rewrite, pattern

X = m.op("x")


@pattern(m.reshape(X))
def reshape_to_same(r: Rewrite) -> Instruction | None:
    """f32[4,3] reshape(x) => x"""
    return r["x"] if same_sizes(r["x"], r.instruction) else None


@pattern(m.reshape(m.reshape(X)))
def reshape_twice(r: Rewrite) -> Instruction | None:
    """a = f32[12] reshape(x); f32[6,2] reshape(a) => f32[6,2] reshape(x)"""
    return make(r, "reshape", r["x"])


@pattern(m.transpose(X))
def transpose_nothing(r: Rewrite) -> Instruction | None:
    """transpose(x), dimensions={0,1} => x"""
    order = r.instruction.attributes["dimensions"]
    return r["x"] if list(order) == list(range(len(order))) else None


@pattern(m.transpose(m.transpose(X, name="inner")))
def transpose_twice(r: Rewrite) -> Instruction | None:
    """t = transpose(x), dimensions={1,0}; transpose(t), dimensions={1,0} => transpose(x), dimensions={0,1}"""
    inner = r["inner"].attributes["dimensions"]
    return make(
        r, "transpose", r["x"], dimensions=tuple(inner[d] for d in r.instruction.attributes["dimensions"])
    )


@pattern(m.broadcast(X))
def broadcast_nothing(r: Rewrite) -> Instruction | None:
    """f32[4,3] broadcast(x), dimensions={0,1} => x"""
    order = r.instruction.attributes.get("dimensions", ())
    is_plain = list(order) == list(range(len(order))) and same_sizes(r["x"], r.instruction)
    return r["x"] if is_plain else None


@pattern(m.broadcast(m.broadcast(X, name="inner")))
def broadcast_twice(r: Rewrite) -> Instruction | None:
    """b = f32[4,3] broadcast(s), dimensions={}; f32[2,4,3] broadcast(b), dimensions={1,2}
    => f32[2,4,3] broadcast(s), dimensions={}"""
    inner = r["inner"].attributes.get("dimensions", ())
    outer = r.instruction.attributes.get("dimensions", ())
    return make(r, "broadcast", r["x"], dimensions=tuple(outer[d] for d in inner))


@pattern(m.reverse(X))
def reverse_nothing(r: Rewrite) -> Instruction | None:
    """reverse(x), dimensions={} => x"""
    sizes = shape_of(r["x"]).dimensions
    return r["x"] if all(sizes[d] == 1 for d in r.instruction.attributes["dimensions"]) else None


@pattern(m.reverse(m.reverse(X, name="inner")))
def reverse_twice(r: Rewrite) -> Instruction | None:
    """a = reverse(x), dimensions={0}; reverse(a), dimensions={0} => x"""
    inner, outer = r["inner"].attributes["dimensions"], r.instruction.attributes["dimensions"]
    return r["x"] if set(inner) == set(outer) else None


@pattern(m.slice(X))
def slice_everything(r: Rewrite) -> Instruction | None:
    """f32[4,3] slice(x), slice={[0:4], [0:3]} => x"""
    return r["x"] if same_sizes(r["x"], r.instruction) else None


@pattern(m.slice(m.slice(X, name="inner")))
def slice_twice(r: Rewrite) -> Instruction | None:
    """a = f32[2,3] slice(x), slice={[1:3], [0:3]}; f32[1,2] slice(a), slice={[1:2], [1:3]}
    => f32[1,2] slice(x), slice={[2:3], [1:3]}"""
    pairs = zip(
        r["inner"].attributes["slice"].dimensions, r.instruction.attributes["slice"].dimensions, strict=True
    )
    ranges = tuple(
        SliceDimension(
            a.start + b.start * a.stride,
            a.start + (b.limit - 1) * a.stride + 1 if b.limit > b.start else a.start + b.start * a.stride,
            a.stride * b.stride,
        )
        for a, b in pairs
    )  # fmt: skip
    return make(r, "slice", r["x"], slice=SliceDimensions(ranges))


@pattern(m.pad(X, m.op()))
def pad_nothing(r: Rewrite) -> Instruction | None:
    """pad(x, s), padding=0_0x0_0 => x"""
    dimensions = r.instruction.attributes["padding"].dimensions
    is_plain = not any(d.edge_padding_low or d.edge_padding_high or d.interior_padding for d in dimensions)
    return r["x"] if is_plain else None


@pattern(m.concatenate(X))
def concatenate_one(r: Rewrite) -> Instruction | None:
    """concatenate(x), dimensions={0} => x"""
    return r["x"]


@pattern(m.concatenate())
def concatenate_empty(r: Rewrite) -> Instruction | None:
    """a = f32[0,3] slice(y), slice={[0:0], [0:3]}; concatenate(x, a, z), dimensions={0}
    => concatenate(x, z), dimensions={0}"""
    operands = r.instruction.operands
    kept = [operand for operand in operands if 0 not in shape_of(operand).dimensions]
    if not kept or len(kept) == len(operands):
        return None
    return make(r, "concatenate", *kept, dimensions=r.instruction.attributes["dimensions"])


@pattern(m.dynamic_slice())
def dynamic_slice_everything(r: Rewrite) -> Instruction | None:
    """f32[4,3] dynamic-slice(x, n, n), dynamic_slice_sizes={4,3} => x"""
    value = r.instruction.operands[0]
    return value if same_sizes(value, r.instruction) else None


@pattern(m.dynamic_update_slice())
def update_everything(r: Rewrite) -> Instruction | None:
    """f32[4,3] dynamic-update-slice(x, y, n, n) => y"""
    update = r.instruction.operands[1]
    return update if same_sizes(update, r.instruction) else None


@pattern(m.get_dimension_size(X))
def known_dimension_size(r: Rewrite) -> Instruction | None:
    """get-dimension-size(x), dimensions={0} => s32[] constant(4)"""
    (dimension,) = r.instruction.attributes["dimensions"]
    shape = shape_of(r["x"])
    return None if shape.dynamic_dimensions[dimension] else r.b.constant(shape.dimensions[dimension], "s32")


RULES = (
    reshape_to_same, reshape_twice, transpose_nothing, transpose_twice, broadcast_nothing, broadcast_twice,
    reverse_nothing, reverse_twice, slice_everything, slice_twice, pad_nothing, concatenate_one, concatenate_empty,
    dynamic_slice_everything, update_everything, known_dimension_size,
)  # fmt: skip
