"""Work of a loop's body that gives the same in every round."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, byte_text, total_of
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import connected, is_librarys
from hlotext.lint.moving import moved_array
from hlotext.lint.repairs import Hoist
from hlotext.lint.rounds import Purity, Rounds, communicates, parts_of, rounds_of, same_in_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.wording import described, every_round, sizes

_FILLED = frozenset(
    {"bitcast", "broadcast", "constant", "convert", "copy", "iota", "parameter", "reshape", "tuple"}
)
"""Opcodes of what only fills an array: memory that a round writes over must be filled anew."""
_MUCH = 0.02
"""Share of the peak from which on holding the result is a price that the author may not want to pay."""


@attrs.frozen
class LoopInvariantWork(Rule):
    code = "G116"
    name = "loop-invariant-work"
    title = "loop-invariant work in the body of a loop"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        purity = Purity()
        for loop, _ in context.graph.loops():
            rounds = rounds_of(loop)
            if rounds is None or rounds.body not in context.graph.stepped or is_librarys(loop):
                continue
            count = context.prices.trips(loop)
            if count > 1:
                yield from _reports(rounds, count, purity, context)


def _reports(rounds: Rounds, count: int, purity: Purity, context: Context) -> Iterator[Report]:
    same = same_in_rounds(rounds, purity)
    seconds: dict[Instruction, float] = {}
    for one in rounds.body:
        if one in same.whole and _is_work(one, context):
            seconds[one] = context.prices.seconds(one)
        elif one in same.parts:
            seconds[one] = context.prices.seconds(one) * _fraction(one, same.parts[one])
    seconds = {one: time for one, time in seconds.items() if time}
    for group in connected(seconds):
        first = max((one for one in seconds if one in group), key=seconds.__getitem__)
        saved = sum(seconds[one] for one in group) * (count - 1) / count
        held = sum(total_of(one.shape).allocated_bytes for one in group if _leaves(one, group))
        others = (
            f", with {len(group) - 1} more operations that it is made of or goes into"
            if len(group) > 1
            else ""
        )
        half = "a part of " if first in same.parts else ""
        widens = _only_widens(group)
        yield Report(
            first,
            f"{half}{described(first)} is computed again {every_round(count, rounds.loop not in context.prices.rounds)}"
            f"{others}",
            _padded(group)
            or f"compute it before the loop and use the result; it holds {byte_text(held)} meanwhile",
            seconds=saved,
            covers=frozenset(group),
            repair=Hoist(rounds.loop, frozenset(group)) if same.whole.issuperset(group) else None,
            is_proved=False if widens and context.peak and held > _MUCH * context.peak else None,
        )


def _padded(group: set[Instruction]) -> str:
    """The remedy where all that is done is a pad that no operation of the program asks for; empty for other work."""
    for one in group:
        pads = [part for part in parts_of(one) if part.opcode == "pad"]
        named = any(part.metadata is not None and part.metadata.op_name for part in (one, *pads))
        if not pads or named or not {part.opcode for part in parts_of(one)} <= _FILLED | {"pad"}:
            return ""
    first = next(part for one in group for part in parts_of(one) if part.opcode == "pad")
    return (
        f"the compiler pads {sizes(first.operands[0].shape)} to {sizes(first.shape)} for its kernel: "
        "give the program's array such sizes, or pad it before the loop"
    )


def _is_work(one: Instruction, context: Context) -> bool:
    """True if hoisting it spares anything: not so what moves an array into fast memory, or fills what is written over."""
    if one.opcode in ("while", "conditional"):
        return True
    if one.opcode in ROLES or communicates(one):
        return False
    if one.opcode in ("copy", "transpose"):
        return moved_array(one, context) is not None
    opcodes = {part.opcode for part in parts_of(one)}
    if not opcodes <= _FILLED:
        # A fusion of slices alone, on TPU, fetches them.
        return context.backend is not Backend.TPU or not opcodes <= _FILLED | {"dynamic-slice", "slice"}
    return moved_array(one, context) is not None or bool(one.operands and _widens(one))


def _widens(one: Instruction) -> bool:
    """True if an array is only converted to another type."""
    return any(part.opcode == "convert" for part in parts_of(one)) and all(
        operand.shape is not None and one.shape is not None and operand.shape.is_array and one.shape.is_array
        and operand.shape.element_count == one.shape.element_count
        for operand in one.operands
    )  # fmt: skip


def _only_widens(group: set[Instruction]) -> bool:
    return all({part.opcode for part in parts_of(one)} <= _FILLED and _widens(one) for one in group)


def _fraction(one: Instruction, ranges: tuple[tuple[int, int, int], ...]) -> float:
    """The part of a result that its ranges are."""
    shape = one.shape
    if shape is None or not shape.is_array:
        return 0.0
    dimension = ranges[0][0]
    size = shape.dimensions[dimension]
    return sum(last - first for d, first, last in ranges if d == dimension) / size if size else 0.0


def _leaves(one: Instruction, group: set[Instruction]) -> bool:
    """True if something outside of the set uses it."""
    return any(user not in group for user in one.users)
