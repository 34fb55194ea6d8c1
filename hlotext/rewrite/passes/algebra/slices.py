"""Rules about parts of arrays: slices, pads, concatenations, and parts at places known at run time."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
    SliceDimensions,
)
from hlotext.rewrite.builder import retyped
from hlotext.rewrite.passes.algebra.engine import (
    PRED,
    Simplifier,
    array_of,
    dims,
    is_all,
    is_constant,
    is_empty,
    is_one_element,
    is_scalar,
    is_whole,
    one_user,
    resized,
    rule,
    shape_of,
    sizes,
    type_of,
    without_dimensions,
)
from hlotext.rewrite.passes.dimensions import inverse, only_ones_moved, permuted, unmodified
from hlotext.rewrite.passes.reshape_mover import transposed

Ranges = tuple[SliceDimension, ...]


def ranges(i: Instruction) -> Ranges:
    """What a slice takes of each dimension."""
    found: Ranges = i.attributes["slice"].dimensions
    return found


def is_unstrided(i: Instruction) -> bool:
    """Whether a slice takes neighbours (`IsUnstridedSlice`)."""
    return all(r.stride == 1 for r in ranges(i))


def _cut(parts: Sequence[SliceDimension]) -> SliceDimensions:
    return SliceDimensions(tuple(parts))


# ---- slices


@rule("slice", handler="HandleSlice")
def slice_everything(s: Simplifier, i: Instruction) -> bool:
    """f32[4,3] slice(x), slice={[0:4], [0:3]} => x"""
    return s.into_same(i, i.operands[0])


@rule("slice", handler="HandleSlice")
def slice_of_pad(s: Simplifier, i: Instruction) -> bool:
    """c = f32[6,3] pad(x, s), padding=1_1x0_0; f32[2,3] slice(c), slice={[2:4], [0:3]}
    => f32[2,3] slice(x), slice={[1:3], [0:3]}"""
    pad = i.operands[0]
    if pad.opcode != "pad":
        return False
    undoes = inside = True
    new = []
    for r, d, size in zip(ranges(i), pad.attributes["padding"].dimensions, sizes(pad), strict=True):
        low, edge = d.edge_padding_low, size - d.edge_padding_high
        if r.limit <= low or r.start >= edge:
            spread = s.make("broadcast", shape_of(i), (pad.operands[1],), dimensions=())
            return s.into(i, spread)
        undoes &= r.start == low and r.stride - 1 == d.interior_padding
        inside &= r.start >= low and r.limit <= edge and d.interior_padding == 0 and r.stride == 1
        new.append(SliceDimension(r.start - low, r.limit - low, r.stride))
    if undoes and s.into_same(i, pad.operands[0]):
        return True
    return inside and s.into(i, s.make("slice", shape_of(i), pad.operands[:1], slice=_cut(new)))


@rule("slice", handler="HandleSlice")
def slice_twice(s: Simplifier, i: Instruction) -> bool:
    """a = f32[2,3] slice(x), slice={[1:3], [0:3]}; f32[1,2] slice(a), slice={[1:2], [1:3]}
    => f32[1,2] slice(x), slice={[2:3], [1:3]}"""
    x = i.operands[0]
    if x.opcode != "slice" or not is_unstrided(i) or not is_unstrided(x):
        return False
    both = [
        SliceDimension(r.start + inner.start, r.limit + inner.start)
        for r, inner in zip(ranges(i), ranges(x), strict=True)
    ]
    return s.into_new(i, "slice", x.operands, slice=_cut(both))


@rule("slice", handler="HandleSlice")
def slice_of_repeated(s: Simplifier, i: Instruction) -> bool:
    """b = f32[2,4,3] broadcast(x), dimensions={1,2}; f32[1,4,3] slice(b), slice={[0:1], [0:4], [0:3]}
    => f32[1,4,3] broadcast(x), dimensions={1,2}"""
    b = i.operands[0]
    if b.opcode != "broadcast":
        return False
    whole = all(
        (r.start, r.stride, r.limit) == (0, 1, sizes(b)[d]) for d, r in enumerate(ranges(i)) if d in dims(b)
    )
    return whole and s.into_new(i, "broadcast", b.operands, dimensions=dims(b))


@rule("slice", handler="TrySimplifyScalarSlice")
def slice_of_one_joined(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1] slice(v), slice={[0:1]}; c = f32[6] concatenate(k, v), dimensions={0}; f32[1] slice(c), slice={[3:4]}
    => f32[1] slice(v), slice={[2:3]}"""
    c = i.operands[0]
    if c.opcode != "concatenate" or len(sizes(i)) != 1 or not is_one_element(i):
        return False
    (r,) = ranges(i)
    start = 0
    for part in c.operands:
        if start + sizes(part)[0] > r.start:
            if s.into_same(i, part):
                return True
            piece = SliceDimension(r.start - start, r.start - start + 1, r.stride)
            return s.into_new(i, "slice", (part,), slice=_cut([piece]))
        start += sizes(part)[0]
    return False


@rule("slice", handler="HandleSlice")
def slice_of_broadcast(s: Simplifier, i: Instruction) -> bool:
    """b = f32[2,4,3] broadcast(x), dimensions={1,2}; f32[2,1,3] slice(b), slice={[0:2], [1:2], [0:3]}
    => k = f32[1,3] slice(x), slice={[1:2], [0:3]}; f32[2,1,3] broadcast(k), dimensions={1,2}"""
    b = i.operands[0]
    if b.opcode != "broadcast":
        return False
    x, cut = b.operands[0], [ranges(i)[d] for d in dims(b)]
    new_sizes = [(r.limit - r.start + r.stride - 1) // r.stride for r in cut]
    part = s.derive(i, "slice", resized(shape_of(x), new_sizes), (x,), slice=_cut(cut))
    return s.into(i, s.derive(b, "broadcast", shape_of(i), (part,), dimensions=dims(b)))


@rule("slice", handler="HandleSlice")
def slice_of_joined(s: Simplifier, i: Instruction) -> bool:
    """c = f32[8,3] concatenate(x, y), dimensions={0}; f32[2,3] slice(c), slice={[5:7], [0:3]}
    => f32[2,3] slice(y), slice={[1:3], [0:3]}"""
    c = i.operands[0]
    if c.opcode != "concatenate" or not is_unstrided(i):
        return False
    (d,) = dims(c)
    wanted = ranges(i)[d]
    first = first_start = last = None
    place = 0
    for n, part in enumerate(c.operands):
        size = sizes(part)[d]
        if first is None and place <= wanted.start < place + size:
            first, first_start = n, place
        place += size
        if place >= wanted.limit:
            last = n + 1
            break
    if first is None or last is None or first_start is None:
        return False
    if first + 1 == last and s.same_shape(shape_of(c.operands[first]), shape_of(i)):
        return s.into(i, c.operands[first])
    if last - first >= len(c.operands):
        return False
    cut = list(ranges(i))
    begin = wanted.start - first_start
    cut[d] = SliceDimension(begin, begin + sizes(i)[d])
    value = c.operands[first]
    if first + 1 != last:
        parts = c.operands[first:last]
        new_sizes = list(sizes(c))
        new_sizes[d] = sum(sizes(part)[d] for part in parts)
        value = s.setup(c, s.make("concatenate", resized(shape_of(c), new_sizes), parts, dimensions=(d,)))
    return s.into_new(i, "slice", (value,), slice=_cut(cut))


@rule("slice", handler="HandleSlice")
def slice_of_window(s: Simplifier, i: Instruction) -> bool:
    """w = reduce-window(x, s), window={size=1x3 pad=0_0x2_0}, to_apply=sum; f32[4,1] slice(w), slice={[0:4], [2:3]}
    => r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum; f32[4,1] reshape(r)"""
    w = i.operands[0]
    if w.opcode != "reduce-window" or len(w.operands) != 2 or not is_unstrided(i) or not one_user(w):
        return False
    window = w.attributes["window"].dimensions
    if any(d.stride != 1 or d.base_dilation != 1 or d.window_dilation != 1 for d in window):
        return False
    if not any(d.padding_low or d.padding_high for d in window):
        return False
    reduced = []
    for n, (d, r) in enumerate(zip(window, ranges(i), strict=True)):
        if sizes(w)[n] != r.limit or d.padding_low != r.start or d.padding_high:
            return False
        if d.size == 1 and sizes(w)[n] == sizes(i)[n] and r.start == 0:
            continue
        if sizes(i)[n] != 1 or sizes(w)[n] != d.size or r.limit - r.start != 1:
            return False
        reduced.append(n)
    if not reduced:
        return False
    shape = without_dimensions(shape_of(w), reduced)
    total = s.derive(
        i, "reduce", shape, w.operands, dimensions=tuple(reduced), to_apply=w.attributes["to_apply"]
    )
    return s.into_new(i, "reshape", (total,))


@rule("slice", handler="TryToReorderSliceAndReshape")
def slice_of_reshape(s: Simplifier, i: Instruction) -> bool:
    """r = f32[2,2,3] reshape(x); f32[1,2,3] slice(r), slice={[0:1], [0:2], [0:3]}
    => k = f32[2,3] slice(x), slice={[0:2], [0:3]}; f32[1,2,3] reshape(k)"""
    r = i.operands[0]
    if s.options.is_layout_sensitive or r.opcode != "reshape" or not is_unstrided(i):
        return False
    cut = [d for d, part in enumerate(ranges(i)) if part.start or part.limit != sizes(r)[d]]
    if cut != [0] or ranges(i)[0].start:
        return False
    x = r.operands[0]
    limits = list(sizes(x))
    left = shape_of(i).element_count
    for d in range(len(limits) - 1, -1, -1):
        if left >= limits[d]:
            if not limits[d] or left % limits[d]:
                return False
            left //= limits[d]
        else:
            limits[d], left = left, 1
    part = s.derive(
        i, "slice", s.shape(type_of(x), limits), (x,), slice=_cut([SliceDimension(0, n) for n in limits])
    )
    return s.into_new(i, "reshape", (part,))


@rule("slice", handler="TryToReorderSliceAndReverse")
def slice_of_reverse(s: Simplifier, i: Instruction) -> bool:
    """r = reverse(x), dimensions={0}; f32[1,3] slice(r), slice={[0:1], [0:3]}
    => k = f32[1,3] slice(x), slice={[3:4], [0:3]}; f32[1,3] reverse(k), dimensions={0}"""
    r = i.operands[0]
    if r.opcode != "reverse":
        return False
    cut = list(ranges(i))
    for d in dims(r):
        old = cut[d]
        size = sizes(r)[d]
        cut[d] = SliceDimension(size - old.start - (old.limit - old.start), size - old.start, old.stride)
        if (old.limit - old.start - 1) % old.stride:
            return False  # XLA's places would be others than what the slice took
    part = s.derive(i, "slice", shape_of(i), r.operands, slice=_cut(cut))
    return s.into_new(i, "reverse", (part,), dimensions=dims(r))


@rule("slice", handler="RemoveRedundantStride")
def slice_of_one_by_steps(s: Simplifier, i: Instruction) -> bool:
    """f32[1,3] slice(x), slice={[1:3:2], [0:3:1]} => f32[1,3] slice(x), slice={[1:2], [0:3]}"""
    cut = [
        SliceDimension(r.start, r.start + 1)
        if r.stride != 1 and (r.stride >= r.limit or r.start + r.stride >= r.limit)
        else r
        for r in ranges(i)
    ]
    return cut != list(ranges(i)) and s.into_new(i, "slice", i.operands, slice=_cut(cut))


# ---- pads


@rule("pad", handler="HandlePad")
def pad_of_nothing(s: Simplifier, i: Instruction) -> bool:
    """k = f32[0,3] slice(x), slice={[0:0], [0:3]}; f32[2,3] pad(k, s), padding=1_1x0_0
    => f32[2,3] broadcast(s), dimensions={}"""
    return is_empty(i.operands[0]) and s.into_new(i, "broadcast", i.operands[1:], dimensions=())


@rule("pad", handler="HandlePad")
def pad_between_one(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[2,3] pad(k, s), padding=0_1_2x0_0_0
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[2,3] pad(k, s), padding=0_1x0_0"""
    given = i.attributes["padding"].dimensions
    new = tuple(
        PaddingConfigDimension(d.edge_padding_low, d.edge_padding_high)
        if d.interior_padding > 0 and size == 1
        else d
        for d, size in zip(given, sizes(i.operands[0]), strict=True)
    )
    return new != given and s.into_new(i, "pad", i.operands, padding=PaddingConfig(new))


@rule("pad", handler="HandlePad")
def pad_nothing(s: Simplifier, i: Instruction) -> bool:
    """pad(x, s), padding=0_0x0_0 => x"""
    given = i.attributes["padding"].dimensions
    return not any(d.edge_padding_low or d.edge_padding_high for d in given) and s.into_same(i, i.operands[0])


@rule("pad", handler="HandlePad")
def pad_of_repeated(s: Simplifier, i: Instruction) -> bool:
    """b = f32[5,3] broadcast(v), dimensions={0}; f32[7,3] pad(b, s), padding=1_1x0_0
    => r = f32[5] broadcast(v), dimensions={0}; k = f32[7] pad(r, s), padding=1_1; f32[7,3] broadcast(k), dimensions={0}"""
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
    inner = s.make(
        "broadcast",
        without_dimensions(shape_of(b), gone),
        (x,),
        dimensions=tuple(padded.index(d) for d in dims(b)),
    )
    own = dict(b.attributes)
    own.pop("sharding", None)
    inner.change(attributes={**own, "dimensions": inner.attributes["dimensions"]}, typed=False)
    config = PaddingConfig(tuple(given[d] for d in padded))
    new = s.derive(i, "pad", without_dimensions(shape_of(i), gone), (inner, value), padding=config)
    return s.into(i, s.derive(i, "broadcast", shape_of(i), (new,), dimensions=tuple(padded)))


@rule("pad", handler="HandlePad")
def pad_negative(s: Simplifier, i: Instruction) -> bool:
    """f32[4,3] pad(x, s), padding=1_-1x0_0
    => k = f32[5,3] pad(x, s), padding=1_0x0_0; f32[4,3] slice(k), slice={[0:4], [0:3]}"""
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
    padded = s.make("pad", resized(shape_of(i), size), i.operands, padding=PaddingConfig(tuple(more)))
    cut = [
        SliceDimension(max(0, -d.edge_padding_low), n + min(0, d.edge_padding_high))
        for n, d in zip(size, given, strict=True)
    ]
    return s.into(i, s.make("slice", shape_of(i), (padded,), slice=_cut(cut)))


# ---- concatenations


@rule("concatenate", handler="HandleConcatenate")
def join_one(s: Simplifier, i: Instruction) -> bool:
    """concatenate(x), dimensions={0} => x"""
    return len(i.operands) == 1 and s.into_same(i, i.operands[0])


@rule("concatenate", handler="HandleConcatenate")
def join_empty(s: Simplifier, i: Instruction) -> bool:
    """a = f32[0,3] slice(y), slice={[0:0], [0:3]}; f32[8,3] concatenate(x, a, z), dimensions={0}
    => f32[8,3] concatenate(x, z), dimensions={0}"""
    kept = [o for o in i.operands if not is_empty(o)]
    if len(kept) == len(i.operands) or len(i.operands) == 1:
        return False
    if len(kept) > 1:
        new = s.setup(i, s.clone(i, kept))
    else:
        new = kept[0] if kept else i.operands[0]
    return s.into_same(i, new)


@rule("concatenate", handler="HandleConcatenate")
def join_joined(s: Simplifier, i: Instruction) -> bool:
    """a = f32[8,3] concatenate(x, y), dimensions={0}; f32[12,3] concatenate(a, z), dimensions={0}
    => f32[12,3] concatenate(x, y, z), dimensions={0}"""
    if s.options.is_layout_sensitive or len(i.operands) == 1:
        return False
    flat: list[Instruction] = []
    for o in i.operands:
        flat += o.operands if o.opcode == "concatenate" and dims(o) == dims(i) else (o,)
    return len(flat) != len(i.operands) and s.into_new(i, "concatenate", flat, dimensions=dims(i))


@rule("concatenate", handler="HandleConcatenate")
def join_neighbours(s: Simplifier, i: Instruction) -> bool:
    """a = f32[1,3] slice(x), slice={[0:1], [0:3]}; b = f32[2,3] slice(x), slice={[1:3], [0:3]};
    concatenate(a, b, y), dimensions={0} => f = f32[3,3] slice(x), slice={[0:3], [0:3]}; concatenate(f, y), dimensions={0}"""
    if s.options.is_layout_sensitive or len(i.operands) < 2:
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
            first = s.derive(first, "slice", resized(shape_of(first), size), first.operands, slice=_cut(cut))
        new.append(first)
        n = last
    return len(new) < len(operands) and s.into_same(i, s.setup(i, s.clone(i, new)))


def _continues(first: Instruction, following: Instruction, d: int, end: int) -> bool:
    if following.opcode != "slice" or not is_unstrided(following) or following.operands != first.operands:
        return False
    if ranges(following)[d].start != end:
        return False
    pairs = enumerate(zip(ranges(first), ranges(following), strict=True))
    return all(n == d or a.start == b.start for n, (a, b) in pairs)


@rule("concatenate", handler="HandleConcatenate")
def join_splat(s: Simplifier, i: Instruction) -> bool:
    """b = f32[1,3] broadcast(s), dimensions={}; f32[5,3] concatenate(x, b), dimensions={0}
    => f32[5,3] pad(x, s), padding=0_1x0_0"""
    if s.options.is_layout_sensitive or len(i.operands) != 2:
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
    new = s.derive(i, "pad", shape_of(i), (value, splat.operands[0]), padding=PaddingConfig(tuple(config)))
    return s.into(i, new)


@rule("concatenate", handler="HandleConcatenate")
def join_copies(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[3,3] concatenate(k, k, k), dimensions={0}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; r = f32[3] reshape(k); f32[3,3] broadcast(r), dimensions={1}"""
    x, (d,) = i.operands[0], dims(i)
    if s.options.is_layout_sensitive or len(i.operands) == 2 or any(o is not x for o in i.operands):
        return False
    if sizes(x)[d] != 1:
        return False
    flat = s.reshape(without_dimensions(shape_of(x), [d]), x)
    kept = tuple(n for n in range(len(sizes(x))) if n != d)
    return s.into(i, s.make("broadcast", shape_of(i), (flat,), dimensions=kept))


# ---- parts at places known at run time


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_everything(s: Simplifier, i: Instruction) -> bool:
    """f32[4,3] dynamic-slice(x, n, n), dynamic_slice_sizes={4,3} => x"""
    x = i.operands[0]
    return (is_scalar(i) or s.same_shape(shape_of(x), shape_of(i))) and s.into(i, x)


def _known_starts(i: Instruction, first: int, part: tuple[int, ...]) -> list[int]:
    """The dimensions that are taken whole, with a start that is not zero."""
    whole = sizes(i.operands[0])
    if len(i.operands) - first != len(whole):
        return []
    return [
        d
        for d in range(len(whole))
        if whole[d] == part[d]
        and not (is_constant(i.operands[d + first]) and is_all(i.operands[d + first], 0))
    ]


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_from_zero(s: Simplifier, i: Instruction) -> bool:
    """f32[2,3] dynamic-slice(x, n, n), dynamic_slice_sizes={2,3}
    => z = s32[] constant(0); f32[2,3] dynamic-slice(x, n, z), dynamic_slice_sizes={2,3}"""
    found = _known_starts(i, 1, sizes(i))
    if not found:
        return False
    zero = s.scalar_like(i.operands[1], 0)
    operands = [zero if n - 1 in found else o for n, o in enumerate(i.operands)]
    return s.into(i, s.setup(i, s.clone(i, operands)))


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_broadcast(s: Simplifier, i: Instruction) -> bool:
    """z = s32[] constant(0); b = f32[2,4,3] broadcast(x), dimensions={1,2};
    f32[2,1,3] dynamic-slice(b, z, n, z), dynamic_slice_sizes={2,1,3} => z = s32[] constant(0);
    k = f32[1,3] dynamic-slice(x, n, z), dynamic_slice_sizes={1,3}; f32[2,1,3] broadcast(k), dimensions={1,2}"""
    b = i.operands[0]
    if b.opcode != "broadcast" or len(i.operands) != len(sizes(b)) + 1:
        return False
    x = b.operands[0]
    part = x
    if dims(b):
        size = tuple(sizes(i)[d] for d in dims(b))
        starts = [i.operands[1 + d] for d in dims(b)]
        part = s.derive(
            i, "dynamic-slice", resized(shape_of(x), size), (x, *starts), dynamic_slice_sizes=size
        )
    return s.into(i, s.derive(b, "broadcast", shape_of(i), (part,), dimensions=dims(b)))


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_reshape(s: Simplifier, i: Instruction) -> bool:
    """z = s32[] constant(0); r = f32[4,1,3] reshape(x); f32[1,1,3] dynamic-slice(r, n, z, z), dynamic_slice_sizes={1,1,3}
    => z = s32[] constant(0); k = f32[1,3] dynamic-slice(x, n, z), dynamic_slice_sizes={1,3}; f32[1,1,3] reshape(k)"""
    r = i.operands[0]
    if s.options.is_layout_sensitive or r.opcode != "reshape" or len(i.operands) != len(sizes(r)) + 1:
        return False
    x = r.operands[0]
    if only_ones_moved(sizes(x), sizes(r)) is None:
        return False
    zero = s.scalar_like(i.operands[1], 0)
    starts, size = [zero] * len(sizes(x)), [1] * len(sizes(x))
    for a, b in unmodified(sizes(x), sizes(r)):
        if sizes(x)[a] != 1:
            starts[a], size[a] = i.operands[1 + b], sizes(i)[b]
    shape = s.shape(type_of(i), size)
    part = s.derive(i, "dynamic-slice", shape, (x, *starts), dynamic_slice_sizes=tuple(size))
    return s.into_new(i, "reshape", (part,))


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_transpose(s: Simplifier, i: Instruction) -> bool:
    """z = s32[] constant(0); t = f32[3,4] transpose(x), dimensions={1,0};
    f32[3,1] dynamic-slice(t, z, n), dynamic_slice_sizes={3,1} => z = s32[] constant(0);
    k = f32[1,3] dynamic-slice(x, n, z), dynamic_slice_sizes={1,3}; f32[3,1] transpose(k), dimensions={1,0}"""
    t = i.operands[0]
    if s.options.is_layout_sensitive or t.opcode != "transpose" or len(i.operands) != len(sizes(t)) + 1:
        return False
    back = inverse(dims(t))
    starts = [i.operands[1:][d] for d in back]
    size = permuted(sizes(i), back)
    part = s.derive(
        i, "dynamic-slice", transposed(shape_of(i), back), (t.operands[0], *starts), dynamic_slice_sizes=size
    )
    return s.into_new(i, "transpose", (part,), dimensions=dims(t))


def _first_integer(i: Instruction) -> int | None:
    array = array_of(i)
    return int(array.reshape(-1)[0]) if array is not None and array.size and is_whole(i) else None


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_at_known_place(s: Simplifier, i: Instruction) -> bool:
    """z = s32[] constant(0); o = s32[] constant(1); f32[1,3] dynamic-slice(x, o, z), dynamic_slice_sizes={1,3}
    => f32[1,3] slice(x), slice={[1:2], [0:3]}"""
    x = i.operands[0]
    if is_constant(x) or len(i.operands) != len(sizes(x)) + 1:
        return False
    if s.options.is_layout_sensitive:
        a, b = shape_of(i).layout, shape_of(x).layout
        if a is None or b is None or a.memory_space != b.memory_space:
            return False
    cut = []
    for d, o in enumerate(i.operands[1:]):
        start = _first_integer(o) if is_constant(o) else None
        if start is None or start < 0:
            return False
        start = min(start, sizes(x)[d] - sizes(i)[d])
        cut.append(SliceDimension(start, start + sizes(i)[d]))
    return s.into_new(i, "slice", (x,), slice=_cut(cut))


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_iota(s: Simplifier, i: Instruction) -> bool:
    """k = s32[5] iota(), iota_dimension=0; s32[1] dynamic-slice(k, n), dynamic_slice_sizes={1}
    => z = s32[] constant(0); h = s32[] constant(4); c = s32[] clamp(z, n, h); s32[1] reshape(c)"""
    x = i.operands[0]
    words = ("s32", "u32")
    if sizes(i) != (1,) or len(sizes(x)) != 1 or type_of(i).name not in words or len(i.operands) != 2:
        return False
    factor = None
    if x.opcode == "multiply":
        splat = x.operands[1]
        if splat.opcode != "broadcast" or not is_scalar(splat.operands[0]):
            return False
        factor, x = splat.operands[0], x.operands[0]
    index = i.operands[1]
    if x.opcode != "iota" or type_of(index).name not in words:
        return False
    low, high = s.scalar_like(index, 0), s.scalar_like(index, sizes(x)[0] - 1)
    result = s.derive(i, "clamp", shape_of(index), (low, index, high))
    if type_of(index) is not type_of(i):
        result = s.derive(i, "convert", Shape(type_of(i)), (result,))
    if factor is not None:
        result = s.derive(i, "multiply", shape_of(result), (result, factor))
    return s.into_new(i, "reshape", (result,))


def _inner_start(
    s: Simplifier, inner: Instruction, outer: Instruction, room: int, like: Instruction
) -> Instruction:
    """The sum of two starts, the inner one clamped."""
    low, high = s.scalar_like(inner, 0), s.scalar_like(inner, room)
    start = s.derive(inner, "clamp", shape_of(inner), (low, inner, high))
    if type_of(start) is not type_of(outer):
        start = s.derive(start, "convert", shape_of(outer), (start,))
    return s.derive(like, "add", shape_of(outer), (outer, start))


@rule("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_twice(s: Simplifier, i: Instruction) -> bool:
    """d = f32[3] dynamic-slice(v, n), dynamic_slice_sizes={3}; f32[2] dynamic-slice(d, n), dynamic_slice_sizes={2}
    => z = s32[] constant(0); h = s32[] constant(3); c = s32[] clamp(z, n, h); e = s32[] add(n, c);
    f32[2] dynamic-slice(v, e), dynamic_slice_sizes={2}"""
    x = i.operands[0]
    if (
        x.opcode != "dynamic-slice"
        or len(x.operands) != len(i.operands)
        or len(sizes(x)) + 1 != len(i.operands)
    ):
        return False
    whole = x.operands[0]
    starts = [
        _inner_start(s, x.operands[n], i.operands[n], sizes(whole)[n - 1] - sizes(i)[n - 1], x)
        for n in range(1, len(i.operands))
    ]
    return s.set_operands(i, (whole, *starts))


@rule("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_of_splat(s: Simplifier, i: Instruction) -> bool:
    """b = f32[5,3] broadcast(s), dimensions={}; z = s32[] constant(0); o = s32[] constant(1);
    f32[5,3] dynamic-update-slice(b, x, o, z) => f32[5,3] pad(x, s), padding=1_0x0_0"""
    whole, part = i.operands[:2]
    if (
        whole.opcode != "broadcast"
        or not is_scalar(whole.operands[0])
        or len(i.operands) != len(sizes(whole)) + 2
    ):
        return False
    moved = part
    while moved.opcode in ("reshape", "bitcast", "copy"):
        moved = moved.operands[0]
    if moved.attributes.get("custom_call_target") == "MoveToHost":
        return False
    config = []
    for d, o in enumerate(i.operands[2:]):
        start = _first_integer(o) if is_constant(o) and is_scalar(o) else None
        if start is None:
            return False
        room = sizes(whole)[d] - sizes(part)[d]
        start = min(max(0, start), room)
        config.append(PaddingConfigDimension(start, room - start))
    padding = PaddingConfig(tuple(config))
    return s.into(i, s.derive(i, "pad", shape_of(whole), (part, whole.operands[0]), padding=padding))


@rule("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_everything(s: Simplifier, i: Instruction) -> bool:
    """f32[4,3] dynamic-update-slice(x, y, n, n) => y"""
    part = i.operands[1]
    return s.same_shape(shape_of(i), shape_of(part)) and s.into(i, part)


@rule("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_from_zero(s: Simplifier, i: Instruction) -> bool:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]}; f32[4,3] dynamic-update-slice(x, v, n, n)
    => v = f32[1,3] slice(y), slice={[0:1], [0:3]}; z = s32[] constant(0); f32[4,3] dynamic-update-slice(x, v, n, z)"""
    found = _known_starts(i, 2, sizes(i.operands[1]))
    if not found:
        return False
    zero = s.scalar_like(i.operands[2], 0)
    operands = [zero if n - 2 in found else o for n, o in enumerate(i.operands)]
    return s.into(i, s.setup(i, s.clone(i, operands)))


@rule("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_with_nothing(s: Simplifier, i: Instruction) -> bool:
    """z = s32[] constant(0); k = f32[0,3] slice(y), slice={[0:0], [0:3]}; f32[4,3] dynamic-update-slice(x, k, n, z) => x"""
    return is_empty(i.operands[1]) and s.into(i, i.operands[0])


@rule("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_of_own_part(s: Simplifier, i: Instruction) -> bool:
    """k = f32[1] slice(v), slice={[0:1]}; d = f32[3] dynamic-slice(v, n), dynamic_slice_sizes={3};
    g = f32[3] dynamic-update-slice(d, k, n); f32[5] dynamic-update-slice(v, g, n)
    => k = f32[1] slice(v), slice={[0:1]}; z = s32[] constant(0); h = s32[] constant(2); c = s32[] clamp(z, n, h);
    e = s32[] add(n, c); f32[5] dynamic-update-slice(v, k, e)"""
    whole, part = i.operands[:2]
    if part.opcode != "dynamic-update-slice" or part.operands[0].opcode != "dynamic-slice":
        return False
    taken = part.operands[0]
    if taken.operands[0] is not whole or taken.operands[1:] != i.operands[2:]:
        return False
    if len(part.operands) != len(i.operands):
        return False
    new = part.operands[1]
    starts = [
        _inner_start(s, part.operands[n], i.operands[n], sizes(part)[n - 2] - sizes(new)[n - 2], part)
        for n in range(2, len(i.operands))
    ]
    return s.set_operands(i, (whole, new, *starts))


@rule("scatter", handler="HandleScatter")
def scatter_nothing(s: Simplifier, i: Instruction) -> bool:
    """k = s32[0,1] constant({}); u = f32[0,3] slice(y), slice={[0:0], [0:3]}; scatter(x, k, u), update_window_dims={1},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum => x"""
    half = (len(i.operands) - 1) // 2
    if not all(is_empty(o) for o in i.operands[half + 1 :]):
        return False
    return half == 1 and s.into_same(i, i.operands[0])


@rule("gather", handler="HandleGather")
def gather_of_nothing(s: Simplifier, i: Instruction) -> bool:
    """k = s32[2,1] constant({{0}, {1}}); e = f32[0,3] slice(x), slice={[0:0], [0:3]};
    f32[2,3] gather(e, k), offset_dims={1},
    collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={0,3}
    => c = f32[] constant(0); f32[2,3] broadcast(c), dimensions={}"""
    return is_empty(i.operands[0]) and s.into(i, s.scalar_like(i, 0))


@rule("gather", handler="HandleGather")
def gather_of_one(s: Simplifier, i: Instruction) -> bool:
    """k = s32[2,1] constant({{0}, {0}}); e = f32[1,1] slice(x), slice={[0:1], [0:1]};
    f32[2,1] gather(e, k), offset_dims={1},
    collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1}
    => e = f32[1,1] slice(x), slice={[0:1], [0:1]}; c = f32[] reshape(e); f32[2,1] broadcast(c), dimensions={}"""
    x = i.operands[0]
    if not is_one_element(x):
        return False
    value = x if is_scalar(x) else s.reshape(Shape(type_of(x)), x)
    return s.into(i, s.make("broadcast", shape_of(i), (value,), dimensions=()))


MAX_SELECTED = 4
"""Elements of a gather's operand that become selects (`very_small_gather_size`)."""


@rule("gather", handler="HandleGather")
def gather_of_few(s: Simplifier, i: Instruction) -> bool:
    """e = f32[1] slice(v), slice={[1:2]}; g = f32[2] concatenate(e, e), dimensions={0};
    k = s32[3] slice(t5), slice={[0:3]};
    f32[3] gather(g, k), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    =>"""
    x, index = i.operands
    if len(sizes(x)) != 1 or sizes(x)[0] > MAX_SELECTED:
        return False
    if (
        i.attributes.get("index_vector_dim") != len(sizes(index))
        or len(i.attributes["collapsed_slice_dims"]) != 1
    ):
        return False

    def value(n: int) -> Instruction:
        part = s.derive(i, "slice", s.shape(type_of(x), (1,)), (x,), slice=_cut([SliceDimension(n, n + 1)]))
        scalar = s.derive(i, "reshape", Shape(type_of(x)), (part,))
        return s.derive(i, "broadcast", shape_of(i), (scalar,), dimensions=())

    result = value(0)
    truth = retyped(shape_of(i), PRED)
    for n in range(sizes(x)[0]):
        mask = s.derive(
            i, "compare", truth, (index, s.scalar_like(index, n)), direction=ComparisonDirection("GE")
        )
        result = s.derive(i, "select", shape_of(i), (mask, value(n), result))
    return s.into(i, result)


__all__ = ["is_unstrided", "ranges"]
