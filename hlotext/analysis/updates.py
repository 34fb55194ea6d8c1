"""Results of a module that are new values of its arguments: updated parameters, a cache with one more row."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from hlotext.analysis.entries import aliases_of, donors_of
from hlotext.analysis.facts import fact
from hlotext.analysis.sizes import arrays_of, memory_space
from hlotext.analysis.update_origins import Change, Origin, Place, origins_of
from hlotext.analysis.views import Value, array_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape


@attrs.frozen
class Update:
    """A result that is the new value of an argument of its shape."""

    parameter: Instruction
    array: Shape
    part: tuple[int, ...]
    """Index of the array in the parameter."""
    index: tuple[int, ...]
    """Index of the element of the result."""
    is_in_place: bool
    """True if only a part changes, such as a row of a cache."""
    is_carried: bool
    """True if it is loop state that starts as the argument and ends as the result, which is no coincidence."""
    is_sliced: bool = False
    """True if a loop reads the argument slice by slice and writes new slices to another array (xs and ys of a scan).

    Both are then live, whatever is donated: XLA copies the new array into a donated argument after the loop.
    """
    is_rolled: bool = False
    """True if elements that are kept move to other positions, as in a cache of the latest rows; never in place."""
    is_moved: bool = False
    """True if only some elements are new, and the others are unchanged but at other positions."""
    copies: tuple[Instruction, ...] = ()
    """Copies in the entry computation on the path from the result back to the argument."""
    is_retyped: bool = False
    """True if the argument has another element type, so that the result cannot use its buffer."""


def updates(
    module: Module,
    apart: Mapping[Instruction, Value] | None = None,
    *,
    with_aliased: bool = False,
    with_moved: bool = False,
    with_retyped: bool = False,
) -> Iterator[Update]:
    """Yields the results that are computed from an argument elementwise, or by changing a part of it.

    Each argument and each result occurs once. If several arguments qualify, `_paired` chooses.

    Args:
        module: The module.
        apart: Arrays whose slices were changed and concatenated again, by the concatenating instruction.
        with_aliased: Include results that are already aliased to an argument.
        with_moved: Include results whose elements move, which donation does not update in place: rolled arrays, reordered
            rows, and lists that are stacked, changed and unstacked.
        with_retyped: Include results with another element type than the argument.
    """
    entry = module.entry
    entries = () if with_aliased else aliases_of(module)
    aliased = {alias.output_index for alias in entries}
    taken = {(alias.parameter_number, alias.parameter_index) for alias in entries}
    arrays = {i: array for i, array in arrays_of(entry.root.shape) if i not in aliased and array.rank}
    origins = {i: origins_of(entry.root, i, array, apart or {}, with_moved) for i, array in arrays.items()}
    for index, found in _paired(origins, taken).items():
        if found.is_retyped and not with_retyped:
            continue
        change = found.change
        is_rolled = bool(change & (Change.ROLL | Change.REORDER))
        yield Update(
            found.parameter,
            arrays[index],
            found.part,
            index,
            is_in_place=Change.PART in change and Change.ALL not in change,
            is_carried=Change.LOOP in change,
            is_sliced=Change.SLICES in change,
            is_rolled=is_rolled,
            is_moved=is_rolled and Change.ALL not in change,
            copies=found.copies,
            is_retyped=found.is_retyped,
        )


def _paired(
    origins: Mapping[tuple[int, ...], Sequence[Origin]], aliased: Collection[Place]
) -> dict[tuple[int, ...], Origin]:
    """The argument that each result replaces, none of them twice; without results of which that is unknown."""
    reached = Counter(one.place for found in origins.values() for one in found)
    taken = set(aliased)
    shifts: set[int] = set()
    chosen: dict[tuple[int, ...], Origin] = {}
    # Those that are certain come first: they tell how the others lie.
    for choose in (_fewest, functools.partial(_placed, shifts)):
        for index in sorted(origins.keys() - chosen.keys(), key=lambda one: (len(origins[one]), one)):
            left = _likeliest([one for one in origins[index] if one.place not in taken], reached)
            if left and (one := choose(left, index)) is not None:
                chosen[index] = one
                taken.add(one.place)
                shifts.add(_shift(one, index))
    return {index: chosen[index] for index in origins if index in chosen}


def _likeliest(found: Sequence[Origin], reached: Mapping[Place, int]) -> Sequence[Origin]:
    """Of the arguments that a result is computed from, nearest first, those that the fewest results are computed from.

    A gradient is part of every result of an optimizer, a moment of its own and the parameter's, the old parameter of the new
    one alone. Among equals it is one of the result's type.
    """
    if not found or found[0].is_decisive:
        return found[:1]
    fewest = min(reached[one.place] for one in found)
    left = [one for one in found if reached[one.place] == fewest]
    return [one for one in left if not one.is_retyped] or left


def _fewest(found: Sequence[Origin], index: tuple[int, ...]) -> Origin | None:
    """The only one; the nearest, where all are leaves of one argument. None if neither holds."""
    return found[0] if len({tree_of(one.parameter) for one in found}) == 1 else None


def _placed(shifts: Collection[int], found: Sequence[Origin], index: tuple[int, ...]) -> Origin | None:
    """The one at the place that other results and their arguments have to one another; None if unknown.

    With no such results `p - rate * g` is the new `p`, unless another argument has the result's place.
    """
    if (certain := _fewest(found, index)) is not None:
        return certain
    if placed := [one for one in found if _shift(one, index) in shifts]:
        return placed[0] if len(placed) == 1 else None
    hints = [one for one in found if Change.SCALED not in one.change]
    hints = (hints if len(hints) == 1 else []) + [one for one in found if not _shift(one, index)]
    return hints[0] if hints and all(one is hints[0] for one in hints) else None


def _shift(one: Origin, index: tuple[int, ...]) -> int:
    """The places that an argument has before it beyond those that a result has."""
    return (one.parameter.parameter_number or 0) - (index[0] if index else 0)


@fact
def undonated_updates(module: Module) -> tuple[Update, ...]:
    """Returns the updates of arguments that are neither aliased nor listed in `buffer_donor`."""
    given = {one.param_number for one in donors_of(module)}
    return tuple(one for one in updates(module) if one.parameter.parameter_number not in given)


@fact
def copies_for_updates(module: Module) -> dict[Instruction, Update]:
    """Returns the copies that exist because an argument is updated without being donated, each with the update.

    The argument is updated partially, or is loop state; updated in its own buffer it would not be copied. Either the
    whole argument is copied within main memory, or its new value is copied from fast memory to a separate result.
    """
    found = {}
    for update in undonated_updates(module):
        for copy in update.copies:
            given, made = array_of(copy.operands[0].shape), array_of(copy.shape)
            if given is None or made is None or memory_space(made) or made.layout is None:
                continue
            if made.element_count != update.array.element_count or not _is_same_order(given, made):
                continue
            if update.is_sliced:
                is_needed = False
            elif memory_space(given):
                is_needed = update.is_in_place
            else:
                is_needed = (update.is_in_place or update.is_carried) and _is_given(copy.operands[0])
            if is_needed:
                found[copy] = update
    return found


@fact
def copies_for_old_values(module: Module) -> dict[Instruction, tuple[Update, tuple[Instruction, ...]]]:
    """Returns the copies of donated arguments whose old value is still read by others, each with the update and these
    readers.
    """
    donated = {alias.parameter_number for alias in aliases_of(module)}
    found = {}
    for update in updates(module, with_aliased=True) if donated else ():
        if update.parameter.parameter_number not in donated or update.is_sliced or not update.copies:
            continue
        old = (update.parameter, *update.copies[1:])  # the first one is what the update overwrites
        readers = dict.fromkeys(user for one in old for user in one.users if user not in update.copies)
        if readers:
            found.update(dict.fromkeys(update.copies, (update, tuple(readers))))
    return found


def _is_same_order(given: Shape, made: Shape) -> bool:
    """True if the two have one layout, memory spaces aside: a copy that turns an array is there for another reason."""
    if given.layout is None or made.layout is None:
        return False
    return (given.layout.minor_to_major, given.layout.tiles) == (
        made.layout.minor_to_major,
        made.layout.tiles,
    )


def _is_given(instruction: Instruction) -> bool:
    """True for an argument, also behind bitcasts and as the element of a tuple."""
    while instruction.opcode in ("bitcast", "get-tuple-element"):
        instruction = instruction.operands[0]
    return instruction.opcode == "parameter"


def tree_of(parameter: Instruction) -> str:
    """Returns the name of the pytree that a parameter is a leaf of, such as `params` for JAX's `params['w']`.

    Returns the parameter's own name if it has no name in the program.
    """
    name = parameter.metadata.op_name if parameter.metadata is not None else ""
    return re.split(r"[\[.]", name, maxsplit=1)[0] or parameter.name
