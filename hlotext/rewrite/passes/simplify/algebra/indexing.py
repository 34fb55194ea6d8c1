"""Rules about parts of arrays at places known at run time: dynamic slices and updates, scatters, gathers."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
)
from hlotext.layout.permutations import compose, inverse
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import (
    PRED,
    array_of,
    dims,
    is_all,
    is_constant,
    is_empty,
    is_one_element,
    is_scalar,
    is_whole,
    resized,
    shape_of,
    sizes,
    type_of,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.algebra.slices import cut_of
from hlotext.rewrite.passes.simplify.dimensions import only_ones_moved, unmodified
from hlotext.rewrite.passes.simplify.reshape_mover import transposed

# ---- parts at places known at run time


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_everything(r: AlgebraRewrite) -> Result:
    """f32[4,3] dynamic-slice(x, n, n), dynamic_slice_sizes={4,3} => x"""
    i = r.instruction
    x = i.operands[0]
    return (is_scalar(i) or r.same_shape(shape_of(x), shape_of(i))) and x


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


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_from_zero(r: AlgebraRewrite) -> Result:
    """f32[2,3] dynamic-slice(x, n, n), dynamic_slice_sizes={2,3}
    => z = s32[] constant(0); f32[2,3] dynamic-slice(x, n, z), dynamic_slice_sizes={2,3}"""
    i = r.instruction
    found = _known_starts(i, 1, sizes(i))
    if not found:
        return False
    zero = r.scalar_like(i.operands[1], 0)
    operands = [zero if n - 1 in found else o for n, o in enumerate(i.operands)]
    return r.copy_annotations_from(i, r.clone(i, operands))


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_broadcast(r: AlgebraRewrite) -> Result:
    """z = s32[] constant(0); b = f32[2,4,3] broadcast(x), dimensions={1,2};
    f32[2,1,3] dynamic-slice(b, z, n, z), dynamic_slice_sizes={2,1,3} => z = s32[] constant(0);
    k = f32[1,3] dynamic-slice(x, n, z), dynamic_slice_sizes={1,3}; f32[2,1,3] broadcast(k), dimensions={1,2}"""
    i = r.instruction
    b = i.operands[0]
    if b.opcode != "broadcast" or len(i.operands) != len(sizes(b)) + 1:
        return False
    x = b.operands[0]
    part = x
    if dims(b):
        size = tuple(sizes(i)[d] for d in dims(b))
        starts = [i.operands[1 + d] for d in dims(b)]
        part = r.create_like(
            i, "dynamic-slice", resized(shape_of(x), size), (x, *starts), dynamic_slice_sizes=size
        )
    return r.create_like(b, "broadcast", shape_of(i), (part,), dimensions=dims(b))


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_reshape(r: AlgebraRewrite) -> Result:
    """z = s32[] constant(0); r = f32[4,1,3] reshape(x); f32[1,1,3] dynamic-slice(r, n, z, z), dynamic_slice_sizes={1,1,3}
    => z = s32[] constant(0); k = f32[1,3] dynamic-slice(x, n, z), dynamic_slice_sizes={1,3}; f32[1,1,3] reshape(k)"""
    i = r.instruction
    span = i.operands[0]
    if r.options.is_layout_sensitive or span.opcode != "reshape" or len(i.operands) != len(sizes(span)) + 1:
        return False
    x = span.operands[0]
    if only_ones_moved(sizes(x), sizes(span)) is None:
        return False
    zero = r.scalar_like(i.operands[1], 0)
    starts, size = [zero] * len(sizes(x)), [1] * len(sizes(x))
    for a, b in unmodified(sizes(x), sizes(span)):
        if sizes(x)[a] != 1:
            starts[a], size[a] = i.operands[1 + b], sizes(i)[b]
    shape = r.shape(type_of(i), size)
    part = r.create_like(i, "dynamic-slice", shape, (x, *starts), dynamic_slice_sizes=tuple(size))
    return r.replace_with_new(i, "reshape", (part,))


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_transpose(r: AlgebraRewrite) -> Result:
    """z = s32[] constant(0); t = f32[3,4] transpose(x), dimensions={1,0};
    f32[3,1] dynamic-slice(t, z, n), dynamic_slice_sizes={3,1} => z = s32[] constant(0);
    k = f32[1,3] dynamic-slice(x, n, z), dynamic_slice_sizes={1,3}; f32[3,1] transpose(k), dimensions={1,0}"""
    i = r.instruction
    t = i.operands[0]
    if r.options.is_layout_sensitive or t.opcode != "transpose" or len(i.operands) != len(sizes(t)) + 1:
        return False
    back = inverse(dims(t))
    starts = [i.operands[1:][d] for d in back]
    size = compose(sizes(i), back)
    part = r.create_like(
        i, "dynamic-slice", transposed(shape_of(i), back), (t.operands[0], *starts), dynamic_slice_sizes=size
    )
    return r.replace_with_new(i, "transpose", (part,), dimensions=dims(t))


def _first_integer(i: Instruction) -> int | None:
    array = array_of(i)
    return int(array.reshape(-1)[0]) if array is not None and array.size and is_whole(i) else None


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_at_known_place(r: AlgebraRewrite) -> Result:
    """z = s32[] constant(0); o = s32[] constant(1); f32[1,3] dynamic-slice(x, o, z), dynamic_slice_sizes={1,3}
    => f32[1,3] slice(x), slice={[1:2], [0:3]}"""
    i = r.instruction
    x = i.operands[0]
    if is_constant(x) or len(i.operands) != len(sizes(x)) + 1:
        return False
    if r.options.is_layout_sensitive:
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
    return r.replace_with_new(i, "slice", (x,), slice=cut_of(cut))


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_of_iota(r: AlgebraRewrite) -> Result:
    """k = s32[5] iota(), iota_dimension=0; s32[1] dynamic-slice(k, n), dynamic_slice_sizes={1}
    => z = s32[] constant(0); h = s32[] constant(4); c = s32[] clamp(z, n, h); s32[1] reshape(c)"""
    i = r.instruction
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
    low, high = r.scalar_like(index, 0), r.scalar_like(index, sizes(x)[0] - 1)
    result = r.create_like(i, "clamp", shape_of(index), (low, index, high))
    if type_of(index) is not type_of(i):
        result = r.create_like(i, "convert", Shape(type_of(i)), (result,))
    if factor is not None:
        result = r.create_like(i, "multiply", shape_of(result), (result, factor))
    return r.replace_with_new(i, "reshape", (result,))


def _clamped(r: AlgebraRewrite, start: Instruction, room: int) -> Instruction:
    low, high = r.scalar_like(start, 0), r.scalar_like(start, room)
    return r.create_like(start, "clamp", shape_of(start), (low, start, high))


def _inner_start(
    r: AlgebraRewrite, inner: Instruction, outer: Instruction, rooms: tuple[int, int], like: Instruction
) -> Instruction:
    """The sum of two starts, clamped so that as much room is behind them; the outer one for some time only."""
    if r.has(xla_changes.ALGSIMP_CLAMPED_STARTS):
        outer = _clamped(r, outer, rooms[1])
    start = _clamped(r, inner, rooms[0])
    if type_of(start) is not type_of(outer):
        start = r.create_like(start, "convert", shape_of(outer), (start,))
    return r.create_like(like, "add", shape_of(outer), (outer, start))


@pattern("dynamic-slice", handler="HandleDynamicSlice")
def dynamic_slice_twice(r: AlgebraRewrite) -> Result:
    """d = f32[3] dynamic-slice(v, n), dynamic_slice_sizes={3}; f32[2] dynamic-slice(d, n), dynamic_slice_sizes={2}
    => z = s32[] constant(0); g = s32[] constant(1); b = s32[] clamp(z, n, g); h = s32[] constant(2);
    c = s32[] clamp(z, n, h); e = s32[] add(b, c); f32[2] dynamic-slice(v, e), dynamic_slice_sizes={2}"""
    i = r.instruction
    x = i.operands[0]
    if (
        x.opcode != "dynamic-slice"
        or len(x.operands) != len(i.operands)
        or len(sizes(x)) + 1 != len(i.operands)
    ):
        return False
    whole = x.operands[0]
    part = x if r.has(xla_changes.ALGSIMP_CLAMPED_STARTS) else i
    starts = [
        _inner_start(
            r, x.operands[n], i.operands[n],
            (sizes(whole)[n - 1] - sizes(part)[n - 1], sizes(x)[n - 1] - sizes(i)[n - 1]), x,
        )
        for n in range(1, len(i.operands))
    ]  # fmt: skip
    return r.set_operands(i, (whole, *starts))


@pattern("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_of_splat(r: AlgebraRewrite) -> Result:
    """b = f32[5,3] broadcast(s), dimensions={}; z = s32[] constant(0); o = s32[] constant(1);
    f32[5,3] dynamic-update-slice(b, x, o, z) => f32[5,3] pad(x, s), padding=1_0x0_0"""
    i = r.instruction
    whole, part = i.operands[:2]
    if (
        whole.opcode != "broadcast"
        or not is_scalar(whole.operands[0])
        or len(i.operands) != len(sizes(whole)) + 2
    ):
        return False
    moved = part
    while moved.opcode in traits.KEEPS_ELEMENTS:
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
    return r.create_like(i, "pad", shape_of(whole), (part, whole.operands[0]), padding=padding)


@pattern("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_everything(r: AlgebraRewrite) -> Result:
    """f32[4,3] dynamic-update-slice(x, y, n, n) => y"""
    part = r.instruction.operands[1]
    return r.same_shape(shape_of(r.instruction), shape_of(part)) and part


@pattern("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_from_zero(r: AlgebraRewrite) -> Result:
    """v = f32[1,3] slice(y), slice={[0:1], [0:3]}; f32[4,3] dynamic-update-slice(x, v, n, n)
    => v = f32[1,3] slice(y), slice={[0:1], [0:3]}; z = s32[] constant(0); f32[4,3] dynamic-update-slice(x, v, n, z)"""
    i = r.instruction
    found = _known_starts(i, 2, sizes(i.operands[1]))
    if not found:
        return False
    zero = r.scalar_like(i.operands[2], 0)
    operands = [zero if n - 2 in found else o for n, o in enumerate(i.operands)]
    return r.copy_annotations_from(i, r.clone(i, operands))


@pattern("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_with_nothing(r: AlgebraRewrite) -> Result:
    """z = s32[] constant(0); k = f32[0,3] slice(y), slice={[0:0], [0:3]}; f32[4,3] dynamic-update-slice(x, k, n, z) => x"""
    return is_empty(r.instruction.operands[1]) and r.instruction.operands[0]


@pattern("dynamic-update-slice", handler="HandleDynamicUpdateSlice")
def update_of_own_part(r: AlgebraRewrite) -> Result:
    """k = f32[1] slice(v), slice={[0:1]}; d = f32[3] dynamic-slice(v, n), dynamic_slice_sizes={3};
    g = f32[3] dynamic-update-slice(d, k, n); f32[5] dynamic-update-slice(v, g, n)
    => k = f32[1] slice(v), slice={[0:1]}; z = s32[] constant(0); h = s32[] constant(2); b = s32[] clamp(z, n, h);
    c = s32[] clamp(z, n, h); e = s32[] add(b, c); f32[5] dynamic-update-slice(v, k, e)"""
    i = r.instruction
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
        _inner_start(
            r, part.operands[n], i.operands[n],
            (sizes(part)[n - 2] - sizes(new)[n - 2], sizes(whole)[n - 2] - sizes(part)[n - 2]), part,
        )
        for n in range(2, len(i.operands))
    ]  # fmt: skip
    return r.set_operands(i, (whole, new, *starts))


@pattern("scatter", handler="HandleScatter")
def scatter_nothing(r: AlgebraRewrite) -> Result:
    """k = s32[0,1] constant({}); u = f32[0,3] slice(y), slice={[0:0], [0:3]}; scatter(x, k, u), update_window_dims={1},
    inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum => x"""
    i = r.instruction
    half = (len(i.operands) - 1) // 2
    if not all(is_empty(o) for o in i.operands[half + 1 :]):
        return False
    return half == 1 and r.replace_if_compatible(i, i.operands[0])


@pattern("gather", handler="HandleGather")
def gather_of_nothing(r: AlgebraRewrite) -> Result:
    """k = s32[2,1] constant({{0}, {1}}); e = f32[0,3] slice(x), slice={[0:0], [0:3]};
    f32[2,3] gather(e, k), offset_dims={1},
    collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={0,3}
    => c = f32[] constant(0); f32[2,3] broadcast(c), dimensions={}"""
    return is_empty(r.instruction.operands[0]) and r.scalar_like(r.instruction, 0)


@pattern("gather", handler="HandleGather")
def gather_of_one(r: AlgebraRewrite) -> Result:
    """k = s32[2,1] constant({{0}, {0}}); e = f32[1,1] slice(x), slice={[0:1], [0:1]};
    f32[2,1] gather(e, k), offset_dims={1},
    collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,1}
    => e = f32[1,1] slice(x), slice={[0:1], [0:1]}; c = f32[] reshape(e); f32[2,1] broadcast(c), dimensions={}"""
    x = r.instruction.operands[0]
    if not is_one_element(x):
        return False
    value = x if is_scalar(x) else r.reshape(Shape(type_of(x)), x)
    return r.create("broadcast", shape_of(r.instruction), (value,), dimensions=())


MAX_SELECTED = 4
"""Elements of a gather's operand that become selects (`very_small_gather_size`)."""


@pattern("gather", handler="HandleGather")
def gather_of_few(r: AlgebraRewrite) -> Result:
    """e = f32[1] slice(v), slice={[1:2]}; g = f32[2] concatenate(e, e), dimensions={0};
    k = s32[3] slice(t5), slice={[0:3]};
    f32[3] gather(g, k), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    =>"""
    i = r.instruction
    x, index = i.operands
    if len(sizes(x)) != 1 or sizes(x)[0] > MAX_SELECTED:
        return False
    if (
        i.attributes.get("index_vector_dim") != len(sizes(index))
        or len(i.attributes["collapsed_slice_dims"]) != 1
    ):
        return False

    def value(n: int) -> Instruction:
        part = r.create_like(
            i, "slice", r.shape(type_of(x), (1,)), (x,), slice=cut_of([SliceDimension(n, n + 1)])
        )
        scalar = r.create_like(i, "reshape", Shape(type_of(x)), (part,))
        return r.create_like(i, "broadcast", shape_of(i), (scalar,), dimensions=())

    result = value(0)
    truth = retyped(shape_of(i), PRED)
    for n in range(sizes(x)[0]):
        mask = r.create_like(
            i, "compare", truth, (index, r.scalar_like(index, n)), direction=ComparisonDirection("GE")
        )
        result = r.create_like(i, "select", shape_of(i), (mask, value(n), result))
    return result
