"""Arrays of one function that make up much of the memory peak."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.findings.errors import Severity
from hlotext.lint.held import Held, at_peak, function_of, least_held, most_written
from hlotext.lint.moving import comes_from_argument, moved_array
from hlotext.lint.rule import UNKNOWN_MEMORY, Context, Report, Rule
from hlotext.lint.wording import written

_MUCH = 0.3
"""Part of the peak that one function's arrays make, from which on it is worth knowing."""
_LEAST = 0.1
"""Part of the chip's memory that they take, likewise: nobody is short of what is hardly used."""
_ONE, _LEAST_OF_ONE = 0.4, 0.01
"""Part of the peak that one array makes, and of the chip's memory, likewise: one may be gone over in blocks."""


class LongLivedArray(Rule):
    severity = Severity.NOTE
    is_proved = False  # activations are meant
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        # What a function may hold at the most, beside the least that is held with it: if little, memory is not asked for.
        most = most_written(context)
        if not most or most < _MUCH * (least_held(context) + most):  # no long-lived array is large enough
            return
        memory = context.prices.chip.memory_bytes or UNKNOWN_MEMORY
        if most < _LEAST_OF_ONE * memory:  # no long-lived array is large enough
            return
        peak = at_peak(context)
        if peak is None:
            return
        groups: dict[tuple[str, str], list[Held]] = {}
        for held in peak.held:
            if moved_array(held.writer, context) is not None and comes_from_argument(
                held.writer.operands[0], context
            ):
                continue  # an argument in another layout
            function = function_of(held.filler)
            groups.setdefault(function if any(function) else function_of(held.writer), []).append(held)
        for (_, name), group in groups.items():
            total = sum(held.bytes for held in group)
            first = max(group, key=lambda held: held.bytes)
            is_one = first.bytes >= max(_ONE * peak.bytes, _LEAST_OF_ONE * memory)
            if total < _MUCH * peak.bytes or not (
                is_one or total >= _LEAST * memory
            ):  # its share of the peak is too small
                continue
            yield Report(
                first.filler,
                f"{pluralize(len(group), 'array')} of {_function(name)} "
                f"{'takes' if len(group) == 1 else 'take'} {byte_text(total)} at the memory peak; the largest, "
                f"{byte_text(first.bytes)}, is {written(first.filler, first.index)}",
                "use them sooner, keep them in a narrower type, process them in blocks, or recompute them (jax.checkpoint)",
                total,
                "peak",
                is_held=True,
                cause=f"peak {name}",
            )


def _function(name: str) -> str:
    own = name.rpartition(".")[2]
    return f"function {own}" if own else "the program"
