"""Factors of operations, as Shardy calls them: dimensions of operands and results that are cut together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.specs import Dims
from hlotext.ir.tables import opcodes

PASSES, SUMS, WHOLE, SHIFTS = "passes", "sums", "whole", "shifts"
"""The price of cutting a factor: nothing; a sum over devices; it has to be gathered; neighbours exchange edges."""


@attrs.frozen
class Factor:
    """Dimensions of operands and results that are sharded together."""

    size: int
    kind: str
    is_blocked: bool = False
    """True if a sharding does not spread along it."""


@attrs.frozen
class Rule:
    """The factors of an operation."""

    factors: tuple[Factor, ...]
    dims: tuple[tuple[tuple[int, ...], ...], ...]
    """For each operand and then each result, for each of its dimensions, its factors, the most major first."""


class _Maker:
    def __init__(self, shapes: Sequence[Dims]) -> None:
        self._dims: list[list[list[int]]] = [[[] for _ in shape] for shape in shapes]
        self._factors: list[Factor] = []

    def add(
        self, size: int, places: Sequence[tuple[int, int]], kind: str = PASSES, is_blocked: bool = False
    ) -> None:
        """A factor, and the (array, dimension) pairs that have it."""
        for array, dimension in places:
            self._dims[array][dimension].append(len(self._factors))
        self._factors.append(Factor(size, kind, is_blocked))

    def made(self) -> Rule:
        return Rule(tuple(self._factors), tuple(tuple(tuple(one) for one in each) for each in self._dims))


def _numbers(node: hlo.Instruction, name: str) -> tuple[int, ...]:
    value = node.attributes.get(name)
    return tuple(value) if isinstance(value, tuple) else ()


def rule_of(node: hlo.Instruction, operands: Sequence[Dims], results: Sequence[Dims]) -> Rule | None:
    """Returns the factors of an operation, or None if its opcode is not modeled."""
    make = _Maker([*operands, *results])
    maker = _MAKERS.get(node.opcode, _elementwise if node.opcode in opcodes.ELEMENTWISE else None)
    return make.made() if maker is not None and maker(make, node, operands, results) is not False else None


def rule_of_alike(dimensions: Dims) -> Rule:
    """Returns the rule of an operation that forwards an array of these sizes."""
    dims = tuple((n,) for n in range(len(dimensions)))
    return Rule(tuple(Factor(size, PASSES) for size in dimensions), (dims, dims))


_Shapes = Sequence[Dims]


def _elementwise(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> bool:
    arrays = [n for n, one in enumerate((*operands, *results)) if one]
    for d, size in enumerate(results[0]):
        make.add(size, [(n, d) for n in arrays])
    return all(not one or one == results[0] for one in operands)


def _transpose(make: _Maker, node: hlo.Instruction, _: _Shapes, results: _Shapes) -> None:
    for d, source in enumerate(_numbers(node, "dimensions")):
        make.add(results[0][d], [(0, source), (1, d)])


def _broadcast(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    order = _numbers(node, "dimensions")
    for d, size in enumerate(results[0]):
        is_kept = d in order and operands[0][order.index(d)] == size
        make.add(size, [(0, order.index(d)), (1, d)] if is_kept else [(1, d)])


def _reduce(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    summed, inputs, kept = _numbers(node, "dimensions"), len(operands) // 2, 0
    for d, size in enumerate(operands[0]):
        places = [(n, d) for n in range(inputs)]
        if d in summed:
            make.add(size, places, SUMS)
        else:
            make.add(size, places + [(len(operands) + n, kept) for n in range(len(results))])
            kept += 1


def _dynamic_slice(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    for d, (a, b) in enumerate(zip(operands[0], results[0], strict=True)):
        make.add(b, [(0, d), (len(operands), d)], PASSES if a == b else WHOLE, is_blocked=a != b)


def _dynamic_update_slice(make: _Maker, _: hlo.Instruction, operands: _Shapes, _results: _Shapes) -> None:
    out = len(operands)
    for d, (whole, part) in enumerate(zip(operands[0], operands[1], strict=True)):
        make.add(whole, [(0, d), (out, d)] + ([(1, d)] if whole == part else []))
        if whole != part:
            make.add(part, [(1, d)], WHOLE)


def _slice(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    for d, (a, b) in enumerate(zip(operands[0], results[0], strict=True)):
        make.add(b, [(0, d), (len(operands), d)], PASSES if a == b else SHIFTS)


def _reverse(make: _Maker, node: hlo.Instruction, _: _Shapes, results: _Shapes) -> None:
    for d, size in enumerate(results[0]):
        make.add(size, [(0, d), (1, d)], SHIFTS if d in _numbers(node, "dimensions") else PASSES)


def _along(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    """Operations along some dimensions, which are to be whole: a concatenation, a sort."""
    along = _numbers(node, "dimensions")
    for d, size in enumerate(results[0]):
        places = [(n, d) for n in range(len(operands) + len(results))]
        make.add(size, places, WHOLE if d in along else PASSES)


def _topk(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    *batch, last = operands[0]
    for d, size in enumerate(batch):
        make.add(size, [(n, d) for n in range(1 + len(results))])
    make.add(last, [(0, len(batch))], WHOLE)
    make.add(results[0][-1], [(1 + n, len(batch)) for n in range(len(results))], WHOLE)


def _window(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> bool:
    window = node.attributes.get("window")
    if window is None:
        return False
    arrays = [n for n, one in enumerate((*operands, *results)) if one]
    for d, size in enumerate(results[0]):
        make.add(size, [(n, d) for n in arrays], SHIFTS if window.dimensions[d].size != 1 else PASSES)
    return True


def _fft(make: _Maker, node: hlo.Instruction, operands: _Shapes, _: _Shapes) -> None:
    count = len(_numbers(node, "fft_length")) or 1
    for d, size in enumerate(operands[0]):
        make.add(size, [(0, d), (1, d)], PASSES if d < len(operands[0]) - count else WHOLE)


def _matrix(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    """Operations on the last two dimensions."""
    for d, size in enumerate(results[0]):
        places = [(n, d) for n in range(len(operands) + 1)]
        make.add(size, places, PASSES if d < len(results[0]) - 2 else WHOLE)


def _generated(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    for n, shape in enumerate(results):
        for d, size in enumerate(shape):
            make.add(size, [(len(operands) + n, d)])


def _reshape(make: _Maker, _: hlo.Instruction, operands: _Shapes, results: _Shapes) -> None:
    """Factors of both shapes: what is left of the current dimensions, as far as one divides the other."""
    before, after = operands[0], results[0]
    at, to = 0, 0
    left, right = 1, 1
    while True:
        while left == 1 and at < len(before) and before[at] == 1:
            make.add(1, [(0, at)])
            at += 1
        while right == 1 and to < len(after) and after[to] == 1:
            make.add(1, [(1, to)])
            to += 1
        if left == 1:
            if at == len(before):
                return
            left = before[at]
        if right == 1:
            if to == len(after):
                return
            right = after[to]
        common = math.gcd(left, right)
        if common == 1:  # the dimensions fall out of step until their products meet
            product, other, first, second = left, right, at, to
            make.add(left, [(0, at)])
            make.add(right, [(1, to)])
            at, to = first + 1, second + 1
            while product != other:
                if product < other and at < len(before):
                    product *= before[at]
                    make.add(before[at], [(0, at)])
                    at += 1
                elif to < len(after):
                    other *= after[to]
                    make.add(after[to], [(1, to)])
                    to += 1
                else:
                    return
            left = right = 1
            continue
        make.add(common, [(0, at), (1, to)])
        left //= common
        right //= common
        if left == 1:
            at += 1
        if right == 1:
            to += 1


def _dot(make: _Maker, node: hlo.Instruction, operands: _Shapes, _: _Shapes) -> None:
    lhs, rhs = operands[:2]
    batch = list(zip(_numbers(node, "lhs_batch_dims"), _numbers(node, "rhs_batch_dims"), strict=False))
    summed = list(
        zip(_numbers(node, "lhs_contracting_dims"), _numbers(node, "rhs_contracting_dims"), strict=False)
    )
    at = 0
    for a, b in batch:
        make.add(lhs[a], [(0, a), (1, b), (2, at)])
        at += 1
    for side, shape in ((0, lhs), (1, rhs)):
        bound = {pair[side] for pair in (*batch, *summed)}
        for d, size in enumerate(shape):
            if d not in bound:
                make.add(size, [(side, d), (2, at)])
                at += 1
    for a, b in summed:
        make.add(lhs[a], [(0, a), (1, b)], SUMS)


def _convolution(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> bool:
    labels = node.attributes.get("dim_labels")
    groups = (node.attributes.get("feature_group_count") or 1, node.attributes.get("batch_group_count") or 1)
    if labels is None or groups != (1, 1):
        return False
    lhs = operands[0]
    batch, feature = labels.input_batch_dimension, labels.input_feature_dimension
    make.add(lhs[batch], [(0, batch), (2, labels.output_batch_dimension)])
    kernel = labels.kernel_output_feature_dimension
    make.add(operands[1][kernel], [(1, kernel), (2, labels.output_feature_dimension)])
    make.add(lhs[feature], [(0, feature), (1, labels.kernel_input_feature_dimension)], SUMS)
    for a, k, b in zip(
        labels.input_spatial_dimensions,
        labels.kernel_spatial_dimensions,
        labels.output_spatial_dimensions,
        strict=True,
    ):
        if 2 * results[0][b] < operands[1][k]:  # the gradient of a kernel: it sums over the images
            make.add(lhs[a], [(0, a), (1, k)], SUMS)
        else:
            make.add(results[0][b], [(0, a), (2, b)], PASSES if operands[1][k] == 1 else SHIFTS)
    return True


def _gather(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> bool:
    table, indices = operands[:2]
    offsets, collapsed = _numbers(node, "offset_dims"), _numbers(node, "collapsed_slice_dims")
    batching, of_indices = (
        _numbers(node, "operand_batching_dims"),
        _numbers(node, "start_indices_batching_dims"),
    )
    vector = node.attributes.get("index_vector_dim")
    sizes = _numbers(node, "slice_sizes")
    kept = [d for d in range(len(table)) if d not in collapsed and d not in batching]
    places = [d for d in range(len(indices)) if d != vector]
    batch = [d for d in range(len(results[0])) if d not in offsets]
    if len(kept) != len(offsets) or len(places) != len(batch) or len(sizes) != len(table):
        return False
    for d, out in zip(kept, offsets, strict=True):
        if sizes[d] == table[d]:
            make.add(table[d], [(0, d), (2, out)])
        elif sizes[d] == 1:
            make.add(table[d], [(0, d)], SUMS)
            make.add(1, [(2, out)], WHOLE)
        else:
            make.add(table[d], [(0, d), (2, out)], WHOLE, is_blocked=True)
    for d in collapsed:
        make.add(table[d], [(0, d)], SUMS if table[d] > 1 else WHOLE)
    for place, out in zip(places, batch, strict=True):
        pairs = [(1, place), (2, out)]
        if place in of_indices:
            pairs.append((0, batching[of_indices.index(place)]))
        make.add(results[0][out], pairs)
    if isinstance(vector, int) and vector < len(indices):
        make.add(indices[vector], [(1, vector)], WHOLE)
    return True


def _scatter(make: _Maker, node: hlo.Instruction, operands: _Shapes, results: _Shapes) -> bool:
    if len(operands) != 3:
        return False
    table, indices, updates = operands
    windows, inserted = _numbers(node, "update_window_dims"), _numbers(node, "inserted_window_dims")
    batching, of_indices = (
        _numbers(node, "input_batching_dims"),
        _numbers(node, "scatter_indices_batching_dims"),
    )
    vector = node.attributes.get("index_vector_dim")
    kept = [d for d in range(len(table)) if d not in inserted and d not in batching]
    places = [d for d in range(len(indices)) if d != vector]
    batch = [d for d in range(len(updates)) if d not in windows]
    if len(kept) != len(windows) or len(places) != len(batch):
        return False
    for d, update in zip(kept, windows, strict=True):
        if updates[update] == table[d]:
            make.add(table[d], [(0, d), (2, update), (3, d)])
        else:
            make.add(table[d], [(0, d), (3, d)])
            make.add(updates[update], [(2, update)], WHOLE)
    for d in inserted:
        make.add(table[d], [(0, d), (3, d)])
    for place, update in zip(places, batch, strict=True):
        if place in of_indices:
            d = batching[of_indices.index(place)]
            make.add(table[d], [(0, d), (1, place), (2, update), (3, d)])
        else:
            make.add(updates[update], [(1, place), (2, update)], SUMS)
    if isinstance(vector, int) and vector < len(indices):
        make.add(indices[vector], [(1, vector)], WHOLE)
    return True


_MAKERS: dict[str, Callable[[_Maker, hlo.Instruction, _Shapes, _Shapes], bool | None]] = {
    "copy": _elementwise,
    **dict.fromkeys(("reduce-precision", "bitcast-convert"), _elementwise),
    "transpose": _transpose,
    "broadcast": _broadcast,
    **dict.fromkeys(("reshape", "bitcast"), _reshape),
    "dot": _dot,
    "convolution": _convolution,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    **dict.fromkeys(("slice", "pad"), _slice),
    "reverse": _reverse,
    **dict.fromkeys(("concatenate", "sort"), _along),
    "topk": _topk,
    **dict.fromkeys(("reduce-window", "select-and-scatter"), _window),
    "fft": _fft,
    **dict.fromkeys(("cholesky", "triangular-solve"), _matrix),
    **dict.fromkeys(("iota", "constant"), _generated),
    **dict.fromkeys(("rng", "rng-bit-generator"), _generated),
}
