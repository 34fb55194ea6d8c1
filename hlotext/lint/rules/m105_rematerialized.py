"""M105: values that XLA rematerializes to save memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hlotext.analysis import written_bytes
from hlotext.analysis.sizes import VIEWS
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.alike_fusions import alike
from hlotext.lint.helpers import counted
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.training import has_backward_pass
from hlotext.lint.values import changed_bytes, is_spread
from hlotext.lint.wording import sizes

_MARK = ".remat"
"""Begins what XLA's rematerialization appends to the name of what it computes again."""
_PRODUCTS = traits.DOTS | {"convolution"}


class Rematerialized(Rule):
    code = "M105"
    name = "rematerialized"
    title = "values that XLA rematerializes to save memory"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        again = _again(context)
        if not again:  # nothing is rematerialized
            return
        seconds = context.prices.seconds
        longest = max(again, key=lambda ones: sum(map(seconds, ones)))
        spared = [one for ones in again for one in ones]
        times = "once more" if len(longest) == 1 else f"{len(longest)} more times"
        yield Report(
            longest[0],
            f"{counted(len(spared), 'is', 'are')} rematerialized: to save memory, XLA computes values again, such as "
            f"{_described(longest[0], context)} {times}",
            "lower peak memory (`hlotext memory FILE` shows what occupies it), so that XLA need not recompute them"
            + (", or choose what to recompute with jax.checkpoint" if has_backward_pass(context) else ""),
            sum(min(written_bytes(one), changed_bytes(one)) * context.runs(one) for one in spared),
            "share",
            seconds=sum(map(seconds, spared)),
            covers=frozenset(spared) - {longest[0]},
        )


def _again(context: Context) -> list[list[Instruction]]:
    """Of each rematerialized value, what computes it beyond once; one of whose name nothing else is left was only moved."""
    if not any(_MARK in one.name for one in context.census.instructions):
        return []
    alike_ones: dict[tuple[Computation | None, str], list[Instruction]] = defaultdict(list)
    for one in context.graph.sequential_instructions():
        if one.opcode not in VIEWS:
            alike_ones[one.computation, one.name.partition(_MARK)[0]].append(one)
    found = []
    for ones in alike_ones.values():
        marked = [one for one in ones if _MARK in one.name]
        # Each of several writers needs zeros of its own.
        if not marked or len(ones) == 1 or is_spread(marked[0]):
            continue
        found.append(marked[len(marked) == len(ones) :])
    return found


def _described(one: Instruction, context: Context) -> str:
    products = alike(context.module).parts(one, _PRODUCTS)
    if not products:
        return one.name
    return f"the matmul of {' and '.join(sizes(operand.shape) for operand in products[0].operands[:2])}"
