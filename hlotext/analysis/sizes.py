"""Bytes of results, and which results are arrays of their own."""

from __future__ import annotations

import re

import attrs

from hlotext.analysis.formatting import HUGE
from hlotext.ir.caches import lazy_regex, weighted_cache
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.tables.targets import MARKS
from hlotext.ir.values.shape import Shape
from hlotext.layout import LayoutError, allocated_bytes, unpadded_bytes


@attrs.frozen
class Total:
    """Number and bytes of a group of arrays."""

    arrays: int = 0
    allocated_bytes: int = 0
    """Bytes including layout padding."""
    unpadded_bytes: int = 0
    """Bytes excluding padding."""
    largest_bytes: int = 0
    """Allocated bytes of the largest array."""
    unsized: int = 0
    """Number of arrays of unknown size because of an unbounded dimension; their bytes are not counted."""

    def plus(self, shape: Shape, count: int = 1) -> Total:
        """Returns this total plus `count` arrays of a shape."""
        size = array_bytes(shape)
        if size is None:
            return attrs.evolve(self, arrays=self.arrays + count, unsized=self.unsized + count)
        allocated, unpadded = size
        return Total(
            self.arrays + count,
            self.allocated_bytes + allocated * count,
            self.unpadded_bytes + unpadded * count,
            max(self.largest_bytes, allocated),
            self.unsized,
        )


@weighted_cache(65536)
def array_bytes(shape: Shape) -> tuple[int, int] | None:
    """Returns the bytes of an array with and without layout padding, or None if they are unknown.

    That is the case for an unbounded dimension, an invalid layout, and sizes above 2^63 - 1.
    """
    try:
        return allocated_bytes(shape), unpadded_bytes(shape)
    except LayoutError:
        return None


def arrays_of(shape: Shape | None) -> tuple[tuple[tuple[int, ...], Shape], ...]:
    """Returns the arrays in a shape, each as (shape index, array shape); empty for None.

    Tokens and opaque values are omitted. A buffer counts as the array that it holds.
    """
    if shape is None:
        return ()
    return (((), shape),) if shape.is_array else _arrays_inside(shape)


@weighted_cache(4096)
def _arrays_inside(shape: Shape) -> tuple[tuple[tuple[int, ...], Shape], ...]:
    leaves = ((index, leaf.tuple_shapes[0] if leaf.is_buffer else leaf) for index, leaf in shape.leaves())
    return tuple((index, leaf) for index, leaf in leaves if leaf.is_array)


def memory_space(array: Shape) -> int:
    """Returns the memory space number of an array; 0 if its layout has none."""
    return array.layout.memory_space if array.layout is not None else 0


@weighted_cache(65536)
def total_of(shape: Shape | None) -> Total:
    """Returns the count and bytes of all arrays in a shape."""
    total = Total()
    for _, array in arrays_of(shape):
        total = total.plus(array)
    return total


VIEWS = (traits.IS_FREE - {"constant"}) | traits.CONTROL_FLOW | traits.DEVICE_IDS
"""Opcodes whose result shares the memory of an operand or of a callee's result, or needs none."""

_OF_ALL = frozenset(OPCODES) - VIEWS - ROLES.keys() - {"custom-call"}
"""Opcodes that write all of their result, unless it is aliased."""

_START_RESULT = {"copy-start": 0, "recv": 0, "send": None, "async-start": 1, "all-gather-start": 1}
"""Result element of a start that is newly written; the others are operands and contexts. None: no element."""
_PLAIN_STARTS = frozenset({"all-reduce-start"})
"""Starts whose result is just the result."""


def written_arrays(instruction: Instruction) -> tuple[tuple[tuple[int, ...], Shape], ...]:
    """Returns the arrays for which an instruction writes a new buffer, with their shape indices.

    Results aliased to an operand (`output_to_operand_aliasing`) are omitted. The result is empty for views, for custom
    calls that only annotate or join values (`MARKS`), for async updates and dones (the start writes the result), and
    for starts whose result is written by the called computation.
    """
    head = instruction._head
    opcode = head.opcode
    if opcode in VIEWS:
        return ()
    if opcode in _OF_ALL and "output_to_operand_aliasing" not in instruction._attributes:
        return arrays_of(head.shape)
    if opcode == "custom-call" and instruction._attributes.get("custom_call_target") in MARKS:
        return ()
    if opcode == "async-start" and _runs_a_call(instruction):
        return ()
    arrays = arrays_of(head.shape)
    role = ROLES.get(opcode)
    if role is not None and opcode not in _PLAIN_STARTS:
        element = _START_RESULT.get(opcode, 1)
        arrays = tuple(row for row in arrays if role == "start" and row[0][:1] == (element,))
    aliasing = instruction._attributes.get("output_to_operand_aliasing")
    if aliasing is None:
        return arrays
    aliased = {alias.output_shape_index for alias in aliasing.aliases}
    return tuple(row for row in arrays if row[0] not in aliased)


def _runs_a_call(start: Instruction) -> bool:
    wrapped = start.async_wrapped_instruction
    return wrapped is not None and wrapped.opcode in VIEWS


def written_bytes(instruction: Instruction) -> int:
    """Returns the allocated bytes of `written_arrays`. Arrays of unknown size are not counted."""
    head = instruction._head
    if head.opcode in VIEWS:
        return 0
    if head.opcode in _OF_ALL and "output_to_operand_aliasing" not in instruction._attributes:
        return total_of(head.shape).allocated_bytes
    return sum((array_bytes(array) or (0, 0))[0] for _, array in written_arrays(instruction))


def shown_bytes(instruction: Instruction) -> int:
    """Returns the bytes to show next to an operation: `written_bytes`, or if it writes nothing, those of its result.

    Of a result that also contains the operand, as of `copy-start`, only what is written counts.
    """
    return written_bytes(instruction) or total_of(instruction.shape).allocated_bytes


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


_SIZE = lazy_regex(r"(\d+(?:\.\d+)?) ?(?:([KMGTPE]?)(I?)B?)", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """Bytes of a size as people write it: `4096`, `1.5MiB`, `2 GB`. Raises ValueError."""
    match = _SIZE().fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size in bytes: write 4096, 512KiB or 1.5GiB")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGTPE".index((match[2] or " ").upper()))


def byte_text(count: float | None) -> str:
    """Formats a number of bytes with three digits: `512 B`, `1.25 MiB`; `?` for None."""
    if count is None:
        return "?"
    if count > HUGE:
        return "over 1e300 B"
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    if unit == 0:
        return f"{int(count)} B"
    return f"{value:.{max(0, 2 - (value >= 9.995) - (value >= 99.95))}f} {_UNITS[unit]}"
