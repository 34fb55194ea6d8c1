"""C104: an all-reduce whose result is sliced per device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, Communication, byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.dumps.collectives.places import asked_kind
from hlotext.lint.beside import is_worth_time
from hlotext.lint.helpers import results, size_of
from hlotext.lint.loop_state import keeps_its_part
from hlotext.lint.rule import Context, Report, Rule


class AllReduceThenSlice(Rule):
    code = "C104"
    name = "all-reduce-then-slice"
    title = "an all-reduce whose result is sliced per device"
    waste = "sent"
    needs_optimized = True

    min_bytes: ClassVar[int] = 1 << 17
    """Bytes of the reduced array from which on it is worth a finding."""
    min_percent: ClassVar[float] = 1
    """Percent that is saved of all the bytes that each device sends, likewise."""
    min_step_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module for which it is waited for, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            devices = one.participants
            if (
                one.kind != "all-reduce" or one.operand_bytes < self.min_bytes or not devices or devices < 2
            ):  # it is not an all-reduce of a large array
                continue
            # In a fusion on TPU an all-reduce and a slice are how a reduce-scatter is written.
            if one.fusion is not None:  # it is in a fusion
                continue
            # The CPU compiler makes no reduce-scatters of what it partitions, whatever the shardings are.
            if context.backend is Backend.CPU and not _is_programs(
                one
            ):  # on CPU, only sums that the program itself requests count
                continue
            if not is_worth_time(one.start, context, self.min_step_percent):
                continue
            values = list(results(one))
            parts = [value for value in values if keeps_its_part(value, devices, context)]
            size = sum(size_of(value.shape) for value in parts)
            # Each device sends half as much for the arrays of which it keeps its part, in the type in which they are summed.
            share = size / max(1, sum(size_of(value.shape) for value in values)) / 2
            saved = round(one.sent_bytes * share) * context.runs(one.start)
            if (
                size >= self.min_bytes and 100 * saved >= self.min_percent * context.sent
            ):  # its result is not sliced per device, or little would be saved
                of_them = (
                    f" (in {pluralize(len(parts), 'array')} of the combined operands)"
                    if len(parts) < len(values)
                    else ""
                )
                yield Report(
                    one.start,
                    f"all-reduce of {byte_text(size)}{of_them} over {devices} devices, each of which keeps only 1/{devices}",
                    "a reduce-scatter sends half the bytes: "
                    + (
                        "use jax.lax.psum_scatter"
                        if _is_psum(one)
                        else "shard the result where it is produced"
                    ),
                    saved,
                    seconds=context.prices.spared(one.start, share),
                )


def _is_programs(one: Communication) -> bool:
    """True if the program calls the collective itself, rather than leaving it to the compiler, as far as the text tells."""
    metadata = one.start.metadata
    return metadata is None or not metadata.op_name or _is_psum(one)


def _is_psum(one: Communication) -> bool:
    metadata = one.start.metadata
    return metadata is not None and bool(metadata.op_name) and asked_kind(metadata.op_name) == one.kind
