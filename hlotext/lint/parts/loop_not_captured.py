"""A loop that one operation keeps from being a CUDA graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.started import bodies, if_all_were_captured, thunks_of

if TYPE_CHECKING:
    from hlotext.thunks import Thunk


class LoopNotCaptured(Rule):
    severity = Severity.NOTE
    backends = frozenset({Backend.GPU})
    needs_schedule = True

    min_thunks: ClassVar[int] = 5
    """Thunks of a round from which on starting them together is worth a finding."""
    min_rounds: ClassVar[int] = 10
    """Rounds, likewise; loops whose rounds the text does not tell count as having enough."""

    def check_module(self, context: Context) -> Iterator[Report]:
        if not context.census.by_opcode.get("while"):  # the module has no loop
            return
        before, after = thunks_of(context), if_all_were_captured(context)
        if before is None or after is None:  # the command buffers are unknown
            return
        sizes = {t.instruction: _size(t) for t in before.walk() if t.kind == "kWhile"}
        causes = {run.ended_by.instruction: run.cause for run in after.ended if run.ended_by is not None}
        trips = dict(context.graph.loops())
        for loop in after.walk():
            one = loop.instruction
            if loop.kind != "kWhile" or one is None:
                continue
            left = [thunk for thunk in bodies(loop) if thunk.kind != "kCommandBuffer"]
            count, known = sizes.get(one, 0), trips.get(one)
            rounds = known * context.runs(one) if known is not None else None
            if (
                len(left) != 1 or count < self.min_thunks or left[0].kind == "kWhile"
            ):  # it has few operations, or none or several of them cannot be captured
                continue
            if rounds is not None and rounds < self.min_rounds:
                continue
            blocker = left[0]
            cause = causes.get(blocker.instruction)
            why = f": {cause.message}" if cause is not None else ""
            often = f"; {rounds:,} iterations launch" if rounds is not None else "; each iteration launches"
            total = f"{rounds * count:,}" if rounds is not None else f"{count:,}"
            launch = context.prices.chip.rates.launch
            yield Report(
                one,
                f"of {count:,} thunks per iteration, only {blocker.name or blocker.kind} keeps the loop from being a "
                f"single command buffer{why}{often} {total} thunks one by one",
                "move that operation out of the loop, or use one that can be captured; --xla_gpu_enable_command_buffer "
                "must also include WHILE",
                # Next to large matmuls, launching even thousands of kernels takes no time.
                seconds=rounds * count * launch.value if rounds is not None and launch is not None else None,
                is_at_most=True,
            )


def _size(loop: Thunk) -> int:
    """Thunks that a round starts, nested ones too."""
    pending, count = list(bodies(loop)), 0
    while pending:
        thunk = pending.pop()
        inner = list(thunk.nested)
        count += not inner
        pending.extend(inner)
    return count
