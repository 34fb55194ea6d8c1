"""Work on the state that an iteration ends with, done again when the next one begins."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping

from hlotext import cost
from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.accepted import AcceptedState, accepted, is_by_row
from hlotext.lint.helpers import size_of
from hlotext.lint.numbering import Numbered, Numbering, Numbers
from hlotext.lint.rounds import Purity, Rounds, parts_of, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, entered, largest_elements
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
    begins = numbers.at_start(rounds)
    changing = {numbers.slot(slot) for slot in range(len(rounds.given)) if slot not in rounds.passed}
    state = _depending(changing, numbers)
    ends = {
        slot: entered(Value(value)) for slot, value in enumerate(rounds.given) if slot not in rounds.passed
    }
    both = _same(begins, numbers.at_end(rounds, ends), state)
    yield from _report(
        both,
        begins,
        numbers,
        rounds,
        count,
        context,
        "at the end of the previous one from the same state",
        "",
    )
    for choice in accepted(rounds, begins):
        slots = _depending({numbers.slot(slot) for slot in choice.proposed}, numbers)
        again = _same(begins, numbers.at_end(rounds, choice.proposed), slots)
        again = {number: first for number, first in again.items() if number not in both}
        if choice.rows and again:
            again = _by_row(again, choice, slots, begins, numbers, rounds)
        yield from _report(
            again,
            begins,
            numbers,
            rounds,
            count,
            context,
            "in the previous one, for the state that was proposed or for the one that it kept",
            ", and select it by the predicate that selects the state",
        )


def _same(begins: Numbering, ends: Numbering, state: Collection[int]) -> dict[int, Numbered]:
    """The values computed of the state that an iteration begins with and, by other instructions, of the other state."""
    return {
        number: first
        for number, first in begins.computed.items()
        if number in state
        and number in ends.computed
        and ends.computed[number].instruction is not first.instruction
    }


def _by_row(
    again: Mapping[int, Numbered],
    choice: AcceptedState,
    slots: Collection[int],
    begins: Numbering,
    numbers: Numbers,
    rounds: Rounds,
) -> dict[int, Numbered]:
    """Of values that are computed twice those whose rows depend on the same rows of a state of which rows are accepted."""
    depends = frozenset(value for value, number in begins.numbers.items() if number in slots)
    depends |= {Value(one) for slot in choice.proposed for one in rounds.elements[slot]}
    found: dict[int, Numbered] = {}
    for number in _unused(again, numbers):
        result = again[number].value
        shape = result.instruction.shape
        dimensions = range(shape.rank) if shape is not None and shape.is_array else ()
        if any(is_by_row(result, d, choice, rounds, depends) for d in dimensions):
            pending, seen = [number], {number}
            while pending:
                current = pending.pop()
                if current in again:
                    found[current] = again[current]
                new = [one for one in numbers.operands[current] if one in slots and one not in seen]
                seen.update(new)
                pending += new
    return found


def _unused(twice: Mapping[int, Numbered], numbers: Numbers) -> list[int]:
    """The numbers of which no other is computed."""
    used = {operand for number in twice for operand in numbers.operands[number]}
    return [number for number in twice if number not in used]


def _report(
    twice: Mapping[int, Numbered],
    begins: Numbering,
    numbers: Numbers,
    rounds: Rounds,
    count: int,
    context: Context,
    where: str,
    more_help: str,
) -> Iterator[Report]:
    parts: dict[Instruction, set[Instruction]] = defaultdict(set)
    for value, number in begins.numbers.items():  # fusions may compute the same
        if number in twice:
            parts[value.writer].add(value.instruction)
    seconds = {one: _spared(one, same, context) for one, same in parts.items()}
    seconds = {one: time for one, time in seconds.items() if time}
    if not seconds:
        return
    results = [twice[number].instruction for number in _unused(twice, numbers)]
    dearest = max(seconds, key=lambda one: (one.opcode not in _CHEAP, seconds[one]))
    carried = max(results, key=lambda one: (one.opcode not in _CHEAP, size_of(one.shape)), default=dearest)
    is_known = rounds.loop not in context.prices.rounds
    others = len(seconds) - 1
    more = f", as {'was' if others == 1 else 'were'} {pluralize(others, 'more operation')}" if others else ""
    yield Report(
        dearest,
        f"{described(dearest)} is computed at the start of {iterations(count, is_known)}, although it was already computed "
        f"{where}{more}",
        f"carry the result ({byte_text(size_of(carried.shape))}) in the loop state{more_help}: compute it once before the "
        "loop, and then only at the end of each iteration",
        seconds=sum(seconds.values()) * (count - 1) / count,
    )


def _depending(leaves: set[int], numbers: Numbers) -> set[int]:
    """The numbers that are computed from these, among those known so far."""
    known = set(leaves)
    for number, operands in numbers.operands.items():  # operands come first
        if not known.isdisjoint(operands):
            known.add(number)
    return known


def _spared(writer: Instruction, same: set[Instruction], context: Context) -> float:
    """Seconds less of an operation if some of its instructions are not computed: of a fusion, it still takes as long as the
    rest of its arithmetic, and as what the rest reads and writes."""
    if all(largest_elements(one) <= 1 for one in same):  # a place that is found twice saves no time
        return 0.0
    prices = context.prices
    seconds = prices.seconds(writer)
    inside = [one for one in parts_of(writer) if one.opcode not in traits.NAMES_VALUE]
    rest = [one for one in inside if one not in same]
    least = prices.own_least.get(writer)
    if least is None or not any(one.opcode not in _CHEAP for one in rest):
        return seconds
    seconds -= least.launch * prices.runs(writer.computation)
    work = math.fsum(map(_work, inside))
    compute = (least.compute or 0.0) * (math.fsum(map(_work, rest)) / work if work else 0.0)
    memory = (least.memory or 0.0) * _moved_part(writer, same)
    whole = max(least.compute or 0.0, least.memory or 0.0)
    return seconds * max(0.0, 1 - max(compute, memory) / whole) if whole else 0.0


def _work(one: Instruction) -> float:
    """Operations of an instruction: of a matmul its multiplications and additions, of others the elements it reads."""
    if one.opcode in _CHEAP:
        return 0.0
    return cost.product_flops(one) if one.opcode in traits.CONTRACTIONS else largest_elements(one)


def _moved_part(writer: Instruction, same: set[Instruction]) -> float:
    """The part of a fusion's bytes that instructions read or write that are not among these."""
    if writer.opcode != "fusion" or not writer.called_computations:
        return 0.0
    body = writer.called_computations[0]
    root = body.root
    moved = [(p, p.users) for p in body.parameters]
    moved += [(one, (one,)) for one in (root.operands if root.opcode == "tuple" else (root,))]
    sizes = [(size_of(array.shape), any(one not in same for one in ones)) for array, ones in moved]
    total = sum(size for size, _ in sizes)
    return sum(size for size, is_left in sizes if is_left) / total if total else 0.0
