"""Arguments that every call stacks, for a loop that unstacks them again."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.computed_ahead import sliced_by
from hlotext.lint.helpers import is_argument, size_of, times
from hlotext.lint.rounds import Rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import given_in
from hlotext.lint.values import VIEWS, Value, elements_of, fetched, source

_MOSTLY = 0.9
"""Part of a stack that arguments are."""
_MOST_STEPS = 1000
_MOVED = VIEWS | traits.REARRANGES_ELEMENTS | {"convert"}


@attrs.define(eq=False)
class _Stack:
    """Arguments that are stacked, and the operations that write the stack."""

    arguments: set[Instruction] = attrs.field(factory=set)
    writers: dict[Instruction, None] = attrs.field(factory=dict)


class StackedArguments(Rule):
    code = "M122"
    name = "stacked-arguments"
    title = "arguments stacked in every call, for a loop that unstacks them"
    waste = "copied"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            stacks = [
                stack
                for slot in sorted(rounds.passed)
                if count > 1 and (stack := _stacked(rounds, slot, count, context)) is not None
            ]
            if stacks:  # no loop takes stacked arguments apart
                yield _report(stacks, rounds, count, context)


def _report(stacks: list[_Stack], rounds: Rounds, count: int, context: Context) -> Report:
    writers = [one for stack in stacks for one in stack.writers]
    arguments = {one for stack in stacks for one in stack.arguments}
    size = sum(size_of(one.shape) for one in arguments)
    return Report(
        max(writers, key=lambda one: (context.prices.seconds(one), one.name)),
        f"{len(arguments):,} arguments, {byte_text(size)} together, are stacked{times(context.runs(writers[0]))} for a loop "
        f"of {count:,} iterations that takes them apart again",
        "keep them stacked from call to call (jnp.stack once, outside of jit), or replace the scan with a Python loop, so "
        "that each layer reads its own arguments",
        2 * size,
        seconds=context.prices.together(writers),
        spares=dict.fromkeys(writers, 1.0),
        covers=frozenset(writers),
        cause=f"stacks of {rounds.loop.name}",
    )


def _stacked(rounds: Rounds, slot: int, count: int, context: Context) -> _Stack | None:
    """The stack that a slot is, of which each iteration reads a slice; None for any other value."""
    first = given_in(rounds.loop, slot)
    if first is None or not sliced_by(rounds, slot, count):
        return None
    stack, made = _Stack(), source(Value(first), VIEWS)
    for _ in range(_MOST_STEPS):
        one, operands = made.instruction, made.operands()
        if one.opcode == "concatenate":
            parts, rest = operands, None
        elif one.opcode == "dynamic-update-slice":
            parts, rest = operands[1:2], operands[0]  # as the TPU compiler writes a concatenation
        else:
            break
        given = [_argument(part, context) for part in parts]
        stack.arguments.update(each for each in given if each is not None)
        stack.writers.setdefault(made.writer)
        if rest is None:
            break
        made = source(rest, VIEWS)
    stacked = sum(elements_of(one.shape) for one in stack.arguments)
    is_stack = len(stack.arguments) > 1 and stacked >= _MOSTLY * elements_of(first.shape)
    return stack if is_stack else None


def _argument(part: Value, context: Context) -> Instruction | None:
    """The argument that a part of a stack is, perhaps fetched into fast memory, or in another type; None for other values."""
    made = source(part, _MOVED)
    array = fetched(made.instruction) if not made.fusions else None
    one = array if array is not None else made.instruction
    return one if not made.fusions and is_argument(one, context) else None
