"""Fifty builds of a program as JAX compiles them, for the nightly page: `python -m tests.nightly_builds DIR [BUILDS]`.

Each build is a folder with the final modules of two models, compiled for eight devices of the CPU from a source that
changes in ways that no figure shows: lines move, a constant is another. Two changes are worse: from build 20 on the
step returns the activations of all layers, which then live to its end; from build 35 on a constraint replicates what
was sharded, which takes an all-gather. Three builds are broken: a text that ends early, an empty one, one that is no
text. With fewer builds they are at the same parts of the way. `test_nightly.py` reads them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import attrs

BUILDS = 50


@attrs.frozen
class Plan:
    """Builds, and what is planted in them."""

    builds: int = BUILDS

    @property
    def keeps(self) -> int:
        """The first build whose step returns activations."""
        return self._at(0.4)

    @property
    def gathers(self) -> int:
        """The first build with the all-gather."""
        return self._at(0.7)

    @property
    def broken(self) -> dict[int, str]:
        """Builds that cannot be read, and why."""
        return {self._at(0.14): "cut", self._at(0.46): "empty", self._at(0.82): "bytes"}

    def _at(self, share: float) -> int:
        return round(share * self.builds)


_PROGRAM = '''\
"""The model of build {build}."""
{filler}
import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

RATE = {rate}


def layer(h, w):
    """Two products and what is between."""
    u = jnp.tanh(h @ w["up"])
    return h + jax.nn.gelu(u) @ w["down"]


def apply(weights, x):
    """All layers, and what each gave."""
    seen = []
    for w in weights:
        x = layer(x, w)
        seen.append(jnp.repeat(x, 4, axis=1) * 0.5)
    return x, seen


def loss(weights, x, y):
    """Mean square."""
    h, seen = apply(weights, x)
    {constraint}
    return jnp.mean((h - y) ** 2), seen


def train_step(weights, x, y):
    """One step of descent."""
    (value, seen), grads = jax.value_and_grad(loss, has_aux=True)(weights, x, y)
    return {result}, jax.tree.map(lambda w, g: w - RATE * g, weights, grads)


def eval_step(weights, x):
    """Forward pass of the model as it is served."""
    return jax.nn.softmax(apply(weights, x)[0])
'''


def name_of(build: int) -> str:
    """The name of a build."""
    return f"b{build:02}"


def program(build: int, plan: Plan) -> str:
    """The source of a build."""
    return _PROGRAM.format(
        build=build,
        filler="\n".join(f"# note {n}" for n in range(build % 7)),
        rate=f"{1e-3 * (1 + build % 5):g}",
        result="(value, jnp.stack(seen))" if build >= plan.keeps else "value",
        constraint="h = jax.lax.with_sharding_constraint(h, P())" if build >= plan.gathers else "h = h * 1.0",
    )


def broken(text: str, how: str) -> bytes:
    """Truncated text."""
    return {"cut": text[: len(text) // 3].encode(), "empty": b"", "bytes": bytes(range(256)) * 9}[how]


def main() -> None:
    folder, plan = Path(sys.argv[1]), Plan(*map(int, sys.argv[2:]))
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(8), ("data",))

    def spec(shape: tuple[int, ...], *axes: str | None) -> Any:
        return jax.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, P(*axes)))

    weights = [{"up": spec((128, 512)), "down": spec((512, 128))} for _ in range(4)]
    x = spec((256, 128), "data")
    for build in range(1, plan.builds + 1):
        place = folder / "source" / "model.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(program(build, plan))
        found: dict[str, Any] = {}
        exec(compile(place.read_text(), str(place), "exec"), found)
        out = folder / "builds" / name_of(build)
        out.mkdir(parents=True, exist_ok=True)
        with jax.set_mesh(mesh):
            for name, arguments in (("train_step", (weights, x, x)), ("eval_step", (weights, x))):
                text = jax.jit(found[name]).lower(*arguments).compile().as_text()
                data = text.encode()
                if name == "train_step" and build in plan.broken:
                    data = broken(text, plan.broken[build])
                (out / f"{name}.after_optimizations.txt").write_bytes(data)


if __name__ == "__main__":
    main()
