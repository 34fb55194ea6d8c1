"""G131: loops that run one after another and read the same arrays, where one loop over a batch would read them once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import is_product_call, size_of
from hlotext.lint.rounds import Rounds, in_calls, parts_of, rounds_of, stepped_rounds, unmoved
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import stacks
from hlotext.lint.values import VIEWS, Value, changed_bytes, consumers
from hlotext.lint.wording import iterations

_BOUND = 0.5
"""Part of an operation's time that reading the shared arrays takes, from which on it is what bounds the operation."""
_DEEPEST = 4
"""Loops inside one another that are looked into."""
_PARTLY = traits.SLICES | traits.UPDATES_ELEMENTS | {"gather"}
"""Opcodes that read a part of an operand, another one in each iteration."""


@attrs.frozen(eq=False)
class _Read:
    """An operation of a loop's body that reads arrays from outside of the loop, or what is computed from these alone."""

    arrays: frozenset[Instruction]
    reader: Instruction
    bytes: int
    is_whole: bool = False
    """True if it reads nothing else: then it does the same in each loop."""


class LoopsSideBySide(Rule):
    code = "G131"
    name = "loops-side-by-side"
    title = "independent loops or iterations that each read the same arrays, which a batch would read once"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        by_form: dict[object, list[Rounds]] = defaultdict(list)
        for rounds in stepped_rounds(context):
            if context.prices.trips(rounds.loop) > 1:  # the loop runs once
                by_form[in_calls(rounds.loop).computation, _form(rounds)].append(rounds)
                yield from _of_iterations(rounds, context)
        for alike in by_form.values():
            if len(alike) > 1:  # no other loop has the same operations
                yield from _of_loops(_independent(alike), context)


def _form(rounds: Rounds) -> object:
    """Equal for loops that do the same operations on arrays of the same sizes."""
    return frozenset(
        Counter(
            (part.opcode, part.shape.dimensions if part.shape is not None and part.shape.is_array else ())
            for one in rounds.body
            for part in parts_of(one)
            if part.opcode not in _FORMLESS
        ).items()
    )


_FORMLESS = traits.NAMES_VALUE | traits.COPIES


def _independent(alike: list[Rounds]) -> list[Rounds]:
    """The loops of one computation that start from nothing that another one of them computes."""
    loops = {in_calls(rounds.loop): rounds for rounds in alike}
    home = next(iter(loops)).computation
    depends: set[Instruction] = set()
    found: list[Rounds] = []
    for one in home if home is not None else ():
        before = _passed_by(one, loops)
        is_after = before in depends if before is not None else any(o in depends for o in one.operands)
        if one in loops and not is_after:
            found.append(loops[one])
        if is_after or one in loops:
            depends.add(one)
    return found


def _passed_by(one: Instruction, loops: Mapping[Instruction, Rounds]) -> Instruction | None:
    """The value before a loop of an element of its result that no iteration changes."""
    if one.opcode != "get-tuple-element" or one.operands[0] not in loops:
        return None
    rounds, slot = loops[one.operands[0]], one.attributes.get("index")
    return rounds.before(slot) if slot in rounds.passed else None


def _array(value: Instruction, loops: Mapping[Instruction, Rounds]) -> Instruction:
    """The array that a value is, seen through copies and loops that do not change it."""
    value = unmoved(value)
    while (before := _passed_by(value, loops)) is not None:
        value = unmoved(before)
    return value


def _of_loops(loops: list[Rounds], context: Context) -> Iterator[Report]:
    if len(loops) < 2:  # they depend on each other
        return
    by_loop = {in_calls(rounds.loop): rounds for rounds in loops}
    reads = [_reads(rounds, by_loop) for rounds in loops]
    arrays = [frozenset[Instruction]().union(*(read.arrays for read in each)) for each in reads]
    shared = arrays[0].intersection(*arrays[1:])
    seconds = sorted((_taken(each, shared, context) for each in reads), key=lambda each: each.seconds)
    saved = sum(each.seconds for each in seconds[:-1])
    if not saved:  # they read no large array in common
        return
    loop, count = loops[0].loop, context.prices.trips(loops[0].loop)
    is_known = loop not in context.prices.rounds
    lasting = f" of {count:,} iterations" if is_known and count > 1 else ""
    yield Report(
        loop,
        f"{len(loops)} independent loops{lasting} run one after another, and each iteration reads the same "
        f"{byte_text(seconds[-1].bytes)}",
        "run them as one loop over a batch (jax.vmap over what differs, or a matrix with a column for each): each "
        "iteration then reads the arrays once for all loops",
        seconds=saved,
        is_at_most=not is_known,
    )


def _of_iterations(rounds: Rounds, context: Context) -> Iterator[Report]:
    """Iterations that do not depend on each other, as those of `lax.map`, and read the same arrays."""
    count = context.prices.trips(rounds.loop)
    stacked = dict(stacks(rounds, 1))
    if not stacked or any(
        slot not in rounds.passed and slot not in stacked and not _is_counter(given)
        for slot, given in enumerate(rounds.given)
    ):  # its iterations depend on each other
        return
    # What is the same in each iteration can be moved out of the loop, which G116 says.
    reads = [each for each in _reads(rounds, {}) if not each.is_whole]
    read = _taken(reads, frozenset[Instruction]().union(*(each.arrays for each in reads)), context)
    written = sum(changed_bytes(one) for one in _steps(rounds.body))
    if count * written > read.bytes:  # a batch would take much more memory
        return
    saved = read.seconds * (count - 1) / count
    if saved:
        is_known = rounds.loop not in context.prices.rounds
        yield Report(
            rounds.loop,
            f"{iterations(count, is_known)} of a loop reads the same {byte_text(read.bytes)}, although the "
            "iterations are independent",
            "run them as a batch (jax.vmap, or lax.map with batch_size): the array is then read once for all iterations",
            seconds=saved,
            is_at_most=not is_known,
        )


def _is_counter(given: Instruction) -> bool:
    return given.shape is not None and given.shape.is_array and not given.shape.rank


def _steps(body: Computation) -> Iterator[Instruction]:
    """The operations of a body and of the loops in it, each once."""
    for one in body:
        loop = _loop(one)
        inner = loop.attributes.get("body") if loop is not None else None
        if isinstance(inner, Computation):
            yield from _steps(inner)
        elif one.opcode not in traits.IS_FREE:
            yield one


@attrs.frozen
class _Taken:
    """Seconds of reading shared arrays in all iterations of a loop, and the bytes of these arrays."""

    seconds: float
    bytes: int


def _taken(reads: list[_Read], shared: frozenset[Instruction], context: Context) -> _Taken:
    sizes: dict[Instruction, int] = defaultdict(int)
    arrays: dict[Instruction, set[Instruction]] = defaultdict(set)
    whole = set[Instruction]()
    for read in reads:
        if read.arrays <= shared:
            sizes[read.reader] += read.bytes
            arrays[read.reader] |= read.arrays
            if read.is_whole:
                whole.add(read.reader)
    seconds, kept = 0.0, set[Instruction]()
    for reader, size in sizes.items():
        own = context.prices.seconds(reader)
        reading = context.prices.reading(size) * context.prices.runs(reader.computation)
        if own and (reader in whole or (reading >= _BOUND * own and _is_product(reader))):
            seconds += own if reader in whole else min(own, reading)
            kept |= arrays[reader]
    return _Taken(seconds, sum(size_of(array.shape) for array in kept))


def _is_product(reader: Instruction) -> bool:
    """True if an operation computes a product, in elements too: with vectors in place of one it reads the matrix once."""
    return any(
        part.opcode in traits.CONTRACTIONS
        or is_product_call(part)
        or (part.metadata is not None and part.metadata.op_name.endswith(_WRITTEN))
        for part in parts_of(reader)
    )


_WRITTEN = "/dot_general"
"""A product of the program that the compiler writes out in elements."""


def _reads(rounds: Rounds, loops: Mapping[Instruction, Rounds], depth: int = 0) -> list[_Read]:
    """The reads of arrays that no iteration changes, which are told by their value before the loop, and of what is computed
    from these alone."""
    origin: dict[Instruction, frozenset[Instruction]] = {}
    for slot in rounds.passed:
        before = rounds.before(slot)
        if before is not None and before.shape is not None and before.shape.is_array and before.shape.rank:
            origin.update(dict.fromkeys(rounds.elements[slot], frozenset({_array(before, loops)})))
    found: list[_Read] = []
    for one in rounds.body:
        if one in origin or not one.operands:
            continue
        given = [operand for operand in one.operands if operand in origin]
        arrays = frozenset[Instruction]().union(*(origin[operand] for operand in given))
        loop = _loop(one)
        if loop is not None:
            within = rounds_of(loop) if depth < _DEEPEST else None
            inner = _reads(within, {}, depth + 1) if within is not None else []
            found += [attrs.evolve(read, arrays=outer) for read in inner if (outer := _outside(read, origin))]
        elif given and one.opcode not in _PASSED_ON:
            is_whole = all(operand in origin or operand.opcode == "constant" for operand in one.operands)
            if is_whole and one.opcode not in _PARTLY:
                origin[one] = arrays
            if one.opcode in traits.IS_FREE:
                continue
            sizes = [size_of(operand.shape) for operand in given if not _is_read_partly(one, operand)]
            if sizes:
                found.append(_Read(arrays, one, sum(sizes), is_whole))
    return found


_PASSED_ON = traits.TUPLES | traits.CONTROL_FLOW


def _loop(one: Instruction) -> Instruction | None:
    """The loop that an instruction is, or that it calls, as the CPU compiler has it for small ones."""
    if one.opcode == "call":
        root = one.called_computations[0].root
        return root if root.opcode == "while" and in_calls(root) is one else None
    return one if one.opcode == "while" else None


def _outside(read: _Read, origin: Mapping[Instruction, frozenset[Instruction]]) -> frozenset[Instruction]:
    """The arrays of a read of an inner loop as the outer loop got them; empty if it changes one."""
    if not all(array in origin for array in read.arrays):
        return frozenset()
    return frozenset[Instruction]().union(*(origin[array] for array in read.arrays))


def _is_read_partly(reader: Instruction, operand: Instruction) -> bool:
    """True if an operation slices an operand or takes rows of it, perhaps others in each iteration."""
    if reader.opcode != "fusion":
        return reader.opcode in _PARTLY
    numbers = {n for n, other in enumerate(reader.operands) if other is operand}
    inside = [
        p for body in reader.called_computations for p in body.parameters if p.parameter_number in numbers
    ]
    return any(
        user.instruction.opcode in _PARTLY
        for p in inside
        for user, _ in consumers(Value(p, (reader,)), VIEWS)
        if user.fusions
    )
