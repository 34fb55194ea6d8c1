"""Singular vectors beyond those that a matrix has: of a tall or wide one, the rest only makes the factor square."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.demand import Asked, Demand
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report
from hlotext.lint.wording import sizes

_TARGETS = ("gesvd", "gesdd")
"""Parts of the names of LAPACK's and cuSOLVER's functions."""
_FACTORS = {2: ("left", -1), 3: ("right", -2)}
"""By their place among the results: the singular vectors, and the dimension that counts them."""


def square_factors(context: Context, asked: Mapping[Instruction, Asked]) -> Iterator[Report]:
    """Yields reports on singular value decompositions with square factors of which only the reduced part is used."""
    for call in context.census.by_opcode.get("custom-call", ()):
        shapes = call.shape.tuple_shapes if call.shape is not None and call.shape.is_tuple else ()
        target = str(call.attributes.get("custom_call_target", ""))
        if len(shapes) <= max(_FACTORS) or not any(name in target for name in _TARGETS):
            continue
        least = min(shapes[0].dimensions[-2:])
        for index, (side, along) in _FACTORS.items():
            count = shapes[index].dimensions[along] if shapes[index].rank >= 2 else 0
            if count <= least or _last_used(call, index, along, asked) > least:
                continue
            yield Report(
                call,
                f"a singular value decomposition of {sizes(shapes[0])} computes {count:,} {side} singular vectors, "
                f"{byte_text(size_of(shapes[index]))}, of which at most {least:,} are used",
                "pass full_matrices=False to jnp.linalg.svd; if only a few singular vectors of a tall matrix are used, "
                "jnp.linalg.eigh(x.T @ x) is cheaper, but less accurate for small singular values",
                spares={(call, (index,)): 1 - least / count},
            )


def _last_used(call: Instruction, index: int, along: int, asked: Mapping[Instruction, Asked]) -> int:
    """The position behind the last singular vector that is used."""
    last = 0
    for user in call.users:
        if user.opcode != "get-tuple-element" or user.attributes.get("index") not in (index, None):
            continue
        needed, shape = asked.get(user), user.shape
        rank = shape.rank if shape is not None and shape.is_array else 0
        part = needed.parts[rank + along] if isinstance(needed, Demand) and rank >= 2 else None
        if part is None or part.loose:
            return shape.dimensions[along] if shape is not None and rank >= 2 else last
        places = part.known.nonzero()[0]
        last = max(last, int(places[-1]) + 1 if len(places) else 0)
    return last
