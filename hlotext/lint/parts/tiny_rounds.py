"""A loop of many iterations that each do little work."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.cost.custom_calls import TRIANGULAR_SOLVES
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_librarys, is_product_call, pieces, size_of, works
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.started import KERNELS, bodies, thunks_of
from hlotext.lint.values import changed_bytes

if TYPE_CHECKING:
    from hlotext.thunks import Thunk


class TinyRounds(Rule):
    needs_optimized = True

    min_rounds: ClassVar[int] = 500
    """Rounds of all runs of the loop from which on it is worth a finding."""
    max_bytes: ClassVar[int] = 1 << 16
    """Bytes that a round writes, up to which it hardly does anything."""
    max_bytes_host: ClassVar[int] = 1 << 10
    """Bytes that an operation of a round writes on CPU, likewise: the CPU starts one in a tenth of a microsecond."""
    max_read: ClassVar[int] = 1 << 20
    """Bytes that the reductions of a round read, likewise: what takes about as long as starting one."""
    max_flops: ClassVar[int] = 1_000_000
    """Operations of a round's matrix products, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        counts = dict(context.graph.loops())
        for loop, trips in counts.items():
            body = loop.attributes.get("body")
            if (
                not trips or trips < _LEAST or body is None or is_librarys(loop)
            ):  # its trip count is small or unknown
                continue
            rounds = trips * context.runs(loop)
            if rounds < self.min_rounds:  # it runs too few iterations
                continue
            steps = _steps(body, counts)
            if steps is None or any(
                step.opcode == "custom-call" and _handled(step) > self.max_bytes for step in steps
            ):  # its iterations call kernels of unknown cost
                continue  # the time of a library call on large arrays is unknown
            size = sum(map(changed_bytes, steps))
            scattered, read = _worked_through(steps)
            runs = max(1, context.runs(loop) * trips)
            flops = sum(context.flops(product) // runs for product in _products(steps))
            is_host = context.backend is Backend.CPU
            kernels = _kernels(loop, context)
            launch = context.prices.chip.rates.launch
            starting = rounds * kernels * launch.value if launch is not None else 0.0
            part = starting / (context.prices.seconds(loop) or 1.0)
            # Whatever a few operations do: where starting them takes about as long, that is most of what can be saved.
            if part < _MUCH or len(steps) > _FEW:
                if (
                    not steps or flops > self.max_flops or read > self.max_read
                ):  # its iterations do enough work
                    continue
                if max(size, scattered) > (
                    self.max_bytes_host * len(steps) if is_host else self.max_bytes
                ):  # its iterations write too many bytes
                    continue
            only = "only " if size <= self.max_bytes else ""
            yield Report(
                loop,
                f"{rounds:,} iterations run {pluralize(len(steps), 'operation')} each and write {only}{byte_text(size)} per "
                f"iteration{_started(rounds * kernels)}: {_why(part, context)}",
                "compute all iterations together (vmap, associative_scan), or do more in each iteration "
                f"(lax.scan(..., unroll=8)){_of_calls(steps)}",
                severity=None if starting else Severity.NOTE if is_host else Severity.WARNING,
                seconds=starting or None,
                is_at_most=bool(starting),
            )


def _why(part: float, context: Context) -> str:
    """The reason that such iterations are slow: starting operations, where that takes time, else too little work."""
    if context.prices.chip.rates.launch is None:
        return "each does too little to keep the chip busy"
    return (
        "launch overhead dominates"
        if not 0 < part < _HALF
        else f"launching takes {100 * part:.2g}% of their time"
    )


def _started(kernels: int) -> str:
    """Number of kernels that all iterations launch, in words."""
    return f" ({kernels:,} kernel launches in total)" if kernels else ""


def _kernels(loop: Instruction, context: Context) -> int:
    """Number of kernels that an iteration launches; 0 where that is unknown, and on platforms other than GPU."""
    found = thunks_of(context)
    for thunk in found.walk() if found is not None else ():
        if thunk.instruction is loop and thunk.kind == "kWhile":
            return sum(inner.kind in KERNELS for inner in _inside(bodies(thunk)))
    return 0


def _of_calls(steps: list[Instruction]) -> str:
    """Advice on the custom calls of an iteration; empty if it has none."""
    calls = sum(
        step.opcode == "custom-call" and (_is_triangular_solve(step) or not is_product_call(step))
        for step in steps
    )
    if not calls:
        return ""
    return (
        f"; {pluralize(calls, 'custom call')} for small arrays, such as factors of small matrices: "
        "write these out in closed form or unrolled"
    )


def _is_triangular_solve(step: Instruction) -> bool:
    return step.attributes.get("custom_call_target") in TRIANGULAR_SOLVES


def _handled(call: Instruction) -> int:
    """Bytes of a custom call's operands and results. The factors of a small matrix take about as long as starting it."""
    return sum(size_of(one.shape) for one in (call, *call.operands))


def _inside(sequence: tuple[Thunk, ...]) -> Iterator[Thunk]:
    pending = list(sequence)
    while pending:
        thunk = pending.pop()
        yield thunk
        pending.extend(thunk.nested)


_HALF = 0.5
_MUCH = 0.4
_FEW = 12
_LEAST = 8
"""Rounds of one run of the loop: one of fewer, as random numbers are made by, is not worth another form."""


def _steps(body: Computation, counts: Mapping[Instruction, int | None]) -> list[Instruction] | None:
    """The operations of a round, those of calls and of short loops inside as often as they run; None if a loop is long."""
    found: list[Instruction] = []
    for one in body:
        if one.opcode not in ("call", "while"):
            found += [one] if works(one) else []
            continue
        count = counts.get(one) if one.opcode == "while" else 1
        inner = one.attributes.get("body") if one.opcode == "while" else one.called_computations[0]
        steps = _steps(inner, counts) if count and count < _LEAST and isinstance(inner, Computation) else None
        if steps is None:
            return None
        found += steps * (count or 1)
    return found


def _worked_through(steps: list[Instruction]) -> tuple[int, int]:
    """Bytes that a round's scatters write one by one, and that its reductions read, inside fusions too.

    However small what comes out is: a histogram of a million values has 256 bins.
    """
    scattered = read = 0
    for step in itertools.chain.from_iterable(map(pieces, steps)):
        if step.opcode == "scatter":
            scattered += sum(
                size_of(operand.shape) for operand in step.operands[len(step.operands) // 2 + 1 :]
            )
        elif step.opcode in ("reduce", "reduce-window"):
            read += sum(size_of(operand.shape) for operand in step.operands[: len(step.operands) // 2])
    return scattered, read


def _products(steps: list[Instruction]) -> Iterator[Instruction]:
    """The matrix products of a round, inside fusions too."""
    yield from (step for one in steps for step in pieces(one) if step.opcode in ("dot", "convolution"))
