"""Loops that compute what another loop of the same computation does: value numbers through iterations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.numbering import Numbering, Numbers
from hlotext.lint.rounds import Purity, Rounds, parts_of, rounds_of
from hlotext.lint.rule import Context
from hlotext.lint.slots import taken_out

_PLAIN = traits.REPEATS_ELEMENTS | traits.CONVERSIONS | traits.NAMES_VALUE | ELEMENTWISE | {"iota"}
_MOST_PASSES = 12
_MOST_LOOPS = 64
"""Loops of a computation that are compared with one another."""


@attrs.frozen(eq=False)
class Twin:
    """A loop whose used results are also results of another loop."""

    loop: Instruction
    other: Instruction
    after: tuple[Instruction, ...]
    """Later operations that are repeated with its results."""


def twins(context: Context) -> Iterator[Twin]:
    """Yields the loops of a module that repeat others."""
    by_home: dict[Computation, list[Rounds]] = {}
    for loop, count in context.graph.loops():
        if loop.computation in context.graph.stepped and count is not None and count > 1:
            rounds = rounds_of(loop)
            if rounds is not None:
                by_home.setdefault(rounds.loop.computation, []).append(rounds)  # type: ignore[arg-type]
    purity = Purity()
    for home, every in by_home.items():
        alike = _alike(every, context)
        if alike:
            yield from _Home(context, purity, alike).twins(home)


def _alike(every: list[Rounds], context: Context) -> dict[Instruction, tuple[Rounds, int]]:
    """Loops that run as often as another in whose body an operation that takes time has the same form."""
    if not 1 < len(every) <= _MOST_LOOPS:
        return {}
    forms = {
        rounds.loop: {
            (context.prices.trips(rounds.loop), one.opcode, one.shape.dimensions)
            for step in rounds.body
            for one in parts_of(step)
            if one.opcode not in _PLAIN and one.shape is not None and one.shape.is_array
        }
        for rounds in every
    }
    return {
        rounds.loop: (rounds, context.prices.trips(rounds.loop))
        for rounds in every
        if any(forms[rounds.loop] & forms[other.loop] for other in every if other is not rounds)
    }


class _Home:
    """The loops of one computation that are compared."""

    def __init__(
        self, context: Context, purity: Purity, loops: Mapping[Instruction, tuple[Rounds, int]]
    ) -> None:
        self._numbers = Numbers(context.module, purity)
        self._loops = loops
        self._before: list[tuple[Rounds, int, dict[int, int]]] = []
        self._found: list[tuple[Instruction, Instruction]] = []

    def twins(self, home: Computation) -> Iterator[Twin]:
        """The loops that repeat others, with what is repeated after them."""
        whole = self._numbers.numbered(home, {}, parts_of_loop=self._parts)
        for loop, other in self._found:
            yield Twin(loop, other, tuple(self._after(loop, other, whole)))

    def _parts(self, loop: Instruction, numbers: Mapping[Instruction, int]) -> dict[int, int]:
        """The numbers of a loop's results."""
        if loop not in self._loops:
            return {}
        rounds, count = self._loops[loop]
        first: dict[int, int] = {}
        for slot in range(len(rounds.given)):
            value = rounds.before(slot)
            if value is None:
                return {}
            first[slot] = numbers[value]
        results = {
            slot: first[slot] if slot in rounds.passed else self._numbers.of((loop, slot))
            for slot in range(len(rounds.given))
        }
        for other, trips, initial in self._before:
            if trips != count:
                continue
            shared = self._shared(rounds, first, other, initial)
            if self._has_all(rounds, shared):
                self._found.append((loop, other.loop))
            elif self._has_all(other, shared.values()):
                self._found.append((other.loop, loop))
            else:
                continue
            results.update(
                {
                    slot: self._numbers.of((other.loop, same))
                    for slot, same in shared.items()
                    if slot not in rounds.passed
                }
            )
            break
        self._before.append((rounds, count, first))
        return results

    def _has_all(self, rounds: Rounds, shared: Collection[int]) -> bool:
        """True if these slots are all that is used of a loop's results, other than what it was given."""
        used = [
            slot
            for slot, elements in enumerate(taken_out(rounds))
            if slot not in rounds.passed and any(one.users or one.is_root for one in elements)
        ]
        return bool(used) and not rounds.loop.is_root and all(slot in shared for slot in used)

    def _shared(
        self, rounds: Rounds, first: Mapping[int, int], other: Rounds, initial: Mapping[int, int]
    ) -> dict[int, int]:
        """The slots of a loop that are equal to slots of another after every iteration, with these.

        Slots are taken to be equal if they are so initially, and told apart until what an iteration makes of them is equal.
        """
        mine, others = dict(first), dict(initial)
        for _ in range(_MOST_PASSES):
            after, after_others = self._after_iteration(rounds, mine), self._after_iteration(other, others)
            if len({*after.values(), *after_others.values()}) == len({*mine.values(), *others.values()}):
                break
            mine, others = after, after_others
        else:
            return {}
        same = {number: slot for slot, number in reversed(others.items())}
        return {slot: same[number] for slot, number in mine.items() if number in same}

    def _after_iteration(self, rounds: Rounds, classes: Mapping[int, int]) -> dict[int, int]:
        of, passed = self._numbers.of, rounds.passed
        # What no iteration changes is what it is outside of the loop, where part of the work on it may have been moved.
        state = {
            slot: number if slot in passed else of(("class", number)) for slot, number in classes.items()
        }
        results = self._numbers.numbered(rounds.body, state).results
        return {
            slot: number if slot in passed else of(("made", number, results[rounds.given[slot]]))
            for slot, number in classes.items()
        }

    def _after(self, loop: Instruction, other: Instruction, whole: Numbering) -> Iterator[Instruction]:
        """Operations on the results of a loop whose own result was computed from those of the other."""
        written: dict[int, Instruction] = {}
        depends: set[Instruction] = {loop, other}
        for one, number in whole.results.items():
            if one.opcode == "parameter" or not any(operand in depends for operand in one.operands):
                continue
            depends.add(one)
            if one.opcode not in traits.IS_FREE and written.setdefault(number, one) is not one:
                yield one
