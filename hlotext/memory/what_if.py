"""Estimated peak if a parameter were donated or a value recomputed.

The module's schedule, fusions and layouts stay as they are; the compiler may choose others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.chips import Chip
from hlotext.analysis.communication import KINDS
from hlotext.analysis.meant import names_meant
from hlotext.edit.cloning import clone_instruction
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.memory import peaks
from hlotext.memory.assignment import Assignment, assign
from hlotext.memory.donation import (
    donated,
    listed_numbers,
    movable,
    needless_copies,
    without_copies,
    written_elsewhere,
)
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.subshapes import ShapeIndex


@attrs.frozen
class WhatIf:
    """Estimate of one memory space before and after a change."""

    what: str
    memory_space: int
    peak_before: int
    peak_after: int
    needed_before: int
    """Bytes of all allocations, including fragmentation."""
    needed_after: int
    notes: tuple[str, ...]
    assignment: Assignment
    """Buffer assignment after the change."""
    unsure: tuple[int, ...] = ()
    """Numbers of donated parameters with a reader that their new value does not depend on."""
    more_at_most: int = 0
    """Bytes by which the peak may fall further, if the compiler moves what it copies donated results from to fast memory:
    the peak is between `peak_after - more_at_most` and `peak_after`."""

    @property
    def saved(self) -> int:
        """Reduction of the peak in bytes; negative if it is higher."""
        return self.peak_before - self.peak_after


def donate(
    module: Module,
    parameters: Sequence[int],
    platform: str | Backend | None = None,
    chip: str | Chip | None = None,
    *,
    memory_space: int = 0,
    before: Assignment | None = None,
    results: Mapping[int, ShapeIndex] | None = None,
    is_hopeful: bool | None = None,
) -> WhatIf:
    """Estimates the peak if these parameters of the entry were donated.

    Each array of a parameter is aliased to the result given in `results`, else to the first unaliased result of the same
    shape, as in JAX. If a reader of the parameter depends on the result, the compiler copies the parameter and nothing is
    gained, but the result is used up nevertheless. If neither depends on the other, the compiler must schedule the reader
    first; the CPU compiler, which inserts copies before scheduling, may copy in that case (`RemoveUnnecessaryCopies` with a
    `DependencyHloOrdering`). Such a parameter is listed in `unsure` and counts only if `is_hopeful`.

    A result that cannot be written over its own parameter, which it is computed from, is written elsewhere first: that is
    counted until it was read, on TPU as what may be in fast memory, unless `is_hopeful`. With None, the default, nothing
    hoped for counts, and if something may be copied `more_at_most` says what hope adds.

    In the outcome, `what` names the parameters whose buffers are reused, and the notes explain the others. Raises
    MemoryModelError if there is no such parameter, and the same errors as `assign`.
    """
    if isinstance(parameters, int | str):
        raise TypeError(f"parameters is a list of numbers, such as [0], not {parameters!r}")
    before = before or assign(module, platform, chip)
    assert before.model is not None
    flow = before.model.flow
    changed = donated(before, flow, parameters, results or {}, bool(is_hopeful))
    needless = needless_copies(before, flow, changed.aliases)
    after = assign(
        without_copies(module, needless),
        before.backend,
        before.chip,
        aliases=changed.aliases,
        age=before.age,
        places_fast_memory=before.places_fast_memory,
    )
    taken = {number for number, _ in changed.aliases.values()}.intersection(parameters)
    said = [number for number in parameters if number in taken] or parameters
    without = [number for number in parameters if number not in said]
    what = f"donate {listed_numbers(said)}{_names(module, said)}" + (
        f" (not {listed_numbers(without)}: see the notes)" if without else ""
    )
    found = _compared(what, memory_space, before, after, changed.notes)
    more = 0
    if memory_space == 0:
        is_counted = changed.detours and not needless and not is_hopeful
        at_end = before.backend is Backend.GPU
        elsewhere = written_elsewhere(after, changed.detours, until_end=at_end) if is_counted else 0
        more = movable(before, changed.copied)
        if more:
            found = _noted(
                found,
                f"up to {byte_text(more)} less if the compiler keeps the values that it copies to donated results in "
                "fast memory, which has that much room",
            )
        if elsewhere:
            found = attrs.evolve(
                _noted(found, _DETOUR),
                peak_after=found.peak_after + elsewhere,
                needed_after=found.needed_after + elsewhere,
            )
            if before.backend is Backend.TPU:
                more += elsewhere
            elif before.backend is Backend.GPU:
                more += elsewhere - written_elsewhere(after, changed.detours)
    if changed.unsure_copies and is_hopeful is None:
        best = donate(
            module,
            parameters,
            memory_space=memory_space,
            before=before,
            results=results,
            is_hopeful=True,
        )
        more += max(0, found.peak_after - best.peak_after)
    return attrs.evolve(found, unsure=tuple(changed.unsure), more_at_most=more)


_DETOUR = (
    "results that cannot be written over the arguments that they are computed from are written elsewhere first and then "
    "copied"
)


def _noted(found: WhatIf, note: str) -> WhatIf:
    """With one more note, before the last, which says that all is an estimate."""
    return attrs.evolve(found, notes=(*found.notes[:-1], note, found.notes[-1]))


_MOST_NAMES = 4
"""Names of arguments that the sentence about a donation has."""


def _names(module: Module, numbers: Sequence[int]) -> str:
    """The names in the program of parameters, as far as they have one: a number is the parameter's, not the function's."""
    parameters = module.entry.parameters
    metadata = [parameters[number].metadata for number in numbers]
    names = [one.op_name for one in metadata if one is not None and one.op_name]
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f" ({', '.join(names[:_MOST_NAMES])}{more})"


def rematerialize(
    module: Module,
    names: str | Sequence[str],
    platform: str | Backend | None = None,
    chip: str | Chip | None = None,
    *,
    memory_space: int = 0,
    before: Assignment | None = None,
) -> WhatIf:
    """Estimates the peak if a value, or several in turn, were recomputed after the peak instead of staying live.

    Its instruction is repeated before the first use after the peak, so its operands stay live until then. If that lowers
    the peak further, the instructions that produce the operands are repeated too, back to values that are live across the
    peak anyway, as with `jax.checkpoint`. Raises MemoryModelError if there is no such value, if it is not live across the
    peak or cannot be recomputed, and the same errors as `assign`.
    """
    before = before or assign(module, platform, chip)
    after, notes = before, []
    each = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    for name in each:
        after, more = _computed_again(after, name, memory_space)
        notes += more
    return _compared(f"recompute {', '.join(each)}", memory_space, before, after, notes)


def together(
    module: Module, parameters: Sequence[int], names: Sequence[str], before: Assignment, memory_space: int = 0
) -> WhatIf:
    """Estimates the peak if these parameters were donated and then, in turn, these values recomputed.

    This is not the sum of the individual savings, since lowering one peak may leave another one. A value that cannot be
    recomputed after the others is skipped, with a note. Raises the same errors as `donate`.
    """
    parameters = sorted(set(parameters))
    first = donate(module, parameters, memory_space=memory_space, before=before) if parameters else None
    after = first.assignment if first is not None else before
    notes = [note for note in first.notes if note != _ESTIMATE] if first is not None else []
    again = []
    for name in dict.fromkeys(names):
        try:
            after, more = _computed_again(after, name, memory_space)
        except MemoryModelError as error:
            notes.append(f"without {name}: {error}")
            continue
        again.append(name)
        notes += more
    what = [
        *([first.what] if first is not None else []),
        *([f"recompute {', '.join(again)}"] if again else []),
    ]
    found = _compared(f"together: {' and '.join(what)}", memory_space, before, after, notes)
    if first is None:
        return found
    elsewhere = first.peak_after - first.assignment.peak(memory_space).bytes
    return attrs.evolve(
        found,
        peak_after=found.peak_after + elsewhere,
        needed_after=found.needed_after + elsewhere,
        unsure=first.unsure,
        more_at_most=first.more_at_most,
    )


def _computed_again(before: Assignment, name: str, memory_space: int) -> tuple[Assignment, list[str]]:
    """The memory with one value computed again, and what is to be said of it."""
    assert before.module is not None
    target = before.module.find(name)
    if not isinstance(target, Instruction):
        raise MemoryModelError(f"no instruction is named {name}{names_meant(before.module, name)}")
    alone = _with_again(before, target, [], memory_space)
    makers = _makers(before, target, memory_space)
    if not makers:
        return alone, []
    together = _with_again(before, target, makers, memory_space)
    if together.peak(memory_space).bytes >= alone.peak(memory_space).bytes:
        return alone, []
    shown = ", ".join(maker.name for maker in makers[-_NAMED:])
    more = f" and {len(makers) - _NAMED} more" if len(makers) > _NAMED else ""
    return together, [f"the operands of {target.name} are recomputed too: {shown}{more}"]


def _with_again(
    before: Assignment, target: Instruction, makers: Sequence[Instruction], memory_space: int
) -> Assignment:
    assert before.module is not None
    copy = before.module.clone()
    try:
        _compute_again(copy, target.name, [maker.name for maker in makers], before, memory_space)
    except EditError as error:
        raise MemoryModelError(f"{target.name} cannot be recomputed: {error}") from None
    aliases = before.model.flow.aliases if before.model is not None else None
    return assign(
        copy,
        before.backend,
        before.chip,
        aliases=aliases,
        age=before.age,
        places_fast_memory=before.places_fast_memory,
    )


_NAMED = 4
_MOST_MAKERS = 64
ONCE = traits.GIVEN | traits.CONTROL_FLOW | ROLES.keys() | KINDS.keys()
"""Opcodes that are never recomputed: sources, control flow and communication."""


def _makers(before: Assignment, target: Instruction, memory_space: int) -> list[Instruction]:
    """Instructions that produce the operands of an instruction, back to values live across the peak, in schedule order.

    Empty where that is nothing, or more than is ever computed again.
    """
    if before.model is None:
        return []
    flow, peak = before.model.flow, before.peak(memory_space).time
    times = before.model.schedule.times
    found: set[Instruction] = set()
    pending = [target]
    while pending:
        for operand in pending.pop().operands:
            if operand in found or operand.opcode in ONCE:
                continue
            values = [value for value in flow.at[operand] if value is not None]
            if all(value.live_range is not None and value.live_range[1] > peak for value in values):
                continue
            if len(found) == _MOST_MAKERS:
                return []
            found.add(operand)
            pending.append(operand)
    return sorted(found, key=lambda one: times[one])


def _compute_again(
    copy: Module, name: str, makers: Sequence[str], before: Assignment, memory_space: int
) -> None:
    """Edits the copy of the module. Raises MemoryModelError, EditError."""
    target = copy.find(name)
    assert isinstance(target, Instruction)
    time_of = {place if isinstance(place, str) else place.name: t for t, place in enumerate(before.schedule)}
    peak = before.peak(memory_space).time
    if target.name not in time_of:
        raise MemoryModelError(f"{target.name} is not in the schedule")
    if target.opcode in ONCE:
        raise MemoryModelError(f"{target.name} is a {target.opcode}, which cannot be recomputed")
    if time_of[target.name] >= peak:
        raise MemoryModelError(
            f"{target.name} is written at {time_of[target.name]}, no earlier than the peak at {peak}"
        )
    # What only passes the value on before the peak is repeated with it.
    passing = [target]
    known = {target}
    for instruction in target.computation or ():
        is_passed = (
            instruction.opcode in ("bitcast", "get-tuple-element") and instruction.operands[0] in known
        )
        if is_passed and time_of.get(instruction.name, peak) <= peak:
            known.add(instruction)
            passing.append(instruction)
    late = [
        user
        for user in dict.fromkeys(user for each in passing for user in each.users)
        if user not in known and time_of.get(user.name, -1) > peak
    ]
    if not late:
        raise MemoryModelError(f"{target.name} has no use after the peak")
    first = min(late, key=lambda user: time_of[user.name])
    needed = [each for each in passing if each is target or any(user in late for user in each.users)]
    again: dict[Instruction, Instruction] = {}
    for maker in makers:
        made = copy.find(maker)
        assert isinstance(made, Instruction)
        new = again[made] = clone_instruction(made, before=first)
        if any(operand in again for operand in made.operands):
            new.change(operands=[again.get(o, o) for o in made.operands], typed=False)
    for each in passing:
        if each in needed or any(other in needed for other in each.users):
            new = clone_instruction(each, before=first)
            if any(operand in again for operand in each.operands):
                new.change(operands=[again.get(o, o) for o in each.operands], typed=False)
            again[each] = new
    for user in late:
        user.change(operands=[again.get(o, o) for o in user.operands], typed=False)


_ESTIMATE = "an estimate: schedule, fusions and layouts are assumed unchanged"


def _compared(
    what: str, memory_space: int, before: Assignment, after: Assignment, notes: Sequence[str]
) -> WhatIf:
    def needed(assignment: Assignment) -> int:
        return peaks.static_bytes(assignment, memory_space) + peaks.heap_bytes(assignment, memory_space)

    return WhatIf(
        what,
        memory_space,
        before.peak(memory_space).bytes,
        after.peak(memory_space).bytes,
        needed(before),
        needed(after),
        tuple(dict.fromkeys((*notes, _ESTIMATE))),
        after,
    )
