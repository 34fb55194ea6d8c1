"""Rules about products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.rewrite.kit.builder import Builder, retyped
from hlotext.rewrite.kit.facts import (
    dims,
    is_empty,
    one_user,
    shape_of,
    sizes,
    type_of,
    without_dimensions,
    without_ones,
)
from hlotext.rewrite.kit.rules import Result, pattern
from hlotext.rewrite.passes.simplify.algebra.context import AlgebraRewrite
from hlotext.rewrite.passes.simplify.reshape_mover import transposed

NUMBERS = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")


@attrs.frozen
class DotNumbers:
    """Dimension numbers of a dot: corresponding dimensions of its operands (`DotDimensionNumbers`)."""

    lhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    rhs_contracting: tuple[int, ...]

    @classmethod
    def of(cls, i: Instruction) -> DotNumbers:
        """Returns the dimension numbers of a dot."""
        return cls(*(tuple(i.attributes.get(name, ())) for name in NUMBERS))

    def swapped(self) -> DotNumbers:
        """Returns the dimension numbers of the dot with its operands swapped."""
        return DotNumbers(self.rhs_batch, self.rhs_contracting, self.lhs_batch, self.lhs_contracting)

    def attributes(self) -> dict[str, Any]:
        """Returns the dimension numbers as attributes, omitting empty batch dimensions."""
        pairs = zip(
            NUMBERS, (self.lhs_batch, self.lhs_contracting, self.rhs_batch, self.rhs_contracting), strict=True
        )
        return {name: value for name, value in pairs if value or "contracting" in name}


def settings(i: Instruction, swap: bool = False) -> dict[str, Any]:
    """Returns the attributes that control how a dot is computed (`PrecisionConfig`)."""
    own: dict[str, Any] = {
        k: i.attributes[k] for k in ("operand_precision", "algorithm") if k in i.attributes
    }
    if swap and isinstance(own.get("operand_precision"), tuple):
        own["operand_precision"] = own["operand_precision"][::-1]
    return own


def dot_shape(
    r: AlgebraRewrite, type_: ElementType, lhs: Instruction, rhs: Instruction, n: DotNumbers
) -> Shape:
    """Returns the shape of a dot (`ShapeInference::InferDotOpShape`)."""
    size = [sizes(lhs)[d] for d in n.lhs_batch]
    size += [v for d, v in enumerate(sizes(lhs)) if d not in (*n.lhs_batch, *n.lhs_contracting)]
    size += [v for d, v in enumerate(sizes(rhs)) if d not in (*n.rhs_batch, *n.rhs_contracting)]
    return r.shape(type_, size)


def make_dot(
    r: AlgebraRewrite,
    like: Instruction,
    lhs: Instruction,
    rhs: Instruction,
    n: DotNumbers,
    *,
    swap: bool = False,
) -> Instruction:
    """Creates a dot with the settings and annotations of another one."""
    shape = dot_shape(r, type_of(like), lhs, rhs, n)
    new = r.create("dot", shape, (lhs, rhs), **n.attributes(), **settings(like, swap))
    return r.copy_annotations_from(like, new)


def _is_plain(i: Instruction) -> bool:
    """`SupportedDotPrecisionConfig`."""
    return str(i.attributes.get("algorithm", "")) in ("", "dot_unset", "dot_f32_f32_f32")


@pattern("dot", handler="HandleDot")
def dot_of_nothing(r: AlgebraRewrite) -> Result:
    """k = f32[4,0] slice(x), slice={[0:4], [0:0]}; l = f32[0,3] slice(y), slice={[0:0], [0:3]};
    f32[4,3] dot(k, l), lhs_contracting_dims={1}, rhs_contracting_dims={0} => f0"""
    i = r.instruction
    if r.options.is_layout_sensitive or not any(map(is_empty, (i, *i.operands))):
        return False
    type_ = type_of(i)
    zero = Literal.from_array(np.zeros((), type_.dtype), Shape(type_))
    return r.replace_with_new(
        i, "broadcast", (r.create_like(i, "constant", Shape(type_), argument=zero),), dimensions=()
    )


def _ordered(
    r: AlgebraRewrite, x: Instruction, batch: Sequence[int], contracting: Sequence[int]
) -> Instruction:
    """An operand with batch dimensions first and contracting ones last
    (`NormalizeDotOperandToBatchMajorAndContractingMinor`)."""
    free = [d for d in range(len(sizes(x))) if d not in (*batch, *contracting)]
    order = (*batch, *free, *contracting)
    if list(order) == sorted(order):
        return x
    return r.create_like(x, "transpose", transposed(shape_of(x), order), (x,), dimensions=order)


def _as(r: AlgebraRewrite, x: Instruction, type_: ElementType) -> Instruction:
    return x if type_of(x) is type_ else r.create("convert", retyped(shape_of(x), type_), (x,))


@pattern("dot", handler="RewriteAsMultiplyDotWithZeroLhsContractingDim")
def dot_of_no_sum(r: AlgebraRewrite) -> Result:
    """v = f32[4] slice(u), slice={[0:4]}; w4 = f32[3] slice(u), slice={[0:3]};
    f32[4,3] dot(v, w4), lhs_contracting_dims={}, rhs_contracting_dims={} => v = f32[4] slice(u), slice={[0:4]};
    w4 = f32[3] slice(u), slice={[0:3]}; a = f32[4,3] broadcast(v), dimensions={0};
    b = f32[4,3] broadcast(w4), dimensions={1};
    multiply(a, b)"""
    i = r.instruction
    n = DotNumbers.of(i)
    if not r.options.enable_dot_to_multiply_rewrite:
        return False
    if r.options.is_layout_sensitive or n.lhs_contracting or not _is_plain(i):
        return False
    lhs, rhs = i.operands
    new_lhs = _as(r, _ordered(r, lhs, n.lhs_batch, ()), type_of(i))
    new_rhs = _as(r, _ordered(r, rhs, n.rhs_batch, ()), type_of(i))
    rank = len(sizes(i))
    if rank != len(sizes(lhs)):
        new_lhs = r.create_like(
            i, "broadcast", shape_of(i), (new_lhs,), dimensions=tuple(range(len(sizes(lhs))))
        )
    if rank != len(sizes(rhs)):
        places = (*range(len(n.lhs_batch)), *range(len(sizes(lhs)), rank))
        new_rhs = r.create_like(i, "broadcast", shape_of(i), (new_rhs,), dimensions=places)
    for new, old in ((new_lhs, lhs), (new_rhs, rhs)):
        if new is not old:
            r.copy_annotations_from(i, new)
    return r.replace_with_new(i, "multiply", (new_lhs, new_rhs))


@pattern("dot", handler="RewriteBatchPlusContractingAsReduce")
def dot_as_sum(r: AlgebraRewrite) -> Result:
    """cpu: k = f32[5] slice(u), slice={[0:5]}; f32[] dot(k, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    => k = f32[5] slice(u), slice={[0:5]}; m = f32[5] multiply(k, v); z = f32[] constant(0);
    f32[] reduce(m, z), dimensions={0}, to_apply=sum"""
    i = r.instruction
    n = DotNumbers.of(i)
    if r.options.is_layout_sensitive or not r.options.enable_dot_strength_reduction or not _is_plain(i):
        return False
    lhs, rhs = i.operands
    left = len(sizes(lhs)) - len(n.lhs_batch) - len(n.lhs_contracting)
    right = len(sizes(rhs)) - len(n.rhs_batch) - len(n.rhs_contracting)
    if (left and right) or (r.options.executing_on_cpu and (left or right)):
        return False
    if len(i.users) == 1 and i.users[0].attributes.get("custom_call_target") == "Sharding":
        return False
    new_lhs = _as(r, _ordered(r, lhs, n.lhs_batch, n.lhs_contracting), type_of(i))
    new_rhs = _as(r, _ordered(r, rhs, n.rhs_batch, n.rhs_contracting), type_of(i))
    batch = len(n.lhs_batch)
    if right:
        places = (*range(batch), *range(batch + right, batch + right + len(sizes(lhs)) - batch))
        new_lhs = r.create_like(i, "broadcast", shape_of(new_rhs), (new_lhs,), dimensions=places)
    elif left:
        places = (*range(batch), *range(batch + left, batch + left + len(sizes(rhs)) - batch))
        new_rhs = r.create_like(i, "broadcast", shape_of(new_lhs), (new_rhs,), dimensions=places)
    product = r.binary("multiply", new_lhs, new_rhs)
    wide = type_of(i)
    if wide.is_floating and wide.name != "f64":
        wide = ELEMENT_TYPES["f32"]
    product = _as(r, product, wide)
    first = max(left, right) + batch
    reduced = tuple(range(first, first + len(n.lhs_contracting)))
    total = _sum(r, product, reduced)
    return _as(r, total, type_of(i))


def _sum(r: AlgebraRewrite, x: Instruction, reduced: tuple[int, ...]) -> Instruction:
    """The sum over some dimensions (`AlgebraicSimplifierVisitor::AddReduce`)."""
    type_ = type_of(x)
    zero = r.create(
        "constant", Shape(type_), argument=Literal.from_array(np.zeros((), type_.dtype), Shape(type_))
    )
    home = x.computation
    assert home is not None
    function = r.sums.get(type_.name)
    if function is None:
        b = Builder.new(r.module, "scalar_add_computation", [Shape(type_), Shape(type_)], home)
        function = r.sums[type_.name] = b.finish(b.add(*b.computation.parameters))
    return r.create(
        "reduce", without_dimensions(shape_of(x), reduced), (x, zero), dimensions=reduced, to_apply=function
    )


@pattern("dot", handler="RemoveDegenerateDimensionFromDot")
def dot_of_ones(r: AlgebraRewrite) -> Result:
    """k = f32[1,3] slice(x), slice={[0:1], [0:3]}; f32[1,4] dot(k, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    => k = f32[1,3] slice(x), slice={[0:1], [0:3]}; r = f32[3] reshape(k);
    d = f32[4] dot(r, y), lhs_contracting_dims={0}, rhs_contracting_dims={1}; f32[1,4] reshape(d)"""
    i = r.instruction
    lhs, rhs = i.operands
    if r.options.is_layout_sensitive or (1 not in sizes(lhs) and 1 not in sizes(rhs)):
        return False
    n = DotNumbers.of(i)

    def left(x: Instruction, numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(d - sizes(x)[:d].count(1) for d in numbers if sizes(x)[d] != 1)

    def narrow(x: Instruction) -> Instruction:
        return r.create("reshape", without_ones(shape_of(x)), (x,)) if 1 in sizes(x) else x

    numbers = DotNumbers(
        left(lhs, n.lhs_batch),
        left(lhs, n.lhs_contracting),
        left(rhs, n.rhs_batch),
        left(rhs, n.rhs_contracting),
    )
    new = make_dot(r, i, narrow(lhs), narrow(rhs), numbers)
    if sizes(new) == sizes(i):
        return new
    return r.replace_with_new(i, "reshape", (new,), relay_control=True)


@pattern("dot", handler="RemoveTransposesFromDotOperands")
def dot_of_transposes(r: AlgebraRewrite) -> Result:
    """t = f32[3,4] transpose(x), dimensions={1,0}; r = f32[4,3] reshape(y); k = f32[4,3] transpose(q3), dimensions={1,0};
    f32[3,3] dot(t, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    => d = f32[3,3] dot(q3, x), lhs_contracting_dims={1}, rhs_contracting_dims={0};
    f32[3,3] transpose(d), dimensions={1,0}"""
    i = r.instruction
    lhs, rhs = i.operands
    if (
        r.options.is_layout_sensitive
        or lhs.opcode != "transpose"
        or rhs.opcode != "transpose"
        or dims(lhs) != dims(rhs)
    ):
        return False
    order, n, rank = dims(lhs), DotNumbers.of(i), len(sizes(i))
    plain = (
        n.lhs_batch == n.rhs_batch and n.lhs_contracting == (rank - 1,) and n.rhs_contracting == (rank - 2,)
    )
    if not plain or rank != len(n.lhs_batch) + 2:
        return False
    if order[rank - 2 :] == (rank - 2, rank - 1):
        pair, swap = (lhs.operands[0], rhs.operands[0]), False
    elif order[rank - 2 :] == (rank - 1, rank - 2):
        pair, swap = (rhs.operands[0], lhs.operands[0]), True
    else:
        return False
    new = r.create_like(i, "dot", transposed(shape_of(i), order), pair, **n.attributes(), **settings(i, swap))
    return r.replace_with_new(i, "transpose", (new,), dimensions=order)


def is_parameter_like(i: Instruction) -> bool:
    """Returns True for a parameter, or a chain of single-operand operations on one (`IsParameterLike`)."""
    while i.opcode != "parameter":
        if len(i.operands) != 1:
            return False
        i = i.operands[0]
    return True


def transposed_dot(r: AlgebraRewrite, i: Instruction) -> bool:
    """Rewrites transpose(dot(a, b)) => dot(b, a) (`HandleTranspose`)."""
    dot = i.operands[0]
    if dot.opcode != "dot" or not one_user(dot):
        return False
    lhs, rhs = dot.operands
    if r.options.keeps_dot_param_on_rhs and is_parameter_like(rhs) and not is_parameter_like(lhs):
        return False
    n = DotNumbers.of(dot)
    rank = len(sizes(dot))
    if r.options.supports_non_canonical_dots:
        return _any_transposed_dot(r, i, dot, n)
    batch = len(n.lhs_batch)
    if n.lhs_batch != n.rhs_batch or sorted(n.lhs_batch) != list(range(batch)):
        return False
    for x, contracting in ((lhs, n.lhs_contracting), (rhs, n.rhs_contracting)):
        if not contracting or len(contracting) + batch + 1 != len(sizes(x)):
            return False
    if dims(i) != (*range(rank - 2), rank - 1, rank - 2):
        return False
    new = DotNumbers(n.lhs_batch, n.rhs_contracting, n.rhs_batch, n.lhs_contracting)
    return r.replace_with_new(i, "dot", (rhs, lhs), **new.attributes(), **settings(dot, swap=True))


def _any_transposed_dot(r: AlgebraRewrite, i: Instruction, dot: Instruction, n: DotNumbers) -> bool:
    lhs, rhs = dot.operands
    batch, order = len(n.lhs_batch), dims(i)
    left = len(sizes(lhs)) - batch - len(n.lhs_contracting)
    right = len(sizes(rhs)) - batch - len(n.rhs_contracting)
    if any(d >= batch for d in order[:batch]):
        return False
    if order[batch:] != (*range(batch + left, batch + left + right), *range(batch, batch + left)):
        return False
    new = DotNumbers(
        tuple(n.rhs_batch[d] for d in order[:batch]), n.rhs_contracting,
        tuple(n.lhs_batch[d] for d in order[:batch]), n.lhs_contracting,
    )  # fmt: skip
    made = r.create("dot", shape_of(i), (rhs, lhs), **new.attributes(), **settings(dot, swap=True))
    return r.replace(i, r.copy_annotations_from(dot, made))
