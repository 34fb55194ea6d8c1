"""Minimum time of decompositions and sorts, which neither XLA nor a chip's roofline models.

Orders of magnitude only (inferred): enough to tell if the rest of a step is small in comparison.
"""

from __future__ import annotations

import math
import re

from hlotext.ir.nodes.instruction import Instruction

_TARGET = re.compile(r"cusolver_(\w+?)(?:_batched)?_ffi")
_RATES: dict[str, tuple[float, float]] = {
    "potrf": (1 / 3, 10e12),
    "getrf": (2 / 3, 10e12),
    "geqrf": (4 / 3, 5e12),
    "orgqr": (4 / 3, 5e12),
    "ormqr": (2, 5e12),
    "sytrd": (4 / 3, 1e12),
    "syevd": (9, 1e12),
    "gesvd": (15, 0.5e12),
    "gesvdj": (15, 0.5e12),
    "gesvdp": (15, 0.5e12),
}
"""Of each function of cuSOLVER: floating-point operations for each `m * n * n` of an `m` by `n` matrix, `n` not above `m`,
and how many of them a large GPU does in a second where the matrices are large."""


def least_seconds(call: Instruction) -> float:
    """Returns the minimum seconds of one execution of a custom call that is a matrix decomposition; 0 for others."""
    match = _TARGET.fullmatch(str(call.attributes.get("custom_call_target", "")))
    known = _RATES.get(match[1]) if match is not None else None
    shape = call.operands[0].shape if call.operands else None
    if known is None or shape is None or not shape.is_array or shape.rank < 2:
        return 0.0
    *batch, rows, columns = shape.dimensions
    operations, rate = known
    less = min(rows, columns)
    return operations * max(rows, columns) * less**2 * math.prod(batch) / (rate * min(1, less / _FILLING))


_FILLING = 256
"""Columns of a matrix that keep the device busy: with fewer it is as slow as it is small."""


def rows_in_turn(instruction: Instruction) -> int:
    """Returns the number of rows that the scatters of an instruction write sequentially, as a TPU does unless indices
    are unique.
    """
    bodies = instruction.called_computations if instruction.opcode == "fusion" else ()
    pieces = [one for body in bodies for one in body._instructions] or [instruction]
    return sum(
        rows_of(one)
        for one in pieces
        if one._head.opcode == "scatter" and not one.attributes.get("unique_indices")
    )


def rows_of(scatter: Instruction) -> int:
    """Returns the number of rows that a scatter writes: update elements outside window dimensions."""
    shape = scatter.operands[-1].shape
    windows = scatter.attributes.get("update_window_dims", ())
    if shape is None or not shape.is_array:
        return 0
    return math.prod(size for d, size in enumerate(shape.dimensions) if d not in windows)


def passes(instruction: Instruction) -> float:
    """Returns how many passes over its arrays an instruction makes per pass counted by the roofline; above 1 for a long
    sort.
    """
    pieces = [instruction]
    if instruction.opcode == "fusion":
        pieces = [one for body in instruction.called_computations for one in body._instructions]
    sort = next((one for one in pieces if one._head.opcode == "sort"), None)
    dimensions = sort.attributes.get("dimensions") if sort is not None else None
    shape = sort.operands[0].shape if sort is not None and sort.operands else None
    if shape is None or not isinstance(dimensions, tuple) or not dimensions:
        return 1.0
    length = shape.dimensions[dimensions[0]] if dimensions[0] < shape.rank else 1
    return math.log2(length) / 2 if length > _TILE else 1.0


_TILE = 2048
"""Elements that are sorted without leaving the chip."""
