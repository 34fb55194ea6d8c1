"""Arrays that are cut into slices and joined again, with little changed in between."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import memory_space
from hlotext.analysis.updates import Update, updates
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of
from hlotext.lint.products import concatenated
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value, entered, fetched, source

_SMALL = 8
"""Minimum ratio of an array's size to its update for which it should be written in place."""
PASSING = VIEWS | {"convert", "transpose"}
"""Opcodes on the way from a slice to the place where it is written again."""
_UPDATES = frozenset({"dynamic-update-slice", "scatter"})
_CUTS = frozenset({"dynamic-slice", "slice"})
_MOST_STEPS = 100


@attrs.frozen(eq=False)
class TakenApart:
    """An array of which every slice comes back in another of its size, some of them changed in a small part."""

    joined: Instruction
    """The instruction that writes the slices side by side again."""
    whole: Value
    """The array that was cut."""
    path: tuple[Instruction, ...]
    """All that writes on the way, the joining one first."""
    fetched: int
    """Bytes of slices that lie in fast memory, where they have to come whatever is done with the array."""


def taken_apart(context: Context) -> Iterator[TakenApart]:
    """Yields the arrays that steps of a module take apart and put together again."""
    for one in context.graph.sequential_instructions():
        if one.opcode not in ("concatenate", "fusion"):
            continue
        if (parts := _parts(one)) is not None and (found := _joined(one, parts)) is not None:
            yield found


def updates_of(context: Context) -> Iterator[Update]:
    """Yields the results that are new values of arguments, also of arrays that are taken apart and joined again."""
    return updates(context.module, {one.joined: one.whole for one in taken_apart(context)})


def is_small_update(one: Instruction) -> bool:
    """True for a dynamic-update-slice or a scatter of so little that it should be written in place."""
    update = one.operands[-1 if one.opcode == "scatter" else 1]
    return _SMALL * size_of(update.shape) <= size_of(one.shape)


def _parts(one: Instruction) -> list[Value] | None:
    """The arrays that an instruction writes side by side."""
    found = concatenated(Value(one)) if one.shape is not None and one.shape.is_array else None
    return found[0] if found is not None else None


def _joined(one: Instruction, parts: list[Value]) -> TakenApart | None:
    path: dict[Instruction, None] = {one: None}
    wholes, updates = set(), 0
    for part in parts:
        cut, count = _cut(part, path)
        if cut is None:
            return None
        wholes.add(source(cut.operands()[0], VIEWS))
        updates += count
    whole = wholes.pop()
    before, after = whole.instruction.shape, one.shape
    if (
        wholes
        or not updates
        or before is None
        or after is None
        or before.element_count != after.element_count
    ):
        return None
    fast = [step for step in path if step is not one and not _is_changed(step)]
    arrays = [
        array
        for step in fast
        if step.shape is not None
        for array in (step.shape.tuple_shapes or (step.shape,))
    ]
    in_fast = sum(size_of(array) for array in arrays if memory_space(array))
    return TakenApart(one, whole, tuple(path), in_fast)


def _is_changed(step: Instruction) -> bool:
    inside = step.called_computations[0].root if step.called_computations else step
    return source(Value(inside), PASSING).instruction.opcode in _UPDATES


def _cut(value: Value, path: dict[Instruction, None]) -> tuple[Value | None, int]:
    """The slice that a part was before it was changed, and the number of changes; None where it is no such slice."""
    count = 0
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        if (moved := fetched(one)) is not None:
            value = Value(moved, value.fusions)
            continue
        if value.writer.opcode not in _FREE:
            path.setdefault(value.writer)
        if one.opcode in _CUTS:
            return value, count
        if one.opcode in _UPDATES:
            if not is_small_update(one):
                return None, 0
            count += 1
        elif one.opcode not in PASSING or not one.operands:
            return None, 0
        value = value.operands()[0]
    return None, 0


_FREE = traits.IS_FREE | {"reshape"}
