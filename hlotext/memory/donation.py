"""Donation of parameters: which results take their memory, and what the compiler copies all the same."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from hlotext.analysis import Backend, choose_chip
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.memory import peaks
from hlotext.memory.assignment import Assignment
from hlotext.memory.dataflow import Dataflow
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.value_sets import shape_of
from hlotext.memory.values import Value


@attrs.frozen
class Donation:
    """Effects of donating some parameters."""

    aliases: Mapping[ShapeIndex, tuple[int, ShapeIndex]]
    notes: Sequence[str]
    unsure: Sequence[int]
    copied: Collection[tuple[int, ShapeIndex]]
    """Arrays that are copied anyway, since they are read after the result is written."""
    detours: Sequence[tuple[int, int, int]]
    """Results that cannot be written over their parameters: bytes that are written elsewhere first, and from when to when
    these live."""
    unsure_copies: bool
    """True if arrays were taken for copied that may not be."""


def donated(
    before: Assignment,
    flow: Dataflow,
    parameters: Sequence[int],
    chosen: Mapping[int, ShapeIndex],
    is_hopeful: bool,
) -> Donation:
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
    detours: list[tuple[int, int, int]] = []
    has_unsure_copies = False
    pending: list[tuple[int, ShapeIndex, Shape, Value | None]] = []
    for number in dict.fromkeys(parameters):
        parameter = by_number.get(number)
        if parameter is None:
            raise MemoryModelError(f"no parameter {number}: the entry has {len(by_number)}")
        for index, shape in shape_of(parameter).leaves():
            if (number, index) in aliases.values():
                reasons.append((number, "already donated"))
            else:
                pending.append((number, index, shape, flow.value_at(parameter, index)))
    # JAX pairs arrays of one shape first, then those that are as large.
    for fit in (_is_alike, _is_as_large):
        left = []
        for number, index, shape, held in pending:
            fits = [
                output
                for output, value in results.items()
                if output not in aliases
                and output not in copied
                and value is not None
                and value is not held
                and fit(value, leaves.get(output), shape, held)
            ]
            fits = [chosen[number]] if chosen.get(number) in fits else fits[:1]
            free = [output for output in fits if held is not None and order.may_follow(held, results[output])]
            is_unsure = bool(free) and held is not None and not order.must_follow(held, results[free[0]])
            if is_unsure and before.backend is Backend.CPU and not is_hopeful:
                reasons.append((number, _MAY_COPY))
                copied.update(fits)
                has_unsure_copies = True
            elif free:
                aliases[free[0]] = number, index
                if held is not None:
                    order.follow(held, results[free[0]])
                detours += order.detours(held, results[free[0]])
                if is_unsure:
                    unsure.append(number)
            elif fits:
                reasons.append((number, _COPIES))
                copied.update(fits)
                kept.add((number, index))
            else:
                left.append((number, index, shape, held))
        pending = left
    reasons += [
        (number, _why_none(results, aliases, root, shape, held)) for number, _, shape, held in pending
    ]
    return Donation(aliases, _sentences(reasons), unsure, kept, detours, has_unsure_copies)


_MAY_COPY = "may still be read after the new value is written, so XLA may insert a copy"
_COPIES = "still needed when the result is written in that place, so XLA would insert a copy"


def _is_alike(value: Value, result: Shape | None, shape: Shape, held: Value | None) -> bool:
    """True if a result of this shape is written so, or as an array of its size that it is a bitcast of."""
    written = value.shape
    if written == shape:
        return True
    return (
        result == shape
        and written is not None
        and written.is_array
        and written.element_type is shape.element_type
        and written.element_count == shape.element_count
    )


def _is_as_large(value: Value, result: Shape | None, shape: Shape, held: Value | None) -> bool:
    """True if JAX donates an argument to a result of another shape, and XLA pairs the two by their bytes."""
    return (
        held is not None
        and result is not None
        and result.is_array
        and shape.is_array
        and result.element_count == shape.element_count
        and value.bytes == held.bytes
        and value.memory_space == held.memory_space
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
        return f"no result has shape {shape}, or as many elements and bytes"
    free = [index for index in alike if index not in aliases]
    if not free:
        return f"every result of shape {shape} already uses the buffer of another parameter"
    if all(results.get(index) is held for index in free):
        return "returned unchanged"
    return f"what writes the result of shape {shape} is not known to fit its buffer"


def _buffers(before: Assignment) -> Mapping[Value, Sequence[Value]]:
    """The buffer of each value that shares one."""
    return {value: buffer for buffer in before.buffers or () for value in buffer}


def needless_copies(
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


def without_copies(module: Module, copies: Sequence[str]) -> Module:
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
        self._before = before
        self._flow = before.model.flow
        self._times = before.model.schedule.times
        self._instructions = before.model.schedule.instructions
        self._buffers = _buffers(before)
        self._bits: dict[Instruction, int] = {}
        for value in held:
            for reader in self._readers(value) if value is not None else ():
                self._bits.setdefault(reader, 1 << len(self._bits))
        self._later: dict[int, list[Instruction]] = {}
        """By the bit of a reader the writers that run after it although they do not need it."""
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
        """True if no reader of a parameter needs the result that is to be written over it.

        Directly, or by the order of results that were told to follow: two arguments that are exchanged cannot both be
        written over.
        """
        writers = self._writers(held, result)
        return bool(writers) and not any(
            self._behind(writer) & self._mask(held, writer) for writer in writers
        )

    def follow(self, held: Value, result: Value | None) -> None:
        """Takes note that the result is written after all readers of the parameter."""
        for writer in self._writers(held, result):
            for reader in _bits_of(self._mask(held, writer) & ~self._needs.get(writer, 0)):
                self._later.setdefault(reader, []).append(writer)

    def _behind(self, writer: Instruction) -> int:
        """The readers that run after an instruction, since they need it or what was told to follow them does."""
        found = new = self._needed.get(writer, 0)
        while new:
            more = 0
            for reader in _bits_of(new):
                for later in self._later.get(reader, ()):
                    more |= self._needed.get(later, 0)
            new = more & ~found
            found |= new
        return found

    def must_follow(self, held: Value, result: Value | None) -> bool:
        """True if the result depends on every other reader of the parameter, so that any schedule runs it after them."""
        for writer in self._writers(held, result):
            others = self._mask(held, writer)
            if self._needs.get(writer, 0) & others != others:
                return False
        return True

    def detours(self, held: Value | None, result: Value | None) -> Iterator[tuple[int, int, int]]:
        """The result, if its writer reads the parameter where it cannot write over it, such as what shifts its rows.

        It is written elsewhere, read there, and copied: its bytes, and the times of the first and the last of these.
        """
        assert self._before.model is not None
        if held is None or result is None:
            return
        buffer = self._buffers.get(result, (result,))
        for writer in self._writers(held, result):
            made = [value for value in buffer if value.instruction is writer]
            if writer.opcode in traits.CONTROL_FLOW or not made:
                continue
            read = [
                operand
                for operand in writer.operands
                if operand.shape is not None
                and operand.shape.is_array
                and self._flow.value_at(operand, ()) is held
            ]
            if any(not self._before.model.sharing.may_share(one, (), writer, made[0].index) for one in read):
                root = self._flow.module.entry.root
                times = [self._times[one] for one in self._readers(made[0]) if one is not root]
                written = self._times[writer]
                yield made[0].bytes or 0, written, max(times, default=written)

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


def _bits_of(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest
        mask ^= lowest


_DEEPEST = 50
"""Loops and calls inside one another that are followed."""


def written_elsewhere(
    after: Assignment, detours: Sequence[tuple[int, int, int]], *, until_end: bool = False
) -> int:
    """Bytes by which the peak is higher as these results are first written to memory of their own.

    They are copied once they were read; `until_end` if all are copied at the end, as schedules for GPU have it.
    """
    alive = peaks.timeline(after, 0)
    added = [0] * (len(alive) + 1)
    for size, start, end in detours:
        added[start] += size
        added[len(alive) if until_end else end + 1] -= size
    most = max(map(operator.add, alive, itertools.accumulate(added)), default=0)
    return max(0, most - after.peak(0).bytes)


def movable(before: Assignment, copied: Collection[tuple[int, ShapeIndex]]) -> int:
    """The most bytes of results that fast memory can take, where donation makes temporaries of them that are copied to the
    donated arrays.

    Results have to be in main memory; temporaries need not be.
    """
    chip = before.chip
    if chip is None and before.backend is Backend.TPU and before.module is not None:
        choice = choose_chip(before.module, None)
        chip = choice.chip if choice is not None else None
    if chip is None or chip.fast_memory_bytes is None or chip.fast_memory_space is None:
        return 0
    room = chip.fast_memory_bytes - before.peak(chip.fast_memory_space).bytes
    fitting = [
        one.bytes
        for one in before.allocations
        if one.is_parameter and (one.parameter_number, one.parameter_index) in copied and one.bytes <= room
    ]
    return min(sum(fitting), max(room, 0))


def listed_numbers(numbers: Sequence[int]) -> str:
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
        f"parameter{'s' if len(of) > 1 else ''} {listed_numbers(list(of))}: {reason}"
        for reason, of in numbers.items()
    ]
