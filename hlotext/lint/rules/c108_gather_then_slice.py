"""C108: an all-gather of which only a slice is used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Communication, byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.dumps.collectives.places import is_by_hand
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import is_worth_time
from hlotext.lint.demand import Demand
from hlotext.lint.demanded import demands
from hlotext.lint.helpers import is_known_by_device, results, size_of
from hlotext.lint.own_parts import own_part
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.shifts import shift_remedy
from hlotext.lint.values import Value, is_looked_up

_EXCHANGE = (
    "use lax.all_to_all instead of the all-gather and the slice: each device receives only the part that it uses "
    "(lax.ppermute if that part is another device's whole shard)"
)
_STEPS = (
    "change the sharding that requires the whole array, often a with_sharding_constraint (`hlotext dump "
    "collectives DIR` names it), to that of the array; or reshard in steps"
)
_ROWS = (
    "exchange rows instead of gathering the table: send the indices to the devices that hold their rows, and the rows back "
    "(lax.all_to_all in shard_map), each distinct row once; or replicate the table, if memory allows it"
)
_BEFORE = (
    "reshard before the slice (with_sharding_constraint) so that the sliced dimension is not sharded, or use that sharding "
    "from the start"
)


class GatherThenSlice(Rule):
    code = "C108"
    name = "gather-then-slice"
    title = "an all-gather of which only a slice is used"
    waste = "sent"
    needs_optimized = True

    min_bytes: ClassVar[int] = 1 << 16
    """Bytes of a gathered array from which on it is worth a finding."""
    min_percent: ClassVar[float] = 0.5
    """Percent of the estimated time of the module for which is waited for what is not used, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if (
                one.kind != "all-gather" or one.result_bytes < self.min_bytes or one.participants == 1
            ):  # it is not an all-gather of a large array
                continue
            cut = [
                (value, kept) for value in results(one) if (kept := self._kept(value, context)) is not None
            ]
            whole = sum(size_of(value.shape) for value, _ in cut)
            if not whole:  # each device needs all of it
                continue
            part = sum(size_of(value.shape) * kept for value, kept in cut) / whole
            remedy = _remedy(one, part, [value for value, _ in cut], context)
            # Before a slice at a place that the run tells each device exchanges all that it has, and then the slice is sent.
            first = one.operand_bytes / one.result_bytes if remedy.startswith(_BEFORE) else 0.0
            remaining = part + first
            needless = whole / one.result_bytes * (1 - remaining)
            if needless <= 0:  # an exchange before the slice would send as much
                continue
            if not is_worth_time(one.start, context, self.min_percent / needless):
                continue
            of_them = (
                f" ({pluralize(len(cut), 'array')} of a combined all-gather)"
                if whole < one.result_bytes
                else ""
            )
            yield Report(
                one.start,
                f"all-gather of {byte_text(whole)}{of_them}, only {100 * part:.3g}% of which is used",
                remedy,
                round(one.sent_bytes * needless) * context.runs(one.start),
                seconds=context.prices.spared(one.start, needless),
                spares={one.start: needless},
            )

    def _kept(self, value: Instruction, context: Context) -> float | None:
        """The part of an array that is used; None if all is, or where the array is small."""
        if value.shape is None or not value.shape.is_array or size_of(value.shape) < self.min_bytes:
            return None
        asked = demands(context.module).get(value)
        # Where the place is known when the program is written, the sharding is no cause.
        if not isinstance(asked, Demand) or not any(
            part is not None and part.loose for part in asked.parts
        ):  # each device needs all of it
            return None
        return asked.fraction(value.shape)


def _is_own_part(value: Instruction, context: Context) -> bool:
    """True if each device takes a part that is known before the run: one exchange brings it."""
    cut = own_part(Value(value), context)
    return cut is not None and all(is_known_by_device(place, context) for place in cut.operands[1:])


def _remedy(one: Communication, part: float, values: list[Instruction], context: Context) -> str:
    """A shard_map is written by hand: it has no sharding that a step could change, but operations for parts. Of a table
    whose rows are looked up nothing is sliced."""
    if all(map(is_looked_up, values)):
        return _ROWS
    named = one.instruction if one.instruction.metadata is not None else one.start
    if is_by_hand(named) and part * (one.participants or math.inf) <= _SHARE:
        return _EXCHANGE
    is_own = all(_is_own_part(value, context) for value in values)
    return shift_remedy(one, _STEPS if is_own else _BEFORE)


_SHARE = 1.01
"""Parts of an array, in those of one device, up to which no device uses more than its own."""
