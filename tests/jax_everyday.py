"""Sixty ordinary programs for what passes do inside JAX's compiler: each a jitted function with its arguments.

Values are small, so that another order of additions changes little, and every program runs on eight CPU devices or one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Program = Callable[[], tuple[Any, tuple[Any, ...]]]
"""Gives a jitted function and its arguments."""

PROGRAMS: dict[str, Program] = {}


def program(make: Program) -> Program:
    """Adds a program under its name."""
    PROGRAMS[make.__name__] = make
    return make


def floats(*sizes: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Normal numbers of standard deviation one half."""
    return np.asarray(np.random.default_rng(seed).normal(size=sizes) / 2, np.float32)


def ints(*sizes: int, seed: int = 0, limit: int = 16) -> np.ndarray[Any, Any]:
    """Numbers below a limit."""
    return np.random.default_rng(seed).integers(0, limit, size=sizes, dtype=np.int32)


def simple(name: str, function: Callable[..., Any], *arguments: Any, **settings: Any) -> None:
    """Adds a function with its arguments; it is jitted anew for each use, so that nothing is compiled already."""

    def make() -> tuple[Any, tuple[Any, ...]]:
        def call(*given: Any) -> Any:
            return function(*given)

        call.__name__ = name  # the module is called after it
        return jax.jit(call, **settings), arguments

    PROGRAMS[name] = make


# ---- arrays

simple(
    "elementwise",
    lambda x, y: jnp.tanh(x * y) + jnp.sin(x) - x / (1 + y * y),
    floats(64, 32),
    floats(64, 32, seed=1),
)
simple("softmax", lambda x: jax.nn.softmax(x * 3, axis=-1), floats(16, 33))
simple(
    "layer_norm",
    lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5),
    floats(8, 64),
)
simple("same_twice", lambda x: (jnp.sin(x), jnp.sin(x) + 0, x * 1, x), floats(8, 8))
simple(
    "zeros_and_ones",
    lambda x: (jnp.zeros_like(x), jnp.zeros_like(x), jnp.ones_like(x), x + 0 * x),
    floats(4, 8),
)
simple("matmul_chain", lambda a, b, c: jax.nn.relu(a @ b) @ c, floats(16, 24), floats(24, 32), floats(32, 8))
simple(
    "einsums",
    lambda a, b: (jnp.einsum("bij,bjk->bik", a, b), jnp.einsum("bij,bjk->ki", a, b)),
    floats(3, 8, 5),
    floats(3, 5, 7),
)
simple("transposes", lambda x: (x.T, x.T.T, jnp.transpose(x[None], (2, 0, 1)).reshape(-1)), floats(12, 20))
simple("gather_rows", lambda t, i: t[i] * 2, floats(32, 8), ints(10, limit=32))
simple("scatter_add", lambda t, i, u: t.at[i].add(u), floats(32, 8), ints(10, limit=32), floats(10, 8))
simple("sort_pairs", lambda x, y: lax.sort((x, y), num_keys=1), floats(40), ints(40))
simple("top_k", lambda x: lax.top_k(x, 5), floats(6, 40))
simple("cumulative", lambda x: (jnp.cumsum(x, 0), jnp.cumprod(1 + x / 8, 1), lax.cummax(x, 0)), floats(16, 9))
simple("pad_slice", lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=2)[1:, ::2], floats(9, 11))
simple("concatenate", lambda x, y: jnp.concatenate([x, y, x[:2]], 0)[::-1], floats(5, 6), floats(4, 6))
simple(
    "integers",
    lambda x, y: (x // (y + 1), x % (y + 1), x << 2, x ^ y, jnp.maximum(x, y)),
    ints(24),
    ints(24, seed=1),
)
simple(
    "complex_numbers",
    lambda x, y: jnp.abs(lax.complex(x, y) * lax.complex(y, x)),
    floats(16),
    floats(16, seed=1),
)
simple(
    "bfloat16",
    lambda x, y: (x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)).astype(jnp.float32),
    floats(8, 16),
    floats(16, 8),
)
simple(
    "random_numbers",
    lambda key: jax.random.normal(jax.random.wrap_key_data(key), (32,)),
    np.array([0, 7], np.uint32),
)
simple("fourier", lambda x: jnp.abs(jnp.fft.rfft(x, axis=-1)), floats(4, 32))
simple(
    "convolution",
    lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
    floats(2, 3, 10, 10),
    floats(4, 3, 3, 3),
)
simple(
    "pooling",
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID"),
    floats(3, 8, 8),
)
simple("cholesky", lambda x: jnp.linalg.cholesky(x @ x.T + 8 * jnp.eye(8)), floats(8, 8))
simple("qr", lambda x: jnp.abs(jnp.linalg.qr(x)[1]), floats(10, 6))
simple("where_and_clip", lambda x: jnp.where(x > 0, jnp.clip(x, 0.1, 0.4), -x), floats(50))
simple("one_hot_lookup", lambda i, t: jax.nn.one_hot(i, 16) @ t, ints(9), floats(16, 5))
simple("vmapped", jax.vmap(lambda x, y: jnp.outer(x, y) @ y), floats(6, 5), floats(6, 5, seed=1))
simple("polynomial", lambda x: jnp.polyval(jnp.arange(6.0), x), floats(31))
simple("histogram", lambda i: jnp.zeros(16, jnp.int32).at[i].add(1), ints(100))
simple("donated", lambda s, x: (s + x, x.sum()), floats(64, 64), floats(64, 64, seed=1), donate_argnums=0)
simple("donated_swap", lambda a, b: (b, a), floats(32), floats(32, seed=1), donate_argnums=(0, 1))
simple(
    "donated_update",
    lambda s, i, u: (s.at[i].set(u), s.sum()),
    floats(64, 8),
    ints(4, limit=64),
    floats(4, 8),
    donate_argnums=0,
)


# ---- gradients


def mlp_loss(p: Any, x: Any, y: Any) -> Any:
    for w, b in p[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = p[-1]
    return ((x @ w + b - y) ** 2).mean()


def attention(p: Any, x: Any) -> Any:
    q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[0],) * 2, bool)), q @ k.T / 4, -1e9)
    return (jax.nn.softmax(scores) @ v) @ p["o"]


_MLP = [
    (floats(12, 16), np.zeros(16, np.float32)),
    (floats(16, 16, seed=1), np.zeros(16, np.float32)),
    (floats(16, 4, seed=2), np.zeros(4, np.float32)),
]
_HEAD = {name: floats(16, 16, seed=n) for n, name in enumerate("qkvo")}

simple("grad_of_mlp", jax.grad(mlp_loss), _MLP, floats(8, 12), floats(8, 4))
simple(
    "sgd_step",
    lambda p, x, y: jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(mlp_loss)(p, x, y)),
    _MLP,
    floats(8, 12),
    floats(8, 4),
    donate_argnums=0,
)
simple("grad_of_attention", jax.grad(lambda p, x: (attention(p, x) ** 2).mean()), _HEAD, floats(10, 16))
simple(
    "checkpointed",
    jax.grad(lambda p, x: (jax.checkpoint(attention)(p, attention(p, x)) ** 2).mean()),
    _HEAD,
    floats(10, 16),
)
simple("hessian", jax.hessian(lambda x: (jnp.sin(x) * x**2).sum() + (x[0] * x[-1]) ** 3), floats(6))
simple(
    "jacobians", lambda x: (jax.jacfwd(jnp.tanh)(x), jax.jacrev(lambda v: jnp.cumsum(v * v))(x)), floats(7)
)
simple(
    "grad_of_convolution",
    jax.grad(lambda w, x: lax.conv_general_dilated(x, w, (2, 2), "SAME").sum() ** 2 / 99),
    floats(4, 3, 3, 3),
    floats(2, 3, 8, 8),
)


@program
def adam_step() -> tuple[Any, tuple[Any, ...]]:
    def adam_step(state: Any, x: Any, y: Any) -> Any:
        p, m, v, t = state
        g = jax.grad(mlp_loss)(p, x, y)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
        p = jax.tree.map(lambda a, b, c: a - 0.01 * b / (jnp.sqrt(c) + 1e-3), p, m, v)
        return p, m, v, t + 1

    zeros = jax.tree.map(np.zeros_like, _MLP)
    return jax.jit(adam_step, donate_argnums=0), (
        (_MLP, zeros, zeros, np.int32(0)),
        floats(8, 12),
        floats(8, 4),
    )


# ---- loops and branches

simple(
    "scan_rnn",
    lambda w, x: lax.scan(lambda c, t: (jnp.tanh(c @ w + t), c.sum()), x[0], x),
    floats(8, 8),
    floats(6, 8),
)
simple(
    "grad_of_scan",
    jax.grad(lambda w, x: lax.scan(lambda c, t: (jnp.tanh(c @ w + t), c.sum()), x[0], x)[0].sum()),
    floats(8, 8),
    floats(6, 8),
)
simple("fori_sum", lambda x: lax.fori_loop(0, 5, lambda i, s: s + x[i] * i, jnp.zeros(8)), floats(5, 8))
simple(
    "while_newton",
    lambda x: lax.while_loop(
        lambda s: (jnp.abs(s[0] ** 2 - x) > 1e-3).any() & (s[1] < 20),
        lambda s: ((s[0] + x / s[0]) / 2, s[1] + 1),
        (x + 1, 0),
    ),
    1 + np.abs(floats(6)),
)
simple(
    "fibonacci",
    lambda n: lax.fori_loop(0, n, lambda _, s: (s[1], s[0] + s[1]), (jnp.int32(0), jnp.int32(1))),
    np.int32(20),
)
simple(
    "rotating_state",
    lambda x, y, z: lax.fori_loop(0, 4, lambda i, s: (s[1] + 0, s[2] * 1, s[0] + i), (x, y, z)),
    floats(8),
    floats(8, seed=1),
    floats(8, seed=2),
)
simple(
    "equal_states",
    lambda x: lax.fori_loop(
        0,
        5,
        lambda i, s: (s[0].at[i].add(x[i]), s[1].at[i].add(2 * x[i]), s[2].at[i].set(s[0][i] - s[1][i])),
        (jnp.zeros_like(x),) * 3,
    ),
    floats(5, 8),
)
simple(
    "nested_loops",
    lambda x: lax.fori_loop(
        0, 3, lambda i, s: lax.fori_loop(0, 4, lambda j, t: t * 0.9 + x[i] * j, s), jnp.zeros(8)
    ),
    floats(3, 8),
)
simple(
    "in_place_loop",
    lambda x: lax.fori_loop(0, 6, lambda i, s: s.at[i].set(s[i - 1] + s[(i + 1) % 6]), x),
    floats(6, 4),
)
simple(
    "branches",
    lambda n, x: lax.switch(n, [jnp.sin, lambda v: v * 2, lambda v: v[::-1], lambda v: v], x),
    np.int32(2),
    floats(9),
)
simple(
    "branch_in_loop",
    lambda x: lax.fori_loop(
        0, 6, lambda i, s: lax.cond(i % 2 == 0, lambda v: (v[1], v[0] * 2), lambda v: v, s), (x, x + 1)
    ),
    floats(9),
)
simple("map_over", lambda x: lax.map(lambda r: jnp.sort(r) * r.sum(), x), floats(5, 7))
simple("associative_scan", lambda x: lax.associative_scan(jnp.add, x, axis=0), floats(17, 3))


@program
def training_loop() -> tuple[Any, tuple[Any, ...]]:
    def training_loop(p: Any, xs: Any, ys: Any) -> Any:
        def step(p: Any, batch: Any) -> Any:
            value, g = jax.value_and_grad(mlp_loss)(p, *batch)
            return jax.tree.map(lambda a, b: a - 0.05 * b, p, g), value

        return lax.scan(step, p, (xs, ys))

    return jax.jit(training_loop), (_MLP, floats(4, 8, 12), floats(4, 8, 4))


@program
def decode_with_cache() -> tuple[Any, tuple[Any, ...]]:
    def decode_with_cache(p: Any, x: Any, keys: Any, values: Any) -> Any:
        def step(state: Any, i: Any) -> Any:
            x, keys, values = state
            keys, values = keys.at[i].set(x @ p["k"]), values.at[i].set(x @ p["v"])
            scores = jnp.where(jnp.arange(keys.shape[0]) <= i, keys @ (x @ p["q"]) / 4, -1e9)
            return (jnp.tanh((jax.nn.softmax(scores) @ values) @ p["o"]), keys, values), scores.max()

        return lax.scan(step, (x, keys, values), jnp.arange(6))

    return jax.jit(decode_with_cache, donate_argnums=(2, 3)), (
        _HEAD,
        floats(16),
        np.zeros((6, 16), np.float32),
        np.zeros((6, 16), np.float32),
    )


# ---- several devices


def mesh(*sizes: int) -> Mesh:
    """The first devices, in axes `a` and `b`."""
    count = int(np.prod(sizes))
    return Mesh(np.array(jax.devices()[:count]).reshape(sizes), ("a", "b")[: len(sizes)])


def mapped(name: str, function: Any, inside: Any, out: Any, *arguments: Any) -> tuple[Any, tuple[Any, ...]]:
    """A function over eight shards, jitted under a name."""
    found = jax.shard_map(function, mesh=mesh(8), in_specs=inside, out_specs=out, check_vma=False)

    def call(*given: Any) -> Any:
        return found(*given)

    call.__name__ = name
    return jax.jit(call), arguments


_A, _NONE = PartitionSpec("a"), PartitionSpec()


@program
def sum_of_shards() -> tuple[Any, tuple[Any, ...]]:
    return mapped(
        "sum_of_shards",
        lambda x: (lax.psum(x, "a"), lax.pmax(x * 2, "a")),
        (_A,),
        (_NONE, _NONE),
        floats(16, 4),
    )


@program
def gather_and_scatter() -> tuple[Any, tuple[Any, ...]]:
    def f(x: Any) -> Any:
        whole = lax.all_gather(x, "a", tiled=True)
        return lax.psum_scatter(jnp.sin(whole), "a", tiled=True), whole[:2]

    return mapped("gather_and_scatter", f, (_A,), (_A, _A), floats(16, 4))


@program
def ring_in_loop() -> tuple[Any, tuple[Any, ...]]:
    def f(x: Any) -> Any:
        around = [(i, (i + 1) % 8) for i in range(8)]
        return lax.fori_loop(0, 3, lambda i, s: (lax.ppermute(s[0], "a", around), s[1] + s[0]), (x, x * 0))

    return mapped("ring_in_loop", f, (_A,), (_A, _A), floats(16, 4))


@program
def data_parallel_step() -> tuple[Any, tuple[Any, ...]]:
    def f(p: Any, x: Any, y: Any) -> Any:
        g = jax.tree.map(lambda v: lax.pmean(v, "a"), jax.grad(mlp_loss)(p, x, y))
        return jax.tree.map(lambda v, d: v - 0.1 * d, p, g)

    return mapped("data_parallel_step", f, (_NONE, _A, _A), _NONE, _MLP, floats(16, 12), floats(16, 4))


@program
def partitioned_matmuls() -> tuple[Any, tuple[Any, ...]]:
    def partitioned_matmuls(x: Any, w: Any, v: Any) -> Any:
        return jax.nn.relu(x @ w) @ v

    m = mesh(4, 2)
    placed = [
        jax.device_put(value, NamedSharding(m, PartitionSpec(*names)))
        for value, names in ((floats(16, 8), "a"), (floats(8, 32), (None, "b")), (floats(32, 8), "b"))
    ]
    return jax.jit(partitioned_matmuls), tuple(placed)
