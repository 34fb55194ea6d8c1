"""Modules executed on jaxlib's CPU client, in a process of its own, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlotext import execution
from hlotext.execution import NotExecutable, random_arrays
from hlotext.ir.nodes.module import Module


def run(module: Module, *arrays: Any, timeout: float = 120.0) -> list[np.ndarray[Any, Any]]:
    """Runs a module of any stage on jaxlib's CPU client and returns its results; a tuple is flattened.

    It is compiled and run in a child process, which may die without harm. `hlotext.execution.run` has more options:
    arguments from a seed, timing, several devices. Raises NotExecutable, with the reason.
    """
    return execution.run(module, arrays, timeout=timeout).results


def random_inputs(module: Module, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Random arguments for a module's entry: small whole numbers, normal floats, either truth value.

    Raises NotExecutable for parameters that are not arrays.
    """
    shapes = [parameter.shape for parameter in module.entry.parameters]
    if None in shapes:
        raise NotExecutable("the shape of a parameter is not known")
    return random_arrays([shape for shape in shapes if shape is not None], seed)


def assert_equivalent(
    before: Module,
    after: Module,
    inputs: str | Sequence[Any] = "random",
    *,
    rtol: float = 1e-5,
    seed: int = 0,
) -> None:
    """Executes two modules on the same arguments. Raises AssertionError where results differ.

    Whole numbers and truth values must be equal, floats within `rtol` of the largest value (or of what the type resolves),
    with 0 to the bit.
    """
    arrays = random_inputs(before, seed) if isinstance(inputs, str) else inputs
    wanted, found = run(before, *arrays), run(after, *arrays)
    assert len(wanted) == len(found), f"{len(wanted)} results became {len(found)}"
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {number} is {b.dtype}{b.shape}"
        assert _agree(a, b, rtol), (
            f"result {number} of {before.name} differs: {a.ravel()[:5]} and {b.ravel()[:5]}"
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
