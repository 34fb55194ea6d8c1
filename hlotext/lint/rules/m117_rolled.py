"""Arrays that are rolled by writing their two parts, to be joined the other way round."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

import attrs

from hlotext.analysis import Backend, byte_text, memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.alike_fusions import Alike, alike
from hlotext.lint.helpers import size_of, times
from hlotext.lint.products import COMBINES_PADS, concatenated
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, source, unfetched

_CUTTING = traits.NAMES_VALUE | {"slice"}
_JOINING = frozenset({"concatenate", "pad"})
_PADDING = traits.CONVERSIONS | {"pad"}


@attrs.define(eq=False)
class _Rolled:
    """The parts of an array that readers join the other way round."""

    parts: dict[Instruction, Instruction] = attrs.field(factory=dict)
    """The written parts, with the operations that write them."""
    readers: dict[Instruction, set[Instruction]] = attrs.field(factory=lambda: defaultdict(set))
    """The operations that join them, with the parts that each reads."""
    places: set[Instruction] = attrs.field(factory=set)
    """Where they are joined: as many rolls."""
    dimensions: set[int] = attrs.field(factory=set)
    """Along which the array is rolled."""


class Rolled(Rule):
    code = "M117"
    name = "rolled"
    title = "a roll whose parts are written to memory"
    waste = "held"
    needs_optimized = True
    backends = frozenset({Backend.TPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        found: dict[Instruction, _Rolled] = defaultdict(_Rolled)
        bodies = alike(context.module)
        for one in context.graph.sequential_instructions():
            if _cuts(one, bodies):
                for roll in _rolls(one):
                    rolled = found[roll.array]
                    rolled.parts[roll.part] = one
                    rolled.readers[roll.reader].add(roll.part)
                    rolled.places.add(roll.place)
                    rolled.dimensions.add(roll.dimension)
        together: dict[Instruction, int] = defaultdict(int)
        for array, rolled in found.items():
            for reader in rolled.readers:
                together[reader] += size_of(array.shape)
        for array, rolled in found.items():
            if any(_is_written(part) for part in rolled.parts):
                yield _report(array, rolled, together, context)


def _report(
    array: Instruction, rolled: _Rolled, together: Mapping[Instruction, int], context: Context
) -> Report:
    """`together` are the sizes of all arrays that a reader takes rolled."""
    prices, readers = context.prices, rolled.readers
    written = [part for part in rolled.parts if _is_written(part)]
    writers = {rolled.parts[part] for part in written}
    runs, count = context.runs(next(iter(writers))), len(rolled.places)
    size, whole = sum(size_of(part.shape) for part in written), size_of(array.shape)
    # What is padded along several dimensions is written once, to fast memory where that has room for all arrays of a reader
    # and their padded copies. Of a single shift along each dimension, each is padded for itself where it is read.
    fast = prices.chip.fast_memory_bytes or 0
    is_fast = 2 * max(together[reader] for reader in readers) < fast
    padded = whole if 1 < len(rolled.dimensions) < count and not is_fast else 0
    seconds = math.fsum(context.prices.writing(part, writer) for part, writer in rolled.parts.items())
    seconds -= prices.reading(2 * padded * runs)
    for reader, parts in readers.items():
        # Without the parts a reader takes the padded array, else the array itself.
        kept = padded or (0 if array in map(unfetched, reader.operands) else whole)
        read = sum(size_of(part.shape) for part in parts if _is_written(part))
        seconds += _reading(reader, read - kept, whole / together[reader], context)
    return Report(
        max(writers, key=lambda one: (size_of(one.shape), one.name)),
        f"rolling an array of {byte_text(whole)}{f' by {count} different shifts' if count > 1 else ''} writes its parts to "
        f"memory and reads them back: {byte_text(size)}{times(runs)}",
        "pad the array once by the largest shift (jnp.pad(x, 1, mode='wrap')) and slice it, instead of calling jnp.roll: "
        "slices of the padded array are read where they are used",
        2 * size * runs,
        seconds=max(0.0, seconds),
        is_at_most=not is_fast,  # the compiler may write parts of a padded array too
        spares=dict.fromkeys(writers, max(0.0, 1 - padded / size)),
        covers=frozenset(writers),
    )


def _reading(reader: Instruction, less: int, share: float, context: Context) -> float:
    """Seconds of reading so many bytes, of what an operation takes beyond its arithmetic: its share of them."""
    prices, runs = context.prices, context.runs(reader)
    least = prices.own_least.get(reader)
    computing = (least.compute or 0.0) * runs if least is not None else 0.0
    return min(prices.reading(less * runs), max(0.0, prices.seconds(reader) - computing) * share)


def _is_written(part: Instruction) -> bool:
    """True if a part lies in main memory."""
    return part.shape is not None and not memory_space(part.shape)


@attrs.frozen
class _Roll:
    """One part of an array, and where it is joined to the other."""

    part: Instruction
    array: Instruction
    reader: Instruction
    place: Instruction
    dimension: int


def _cuts(one: Instruction, bodies: Alike) -> bool:
    """True if an instruction, or all of a fusion, only slices arrays, perhaps such as are joined there of parts."""
    if one.opcode == "slice":
        return True
    if one.opcode != "fusion":
        return False
    opcodes = bodies.opcodes(one)
    return "slice" in opcodes and opcodes <= _CUTTING | _JOINING | COMBINES_PADS


def _rolls(cut: Instruction) -> Iterator[_Roll]:
    """Yields the rolls that slices are written for."""
    pieces = [user for user in cut.users if user.opcode == "get-tuple-element"] or [cut]
    for piece in pieces:
        if piece.shape is None or not piece.shape.is_array:
            continue
        for user, _ in consumers(Value(piece), VIEWS):
            place = _joining(user.instruction)
            if place is None or not user.fusions:
                continue
            joined = concatenated(Value(place, user.fusions))
            array = _rolled(*joined) if joined is not None else None
            if joined is not None and array is not None:
                yield _Roll(piece, array, user.writer, place, joined[1])


def _joining(user: Instruction) -> Instruction | None:
    """The operation that joins a part to another, which may be padded and converted before; None for other users."""
    place = user
    while place.opcode in _PADDING and len(place.users) == 1:
        place = place.users[0]
    return place if user.opcode in _JOINING and place.opcode not in _PADDING else None


def _rolled(parts: list[Value], along: int) -> Instruction | None:
    """The array whose two parts these are, the later one first; None for what is joined otherwise."""
    cuts = [source(part, VIEWS) for part in parts]
    if len(cuts) != 2:
        return None
    if any(cut.instruction.opcode != "slice" for cut in cuts):
        return _rolled_again(parts, along)
    arrays = {_moved(cut.operands()[0], _DEEPEST) for cut in cuts}
    array = arrays.pop()
    if (
        arrays
        or array is None
        or array.shape is None
        or not array.shape.is_array
        or along >= array.shape.rank
    ):
        return None
    sizes = [cut.instruction.shape.dimensions[along] for cut in cuts if cut.instruction.shape is not None]
    starts = [cut.instruction.attributes["slice"].dimensions[along].start for cut in cuts]
    whole = array.shape.dimensions[along]
    is_whole = all(
        cut.instruction.shape is not None
        and (cut.instruction.shape.element_count or 0) * whole == (array.shape.element_count or 0) * size
        for cut, size in zip(cuts, sizes, strict=True)
    )
    return array if is_whole and sum(sizes) == whole and 0 in starts and max(starts) in sizes else None


def _rolled_again(parts: list[Value], along: int) -> Instruction | None:
    """The same of an array that is rolled before: compilers slice its two parts instead of what is joined of them."""
    shapes = [part.instruction.shape for part in parts]
    arrays = {_moved(part, _DEEPEST) for part in parts}
    array = arrays.pop()
    if arrays or array is None or array.shape is None or not array.shape.is_array:
        return None
    sizes = [shape.dimensions for shape in shapes if shape is not None and shape.is_array]
    whole = array.shape.dimensions
    is_whole = len(sizes) == len(parts) and all(
        len(size) == len(whole) and all(size[d] == whole[d] for d in range(len(whole)) if d != along)
        for size in sizes
    )
    return array if is_whole and sum(size[along] for size in sizes) == whole[along] else None


def _moved(value: Value, deepest: int) -> Instruction | None:
    """The array that all elements of a value are elements of, moved by slices and concatenations; None if they are of
    several, or computed."""
    made = source(value, VIEWS)
    one = made.instruction
    if (array := unfetched(one)) is not one or deepest == 0:
        return array
    if one.opcode in ("slice", "pad"):
        return _moved(made.operands()[0], deepest - 1)
    if one.opcode == "concatenate" or (
        one.opcode in COMBINES_PADS
        and one.metadata is not None
        and one.metadata.op_name.endswith("concatenate")
    ):
        arrays = {_moved(part, deepest - 1) for part in made.operands()}
        return arrays.pop() if len(arrays) == 1 else None
    return _outside(value) if made.fusions else one


def _outside(value: Value) -> Instruction | None:
    """The array that a fusion is given, behind its parameter; None for what is computed inside."""
    while value.fusions and value.instruction.opcode in VIEWS | {"parameter"}:
        one = value.instruction
        if one.opcode == "parameter":
            value = Value(value.fusions[-1].operands[one.parameter_number or 0], value.fusions[:-1])
        else:
            value = value.operands()[0]
    return None if value.fusions else unfetched(value.instruction)


_DEEPEST = 8
"""Concatenations and slices inside one another that are looked behind."""
