"""Work on all rows of an array of which a slice or gather then takes a few."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.demand import Asked, Demand, fraction
from hlotext.lint.helpers import fusions_around, is_of_package
from hlotext.lint.own_parts import own_part
from hlotext.lint.rule import Context, Report
from hlotext.lint.values import Value
from hlotext.lint.wording import described

_QUARTER = 0.25


def unused_rows(
    group: Collection[Instruction],
    saved: Mapping[Instruction, float],
    asked: Mapping[Instruction, Asked],
    context: Context,
) -> Report | None:
    """Reports connected operations without matmuls of whose results most rows are unused; None if there are none."""
    rows = {one: found for one in group if (found := _used_rows(one, asked)) is not None}
    computed = [one for one in rows if one.opcode != "copy"]
    if not computed:  # compilers copy arrays into the layout that they read
        return None
    first = max(computed, key=lambda one: (saved[one], one.name))
    if first.metadata is None or is_of_package(first):  # the compiler, or a function of JAX, computes it so
        return None
    if own_part(Value(first, fusions_around(first, context)), context) is not None:
        return None  # each device takes its own
    dimension, used, length = rows[first]
    return Report(
        first,
        f"only {used:,} of {length:,} indices of dimension {dimension} of {described(first)} "
        f"{'is' if used == 1 else 'are'} used",
        "slice or gather first (x[ids], lax.dynamic_slice), and compute only what is used",
        seconds=math.fsum(saved[one] for one in rows),
        spares={one: 1 - fraction(asked.get(one), one.shape) for one in rows},
        covers=frozenset(group),
    )


def _used_rows(one: Instruction, asked: Mapping[Instruction, Asked]) -> tuple[int, int, int] | None:
    """The dimension of a result of which the smallest part is used, with how many indices that are, and its length."""
    needed, shape = asked.get(one), one.shape
    if not isinstance(needed, Demand) or shape is None or not shape.is_array:
        return None
    parts = [
        (part.count / max(1, shape.dimensions[d]), d, part.count)
        for d, part in enumerate(needed.parts)
        if part is not None
    ]
    if not parts or math.prod(part for part, _, _ in parts) > _QUARTER:
        return None
    _, d, count = min(parts)
    return d, count, shape.dimensions[d]
