"""The corpus's programs run with every module taken through `Module` and back on its way: `python -m tests.proto_programs`.

Prints a line for each program: its name, and `equal` or what went wrong. Each is compiled and run twice on the CPU.
"""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def arguments(shapes: Any) -> Any:
    """Small random values of these shapes, laid out as the program wants them."""
    import jax
    import numpy as np

    generator = np.random.default_rng(0)

    def one(shape: Any) -> Any:
        dtype = np.dtype(shape.dtype)
        if dtype.kind == "b":
            values = generator.integers(0, 2, shape.shape).astype(bool)
        elif jax.numpy.issubdtype(dtype, jax.numpy.integer):
            values = generator.integers(0, 3, shape.shape).astype(dtype)
        else:
            values = generator.uniform(0.1, 1, shape.shape).astype(dtype)
        return jax.device_put(values, shape.sharding)

    return jax.tree.map(one, shapes)


def run(program: Any) -> tuple[list[bytes], int]:
    """The results of one program as bytes, and how many modules the pass saw."""
    import jax
    import numpy as np

    from corpus.programs.registry import Place
    from hlotext.interop.jax import register_pass

    seen: list[str] = []

    def change(module: Any) -> None:
        seen.append(module.name)
        module.attributes["frontend_attributes"] = {"seen": "1"}

    place = Place("cpu", program.topologies_on("cpu")[0])
    work = program.build(place)
    found: list[list[bytes]] = []
    for is_changed in (False, True):
        undo = register_pass(change, name="through protos") if is_changed else None
        jax.clear_caches()
        values = arguments(list(work.arguments))  # a program may be given them to keep
        results = jax.jit(work.function, **work.options)(*values)
        found.append([np.asarray(result).tobytes() for result in jax.tree.leaves(results)])
        if undo is not None:
            undo.remove()
    return (found[1] if found[0] == found[1] else []), len(seen)


SIZED_TO_RUN = frozenset({"control", "linear", "memories", "models", "parallel", "types", "wasteful"})
"""The chapters of the corpus whose programs are small; those that lint is judged on have the sizes of real ones."""
LEFT_OUT = {
    "rng_uniform": "XLA's generator for it goes on from run to run",
    "waste_lookup_loses_batch": "its arrays take 20 GB when it runs",
    "waste_unknown_kernel": "it calls a kernel that is only a name",
}


def main() -> None:
    import warnings

    import jax

    from corpus.programs import REGISTRY

    warnings.simplefilter("ignore")
    for program in REGISTRY.values():
        if program.build.__module__.rpartition(".")[2] not in SIZED_TO_RUN:
            continue
        if "cpu" not in program.platforms or program.devices > 8 or program.flags or program.name in LEFT_OUT:
            continue
        try:
            for name, value in program.config.items():
                jax.config.update(name, value)
            results, seen = run(program)
            word = "equal" if results and seen else "differs" if seen else "not seen"
        except Exception as error:
            word = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
        finally:
            jax.config.update("jax_enable_x64", False)
        print(program.name, word, flush=True)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
