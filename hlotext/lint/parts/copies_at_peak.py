"""Copies that are live at the memory peak together with their source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.held import AtPeak, Held, assignment_of, at_peak, least_held, written_in_main
from hlotext.lint.helpers import changes_layout, counted
from hlotext.lint.moving import is_programs
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.taken_apart import updates_of
from hlotext.lint.values import is_spread


class CopiesAtPeak(Rule):
    needs_schedule = True

    min_peak: ClassVar[int] = 4 << 30
    """Bytes of the peak up to which nobody is short of memory."""
    min_percent: ClassVar[int] = 10
    """Percent of the peak that the copies make, from which on they are worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        copied = sum(size for one, size in written_in_main(context) if one.opcode in _COPIES)
        if 100 * copied < self.min_percent * max(
            self.min_peak, least_held(context) + copied
        ):  # copies are too small a part of the peak
            return
        peak = at_peak(context)
        if peak is None or peak.bytes < self.min_peak:  # the peak is unknown or small
            return
        # Of an argument that is changed in part and not donated another rule says that it is copied.
        undonated = {one.parameter for one in updates_of(context) if one.is_in_place}
        beside = _Beside(context, peak)
        copies = [
            held
            for held in peak.held
            if beside.is_copy(held)
            and _behind(held.writer) not in undonated
            and _is_avoidable(held.writer)
            and not is_spread(held.writer)  # such as zeros that several sums begin with
        ]
        total = sum(held.bytes for held in copies)
        if (
            not copies or 100 * total < self.min_percent * peak.bytes
        ):  # copies are too small a part of the peak
            return
        largest = copies[0].writer
        why = "to change the layout" if changes_layout(largest) else "because its source is still needed"
        yield Report(
            largest,
            f"{counted(len(copies), 'copies', 'copy')} {byte_text(total)} that are live at the peak together with their "
            f"source, {100 * total // peak.bytes}% of {byte_text(peak.bytes)}; the largest copy is made {why}",
            "finish using the old value before the new one is created, donate it, or give both the same layout",
            total,
            "copies",
            is_held=True,
        )


_COPIES = frozenset({"copy", "copy-start"})


class _Beside:
    """Buffers that are copies of another live buffer."""

    def __init__(self, context: Context, peak: AtPeak) -> None:
        assignment = assignment_of(context)
        self._model = assignment.model if assignment is not None else None
        self._static = {
            value
            for allocation in (assignment.allocations if assignment is not None else ())
            if allocation.is_static
            for value, _, _ in allocation.slices
        }
        self._time = peak.time

    def is_copy(self, held: Held) -> bool:
        """True if a piece of memory is there because something was copied that is held at the peak as well."""
        copy = held.writer
        if self._model is None or copy.opcode not in _COPIES or not copy.operands:
            return False
        source = copy.operands[0]
        if source.shape is None or not source.shape.is_array:
            return False
        value = self._model.flow.value_at(source, ())
        return value is not None and (value in self._static or value.lives_at(self._time))


def _behind(copy: Instruction) -> Instruction:
    """The source of a copy, looking through views."""
    found = copy
    while found.opcode in ("bitcast", "copy", "copy-start", "reshape") and found.operands:
        found = found.operands[0]
    return found


def _is_avoidable(copy: Instruction) -> bool:
    """True if the program can do without, which it cannot where differentiation made what writes over the copy."""
    names = [user.metadata.op_name if user.metadata is not None else "" for user in copy.users]
    return (
        not names
        or not all("transpose(" in name for name in names)
        or is_programs(copy)
        or changes_layout(copy)
    )
