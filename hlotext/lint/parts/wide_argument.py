"""Arguments that are updated in place in f32, although all values written to them were narrower."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.entries import aliases_of
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of
from hlotext.lint.parts.wide_state import was_narrow
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers

_MOST_STEPS = 200
_LEAST_BYTES = 1 << 20


class WideArgument(Rule):
    needs_optimized = True
    # The CPU compiler computes with 16-bit elements in 32 bits.
    backends = frozenset({Backend.GPU, Backend.TPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        found: dict[Instruction, tuple[Instruction, set[Instruction]]] = {}
        kept = {one.parameter_number for one in aliases_of(context.module)}
        for parameter in context.arguments:
            shape = parameter.shape
            is_wide = shape is not None and shape.is_array and shape.element_type.name == "f32"
            if not is_wide or parameter.parameter_number not in kept or size_of(shape) < _LEAST_BYTES:
                continue
            if (uses := _narrow_uses(parameter)) is not None:
                found[parameter] = uses
        if not found:  # no f32 argument is updated with data of a narrower type
            return
        prices, seconds = context.prices, 0.0
        for parameter, (_, readers) in found.items():
            half = prices.reading(size_of(parameter.shape) / 2)
            seconds += sum(min(prices.seconds(one), half * context.runs(one)) for one in readers)
        first = max(found, key=lambda one: (size_of(one.shape), one.name))
        size = sum(size_of(one.shape) for one in found)
        yield Report(
            found[first][0],
            f"{pluralize(len(found), 'argument')} of {byte_text(size)} together {'is' if len(found) == 1 else 'are'} kept in "
            "f32, although all values written to them were narrower",
            "keep them in that type (jnp.zeros(shape, jnp.bfloat16)): results do not change if the initial values "
            "are exact in that type, as zeros are",
            seconds=seconds,
            spares=dict.fromkeys(found, 0.5),
            cause="arguments",
        )


def _narrow_uses(parameter: Instruction) -> tuple[Instruction, set[Instruction]] | None:
    """The operation that writes narrow data to an argument, and those that read it; None if anything writes wide data."""
    pending, seen = [Value(parameter)], {Value(parameter)}
    writer: Instruction | None = None
    readers: set[Instruction] = set()
    while pending:
        for user, number in consumers(pending.pop(), VIEWS):
            one = user.instruction
            if one.opcode in traits.UPDATES_ELEMENTS and number == 0:
                if not _writes_narrow(user):
                    return None
                writer = writer or user.writer
                if user not in seen:
                    seen.add(user)
                    pending.append(user)
            elif one.opcode in traits.CONTROL_FLOW or (one.opcode == "tuple" and not one.is_root):
                return None  # what a loop writes is not followed
            elif one.opcode != "tuple":
                readers.add(user.writer)
        if len(seen) > _MOST_STEPS:
            return None
    readers -= {one.writer for one in seen}
    return (writer, readers) if writer is not None and readers else None


def _writes_narrow(update: Value) -> bool:
    operands = update.operands()
    return was_narrow(operands[-1] if update.instruction.opcode == "scatter" else operands[1])
