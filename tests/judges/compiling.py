"""Compiles a file of programs so that the judges can tell what is true of them.

    python -m tests.judges.compiling PROGRAMS.py OUT [--target cpu|tpu|gpu] [--partitioner shardy|gspmd] [--only REGEX]

PROGRAMS.py has `PROGRAMS`, a dict from names to `(mesh, make)`: `mesh` is a dict of axes, `make(M)` gives a function, its
arguments, and, if wanted, a dict of options of `jax.jit`. `M.S(shape, dtype, *spec)` is an argument,
`M.constrain(x, *spec)` a sharding constraint, `M.sharding(*spec)` a sharding, `M.mesh` the mesh.

Each program is compiled twice into OUT/TARGET.PROGRAM.PARTITIONER: `plain`, as it is, with every pass dumped as text and
proto beside the compiler's log (`plain.log`: replacements, clones, passes, dumps), and `tagged`, where each operation has
an op_name of its own. TPU and GPU are compiled for ahead of time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

LOG = "hlo_computation=10,hlo_pass_pipeline=1,hlo_instruction=3,dump=1"
TOPOLOGIES = {"cpu": "cpu:8", "tpu": "v5e:2x4", "gpu": "h100:1x1x8"}
_TAG = re.compile(r"t\d+t/")


def untagged(op_name: str) -> str:
    """An op_name of a tagged compilation as the plain one has it."""
    return _TAG.sub("", op_name)


class Place:
    """Devices that a program is compiled for."""

    def __init__(self, mesh: dict[str, int], devices: list[Any]) -> None:
        import jax
        import numpy as np

        count = int(np.prod(list(mesh.values())))
        auto = (jax.sharding.AxisType.Auto,) * len(mesh)
        grid = np.array(devices[:count]).reshape(tuple(mesh.values()))
        self.mesh = jax.sharding.Mesh(grid, tuple(mesh), axis_types=auto)

    def sharding(self, *spec: Any) -> Any:
        import jax

        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(*spec))

    def S(self, shape: tuple[int, ...], dtype: Any = "float32", *spec: Any) -> Any:  # noqa: N802
        import jax

        return jax.ShapeDtypeStruct(shape, jax.numpy.dtype(dtype), sharding=self.sharding(*spec))

    def constrain(self, value: Any, *spec: Any) -> Any:
        import jax

        return jax.lax.with_sharding_constraint(value, self.sharding(*spec))


Made = tuple[Callable[..., Any], list[Any], dict[str, Any]]


def programs(path: Path) -> dict[str, tuple[dict[str, int], Callable[[Place], Any]]]:
    """The programs of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    found: dict[str, tuple[dict[str, int], Callable[[Place], Any]]] = module.PROGRAMS
    return found


def made(name: str, program: tuple[dict[str, int], Callable[[Place], Any]], target: str) -> Made:
    """A program's function under the program's name, its arguments and its options."""
    from corpus.programs.registry import devices_of

    mesh, make = program
    function, args, *rest = make(Place(mesh, devices_of(TOPOLOGIES[target])))
    with contextlib.suppress(AttributeError):
        function.__name__ = function.__qualname__ = name
    return function, list(args), dict(rest[0]) if rest else {}


def tag(lowered: Any) -> None:
    """Gives each operation an op_name of its own: `jit(f)/t12t/dot_general`."""
    from jaxlib.mlir import ir

    module, count = lowered.compiler_ir(), 0

    def visit(op: Any) -> None:
        nonlocal count
        for inner in (inner.operation for region in op.regions for block in region for inner in block):
            visit(inner)
            named = re.match(r'loc\("((?:[^"\\]|\\.)*)"[(]', str(inner.location))
            if named is None or inner.name.endswith("return") or not len(inner.results):
                continue
            head, _, last = named[1].rpartition("/")
            name = f"{head}/t{count}t/{last}" if head else f"t{count}t/{last}"
            inner.location = ir.Location.name(name, inner.location.child_loc, inner.context)
            count += 1

    with module.context:
        visit(module.operation)


@contextlib.contextmanager
def logged(path: Path) -> Iterator[None]:
    """Redirects the compiler's standard error to a file."""
    sys.stderr.flush()
    log, kept = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), os.dup(2)
    os.dup2(log, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(log)
        os.close(kept)


def environment(*, log: bool = True) -> None:
    """Sets the environment that JAX needs on import."""
    os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1", JAX_PLATFORMS="cpu")
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    ).strip()
    if log:
        os.environ.update(TF_CPP_MIN_LOG_LEVEL="0", TF_CPP_VMODULE=LOG)
        os.environ.update(TPU_MIN_LOG_LEVEL="0", TPU_STDERR_LOG_LEVEL="0", TPU_VMODULE=LOG)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judges.compiling")
    parser.add_argument("programs", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", default="cpu", choices=TOPOLOGIES)
    parser.add_argument("--partitioner", default="shardy", choices=("shardy", "gspmd"))
    parser.add_argument("--only", default="")
    asked = parser.parse_args(argv)
    environment()
    import jax

    jax.config.update("jax_use_shardy_partitioner", asked.partitioner == "shardy")
    failed = 0
    for name, program in programs(asked.programs).items():
        if not re.search(asked.only, name):
            continue
        folder = asked.out / f"{asked.target}.{name}.{asked.partitioner}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        about = {"mesh": program[0], "programs": str(asked.programs.resolve()), "program": name}
        (folder / "about.json").write_text(json.dumps(about | {"jax": jax.__version__}))
        try:
            for kind in ("plain", "tagged"):
                jax.clear_caches()
                function, args, options = made(name, program, asked.target)
                lowered = jax.jit(function, **options).lower(*args)
                if kind == "tagged":
                    tag(lowered)
                more: dict[str, Any] = {
                    "xla_dump_to": str(folder / kind),
                    "xla_dump_hlo_pass_re": ".*",
                    "xla_dump_hlo_as_text": True,
                    "xla_dump_hlo_as_proto": True,
                    "xla_dump_module_metadata": True,
                }
                more |= {"xla_gpu_autotune_level": 0} if asked.target == "gpu" else {}
                with logged(folder / f"{kind}.log"):
                    lowered.compile(compiler_options=more)
        except Exception as error:
            failed += 1
            print(f"{folder.name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            shutil.rmtree(folder)
            continue
        print(folder.name, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
