"""M121: large values that the forward pass keeps, though the backward pass could compute them again from small ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hlotext.analysis import byte_text, responsible_frame
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.lint.held import Held, at_peak, function_of, least_held, written_in_main
from hlotext.lint.recomputing import MUCH_OF_PEAK
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.small_origins import CHECKPOINT, Origin, are_of_attention, small_origin
from hlotext.lint.training import is_forward
from hlotext.lint.wording import written


class KeptForBackward(Rule):
    code = "M121"
    name = "kept-for-backward"
    title = "large values saved for the backward pass that could be recomputed from small ones"
    waste = "held"
    is_proved = False  # whether time or memory is short is for the author to say
    is_trade = True
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        kept = [(one, size) for one, size in written_in_main(context) if is_forward(one)]
        total = sum(size for _, size in kept)
        stake = context.excess.bytes if context.excess is not None else least_held(context) + total
        if total < MUCH_OF_PEAK * stake:  # no forward pass of a derivative writes much
            return
        peak = at_peak(context)
        if peak is None:
            return
        groups: dict[tuple[str, str], list[tuple[Held, Origin]]] = defaultdict(list)
        for held in peak.held:
            if (
                is_forward(held.filler)
                and (origin := small_origin(held.writer, held.bytes, context)) is not None
            ):
                groups[function_of(held.filler)].append((held, origin))
        for (_, name), group in groups.items():
            if are_of_attention(
                origin for _, origin in group
            ):  # they are attention scores, which M125 reports
                continue
            first, origin = max(group, key=lambda pair: pair[0].bytes)
            # The backward pass needs one of each line at a time.
            needed = {responsible_frame(held.filler): held for held, _ in reversed(group)}.values()
            spared = [held for held, _ in group if held not in needed]
            saved = context.saved_peak({(held.filler, tuple(held.index)): 1.0 for held in spared})
            if not saved or saved < MUCH_OF_PEAK * (
                context.peak_at_stake or saved
            ):  # the peak would hardly be lower
                continue
            again = context.prices.together(one for _, origin in group for one in origin.computed)
            yield Report(
                first.filler,
                f"{pluralize(len(group), 'array')} of {name.rpartition('.')[2] or 'the program'}, the largest "
                f"{byte_text(first.bytes)} ({written(first.filler, first.index)}), are saved for the backward pass, which "
                f"could recompute each from at most {byte_text(origin.bytes)}",
                f"{CHECKPOINT} the backward pass recomputes them, in about {seconds(again)}",
                sum(held.bytes for held in spared),
                "kept",
                is_held=True,
                peak_bytes=saved,
            )
