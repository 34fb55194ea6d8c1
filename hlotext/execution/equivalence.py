"""Modules before and after a change, executed on the same arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from hlotext.analysis.formatting import pluralize
from hlotext.execution.client import Arrays, Runner
from hlotext.execution.comparing import device_difference
from hlotext.execution.errors import NotExecutable
from hlotext.execution.inputs import device_arrays
from hlotext.execution.plain_text import PlainModule, plain
from hlotext.ir.arguments import caller_level
from hlotext.ir.nodes.module import Module

TOLERANCE = 0.01
"""Relative differences that other roundings make."""


def largest_difference(
    before: Module, after: Module, *, seed: int = 0, devices: int | None = None, timeout: float = 120.0
) -> float:
    """Returns the largest relative difference between the results of two modules on random arguments.

    Floats narrower than f32 are widened. With several devices, each gets different arguments (see `execution.run`), and
    results are compared device by device. The result is infinite if arguments or results have different types.

    Args:
        before: The module before a change.
        after: The module after the change.
        seed: Seed of the random arguments.
        devices: Number of devices; 1 executes programs before partitioning as they are. None uses the modules' own.
        timeout: Seconds for each module.

    Raises:
        NotExecutable: A module cannot be executed. The message gives the reason.
    """
    with Reference(before, seed=seed, devices=devices, timeout=timeout) as reference:
        return reference.distance(after)


class Reference:
    """Reference results of a module, to compare others with, all in one child process. A context manager."""

    def __init__(
        self, module: Module, *, seed: int = 0, devices: int | None = None, timeout: float = 120.0
    ) -> None:
        """Executes the module. Raises NotExecutable."""
        text = plain(module, wide=True, devices=devices)
        self._taken, self._devices, self._asked = text.taken, text.devices, devices
        self._inputs = [device_arrays(text, seed)]
        self._runner = Runner(text.devices, timeout)
        try:
            self._results = self._run(text)
        except BaseException:
            self._runner.__exit__()
            raise

    def __enter__(self) -> Reference:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.__exit__()

    def __reduce__(self) -> tuple[object, ...]:
        """Raises TypeError: there is no copy of a process."""
        raise TypeError("a reference owns a child process and its files; create one where it is needed")

    def distance(self, module: Module) -> float:
        """Returns the largest relative difference between this module's results and those of another one.

        Infinity if the parameters or the number of results differ. Raises NotExecutable if the other module cannot be
        executed or runs on another number of devices.
        """
        text = plain(module, wide=True, devices=self._asked)
        if text.devices != self._devices:
            raise NotExecutable(other_devices(self._devices, text.devices))
        if text.taken != self._taken:
            return float("inf")
        theirs = self._run(text)
        if len(theirs) != len(self._results):
            return float("inf")
        pairs = zip(self._results, theirs, strict=True)
        return max((device_difference(a, b, self._devices) for a, b in pairs), default=0.0)

    def _run(self, text: PlainModule) -> Arrays:
        ran = self._runner.run(text, self._inputs)
        if ran.error is not None:
            raise NotExecutable(ran.error)
        return ran.results[0]


def other_devices(before: int, after: int) -> str:
    """Returns the reason why modules that run on different numbers of devices are not compared."""
    return (
        f"one runs on {pluralize(before, 'device')}, the other on {pluralize(after, 'device')}; devices=1 runs both as "
        "before partitioning"
    )


def first_change(
    before: Module, after: Module, count: int, after_so_many: Callable[[int | None], tuple[Module, str]]
) -> str | None:
    """Finds the first of `count` rewrites that changed a result. Returns a sentence about it; None if the results
    agree.

    `after_so_many` returns the module after the first n rewrites, and the name of the nth. Found by bisection, in about
    log2(count) runs. If a module cannot be executed, warns and returns None.
    """
    try:
        with Reference(before) as reference:
            if reference.distance(after) <= TOLERANCE:
                return None
            return _found(reference, before.name, count, after_so_many)
    except NotExecutable as error:
        warnings.warn(
            f"{before.name} was not verified by execution: {error}", RuntimeWarning, stacklevel=caller_level()
        )
        return None


def _found(
    reference: Reference, name: str, count: int, after_so_many: Callable[[int | None], tuple[Module, str]]
) -> str:
    good, bad, far = 0, count, ""
    while bad - good > 1 or not far:
        middle = (good + bad) // 2 if bad - good > 1 else bad
        changed, last = after_so_many(middle)
        try:
            distance = reference.distance(changed)
            said = f"the largest relative difference is {distance:.2g}"
        except NotExecutable as error:
            distance, said = float("inf"), f"it does not run: {error}"
        if distance <= TOLERANCE and middle < bad:
            good = middle
        else:
            bad, far = middle, f"{last}: {said}"
    return f"{name} computes a different result after rewrite {bad} of {count}, {far}"
