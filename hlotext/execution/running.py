"""One module executed, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from hlotext.analysis.formatting import pluralize
from hlotext.execution.client import Arrays, Runner
from hlotext.execution.errors import NotExecutable
from hlotext.execution.inputs import device_arrays
from hlotext.execution.plain_text import PlainModule, plain
from hlotext.ir.nodes.module import Module


@attrs.frozen(eq=False)  # arrays have no truth
class Execution:
    """Arguments and results of an executed module."""

    arguments: Arrays
    """The arguments; with several devices, stacked along a new first dimension."""
    results: Arrays
    """The results with tuples flattened; with several devices, stacked along a new first dimension."""
    seconds: float
    """Run time on this CPU, which says nothing about other devices."""
    devices: int
    plain: PlainModule
    """The converted module that was executed."""


def run(
    module: Module,
    arguments: Sequence[Any] | None = None,
    *,
    seed: int = 0,
    wide: bool = False,
    devices: int | None = None,
    timeout: float = 120.0,
) -> Execution:
    """Executes a module of any stage and platform on jaxlib's CPU client, in a child process that may crash.

    Args:
        module: The module. Backend-specific instructions are expanded if their semantics are known, otherwise removed.
        arguments: Arrays for the parameters of the entry, with tuples flattened. None (the default) uses random arrays.
            With several devices, either all get the same array, or each gets its own, stacked along a new first
            dimension. Random arguments differ between devices unless the parameter is replicated by its sharding or by
            `parameter_replication`, or is an integer or boolean scalar without a sharding, which may control loops.
        seed: Seed of the random arguments.
        wide: Widen floats narrower than f32 to f32.
        devices: Number of devices; use 1 for a program before partitioning. None (the default) uses the number in the
            header. For module text without such a number, give the number of partitions. A program with `shard_map`
            runs on the devices of its mesh, all with the same arguments.
        timeout: Seconds for compilation and execution together.

    Returns:
        The arguments and results.

    Raises:
        NotExecutable: The module cannot be executed. The message gives the reason.
    """
    text = plain(module, wide=wide, devices=devices)
    if arguments is None:
        given = device_arrays(text, seed)
    else:
        given = _stacked(text, [np.asarray(one) for one in arguments])
    with Runner(text.devices, timeout) as runner:
        ran = runner.run(text, [given])
    if ran.error is not None:
        raise NotExecutable(f"{module.name}: {ran.error}")
    return Execution(given, ran.results[0], ran.seconds[0], text.devices, text)


def _stacked(text: PlainModule, arrays: Arrays) -> Arrays:
    """Given arguments, for each device. Raises NotExecutable for what the parameters do not take."""
    if len(arrays) != len(text.taken):
        raise NotExecutable(f"the program takes {pluralize(len(text.taken), 'array')}, not {len(arrays)}")
    found = []
    for number, (array, shape) in enumerate(zip(arrays, text.taken, strict=True)):
        sizes = (text.devices, *shape.dimensions) if text.devices > 1 else shape.dimensions
        if text.devices > 1 and array.shape == shape.dimensions:
            array = np.broadcast_to(array, sizes)
        if (array.shape, array.dtype) != (sizes, shape.element_type.dtype):
            each = f", for all or for each of {text.devices} devices" if text.devices > 1 else ""
            dtype = shape.element_type.dtype
            convert = f"; array.astype({dtype.name!r}) converts it" if array.shape == sizes else ""
            raise NotExecutable(
                f"argument {number} is {shape}{each}, not {array.dtype}{list(array.shape)}{convert}"
            )
        found.append(array)
    return found
