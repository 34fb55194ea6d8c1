"""Arrays that are written anew because something small is joined to them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.lint.helpers import fusions_around, is_of_package, size_of, times
from hlotext.lint.moving import comes_from_argument
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, source

_MOSTLY = 0.9
"""Part of a concatenation that one operand is, so that the others only follow it."""
_SAME = frozenset({"bitcast", "copy", "convert", "reshape"})
_MOST_STEPS = 50


@attrs.frozen
class Joined(Rule):
    code = "M113"
    name = "joined"
    title = "an array rewritten to append a small part"
    waste = "copied"
    needs_optimized = True
    yields_to = frozenset({"M111"})
    opcodes = frozenset({"concatenate", "pad"})

    def applies_to(self, context: Context) -> bool:
        return super().applies_to(context) and len(context.module.entry) > 0

    def check(self, instruction, context: Context) -> Iterator[Report]:  # type: ignore[no-untyped-def]
        metadata = instruction.metadata
        # Padding for convolutions and the like is the compiler's; a concatenation that the program has says so.
        if (
            metadata is None or not metadata.op_name.endswith("concatenate") or is_of_package(instruction)
        ):  # it is not a concatenation of the program
            return
        fusions = fusions_around(instruction, context)
        operands = instruction.operands[:1] if instruction.opcode == "pad" else instruction.operands
        largest = max(operands, key=lambda one: size_of(one.shape), default=None)
        if largest is None or size_of(largest.shape) >= size_of(
            instruction.shape
        ):  # no operand is most of it
            return
        if size_of(largest.shape) < _MOSTLY * size_of(instruction.shape):
            return
        if not _is_kept(Value(instruction, fusions)):  # its result is not kept
            return
        made = source(Value(largest, fusions), _SAME)
        if made.fusions or not comes_from_argument(
            made.instruction, context
        ):  # its largest operand is not an argument
            return
        runs = context.runs((*fusions, instruction)[0])
        yield Report(
            instruction,
            f"{byte_text(size_of(largest.shape))} is rewritten{times(runs)} to append "
            f"{byte_text(size_of(instruction.shape) - size_of(largest.shape))}",
            "hold an array of the full size, write into it in place (lax.dynamic_update_slice), and donate it",
            2 * size_of(instruction.shape) * runs,
            seconds=context.prices.seconds(instruction),
            is_proved=len(largest.shape.dimensions) > 1 if largest.shape is not None else False,
        )


def _is_kept(joined: Value) -> bool:
    """True if a joined array goes to the caller, or to the next iteration: what is only read is not appended to."""
    pending = [joined]
    for _ in range(_MOST_STEPS):
        if not pending:
            return False
        one = pending.pop()
        if one.instruction.is_root and not one.fusions:
            return True
        users = [user for user, _ in consumers(one, _SAME | VIEWS)]
        if any(user.instruction.opcode in ("tuple", "while") for user in users):
            return True
        pending += [
            user for user in users if user.instruction.opcode in ("dynamic-update-slice", "transpose")
        ]
    return False
