"""The order of execution: what each of XLA's memory schedulers would choose, and the memory that it takes.

After `xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc`; GPU's corrections of the order after `PostProcessSchedule`
(`xla/service/gpu/gpu_hlo_schedule.cc`). XLA's order also depends on the order in which instructions were added, which the
text does not have: the peak is what can be told, the exact order is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import attrs

from hlotext.analysis import Backend
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.platforms import platform_of
from hlotext.compiler.remove_unnecessary_copies import rules_of
from hlotext.compiler.resolve_interference import in_place_pairs
from hlotext.compiler.schedule_postprocessing import post_process
from hlotext.compiler.schedulers import Sizes, breadth_first, depth_first, list_order, post_order
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.memory.aliases import find_buffers
from hlotext.memory.dataflow import analyse
from hlotext.memory.heap import HeapBuffers, HeapEvent, simulate
from hlotext.memory.live_ranges import find_live_ranges
from hlotext.memory.schedule import flatten
from hlotext.memory.sharing import Sharing
from hlotext.memory.values import Value
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations

Orders = Mapping[Computation, Sequence[Instruction]]
Scheduler = Callable[[Computation, Sizes], list[Instruction]]
SCHEDULERS: dict[str, Scheduler] = {
    "list": list_order,
    "depth-first": depth_first,
    "post-order": post_order,
    "breadth-first": breadth_first,
}
"""XLA's algorithms: `ListMemoryScheduler`, `DFSMemoryScheduler`, `PostOrderScheduler`, `BFScheduler`."""
TRIED = {
    Backend.CPU: ("breadth-first",),
    Backend.GPU: ("list", "depth-first", "post-order"),
    Backend.TPU: ("list", "depth-first", "post-order"),
}
"""Schedulers that each platform tries; the least memory wins, ties go to the first (`DefaultMemoryScheduler`).

TPU's choice is not known: its compiler is closed, and its scheduler has more to choose from.
"""


@attrs.frozen(eq=False)
class Candidate:
    """The instruction order that one scheduler would choose, with its peak memory."""

    name: str
    """A key of `SCHEDULERS`, or `text` for the existing order of the module."""
    bytes: int
    """Peak of live bytes, including arguments and results, excluding fragmentation."""
    compared: int
    """Bytes that XLA compares (`MinimumMemoryForModule`), where in-place updates briefly count twice."""
    orders: Orders
    is_tried: bool
    """True if the platform's compiler tries this scheduler."""


@attrs.frozen
class MemoryScheduler(Pass):
    """Schedules every computation as the platform's memory scheduler would, and sets `is_scheduled`.

    CPU schedules breadth first. GPU tries a list scheduler, depth first and post-order, and uses the order with the
    lowest peak; then starts are moved up and dones down.
    """

    name: ClassVar[str] = "memory-scheduler"
    summary: ClassVar[str] = "Schedules the module as XLA's CPU or GPU compiler would."

    platform: str = ""
    """`cpu` or `gpu`; empty: as the text tells."""
    scheduler: str = ""
    """`list`, `depth-first`, `post-order` or `breadth-first`; empty: the platform's choice."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place. Raises ValueError for an unknown scheduler."""
        found = candidates(module, self.platform or None)
        best = (
            chosen(found)
            if not self.scheduler
            else next((c for c in found if c.name == self.scheduler), None)
        )
        if best is None:
            raise ValueError(f"no scheduler is named {self.scheduler}; there are {', '.join(SCHEDULERS)}")
        return PassResult.of({"moved": apply(module, best.orders), "scheduled": 1})


def schedule(module: Module, platform: str | None = None) -> Outcome:
    """Schedules a copy of the module as XLA's HloMemoryScheduler does.

    The existing order of instructions only breaks ties.

    Args:
        module: The module. It is not modified.
        platform: `cpu`, `gpu` or `tpu`. None (the default) detects it from the module text, or else assumes `cpu`.

    Returns:
        The scheduled copy, and a decision for each scheduler with its peak memory in bytes.

    Raises:
        MemoryModelError: The buffers cannot be determined.
        ValueError: The platform is unknown.
    """
    expect_module(module)
    copy = module.clone()
    found = candidates(copy, platform)
    best = chosen(found)
    with copy.transaction():
        apply(copy, best.orders)
    root = copy.entry.root.name
    decisions = []
    for candidate in found:
        if candidate.name == "text":
            continue
        what = f"{candidate.name} needs {candidate.bytes:,} bytes at its peak"
        if candidate is best:
            others = " and ".join(c.name for c in found if c.is_tried and c is not best)
            because = f"{what}; it is the only one tried"
            if others:
                because = f"{what} ({best.compared:,} by XLA's count), no more than {others}"
            decisions.append(Decision(root, "chosen order", because, (), "DefaultMemoryScheduler::Run"))
        else:
            tried = "it was tried" if candidate.is_tried else "this platform does not try it"
            difference = candidate.bytes - best.bytes
            decisions.append(
                Decision(root, f"order {candidate.name}", f"{what}, {difference:+,}: {tried}", (), "")
            )
    return Outcome(copy, tuple(decisions))


def schedules(module: Module, platform: str | None = None) -> tuple[Candidate, ...]:
    """Returns the instruction order and peak memory of each scheduler, and of the existing order.

    Arguments and errors are those of `schedule`.
    """
    return candidates(module, platform)


def chosen(found: Sequence[Candidate]) -> Candidate:
    """Returns the candidate that the platform's compiler uses."""
    return min((c for c in found if c.is_tried), key=lambda c: c.compared)


def candidates(module: Module, platform: str | None = None) -> tuple[Candidate, ...]:
    """Returns the orders of all schedulers for a module, which is not modified."""
    backend = platform_of(module, platform)
    rules = rules_of(backend)
    flow = analyse(module)
    pairs = in_place_pairs(backend)
    buffers = find_buffers(flow, pairs)
    sharing = Sharing(flow, pairs, rules.hint)
    sizes = Sizes(flow, lambda shape: rules.size_of(shape, 0))
    value_sizes = {v: sizes.of(v.shape) if v.shape is not None else 0 for v in flow.values}
    numbered = HeapBuffers(
        buffers,
        [max(value_sizes[value] for value in buffer) for buffer in buffers],
        {value: number for number, buffer in enumerate(buffers) for value in buffer},
    )
    counted = [v for v in flow.values if v.instruction is not None and v.instruction.opcode != "constant"]

    def most(orders: Orders) -> tuple[int, int]:
        """Bytes that live at once, and what XLA compares."""
        time = flatten(module, orders)
        find_live_ranges(flow, time, buffers)
        live = [v for v in counted if v.live_range is not None and v.instruction in time.times]
        events = simulate(live, numbered, flow, sharing).events
        return _live_bytes(events, numbered), _most_at_once(events, numbered)

    computations = [c for c in nonfusion_computations(module) if len(c)]
    found = []
    for name, scheduler in SCHEDULERS.items():
        orders = {c: scheduler(c, sizes) for c in computations}
        if backend is Backend.GPU:
            orders = {c: post_process(order) for c, order in orders.items()}
        found.append(Candidate(name, *most(orders), orders, name in TRIED[backend]))
    text: Orders = {c: list(c) for c in computations}
    found.append(Candidate("text", *most(text), text, False))
    return tuple(found)


def _live_bytes(events: Sequence[HeapEvent], buffers: HeapBuffers) -> int:
    """The most bytes that live at once: the size of a buffer, as long as one of those that share its place lives."""
    users: dict[Value, int] = {}
    root_of: dict[Value, Value] = {}
    size_of: dict[Value, int] = {}
    now = most = 0
    for event in events:
        value = event.value
        if event.kind == "alloc":
            root_of[value] = value
            users[value] = 1
            size_of[value] = buffers.sizes[buffers.number_of[value]]
            now += size_of[value]
        elif event.kind == "share" and event.shared_with is not None:
            root = root_of[value] = root_of.get(event.shared_with, event.shared_with)
            if not users.get(root):
                now += size_of.get(root, 0)
            users[root] = users.get(root, 0) + 1
        else:
            root = root_of.get(value, value)
            users[root] = users.get(root, 0) - 1
            if not users[root]:
                now -= size_of.get(root, 0)
        most = max(most, now)
    return most


def _most_at_once(events: Sequence[HeapEvent], buffers: HeapBuffers) -> int:
    """The most bytes that live at once, as XLA counts them when it compares schedules (`NoFragmentationStatsHeap`).

    A value that shares a place counts as one more, so that what is updated in place counts twice for a moment: there sharing
    is an allocation (`HeapAlgorithm::ShareWith`). Only where an operand that ends is written over is it freed before.
    """
    group: dict[Value, Value] = {}
    size_of: dict[Value, int] = {}

    def root(value: Value) -> Value:
        while (above := group.get(value, value)) is not value:
            group[value] = group.get(above, above)
            value = above
        return value

    first: dict[int, Value] = {}
    now = most = 0
    for event in events:
        value = event.value
        if event.kind == "free":
            now -= size_of[root(value)]
            continue
        number = buffers.number_of[value]
        own = root(first.setdefault(number, value))
        size_of.setdefault(own, buffers.sizes[number])
        group[value] = own
        if event.shared_with is not None:
            other = root(event.shared_with)
            if other is not own:
                size_of[other] = max(size_of[other], size_of[own])
                group[own] = other
        now += size_of[root(value)]
        most = max(most, now)
    return most


def apply(module: Module, orders: Orders) -> int:
    """Reorders the computations of a module, and marks it as scheduled. Returns the number of moved instructions."""
    moved = 0
    for computation, order in orders.items():
        before = list(computation)
        if before == list(order):
            continue
        moved += sum(a is not b for a, b in zip(before, order, strict=True))
        last = order[-1]
        end = computation.instructions[-1]
        if end is not last:
            last.move_before(end)
            end.move_before(last)
        following = last
        for instruction in reversed(order[:-1]):
            instruction.move_before(following)
            following = instruction
    module.attributes["is_scheduled"] = True
    return moved
