"""Operations of GPU's special emitters: reductions by warps, scatters, transposes through shared memory.

They make a fusion one of kind kInput (`ChooseFusionKind` in `xla/service/gpu/gpu_fusible.cc`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlotext.analysis import reductions
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout import major_to_minor

MIN_DIMENSION, MIN_DIMENSION_2, MIN_TOTAL = 16, 8, 64 * 128
"""Sizes from which a transpose goes through shared memory (`ir_emission_utils.h`)."""
MAX_BITS_MINOR = 64
_BANKS, _BANK_BITS = 32, 32


def is_input_fusible(i: Instruction) -> bool:
    """Returns True if an operation has an emitter of its own (`IsInputFusible`)."""
    return i.opcode == "scatter" or is_fast_reduction(i) or is_tiled_transpose(i)


# ---- reductions


def is_fast_reduction(i: Instruction) -> bool:
    """Returns True for a large reduction over adjacent dimensions (`IsReductionFromOrToContiguousDimensions`)."""
    if i.opcode != "reduce" or not i.operands or i.operands[0].shape is None:
        return False
    kind = reductions.kind_of(i.operands[0].shape, tuple(i.attributes.get("dimensions", ())))
    return kind is not None and reductions.is_faster(*kind)


# ---- transposes


def is_tiled_transpose(i: Instruction) -> bool:
    """Returns True if a transpose is tiled through shared memory (`GetDescriptionForTiledTransposeEmitter`).

    Layouts must be descending. Packed transposes of elements below 32 bits (`CanEmitPackedTranspose`) exceed these
    limits anyway, except for a few shapes, which are treated as loops.
    """
    if i.opcode != "transpose" or not i.operands or i.shape is None or i.operands[0].shape is None:
        return False
    source = i.operands[0].shape
    if any(list(major_to_minor(s)) != sorted(major_to_minor(s)) for s in (source, i.shape)):
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
    """Returns the result sizes and permutation of a transpose, with adjacent dimensions merged and sizes of 1 dropped.

    Corresponds to `GetNormalizedLogicalTransposeShape`.
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
