"""Rules about slices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.window import (
    SliceDimension,
    SliceDimensions,
)
from hlotext.rewrite.kit.facts import (
    dims,
    is_one_element,
    one_user,
    resized,
    shape_of,
    sizes,
    type_of,
    without_dimensions,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite

Ranges = tuple[SliceDimension, ...]


def ranges(i: Instruction) -> Ranges:
    """Returns the range of a slice in each dimension."""
    found: Ranges = i.attributes["slice"].dimensions
    return found


def is_unstrided(i: Instruction) -> bool:
    """Returns True if all strides of a slice are 1 (`IsUnstridedSlice`)."""
    return all(r.stride == 1 for r in ranges(i))


def cut_of(parts: Sequence[SliceDimension]) -> SliceDimensions:
    return SliceDimensions(tuple(parts))


# ---- slices


@pattern("slice", handler="HandleSlice")
def slice_everything(r: AlgebraRewrite) -> Result:
    """f32[4,3] slice(x), slice={[0:4], [0:3]} => x"""
    return r.replace_if_compatible(r.instruction, r.instruction.operands[0])


@pattern("slice", handler="HandleSlice")
def slice_of_pad(r: AlgebraRewrite) -> Result:
    """c = f32[6,3] pad(x, s), padding=1_1x0_0; f32[2,3] slice(c), slice={[2:4], [0:3]}
    => f32[2,3] slice(x), slice={[1:3], [0:3]}"""
    i = r.instruction
    pad = i.operands[0]
    if pad.opcode != "pad":
        return False
    undoes = inside = True
    new = []
    for span, d, size in zip(ranges(i), pad.attributes["padding"].dimensions, sizes(pad), strict=True):
        low, edge = d.edge_padding_low, size - d.edge_padding_high
        if span.limit <= low or span.start >= edge:
            return r.create("broadcast", shape_of(i), (pad.operands[1],), dimensions=())
        undoes &= span.start == low and span.stride - 1 == d.interior_padding
        inside &= span.start >= low and span.limit <= edge and d.interior_padding == 0 and span.stride == 1
        new.append(SliceDimension(span.start - low, span.limit - low, span.stride))
    if undoes and r.replace_if_compatible(i, pad.operands[0]):
        return True
    return inside and r.create("slice", shape_of(i), pad.operands[:1], slice=cut_of(new))


@pattern("slice", handler="HandleSlice")
def slice_twice(r: AlgebraRewrite) -> Result:
    """a = f32[2,3] slice(x), slice={[1:3], [0:3]}; f32[1,2] slice(a), slice={[1:2], [1:3]}
    => f32[1,2] slice(x), slice={[2:3], [1:3]}"""
    i = r.instruction
    x = i.operands[0]
    if x.opcode != "slice" or not is_unstrided(i) or not is_unstrided(x):
        return False
    both = [
        SliceDimension(span.start + inner.start, span.limit + inner.start)
        for span, inner in zip(ranges(i), ranges(x), strict=True)
    ]
    return r.replace_with_new(i, "slice", x.operands, slice=cut_of(both))


@pattern("slice", handler="HandleSlice")
def slice_of_repeated(r: AlgebraRewrite) -> Result:
    """b = f32[2,4,3] broadcast(x), dimensions={1,2}; f32[1,4,3] slice(b), slice={[0:1], [0:4], [0:3]}
    => f32[1,4,3] broadcast(x), dimensions={1,2}"""
    i = r.instruction
    b = i.operands[0]
    if b.opcode != "broadcast":
        return False
    whole = all(
        (span.start, span.stride, span.limit) == (0, 1, sizes(b)[d])
        for d, span in enumerate(ranges(i))
        if d in dims(b)
    )
    return whole and r.replace_with_new(i, "broadcast", b.operands, dimensions=dims(b))


@pattern("slice", handler="TrySimplifyScalarSlice")
def slice_of_one_joined(r: AlgebraRewrite) -> Result:
    """k = f32[1] slice(v), slice={[0:1]}; c = f32[6] concatenate(k, v), dimensions={0}; f32[1] slice(c), slice={[3:4]}
    => f32[1] slice(v), slice={[2:3]}"""
    i = r.instruction
    c = i.operands[0]
    if c.opcode != "concatenate" or len(sizes(i)) != 1 or not is_one_element(i):
        return False
    (span,) = ranges(i)
    start = 0
    for part in c.operands:
        if start + sizes(part)[0] > span.start:
            if r.replace_if_compatible(i, part):
                return True
            piece = SliceDimension(span.start - start, span.start - start + 1, span.stride)
            return r.replace_with_new(i, "slice", (part,), slice=cut_of([piece]))
        start += sizes(part)[0]
    return False


@pattern("slice", handler="HandleSlice")
def slice_of_broadcast(r: AlgebraRewrite) -> Result:
    """b = f32[2,4,3] broadcast(x), dimensions={1,2}; f32[2,1,3] slice(b), slice={[0:2], [1:2], [0:3]}
    => k = f32[1,3] slice(x), slice={[1:2], [0:3]}; f32[2,1,3] broadcast(k), dimensions={1,2}"""
    i = r.instruction
    b = i.operands[0]
    if b.opcode != "broadcast":
        return False
    x, cut = b.operands[0], [ranges(i)[d] for d in dims(b)]
    new_sizes = [(span.limit - span.start + span.stride - 1) // span.stride for span in cut]
    part = r.create_like(i, "slice", resized(shape_of(x), new_sizes), (x,), slice=cut_of(cut))
    return r.create_like(b, "broadcast", shape_of(i), (part,), dimensions=dims(b))


@pattern("slice", handler="HandleSlice")
def slice_of_joined(r: AlgebraRewrite) -> Result:
    """c = f32[8,3] concatenate(x, y), dimensions={0}; f32[2,3] slice(c), slice={[5:7], [0:3]}
    => f32[2,3] slice(y), slice={[1:3], [0:3]}"""
    i = r.instruction
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
    if first + 1 == last and r.same_shape(shape_of(c.operands[first]), shape_of(i)):
        return c.operands[first]
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
        value = r.copy_annotations_from(
            c, r.create("concatenate", resized(shape_of(c), new_sizes), parts, dimensions=(d,))
        )
    return r.replace_with_new(i, "slice", (value,), slice=cut_of(cut))


@pattern("slice", handler="HandleSlice")
def slice_of_window(r: AlgebraRewrite) -> Result:
    """w = reduce-window(x, s), window={size=1x3 pad=0_0x2_0}, to_apply=sum; f32[4,1] slice(w), slice={[0:4], [2:3]}
    => r = f32[4] reduce(x, s), dimensions={1}, to_apply=sum; f32[4,1] reshape(r)"""
    i = r.instruction
    w = i.operands[0]
    if w.opcode != "reduce-window" or len(w.operands) != 2 or not is_unstrided(i) or not one_user(w):
        return False
    window = w.attributes["window"].dimensions
    if any(d.stride != 1 or d.base_dilation != 1 or d.window_dilation != 1 for d in window):
        return False
    if not any(d.padding_low or d.padding_high for d in window):
        return False
    reduced = []
    for n, (d, span) in enumerate(zip(window, ranges(i), strict=True)):
        if sizes(w)[n] != span.limit or d.padding_low != span.start or d.padding_high:
            return False
        if d.size == 1 and sizes(w)[n] == sizes(i)[n] and span.start == 0:
            continue
        if sizes(i)[n] != 1 or sizes(w)[n] != d.size or span.limit - span.start != 1:
            return False
        reduced.append(n)
    if not reduced:
        return False
    shape = without_dimensions(shape_of(w), reduced)
    total = r.create_like(
        i, "reduce", shape, w.operands, dimensions=tuple(reduced), to_apply=w.attributes["to_apply"]
    )
    return r.replace_with_new(i, "reshape", (total,))


@pattern("slice", handler="TryToReorderSliceAndReshape")
def slice_of_reshape(r: AlgebraRewrite) -> Result:
    """r = f32[2,2,3] reshape(x); f32[1,2,3] slice(r), slice={[0:1], [0:2], [0:3]}
    => k = f32[2,3] slice(x), slice={[0:2], [0:3]}; f32[1,2,3] reshape(k)"""
    i = r.instruction
    span = i.operands[0]
    if r.options.is_layout_sensitive or span.opcode != "reshape" or not is_unstrided(i):
        return False
    cut = [d for d, part in enumerate(ranges(i)) if part.start or part.limit != sizes(span)[d]]
    if cut != [0] or (ranges(i)[0].start and not r.has(xla_changes.ALGSIMP_SLICED_ANYWHERE)):
        return False
    x = span.operands[0]
    start, left = ranges(i)[0].start * math.prod(sizes(span)[1:]), shape_of(i).element_count
    if r.has(xla_changes.ALGSIMP_SLICED_ROWS):
        row = math.prod(sizes(x)[_rows_begin(r, x) + 1 :])
        if not row or start % row or left % row:
            return False
    parts = [SliceDimension(0, size) for size in sizes(x)]
    for d, size in reversed(list(enumerate(sizes(x)))):
        if left >= size:
            if not size or left % size or start % size:
                return False
            left //= size
        else:
            first = start % size
            if first + left > size:
                return False
            parts[d], left = SliceDimension(first, first + left), 1
        start //= size
    if start or left != 1:
        return False
    shape = r.shape(type_of(x), [part.limit - part.start for part in parts])
    return r.replace_with_new(i, "reshape", (r.create_like(i, "slice", shape, (x,), slice=cut_of(parts)),))


def _rows_begin(r: AlgebraRewrite, x: Instruction) -> int:
    """The dimension whose steps are rows: the first, since some day the first that is longer than one."""
    if not r.has(xla_changes.ALGSIMP_SLICED_LONG_ROWS):
        return 0
    return next((d for d, size in enumerate(sizes(x)) if size != 1), 0)


@pattern("slice", handler="TryToReorderSliceAndReverse")
def slice_of_reverse(r: AlgebraRewrite) -> Result:
    """r = reverse(x), dimensions={0}; f32[1,3] slice(r), slice={[0:1], [0:3]}
    => k = f32[1,3] slice(x), slice={[3:4], [0:3]}; f32[1,3] reverse(k), dimensions={0}"""
    i = r.instruction
    span = i.operands[0]
    if span.opcode != "reverse":
        return False
    cut = list(ranges(i))
    for d in dims(span):
        old = cut[d]
        size = sizes(span)[d]
        cut[d] = SliceDimension(size - old.start - (old.limit - old.start), size - old.start, old.stride)
        if (old.limit - old.start - 1) % old.stride:
            return False  # XLA's places would be others than what the slice took
    part = r.create_like(i, "slice", shape_of(i), span.operands, slice=cut_of(cut))
    return r.replace_with_new(i, "reverse", (part,), dimensions=dims(span))


@pattern("slice", handler="RemoveRedundantStride")
def slice_of_one_by_steps(r: AlgebraRewrite) -> Result:
    """f32[1,3] slice(x), slice={[1:3:2], [0:3:1]} => f32[1,3] slice(x), slice={[1:2], [0:3]}"""
    i = r.instruction
    cut = [
        SliceDimension(span.start, span.start + 1)
        if span.stride != 1 and (span.stride >= span.limit or span.start + span.stride >= span.limit)
        else span
        for span in ranges(i)
    ]
    return cut != list(ranges(i)) and r.replace_with_new(i, "slice", i.operands, slice=cut_of(cut))


__all__ = ["Ranges", "cut_of", "is_unstrided", "ranges"]
