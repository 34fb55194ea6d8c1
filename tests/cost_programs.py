"""Programs whose costs follow from formulas: run as a script, prints the HLO of each before optimization as JSON."""

from __future__ import annotations

import json
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

LAYERS, BATCH, LENGTH, WIDTH, HIDDEN, VOCABULARY, HEADS = 3, 2, 16, 32, 128, 64, 4


def chain(x):
    return lax.fori_loop(0, 7, lambda _, y: y @ x, x)


def nested(x):
    def outer(y, _):
        return lax.fori_loop(0, 5, lambda _, z: z @ x, y), None

    return lax.scan(outer, x, None, length=6)[0]


def layer(x, weights):
    qkv, out, up, down = weights
    q, k, v = (part.reshape(BATCH, LENGTH, HEADS, -1) for part in jnp.split(x @ qkv, 3, -1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    x = x + mixed.reshape(BATCH, LENGTH, WIDTH) @ out
    return x + jax.nn.relu(x @ up) @ down


def transformer(step):
    def loss(weights, head, x):
        x, _ = lax.scan(lambda y, w: (step(y, w), None), x, weights)
        return jnp.sum(jax.nn.log_softmax(x @ head))

    return jax.grad(loss, (0, 1, 2))


WEIGHTS = tuple(
    jnp.zeros((LAYERS, *shape))
    for shape in ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH))
)
TRAINED = (WEIGHTS, jnp.zeros((WIDTH, VOCABULARY)), jnp.zeros((BATCH, LENGTH, WIDTH)))


def experts(x, router, up, down):
    gate = jax.nn.one_hot(jnp.argmax(x @ router, -1), router.shape[1])
    sent = jnp.einsum("te,td->etd", gate, x)
    made = jnp.einsum("etf,efd->etd", jax.nn.relu(jnp.einsum("etd,edf->etf", sent, up)), down)
    return jnp.einsum("te,etd->td", gate, made)


def convolved(x, k):
    return lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("dp", "tp"))
LINE = Mesh(np.array(jax.devices()), ("x",))


def tensor_parallel(x, up, down):
    return lax.psum(jax.nn.relu(x @ up) @ down, "tp")


def fully_sharded(x, weights):
    def step(y, w):
        return y @ lax.all_gather(w, "x", tiled=True), None

    return lax.scan(step, x, weights)[0]


def pipeline(x, w):
    def step(y, _):
        return lax.ppermute(y @ w[0], "x", [(i, (i + 1) % 8) for i in range(8)]), None

    return lax.scan(step, x, None, length=8 + 4 - 1)[0]


def expert_parallel(x):
    there = lax.all_to_all(x, "x", 0, 0, tiled=True)
    return lax.all_to_all(there * 2, "x", 0, 0, tiled=True)


def ring_attention(q, k, v):
    def step(carry, _):
        k, v, total = carry
        total = total + (q @ k.T) @ v
        around = [(i, (i + 1) % 8) for i in range(8)]
        return (lax.ppermute(k, "x", around), lax.ppermute(v, "x", around), total), None

    return lax.scan(step, (k, v, q * 0), None, length=8)[0][2]


def accumulated(w, xs):
    def step(total, x):
        return total + x.T @ (x @ w), None

    total = lax.scan(step, lax.pcast(w * 0, "x", to="varying"), xs)[0]
    mine = lax.psum_scatter(total, "x", tiled=True)
    return lax.all_gather(mine, "x", tiled=True)


def spread(function, mesh, inputs, output):
    return jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=output, check_vma=False)


def zeros(*shape):
    return jnp.zeros(shape)


PROGRAMS = {
    "chain": (chain, (zeros(16, 16),)),
    "nested": (nested, (zeros(16, 16),)),
    "transformer": (transformer(layer), TRAINED),
    "transformer_remat": (transformer(jax.checkpoint(layer)), TRAINED),
    "experts": (experts, (zeros(32, 16), zeros(16, 4), zeros(4, 16, 24), zeros(4, 24, 16))),
    "convolved": (convolved, (zeros(2, 9, 9, 3), zeros(3, 3, 3, 5))),
    "tensor_parallel": (
        spread(tensor_parallel, MESH, (P("dp", None), P(None, "tp"), P("tp", None)), P("dp", None)),
        (zeros(16, 32), zeros(32, 64), zeros(64, 32)),
    ),
    "fully_sharded": (
        spread(fully_sharded, LINE, (P("x"), P(None, "x")), P("x")),
        (zeros(64, 32), zeros(5, 32, 32)),
    ),
    "pipeline": (spread(pipeline, LINE, (P(), P("x")), P("x")), (zeros(16, 32), zeros(8, 32, 32))),
    "expert_parallel": (spread(expert_parallel, LINE, P("x"), P("x")), (zeros(64, 32),)),
    "ring_attention": (spread(ring_attention, LINE, (P("x"),) * 3, P("x")), (zeros(64, 16),) * 3),
    "accumulated": (
        spread(accumulated, LINE, (P(), P(None, "x")), P()),
        (zeros(32, 16), zeros(6, 64, 32)),
    ),
}

if __name__ == "__main__":
    texts = {
        name: jax.jit(function).lower(*arguments).compiler_ir("hlo").as_hlo_text()
        for name, (function, arguments) in PROGRAMS.items()
    }
    print(json.dumps(texts))
