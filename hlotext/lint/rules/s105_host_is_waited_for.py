"""S105: the host reads a value from the device, and nothing runs meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, byte_text, memory_space, total_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_librarys, is_of_package, size_of, times, works
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.started import as_by_default

_HOST_ANSWERS = 10e-6
"""Seconds until the host has read a value from the device and started what comes next (inferred)."""


class HostIsWaitedFor(Rule):
    code = "S105"
    name = "host-is-waited-for"
    title = "a synchronous copy between host and device inside a run"
    waste = "host"
    backends = frozenset({Backend.GPU})
    needs_schedule = True

    max_bytes: ClassVar[int] = 256 << 20
    """Bytes that a round of a loop, or a branch, reads and writes, up to which waiting takes a good part of its time."""
    min_bytes: ClassVar[int] = 1 << 20
    """Bytes of a copy of an array from which on it is worth a finding."""
    min_percent: ClassVar[float] = 3
    """Percent of the estimated time of the module that waiting for the host takes in all rounds, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        yield from self._copies(context)
        by_opcode = context.census.by_opcode
        if not (by_opcode.get("while") or by_opcode.get("conditional")):  # the module has no loop or branch
            return
        found = as_by_default(context)
        # What is inside a command buffer decides on the device.
        pending = list(reversed(found.thunks)) if found is not None else []
        seen: set[Instruction] = set()
        while pending:
            thunk = pending.pop()
            one = thunk.instruction
            if thunk.kind == "kCommandBuffer":  # command buffers capture its loops and branches
                continue
            pending.extend(reversed(list(thunk.nested)))
            if one is None or one in seen:
                continue
            seen.add(one)
            if thunk.kind == "kWhile" and thunk.facts.get("trip_count") is None:
                yield from self._loop(one, context)
            elif thunk.kind == "kConditional":
                yield from self._branches(one, context)

    def _loop(self, loop: Instruction, context: Context) -> Iterator[Report]:
        body = loop.attributes.get("body")
        if not isinstance(body, Computation) or _is_fixed(loop) or _moved(body) > self.max_bytes:
            return
        trips = dict(context.graph.loops()).get(loop)
        seconds = _HOST_ANSWERS * context.prices.runs(body)
        if 100 * seconds < self.min_percent * context.prices.step:
            return
        rounds = f", {trips * context.runs(loop):,} times" if trips is not None else ""
        yield Report(
            loop,
            f"after each iteration{rounds} the host copies 1 byte from the device and waits for it, to decide whether the "
            "loop continues",
            "give the loop a constant trip count (lax.scan, lax.fori_loop), or do several steps in one iteration",
            seconds=seconds,
            is_proved=trips is not None,  # else what the loop computes decides when it ends
        )

    def _branches(self, conditional: Instruction, context: Context) -> Iterator[Report]:
        runs = context.runs(conditional)
        index = conditional.operands[0].shape if conditional.operands else None
        moved = max((_moved(body) for body in conditional.called_computations), default=0)
        if _is_fixed(conditional) or moved > self.max_bytes or index is None:
            return
        if context.loop_around(conditional.computation) is None:
            return
        yield Report(
            conditional,
            f"the host copies {byte_text(total_of(index).unpadded_bytes)} from the device and waits for it{times(runs)} "
            "in a loop, to decide which branch to run",
            "compute both branches and select (jnp.where), if they are cheap",
            seconds=_HOST_ANSWERS * runs,
        )

    def _copies(self, context: Context) -> Iterator[Report]:
        """Copies that stand in the stream of everything else. Those in loops another rule finds."""
        for copy in context.census.by_opcode.get("copy", ()):
            if (
                not copy.operands
                or not context.is_stepped(copy)
                or context.loop_around(copy.computation) is not None
            ):
                continue
            shapes = [copy.shape, copy.operands[0].shape]
            spaces = {memory_space(shape) == 5 for shape in shapes if shape is not None and shape.is_array}
            size = size_of(copy.shape)
            if len(spaces) == 2 and size >= self.min_bytes:
                yield Report(
                    copy,
                    f"the copy of {byte_text(size)} between host and device does not overlap with any "
                    f"computation{times(context.runs(copy))}",
                    "let the compiler copy asynchronously (copy-start), or keep the array on the host or on the device",
                    size * context.runs(copy),
                )


def _is_fixed(instruction: Instruction) -> bool:
    """True if it is part of a library function, which users do not change."""
    return is_librarys(instruction) or is_of_package(instruction)


def _moved(body: Computation) -> int:
    """Bytes that the operations of a round or a branch read and write together."""
    return sum(
        size_of(step.shape) + sum(size_of(operand.shape) for operand in set(step.operands))
        for step in body
        if works(step)
    )
