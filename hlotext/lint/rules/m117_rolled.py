"""Arrays that are rolled by writing their two parts, to be joined the other way round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, byte_text, memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of, times
from hlotext.lint.products import concatenated
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, source

_CUTTING = traits.NAMES_VALUE | {"slice"}
_JOINING = frozenset({"concatenate", "pad"})


@attrs.define(eq=False)
class _Rolled:
    """The parts of an array that one reader joins the other way round."""

    parts: dict[Instruction, Instruction] = attrs.field(factory=dict)
    """The written parts, with the operations that write them."""
    places: set[Instruction] = attrs.field(factory=set)
    """Where they are joined: as many rolls."""
    dimensions: set[int] = attrs.field(factory=set)
    """Along which the array is rolled."""


@attrs.frozen
class Rolled(Rule):
    code = "M117"
    name = "rolled"
    title = "a roll whose parts are written to memory"
    waste = "held"
    needs_optimized = True
    backends = frozenset({Backend.TPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        found: dict[tuple[Instruction, Instruction], _Rolled] = defaultdict(_Rolled)
        for one in context.graph.sequential_instructions():
            if _cuts(one):
                for roll in _rolls(one):
                    rolled = found[roll.array, roll.reader]
                    rolled.parts[roll.part] = one
                    rolled.places.add(roll.place)
                    rolled.dimensions.add(roll.dimension)
        for (array, reader), rolled in found.items():
            yield _report(array, reader, rolled, context)


def _report(array: Instruction, reader: Instruction, rolled: _Rolled, context: Context) -> Report:
    runs, count = context.runs(reader), len(rolled.places)
    writers = set(rolled.parts.values())
    size, whole = sum(size_of(part.shape) for part in rolled.parts), size_of(array.shape)
    # Without the parts the reader takes the array itself; one that is padded along several dimensions is written once.
    kept = 0 if array in reader.operands else whole
    padded = whole if len(rolled.dimensions) > 1 else 0
    read = min(context.prices.reading((size - kept) * runs), context.prices.seconds(reader))
    seconds = context.prices.together(writers) + read - context.prices.reading(2 * padded * runs)
    return Report(
        max(writers, key=lambda one: (size_of(one.shape), one.name)),
        f"rolling an array of {byte_text(whole)}{f' in {count} ways' if count > 1 else ''} writes its parts to memory and "
        f"reads them back: {byte_text(size)}{times(runs)}",
        "pad the array once by the largest shift (jnp.pad(x, 1, mode='wrap')) and slice it, instead of calling jnp.roll: "
        "slices of the padded array are read where they are used",
        2 * size * runs,
        seconds=max(0.0, seconds),
        spares=dict.fromkeys(writers, max(0.0, 1 - padded / size)),
        covers=frozenset(writers),
    )


@attrs.frozen
class _Roll:
    """One part of an array, and where it is joined to the other."""

    part: Instruction
    array: Instruction
    reader: Instruction
    place: Instruction
    dimension: int


def _cuts(one: Instruction) -> bool:
    """True if an instruction, or all of a fusion, only slices one array."""
    if one.opcode == "slice":
        return True
    if one.opcode != "fusion" or len(one.operands) != 1:
        return False
    opcodes = {part.opcode for part in parts_of(one)}
    return "slice" in opcodes and opcodes <= _CUTTING


def _rolls(cut: Instruction) -> Iterator[_Roll]:
    """Yields the rolls that slices in main memory are written for."""
    pieces = [user for user in cut.users if user.opcode == "get-tuple-element"] or [cut]
    for piece in pieces:
        if piece.shape is None or not piece.shape.is_array or memory_space(piece.shape):
            continue
        for user, _ in consumers(Value(piece), VIEWS):
            place = user.instruction
            if (
                place.opcode not in _JOINING
                or not user.fusions
                or (place.opcode == "pad" and len(place.users) != 1)
            ):
                continue
            if place.opcode == "pad":
                place = place.users[0]
            joined = concatenated(Value(place, user.fusions))
            array = _rolled(*joined) if joined is not None else None
            if joined is not None and array is not None:
                yield _Roll(piece, array, user.writer, place, joined[1])


def _rolled(parts: list[Value], along: int) -> Instruction | None:
    """The array whose two parts these are, the later one first; None for what is joined otherwise."""
    cuts = [source(part, VIEWS) for part in parts]
    if len(cuts) != 2 or any(cut.instruction.opcode != "slice" for cut in cuts):
        return None
    arrays = {source(cut.operands()[0], VIEWS).instruction for cut in cuts}
    array = arrays.pop()
    if arrays or array.shape is None or not array.shape.is_array or along >= array.shape.rank:
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
