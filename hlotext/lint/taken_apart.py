"""Arrays that are cut into slices and joined again, with little changed in between."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import call_graph, memory_space
from hlotext.analysis.facts import fact
from hlotext.analysis.updates import Update, updates
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of
from hlotext.lint.products import concatenated
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value, entered, fetched, source

_SMALL = 8
"""Minimum ratio of an array's size to its update for which it should be written in place."""
PASSING = VIEWS | {"convert", "transpose"}
"""Opcodes on the way from a slice to the place where it is written again."""
_JOINING = traits.UPDATES_ELEMENTS | {"concatenate", "fusion"}
_CUTS = frozenset({"dynamic-slice", "slice"})
_MOST_STEPS = 100
_MOST_SLICES = 1000
"""Bound on slices that are written to one array in turn: more layers than models have."""


@attrs.frozen(eq=False)
class TakenApart:
    """An array whose slices are all replaced by others of the same size, some with a small change."""

    joined: Instruction
    """The instruction that writes the slices side by side again."""
    whole: Value
    """The array that was cut."""
    path: tuple[Instruction, ...]
    """All that writes on the way, the joining one first."""
    fetched: int
    """Bytes of slices that lie in fast memory, where they have to come whatever is done with the array."""
    writers: tuple[Instruction, ...]
    """All that writes to the joined array: the joining one, or one for each slice, the last first."""


def taken_apart(context: Context) -> tuple[TakenApart, ...]:
    """Returns the arrays that a module takes apart and joins again."""
    return _taken_apart(context.module)


@fact
def _taken_apart(module: Module) -> tuple[TakenApart, ...]:
    return tuple(_found(module))


def _found(module: Module) -> Iterator[TakenApart]:
    for one in call_graph(module).sequential_instructions():
        if one.opcode not in _JOINING:
            continue
        parts = _parts(one)
        writers: tuple[Instruction, ...] = (one,)
        if parts is None and not any(is_base(one, user) for user in one.users):
            parts, writers = written_in_turn(one)
        if parts and (found := _joined(one, parts, writers)) is not None:
            yield found


def is_base(one: Instruction, user: Instruction) -> bool:
    """True if a user may write another slice into the same array."""
    return (
        user.opcode in ("dynamic-update-slice", "fusion")
        and user.operands[0] is one
        and user.shape == one.shape
    )


def written_in_turn(one: Instruction) -> tuple[list[Value], tuple[Instruction, ...]]:
    """Returns the slices that are written to an array at constant offsets of one dimension, and the writers.

    Empty if they do not fill the array. The TPU compiler stacks large arrays this way since 2026.
    """
    shape = one.shape
    parts: dict[int, Value] = {}
    writers: list[Instruction] = []
    filled, along = 0, None
    made = source(Value(one), VIEWS)
    while (
        shape is not None and made.instruction.opcode == "dynamic-update-slice" and len(parts) < _MOST_SLICES
    ):
        base, part, *places = made.operands()
        size = part.instruction.shape
        if made.instruction.shape != shape or size is None or len(places) != shape.rank:
            break
        cut = [d for d in range(shape.rank) if size.dimensions[d] != shape.dimensions[d]]
        first = _constant(places[cut[0]]) if len(cut) == 1 else None
        if first is None or along not in (None, cut[0]) or first in parts:
            break
        along = cut[0]
        parts[first] = part
        writers.append(made.writer)
        filled += size.dimensions[along]
        made = source(base, VIEWS)
    if shape is None or along is None or filled != shape.dimensions[along]:
        return [], ()
    place = 0
    for first in sorted(parts):
        if first != place:
            return [], ()
        size = parts[first].instruction.shape
        place += size.dimensions[along] if size is not None else 0
    return [parts[first] for first in sorted(parts)], tuple(dict.fromkeys(writers))


def _constant(value: Value) -> int | None:
    found = source(value, VIEWS | {"convert"}).instruction
    text = str(found.literal) if found.opcode == "constant" else ""
    return int(text) if text.isdigit() else None


def updates_of(
    context: Context, *, with_moved: bool = False, with_aliased: bool = False
) -> tuple[Update, ...]:
    """Returns the results that are new values of arguments, including arrays taken apart and joined again (see
    `updates`).
    """
    return _updates(context.module, with_moved, with_aliased)


@fact
def _updates(module: Module, with_moved: bool, with_aliased: bool) -> tuple[Update, ...]:
    apart = {one.joined: one.whole for one in _taken_apart(module)}
    return tuple(updates(module, apart, with_moved=with_moved, with_aliased=with_aliased))


def is_small_update(one: Instruction) -> bool:
    """True for a dynamic-update-slice or scatter whose update is so small that it should be made in place."""
    update = one.operands[-1 if one.opcode == "scatter" else 1]
    return _SMALL * size_of(update.shape) <= size_of(one.shape)


def _parts(one: Instruction) -> list[Value] | None:
    """The arrays that an instruction writes side by side."""
    found = concatenated(Value(one)) if one.shape is not None and one.shape.is_array else None
    return found[0] if found is not None else None


def _joined(one: Instruction, parts: list[Value], writers: tuple[Instruction, ...]) -> TakenApart | None:
    path: dict[Instruction, None] = {one: None, **dict.fromkeys(writers)}
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
    fast = [step for step in path if step not in writers and not _is_changed(step)]
    arrays = [
        array
        for step in fast
        if step.shape is not None
        for array in (step.shape.tuple_shapes or (step.shape,))
    ]
    in_fast = sum(size_of(array) for array in arrays if memory_space(array))
    return TakenApart(one, whole, tuple(path), in_fast, writers)


def _is_changed(step: Instruction) -> bool:
    inside = step.called_computations[0].root if step.called_computations else step
    return source(Value(inside), PASSING).instruction.opcode in traits.UPDATES_ELEMENTS


def _cut(value: Value, path: dict[Instruction, None]) -> tuple[Value | None, int]:
    """The slice that a part was before it was changed, and the number of changes; None if it is no such slice."""
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
        if one.opcode in traits.UPDATES_ELEMENTS:
            if not is_small_update(one):
                return None, 0
            count += 1
        elif one.opcode not in PASSING or not one.operands:
            return None, 0
        value = value.operands()[0]
    return None, 0


_FREE = traits.IS_FREE | {"reshape"}
