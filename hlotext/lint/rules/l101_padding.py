"""L101: an array that padding makes several times as large."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import ClassVar

from hlotext.analysis import (
    Backend,
    array_bytes,
    arrays_of,
    byte_text,
    memory_space,
    responsible_frame,
    written_arrays,
)
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.lint.beside import step_percent
from hlotext.lint.helpers import is_of_convolution
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import is_set_aside
from hlotext.memory.in_place import InPlacePairs
from hlotext.memory.subshapes import ShapeIndex


class Padding(Rule):
    code = "L101"
    name = "padding"
    title = "an array that padding enlarges several times"
    waste = "held"
    gives_form = True
    backends = frozenset({Backend.TPU})
    yields_to = frozenset({"L103"})

    ratio: ClassVar[float] = 2.0
    """Allocated bytes for each byte of values, from which on it is worth a finding."""
    min_bytes: ClassVar[int] = 8 << 20
    """Bytes of padding in one array, from which on it is worth a finding."""
    min_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module that writing such arrays takes, likewise, where none is an argument and the
    time can be told."""

    def check_module(self, context: Context) -> Iterator[Report]:
        first: dict[Shape, Instruction] = {}
        counts: Counter[Shape] = Counter()
        writers: dict[Shape, list[Instruction]] = defaultdict(list)
        sizes: dict[Shape, tuple[int, int] | None] = {}

        def padded(arrays: Iterable[tuple[ShapeIndex, Shape]]) -> list[tuple[ShapeIndex, Shape]]:
            found = []
            for index, array in arrays:
                if array not in sizes:
                    sizes[array] = self._padded(array)
                if sizes[array] is not None:
                    found.append((index, array))
            return found

        for parameter in context.arguments:
            for _, array in padded(arrays_of(parameter.shape)):
                first.setdefault(array, parameter)
                counts[array] += 1
                writers[array].append(parameter)
        in_place = InPlacePairs()
        holding = {shape for shape in context.census.shapes if padded(arrays_of(shape))}
        for instruction in context.graph.sequential_instructions() if holding else ():
            if instruction.shape not in holding:
                continue
            found = padded(written_arrays(instruction))
            if not found or _is_compilers(instruction):  # its padding is too small
                continue
            updated = {pair.output_index for pair in in_place.of(instruction)}
            for index, array in found:
                first.setdefault(array, instruction)
                counts[array] += index not in updated and not is_set_aside(instruction)
                writers[array].append(instruction)
        # What one Python line makes has one cause, and what is padded from one size. Beside one that is worth it the others
        # are told.
        names: dict[object, str] = {}
        causes: dict[Shape, str] = {}
        for array in first:
            keys = [key for key in (responsible_frame(first[array]), _padded_size(array)) if key is not None]
            causes[array] = next((names[key] for key in keys if key in names), str(array))
            names.update((key, causes[array]) for key in keys)
        worth = {cause for array, cause in causes.items() if self._is_worth_time(writers[array], context)}
        for array in first:
            allocated, values = sizes[array] or (0, 0)
            if causes[array] not in worth:
                continue
            count = counts[array]
            spared = dict.fromkeys(writers[array], 1 - values / allocated if allocated else 0.0)
            what, takes = (f"{count} arrays of shape {array}", "take") if count > 1 else (str(array), "takes")
            each = " each" if count > 1 else ""
            yield Report(
                first[array],
                f"{what} {takes} {byte_text(allocated)}{each} for {byte_text(values)} of values ({allocated / values:.3g}x)",
                "make the minor dimensions multiples of the tile size, merge small dimensions, or put a large one last",
                (allocated - values) * max(1, count),
                str(array),
                is_held=True,
                spares=spared,
                cause=causes[array],
            )

    def nearest(self, context: Context) -> tuple[str, str] | None:
        """Returns the array with the most bytes of padding."""
        sizes: dict[Shape, int] = {}
        most: tuple[int, Instruction, Shape] | None = None
        arrays = [(p, array) for p in context.arguments for _, array in arrays_of(p.shape)]
        for one in context.graph.sequential_instructions():
            arrays += [(one, array) for _, array in written_arrays(one)]
        for one, array in arrays:
            if array not in sizes:
                size = array_bytes(array)
                sizes[array] = size[0] - size[1] if size is not None and memory_space(array) == 0 else 0
            if sizes[array] > (most[0] if most is not None else 0):
                most = sizes[array], one, array
        if most is None:
            return None
        padding, one, array = most
        allocated, values = array_bytes(array) or (0, 0)
        takes = f"{array} takes {byte_text(allocated)} for {byte_text(values)} of values"
        times = allocated / values if values else self.ratio
        if times < self.ratio:
            return one.name, f"{takes} ({times:.3g}x, below the minimum of {self.ratio:g}x)"
        if padding < self.min_bytes:
            return (
                one.name,
                f"{takes}: {byte_text(padding)} of padding, below the minimum of {byte_text(self.min_bytes)}",
            )
        if _is_compilers(one):
            return one.name, f"{takes}, in a form that the compiler chose"
        return (
            one.name,
            f"{takes}, but writing such arrays takes less than {self.min_percent:g}% of the step",
        )

    def _padded(self, array: Shape) -> tuple[int, int] | None:
        """The bytes that an array takes and those of its values; None if padding makes little of it.

        What lies in the chip's own memory for a while is the compiler's business.
        """
        size = array_bytes(array)
        if size is None or not size[1] or memory_space(array) != 0:
            return None
        is_much = size[0] >= self.ratio * size[1] and size[0] - size[1] >= self.min_bytes
        return size if is_much else None

    def _is_worth_time(self, writers: list[Instruction], context: Context) -> bool:
        shares = [
            None if one.opcode == "parameter" else step_percent(one, context) or None for one in writers
        ]
        return None in shares or sum(share for share in shares if share is not None) >= self.min_percent


def _padded_size(array: Shape) -> tuple[int, int] | None:
    """The size of the dimension that is padded, the minor one first, and of the tile: arrays of one model's heads have the
    same."""
    layout = array.layout
    tile = layout.tiles[0].dimensions if layout is not None and layout.tiles else ()
    order = layout.minor_to_major if layout is not None else ()
    for dimension, size in zip(order, reversed(tile), strict=False):
        if size > 0 and array.dimensions[dimension] % size:
            return array.dimensions[dimension], size
    return None


def _is_compilers(instruction: Instruction) -> bool:
    """True if the compiler inserted it, for a convolution or without a stated reason, and chose its shape alone."""
    if is_of_convolution(instruction) or instruction.opcode in _STAGING:
        return True
    return instruction.opcode in _STEPS and not (
        instruction.metadata is not None and instruction.metadata.op_name
    )


_STAGING = frozenset({"copy-start", "copy-done"})
"""Opcodes that only move an array into fast memory, or out of it."""
_STEPS = frozenset(
    {"bitcast", "broadcast", "concatenate", "copy", "pad", "reduce", "reshape", "slice", "transpose"}
)
"""Opcodes that compilers insert of their own accord."""
