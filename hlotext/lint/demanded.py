"""Elements that are used: a walk from the results backwards, through fusions, to what each operation need compute.

What an array is asked for is a part of the indices of each dimension, and of the elements at these a part that masks keep.
Both are upper bounds: an opcode that the walk does not know asks for all of its operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from hlotext.analysis import fact
from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.masks import formula, kept_part, nonzero_part
from hlotext.lint.values import Value, is_counted

_MOST_INDICES = 1 << 22
"""Indices of joined dimensions that are followed one by one; of more only their number."""


@attrs.frozen(eq=False)
class Part:
    """Indices of a dimension: known ones, and so many at places that only the run tells, by what they depend on."""

    known: NDArray[np.bool_]
    loose: Mapping[object, int] = attrs.field(factory=dict)

    @property
    def count(self) -> int:
        """The most indices that these are."""
        return min(self.known.size, int(self.known.sum()) + sum(self.loose.values()))

    def joined(self, other: Part) -> Part | None:
        """The indices of both; None for all."""
        return _part(self.known | other.known, {**self.loose, **other.loose})


Parts: TypeAlias = "tuple[Part | None, ...]"
"""The indices of each dimension; None for all."""


@attrs.frozen
class Mask:
    """A part of the elements that is used, the same for all indices of the dimensions that it does not depend on."""

    part: float
    dimensions: frozenset[int]
    is_counted: bool
    """True if the mask depends on positions alone, not on data."""


@attrs.frozen(eq=False)
class Demand:
    """Elements of an array that its users ask for."""

    parts: Parts
    masks: Mapping[object, Mask] | None = None
    """Masks of which one at least must keep an element; None for all elements."""

    def fraction(self, shape: Shape) -> float:
        """The part of the elements of an array that is asked for, at the most."""
        sizes = shape.dimensions
        kept = math.prod(
            part.count / max(1, size)
            for part, size in zip(self.parts, sizes, strict=True)
            if part is not None
        )
        return kept * (
            1.0 if self.masks is None else min(1.0, sum(mask.part for mask in self.masks.values()))
        )

    def joined(self, other: Demand) -> Demand:
        parts = tuple(
            None if a is None or b is None else a.joined(b)
            for a, b in zip(self.parts, other.parts, strict=True)
        )
        masks = None if self.masks is None or other.masks is None else {**self.masks, **other.masks}
        return Demand(parts, masks)


Asked: TypeAlias = "Demand | dict[int, Asked] | None"
"""Demand for a result, of a tuple by elements; None for all of it."""


@fact
def demands(module: Module) -> Mapping[Instruction, Asked]:
    """Demand for the result of each instruction outside reducers and conditions, where that is not all of it."""
    graph = call_graph(module)
    walk = _Walk()
    for computation in graph.stepped:
        if not computation.is_fusion_body and len(computation):
            walk.enter(computation, None, ())
    return walk.found


def fraction(asked: Asked, shape: Shape | None) -> float:
    """The part of a result's elements that is asked for."""
    if shape is None or asked is None:
        return 1.0
    if isinstance(asked, Demand):
        return asked.fraction(shape) if shape.is_array else 1.0
    elements = shape.tuple_shapes
    sizes = [max(1, _elements(one)) for one in elements]
    part = sum(
        size * fraction(asked.get(n), one) for n, (one, size) in enumerate(zip(elements, sizes, strict=True))
    )
    return part / max(1, sum(sizes))


def _elements(shape: Shape) -> int:
    if shape.is_tuple:
        return sum(map(_elements, shape.tuple_shapes))
    return (shape.element_count or 0) if shape.is_array else 0


class _Walk:
    def __init__(self) -> None:
        self.found: dict[Instruction, Asked] = {}
        self._nonzero: dict[Value, float] = {}

    def enter(self, body: Computation, asked: Asked, fusions: tuple[Instruction, ...]) -> dict[int, Asked]:
        """Walks through a computation of whose root this is asked; what it asks of its parameters, by their numbers."""
        pending: dict[Instruction, Asked] = {body.root: asked}
        given: dict[int, Asked] = {}
        for one in reversed(operands_first(body)):
            wanted = pending.get(one)
            if wanted is not None:
                self.found[one] = wanted
            if one.opcode == "parameter":
                if one in pending:
                    given[one.parameter_number or 0] = wanted
                continue
            if wanted is None and one.opcode not in _NARROWING:
                pending.update(dict.fromkeys(one.operands))
                continue
            for operand, more in self._operands(one, wanted, fusions):
                pending[operand] = _joined(pending[operand], more) if operand in pending else more
        return given

    def _operands(
        self, one: Instruction, wanted: Asked, fusions: tuple[Instruction, ...]
    ) -> Iterator[tuple[Instruction, Asked]]:
        opcode = one.opcode
        if opcode == "get-tuple-element":
            index = one.attributes.get("index")
            yield (
                one.operands[0],
                {index: wanted} if isinstance(index, int) and _is_taken_apart(one.operands[0]) else None,
            )
        elif opcode == "tuple":
            for number, operand in enumerate(one.operands):
                yield operand, wanted.get(number) if isinstance(wanted, dict) else None
        elif opcode == "fusion" and one.called_computations and len(one.called_computations[0].callers) == 1:
            given = self.enter(one.called_computations[0], wanted, (*fusions, one))
            for number, operand in enumerate(one.operands):
                if number in given:
                    yield operand, given[number]
        else:
            if isinstance(wanted, dict):  # a reduction or sort of several arrays reads them alike
                wanted = _alike(wanted, one)
            yield from zip(one.operands, _asks(one, wanted, fusions, self._nonzero), strict=True)


_NARROWING = frozenset(
    {"dynamic-slice", "fusion", "gather", "get-tuple-element", "multiply", "pad", "select", "slice"}
)
"""Opcodes that ask for a part of an operand, or call what may, even if all of their result is used."""


def _is_taken_apart(made: Instruction) -> bool:
    return not made.is_root and all(user.opcode == "get-tuple-element" for user in made.users)


def _joined(a: Asked, b: Asked) -> Asked:
    if isinstance(a, Demand) and isinstance(b, Demand):
        return a.joined(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return {n: _joined(a[n], b[n]) if n in a and n in b else a.get(n, b.get(n)) for n in a | b}
    return None


def _alike(wanted: dict[int, Asked], one: Instruction) -> Demand | None:
    if one.opcode not in ("reduce", "sort"):
        return None
    found: Asked = next(iter(wanted.values()), None)
    for other in wanted.values():
        found = _joined(found, other)
    return found if isinstance(found, Demand) else None


def _part(known: NDArray[np.bool_], loose: Mapping[object, int] | None = None) -> Part | None:
    found = Part(known, loose or {})
    return None if found.count >= known.size else found


def _demand(parts: Iterable[Part | None], masks: Mapping[object, Mask] | None = None) -> Demand | None:
    """Demand of these parts and masks; None for all."""
    found = tuple(parts)
    return Demand(found, masks) if masks is not None or any(part is not None for part in found) else None


def _array(one: Instruction) -> Shape | None:
    return one.shape if one.shape is not None and one.shape.is_array and not one.shape.is_unbounded else None


# ---- what an operation asks of its operands


def _asks(
    one: Instruction,
    wanted: Demand | None,
    fusions: tuple[Instruction, ...],
    nonzero: dict[Value, float],
) -> list[Demand | None]:
    """Demand for each operand of an operation, given that for its result."""
    nothing: list[Demand | None] = [None] * len(one.operands)
    opcode, shapes = one.opcode, [_array(operand) for operand in one.operands]
    if (
        not one.operands
        or shapes[0] is None
        or (_array(one) is None and opcode not in ("reduce", "custom-call"))
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
        return _masked(one, wanted, fusions, nonzero)
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
    if opcode == "reduce":
        reduced = one.attributes.get("dimensions", ())
        left = [d for d in range(first.rank) if d not in reduced]
        if len(left) != len(wanted.parts):
            return nothing
        read = _placed(wanted, {d: n for n, d in enumerate(left)}, first)
        return [read if shape is not None and shape.rank else None for shape in shapes]
    if opcode in traits.DOTS or opcode in ("convolution", "custom-call"):
        places = product_places(one)
        if places is not None and len(one.operands) >= 2:
            return [
                *(
                    _placed(wanted, there, shape) if shape is not None else None
                    for there, shape in zip(places, shapes, strict=False)
                ),
                *nothing[2:],
            ]
    if opcode == "sort" and wanted is not None:
        along = (one.attributes.get("dimensions") or (first.rank - 1,))[0]
        parts = [None if d == along else part for d, part in enumerate(wanted.parts)]
        return [_demand(parts)] * len(one.operands)
    return nothing


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
    return _demand(parts, masks)


def product_places(one: Instruction) -> tuple[dict[int, int], dict[int, int]] | None:
    """Where the dimensions of both operands of a product stand in its result, those that are not summed; None for what is no
    product of two arrays."""
    lhs, rhs = (_array(operand) for operand in one.operands[:2]) if len(one.operands) > 1 else (None, None)
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
    if one.opcode == "convolution":
        window, labels = attributes.get("window"), attributes.get("dim_labels")
        if (
            labels is None
            or attributes.get("feature_group_count", 1) != 1
            or attributes.get("batch_group_count", 1) != 1
        ):
            return None
        windows = window.dimensions if window is not None else ()
        there = {labels.input_batch_dimension: labels.output_batch_dimension}
        there |= dict(zip(labels.input_spatial_dimensions, labels.output_spatial_dimensions, strict=True))
        other = {labels.kernel_output_feature_dimension: labels.output_feature_dimension}
        for w, d, place in zip(
            windows, labels.kernel_spatial_dimensions, labels.output_spatial_dimensions, strict=True
        ):
            if w.padding_low or w.padding_high or (w.stride, w.base_dilation) != (max(1, w.size - 1), w.size):
                return None
            if w.size > 1:  # the TPU compiler's form of a batch dimension
                other[d] = place
        return there, other
    return None


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
            parts.append(_part(_range(size, cut.start, cut.limit, cut.stride or 1)))
        else:
            known = np.zeros(size, np.bool_)
            known[cut.start : cut.limit : cut.stride or 1] = part.known
            parts.append(_part(known, part.loose))
    return _demand(parts, wanted.masks if wanted is not None else None)


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
        parts.append(_part(np.zeros(size, np.bool_), {key: part.count if part is not None else taken}))
    return _demand(parts, wanted.masks if wanted is not None else None)


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
        parts[d] = _part(np.zeros(shape.dimensions[d], np.bool_), {one: picked * sizes[d]})
        return _demand(parts)
    part = picked * math.prod(sizes[d] / max(1, shape.dimensions[d]) for d in indexed)
    return _demand(
        parts,
        {one: Mask(part, frozenset(indexed), is_counted(Value(one.operands[1], fusions)))}
        if part < 1
        else None,
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
        parts.append(_part(known, part.loose if part is not None else {}))
    return _demand(parts, wanted.masks if wanted is not None else None)


def _concatenated(one: Instruction, wanted: Demand) -> list[Demand | None]:
    dimension = one.attributes.get("dimensions", (0,))[0]
    along, place = wanted.parts[dimension], 0
    found: list[Demand | None] = []
    for operand in one.operands:
        shape = _array(operand)
        size = shape.dimensions[dimension] if shape is not None else 0
        parts = list(wanted.parts)
        if along is not None:
            parts[dimension] = _part(along.known[place : place + size], along.loose)
        found.append(_demand(parts, wanted.masks))
        place += size
    return found


def _masked(
    one: Instruction,
    wanted: Demand | None,
    fusions: tuple[Instruction, ...],
    nonzero: dict[Value, float],
) -> list[Demand | None]:
    """Demand for operands of `select` and `multiply`: where the mask is true, or the other factor may not be zero."""
    shape, values = _array(one), [Value(operand, fusions) for operand in one.operands]
    if shape is None or shape.rank == 0 or any(_array(operand) is None for operand in one.operands):
        return [None] * len(one.operands)
    found: list[Demand | None] = [wanted] * len(values)
    if one.opcode == "select":
        kept = kept_part(values[0])
        rates = [None, kept, kept.complement() if kept is not None else None]
    else:
        rates = [nonzero_part(values[1], nonzero), nonzero_part(values[0], nonzero)]
    for n, rate in enumerate(rates):
        if rate is not None and rate.part < 1 and (wanted is None or wanted.masks is None):
            mask = Mask(rate.part, frozenset(rate.dimensions), rate.is_counted)
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
    return _demand(parts, masks)


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
        return [_part(np.zeros(size, np.bool_), {key: min(size, total)}) for size in olds]
    flat = np.ones(1, np.bool_)
    for part, size in zip(parts, sizes, strict=True):
        flat = np.logical_and.outer(flat, np.ones(size, np.bool_) if part is None else part.known).reshape(-1)
    cube = flat.reshape(tuple(olds))
    return [
        _part(np.atleast_1d(cube.any(axis=tuple(n for n in range(len(olds)) if n != d))))
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
    """The indices of the dimensions of these sizes that were joined; None where others were."""
    if part is None or part.known.any() or not part.loose:
        return None
    joined = [key for key in part.loose if isinstance(key, _Joined) and key.sizes == sizes]
    if len(joined) < len(part.loose):
        return None
    found = joined[0].parts
    for other in joined[1:]:
        found = Demand(found).joined(Demand(other.parts)).parts
    return found
