"""C101: an all-gather or all-to-all in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Communication, byte_text, invariant_instructions
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.exchange_causes import causes_of, remedy_in_loop
from hlotext.lint.helpers import is_invariant, operation, results
from hlotext.lint.loop_state import (
    exchanges_for_experts,
    is_given_back,
    is_of_matrix,
    is_paired,
    is_part_of_state,
    members,
)
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.shifts import shift_remedy
from hlotext.lint.values import is_looked_up


class AllGatherInLoop(Rule):
    code = "C101"
    name = "exchange-in-loop"
    title = "an all-gather or all-to-all in every iteration of a loop"
    waste = "sent"
    yields_to = frozenset({"C108"})
    names_cause = True
    needs_communication = True

    def check_module(self, context: Context) -> Iterator[Report]:
        found = list(self._found(context))
        causes = _causes([one for one, _ in found])
        reasons = {cause.communication.start: cause for cause in causes_of(context)} if found else {}
        for one, total in found:
            often = (
                f"runs {context.runs(one.start):,} times in a loop"
                if one.runs
                else "runs in every iteration of a loop"
            )
            sends = (
                f"{byte_text(total)} in total" if one.runs else f"{byte_text(one.sent_bytes)} per iteration"
            )
            yield Report(
                one.start,
                f"{one.kind} of {byte_text(one.result_bytes)} {often}: each device sends {sends}",
                shift_remedy(one, f"{remedy_in_loop(reasons.get(one.start))}{_hoisting(one)}"),
                total,
                cause=causes[one.start],
            )

    def _found(self, context: Context) -> Iterator[tuple[Communication, int]]:
        """Each with the bytes that a device sends in all rounds."""
        experts = {
            members(one.groups)
            for one in context.communications
            if one.kind == "all-to-all" and one.loop is not None and exchanges_for_experts(one, context)
        }
        for one in context.communications:
            if one.kind not in ("all-gather", "all-to-all", "ragged-all-to-all") or one.loop is None:
                continue
            if is_invariant(one):
                continue  # C102 says more
            if one.kind == "all-gather" and is_part_of_state(one, context):
                continue  # each iteration gathers another layer's parameters, as FSDP intends
            if one.kind == "all-gather" and is_given_back(one, context):
                continue  # a reduce-scatter undoes it, as sequence parallelism intends
            if one.kind == "all-gather" and is_paired(one):
                continue  # each iteration computes new values, and every device needs all of them
            gathered = list(results(one)) if one.kind == "all-gather" else []
            if gathered and all(map(is_looked_up, gathered)):
                continue  # its result is only gathered from, by row
            if gathered and all(map(is_of_matrix, gathered)):
                continue  # each device multiplies its rows of a matrix by the whole vector
            if one.kind == "all-to-all" and members(one.groups) in experts:
                continue  # each iteration sends tokens to their experts and the results back
            if _is_programs(one, *_MEANT.get(one.kind, ())):
                continue  # the program itself requests the exchange
            runs = context.runs(one.start)
            total = one.sent_bytes * runs
            if runs == 1 and one.runs == 1:
                continue
            if one.sent_bytes:
                yield one, total


def _hoisting(one: Communication) -> str:
    """The other remedy: operands that the loop does not change, as some of a combined collective, need one exchange."""
    fixed = invariant_instructions(one.loop) if one.loop is not None else frozenset[Instruction]()
    begun = one.fusion if one.fusion is not None else one.start
    if one.kind != "all-gather" or not any(operand in fixed for operand in begun.operands):
        return ""
    return ", or gather the loop-invariant operands once, before the loop"


_MEANT = {
    "all-gather": ("/svd", "/top_k", "jit(quantile)/sort", "jit(median)/sort"),
    "all-to-all": ("/all_to_all", "/transpose"),
    "ragged-all-to-all": ("/ragged_all_to_all",),
}
"""Operations of the program that need an exchange whatever the shardings are: those that look at all of an array at once, and
those that are exchanges themselves, as is a transpose of the dimension that is split."""


def _causes(found: list[Communication]) -> dict[Instruction, str]:
    """Names the cause of each: mismatched shardings make many exchanges in one iteration, and the backward pass
    repeats an iteration's work in another loop."""
    loops: dict[str, str] = {}
    operations: dict[str, str] = {}
    for one in found:
        loop = one.loop.name if one.loop is not None else ""
        name = operation(one.start)
        cause = loops.setdefault(loop, loop)
        if name:
            other = operations.setdefault(f"{one.kind} {name}", cause)
            loops.update({key: other for key, value in loops.items() if value == cause})
    return {one.start: f"in {loops[one.loop.name if one.loop is not None else '']}" for one in found}


def _is_programs(one: Communication, *endings: str) -> bool:
    """True if the program calls the collective itself, rather than leaving it to the compiler."""
    metadata = one.start.metadata
    return metadata is not None and metadata.op_name.endswith(endings)
