"""Sums over devices that every round makes, to add up the results."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.lint.repairs import SumOnce
from hlotext.lint.rounds import Purity, Rounds, Same, rounds_of, same_in_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.sums import adds, slots_added_to
from hlotext.lint.wording import every_round


@attrs.frozen
class SumAfterLoop(Rule):
    code = "C113"
    name = "sum-after-loop"
    title = "an all-reduce in every iteration whose results are only accumulated"
    waste = "sent"

    def check_module(self, context: Context) -> Iterator[Report]:
        known: dict[object, tuple[Rounds, Same] | None] = {}
        purity = Purity()
        for one in context.communications:
            loop = one.loop
            if one.kind != "all-reduce" or loop is None or one.computation is not loop.attributes.get("body"):
                continue
            if not adds(one.instruction.attributes.get("to_apply")):
                continue
            if loop not in known:
                rounds = rounds_of(loop)
                known[loop] = (rounds, same_in_rounds(rounds, purity)) if rounds is not None else None
            found = known[loop]
            slots = slots_added_to(one, *found) if found is not None else None
            if slots is None:
                continue
            count = context.prices.trips(loop)
            if count < 2:
                continue
            yield Report(
                one.start,
                f"{byte_text(one.operand_bytes)} are summed over {one.participants or 'the'} devices "
                f"{every_round(count, loop not in context.prices.rounds)}, and the sums only accumulated",
                "accumulate on each device and all-reduce once after the loop; rounding changes",
                one.sent_bytes * (context.runs(one.start) - 1),
                seconds=context.prices.seconds(one.start) * (count - 1) / count,
                covers=frozenset([one.start]),
                repair=SumOnce(loop, {one.start: tuple(dict.fromkeys(slots))})
                if one.fusion is None
                else None,
            )
