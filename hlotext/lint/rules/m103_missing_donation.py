"""M103: arguments that a step updates and does not donate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.held import MAIN, assignment_of
from hlotext.lint.helpers import donors, size_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.updates import Update, updates
from hlotext.memory import MemoryModelError
from hlotext.memory.what_if import donate


@attrs.frozen
class MissingDonation(Rule):
    code = "M103"
    name = "missing-donation"
    title = "arguments that a step updates and does not donate"
    needs_schedule = True

    min_bytes: int = 1 << 20
    """Bytes of all such arguments from which on they are worth a finding."""
    min_percent: float = 1
    """Percent of the peak of memory that donating saves, likewise."""
    count: int = 3
    """How many arguments must be updated as parameters are, element by element, so that it is no coincidence."""

    def check_module(self, context: Context) -> Iterator[Report]:
        given = {id(parameter) for parameter, _ in donors(context)}
        found = [one for one in updates(context) if id(one.parameter) not in given]
        caches = [one for one in found if one.is_in_place]
        steps = _given_back([one for one in found if not one.is_in_place], context)
        if len(steps) < self.count or sum(map(_size, steps)) < self._least(context):
            steps = []
        if (report := self._report(caches, "are updated in part", "cache", context)) is not None:
            yield report
        if (report := self._report(steps, "are updated", "state", context)) is not None:
            yield report

    def _least(self, context: Context) -> int:
        """Half of what the arguments take: parameters and optimizer state are most of what a training step is given."""
        return sum(size_of(parameter.shape) for parameter in context.module.entry.parameters) // 2

    def _is_much(self, saved: int, context: Context) -> bool:
        assignment = assignment_of(context)
        peak = assignment.peak(MAIN).bytes if assignment is not None else 0
        return saved >= self.min_bytes and 100 * saved >= self.min_percent * peak

    def _report(self, found: list[Update], what: str, cause: str, context: Context) -> Report | None:
        total = sum(map(_size, found))
        if not found or total < self.min_bytes:
            return None
        saved = _saved(found, context)
        if saved is not None and not self._is_much(saved, context):
            return None
        largest = max(found, key=_size)
        many = f"{len(found):,} arguments of {byte_text(total)} {what}"
        if len(found) == 1:
            many = f"an argument of {byte_text(total)} {what.replace('are', 'is')}"
        why = "so that both copies are held" + (
            ", and every call copies all of it" if cause == "cache" else ""
        )
        if saved is not None:
            why += f": donating {'it' if len(found) == 1 else 'them'} lowers the peak by {byte_text(saved)} (estimated)"
        return Report(
            largest.parameter,
            f"{many} without being donated, {why}",
            "donate them (jax.jit(..., donate_argnums=...)) if the caller does not need the old ones afterwards",
            total if saved is None else saved,
            str(largest.array.without_layout()),
            is_held=True,
            cause=cause,
        )


def _saved(found: list[Update], context: Context) -> int | None:
    """By how much the peak is lower when they are donated, measured on this schedule; None where memory cannot be told."""
    before = assignment_of(context)
    numbers = [one.parameter.parameter_number for one in found]
    if before is None:
        return None
    try:
        return donate(
            context.module,
            [n for n in numbers if n is not None],
            context.backend,
            memory_space=MAIN,
            before=before,
        ).saved
    except MemoryModelError:
        return None


def _size(one: Update) -> int:
    return size_of(one.array)


def _given_back(found: list[Update], context: Context) -> list[Update]:
    """Without those of which the rest of their tree is only read: an error beside each reward of a batch is no new reward.

    JAX names arguments by their place, as in `batch['reward']`.
    """
    leaves = Counter(map(_tree, context.module.entry.parameters))
    updated = Counter(_tree(one.parameter) for one in found)
    return [one for one in found if 2 * updated[_tree(one.parameter)] >= leaves[_tree(one.parameter)]]


def _tree(parameter: Instruction) -> str:
    """The name of the argument that a parameter is a leaf of; its own where it has no other."""
    name = parameter.metadata.op_name if parameter.metadata is not None else ""
    return re.split(r"[\[.]", name, maxsplit=1)[0] or parameter.name
