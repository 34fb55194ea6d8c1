"""Work on the state that an iteration ends with, done again when the next one begins."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import size_of
from hlotext.lint.numbering import Numbered, Numbers
from hlotext.lint.rounds import Purity, Rounds, parts_of, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import largest_elements
from hlotext.lint.wording import described, iterations

_CHEAP = traits.REPEATS_ELEMENTS | traits.CONVERSIONS | traits.NAMES_VALUE | {"iota"}
_PLAIN = _CHEAP | ELEMENTWISE


class ComputedAtBothEnds(Rule):
    code = "G122"
    name = "computed-at-both-ends"
    title = "a computation at the start of an iteration that repeats the end of the previous one"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        purity = Purity()
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            if count > 1 and _repeats(rounds):
                yield from _reports(rounds, count, purity, context)


def _repeats(rounds: Rounds) -> bool:
    """True if an iteration has two equal operations that take time, without which nothing is computed twice."""
    found = Counter(
        (one.opcode, one.shape.dimensions)
        for step in rounds.body
        for one in parts_of(step)
        if one.opcode not in _PLAIN and one.shape is not None and one.shape.is_array
    )
    return any(count > 1 for count in found.values())


def _reports(rounds: Rounds, count: int, purity: Purity, context: Context) -> Iterator[Report]:
    numbers = Numbers(context.module, purity)
    begins, ends = numbers.at_start(rounds), numbers.at_end(rounds)
    changing = {numbers.slot(slot) for slot in range(len(rounds.given)) if slot not in rounds.passed}
    state = _depending(changing, begins, numbers)
    twice = {
        number: first
        for number, first in begins.items()
        if number in state and number in ends and ends[number].instruction is not first.instruction
    }
    parts: dict[Instruction, set[Instruction]] = defaultdict(set)
    for first in twice.values():
        parts[first.writer].add(first.instruction)
    seconds = {one: context.prices.seconds(one) * _share(one, same) for one, same in parts.items()}
    seconds = {one: time for one, time in seconds.items() if time}
    if not seconds:
        return
    used = {operand for number in twice for operand in numbers.operands[number]}
    results = [first.instruction for number, first in twice.items() if number not in used]
    dearest = max(seconds, key=seconds.__getitem__)
    carried = max(results, key=lambda one: (one.opcode not in _CHEAP, size_of(one.shape)), default=dearest)
    is_known = rounds.loop not in context.prices.rounds
    others = len(seconds) - 1
    more = f", as {'was' if others == 1 else 'were'} {pluralize(others, 'more operation')}" if others else ""
    yield Report(
        dearest,
        f"{described(dearest)} is computed at the start of {iterations(count, is_known)}, although it was already computed "
        f"at the end of the previous one from the same state{more}",
        f"carry the result ({byte_text(size_of(carried.shape))}) in the loop state: compute it once before the loop, and "
        "then only at the end of each iteration",
        seconds=sum(seconds.values()) * (count - 1) / count,
    )


def _depending(leaves: set[int], found: Mapping[int, Numbered], numbers: Numbers) -> set[int]:
    """The numbers that are computed from these."""
    known = set(leaves)
    for number in found:  # operands come first
        if any(operand in known for operand in numbers.operands[number]):
            known.add(number)
    return known


def _share(writer: Instruction, same: set[Instruction]) -> float:
    """The part of an operation's work that some of its instructions are, by elements read."""
    inside = [one for one in parts_of(writer) if one.opcode not in _CHEAP]
    whole = sum(map(largest_elements, inside))
    return sum(largest_elements(one) for one in inside if one in same) / whole if whole else 0.0
