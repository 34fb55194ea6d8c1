"""Which operations GPU's special emitters take: reductions by warps, scatters, transposes through shared memory.

They make a fusion one of kind kInput (`ChooseFusionKind` in `xla/service/gpu/gpu_fusible.cc`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape

WARP = 32
MIN_DIMENSION, MIN_DIMENSION_2, MIN_TOTAL = 16, 8, 64 * 128
"""Sizes from which a transpose goes through shared memory (`ir_emission_utils.h`)."""
MAX_BITS_MINOR = 64
_BANKS, _BANK_BITS = 32, 32


def is_input_fusible(i: Instruction) -> bool:
    """Whether a single operation has an emitter of its own (`IsInputFusible`)."""
    return i.opcode == "scatter" or is_fast_reduction(i) or is_tiled_transpose(i)


# ---- reductions


def is_fast_reduction(i: Instruction) -> bool:
    """Whether a reduction is over adjacent dimensions, and large enough (`IsReductionFromOrToContiguousDimensions`)."""
    if i.opcode != "reduce" or not i.operands or i.operands[0].shape is None:
        return False
    shape = i.operands[0].shape
    reduced = tuple(i.attributes.get("dimensions", ()))
    kept = [d for d in range(len(shape.dimensions)) if d not in reduced]
    if not (_are_adjacent(shape, kept) or _are_adjacent(shape, reduced)):
        return False
    is_row, (_, middle, minor) = reduction_kind(shape, reduced)
    if is_row:
        return minor >= WARP or (minor > 0 and WARP % minor == 0)
    return not (
        middle < WARP
        or (middle < 2 * WARP and minor < WARP)
        or (middle < 4 * WARP and minor < 8)
        or (middle < 8 * WARP and minor < 3)
    )


def reduction_kind(shape: Shape, reduced: Sequence[int]) -> tuple[bool, tuple[int, int, int]]:
    """Whether rows are reduced, and the three sizes (`GetReductionKindAndContiguousComponents`)."""
    kept = [d for d in range(len(shape.dimensions)) if d not in reduced]
    if not kept:
        return True, (1, 1, math.prod(shape.dimensions))
    if _are_adjacent(shape, kept):
        major, middle, minor = _around(shape, kept)
        if middle == 1:
            return True, (1, 1, major * minor)
        if minor == 1:
            return False, (1, major, middle)
        return True, (major, middle, minor)
    major, middle, minor = _around(shape, reduced)
    return (True, (1, major, middle)) if minor == 1 else (False, (major, middle, minor))


def _minor_to_major(shape: Shape) -> tuple[int, ...]:
    if shape.layout is not None:
        return tuple(shape.layout.minor_to_major)
    return tuple(reversed(range(len(shape.dimensions))))


def _are_adjacent(shape: Shape, dimensions: Sequence[int]) -> bool:
    """Whether dimensions lie beside each other (`AreDimensionsConsecutive`)."""
    places = sorted(_minor_to_major(shape).index(d) for d in dimensions)
    return not places or places[-1] - places[0] == len(places) - 1


def _around(shape: Shape, dimensions: Sequence[int]) -> tuple[int, int, int]:
    """Elements of the dimensions above, in, and below adjacent ones (`PartitionShapeByMiddleDimensions`)."""
    sizes = [1, 1, 1]
    at = 2
    for dimension in _minor_to_major(shape):
        inside = dimension in dimensions
        if at == 2 and inside:
            at = 1
        elif at == 1 and not inside:
            at = 0
        sizes[at] *= shape.dimensions[dimension]
    return sizes[0], sizes[1], sizes[2]


# ---- transposes


def is_tiled_transpose(i: Instruction) -> bool:
    """Whether a transpose goes through shared memory (`GetDescriptionForTiledTransposeEmitter`).

    Layouts must be descending. Transposes of elements below 32 bits that are packed (`CanEmitPackedTranspose`) are larger
    than the limits here anyway, but for a few shapes, which are taken for loops.
    """
    if i.opcode != "transpose" or not i.operands or i.shape is None or i.operands[0].shape is None:
        return False
    source = i.operands[0].shape
    if any(list(_minor_to_major(s)) != sorted(_minor_to_major(s), reverse=True) for s in (source, i.shape)):
        return False
    sizes, permutation = normalized(source, i.attributes.get("dimensions", ()))
    if len(permutation) < 2:
        return False
    before = [0] * len(sizes)
    for place, dimension in enumerate(permutation):
        before[dimension] = sizes[place]
    bits = i.shape.element_type.bits or 8
    bits = 8 if str(i.shape.element_type) == "pred" else bits
    last = sizes[-1]
    if permutation[-1] == len(sizes) - 1:
        smaller = min(before[-2], sizes[-2])
        return bits * last <= MAX_BITS_MINOR and bits * last * smaller >= 8 * MIN_DIMENSION
    inner = before[-1]
    large = min(inner, last) >= MIN_DIMENSION or (
        min(inner, last) >= MIN_DIMENSION_2 and inner * last >= MIN_TOTAL
    )
    return large and bits != 4


def normalized(source: Shape, permutation: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sizes of the result and the permutation, without dimensions of size 1 and with those joined that stay together.

    `GetNormalizedLogicalTransposeShape`.
    """
    real = [d for d in permutation if source.dimensions[d] != 1]
    rank_of = {d: n for n, d in enumerate(sorted(real))}
    runs: list[list[int]] = []
    for dimension in real:
        if runs and rank_of[dimension] == rank_of[runs[-1][-1]] + 1:
            runs[-1].append(dimension)
        else:
            runs.append([dimension])
    order = sorted(range(len(runs)), key=lambda n: rank_of[runs[n][0]])
    place = {run: n for n, run in enumerate(order)}
    return [math.prod(source.dimensions[d] for d in run) for run in runs], [
        place[n] for n in range(len(runs))
    ]
