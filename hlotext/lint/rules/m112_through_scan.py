"""Arrays that are taken apart and put together again with little changed, in loops or in written-out layers."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text, memory_space, total_of
from hlotext.analysis.entries import program_name
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import changes_layout, size_of, takers, times
from hlotext.lint.rounds import Rounds, parts_of, stepped_rounds, unmoved
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.taken_apart import PASSING, TakenApart, is_small_update, taken_apart
from hlotext.lint.values import VIEWS, Value, entered, is_set_aside, is_spread, leaves_by
from hlotext.lint.wording import every_round, listed

_MOST_STEPS = 100
_MOST_NAMED = 3


_CARRY = (
    "carry the whole array, write into it in place (lax.dynamic_update_slice), and donate it: the compiler then "
    "neither copies it nor stores it twice"
)
_TURNED = (
    "carry the whole array, write into it in place (lax.dynamic_update_slice), donate it, and keep it from call to call "
    "in the layout that the compiler chooses then (Format(Layout.AUTO), jax.experimental.layout): each slice is converted "
    "to another layout and back, and carrying alone would convert the whole array"
)


@attrs.frozen(eq=False)
class _Path:
    """The way of an array's slices through an iteration."""

    given: Instruction
    """The value that the slot gets."""
    slot: int
    read: int | None
    """The slot whose slices are read."""
    steps: tuple[Instruction, ...]
    """Instructions between the slice and the slot that move or change it, the writer first."""
    is_turned: bool
    """True if the slice is changed in another layout than the array's."""


class ThroughScan(Rule):
    code = "M112"
    name = "through-scan"
    title = "an array sliced and concatenated again to update a small part"
    waste = "copied"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            changed = (slot for slot in range(len(rounds.given)) if slot not in rounds.passed)
            paths = [path for slot in changed if (path := _path(slot, rounds)) is not None]
            if paths and count > 1:  # the loop does not read and return it slice by slice
                yield _report(paths, rounds, count, context)
        for apart in taken_apart(context):
            yield _of_parts(apart, context)


def _of_parts(apart: TakenApart, context: Context) -> Report:
    """The same without a loop: layers that are written out take their slices, and a stack is made of the new ones."""
    size = size_of(apart.joined.shape)
    runs = context.runs(apart.joined)
    # What the caller gets is held anyway, unless the argument is donated, which M103 says.
    held = [one for one in apart.path if one not in apart.writers or not _is_result(apart.joined, context)]
    fetching = context.prices.reading(apart.fetched * runs)
    return Report(
        apart.joined,
        f"an array of {byte_text(size)} is cut into slices, a small part of each is updated, and they are concatenated "
        f"again: the whole array is read and written{times(runs)}",
        "write into the whole array in place (cache.at[layer, :, position].set(...)), read its slices from there, and donate "
        "it; or keep the slices as separate arrays, and donate those",
        2 * size * runs,
        seconds=max(0.0, context.prices.together(apart.path) - fetching),
        spares=dict.fromkeys(held, 1.0),
        covers=frozenset(apart.path),
    )


def _is_result(one: Instruction, context: Context) -> bool:
    return one.computation is context.module.entry and leaves_by(one, VIEWS | {"tuple"})


def _report(paths: list[_Path], rounds: Rounds, count: int, context: Context) -> Report:
    """One for the arrays of a loop: a repair carries them all."""
    size = sum(total_of(path.given.shape).allocated_bytes for path in paths)
    around = dict.fromkeys(one for path in paths for one in _around(path, rounds))
    is_known = rounds.loop not in context.prices.rounds
    named = _named(paths, rounds)
    many = (
        f"a loop takes {len(paths)} arrays{named}, {byte_text(size)} in total, as xs and returns them as ys"
    )
    if len(paths) == 1:
        many = f"a loop takes an array of {byte_text(size)}{named} as xs and returns it as ys"
    reading = sum(_read_instead(path, count, context) for path in paths)
    return Report(
        paths[0].steps[0],
        f"{many}{times(context.runs(rounds.loop))}, only to change a small part of each slice: a whole slice is read and "
        f"written {every_round(count, is_known)}",
        _TURNED if any(path.is_turned for path in paths) else _CARRY,
        context.in_all_rounds(2 * size * context.runs(rounds.loop), rounds.loop),
        seconds=max(0.0, context.prices.together(around) - reading),
        # What else is live at the peak, such as copies of the same arrays in another layout, stays.
        spares={one: 1.0 for path in paths for one in _new_values(path, rounds)},
        covers=frozenset(around),
    )


def _named(paths: list[_Path], rounds: Rounds) -> str:
    """The names in the program of arrays that are arguments, ` (cache['k'] and cache['v'])`; empty if one has none."""
    read = [rounds.before(path.read) if path.read is not None else None for path in paths]
    names = [program_name(unmoved(value)) if value is not None else "" for value in read]
    if not all(names):
        return ""
    names = [f"`{name}`" for name in names]
    shown = names if len(names) <= _MOST_NAMED else [*names[:_MOST_NAMED], f"{len(names) - _MOST_NAMED} more"]
    return f" ({listed(shown)})"


def _new_values(path: _Path, rounds: Rounds) -> Iterator[Instruction | tuple[Instruction, tuple[int, ...]]]:
    """The values of the array of its own that the new slices go to: the loop hands it on, in a slot."""
    yield from _around(path, rounds)
    states = [p for body in rounds.loop.called_computations for p in body.parameters]
    yield from ((one, (path.slot,)) for one in (rounds.loop, *states))


def _around(path: _Path, rounds: Rounds) -> Iterator[Instruction]:
    """The steps of a path, with what fills the slot before the loop and copies it behind."""
    yield from path.steps
    first = rounds.before(path.slot)
    made = first.operands[0] if first is not None and first.opcode == "get-tuple-element" else first
    if first is not None and made is not None and (is_spread(first) or is_set_aside(first)):
        yield made
    for element in rounds.loop.users:
        if element.opcode == "get-tuple-element" and element.attributes.get("index") == path.slot:
            yield from (user for user in element.users if user.opcode == "copy")


def _read_instead(path: _Path, count: int, context: Context) -> float:
    """Seconds that readers of the slice take longer without the loop's copy of it.

    Where the slice lies in fast memory, they read it from main memory then, beside their own arithmetic.
    """
    near = [one for one in path.steps[1:] if one.shape is not None and memory_space(one.shape)]
    if not near:
        return 0.0
    size = total_of(path.given.shape).allocated_bytes // count
    runs = context.prices.runs(path.steps[0].computation)
    readers = {user for user, _ in takers(near, VIEWS)} - {*path.steps}
    return max(0.0, context.prices.reading(size * runs) - context.prices.together(readers))


def _path(slot: int, rounds: Rounds) -> _Path | None:
    """The instructions between an invariant array's slice and the same slice of the slot, the writer first.

    None if it is no such update: a slice of an array of the same size, changed in a small part, is written to the slot.
    """
    given = rounds.given[slot]
    path: dict[Instruction, None] = {}
    outer = _found(Value(given), path, ("dynamic-update-slice",))
    if outer is None or len(outer.instruction.operands) < 2:
        return None
    operands = outer.operands()
    kept = _found(operands[0], {}, ())
    if kept is None or kept.fusions or rounds.slot_of(kept.instruction) != slot:
        return None
    inner = _found(operands[1], path, ("dynamic-update-slice", "scatter"))
    if inner is None or not inner.instruction.operands:
        return None
    if not is_small_update(inner.instruction):
        return None
    cut = _found(inner.operands()[0], path, ("dynamic-slice",))
    if cut is None or not cut.instruction.operands:
        return None
    whole = _found(cut.operands()[0], {}, ())
    if whole is None or whole.fusions or (read := rounds.slot_of(whole.instruction)) not in rounds.passed:
        return None
    before, after = whole.instruction.shape, given.shape
    if before is None or after is None or before.element_count != after.element_count:
        return None
    slice_bytes = size_of(cut.instruction.shape)
    return _Path(given, slot, read, tuple(path), any(_turns(step, slice_bytes) for step in path))


def _turns(step: Instruction, slice_bytes: int) -> bool:
    """True if a step writes the slice in another layout, by itself or in a fusion."""
    return any(
        part.opcode == "copy" and size_of(part.shape) >= slice_bytes and changes_layout(part)
        for part in parts_of(step)
    )


def _found(value: Value, path: dict[Instruction, None], opcodes: tuple[str, ...]) -> Value | None:
    """The producer of a value behind views (of these opcodes, if given). Visited instructions are added to the path."""
    for _ in range(_MOST_STEPS):
        outside = value.writer
        value = entered(value)
        one = value.instruction
        for step in (outside, value.writer):
            if step.opcode in (
                "fusion",
                "copy",
                "dynamic-slice",
                "dynamic-update-slice",
                "scatter",
                "transpose",
            ):
                path.setdefault(step)
        if one.opcode in opcodes:
            return value
        if one.opcode not in PASSING or not one.operands:
            return None if opcodes else value
        value = value.operands()[0]
    return None
