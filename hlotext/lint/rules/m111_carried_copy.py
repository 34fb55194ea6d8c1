"""Arrays of a loop's state that every round copies, or moves by a few places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hlotext.analysis import Backend, byte_text, memory_space, total_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of
from hlotext.lint.moving import moved_array
from hlotext.lint.rounds import Rounds, parts_of, stepped_rounds, unmoved
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import is_backward
from hlotext.lint.unrolling import (
    alternates,
    is_stacked,
    joins_parts,
    keeps_copies,
    longest_chain,
    written_beside,
)
from hlotext.lint.values import Value, changed_bytes, entered, result_elements
from hlotext.lint.wording import every_round

_LITTLE = 0.5
"""Part of the copied bytes that an iteration may write besides, for its copies to go when two are done in one."""
_NOTED = 0.05
"""Part of the step that the copies take, from which on they are noted where an iteration writes more."""
_COPYING = frozenset({"bitcast", "copy", "parameter", "reshape", "tuple", "get-tuple-element"})
_MOST_STEPS = 100
_MOSTLY = 0.5
"""Part of a result that must be moved state for it to be a shift."""
_SWAP = (
    "unroll the loop by two (unroll=2), so that the arrays swap without a copy; that makes the program larger, and may "
    "raise the peak"
)
_PAIR = 2
_LONGER = (
    "unroll the loop by {0} (unroll={0}), so that the arrays take each other's place without a copy; that makes the "
    "program larger, and may raise the peak"
)
_SHIFT = (
    "keep a write position with the array, and write the new elements in place (lax.dynamic_update_slice)"
)
_REORDER = (
    "leave the rows in place, and store which row each one continues (for beam search, a table of ancestors), to "
    "look rows up where they are read; or reorder only when the order changes (lax.cond)"
)
_OUTPUT = (
    "return what each iteration writes as an output of lax.scan, which stacks it, instead of carrying the array and "
    "writing to it with .at[i].set: then no iteration has a gradient of the whole array"
)
_BRANCH = (
    "move the array out of the branch, or nest the loops: a branch copies the arrays that it passes through"
)

_CAUSES = {_SWAP: "state", _OUTPUT: "gradients", _BRANCH: "branches"}
"""By remedy the name of a cause, of which there is one finding for each loop."""


class CarriedCopy(Rule):
    code = "M111"
    name = "carried-copy"
    title = "loop state that is copied or shifted in every iteration"
    waste = "copied"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            if count > 1:  # the loop runs once
                yield from _copies(rounds, count, context)
                yield from _shifts(rounds, count, context)
                yield from _reorders(rounds, count, context)


def _copies(rounds: Rounds, count: int, context: Context) -> Iterator[Report]:
    shifted = {slot for slot, _ in _shifting(rounds)}
    moved = {one for _, one in _shifting(rounds)}
    plain = [
        one
        for one in rounds.body
        if _is_copy(one, context)
        and _is_of_state(one, rounds)
        and unmoved(one) not in moved
        and rounds.slot_of(one) not in shifted
    ]
    branched = [one for branch in _branches(rounds.body) for one in branch if _is_copy(one, context)]
    carried = [one for one in plain if _is_gradient_of_updates(one, rounds)]
    is_known = rounds.loop not in context.prices.rounds  # a while_loop has no unroll
    beside = written_beside(plain, rounds) if context.backend is Backend.GPU else 0
    is_much = beside > _LITTLE * sum(size_of(one.shape) for one in plain)
    if is_much and (
        context.prices.together(plain) < _NOTED * context.prices.step or joins_parts(plain, rounds)
    ):
        plain = []  # what an iteration writes besides may cost as much when two are done in one
    if not is_known or not alternates(plain, rounds) or keeps_copies(plain, rounds, context):
        plain = []  # no order of the program avoids the copy of what is still read
    for copies, help_ in (
        (carried, _OUTPUT),
        ([one for one in plain if one not in carried], _SWAP),
        (branched, _BRANCH),
    ):
        seconds = context.prices.together(copies)
        if not seconds or not _moves_more_than_it_starts(copies, seconds, context):
            continue
        if help_ is _SWAP:
            # What lies between may be written and read once more.
            again = 0.0 if is_much else context.prices.reading(2 * beside) * context.prices.runs(rounds.body)
            # Of two iterations in one, one still copies what is stacked.
            seconds = max(0.0, seconds - again) / (2 if all(map(is_stacked, copies)) else 1)
        first = max(copies, key=lambda one: total_of(one.shape).allocated_bytes)
        size = sum(total_of(one.shape).allocated_bytes for one in copies)
        is_branch = help_ is _BRANCH
        # A branch may not be taken, and on TPU copies run beside the rest. What is updated in place is copied for want of an
        # order between reading and writing, which unrolling does not give.
        is_proved = (
            not is_branch
            and not is_much
            and context.backend is not Backend.TPU
            and (help_ is _OUTPUT or not all(_is_updated(one, rounds) for one in copies))
        )
        chain = longest_chain(rounds) if help_ is _SWAP else 0
        yield Report(
            first,
            f"{byte_text(size)} of loop state {'in a branch ' if is_branch else ''}is copied "
            f"{every_round(count, is_known)}",
            _LONGER.format(chain) if chain > _PAIR else help_,
            2 * size * context.runs(first),
            seconds=seconds,
            is_proved=is_proved,
            is_at_most=is_much and not is_branch,
            cause=f"{_CAUSES[help_]} of {rounds.loop.name}",
            covers=frozenset(copies),
            origin=_reader(copies, rounds),
        )


def _shifts(rounds: Rounds, count: int, context: Context) -> Iterator[Report]:
    for slot, moved in _shifting(rounds):
        copies = [
            one
            for one in rounds.body
            if (_is_copy(one, context) and (unmoved(one) is moved or rounds.slot_of(one) == slot))
            or _feeds(one, moved, context)
        ]
        seconds = _writing(moved, context) + context.prices.together(copies)
        if seconds:
            size = total_of(moved.shape).allocated_bytes
            yield Report(
                moved,
                f"an array of {byte_text(size)} is shifted by a few positions "
                f"{every_round(count, rounds.loop not in context.prices.rounds)}",
                _SHIFT,
                2 * size * context.runs(moved),
                seconds=seconds,
                # The CPU compiler copies what is read and written in place in one round, so that nothing may be gained.
                is_proved=context.backend is not Backend.CPU
                and _moves_more_than_it_starts([moved, *copies], seconds, context),
                covers=frozenset([moved, *copies]),
            )


def _writing(moved: Instruction, context: Context) -> float:
    """Seconds of writing shifted state: of an operation with other results, which stays, those of the bytes alone."""
    prices = context.prices
    if moved.opcode != "get-tuple-element":
        return prices.seconds(moved)
    if moved.shape is not None and memory_space(moved.shape):  # it stays in fast memory
        return 0.0
    return min(
        prices.writing(moved, moved.operands[0]),
        prices.reading(size_of(moved.shape)) * prices.runs(moved.computation),
    )


def _reorders(rounds: Rounds, count: int, context: Context) -> Iterator[Report]:
    """State of which every iteration gathers all rows anew, as the caches of a beam search.

    A row is looked up as fast where it is read, but whether it is read once is for the author to say.
    """
    gathers = {
        slot: gather
        for slot, value in enumerate(rounds.given)
        if slot not in rounds.passed and (gather := _gather_of(Value(value), slot, rounds)) is not None
    }
    if not gathers:
        return
    size = sum(total_of(rounds.given[slot].shape).allocated_bytes for slot in gathers)
    writers = set(gathers.values())
    first = max(writers, key=lambda one: (total_of(one.shape).allocated_bytes, one.name))
    yield Report(
        first,
        f"{byte_text(size)} of loop state is gathered into another row order "
        f"{every_round(count, rounds.loop not in context.prices.rounds)}",
        _REORDER,
        2 * size * context.runs(first),
        seconds=context.prices.together(writers),
        is_proved=False,
        cause=f"rows of {rounds.loop.name}",
        covers=frozenset(writers),
    )


def _gather_of(value: Value, slot: int, rounds: Rounds) -> Instruction | None:
    """The operation that gathers all rows of a slot, perhaps updated before, for the next iteration; None if none does."""
    found: Instruction | None = None
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        if not value.fusions and rounds.slot_of(one) == slot:
            return found
        if not one.operands:
            return None
        if one.opcode == "gather":
            if result_elements(one) != result_elements(one.operands[0]):
                return None
            found = value.writer
        elif one.opcode not in _SAME_ROWS:
            return None
        value = value.operands()[0]
    return None


_SAME_ROWS = traits.KEEPS_ELEMENTS | traits.UPDATES_ELEMENTS | {"transpose"}


def _moves_more_than_it_starts(copies: Sequence[Instruction], seconds: float, context: Context) -> bool:
    """True if moving the bytes takes longer than starting the copies."""
    launch = context.prices.chip.rates.launch
    runs = sum(context.prices.runs(one.computation) for one in copies)
    return seconds > 2 * runs * (launch.value if launch is not None else _LAUNCH)


_LAUNCH = 1e-7
"""Seconds in which a CPU starts an operation."""


def _is_updated(copy: Instruction, rounds: Rounds) -> bool:
    """True if a slot is copied only to be written to in place."""
    slot = rounds.slot_of(copy)
    if slot is None:
        return False
    value = entered(Value(unmoved(rounds.given[slot])))
    for _ in range(_MOST_STEPS):
        one = value.instruction
        if one.opcode in ("dynamic-update-slice", "scatter") or one.opcode in _COPYING - {"parameter"}:
            if not one.operands or (not value.fusions and rounds.slot_of(one) == slot):
                break
            value = entered(value.operands()[0])
        else:
            break
    return not value.fusions and rounds.slot_of(value.instruction) == slot


def _is_gradient_of_updates(copy: Instruction, rounds: Rounds) -> bool:
    """True if it copies the gradient of an array that each iteration writes a part of: it is read there, then set to zero."""
    slot = rounds.slot_of(copy)
    if slot is None or not _is_updated(copy, rounds):
        return False
    made = entered(Value(unmoved(rounds.given[slot]))).instruction
    return is_backward(made) and _LEAST_PARTS * changed_bytes(unmoved(rounds.given[slot])) <= size_of(
        copy.shape
    )


_LEAST_PARTS = 8


def _feeds(copy: Instruction, moved: Instruction, context: Context) -> bool:
    """True if a copy, or a part cut out, goes into a shift alone."""
    made = moved.operands[0] if moved.opcode == "get-tuple-element" else moved
    is_moved = _is_copy(copy, context) or copy.opcode == "slice"
    return is_moved and copy in made.operands and len(copy.users) == 1


def _is_copy(one: Instruction, context: Context) -> bool:
    """True if an instruction, or all that stands in a fusion, only copies, in the order that the elements have."""
    if one.opcode == "copy":
        return moved_array(one, context) is None and one.shape is not None and bool(one.shape.rank)
    if one.opcode != "fusion":
        return False
    opcodes = {part.opcode for part in parts_of(one)}
    return "copy" in opcodes and opcodes <= _COPYING and moved_array(one, context) is None


def _is_of_state(copy: Instruction, rounds: Rounds) -> bool:
    """True if a copy takes from a slot that changes, or gives to one."""
    for operand in copy.operands:
        slot = rounds.slot_of(operand)
        if slot is not None and slot not in rounds.passed:
            return True
    pending, seen = [copy], {copy}
    while pending and len(seen) < _MOST_STEPS:
        for user in pending.pop().users:
            if user is rounds.body.root:
                return True
            if user.opcode in _COPYING and user not in seen:
                seen.add(user)
                pending.append(user)
    return False


def _branches(body: Computation) -> Iterator[Computation]:
    """The branches that a round may take."""
    for one in body:
        if one.opcode == "conditional":
            yield from one.called_computations


def _reader(copies: Iterable[Instruction], rounds: Rounds) -> Instruction | None:
    """The producer of the state that causes the copy: of the loop's own operations the one that writes most."""
    kept = dict.fromkeys(map(unmoved, rounds.given))
    users = [user for copy in copies for user in copy.users if user.opcode not in _COPYING]
    made = [one for one in (*users, *kept) if one.opcode not in _COPYING and one.metadata is not None]
    return max(made, key=lambda one: (one in kept, total_of(one.shape).allocated_bytes), default=None)


def _shifting(rounds: Rounds) -> Iterator[tuple[int, Instruction]]:
    """Values that shift a slot's own elements: concatenations, pads and slices of it without arithmetic."""
    for slot, value in enumerate(rounds.given):
        if slot in rounds.passed:
            continue
        made = unmoved(value)
        if made.opcode == "get-tuple-element" and made.operands[0].opcode == "fusion":
            if _is_moved(Value(made), slot, rounds):
                yield slot, made
            continue
        if (
            made.computation is rounds.body
            and made.opcode in _JOINING
            and _is_moved(Value(made), slot, rounds)
        ):
            yield slot, made


def _overlaid(value: Value) -> tuple[list[Value], list[int]]:
    """Parts of a concatenation written as the maximum of padded parts, as the TPU compiler does, with the elements of each;
    empty for any other value."""
    if value.instruction.opcode not in _OVERLAID:
        return [], []
    pads = [entered(operand) for operand in value.operands()]
    if any(pad.instruction.opcode != "pad" for pad in pads):
        return [], []
    parts = [pad.operands()[0] for pad in pads]
    return parts, [
        part.instruction.shape.element_count or 0 if part.instruction.shape else 0 for part in parts
    ]


_OVERLAID = frozenset({"add", "maximum", "or"})
_PLACING = frozenset({"concatenate", "pad"}) | _OVERLAID
_JOINING = frozenset({"concatenate", "dynamic-update-slice", "fusion", "pad", "select"})
_MOVING = traits.KEEPS_ELEMENTS | {"dynamic-slice", "slice"}


def _is_moved(value: Value, slot: int, rounds: Rounds) -> bool:
    """True if most of a value is the old content of an element of the state, at other positions."""
    joined = moved = False
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        if not value.fusions and rounds.slot_of(one) == slot:
            return joined and moved
        if one.opcode in ("concatenate", "dynamic-update-slice", "pad", "select") or _overlaid(value)[0]:
            operands = value.operands()[1:] if one.opcode == "select" else value.operands()
            whole = one.shape.element_count if one.shape is not None and one.shape.is_array else 0
            sizes = [
                o.instruction.shape.element_count or 0 if o.instruction.shape is not None else 0
                for o in operands
            ]
            if one.opcode == "pad":
                operands, sizes = operands[:1], sizes[:1]
            if one.opcode == "dynamic-update-slice":
                operands, sizes = operands[:1], sizes[:1]
            if one.opcode in _OVERLAID:
                operands, sizes = _overlaid(value)
            largest = max(range(len(sizes)), key=sizes.__getitem__, default=None)
            if largest is None or not whole or sizes[largest] < _MOSTLY * whole:
                return False
            joined = joined or one.opcode in _PLACING
            moved = moved or one.opcode in _PLACING
            value = operands[largest]
        elif one.opcode in _MOVING and one.operands:
            value = value.operands()[0]
        else:
            return False
    return False
