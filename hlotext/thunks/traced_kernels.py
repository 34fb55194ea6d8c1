"""Kernels of a GPU's trace that name no operation, as those of command buffers, joined with the thunks that launch them.

A graph's kernels carry their own names alone. The kernel of a fusion is named after it, unless an equal fusion's is used
again; libraries' kernels have names of their own. So kernels are joined by name where only one thunk can have launched
them, else by order between those, and what may be of several thunks is counted as that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from hlotext.proto.errors import ProtoError
from hlotext.proto.trace_events import Kernel
from hlotext.proto.traces import DeviceTime, OpTime, Trace, TracedModule
from hlotext.thunks.gpu_fusions import KERNEL, OLD_KERNEL
from hlotext.thunks.predicting import predict
from hlotext.thunks.thunk import Thunk, ThunkError

_NO_KERNELS = ("Done", "Wait", "Event", "Send", "Recv", "Id", "Infeed", "Outfeed")
"""Ends of the kinds of thunks that launch nothing."""


class _Step(NamedTuple):
    """A thunk that launches kernels whose operation the trace does not name."""

    operation: str
    kernel: str | None
    """The name of its kernel, unless it launches that of an equal fusion; None for what libraries launch."""
    executions: int | None
    """In one run; None if that is not known."""
    is_outermost: bool
    """False in loops and branches, whose kernels come in another order."""


def with_kernels_named(trace: Trace) -> Trace:
    """Assigns kernels without an operation name to operations by their predicted thunks, and returns the new trace.

    Kernels that remain unassigned are listed in the `notes` of its modules.
    """
    if not trace.unnamed:
        return trace
    steps: dict[int, list[_Step]] = {}
    for number, module in enumerate(trace.modules):
        try:
            steps[number] = list(_steps(module))
        except (ProtoError, ThunkError, ValueError):
            continue  # not for a GPU, or not scheduled: nothing says what it launches
    owners = Counter(name for own in steps.values() for name in {step.kernel for step in own if step.kernel})
    modules = list(trace.modules)
    for number, own in steps.items():
        names = {step.kernel for step in own if step.kernel}
        seen = {kernel.name for kernels in trace.unnamed.values() for kernel in kernels} & names
        if not seen:
            continue
        shared = {name for name in seen if owners[name] > 1}
        modules[number] = _joined(modules[number], own, trace.unnamed, shared)
    return attrs.evolve(trace, modules=tuple(modules))


def kernel_name(operation: str) -> str:
    """Returns the name that XLA gives to the kernel of an operation, in which characters that PTX does not allow become
    `_`.
    """
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in operation)


def _steps(traced: TracedModule) -> Iterator[_Step]:
    stack: list[tuple[Thunk, int | None, bool]] = [
        (thunk, 1, True) for thunk in reversed(predict(traced.module, platform="gpu").thunks)
    ]
    while stack:
        thunk, executions, is_outermost = stack.pop()
        if not thunk.children:
            if thunk.name and thunk.name not in traced.times and not thunk.kind.endswith(_NO_KERNELS):
                has_own = thunk.kind in (KERNEL, OLD_KERNEL)
                yield _Step(
                    thunk.name, kernel_name(thunk.name) if has_own else None, executions, is_outermost
                )
            continue
        inner, is_straight = executions, is_outermost
        if thunk.kind in ("kWhile", "kConditional"):
            trips = thunk.facts.get("trip_count") if thunk.kind == "kWhile" else None
            inner, is_straight = (
                executions * trips if executions is not None and trips is not None else None,
                False,
            )
        for label, sequence in reversed(thunk.children):
            times = None if label == "condition" else inner
            stack.extend((one, times, is_straight) for one in reversed(sequence))


def _joined(
    traced: TracedModule,
    steps: Sequence[_Step],
    unnamed: Mapping[str, tuple[Kernel, ...]],
    shared: set[str],
) -> TracedModule:
    joints = {device: _Device(steps, kernels, shared) for device, kernels in unnamed.items()}
    times = dict(traced.times)
    for operation in dict.fromkeys(step.operation for step in steps):
        devices = [
            DeviceTime(device, len(own), _picoseconds(own) / 1e12)
            for device, joint in joints.items()
            if (own := joint.found.get(operation))
        ]
        if devices:
            times[operation] = OpTime(tuple(sorted(devices, key=lambda one: (-one.seconds, one.device))))
    joined = sum(len(own) for joint in joints.values() for own in joint.found.values())
    notes = [f"{joined:,} kernels name no operation and were matched to thunks by name and order"]
    for is_own in (True, False):
        left = [kernel for joint in joints.values() for kernel in joint.left(is_own)]
        may_be = list(
            dict.fromkeys(
                step.operation
                for step in steps
                if (step.kernel is not None) is is_own and step.operation not in times
            )
        )
        if left and (is_own or may_be):
            what = "kernels" if is_own else "library kernels and copies"
            those = "several operations" + (f", including {', '.join(may_be[:5])}" if may_be else "")
            notes.append(
                f"{len(left):,} {what}, {_picoseconds(left) / 1e6:,.1f} us, may belong to {those}; excluded"
            )
    return attrs.evolve(traced, times=times, notes=(*traced.notes, *notes))


def _picoseconds(kernels: Iterable[Kernel]) -> int:
    return sum(kernel.last - kernel.first for kernel in kernels)


class _Device:
    """The kernels of one device, joined with the thunks."""

    def __init__(self, steps: Sequence[_Step], kernels: Sequence[Kernel], shared: set[str]) -> None:
        self.found: dict[str, list[Kernel]] = {}
        """The kernels of each operation, as far as that is sure."""
        self._steps = steps
        self._kernels = sorted(kernels, key=lambda kernel: kernel.first)
        self._owners: dict[str, list[_Step]] = {}
        for step in steps:
            if step.kernel is not None:
                self._owners.setdefault(step.kernel, []).append(step)
        self._shared = shared
        counts = Counter(kernel.name for kernel in kernels if kernel.name in self._owners)
        self._runs = self._runs_of(counts)
        self._is_sure = self._sure(counts)
        for kernel in self._kernels:
            if kernel.name in self._is_sure:
                self._add(self._owners[kernel.name][0], kernel)
        self._by_order(counts)

    def left(self, is_own: bool) -> list[Kernel]:
        """Kernels of which it is not sure whose they are: those with the name of an operation's, or the others."""
        known = {id(kernel) for own in self.found.values() for kernel in own}
        return [one for one in self._kernels if (one.name in self._owners) is is_own and id(one) not in known]

    def _add(self, step: _Step, kernel: Kernel) -> None:
        self.found.setdefault(step.operation, []).append(kernel)

    def _runs_of(self, counts: Counter[str]) -> int:
        """The runs, which are the count of most kernels that run once in each."""
        seen = Counter(
            count
            for name, count in counts.items()
            if len(self._owners[name]) == 1 and self._owners[name][0].executions == 1
        )
        most = max(seen.values(), default=0)
        return min((count for count, number in seen.items() if number == most), default=0)

    def _sure(self, counts: Counter[str]) -> set[str]:
        """The names of which one thunk alone can have launched all kernels."""
        is_complete = all(name in counts for name in self._owners)
        found = set()
        for name, count in counts.items():
            own = self._owners[name]
            if name in self._shared or len(own) > 1:
                continue
            expected = own[0].executions
            if is_complete or (expected is not None and count == self._runs * expected):
                found.add(name)
        return found

    def _by_order(self, counts: Counter[str]) -> None:
        """Joins what lies between kernels that are sure, where their order in each run is that of the thunks."""
        anchors = [
            number
            for number, step in enumerate(self._steps)
            if step.is_outermost and step.kernel in self._is_sure and counts[step.kernel or ""] == self._runs
        ]
        placed = [self.found[self._steps[number].operation] for number in anchors]
        line = [kernel.first for run in zip(*placed, strict=True) for kernel in run]
        if len(anchors) < 2 or line != sorted(line):
            return  # kernels of a graph ran side by side: their order says nothing
        starts = [kernel.first for kernel in self._kernels]
        for left, right, before, after in zip(anchors, anchors[1:], placed, placed[1:], strict=False):
            steps = self._steps[left + 1 : right]
            if not steps or not all(step.is_outermost for step in steps):
                continue
            gaps = [
                self._kernels[bisect_left(starts, a.first) + 1 : bisect_left(starts, b.first)]
                for a, b in zip(before, after, strict=True)
            ]
            self._fill(steps, gaps)

    def _fill(self, steps: Sequence[_Step], gaps: Sequence[Sequence[Kernel]]) -> None:
        """Joins the kernels between two that are sure, of all runs, with the thunks between them."""
        own = [step for step in steps if step.kernel is not None and step.kernel not in self._is_sure]
        others = [step for step in steps if step.kernel is None]
        named = [[one for one in gap if one.name in self._owners] for gap in gaps]
        if own and all(_fits(own, gap) for gap in named):
            for gap in named:
                for step, kernel in zip(own, gap, strict=True):
                    self._add(step, kernel)
        rest = [[one for one in gap if one.name not in self._owners] for gap in gaps]
        if len(others) == 1 and all(rest) and len({tuple(_names(gap)) for gap in rest}) == 1:
            for kernel in (one for gap in rest for one in gap):
                self._add(others[0], kernel)


def _fits(steps: Sequence[_Step], kernels: Sequence[Kernel]) -> bool:
    """True if these thunks can have launched these kernels one by one: a kernel is first its own thunk's."""
    names = list(_names(kernels))
    return len(names) == len(steps) and all(
        step.kernel not in names or names.index(step.kernel) == place for place, step in enumerate(steps)
    )


def _names(kernels: Iterable[Kernel]) -> Iterator[str]:
    return (kernel.name for kernel in kernels)
