"""Layouts made explicit: descending ones, with bitcasts at the borders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import attrs

from hlotext import layout as layouts
from hlotext import matchers as m
from hlotext.edit.cloning import own_attributes
from hlotext.ir.nodes.async_ops import is_async_body
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.window import PaddingConfig, SliceDimensions, Window
from hlotext.rewrite.kit.annotations import NOT_COPIED
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.drivers import PostOrder
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.rules import Rewrite, pattern
from hlotext.rewrite.kit.worklist import remove_dead_operands
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.properties import DESCENDING, LAYOUTS, is_descending, is_plain


@attrs.frozen
class LayoutNormalization(Pass):
    """Rewrites operations to descending layouts (XLA's `LayoutNormalization`).

    `f32[10,20,30]{2,0,1}` becomes `f32[20,10,30]{2,1,0}`: the dimensions in their physical order. Operands and results pass
    through bitcasts, which move no data, as do the results of operations that are not rewritten: dots, reduces, gathers,
    collectives. A copy to another layout becomes a transpose. Tiled arrays are kept, as are bodies of fusions and
    asynchronous operations. Where XLA requires one layout and the module has several, operands are transposed first.
    """

    name: ClassVar[str] = "layout-normalization"
    summary: ClassVar[str] = "Rewrites operations to descending layouts, with bitcasts around them."
    requires = (LAYOUTS,)
    ensures = (DESCENDING,)
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        normalizer = Normalizer(module)
        # What an asynchronous operation wraps is one instruction, beside which no bitcast may stand.
        visited = [c for c in nonfusion_computations(module) if not is_async_body(c)]
        for computation in visited:
            normalizer.walk.walk(computation)
        return PassResult.of({"instructions": normalizer.count})


Order = tuple[int, ...]


def _order(shape: Shape) -> Order:
    """The dimensions from the slowest to the fastest (`ToTransposeDimensions`)."""
    return layouts.major_to_minor(shape)


def _inverse(order: Order) -> Order:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _array(i: Instruction) -> Shape:
    assert i.shape is not None
    return i.shape


def _descends(i: Instruction) -> bool:
    """True if a value is an array in the descending layout (`HasDefaultLayout`)."""
    shape = i.shape
    return shape is not None and shape.is_array and (not shape.dimensions or is_descending(shape))


def _is_border(i: Instruction) -> bool:
    """True if a value is the operand or the result of a bitcast pair that an earlier run inserted."""
    normal = layouts.normalize(_array(i))
    back = i.operands[0].operands[0] if i.opcode == "bitcast" and i.operands[0].opcode == "bitcast" else None
    if back is not None and back.shape == i.shape and i.operands[0].shape == normal:
        return True
    return all(
        user.opcode == "bitcast" and user.shape == normal and any(u.shape == i.shape for u in user.user_view)
        for user in i.user_view
    )


def _is_plain(i: Instruction) -> bool:
    """True if an array lies in memory without tiles, paddings and dynamic sizes."""
    shape = i.shape
    if shape is None or not shape.is_array or not shape.is_static:
        return False
    layout = shape.layout
    if layout is None:
        return not shape.dimensions
    if sorted(layout.minor_to_major) != list(range(shape.rank)):
        return False
    return attrs.evolve(layout, memory_space=0, element_size_in_bits=0) == Layout(layout.minor_to_major)


def _renumbered(
    labels: ConvolutionDimensionNumbers, x: Shape, kernel: Shape, result: Shape
) -> ConvolutionDimensionNumbers:
    """The numbers of a convolution's dimensions where all arrays lie in the descending layout."""
    changes: dict[str, Any] = {}
    for kind, shape in (("input", x), ("kernel", kernel), ("output", result)):
        place = _inverse(_order(shape))
        for field in attrs.fields(ConvolutionDimensionNumbers):
            if field.name.startswith(kind):
                old = getattr(labels, field.name)
                changes[field.name] = tuple(place[d] for d in old) if isinstance(old, tuple) else place[old]
    return attrs.evolve(labels, **changes)


class Normalizer(Editor):
    """Implements the handlers of XLA's `LayoutNormalizationVisitor`."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.count = 0
        self.walk = PostOrder(self.visit)
        self._back: set[Instruction] = set()
        """Bitcasts through which users read a value that stays as it is."""

    def visit(self, i: Instruction) -> None:
        self.place = i
        if i.opcode == "custom-call" and str(i.attributes.get("custom_call_target")).startswith(CONVOLUTIONS):
            self.count += self.cudnn_convolution(i)
            return
        if not _is_plain(i):
            return
        arrays = all(_is_plain(o) for o in i.operands)
        if _descends(i) and all(_descends(o) for o in i.operands):
            return
        if i.opcode in ELEMENTWISE and arrays:
            self.count += self.elementwise(i)
            return
        handler = HANDLERS.get(i.opcode, Normalizer.other) if arrays else Normalizer.other
        self.count += handler(self, i)

    # ---- parts

    def bitcast(self, value: Instruction, shape: Shape) -> Instruction:
        """Returns a bitcast of a value to a shape with the same memory layout, or the value itself (`MaybeBitcast`)."""
        if value.shape == shape:
            return value
        return self.create("bitcast", shape, (value,))

    def input(self, value: Instruction, order: Order | None = None) -> Instruction:
        """Returns a value in the descending layout (`GetNormalizedInput`), transposed to a dimension order if one is
        given.
        """
        shape = _array(value)
        normal = layouts.normalize(shape) if shape.dimensions else shape
        found = value
        if not _descends(value):
            source = value.operands[0] if value.opcode == "bitcast" else None
            known = source is not None and source.shape is not None and source.shape == normal
            found = source if known and source is not None else self.bitcast(value, normal)
        if order is None or not shape.dimensions or _order(shape) == order:
            return found
        dimensions = tuple(_order(shape).index(d) for d in order)
        turned = layouts.normalize(shape.with_layout(Layout(order[::-1])))
        return self.new("transpose", turned, (found,), like=value, dimensions=dimensions)

    def new(self, opcode: str, shape: Shape, operands: Iterable[Instruction], *, like: Instruction | None,
            **attributes: Any) -> Instruction:  # fmt: skip
        """Creates an instruction that the walk does not visit."""
        made = self.create(opcode, shape, tuple(operands), like=like, **attributes)
        self.walk.mark_visited(made)
        return made

    def put(self, i: Instruction, operands: Iterable[Instruction], **attributes: Any) -> int:
        """Replaces an operation with a normalized one. Returns 1 if it was replaced, otherwise 0."""
        own = {k: v for k, v in own_attributes(i).items() if k == "metadata" or k not in NOT_COPIED}
        own.update(attributes)
        like = i if i.opcode in DERIVED else None
        new = self.new(i.opcode, layouts.normalize(_array(i)), operands, like=like, **own)
        return int(self.replace(i, self.bitcast(new, _array(i))))

    # ---- handlers

    def other(self, i: Instruction) -> int:
        """Keeps an instruction, but lets its users read it through bitcasts (`DefaultAction`)."""
        shape, home = _array(i), i.computation
        assert home is not None
        if not i.user_view or _descends(i) or (i not in self._back and _is_border(i)):
            return 0
        self.changed = True
        if i in self._back:
            # XLA makes a further pair behind this bitcast and moves all users, for each user that it comes to. In front of it
            # nothing needs to be moved.
            before = self.bitcast(i.operands[0], shape)
            normal = self.bitcast(before, layouts.normalize(shape))
            i.change(operands=(normal,), typed=False)
            self.walk.mark_visited(before)
            self.walk.visit_again(i)
        else:
            was_root = i.is_root
            normal = self.bitcast(i, layouts.normalize(shape))
            back = self.bitcast_anew(i, shape)
            i.replace_all_uses_with(back)
            normal.change(operands=(i,), typed=False)
            back.change(operands=(normal,), typed=False)
            if was_root:
                home.root = i
            self._back.add(back)
        self.walk.mark_visited(normal)
        return 1

    def elementwise(self, i: Instruction) -> int:
        """Normalizes an elementwise operation (`HandleElementwiseUnary`, `HandleElementwiseBinary`, `HandleTernary`)."""
        if i.opcode == "bitcast-convert":
            return self.bitcast_convert(i)
        order = _order(_array(i))
        return self.put(i, [self.input(o, order) for o in i.operands])

    def bitcast_convert(self, i: Instruction) -> int:
        """Normalizes a bitcast-convert (`HandleBitcastConvert`)."""
        shape, source = _array(i), _array(i.operands[0])
        if shape.rank == source.rank:
            return self.put(i, [self.input(i.operands[0], _order(shape))])
        longer, shorter = (source, shape) if source.rank > shape.rank else (shape, source)
        order = _order(longer)
        if order[-1] != longer.rank - 1 or order[:-1] != _order(shorter):
            return self.other(i)
        return self.put(i, [self.input(i.operands[0])])

    def constant_(self, i: Instruction) -> int:
        """Normalizes a constant (`HandleConstant`)."""
        shape, literal = _array(i), i.literal
        array = literal.known_array if literal is not None else None
        if not math.prod(shape.dimensions) or literal is None:
            return 0
        normal = layouts.normalize(shape)
        if array is None:
            if not literal.is_elided:
                return self.other(i)
            turned = Literal.elided(normal)
        else:
            turned = Literal.from_array(array.transpose(_order(shape)), normal)
        new = self.create("constant", normal, like=i, argument=turned, name=i.name)
        self.walk.mark_visited(new)
        return int(self.replace(i, self.bitcast(new, shape)))

    def slice(self, i: Instruction) -> int:
        """Normalizes a slice (`HandleSlice`)."""
        order = _order(_array(i))
        cut = i.attributes["slice"].dimensions
        return self.put(
            i, [self.input(i.operands[0], order)], slice=SliceDimensions(tuple(cut[d] for d in order))
        )

    def concatenate(self, i: Instruction) -> int:
        """Normalizes a concatenate (`HandleConcatenate`)."""
        order = _order(_array(i))
        dimensions = tuple(order.index(d) for d in i.attributes["dimensions"])
        return self.put(i, [self.input(o, order) for o in i.operands], dimensions=dimensions)

    def reduce_window(self, i: Instruction) -> int:
        """Normalizes a reduce-window (`HandleReduceWindow`)."""
        order = _order(_array(i))
        dimensions = i.attributes["window"].dimensions if "window" in i.attributes else ()
        if len(i.operands) != 2 or len(dimensions) != len(order):
            return self.other(i)
        window = Window(tuple(dimensions[d] for d in order))
        return self.put(i, [self.input(i.operands[0], order), i.operands[1]], window=window)

    def broadcast(self, i: Instruction) -> int:
        """Normalizes a broadcast (`HandleBroadcast`)."""
        order = _order(_array(i))
        source = _array(i.operands[0])
        given = i.attributes.get("dimensions", ())
        dimensions = tuple(order.index(given[d]) for d in _order(source))
        if list(dimensions) != sorted(dimensions) and self.was_unordered(given):
            return self.other(i)
        return self.put(i, [self.input(i.operands[0])], dimensions=dimensions)

    def was_unordered(self, given: Order) -> bool:
        """Returns True if a broadcast permutes dimensions, which only occurs in modules not written by XLA."""
        return list(given) != sorted(given)

    def iota(self, i: Instruction) -> int:
        """Normalizes an iota (`HandleIota`)."""
        return self.put(i, (), iota_dimension=_order(_array(i)).index(i.attributes["iota_dimension"]))

    def reshape_(self, i: Instruction) -> int:
        """Normalizes a reshape (`HandleReshape`)."""
        if not layouts.reshape_is_bitcast(_array(i.operands[0]), _array(i)):
            return self.other(i)
        return self.put(i, [self.input(i.operands[0])])

    def transpose(self, i: Instruction) -> int:
        """Normalizes a transpose (`HandleTranspose`)."""
        shape, source = _array(i), _array(i.operands[0])
        back = _inverse(_order(source))
        dimensions = tuple(back[i.attributes["dimensions"][d]] for d in _order(shape))
        value = self.input(i.operands[0])
        if list(dimensions) != sorted(dimensions):
            return self.put(i, [value], dimensions=dimensions)
        return int(self.replace(i, self.bitcast(value, shape)))

    def copy(self, i: Instruction) -> int:
        """Normalizes a copy (`HandleCopy`)."""
        shape, source = _array(i), _array(i.operands[0])
        back = _inverse(_order(source))
        dimensions = tuple(back[d] for d in _order(shape))
        new = self.new(
            "transpose", layouts.normalize(shape), [self.input(i.operands[0])], like=i, dimensions=dimensions
        )
        return int(self.replace(i, self.bitcast(new, shape)))

    def reverse(self, i: Instruction) -> int:
        """Normalizes a reverse (`HandleReverse`)."""
        order = _order(_array(i))
        dimensions = tuple(sorted(order.index(d) for d in i.attributes["dimensions"]))
        return self.put(i, [self.input(i.operands[0], order)], dimensions=dimensions)

    def pad(self, i: Instruction) -> int:
        """Normalizes a pad (`HandlePad`)."""
        order = _order(_array(i))
        edges = i.attributes["padding"].dimensions
        return self.put(
            i, [self.input(i.operands[0], order), i.operands[1]],
            padding=PaddingConfig(tuple(edges[d] for d in order)),
        )  # fmt: skip

    def dynamic_slice(self, i: Instruction) -> int:
        """Normalizes a dynamic-slice (`HandleDynamicSlice`)."""
        order = _order(_array(i))
        x, *starts = i.operands
        if len(starts) != len(order):
            return self.other(i)
        size = i.attributes["dynamic_slice_sizes"]
        return self.put(
            i, [self.input(x, order), *(starts[d] for d in order)],
            dynamic_slice_sizes=tuple(size[d] for d in order),
        )  # fmt: skip

    def dynamic_update_slice(self, i: Instruction) -> int:
        """Normalizes a dynamic-update-slice (`HandleDynamicUpdateSlice`)."""
        order = _order(_array(i))
        x, update, *starts = i.operands
        if len(starts) != len(order):
            return self.other(i)
        return self.put(i, [self.input(x, order), self.input(update, order), *(starts[d] for d in order)])

    def convolution(self, i: Instruction) -> int:
        """Normalizes a convolution (`HandleConvolution`)."""
        labels = i.attributes.get("dim_labels")
        if not isinstance(labels, ConvolutionDimensionNumbers):
            return self.other(i)
        x, kernel = i.operands
        new = _renumbered(labels, _array(x), _array(kernel), _array(i))
        return self.put(i, [self.input(x), self.input(kernel)], dim_labels=new)

    def cudnn_convolution(self, i: Instruction) -> int:
        """Normalizes a cuDNN convolution (`UpdateLayoutForCudnnConvolution`)."""
        labels, shape = i.attributes.get("dim_labels"), i.shape
        if not isinstance(labels, ConvolutionDimensionNumbers) or shape is None or len(i.operands) < 2:
            return 0
        results = shape.tuple_shapes if shape.is_tuple else (shape,)
        given = [o.shape for o in i.operands]
        if not results or any(s is None or not s.is_array or s.layout is None for s in (*results, *given)):
            return 0
        result, first, second = results[0], _array(i.operands[0]), _array(i.operands[1])
        target = str(i.attributes["custom_call_target"])
        if target.startswith(f"{CONVOLUTIONS}BackwardInput"):
            new_labels = _renumbered(labels, result, second, first)
        elif target.startswith(f"{CONVOLUTIONS}BackwardFilter"):
            new_labels = _renumbered(labels, first, result, second)
        else:
            new_labels = _renumbered(labels, first, second, result)
        normal = tuple(layouts.normalize(part) for part in results)
        if normal == tuple(results) and new_labels == labels:
            return 0
        operands = [self.bitcast_anew(o, layouts.normalize(_array(o))) for o in i.operands]
        own = {k: v for k, v in own_attributes(i).items() if k == "metadata" or k not in NOT_COPIED}
        own["dim_labels"] = new_labels
        wanted = Shape.tuple(normal) if shape.is_tuple else normal[0]
        new = self.create(i.opcode, wanted, operands, **own, argument=i.literal, name=i.name)
        if not shape.is_tuple:
            return int(self.replace(i, self.bitcast_anew(new, shape)))
        parts = []
        for number, part in enumerate(normal):
            element = self.create("get-tuple-element", part, (new,), index=number)
            parts.append(self.bitcast_anew(element, results[number]))
        self.walk.mark_visited(parts[0])
        return int(self.replace(i, self.create("tuple", shape, parts)))

    def bitcast_anew(self, value: Instruction, shape: Shape) -> Instruction:
        """Creates a bitcast, even to the same shape (`MakeBitcastHlo`)."""
        return self.create("bitcast", shape, (value,))

    def scatter(self, i: Instruction) -> int:
        """Normalizes a scatter (`HandleScatter`)."""
        own = i.attributes
        if len(i.operands) != 3 or any(own.get(name) for name in BATCHES):
            return self.other(i)
        x, indices, updates = i.operands
        order = _order(_array(i))
        operand, index, update = (_inverse(_order(_array(v))) for v in (i, indices, updates))
        windows = own.get("update_window_dims", ())
        if _array(updates).rank - len(windows) > 1:
            return self.other(i)
        gone = own.get("inserted_window_dims", ())
        left = iter(update[d] for d in windows)
        window = [-1 if d in gone else next(left) for d in range(len(order))]
        moved = [window[d] for d in order]
        changes = {
            "index_vector_dim": (*index, len(index))[own["index_vector_dim"]],
            "scatter_dims_to_operand_dims": tuple(operand[d] for d in own["scatter_dims_to_operand_dims"]),
            "inserted_window_dims": tuple(n for n, d in enumerate(moved) if d == -1),
            "update_window_dims": tuple(d for d in moved if d != -1),
        }
        given = [self.input(x, order), self.input(indices), self.input(updates)]
        return self.put(i, given, **changes)


DERIVED = frozenset(
    {"concatenate", "iota", "scatter", "transpose", "reverse", "pad", "clamp", "select", "convolution"}
)
"""Opcodes whose new instructions take over shardings and notes."""
CONVOLUTIONS = "__cudnn$conv"
BATCHES = ("input_batching_dims", "scatter_indices_batching_dims")
HANDLERS: dict[str, Callable[[Normalizer, Instruction], int]] = {
    "constant": Normalizer.constant_, "slice": Normalizer.slice, "concatenate": Normalizer.concatenate,
    "reduce-window": Normalizer.reduce_window, "broadcast": Normalizer.broadcast, "iota": Normalizer.iota,
    "reshape": Normalizer.reshape_, "transpose": Normalizer.transpose, "copy": Normalizer.copy,
    "reverse": Normalizer.reverse, "pad": Normalizer.pad, "dynamic-slice": Normalizer.dynamic_slice,
    "dynamic-update-slice": Normalizer.dynamic_update_slice, "convolution": Normalizer.convolution,
    "scatter": Normalizer.scatter,
}  # fmt: skip


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
    """Turns reshapes and transposes that move no data into bitcasts, and merges chains of bitcasts.

    The bitcast part of XLA's `AlgebraicSimplifier` in layout-sensitive mode.
    """

    name: ClassVar[str] = "bitcast-simplifier"
    summary: ClassVar[str] = "Replaces operations that move no data with bitcasts."
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
        return PassResult.of(
            {"instructions": count, **apply_rules(module, BITCASTS, computations=chosen, on_refused="raise")}
        )


def _moves_nothing(i: Instruction, source: Shape) -> bool:
    assert i.shape is not None
    if i.opcode == "reshape":
        return layouts.reshape_is_bitcast(source, i.shape)
    return layouts.transpose_is_bitcast(source, i.shape, i.attributes["dimensions"])
