"""Demand for the operands of an operation, given what its users ask for.

An opcode that is not known here asks for all of its operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from hlotext.cost import convolution_dimensions
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.demand import Demand, Mask, Part, Parts, array_of, demand_of, part_of
from hlotext.lint.masks import Rate, kept_part
from hlotext.lint.sums import adds, takes_most
from hlotext.lint.values import Value, formula, is_counted
from hlotext.lint.zeros import Zeros

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = late_module("numpy")

_MOST_INDICES = 1 << 22
"""Indices of joined dimensions that are followed one by one; of more only their number."""


def operand_demands(
    one: Instruction,
    wanted: Demand | None,
    fusions: tuple[Instruction, ...],
    known: Zeros,
) -> list[Demand | None]:
    """Returns the demand for each operand of an operation, given that for its result; None for all elements."""
    nothing: list[Demand | None] = [None] * len(one.operands)
    opcode, shapes = one.opcode, [array_of(operand) for operand in one.operands]
    if (
        not one.operands
        or shapes[0] is None
        or (array_of(one) is None and opcode not in ("reduce", "custom-call"))
    ):
        return nothing
    first, rest = shapes[0], nothing[1:]
    if opcode == "slice":
        return [_sliced(one, wanted, first), *rest]
    if opcode == "dynamic-slice":
        return [_sliced_somewhere(one, wanted, first, fusions), *rest]
    if opcode == "gather":
        return [_gathered(one, wanted, first, fusions), *rest]
    if opcode == "pad":
        return [_padded(one, wanted, first), *rest]
    if opcode in ("select", "multiply"):
        return _masked(one, wanted, fusions, known)
    if opcode in traits.DOTS or opcode == "convolution":
        found = _multiplied(one, wanted, fusions, known) if opcode == "dot" else None
        found = found if found is not None else _of_product(one, wanted)
        return [
            _within(asked, known.mask_of(Value(operand, fusions)), shape)
            for asked, operand, shape in zip(found, one.operands, shapes, strict=True)
        ]
    if opcode in ("reduce", "reduce-window"):
        found = _reduced(one, wanted, first) if wanted is not None and opcode == "reduce" else nothing
        reducer = one.attributes.get("to_apply")
        if len(one.operands) == 2 and (adds(reducer) or takes_most(reducer)):
            mask = known.mask_of(Value(one.operands[0], fusions), not adds(reducer))
            found = [_within(found[0], mask, first), *found[1:]]
        return found
    if wanted is None:
        return nothing
    if opcode in ELEMENTWISE | traits.FORWARDS_OPERAND or opcode in ("copy", "reduce-precision"):
        same = one.shape.dimensions if one.shape is not None else ()
        return [wanted if shape is not None and shape.dimensions == same else None for shape in shapes]
    if opcode in ("bitcast", "reshape"):
        return [_reshaped(one, wanted, first)]
    if opcode == "transpose":
        permutation = tuple(one.attributes.get("dimensions", ()))
        return [_placed(wanted, {d: n for n, d in enumerate(permutation)}, first)]
    if opcode == "broadcast":
        dimensions = tuple(one.attributes.get("dimensions", ()))
        return [_placed(wanted, dict(enumerate(dimensions)), first)]
    if opcode == "reverse":
        return [wanted if all(part is None for part in wanted.parts) else None]
    if opcode == "concatenate":
        return _concatenated(one, wanted)
    if opcode == "custom-call":
        return _of_product(one, wanted)
    if opcode == "sort" and wanted is not None:
        along = (one.attributes.get("dimensions") or (first.rank - 1,))[0]
        parts = [None if d == along else part for d, part in enumerate(wanted.parts)]
        return [demand_of(parts)] * len(one.operands)
    return nothing


def _within(asked: Demand | None, rate: Rate | None, shape: Shape | None) -> Demand | None:
    """Demand for an array of which nothing that a mask leaves out adds to the result."""
    if rate is None or shape is None or (asked is not None and asked.masks is not None):
        return asked
    return Demand(asked.parts if asked is not None else (None,) * shape.rank, {rate.key: _mask(rate)})


def _mask(rate: Rate) -> Mask:
    return Mask(
        rate.part, frozenset(rate.dimensions), rate.is_counted, blocks=rate.blocks[0], rounds=rate.rounds[0]
    )


def _rate(known: Zeros, value: Value) -> Rate | None:
    return known.mask_of(value) or known.nonzero_part(value)


def _reduced(one: Instruction, wanted: Demand, shape: Shape) -> list[Demand | None]:
    reduced = one.attributes.get("dimensions", ())
    left = [d for d in range(shape.rank) if d not in reduced]
    if len(left) != len(wanted.parts):
        return [None] * len(one.operands)
    read = _placed(wanted, {d: n for n, d in enumerate(left)}, shape)
    return [
        read if (each := array_of(operand)) is not None and each.rank else None for operand in one.operands
    ]


def _placed(wanted: Demand, there: Mapping[int, int], shape: Shape) -> Demand | None:
    """Demand for an operand whose dimensions are these of the result; the others are read in full."""
    parts = [
        part if d in there and (part := wanted.parts[there[d]]) is not None and part.known.size == shape.dimensions[d]
        else None
        for d in range(shape.rank)
    ]  # fmt: skip
    back = {n: d for d, n in there.items() if shape.dimensions[d] > 1 or d in there}
    masks: dict[object, Mask] | None = None
    if wanted.masks is not None and all(mask.dimensions <= back.keys() for mask in wanted.masks.values()):
        masks = {
            key: attrs.evolve(mask, dimensions=frozenset(back[n] for n in mask.dimensions))
            for key, mask in wanted.masks.items()
        }
    return demand_of(parts, masks)


def product_places(one: Instruction) -> tuple[dict[int, int], dict[int, int]] | None:
    """Returns the positions of both operands' free and batch dimensions in a matmul's result; None for other
    operations.
    """
    lhs, rhs = (array_of(operand) for operand in one.operands[:2]) if len(one.operands) > 1 else (None, None)
    if lhs is None or rhs is None:
        return None
    attributes = one.attributes
    if one.opcode in traits.DOTS:
        batch = tuple(attributes.get("lhs_batch_dims", ())), tuple(attributes.get("rhs_batch_dims", ()))
        summed = attributes.get("lhs_contracting_dims", ()), attributes.get("rhs_contracting_dims", ())
        free = [
            [d for d in range(shape.rank) if d not in batch[n] and d not in summed[n]]
            for n, shape in enumerate((lhs, rhs))
        ]
        places = [{d: n for n, d in enumerate(each)} for each in batch]
        places[0] |= {d: len(batch[0]) + n for n, d in enumerate(free[0])}
        places[1] |= {d: len(batch[0]) + len(free[0]) + n for n, d in enumerate(free[1])}
        return places[0], places[1]
    if one.opcode == "convolution" and (found := convolution_dimensions(one)) is not None:
        left, right = {a: c for a, _, c in found.batch}, {b: c for _, b, c in found.batch}
        return left | dict(found.lhs), right | dict(found.rhs)
    return None


def _multiplied(
    one: Instruction, wanted: Demand | None, fusions: tuple[Instruction, ...], known: Zeros
) -> list[Demand | None] | None:
    """Demand for the operands of a product of which one is mostly zero, as `_masked`: zeros in dimensions that both have drop
    elements of the other. None if that is not so."""
    names = [
        (*one.attributes.get(f"{side}_batch_dims", ()), *one.attributes.get(f"{side}_contracting_dims", ()))
        for side in ("lhs", "rhs")
    ]
    for side, operand in enumerate(one.operands[:2]):
        shape, other = array_of(operand), array_of(one.operands[1 - side])
        rate = _rate(known, Value(operand, fusions))
        if rate is None or shape is None or other is None or len(one.operands) != 2:
            continue
        there = dict(zip(names[side], names[1 - side], strict=True))
        dimensions = {d for d in rate.dimensions if shape.dimensions[d] > 1}
        if dimensions <= there.keys():
            found = _of_product(one, wanted)
            if found[1 - side] is None:
                mask = Mask(rate.part, frozenset(there[d] for d in dimensions), rate.is_counted)
                found[1 - side] = Demand((None,) * other.rank, {rate.key: mask})
            return found
    return None


def _of_product(one: Instruction, wanted: Demand | None) -> list[Demand | None]:
    """Demand for the operands of a product, given that for its result: rows and columns."""
    places = product_places(one) if wanted is not None else None
    found: list[Demand | None] = [None] * len(one.operands)
    if wanted is not None and places is not None:
        for n, there in enumerate(places):
            shape = array_of(one.operands[n])
            found[n] = _placed(wanted, there, shape) if shape is not None else None
    return found


def _range(size: int, first: int, last: int, stride: int = 1) -> NDArray[np.bool_]:
    known = np.zeros(size, np.bool_)
    known[first:last:stride] = True
    return known


def _sliced(one: Instruction, wanted: Demand | None, shape: Shape) -> Demand | None:
    parts: list[Part | None] = []
    for d, cut in enumerate(one.attributes["slice"].dimensions):
        part = wanted.parts[d] if wanted is not None else None
        size = shape.dimensions[d]
        if part is None:
            parts.append(part_of(_range(size, cut.start, cut.limit, cut.stride or 1)))
        else:
            known = np.zeros(size, np.bool_)
            known[cut.start : cut.limit : cut.stride or 1] = part.known
            parts.append(part_of(known, part.loose))
    return demand_of(parts, wanted.masks if wanted is not None else None)


def _sliced_somewhere(
    one: Instruction, wanted: Demand | None, shape: Shape, fusions: tuple[Instruction, ...]
) -> Demand | None:
    parts: list[Part | None] = []
    for d, (size, taken) in enumerate(
        zip(shape.dimensions, one.attributes["dynamic_slice_sizes"], strict=True)
    ):
        part = wanted.parts[d] if wanted is not None else None
        if size == taken:
            parts.append(part)
            continue
        index = one.operands[1 + d] if len(one.operands) == 1 + shape.rank else None
        key = (taken, formula(Value(index, fusions)) if index is not None else one)
        parts.append(part_of(np.zeros(size, np.bool_), {key: part.count if part is not None else taken}))
    return demand_of(parts, wanted.masks if wanted is not None else None)


def _gathered(
    one: Instruction, wanted: Demand | None, shape: Shape, fusions: tuple[Instruction, ...]
) -> Demand | None:
    attributes, result = one.attributes, one.shape
    offsets, sizes = attributes.get("offset_dims", ()), attributes.get("slice_sizes", ())
    inside = (*attributes.get("collapsed_slice_dims", ()), *attributes.get("operand_batching_dims", ()))
    indexed = [d for d, size in enumerate(sizes) if size != shape.dimensions[d]]
    if result is None or len(indexed) == 0 or attributes.get("operand_batching_dims"):
        return None
    window = [d for d in range(shape.rank) if d not in inside]
    counts = [
        part.count if wanted is not None and (part := wanted.parts[n]) is not None else result.dimensions[n]
        for n in range(result.rank)
    ]
    picked = math.prod(count for n, count in enumerate(counts) if n not in offsets)
    parts: list[Part | None] = [None] * shape.rank
    for d, offset in zip(window, offsets, strict=True):
        if d not in indexed and wanted is not None:
            parts[d] = wanted.parts[offset]
    if len(indexed) == 1:
        (d,) = indexed
        parts[d] = part_of(np.zeros(shape.dimensions[d], np.bool_), {one: picked * sizes[d]})
        return demand_of(parts)
    part = picked * math.prod(sizes[d] / max(1, shape.dimensions[d]) for d in indexed)
    if part >= 1:
        return demand_of(parts)
    counted = is_counted(Value(one.operands[1], fusions))
    return demand_of(
        parts, {one: Mask(part, frozenset(indexed), counted, picked if math.prod(sizes) == 1 else 0)}
    )


def _padded(one: Instruction, wanted: Demand | None, shape: Shape) -> Demand | None:
    config, result = one.attributes.get("padding"), one.shape
    if config is None or result is None:
        return None
    parts: list[Part | None] = []
    for d, edge in enumerate(config.dimensions):
        places = edge.edge_padding_low + np.arange(shape.dimensions[d]) * (1 + edge.interior_padding)
        is_in = (places >= 0) & (places < result.dimensions[d])
        part = wanted.parts[d] if wanted is not None else None
        known = is_in.copy()
        if part is not None and places.size:
            known &= part.known[np.clip(places, 0, result.dimensions[d] - 1)]
        parts.append(part_of(known, part.loose if part is not None else {}))
    return demand_of(parts, wanted.masks if wanted is not None else None)


def _concatenated(one: Instruction, wanted: Demand) -> list[Demand | None]:
    dimension = one.attributes.get("dimensions", (0,))[0]
    along, place = wanted.parts[dimension], 0
    found: list[Demand | None] = []
    for operand in one.operands:
        shape = array_of(operand)
        size = shape.dimensions[dimension] if shape is not None else 0
        parts = list(wanted.parts)
        if along is not None:
            parts[dimension] = part_of(along.known[place : place + size], along.loose)
        found.append(demand_of(parts, wanted.masks))
        place += size
    return found


def _masked(
    one: Instruction,
    wanted: Demand | None,
    fusions: tuple[Instruction, ...],
    known: Zeros,
) -> list[Demand | None]:
    """Demand for operands of `select` and `multiply`: where the mask is true, or the other factor may not be zero."""
    shape, values = array_of(one), [Value(operand, fusions) for operand in one.operands]
    if shape is None or shape.rank == 0 or any(array_of(operand) is None for operand in one.operands):
        return [None] * len(one.operands)
    found: list[Demand | None] = [wanted] * len(values)
    if wanted is not None and wanted.masks is not None:
        return found
    if one.opcode == "select":
        kept = kept_part(values[0])
        rates = [None, kept, kept.complement() if kept is not None else None]
    else:
        rates = [_rate(known, values[1]), _rate(known, values[0])]
    for n, rate in enumerate(rates):
        if rate is not None and rate.part < 1:
            mask = _mask(rate)
            parts = wanted.parts if wanted is not None else (None,) * shape.rank
            found[n] = Demand(parts, {rate.key: mask})
    return found


# ---- other shapes of the same elements


def _reshaped(one: Instruction, wanted: Demand, shape: Shape) -> Demand | None:
    result = one.shape
    assert result is not None
    if result.dimensions == shape.dimensions and (one.opcode == "reshape" or _order(result) == _order(shape)):
        return wanted
    after, before = list(range(result.rank)), list(range(shape.rank))
    if one.opcode == "bitcast":
        if result.element_type != shape.element_type:
            return None
        after, before = _order(result), _order(shape)
    parts: list[Part | None] = [None] * shape.rank
    to: dict[int, frozenset[int]] = {}
    for new, old in _groups([result.dimensions[d] for d in after], [shape.dimensions[d] for d in before]):
        news, olds = [after[n] for n in new], [before[n] for n in old]
        to.update((d, frozenset(olds)) for d in news)
        if math.prod(result.dimensions[d] for d in news) != math.prod(shape.dimensions[d] for d in olds):
            continue  # on TPU a bitcast may make padding of elements: of such dimensions all is asked
        for d, part in zip(
            olds,
            _regrouped(
                [wanted.parts[d] for d in news],
                [result.dimensions[d] for d in news],
                [shape.dimensions[d] for d in olds],
            ),
            strict=True,
        ):
            parts[d] = part
    masks = None
    if wanted.masks is not None:
        masks = {
            key: attrs.evolve(
                mask, dimensions=frozenset[int]().union(*(to.get(d, frozenset()) for d in mask.dimensions))
            )
            for key, mask in wanted.masks.items()
        }
    return demand_of(parts, masks)


def _order(shape: Shape) -> list[int]:
    """The dimensions in the order of memory, major to minor."""
    layout = shape.layout
    order = list(reversed(layout.minor_to_major)) if layout is not None else []
    return order if len(order) == shape.rank else list(range(shape.rank))


def _groups(new: Sequence[int], old: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The least sets of neighbouring dimensions that have as many elements on both sides."""
    i = j = 0
    while i < len(new) or j < len(old):
        a, b = [i] if i < len(new) else [], [j] if j < len(old) else []
        i, j = i + len(a), j + len(b)
        left, right = math.prod(new[n] for n in a), math.prod(old[n] for n in b)
        while left != right and (i < len(new) or j < len(old)):
            if (left < right or j >= len(old)) and i < len(new):
                a.append(i)
                left *= new[i]
                i += 1
            else:
                b.append(j)
                right *= old[j]
                j += 1
        yield a, b


def _regrouped(
    parts: Sequence[Part | None], sizes: Sequence[int], olds: Sequence[int]
) -> Sequence[Part | None]:
    """The indices of dimensions that are joined or split, from those of the result."""
    if all(part is None for part in parts) or not olds:
        return [None] * len(olds)
    whole = math.prod(sizes)
    counts = [size if part is None else part.count for part, size in zip(parts, sizes, strict=True)]
    real = [(part, size) for part, size in zip(parts, sizes, strict=True) if size > 1]
    if len(real) == 1 and sum(size > 1 for size in olds) == 1:
        return [real[0][0] if size > 1 else None for size in olds]
    if whole > _MOST_INDICES or any(part is not None and part.loose for part in parts):
        wanted = tuple(size for size in olds if size > 1)
        if len(real) == 1 and (again := _split(real[0][0], wanted)) is not None:
            found = iter(again)
            return [next(found) if size > 1 else None for size in olds]
        # So many at the most, wherever they are.
        key = _Joined(tuple(size for _, size in real), tuple(part for part, _ in real))
        total = math.prod(counts)
        return [part_of(np.zeros(size, np.bool_), {key: min(size, total)}) for size in olds]
    flat = np.ones(1, np.bool_)
    for part, size in zip(parts, sizes, strict=True):
        flat = np.logical_and.outer(flat, np.ones(size, np.bool_) if part is None else part.known).reshape(-1)
    cube = flat.reshape(tuple(olds))
    return [
        part_of(np.atleast_1d(cube.any(axis=tuple(n for n in range(len(olds)) if n != d))))
        for d in range(len(olds))
    ]


@attrs.frozen
class _Joined:
    """Indices of one dimension that are those of several joined."""

    sizes: tuple[int, ...]
    parts: Parts = attrs.field(eq=False)
    key: object = attrs.field(init=False)

    @key.default
    def _identity(self) -> object:
        # By hashes: joined dimensions are joined again and again.
        return tuple(
            None if part is None else (hash(part.known.tobytes()), frozenset(map(hash, part.loose)))
            for part in self.parts
        )


def _split(part: Part | None, sizes: tuple[int, ...]) -> Parts | None:
    """The indices of the dimensions of these sizes that were joined; None if others were."""
    if part is None or part.known.any() or not part.loose:
        return None
    joined = [key for key in part.loose if isinstance(key, _Joined) and key.sizes == sizes]
    if len(joined) < len(part.loose):
        return None
    found = joined[0].parts
    for other in joined[1:]:
        found = Demand(found).joined(Demand(other.parts)).parts
    return found
