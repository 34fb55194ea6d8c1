"""Intermediate values of each iteration that a scan keeps for its backward pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hlotext.analysis import byte_text, responsible_frame
from hlotext.analysis.formatting import seconds
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.recomputing import MUCH_OF_PEAK, of_body
from hlotext.lint.rounds import Rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import backward_loops, handed_to, memory_of, stacks, taken_out


class ScanResiduals(Rule):
    code = "M116"
    name = "scan-residuals"
    title = "residuals that a long scan keeps for its backward pass"
    waste = "held"
    is_proved = False  # whether time or memory is short is for the author to say
    is_trade = True
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        backward = backward_loops(context)
        if not backward:  # the module has no loop of a backward pass
            return
        taken = {one: loop for loop in backward for one in handed_to(loop)}
        together: dict[object, list[Report]] = defaultdict(list)
        for rounds in stepped_rounds(context):
            report = _report(rounds, taken, context) if rounds.loop not in backward else None
            if report is not None and report.origin is not None:
                together[responsible_frame(report.origin) or rounds.loop].append(report)
        for reports in together.values():  # one line of the program, for each of its layers
            spares = {one: part for report in reports for one, part in report.spares.items()}
            saved = context.saved_peak(spares)
            stake = context.peak_at_stake
            if (
                saved and stake and saved >= MUCH_OF_PEAK * stake
            ):  # forward loops store too few bytes for backward loops
                yield from reports


def _report(rounds: Rounds, taken: dict[Instruction, Instruction], context: Context) -> Report | None:
    count = context.prices.trips(rounds.loop)
    stacked, ends = dict(stacks(rounds, 2)), taken_out(rounds)
    kept = {slot: update for slot, update in stacked.items() if any(one in taken for one in ends[slot])}
    whole = sum(size_of(rounds.given[slot].shape) for slot in kept)
    carried = count * sum(
        size_of(given.shape)
        for slot, given in enumerate(rounds.given)
        if slot not in rounds.passed and slot not in stacked
    )
    if whole <= carried:  # it keeps no more for the backward pass than checkpointing would
        return None
    places = [place for slot in kept for place in memory_of(rounds, slot)]
    largest = max(kept, key=lambda slot: size_of(rounds.given[slot].shape))
    again = of_body(rounds.body, context)
    return Report(
        rounds.given[largest],
        f"a scan of {count:,} iterations saves {byte_text(whole)} of intermediate values for its backward pass; saving only "
        f"its state, {byte_text(carried // count)} per iteration, would take {byte_text(carried)}",
        f"scan over jax.checkpoint(f): the backward pass recomputes each iteration, {again} like the forward loop; writing "
        f"and reading these values takes {seconds(context.prices.reading(2 * (whole - carried)))}",
        whole - carried,
        is_held=True,
        # The backward pass holds what one iteration computes.
        spares=dict.fromkeys(places, max(0.0, 1 - carried / whole - 1 / count)),
        origin=kept[largest],
    )
