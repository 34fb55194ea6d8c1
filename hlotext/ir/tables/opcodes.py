"""The opcode table: every opcode of HLO by its word in the text, and questions that are answered from it.

Names, operand counts and attributes are those of XLA's HLO reader and printer (`HloOpcode`, `HloParser`,
`HloInstruction::PrintExtraAttributes`); the rows stand in `hlotext.ir.tables.opcode_rows`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from hlotext.ir import short_names
from hlotext.ir.caches import text_cache
from hlotext.ir.tables.opcode import AttributeUse, Derived, Family, Opcode, Printing
from hlotext.ir.tables.opcode_attributes import COMMON_ATTRIBUTES, RESULT_ACCURACY
from hlotext.ir.tables.opcode_rows import communication, compute, control, elementwise, movement

if TYPE_CHECKING:
    from hlotext.ir.values.shape import Shape

_ROWS = (*elementwise.ROWS, *movement.ROWS, *compute.ROWS, *communication.ROWS, *control.ROWS)

OPCODES: dict[str, Opcode] = {row.name: row for row in sorted(_ROWS, key=lambda row: row.name)}
"""Every opcode by its word in the text, in alphabetical order."""
short_names.answer_for_opcodes(OPCODES)

COLLECTIVES: frozenset[str] = frozenset(row.name for row in _ROWS if row.family is Family.COLLECTIVE)
"""Opcodes in which several devices take part at once, with their `-start` and `-done` halves."""

ASYNC_SUFFIXES = ("-start", "-update", "-done")
"""Suffixes of the wrapped opcode in the short spelling of async-start, async-update and async-done."""

NATIVE_ASYNC: dict[str, str] = {
    row.name: row.name.removesuffix(suffix)
    for row in _ROWS
    for suffix in ASYNC_SUFFIXES
    if row.name.endswith(suffix) and not row.name.startswith("async-")
}
"""Halves that are opcodes of their own, and what they are halves of: `copy-done` is one of `copy`."""

HALVED = frozenset(NATIVE_ASYNC.values())
"""Opcodes that have halves of their own: XLA writes their short spelling, but does not read it (`HloParser::ParseOpcode`)."""


CALLED_NAMES: dict[str, tuple[str, ...]] = {name: row.stored_called_names for name, row in OPCODES.items()}
"""For each opcode the attributes that call computations, in XLA's order; most have none."""

ELEMENTWISE = frozenset(
    row.name
    for row in _ROWS
    if row.family in (Family.ELEMENTWISE_UNARY, Family.ELEMENTWISE_BINARY, Family.ELEMENTWISE_TERNARY)
)
"""Opcodes that compute each element of the result from the elements in the same place."""

CALLS_NOTHING = frozenset(name for name, called in CALLED_NAMES.items() if not called)
"""Opcodes that call no computation."""


CONTEXT_DEPENDENT = frozenset(
    row.name
    for row in OPCODES.values()
    if row.name.startswith("async-")
    or any(
        isinstance(use.default, Derived) and use.printed is not Printing.IF_NOT_DEFAULT
        for use in row.attributes
    )
)
"""Opcodes whose text depends on other instructions."""


SPELLINGS: dict[str, str] = {
    spelling: use.name
    for uses in (COMMON_ATTRIBUTES, *(row.attributes for row in _ROWS))
    for use in uses
    for spelling in use.spellings
}
"""Names of attributes in other releases, and the names under which they are known here."""


def opcode(name: str) -> Opcode | None:
    """Returns the row of an opcode, or None for any other word, such as the sugared spelling `call-start`."""
    return OPCODES.get(name)


@text_cache(1024)
def async_wrapped(name: str) -> tuple[Opcode, Opcode] | None:
    """Returns the rows that a sugared spelling such as `call-start` stands for: those of `async-start` and of `call`.

    Returns None for other words, including opcodes: whether `all-reduce-start` is sugar depends on its shape
    (`generic_half`).
    """
    if name in OPCODES:
        return None
    for suffix in ASYNC_SUFFIXES:
        stem = name.removesuffix(suffix)
        if stem != name and stem in OPCODES:
            return OPCODES[f"async{suffix}"], OPCODES[stem]
    return None


def generic_half(name: str, shape: Shape | None, first: str | None) -> tuple[Opcode, Opcode] | None:
    """Returns the rows that a native start or done stands for if it is sugar for an async-start or -done, otherwise
    None.

    A sugared start is recognized by its shape, which begins with the tuple of its operands, and a sugared done by the
    opcode `first` of its first operand. XLA:GPU prints all asynchronous collectives in this way. Starts of several
    operands are ambiguous and count as native, as in XLA.
    """
    stem = NATIVE_ASYNC.get(name)
    if stem is None:
        return None
    if name.endswith("-done"):
        return (OPCODES["async-done"], OPCODES[stem]) if first in ("async-start", "async-update") else None
    if shape is None or len(shape.tuple_shapes) < 2 or not shape.tuple_shapes[0].is_tuple:
        return None
    taken, given = shape.tuple_shapes[:2]
    if stem in ("all-gather", "collective-permute") and len(taken.tuple_shapes) > 1 and given.is_tuple:
        return None
    return OPCODES["async-start"], OPCODES[stem]


@functools.cache
def common_attributes(row: Opcode) -> tuple[AttributeUse, ...]:
    """The attributes that this opcode shares with all others, in print order."""
    return tuple(use for use in COMMON_ATTRIBUTES if use is not RESULT_ACCURACY or row.result_accuracy)


@functools.cache
def allowed_attributes(row: Opcode) -> dict[str, AttributeUse]:
    """Every attribute that may stand on this opcode, by name, in print order."""
    return {use.name: use for use in (*row.attributes, *common_attributes(row))}
