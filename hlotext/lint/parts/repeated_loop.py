"""Loops that compute again what another loop has computed."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.twins import twins
from hlotext.lint.wording import described


class RepeatedLoop(Rule):
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for twin in twins(context):
            loop, prices = twin.loop, context.prices
            body = loop.attributes["body"]
            dearest = max(body, key=lambda one: (prices.seconds(one), -_place(one)), default=loop)
            count = prices.trips(loop)
            after = [one for one in twin.after if prices.seconds(one)]
            does = "does" if len(after) == 1 else "do"
            more = f", and so {does} {pluralize(len(after), 'operation')} on its results" if after else ""
            yield Report(
                loop,
                f"a loop of {count:,} iterations ({described(dearest)} in each) computes the same values as another loop, "
                f"`{twin.other.name}`{more}",
                "compute them once, and return everything that is used (jax.value_and_grad with has_aux=True for a "
                "loss with metrics)",
                seconds=prices.together([loop, *after]),
                covers=frozenset(after),
            )


def _place(one: Instruction) -> int:
    return one.span.line if one.span is not None else 0
