"""Bytes seen as another shape, as moves of elements: the CPU client knows neither layouts nor tiles."""

from __future__ import annotations

import math

from hlotext.execution.errors import NotExecutable
from hlotext.execution.lines import Lines, Plain
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType
from hlotext.layout import LayoutError
from hlotext.layout.tiling import Placement, TileStep, placement


def bitcast(lines: Lines, value: Plain, source: Shape, target: Shape, type_: ElementType) -> Plain:
    """Emits lines that reinterpret the bytes of `source` as `target`, and returns the value, with elements of `type_`.

    The elements are taken in memory order, tile padding included, truncated or padded to the size of the result, and
    rearranged to its layout. Raises NotExecutable for tuples of different shapes, for shapes whose placement in memory
    is unknown, and for widened elements of different widths.
    """
    if source.is_tuple or target.is_tuple:
        if source.without_layout() == target.without_layout():
            return value
        raise NotExecutable(f"a bitcast of {source} to {target}")
    if source == target or (
        source.without_layout() == target.without_layout() and not _matters(source, target)
    ):
        return value
    try:
        before, after = placement(_static(source)), placement(_static(target))
    except LayoutError as error:
        raise NotExecutable(f"a bitcast of {source} to {target}: {error}") from None
    if (
        not (before.steps or after.steps)
        and before.element_bits == after.element_bits
        and before.tiled_elements == after.tiled_elements
    ):
        memory = lines.transpose(value, before.major_to_minor)
    else:
        memory = _flat(lines, value, before)
    memory = _retyped(lines, memory, source.element_type, target.element_type, type_)
    if after.steps or memory.shape.rank == 1:
        size = math.prod(after.tiled_dimensions)
        memory = lines.resize(lines.reshape(memory, (math.prod(memory.sizes),)), (size,))
    if after.steps:
        return _shaped(lines, memory, after)
    return _ordered(lines, lines.reshape(memory, after.physical_dimensions), after)


def _matters(source: Shape, target: Shape) -> bool:
    """True if layouts of the same sizes order elements differently."""
    return placement(_static(source)) != placement(_static(target))


def _static(shape: Shape) -> Shape:
    if not shape.is_array or not shape.is_static:
        raise NotExecutable(f"a bitcast of {shape}")
    return shape if shape.layout is not None else shape.with_default_layout()


def _flat(lines: Lines, value: Plain, place: Placement) -> Plain:
    """The elements and the padding between them in the order of memory."""
    value = lines.transpose(value, place.major_to_minor)
    for step in place.steps:
        sizes = (1,) * step.added + value.sizes
        value = lines.reshape(value, (*sizes[: step.lead], *step.merged))
        lead = value.sizes[: step.lead]
        value = lines.resize(value, (*lead, *_padded(step)))
        cut = [size for pair in zip(step.grid, step.tile, strict=True) for size in pair]
        value = lines.reshape(value, (*lead, *cut))
        value = lines.transpose(value, _tiles_last(step))
    return lines.reshape(value, (math.prod(value.sizes),))


def _shaped(lines: Lines, value: Plain, place: Placement) -> Plain:
    """The elements out of memory, which is one dimension."""
    value = lines.reshape(value, place.tiled_dimensions)
    dimensions = [place.physical_dimensions]
    for step in place.steps:
        dimensions.append((*((1,) * step.added + dimensions[-1])[: step.lead], *step.grid, *step.tile))
    for step, sizes in zip(reversed(place.steps), reversed(dimensions[:-1]), strict=True):
        order = _tiles_last(step)
        value = lines.transpose(value, sorted(range(len(order)), key=order.__getitem__))
        lead = value.sizes[: step.lead]
        value = lines.reshape(value, (*lead, *_padded(step)))
        value = lines.resize(value, (*lead, *step.merged))
        value = lines.reshape(value, sizes)
    return _ordered(lines, value, place)


def _ordered(lines: Lines, value: Plain, place: Placement) -> Plain:
    """Physical dimensions in their logical order."""
    order = place.major_to_minor
    return lines.transpose(value, sorted(range(len(order)), key=order.__getitem__))


def _padded(step: TileStep) -> tuple[int, ...]:
    return tuple(grid * tile for grid, tile in zip(step.grid, step.tile, strict=True))


def _tiles_last(step: TileStep) -> list[int]:
    lead, count = step.lead, len(step.tile)
    return [
        *range(lead),
        *(lead + 2 * number for number in range(count)),
        *(lead + 2 * number + 1 for number in range(count)),
    ]


def _retyped(lines: Lines, value: Plain, old: ElementType, new: ElementType, type_: ElementType) -> Plain:
    """The bits as another type; `type_` stands for `new` in the plain text."""
    if old is new:
        return value
    if value.type is not old or type_ is not new:
        raise NotExecutable(f"a bitcast of {old} to {new}, one of which is widened")
    if old.bits == new.bits:
        return lines.add("bitcast-convert", Shape(new, value.sizes), (value,))
    if value.shape.rank != 1 or min(old.bits, new.bits) < 8:
        raise NotExecutable(f"a bitcast of {old} to {new}")
    if old.bits > new.bits:
        count = old.bits // new.bits
        cut = lines.add("bitcast-convert", Shape(new, (*value.sizes, count)), (value,))
        return lines.reshape(cut, (math.prod(cut.sizes),))
    count = new.bits // old.bits
    whole = lines.resize(value, (-(-value.sizes[0] // count) * count,))
    whole = lines.reshape(whole, (whole.sizes[0] // count, count))
    return lines.add("bitcast-convert", Shape(new, whole.sizes[:1]), (whole,))
