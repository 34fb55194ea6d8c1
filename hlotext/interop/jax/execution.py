"""Executes modules on jaxlib's CPU client, in a child process, and compares their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotext import execution
from hlotext.analysis.devices import devices_of
from hlotext.execution import NotExecutable, random_arrays
from hlotext.execution.equivalence import other_devices
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module


def run(module: Module, *arrays: Any, timeout: float = 120.0) -> list[np.ndarray[Any, Any]]:
    """Executes a module of any stage on jaxlib's CPU client and returns its results, with tuples flattened.

    Compilation and execution happen in a child process, so a crash does no harm. `hlotext.execution.run` has more
    options: arguments from a seed, timing, several devices.

    Args:
        module: The module.
        *arrays: The arguments, with tuples flattened.
        timeout: Seconds for compilation and execution together.

    Raises:
        NotExecutable: The module cannot be executed, or crashes or exceeds the timeout. The message gives the reason.
    """
    return execution.run(module, arrays, timeout=timeout).results


def random_inputs(module: Module, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Creates random arguments for a module's entry: small integers, normally distributed floats, and booleans.

    The arguments are for one device; with several devices, `run` passes them to each. Equal seeds give equal arguments.
    Raises NotExecutable for parameters that are not static arrays, and for more than 2 GiB in total.
    """
    expect_module(module)
    shapes = [parameter.shape for parameter in module.entry.parameters]
    if None in shapes:
        raise NotExecutable("the shape of a parameter is unknown")
    return random_arrays([shape for shape in shapes if shape is not None], seed)


def assert_equivalent(
    before: Module,
    after: Module,
    inputs: str | Sequence[Any] = "random",
    *,
    rtol: float = 1e-5,
    seed: int = 0,
    devices: int | None = None,
) -> None:
    """Executes two modules with the same arguments, and asserts that their results agree.

    Integers and booleans must be equal. With several devices, each gets different random arguments (see
    `hlotext.execution.run`), and results are compared device by device.

    Args:
        before: The module before a change.
        after: The module after the change.
        inputs: The arguments, with tuples flattened, or `random`.
        rtol: Tolerance of floats, relative to the largest finite value of the result; a few units of the type's
            resolution are always allowed. 0 compares bits.
        seed: Seed of the random arguments.
        devices: Number of devices; 1 executes programs before partitioning as they are. None uses the modules' own.

    Raises:
        AssertionError: Results, their types or the numbers of devices differ.
        NotExecutable: A module cannot be executed.
    """
    counts = [devices or devices_of(module).total or 1 for module in (before, after)]
    assert counts[0] == counts[1], other_devices(*counts)
    ran = execution.run(before, None if isinstance(inputs, str) else inputs, seed=seed, devices=devices)
    wanted, found = ran.results, execution.run(after, ran.arguments, devices=devices).results
    assert len(wanted) == len(found), f"{len(wanted)} results became {len(found)}"
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        each = f" for each of {ran.devices} devices" if ran.devices > 1 else ""
        had, has = (f"{one.dtype}{list(one.shape[ran.devices > 1 :])}" for one in (a, b))
        assert had == has, f"result {number} is {has}{each}, and was {had}"
        for device in range(ran.devices):
            x, y = (a[device, ...], b[device, ...]) if each else (a, b)
            place = f" on device {device}" if each else ""
            assert _agree(x, y, rtol), (
                f"result {number} of {before.name} differs{place}: {x.ravel()[:5]} and {y.ravel()[:5]}"
            )


def _agree(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], rtol: float) -> bool:
    import ml_dtypes

    if a.tobytes() == b.tobytes():
        return True
    if not rtol or a.dtype.kind in "biu" or "int" in a.dtype.name:
        return False
    wide: Any = np.complex128 if a.dtype.kind == "c" else np.float64
    resolution = 0.0 if a.dtype.kind == "c" else float(ml_dtypes.finfo(a.dtype).eps)  # type: ignore[no-untyped-call]
    x, y = a.astype(wide), b.astype(wide)
    finite = np.abs(x[np.isfinite(x)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(x, y, rtol=0, atol=scale * max(rtol, 4 * resolution), equal_nan=True))
