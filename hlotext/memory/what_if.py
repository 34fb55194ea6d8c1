"""Estimated peak if a parameter were donated or a value recomputed.

The module's schedule, fusions and layouts stay as they are; the compiler may choose others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from hlotext.analysis import Backend, byte_text, choose_chip
from hlotext.analysis.chips import Chip
from hlotext.analysis.communication import KINDS
from hlotext.analysis.meant import names_meant
from hlotext.edit.cloning import clone_instruction
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.memory import peaks
from hlotext.memory.assignment import Assignment, assign
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.value_sets import shape_of
from hlotext.memory.values import Value


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
    """Bytes by which the peak may fall further, if the compiler moves what it copies donated results from to fast memory."""

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
    is_hopeful: bool = False,
) -> WhatIf:
    """Estimates the peak if these parameters of the entry were donated.

    Each array of a parameter is aliased to the result given in `results`, else to the first unaliased result of the same
    shape, as in JAX. If a reader of the parameter depends on the result, the compiler copies the parameter and nothing is
    gained, but the result is used up nevertheless. If neither depends on the other, the compiler must schedule the reader
    first; the CPU compiler, which inserts copies before scheduling, copies in that case (`RemoveUnnecessaryCopies` with a
    `DependencyHloOrdering`), so such a parameter counts only if `is_hopeful`, and is listed in `unsure`. Short-lived copies
    of results that are not written elementwise over their own parameter are not modeled.

    In the outcome, `what` names the parameters whose buffers are reused, and the notes explain the others. Raises
    MemoryModelError if there is no such parameter, and the same errors as `assign`.
    """
    if isinstance(parameters, int | str):
        raise TypeError(f"parameters is a list of numbers, such as [0], not {parameters!r}")
    before = before or assign(module, platform, chip)
    assert before.model is not None
    flow = before.model.flow
    aliases, notes, unsure, copied = _donated(before, flow, parameters, results or {}, is_hopeful)
    needless = _needless_copies(before, flow, aliases)
    after = assign(
        _without(module, needless),
        before.backend,
        before.chip,
        aliases=aliases,
        age=before.age,
        places_fast_memory=before.places_fast_memory,
    )
    taken = {number for number, _ in aliases.values()}.intersection(parameters)
    said = [number for number in parameters if number in taken] or parameters
    without = [number for number in parameters if number not in said]
    what = f"donate {_listed(said)}{_names(module, said)}" + (
        f" (not {_listed(without)}: no result can take them)" if without else ""
    )
    movable = _movable(before, copied) if memory_space == 0 else 0
    if movable:
        notes.append(
            f"up to {byte_text(movable)} less if the compiler keeps the values that it copies to donated results in "
            "fast memory, which has room for them"
        )
    found = _compared(what, memory_space, before, after, notes)
    return attrs.evolve(found, unsure=tuple(unsure), more_at_most=movable)


def _movable(before: Assignment, copied: Collection[tuple[int, ShapeIndex]]) -> int:
    """Bytes of results that donation makes temporaries, as they are copied to the donated arrays, if fast memory takes all.

    Results have to be in main memory; temporaries need not be.
    """
    chip = before.chip
    if chip is None and before.backend is Backend.TPU and before.module is not None:
        choice = choose_chip(before.module, None)
        chip = choice.chip if choice is not None else None
    if chip is None or chip.fast_memory_bytes is None or chip.fast_memory_space is None:
        return 0
    size = sum(
        one.bytes
        for one in before.allocations
        if one.is_parameter and (one.parameter_number, one.parameter_index) in copied
    )
    return size if size <= chip.fast_memory_bytes - before.peak(chip.fast_memory_space).bytes else 0


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


def _listed(numbers: Sequence[int]) -> str:
    """Numbers in their order; three or more that follow each other are a range, `5-12`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    short = (f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)
    return ", ".join(short)


def _sentences(reasons: Iterable[tuple[int, str]]) -> list[str]:
    """One note for each reason, about all parameters that it keeps from sharing memory with a result."""
    numbers: dict[str, dict[int, None]] = {}
    for number, reason in reasons:
        numbers.setdefault(reason, {})[number] = None
    return [
        f"parameter{'s' if len(of) > 1 else ''} {_listed(list(of))}: {reason}"
        for reason, of in numbers.items()
    ]


def _donated(
    before: Assignment,
    flow: Dataflow,
    parameters: Sequence[int],
    chosen: Mapping[int, ShapeIndex],
    is_hopeful: bool,
) -> tuple[Mapping[ShapeIndex, tuple[int, ShapeIndex]], list[str], list[int], set[tuple[int, ShapeIndex]]]:
    assert before.model is not None
    entry = flow.module.entry
    by_number = {p.parameter_number: p for p in entry.parameters}
    root = entry.root
    results = dict(zip(flow.parts.of(shape_of(root)).indices, flow.at[root], strict=True))
    leaves = dict(shape_of(root).leaves())
    aliases = dict(flow.aliases)
    order = _Order(before, [value for n in parameters if n in by_number for value in flow.at[by_number[n]]])
    reasons: list[tuple[int, str]] = []
    copied: set[ShapeIndex] = set()
    unsure: list[int] = []
    kept: set[tuple[int, ShapeIndex]] = set()
    for number in dict.fromkeys(parameters):
        parameter = by_number.get(number)
        if parameter is None:
            raise MemoryModelError(f"no parameter {number}: the entry has {len(by_number)}")
        for index, shape in shape_of(parameter).leaves():
            if (number, index) in aliases.values():
                reasons.append((number, "already donated"))
                continue
            held = flow.value_at(parameter, index)
            fits = [
                output
                for output, value in results.items()
                if output not in aliases
                and output not in copied
                and value is not None
                and value is not held
                and _is_written_as(value.shape, leaves.get(output), shape)
            ]
            fits = [chosen[number]] if chosen.get(number) in fits else fits[:1]
            free = [output for output in fits if held is not None and order.may_follow(held, results[output])]
            is_unsure = bool(free) and held is not None and not order.must_follow(held, results[free[0]])
            if is_unsure and before.backend is Backend.CPU and not is_hopeful:
                reasons.append(
                    (number, "may still be read after the new value is written, so XLA would insert a copy")
                )
                copied.update(fits)
            elif free:
                aliases[free[0]] = number, index
                if is_unsure:
                    unsure.append(number)
            elif fits:
                reasons.append(
                    (
                        number,
                        "still needed when the result of the same shape is written, so XLA would insert a copy",
                    )
                )
                copied.update(fits)
                kept.add((number, index))
            else:
                reasons.append((number, _why_none(results, aliases, root, shape, held)))
    return aliases, _sentences(reasons), unsure, kept


def _is_written_as(written: Shape | None, result: Shape | None, shape: Shape) -> bool:
    """True if a result of this shape is written so, or as an array of its size that it is a bitcast of."""
    if written == shape:
        return True
    return (
        result == shape
        and written is not None
        and written.is_array
        and written.element_type is shape.element_type
        and written.element_count == shape.element_count
    )


def _why_none(
    results: Mapping[ShapeIndex, Value | None],
    aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]],
    root: Instruction,
    shape: Shape,
    held: Value | None,
) -> str:
    """The reason that no result can take the memory of an array of this shape."""
    alike = [index for index, leaf in shape_of(root).leaves() if leaf == shape]
    if not alike:
        return f"no result has shape {shape}"
    free = [index for index in alike if index not in aliases]
    if not free:
        return f"every result of shape {shape} already uses the buffer of another parameter"
    if all(results.get(index) is held for index in free):
        return "returned unchanged"
    return (
        f"the result of shape {shape} is a bitcast of an array of another element type, for which buffer sharing is "
        "not estimated"
    )


def _buffers(before: Assignment) -> Mapping[Value, Sequence[Value]]:
    """The buffer of each value that shares one."""
    return {value: buffer for buffer in before.buffers or () for value in buffer}


def _needless_copies(
    before: Assignment, flow: Dataflow, aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]]
) -> list[str]:
    """Copies of donated parameters that are there only because they are not donated, though the result lies elsewhere.

    The copy alone reads the parameter, what is written over the copy lies in one buffer with it, as a loop's state, and the
    result is written by the last reader of that, which may write over what it reads: all of it lies in the parameter then.
    Where the result lies in that buffer itself, the parameter takes the place of the buffer anyway.
    """
    assert before.model is not None
    buffers = _buffers(before)
    by_number = {p.parameter_number: p for p in flow.module.entry.parameters}
    found = []
    for output, (number, index) in aliases.items():
        result = flow.value_at(flow.module.entry.root, output)
        users = by_number[number].users if not index and flow.aliases.get(output) is None else ()
        if len(users) != 1 or users[0].opcode != "copy" or result is None or result.live_range is None:
            continue
        held, copied = flow.value_at(by_number[number], ()), flow.value_at(users[0], ())
        writer = result.instruction
        if held is None or copied is None or held.shape != copied.shape or writer is None:
            continue
        buffer = buffers.get(copied, (copied,))
        ends = [value.live_range[1] for value in buffer if value.live_range is not None]
        if len(buffer) < 2 or result in buffer or not ends or max(ends) > result.live_range[0]:
            continue
        if any(
            flow.value_at(operand, ()) in buffer
            and before.model.sharing.may_share(operand, (), writer, result.index)
            for operand in writer.operands
            if operand.shape is not None and operand.shape.is_array
        ):
            found.append(users[0].name)
    return found


def _without(module: Module, copies: Sequence[str]) -> Module:
    """The module without these copies; itself where there are none."""
    if not copies:
        return module
    changed = module.clone()
    try:
        for name in copies:
            copy = changed.find(name)
            assert isinstance(copy, Instruction)
            source = copy.operands[0]
            for user in list(copy.users):
                user.change(operands=[source if o is copy else o for o in user.operands], typed=False)
            changed.entry.remove(copy)
    except EditError:
        # Something waits for a copy: it stays, and less is saved than might be.
        return module
    return changed


class _Order:
    """Dependences between the entry's instructions, limited to readers of some values and writers of results."""

    def __init__(self, before: Assignment, held: Sequence[Value | None]) -> None:
        assert before.model is not None
        self._flow = before.model.flow
        self._times = before.model.schedule.times
        self._instructions = before.model.schedule.instructions
        self._buffers = _buffers(before)
        self._bits: dict[Instruction, int] = {}
        for value in held:
            for reader in self._readers(value) if value is not None else ():
                self._bits.setdefault(reader, 1 << len(self._bits))
        self._needs: dict[Instruction, int] = {}
        self._needed: dict[Instruction, int] = dict(self._bits)
        entry = self._flow.module.entry
        for instruction in entry:
            mask = self._bits.get(instruction, 0)
            for earlier in (*instruction.operands, *instruction.control_predecessors):
                mask |= self._needs.get(earlier, 0)
            self._needs[instruction] = mask
        for instruction in reversed(entry.instructions):
            mask = self._needed.get(instruction, 0)
            for earlier in (*instruction.operands, *instruction.control_predecessors) if mask else ():
                self._needed[earlier] = self._needed.get(earlier, 0) | mask

    def may_follow(self, held: Value, result: Value | None) -> bool:
        """True if no reader of a parameter needs the result that is to be written over it."""
        writers = self._writers(held, result)
        return bool(writers) and not any(
            self._needed.get(writer, 0) & self._mask(held, writer) for writer in writers
        )

    def must_follow(self, held: Value, result: Value | None) -> bool:
        """True if the result depends on every other reader of the parameter, so that any schedule runs it after them."""
        for writer in self._writers(held, result):
            others = self._mask(held, writer)
            if self._needs.get(writer, 0) & others != others:
                return False
        return True

    def _mask(self, held: Value, writer: Instruction) -> int:
        mask = 0
        for reader in self._readers(held):
            if reader is not writer:
                mask |= self._bits.get(reader, 0)
        return mask

    def _readers(self, held: Value) -> Iterator[Instruction]:
        """The instructions of the entry that read a value, or run what does; without views, which read nothing."""
        for user in held.flat_uses()[::3]:
            if isinstance(user, Instruction) and user in self._times:
                outer = self._in_entry(user)
                if outer is not None:
                    yield outer

    def _writers(self, held: Value, result: Value | None) -> list[Instruction]:
        """Instructions of the entry that first write the memory of a result.

        A copy of the parameter is there because that is not donated: the compiler takes it out, and what uses it writes.
        """
        if result is None:
            return []
        buffer = self._buffers.get(result, (result,))
        starts = [value.live_range[0] for value in buffer if value.live_range is not None]
        first = self._in_entry(self._instructions[min(starts)]) if starts else None
        if first is None:
            return []
        if first.opcode == "copy" and first.operands[0] is held.instruction:
            return [user for user in first.users if user.opcode not in ("tuple", "bitcast")] or [first]
        return [first]

    def _in_entry(self, instruction: Instruction) -> Instruction | None:
        entry = self._flow.module.entry
        for _ in range(_DEEPEST):
            if instruction.computation is entry:
                return instruction
            callers = instruction.computation.callers if instruction.computation is not None else ()
            if not callers:
                return None
            instruction = callers[0]
        return None


_DEEPEST = 50
"""Loops and calls inside one another that are followed."""


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
    donated = donate(module, parameters, memory_space=memory_space, before=before) if parameters else None
    after, notes = (donated.assignment, list(donated.notes)) if donated is not None else (before, [])
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
        *([donated.what] if donated is not None else []),
        *([f"recompute {', '.join(again)}"] if again else []),
    ]
    found = _compared(f"together: {' and '.join(what)}", memory_space, before, after, notes)
    return attrs.evolve(found, unsure=donated.unsure if donated is not None else ())


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
        (*dict.fromkeys(notes), "an estimate: schedule, fusions and layouts are assumed unchanged"),
        after,
    )
