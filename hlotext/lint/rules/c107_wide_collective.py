"""C107: a collective that moves elements in a wider type than is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import is_worth_time
from hlotext.lint.helpers import MOVES, results
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, leaves_by, source, uses


@attrs.frozen
class WideCollective(Rule):
    code = "C107"
    name = "wide-collective"
    title = "a collective that moves elements in a wider type than is used"
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
            if one.kind not in _MOVERS or one.sent_bytes < self.min_bytes or one.participants == 1:
                continue
            if not is_worth_time(one.start, context, self.min_percent):
                continue
            for value in results(one):
                own = _bits(value)
                needed, where = _sent(one.start, own), "converted from"
                if needed is None:
                    needed, where = _used(value), "only used as"
                if needed is None:
                    continue
                if 0 < needed < own:
                    yield Report(
                        one.start,
                        f"{one.kind} sends {byte_text(one.sent_bytes)} in {own} bits an element, {where} {needed} bits",
                        "convert to the narrower type before communicating",
                        one.sent_bytes * (own - needed) // own * context.runs(one.start),
                    )
                    break


def _sent(start: Instruction, own: int) -> int | None:
    """Bits of the elements before they were widened in order to be sent; None where they were not."""
    if len(start.operands) != 1 or _bits(start.operands[0]) != own:
        return None
    made = source(Value(start.operands[0]), MOVES).instruction
    if made.opcode != "convert" or not made.operands or _bits(made) != own:
        return None
    return _bits(made.operands[0]) or None


def _used(value: Instruction) -> int | None:
    """Bits of the widest type that all uses convert the elements to; None where one of them takes them as they are."""
    if leaves_by(value, _VIEWS):
        return None
    bits = [_bits(user) if user.opcode == "convert" else 0 for user, _ in uses(value, _VIEWS)]
    return max(bits) if bits and min(bits) > 0 else None


_VIEWS = frozenset({"bitcast", "copy", "get-tuple-element", "reshape", "slice", "transpose"})
_MOVERS = frozenset({"all-gather", "all-to-all", "collective-broadcast", "collective-permute"})


def _bits(instruction: Instruction) -> int:
    shape = instruction.shape
    return shape.element_type.bits if shape is not None and shape.is_array else 0
