"""C107: a collective that moves elements in a wider type than needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import is_worth_time
from hlotext.lint.helpers import MOVES, results, size_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, leaves_by, source, uses


class WideCollective(Rule):
    code = "C107"
    name = "wide-collective"
    title = "a collective that moves elements in a wider type than needed"
    waste = "wide"
    # The CPU compiler computes with 16-bit elements in 32 bits, so that there nothing tells what the program asks for.
    backends = frozenset({Backend.GPU, Backend.TPU})
    needs_optimized = True

    min_bytes: ClassVar[int] = 1 << 16
    """Bytes that each device sends, from which on it is worth a finding."""
    min_percent: ClassVar[float] = 0.5
    """Percent of the estimated time of the module for which it is waited for, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if (
                one.kind not in _MOVERS or one.sent_bytes < self.min_bytes or one.participants == 1
            ):  # it moves no arrays, or only small ones
                continue
            if not is_worth_time(one.start, context, self.min_percent):
                continue
            values = list(results(one))
            wide = [
                (value, *found)
                for value in values
                if (found := _needed(value, one.start, len(values))) is not None
            ]
            total = sum(size_of(value.shape) for value in values)
            if not wide or not total:  # it sends no upcast values
                continue
            spared = sum(size_of(value.shape) * (own - needed) / own for value, own, needed, _ in wide)
            part = sum(size_of(value.shape) for value, *_ in wide) / total
            _, own, needed, where = max(wide, key=lambda each: size_of(each[0].shape))
            yield Report(
                one.start,
                f"{one.kind} sends {byte_text(round(one.sent_bytes * part))} as {own}-bit elements that were {where} "
                f"{needed}-bit elements",
                "convert to the narrower type before communicating",
                round(one.sent_bytes * spared / total) * context.runs(one.start),
                seconds=context.prices.spared(one.start, spared / total),
            )


def _needed(value: Instruction, start: Instruction, count: int) -> tuple[int, int, str] | None:
    """Bits of the elements that are sent, bits that do, and why; None if they are as wide as they must be."""
    own = _bits(value)
    needed, where = (_sent(start, own) if count == 1 else None), "converted from"
    if needed is None:
        needed, where = _used(value), "only used as"
    return (own, needed, where) if needed is not None and 0 < needed < own else None


def _sent(start: Instruction, own: int) -> int | None:
    """Bits of the elements before they were widened in order to be sent; None if they were not."""
    if len(start.operands) != 1 or _bits(start.operands[0]) != own:
        return None
    made = source(Value(start.operands[0]), MOVES).instruction
    if made.opcode != "convert" or not made.operands or _bits(made) != own:
        return None
    return _bits(made.operands[0]) or None


def _used(value: Instruction) -> int | None:
    """Bits of the widest type that all uses convert the elements to; None if one of them takes them as they are."""
    if leaves_by(value, _VIEWS):
        return None
    bits = [_bits(user) if user.opcode == "convert" else 0 for user, _ in uses(value, _VIEWS)]
    return max(bits) if bits and min(bits) > 0 else None


_VIEWS = frozenset({"bitcast", "copy", "get-tuple-element", "reshape", "slice", "transpose"})
_MOVERS = frozenset({"all-gather", "all-to-all", "collective-broadcast", "collective-permute"})


def _bits(instruction: Instruction) -> int:
    shape = instruction.shape
    return shape.element_type.bits if shape is not None and shape.is_array else 0
