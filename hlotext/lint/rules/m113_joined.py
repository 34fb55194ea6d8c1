"""Arrays that are written anew because something small is joined to them."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.grown import Growth, grown
from hlotext.lint.helpers import fusions_around, is_of_package, is_product_call, size_of, times
from hlotext.lint.moving import comes_from_argument
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import written_at
from hlotext.lint.values import VIEWS, Value, consumers, source

_MOSTLY = 0.9
"""Part of a concatenation that one operand is, so that the others only follow it."""
_SAME = frozenset({"bitcast", "copy", "convert", "reshape"})
_MOST_STEPS = 50


class Joined(Rule):
    code = "M113"
    name = "joined"
    title = "an array rewritten to append a small part"
    waste = "copied"
    needs_optimized = True
    yields_to = frozenset({"M111"})

    def applies_to(self, context: Context) -> bool:
        return super().applies_to(context) and len(context.module.entry) > 0

    def check_module(self, context: Context) -> Iterator[Report]:
        said: set[Instruction] = set()
        for one in grown(context):
            for report in _of_grown(one, context):
                said.update(step.array.instruction for steps in one.steps for step in steps)
                yield report
        for opcode in ("concatenate", "pad"):
            for instruction in context.census.by_opcode.get(opcode, ()):
                if instruction not in said:
                    yield from self._of_one(instruction, context)

    def _of_one(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        metadata = instruction.metadata
        # Padding for convolutions and the like is the compiler's; a concatenation that the program has says so.
        if (
            metadata is None or not metadata.op_name.endswith("concatenate") or is_of_package(instruction)
        ):  # it is not a concatenation in the program
            return
        fusions = fusions_around(instruction, context)
        operands = instruction.operands[:1] if instruction.opcode == "pad" else instruction.operands
        largest = max(operands, key=lambda one: size_of(one.shape), default=None)
        if largest is None or size_of(largest.shape) >= size_of(
            instruction.shape
        ):  # no operand makes up most of it
            return
        if size_of(largest.shape) < _MOSTLY * size_of(instruction.shape):
            return
        if not _is_kept(Value(instruction, fusions)):  # its result is not kept
            return
        made = source(Value(largest, fusions), _SAME)
        cut = made
        if made.instruction.opcode == "slice":  # its first elements are dropped
            made = source(made.operands()[0], _SAME)
        if made.fusions or not comes_from_argument(
            made.instruction, context
        ):  # its largest operand is not an argument
            return
        runs = context.runs((*fusions, instruction)[0])
        is_shifted = cut is not made
        wholes = {(*fusions, instruction)[0], *([cut.writer] if is_shifted else [])}
        yield Report(
            instruction,
            f"{byte_text(size_of(largest.shape))} is {'shifted and ' if is_shifted else ''}rewritten{times(runs)} to append "
            f"{byte_text(size_of(instruction.shape) - size_of(largest.shape))}",
            "write the new part over the oldest (lax.dynamic_update_slice at position % size), and donate the array"
            if is_shifted
            else "allocate the array at full size, write into it in place (lax.dynamic_update_slice), and donate it",
            2 * size_of(instruction.shape) * runs,
            seconds=context.prices.together(wholes),
            is_proved=len(largest.shape.dimensions) > 1 if largest.shape is not None else False,
        )


def _of_grown(found: Growth, context: Context) -> Iterator[Report]:
    """An array that grows step by step, of which each step writes all anew."""
    prices = context.prices
    first, last = found.steps[0][0].array.instruction, found.steps[-1][0].array.instruction
    full, total, rest = size_of(last.shape), 0, 0.0
    spent: dict[Instruction, float] = {}
    spares: dict[object, float] = {}
    for step in (one for steps in found.steps for one in steps if one.writers):
        size = size_of(step.array.instruction.shape)
        runs = prices.runs(step.writers[0].computation)
        total += size
        for writer in step.writers:
            whole = prices.seconds(writer)
            only_joins = step.is_in_turn or all(one.opcode in _ONLY_JOINS for one in parts_of(writer))
            spent[writer] = whole if only_joins else min(whole, prices.reading(size) * runs)
        # Products read the rest of a full-size array, too.
        products = sum(_is_product(user.instruction) for user, _ in consumers(step.array, _PASSED))
        rest += prices.reading((full - size) * products) * runs
        if step.is_in_turn and size < full:
            spares |= dict.fromkeys(written_at(step.array.instruction), 1.0)
    if len(spent) < 2 or total <= full:  # it is mostly fused into its users, not written
        return
    started = prices.chip.rates.launch
    launches = (
        started.value * len(spent) * prices.runs(next(iter(spent)).computation)
        if started is not None
        else 0.0
    )
    saved = sum(spent.values()) * (1 - full / total) - rest - launches
    if saved <= rest:  # matmuls would take about as long to read a full-size array
        return
    runs = context.runs(next(iter(spent)))
    yield Report(
        last,
        f"an array grows from {byte_text(size_of(first.shape))} to {byte_text(full)} in {len(found.steps):,} steps"
        f"{times(runs)}, each of which rewrites it in full",
        "allocate the array at full size, write each part in place (lax.dynamic_update_slice or x.at[:, i].set), and mask "
        "the part that is not filled yet, or slice it off where the array is read",
        total * runs,
        seconds=saved,
        spares=spares,
        covers=frozenset(spent),
    )


_PASSED = VIEWS | ELEMENTWISE | {"transpose"}
_ONLY_JOINS = traits.KEEPS_ELEMENTS | traits.SOURCES | traits.TUPLES | traits.SLICES | {"concatenate"}


def _is_product(user: Instruction) -> bool:
    return user.opcode in traits.CONTRACTIONS or is_product_call(user)


def _is_kept(joined: Value) -> bool:
    """True if a concatenated array goes to the caller or to the next iteration: an array that is only read is not
    appended to.
    """
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
