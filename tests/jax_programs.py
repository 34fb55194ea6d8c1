"""Passes inside JAX's compiler, each case in a process of its own: `python -m tests.jax_programs CASE`."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def sine_to_cosine() -> None:
    import jax
    import numpy as np

    from hlotext import matchers as m
    from hlotext import rewrite
    from hlotext.interop.jax import from_jax, register_pass

    @rewrite.pattern(m.sine(m.op("x")))
    def rule(r: rewrite.Rewrite) -> Any:
        return r.b.cosine(r["x"])

    def change(module: Any) -> None:
        for computation in module.computations:  # the CPU compiler has fused by now
            rewrite.apply_rules(module, [rule], computations=[computation])

    x = np.linspace(0, 1, 8, dtype=np.float32)
    undo = register_pass(change, name="sine-to-cosine")
    y = jax.jit(lambda v: jax.numpy.sin(v) * 2)(x)
    assert np.allclose(y, 2 * np.cos(x)), y
    assert undo()
    z = jax.jit(lambda v: jax.numpy.sin(v) * 3)(x)
    assert np.allclose(z, 3 * np.sin(x)), z
    assert any(i.opcode == "sine" for i in from_jax(jax.jit(jax.numpy.sin), x).instructions())
    from_jax(jax.jit(jax.numpy.sin), x, stage="after").entry.root  # noqa: B018 - reads it


def donation() -> None:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext.interop.jax import register_pass

    seen = []

    def identity(module: Any) -> None:
        seen.append(str(module.attributes.get("input_output_alias")))

    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d"))
    step = jax.jit(lambda v: v * 2 + v.sum(), donate_argnums=0, out_shardings=sharding)
    x = np.arange(16, dtype=np.float32)
    plain = step.lower(jax.device_put(x, sharding)).compile()
    jax.clear_caches()
    register_pass(identity)
    given = jax.device_put(x, sharding)
    compiled = step.lower(given).compile()
    result = compiled(given)
    assert any("may-alias" in alias for alias in seen), seen
    assert given.is_deleted()
    assert np.allclose(result, x * 2 + x.sum())
    assert len(result.sharding.device_set) == 8
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in compiled.as_text()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in plain.as_text()


def transformer() -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from hlotext.interop.jax import register_pass
    from hlotext.rewrite import Pipeline, parse_passes

    def loss(p: Any, x: Any) -> Any:
        for w in p:
            q, k, v = x @ w["q"], x @ w["k"], x @ w["v"]
            a = jax.nn.softmax(q @ k.T / 4.0) @ v
            x = x + jax.nn.relu(a @ w["o"]) * 1.0
        return (x**2).mean()

    def step(p: Any, x: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(p, x)
        return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, gradient)

    rng = np.random.default_rng(0)
    p = [{n: rng.normal(size=(16, 16)).astype(np.float32) / 4 for n in "qkvo"} for _ in range(2)]
    x = rng.normal(size=(8, 16)).astype(np.float32)
    before, _ = jax.jit(step)(p, x)
    jax.clear_caches()
    runs = []

    def tracked(module: Any) -> None:
        runs.append(Pipeline(parse_passes("algsimp,dce")).run(module))

    register_pass(tracked, stage="pre_scheduler")
    after, _ = jax.jit(lambda a, b: step(a, b))(p, x)
    assert runs
    assert jnp.allclose(before, after, rtol=1e-6), (before, after)


def error() -> None:
    import jax

    from hlotext.interop.jax import register_pass

    def broken(module: Any) -> None:
        raise KeyError("no such thing")

    register_pass(broken, name="broken-pass")
    with pytest.raises(Exception, match="hlotext pass broken-pass: KeyError: 'no such thing'"):
        jax.jit(lambda v: v + 1)(1.0)


def executed() -> None:
    import hlotext as hlo
    from hlotext.interop.jax import assert_equivalent
    from hlotext.rewrite import Pipeline, parse_passes

    text = (
        "HloModule m, entry_computation_layout={(f32[10,20,30]{2,0,1})->f32[10,20,30]{2,0,1}}\n"
        "ENTRY e { x = f32[10,20,30]{2,0,1} parameter(0)  s = f32[10,20,30]{2,0,1} abs(x)\n"
        "ROOT a = f32[10,20,30]{2,0,1} negate(s) }"
    )
    module = hlo.parse(text)
    Pipeline(parse_passes("layout-normalization")).run(module)
    assert "f32[20,10,30]{2,1,0} negate" in str(module)
    assert_equivalent(hlo.parse(text), module, rtol=0)
    module.entry.root.operands[0].opcode = "abs"
    with pytest.raises(AssertionError, match="result 0 of m differs"):
        assert_equivalent(hlo.parse(text), module)


def kept_fields() -> None:
    """What text does not say, and donation, is in the proto that is handed back, too."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    from hlotext.interop import jax as interop

    found = []

    def compare(module: Any) -> None:
        found.append(module)

    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("d",)), PartitionSpec("d"))
    protos: list[bytes] = []
    original = interop.module_of_proto

    def recorded(proto: bytes) -> Any:
        protos.append(proto)
        return original(proto)

    interop.module_of_proto = recorded
    interop.register_pass(compare)
    step = jax.jit(lambda v: v * 2, donate_argnums=0, out_shardings=sharding)
    step.lower(jax.device_put(np.arange(16, dtype=np.float32), sharding)).compile()
    proto = protos[0]
    again = interop.proto_of_module(original(proto), proto)
    numbers = {number for number, _ in interop._fields(proto)}
    assert numbers <= {number for number, _ in interop._fields(again)}, numbers
    for number in (8, 12, 14, 15):
        kept = [[raw for n, raw in interop._fields(p) if n == number] for p in (proto, again)]
        assert kept[0] == kept[1], number


if __name__ == "__main__":
    globals()[sys.argv[1]]()
