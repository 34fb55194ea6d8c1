"""Gathers of single elements on TPU where fewer would do: several at the same indices, and those of a binary search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import fusions_around
from hlotext.lint.rule import Context, Report
from hlotext.lint.values import VIEWS, Value, elements_of, entered, source, unfetched

_LEAST_READ = 32
"""Bytes that memory reads at least, however few of them are asked for."""


def element_gathers(context: Context) -> Iterator[Report]:
    """Yields reports about gathers of single elements: groups at the same indices, and binary searches in loops."""
    alike: dict[tuple[Any, ...], list[Instruction]] = {}
    for gather in context.census.by_opcode.get("gather", ()):
        sizes = gather.attributes.get("slice_sizes", ())
        if any(size != 1 for size in sizes) or not context.is_stepped(_whole(gather, context)):
            continue
        if _is_of_search(gather):
            yield _search(gather, context)
        elif indices := _indices_of(gather, context):
            key = indices, _dimensions(gather.operands[0]), _computation_of(gather, context)
            alike.setdefault(key, []).append(gather)
    for gathers in alike.values():
        if len(gathers) > 1:
            yield _together(gathers, context)


def _is_of_search(gather: Instruction) -> bool:
    """True in the loop by which JAX searches a sorted array, halving the interval in each iteration."""
    name = gather.metadata.op_name if gather.metadata is not None else ""
    return "jit(searchsorted)" in name and "/while/body/" in name.rpartition("jit(searchsorted)")[2]


def _search(gather: Instruction, context: Context) -> Report:
    count, loop = elements_of(gather.shape), context.loop_around(_computation_of(gather, context))
    rounds = context.prices.trips(loop) if loop is not None else 1
    return Report(
        gather,
        f"searchsorted finds {count:,} values by binary search: {rounds} iterations that each gather {count:,} single "
        "elements, which is slow on TPU",
        "pass method='sort' to jnp.searchsorted, which sorts both arrays together, or method='compare_all' if one of them is "
        "short",
        seconds=_reading([gather], context),
        is_proved=False,
        is_at_most=True,  # the repair's own reads and its padding to lanes are not known
    )


def _together(gathers: list[Instruction], context: Context) -> Report:
    first, count = gathers[0], elements_of(gathers[0].shape)
    return Report(
        first,
        f"{len(gathers)} arrays are gathered at the same {pluralize(count, 'index', 'indices')}, element by element, "
        "which is slow on TPU",
        "keep them side by side in the last dimension and gather rows: x[i, j] of an array [h, w, c] instead of "
        "x[..., c][i, j] for each c, as jax.vmap(map_coordinates, (-1, None), -1) does; rotate images by three "
        "shears, or resample rows and columns by matmuls, without any gather",
        seconds=_reading(gathers[1:], context),
        is_proved=False,
        is_at_most=True,  # the repair's own reads and its padding to lanes are not known
    )


def _reading(gathers: list[Instruction], context: Context) -> float:
    return sum(
        context.prices.reading(_LEAST_READ * elements_of(one.shape) * context.runs(_whole(one, context)))
        for one in gathers
    )


def _indices_of(gather: Instruction, context: Context) -> tuple[Instruction, ...]:
    """The arrays of indices outside of the fusion that a gather stands in, as many as there are elements to gather."""
    fusions = fusions_around(gather, context)
    table = _outside(Value(gather.operands[0], fusions))
    whole = fusions[0] if fusions else gather
    given = {_outside(Value(operand)) for operand in whole.operands}
    found = [
        one
        for one in given
        if one is not table
        and one.shape is not None
        and one.shape.is_array
        and one.shape.element_type.is_integral
        and elements_of(one.shape) >= elements_of(gather.shape)
    ]
    return tuple(sorted(found, key=lambda one: one.name))


def _outside(value: Value) -> Instruction:
    """The array behind views, and behind the TPU compiler's fetching it into fast memory."""
    return unfetched((entered(value) if value.fusions else source(value, VIEWS)).instruction)


def _dimensions(array: Instruction) -> tuple[int, ...]:
    return array.shape.dimensions if array.shape is not None and array.shape.is_array else ()


def _whole(gather: Instruction, context: Context) -> Instruction:
    fusions = fusions_around(gather, context)
    return fusions[0] if fusions else gather


def _computation_of(gather: Instruction, context: Context) -> Any:
    return _whole(gather, context).computation
