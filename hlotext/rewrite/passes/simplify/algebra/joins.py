"""Rules about pads and concatenations."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
)
from hlotext.rewrite.kit.facts import (
    dims,
    is_empty,
    is_scalar,
    one_user,
    resized,
    shape_of,
    sizes,
    without_dimensions,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.algebra.slices import cut_of, is_unstrided, ranges

# ---- pads


@pattern("pad", handler="HandlePad")
def pad_of_nothing(r: AlgebraRewrite) -> Result:
    """k = f32[0,3] slice(x), slice={[0:0], [0:3]}; f32[2,3] pad(k, s), padding=1_1x0_0
    => f32[2,3] broadcast(s), dimensions={}"""
    i = r.instruction
    return is_empty(i.operands[0]) and r.replace_with_new(i, "broadcast", i.operands[1:], dimensions=())


@pattern("pad", handler="HandlePad")
def pad_between_one(r: AlgebraRewrite) -> Result:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[2,3] pad(k, s), padding=0_1_2x0_0_0
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[2,3] pad(k, s), padding=0_1x0_0"""
    i = r.instruction
    given = i.attributes["padding"].dimensions
    new = tuple(
        PaddingConfigDimension(d.edge_padding_low, d.edge_padding_high)
        if d.interior_padding > 0 and size == 1
        else d
        for d, size in zip(given, sizes(i.operands[0]), strict=True)
    )
    return new != given and r.replace_with_new(i, "pad", i.operands, padding=PaddingConfig(new))


@pattern("pad", handler="HandlePad")
def pad_nothing(r: AlgebraRewrite) -> Result:
    """pad(x, s), padding=0_0x0_0 => x"""
    i = r.instruction
    given = i.attributes["padding"].dimensions
    return not any(d.edge_padding_low or d.edge_padding_high for d in given) and r.replace_if_compatible(
        i, i.operands[0]
    )


@pattern("pad", handler="HandlePad")
def pad_of_repeated(r: AlgebraRewrite) -> Result:
    """b = f32[5,3] broadcast(v), dimensions={0}; f32[7,3] pad(b, s), padding=1_1x0_0
    => r = f32[5] broadcast(v), dimensions={0}; k = f32[7] pad(r, s), padding=1_1; f32[7,3] broadcast(k), dimensions={0}"""
    i = r.instruction
    b, value = i.operands
    given = i.attributes["padding"].dimensions
    padded = [
        n for n, d in enumerate(given) if d.edge_padding_low or d.edge_padding_high or d.interior_padding
    ]
    if b.opcode != "broadcast" or not one_user(b) or not 0 < len(padded) < len(given):
        return False
    x = b.operands[0]
    if len(sizes(x)) > len(padded) or any(d not in padded for d in dims(b)):
        return False
    gone = [d for d in range(len(given)) if d not in padded]
    inner = r.create(
        "broadcast",
        without_dimensions(shape_of(b), gone),
        (x,),
        dimensions=tuple(padded.index(d) for d in dims(b)),
    )
    own = dict(b.attributes)
    own.pop("sharding", None)
    inner.change(attributes={**own, "dimensions": inner.attributes["dimensions"]}, typed=False)
    config = PaddingConfig(tuple(given[d] for d in padded))
    new = r.create_like(i, "pad", without_dimensions(shape_of(i), gone), (inner, value), padding=config)
    return r.create_like(i, "broadcast", shape_of(i), (new,), dimensions=tuple(padded))


@pattern("pad", handler="HandlePad")
def pad_negative(r: AlgebraRewrite) -> Result:
    """f32[4,3] pad(x, s), padding=1_-1x0_0
    => k = f32[5,3] pad(x, s), padding=1_0x0_0; f32[4,3] slice(k), slice={[0:4], [0:3]}"""
    i = r.instruction
    given = i.attributes["padding"].dimensions
    if not any(d.edge_padding_low < 0 or d.edge_padding_high < 0 for d in given):
        return False
    more = [
        PaddingConfigDimension(max(0, d.edge_padding_low), max(0, d.edge_padding_high), d.interior_padding)
        for d in given
    ]
    size = [
        n + d.edge_padding_low + d.edge_padding_high + max(0, n - 1) * d.interior_padding
        for n, d in zip(sizes(i.operands[0]), more, strict=True)
    ]
    padded = r.create("pad", resized(shape_of(i), size), i.operands, padding=PaddingConfig(tuple(more)))
    cut = [
        SliceDimension(max(0, -d.edge_padding_low), n + min(0, d.edge_padding_high))
        for n, d in zip(size, given, strict=True)
    ]
    return r.create("slice", shape_of(i), (padded,), slice=cut_of(cut))


# ---- concatenations


@pattern("concatenate", handler="HandleConcatenate")
def join_one(r: AlgebraRewrite) -> Result:
    """concatenate(x), dimensions={0} => x"""
    i = r.instruction
    return len(i.operands) == 1 and r.replace_if_compatible(i, i.operands[0])


@pattern("concatenate", handler="HandleConcatenate")
def join_empty(r: AlgebraRewrite) -> Result:
    """a = f32[0,3] slice(y), slice={[0:0], [0:3]}; f32[8,3] concatenate(x, a, z), dimensions={0}
    => f32[8,3] concatenate(x, z), dimensions={0}"""
    i = r.instruction
    kept = [o for o in i.operands if not is_empty(o)]
    if len(kept) == len(i.operands) or len(i.operands) == 1:
        return False
    if len(kept) > 1:
        new = r.copy_annotations_from(i, r.clone(i, kept))
    else:
        new = kept[0] if kept else i.operands[0]
    return r.replace_if_compatible(i, new)


@pattern("concatenate", handler="HandleConcatenate")
def join_joined(r: AlgebraRewrite) -> Result:
    """a = f32[8,3] concatenate(x, y), dimensions={0}; f32[12,3] concatenate(a, z), dimensions={0}
    => f32[12,3] concatenate(x, y, z), dimensions={0}"""
    i = r.instruction
    if r.options.is_layout_sensitive or len(i.operands) == 1:
        return False
    flat: list[Instruction] = []
    for o in i.operands:
        flat += o.operands if o.opcode == "concatenate" and dims(o) == dims(i) else (o,)
    return len(flat) != len(i.operands) and r.replace_with_new(i, "concatenate", flat, dimensions=dims(i))


@pattern("concatenate", handler="HandleConcatenate")
def join_neighbours(r: AlgebraRewrite) -> Result:
    """a = f32[1,3] slice(x), slice={[0:1], [0:3]}; b = f32[2,3] slice(x), slice={[1:3], [0:3]};
    concatenate(a, b, y), dimensions={0} => f = f32[3,3] slice(x), slice={[0:3], [0:3]}; concatenate(f, y), dimensions={0}"""
    i = r.instruction
    if r.options.is_layout_sensitive or len(i.operands) < 2:
        return False
    (d,) = dims(i)
    new: list[Instruction] = []
    n = 0
    operands = i.operands
    while n < len(operands):
        first = operands[n]
        last = n + 1
        if first.opcode == "slice" and is_unstrided(first):
            end = ranges(first)[d].limit
            while last < len(operands) and _continues(first, operands[last], d, end):
                end = ranges(operands[last])[d].limit
                last += 1
        if last - n > 1:
            cut = list(ranges(first))
            cut[d] = SliceDimension(cut[d].start, end)
            size = list(sizes(first))
            size[d] = end - cut[d].start
            first = r.create_like(
                first, "slice", resized(shape_of(first), size), first.operands, slice=cut_of(cut)
            )
        new.append(first)
        n = last
    return len(new) < len(operands) and r.replace_if_compatible(
        i, r.copy_annotations_from(i, r.clone(i, new))
    )


def _continues(first: Instruction, following: Instruction, d: int, end: int) -> bool:
    if following.opcode != "slice" or not is_unstrided(following) or following.operands != first.operands:
        return False
    if ranges(following)[d].start != end:
        return False
    pairs = enumerate(zip(ranges(first), ranges(following), strict=True))
    return all(n == d or a.start == b.start for n, (a, b) in pairs)


@pattern("concatenate", handler="HandleConcatenate")
def join_splat(r: AlgebraRewrite) -> Result:
    """b = f32[1,3] broadcast(s), dimensions={}; f32[5,3] concatenate(x, b), dimensions={0}
    => f32[5,3] pad(x, s), padding=0_1x0_0"""
    i = r.instruction
    if r.options.is_layout_sensitive or len(i.operands) != 2:
        return False
    x, y = i.operands
    is_low = x.opcode == "broadcast" and is_scalar(x.operands[0])
    if not is_low and not (y.opcode == "broadcast" and is_scalar(y.operands[0])):
        return False
    (d,) = dims(i)
    splat, value = (x, y) if is_low else (y, x)
    length = sizes(splat)[d]
    config = [
        PaddingConfigDimension(length * (n == d and is_low), length * (n == d and not is_low))
        for n in range(len(sizes(i)))
    ]
    return r.create_like(
        i, "pad", shape_of(i), (value, splat.operands[0]), padding=PaddingConfig(tuple(config))
    )


@pattern("concatenate", handler="HandleConcatenate")
def join_copies(r: AlgebraRewrite) -> Result:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3,3] concatenate(k, k, k), dimensions={0}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; r = f32[3] reshape(k); f32[3,3] broadcast(r), dimensions={1}"""
    i = r.instruction
    x, (d,) = i.operands[0], dims(i)
    if r.options.is_layout_sensitive or len(i.operands) == 2 or any(o is not x for o in i.operands):
        return False
    if sizes(x)[d] != 1:
        return False
    flat = r.reshape(without_dimensions(shape_of(x), [d]), x)
    kept = tuple(n for n in range(len(sizes(x))) if n != d)
    return r.create("broadcast", shape_of(i), (flat,), dimensions=kept)
