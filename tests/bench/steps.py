"""A dump folder of one real program with a text for every step, and what its views cost.

`python -m tests.bench.steps make FOLDER [--target cpu|tpu] [--layers N] [--steps M]` compiles the training step of a
transformer of N unrolled layers, its weights sharded over 8 devices (needs jax; for tpu libtpu, no device). With `--steps`
more steps follow the compiler's own until there are M: each renames one instruction, for good.
`python -m tests.bench.steps FOLDER` measures timeline, why of everything and of one name, and collectives, against parsing.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH, HEADS, LENGTH, WORDS = 256, 8, 128, 512


def make(folder: str, target: str = "tpu", layers: int = 8) -> None:
    """Compiles the program with every step dumped."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    import numpy as np
    from jax import numpy as jnp
    from jax.experimental import topologies
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    if target == "tpu":
        devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
    else:
        devices = jax.devices("cpu")
    mesh = Mesh(np.array(devices).reshape(2, 4), ("dp", "tp"), axis_types=(AxisType.Auto,) * 2)

    def shaped(shape: tuple[int, ...], *spec: str | None, dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, PartitionSpec(*spec)))

    layer = {
        "qkv": shaped((WIDTH, 3, HEADS, WIDTH // HEADS), None, None, "tp", None),
        "out": shaped((HEADS, WIDTH // HEADS, WIDTH), "tp", None, None),
        "up": shaped((WIDTH, 4 * WIDTH), "dp", "tp"),
        "down": shaped((4 * WIDTH, WIDTH), "tp", "dp"),
        "scale": shaped((WIDTH,), None),
    }
    weights = {"layers": [layer] * layers, "words": shaped((WORDS, WIDTH), "tp", None)}

    def block(x: Any, w: Any) -> Any:
        x = x + attention(x * w["scale"], w)
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    def attention(x: Any, w: Any) -> Any:
        q, k, v = jnp.moveaxis(jnp.einsum("btd,dshk->btshk", x, w["qkv"]), 2, 0)
        scores = jnp.einsum("bqhk,bthk->bhqt", q, k)
        mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        seen = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1)
        return jnp.einsum("bhqt,bthk,hkd->bqd", seen, v, w["out"])

    def loss(weights: Any, tokens: Any) -> Any:
        x = weights["words"][tokens]
        for one in weights["layers"]:
            x = block(x, one)
        logits = jax.nn.log_softmax(x @ weights["words"].T, -1)
        return -jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], -1).mean()

    def step(weights: Any, moments: Any, tokens: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, tokens)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, slopes)
        return jax.tree.map(lambda w, m: w - 0.1 * m, weights, moments), moments, value

    tokens = shaped((16, LENGTH), "dp", None, dtype=jnp.int32)
    options = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*"}
    jax.jit(step, donate_argnums=(0, 1)).lower(weights, weights, tokens).compile(compiler_options=options)


_STEP = re.compile(r"(.+?)\.(\d{4})\.(.+)\.after_(.+?)\.before_(.+)\.txt")
_DEFINED = re.compile(r"^  (?:ROOT )?%([\w.\-]+) = ", re.M)
_NAME = re.compile(r"%([\w.\-]+)")


def lengthen(folder: Path, steps: int) -> None:
    """Puts steps between those of the compiler, each of which renames one instruction, until there are so many."""
    found = {path: row for path in folder.glob("*.txt") if (row := _STEP.fullmatch(path.name))}
    own = sorted(found, key=lambda path: int(found[path][2]))
    others = [path for path in folder.glob("*after_optimizations*.txt") if path not in found]
    texts = [path.read_text(encoding="utf-8") for path in own]
    for path in own:
        path.unlink()
    names: dict[str, str] = {}

    def renamed(text: str) -> str:
        return _NAME.sub(lambda name: "%" + names.get(name[1], name[1]), text)

    number = 0
    for at, (path, text) in enumerate(zip(own, texts, strict=True)):
        head, _, pipeline, after, before = found[path].groups()
        left = (steps - len(own) - 2) * (at + 1) // len(own) - (
            number - at
        )  # two texts are no steps of passes
        (folder / f"{head}.{number:04d}.{pipeline}.after_{after}.before_{before}.txt").write_text(
            renamed(text)
        )
        number += 1
        defined = [name for name in _DEFINED.findall(text) if name not in names]
        for turn in range(left):
            if defined:
                one = defined[turn * len(defined) // left]
                names[one] = f"{one}.renamed.{number}"
            name = f"{head}.{number:04d}.{pipeline}.after_rename-{turn}.before_{before}.txt"
            (folder / name).write_text(renamed(text))
            number += 1
    for path in others:
        path.write_text(renamed(path.read_text(encoding="utf-8")))


def measure(folder: str) -> None:
    """Processor time of each view, in a compilation of its own; where it is short, the least of five."""
    import hlotext as hlo
    from hlotext import dumps
    from hlotext.dumps.collectives.steps import partitioning_of

    def opened() -> dumps.Compilation:
        return max(dumps.open(folder).compilations, key=lambda one: len(one.steps))

    def timed(what: str, run: Callable[[], object], of: float | None = None, times: int = 1) -> float:
        took = float("inf")
        for _ in range(times):
            start = time.process_time()
            run()
            took = min(took, time.process_time() - start)
        more = f"{took / of:6.2f} x" if of else ""
        print(f"{what:42} {took:8.2f} s {more}")
        return took

    c = opened()
    sizes = sum(step.file.size for step in c.steps)
    print(f"{len(c.steps)} steps, {sizes / 1e6:.1f} MB; final HLO {c.steps[-1].file.size / 1e6:.2f} MB")
    around = partitioning_of(c)
    needed = [step for step in (c.first, c.last) if step is not None]
    if around is not None:
        needed += [around.before, around.after]
    texts = [step.file.text() for step in needed]
    for text in texts:
        hlo.parse(text).materialize()  # once before, so that grammar and caches are there
    parsing = timed(
        "parsing the texts around partitioning",
        lambda: [hlo.parse(t).materialize() for t in texts],
        times=5,
    )
    print(f"{'':42} {sum(map(len, texts)) / 1e6:8.2f} MB")
    timed("collectives", lambda: opened().collectives(), parsing, 5)
    timed(
        "collectives with suggestions",
        lambda: [one.suggestions for one in opened().collectives()],
        parsing,
        5,
    )
    timed("timeline", lambda: list(opened().timeline()))
    c = opened()
    assert c.after is not None
    names = [one.name for one in c.after.instructions()]
    timed("identity", lambda: c.identity)
    timed("why of one, once read", lambda: c.why(names[len(names) // 2]))
    timed(f"why of all {len(names):,}", lambda: dumps.causes.causes(c, names))
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")


def main(words: list[str]) -> None:
    if words[:1] == ["make"]:
        options = dict(zip(words[2::2], words[3::2], strict=True))
        make(words[1], options.get("--target", "tpu"), int(options.get("--layers", "8")))
        if "--steps" in options:
            lengthen(Path(words[1]), int(options["--steps"]))
        print(f"{len(list(Path(words[1]).iterdir()))} files in {words[1]}")
    else:
        measure(words[0])


if __name__ == "__main__":
    main(sys.argv[1:])
