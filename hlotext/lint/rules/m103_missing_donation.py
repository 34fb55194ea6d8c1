"""M103: arguments that a step updates and does not donate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, ClassVar

from hlotext import memory
from hlotext.analysis import Backend, byte_text, memory_space
from hlotext.analysis.updates import Update, tree_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.held import MAIN, assignment_of
from hlotext.lint.helpers import changes_layout, donors, size_of
from hlotext.lint.products import products
from hlotext.lint.repairs import Donate
from hlotext.lint.rounds import rounds_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.taken_apart import updates_of
from hlotext.lint.values import VIEWS, source
from hlotext.lint.wording import listed
from hlotext.memory.subshapes import ShapeIndex

if TYPE_CHECKING:
    from hlotext.memory import Assignment
    from hlotext.memory.what_if import WhatIf


class MissingDonation(Rule):
    code = "M103"
    name = "missing-donation"
    title = "updated arguments that are not donated"
    waste = "held"
    needs_schedule = True

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes of all such arguments from which on they are worth a finding."""
    min_percent: ClassVar[float] = 1
    """Percent of the peak of memory that donating saves, likewise."""
    min_saved: ClassVar[int] = 2 << 20
    """Bytes that it saves, likewise."""
    min_saved_alone: ClassVar[int] = 16 << 20
    """The same of a loop's state that few others are updated with, which may be activations that go through layers; but for
    `alone_percent` of the peak `min_saved` is enough."""
    alone_percent: ClassVar[float] = 15
    """See `min_saved_alone`."""
    much_percent: ClassVar[float] = 25
    """Percent of the peak from which on that is enough where it is not known well, too."""
    count: ClassVar[int] = 3
    """Minimum number of arguments updated element by element, as parameters are, to rule out coincidence; a loop's
    initial value whose final value is a result needs no other."""
    min_share: ClassVar[float] = 25
    """Percent of the bytes of all arguments that they must be for that."""
    large_percent: ClassVar[float] = 5
    """Percent of the peak from which on `count` and `min_share` do not matter, nor what little else there is: two tables of
    an embedding are a model."""
    large_saved: ClassVar[int] = 64 << 20
    """Bytes that it saves, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        given = {id(parameter) for parameter, _ in donors(context)}
        found = [one for one in updates_of(context) if id(one.parameter) not in given and not one.is_sliced]
        caches = [one for one in found if one.is_in_place]
        steps = _given_back([one for one in found if not one.is_in_place], context)
        is_chance = len(steps) < self.count or 100 * sum(map(_size, steps)) < self.min_share * _given(context)
        is_alone = is_chance and not self._is_large(steps, context)
        report = self._report(caches, "are updated in part", "cache", False, context) if caches else None
        if report is not None:
            yield report
        moved = _moved(found, given, context)
        report = (
            self._report(moved, "are returned with most elements moved", "moved", False, context)
            if moved
            else None
        )
        if report is not None:
            yield report
        is_common = is_alone and steps and not any(one.is_carried for one in steps)
        if is_common:  # too few arguments are updated to rule out coincidence
            return
        if is_alone:
            steps = [one for one in steps if one.is_carried]
            steps = [] if steps and _goes_through_layers(context) else steps
        if (report := self._report(steps, "are updated", "state", is_alone, context)) is not None:
            yield report

    def _is_large(self, steps: list[Update], context: Context) -> bool:
        """True if donating these saves so much that it need not be many. One alone may be any function of an array."""
        if (
            len(steps) < _SEVERAL or sum(map(_size, steps)) < self.large_saved
        ):  # too few arguments are updated to rule out coincidence
            return False
        saved, assignment = _saved(steps, context), assignment_of(context)
        if saved is None or assignment is None or not _is_known(*saved):
            return False
        return saved[0] >= max(self.large_saved, self.large_percent / 100 * assignment.peak(MAIN).bytes)

    def _is_much(self, least: int, most: int, is_alone: bool, context: Context) -> bool:
        """Where it is not known well, what may be saved must be much."""
        peak = context.peak or 1
        floor = (
            self.min_saved_alone if is_alone and 100 * least < self.alone_percent * peak else self.min_saved
        )
        if least >= floor and 100 * least >= self.min_percent * peak:
            return True
        return most >= self.min_saved and 100 * most >= self.much_percent * peak

    def _report(
        self, found: list[Update], what: str, cause: str, is_alone: bool, context: Context
    ) -> Report | None:
        total = sum(map(_size, found))
        if (
            not found or total < self.min_bytes
        ):  # no large undonated argument is updated elementwise, in part, or as loop state (xs and ys: M112)
            return None
        saved = _saved(found, context)
        copies = [copy for one in found if (copy := _copy(one)) is not None]
        if saved is not None and saved[1] < self.min_saved:  # donating would save too few bytes
            return None
        if saved is not None and not self._is_much(
            *saved, is_alone, context
        ):  # the saving is too small a part of the peak
            return None
        largest = max(found, key=_size)
        many = f"{len(found):,} arguments, {byte_text(total)} in total, {what}"
        if len(found) == 1:
            many = f"an argument of {byte_text(total)} {what.replace('are', 'is')}"
        it, its = ("it", "its") if len(found) == 1 else ("them", "their")
        why = f"so {its} old and new values are live at the same time"
        if len(copies) == len(found):
            why += f", and every call copies {it} in full"
        is_known = saved is not None and _is_known(*saved)
        held = _likely(found, saved, context) if saved is not None and is_known else total
        if saved is not None and is_known:
            why += f"; donating {it} would lower peak memory by an estimated {_told(*saved, held)}"
        return Report(
            largest.parameter,
            f"{many} but not donated, {why}",
            _remedy(found),
            held,
            str(largest.array.without_layout()),
            is_held=True,
            seconds=context.prices.together(copies) if copies else None,
            peak_bytes=held,
            is_at_most=not is_known,
            covers=frozenset(copies),
            cause=cause,
            repair=Donate(_places(found)),
        )


_SEVERAL = 2
_CLOSE = 1.15
"""Maximum ratio of the bounds of a saving for which one number stands for both."""
_FEW = 0.1
"""Of the bytes of all arguments, that may be such as the compiler may have to copy; and of all memory, that may be gaps."""


def _remedy(found: list[Update]) -> str:
    """The donation, by the names of the function's parameters where the text has these."""
    trees = list(dict.fromkeys(tree_of(one.parameter) for one in found))
    is_named = all(one.parameter.metadata is not None and one.parameter.metadata.op_name for one in found)
    olds = "the old value" if len(found) == 1 else "the old values"
    if not is_named or not all(tree.isidentifier() and tree not in _UNNAMED for tree in trees):
        it = "it" if len(found) == 1 else "them"
        return f"donate {it} (jax.jit(..., donate_argnums=...)) if the caller does not need {olds} afterwards"
    names = listed([f"`{tree}`" for tree in trees])
    value = repr(trees[0]) if len(trees) == 1 else f"({', '.join(map(repr, trees))})"
    return f"donate {names} (jax.jit(..., donate_argnames={value})) if the caller does not need {olds} afterwards"


_UNNAMED = ("args", "kwargs")
"""Names in JAX of arguments without a parameter of their own."""


def _is_known(least: int, most: int) -> bool:
    """True if the saving from donation is known well enough to be stated."""
    return 0 < most <= 2 * least


def _told(least: int, most: int, likely: int) -> str:
    """The saving in words: one number, that of the finding, where its bounds are close."""
    return byte_text(likely) if most <= _CLOSE * least else f"{byte_text(least)} to {byte_text(most)}"


def _saved(found: list[Update], context: Context) -> tuple[int, int] | None:
    """By how much memory is less when they are donated, at least and at most; None if it cannot be told.

    On this schedule, of what lives at the peak and of what is assigned, fragments included. The CPU compiler inserts copies
    before it has a schedule: where something reads an argument that its new value does not need, it may hold a copy of it
    through the whole program. Where gaps between the buffers take a tenth of the memory, how they are packed anew decides.
    """
    before = assignment_of(context)
    if before is None:
        return None
    try:
        whole = _donated(found, before, context)
        saved = [whole.saved, whole.needed_before - whole.needed_after]
        gaps = whole.needed_before - whole.peak_before
        if gaps > _FEW * whole.needed_before:
            saved.append(min(saved) - gaps)
        if context.backend is Backend.CPU:
            unsure = sum(_size(one) for one in found if one.parameter.parameter_number in whole.unsure)
            if unsure > _FEW * sum(map(_size, found)):
                saved.append(min(saved) - unsure)
    except memory.MemoryModelError:
        return None
    return min(saved), max(saved)


def _likely(found: list[Update], bounds: tuple[int, int], context: Context) -> int:
    """The estimate of `hlotext memory --what-if` for CPUs, whose compiler copies before it schedules; else the middle."""
    least, most = bounds
    before = assignment_of(context)
    if context.backend is Backend.CPU and before is not None and least < most:
        return max(least, min(most, _donated(found, before, context, is_hopeful=False).saved))
    return (least + most) // 2


def _donated(found: list[Update], before: Assignment, context: Context, *, is_hopeful: bool = True) -> WhatIf:
    places = _places(found)
    return memory.what_if.donate(
        context.module,
        list(places),
        context.backend,
        memory_space=MAIN,
        before=before,
        results=places,
        is_hopeful=is_hopeful,
    )


def _places(found: list[Update]) -> dict[int, ShapeIndex]:
    """By the parameter's number the index of the result that takes its place."""
    return {
        one.parameter.parameter_number: one.index
        for one in found
        if one.parameter.parameter_number is not None
    }


def _goes_through_layers(context: Context) -> bool:
    """True if a loop multiplies by another slice of its arguments in each iteration: the weights of a layer.

    Then what it carries is no state that comes back in the next call, but goes to what follows.
    """
    bodies = {}
    for loop, _ in context.graph.loops():
        if (rounds := rounds_of(loop)) is not None:
            bodies[rounds.body] = rounds
    for product in products(context):
        home = product.whole.computation
        rounds = bodies.get(home) if home is not None else None
        if rounds is None:
            continue
        for operand in product.operands:
            cut = source(operand, VIEWS | {"convert", "transpose"})
            if cut.instruction.opcode != "dynamic-slice":
                continue
            whole = source(cut.operands()[0], VIEWS)
            if not whole.fusions and rounds.slot_of(whole.instruction) in rounds.passed:
                return True
    return False


def _moved(found: list[Update], given: Collection[int], context: Context) -> list[Update]:
    """Arguments of which results hold most elements in other places, and new ones besides: shifted and reordered caches.

    What moves elements cannot write over what it reads: there a donated argument would be copied first, and nothing saved.
    Nor is it where a loop hands the array on in slices.
    """
    known = {id(one.parameter) for one in found}
    return [
        one
        for one in updates_of(context, with_moved=True)
        if one.is_moved
        and id(one.parameter) not in known
        and id(one.parameter) not in given
        and not _is_read(one.parameter, _writer(context.module.entry.root, one.index))
    ]


def _writer(root: Instruction, index: ShapeIndex) -> Instruction:
    """The instruction that writes an element of the result."""
    one, path = root, index
    while True:
        number = one.attributes.get("index")
        if one.opcode == "tuple" and path:
            one, path = one.operands[path[0]], path[1:]
        elif one.opcode == "get-tuple-element" and isinstance(number, int):
            one, path = one.operands[0], (number, *path)
        elif one.opcode == "bitcast":
            one = one.operands[0]
        else:
            return one.async_chain[0] if one.opcode == "async-done" and one.async_chain else one


def _is_read(parameter: Instruction, writer: Instruction) -> bool:
    return writer.opcode in traits.CONTROL_FLOW or any(
        _writer(operand, ()) is parameter for operand in writer.operands
    )


def _copy(one: Update) -> Instruction | None:
    """The copy of the whole argument within main memory, over which its new value is written; None if there is none.

    A copy into a chip's fast memory stays, whether the argument is donated or not.
    """
    for user in one.parameter.users:
        if (
            user.opcode == "copy"
            and user.shape is not None
            and user.shape.is_array
            and memory_space(user.shape) == MAIN
            and not changes_layout(user)
        ):
            return user
    return None


def _given(context: Context) -> int:
    """Bytes of all arguments."""
    return sum(size_of(parameter.shape) for parameter in context.arguments)


def _size(one: Update) -> int:
    return size_of(one.array)


def _given_back(found: list[Update], context: Context) -> list[Update]:
    """Without those of which the rest of their tree is only read: an error beside each reward of a batch is no new reward.

    JAX names arguments by their place, as in `batch['reward']`.
    """
    leaves = Counter(map(tree_of, context.arguments))
    updated = Counter(tree_of(one.parameter) for one in found)
    return [one for one in found if 2 * updated[tree_of(one.parameter)] >= leaves[tree_of(one.parameter)]]
