"""M124: values that each of several layers keeps for its backward pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hlotext.analysis import byte_text, responsible_frame
from hlotext.analysis.formatting import pluralize, seconds
from hlotext.lint.held import Held, at_peak, least_held, written_in_main
from hlotext.lint.helpers import operation
from hlotext.lint.recomputing import MUCH_OF_PEAK, of_forward
from hlotext.lint.rounds import unmoved
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import is_forward
from hlotext.lint.wording import written

_LEAST = 3
"""Equal arrays of one line of the program from which on they are those of layers."""
_SMALL = 64
"""Ratio of the largest array to what is no activation of a layer, but statistics of its rows."""


class LayerResiduals(Rule):
    code = "M124"
    name = "layer-residuals"
    title = "intermediate values that each of several layers keeps for its backward pass"
    waste = "held"
    is_proved = False  # whether time or memory is short is for the author to say
    is_trade = True
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        kept = [(one, size) for one, size in written_in_main(context) if is_forward(unmoved(one))]
        total = sum(size for _, size in kept)
        if total < MUCH_OF_PEAK * least_held(context):  # no forward pass of a derivative writes much
            return
        peak = at_peak(context)
        if peak is None:
            return
        lines: dict[object, list[Held]] = defaultdict(list)
        for held in peak.held:
            made = unmoved(held.filler)  # perhaps in fast memory, and copied from there
            if is_forward(made):
                lines[responsible_frame(made) or operation(made), held.bytes].append(held)
        repeated = [group for group in lines.values() if len(group) >= _LEAST]
        if not repeated:  # no line of the program keeps several equal arrays
            return
        handed_on = _handed_on(repeated)
        spared = [held for group in repeated if group is not handed_on for held in group[1:]]
        saved = context.saved_peak({(held.filler, tuple(held.index)): 1.0 for held in spared})
        if not saved or saved < MUCH_OF_PEAK * (
            context.peak_at_stake or saved
        ):  # checkpointing its layers would hardly lower the peak
            return
        first = max(spared, key=lambda held: held.bytes)
        size = sum(held.bytes for held in spared)
        layers = max(len(group) for group in repeated if first in group)
        forward = {one for one in context.graph.sequential_instructions() if is_forward(one)}
        yield Report(
            first.filler,
            f"each of {layers} layers keeps its intermediate values for the backward pass, {byte_text(size)} in "
            f"{pluralize(len(spared), 'array')} besides the last layer's and each layer's input, the largest "
            f"{byte_text(first.bytes)} ({written(first.filler, first.index)})",
            f"jax.checkpoint around each layer: the backward pass recomputes it, {of_forward(forward, context)} like the "
            f"forward pass; writing and reading these values takes {seconds(context.prices.reading(2 * size))}",
            size,
            is_held=True,
            peak_bytes=saved,
        )


def _handed_on(repeated: list[list[Held]]) -> list[Held]:
    """The arrays that layers hand on to each other, which checkpointed layers keep: the smallest that may be activations."""
    largest = max(repeated, key=lambda group: group[0].bytes)
    large = [group for group in repeated if group[0].bytes * _SMALL >= largest[0].bytes]
    return min(large, key=lambda group: (2 * len(group) < len(largest), group[0].bytes))
