"""Sums over devices whose results are only added up: those that every round makes, and pairs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import chain

from hlotext.analysis import Communication, byte_text, total_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.added_sums import AddedSums, added_sums
from hlotext.lint.repairs import SumOnce
from hlotext.lint.rounds import Purity, Rounds, Same, in_calls, rounds_of, same_in_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.stacked_sums import accumulated_stacks
from hlotext.lint.sums import accumulated, adds
from hlotext.lint.wording import every_round


class SumsAddedUp(Rule):
    code = "C113"
    name = "sums-added-up"
    title = "all-reduces whose results are only added up"
    needs_communication = True
    waste = "sent"

    def check_module(self, context: Context) -> Iterator[Report]:
        yield from map(functools.partial(_of_pair, context), added_sums(context))
        known: dict[Instruction, tuple[Rounds, Same] | None] = {}
        purity = Purity()

        def in_loop(loop: Instruction) -> tuple[Rounds, Same] | None:
            if loop not in known:
                rounds = rounds_of(loop)
                known[loop] = (rounds, same_in_rounds(rounds, purity)) if rounds is not None else None
            return known[loop]

        for one in context.communications:
            loop = one.loop
            if (
                one.kind != "all-reduce" or loop is None or one.computation is not loop.attributes.get("body")
            ):  # it is not an all-reduce in the body of a loop
                continue
            if not adds(one.instruction.attributes.get("to_apply")):  # its reducer is not an addition
                continue
            found = in_loop(loop)
            if found is None:
                continue
            sums = accumulated(one, *found)
            if sums:
                slots = tuple(dict.fromkeys(chain.from_iterable(sums.values())))
                values = [value.instruction for value in sums]
                yield from _of_loop(context, one, loop, values, SumOnce(loop, {one.start: slots}))
                continue
            home = in_calls(loop).computation
            around = context.graph.loop_around(home) if home is not None else None
            if around is None or home is not around.attributes.get("body"):
                continue
            if (outer := in_loop(around)) is not None:
                yield from _of_loop(context, one, around, accumulated_stacks(one, found[0], *outer), None)


def _of_loop(
    context: Context,
    one: Communication,
    loop: Instruction,
    sums: Sequence[Instruction],
    repair: SumOnce | None,
) -> Iterator[Report]:
    """The finding for results of an all-reduce that a loop, its own or the one around it, only accumulates."""
    prices = context.prices
    count = prices.trips(loop)
    size = sum(total_of(value.shape).unpadded_bytes for value in sums)
    if not size or count < 2:  # the loop uses its result
        return
    part = min(1.0, size / max(1, one.result_bytes))
    each = prices.trips(one.loop) if one.loop is not None and one.loop is not loop else 1
    yield Report(
        one.start,
        f"{byte_text(size * each)} is summed over {one.participants or 'the'} devices "
        f"{every_round(count, loop not in prices.rounds)}, and the sums are only accumulated",
        "accumulate on each device and all-reduce once after the loop; this changes rounding",
        round(one.sent_bytes * part * context.runs(one.start) * (count - 1) / count),
        seconds=prices.seconds(one.start) * part * (count - 1) / count,
        covers=frozenset([one.start]),
        repair=repair if one.fusion is None and part == 1 else None,
    )


def _of_pair(context: Context, found: AddedSums) -> Report:
    both, prices = (found.one, found.other), context.prices
    shorter = min(both, key=lambda one: prices.transferring(one.start))
    part = min(1.0, found.bytes / max(1, shorter.result_bytes))
    return Report(
        found.other.start,
        f"two arrays of {byte_text(found.bytes)} are summed over the same {found.one.participants or ''} devices "
        f"separately, by {found.one.start.name} and {found.other.start.name}, and the sums are only added",
        "all-reduce once: in a shard_map, differentiate with respect to one copy of a weight that is used twice (tied "
        "embeddings), in the type that is sent, w = lax.pcast(w.astype(bf16), axis, to='varying'), and psum its gradient "
        "once; this changes rounding",
        round(shorter.sent_bytes * part * context.runs(shorter.start)),
        # The links are free for as long as one of both takes, whichever of them is waited for.
        seconds=min(prices.together(one.start for one in both), part * prices.transferring(shorter.start)),
        origin=found.added,
    )
