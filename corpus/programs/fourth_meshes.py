"""The fourth sample, more of many devices: language models and solvers over meshes of two axes."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import (
    adamw,
    bf16,
    clipped,
    cross_entropy,
    f32,
    moments,
    rms_norm,
    sgd,
    spread,
)


def _attend(q, k, v):
    s = jnp.einsum("bqhk,bshk->bhqs", q, k).astype(jnp.float32) / math.sqrt(q.shape[-1])
    s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool)), s, -1e30)
    return jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(s).astype(v.dtype), v)


def _block(x, p):
    p = jax.tree.map(lambda w: w.astype(x.dtype), p)
    y = rms_norm(x, p["n"][0])
    q, k, v = (jnp.einsum("bld,dhk->blhk", y, p[name]) for name in "qkv")
    x = x + jnp.einsum("blhk,hkd->bld", _attend(q, k, v), p["o"])
    y = rms_norm(x, p["n"][1])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]


def _shapes(width, heads, size, hidden):
    wide = {name: f32(width, heads, size) for name in "qkv"}
    ff = {"gate": f32(width, hidden), "up": f32(width, hidden), "down": f32(hidden, width)}
    return wide | ff | {"o": f32(heads, size, width), "n": f32(2, width)}


def _train(place, mesh, params, specs, loss, *data, donate=True):
    def step(params, state, *data):
        value, grads = jax.value_and_grad(loss)(params, *data)
        grads, norm = clipped(grads)
        params, state = adamw(params, grads, state)
        return params, state, value, norm

    opt = {"mu": specs, "nu": specs, "count": P()}
    arguments = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), opt), *data]
    return Work(step, arguments, {"donate_argnums": (0, 1)} if donate else {})


@program(devices=8)
def fourth_both_axes_lm(place: Place) -> Work:
    """Three layers on four by two: rows of every matrix over four, columns over two; no hint for the activations."""
    mesh = place.mesh(fsdp=4, tensor=2)
    params = {"embed": f32(32000, 1536), "layers": [_shapes(1536, 12, 128, 4096)] * 3}
    cut = {name: P("fsdp", "tensor") for name in ("q", "k", "v", "gate", "up")}
    cut |= {"o": P("tensor", None, "fsdp"), "down": P("tensor", "fsdp"), "n": P()}
    specs = {"embed": P("tensor", "fsdp"), "layers": [cut] * 3}

    def loss(params, tokens):
        x = params["embed"].astype(jnp.bfloat16)[tokens[:, :-1]]
        for p in params["layers"]:
            x = jax.checkpoint(_block)(x, p)
        return cross_entropy(x @ params["embed"].T.astype(x.dtype), tokens[:, 1:])

    return _train(place, mesh, params, specs, loss, place.sharded(mesh, (16, 1025), P("fsdp"), "int32"))


@program(devices=8)
def fourth_small_lm_copies(place: Place) -> Work:
    """A small language model on every device, batches cut, gradients summed by the compiler; nothing is donated."""
    mesh = place.mesh(batch=8)
    params = {"embed": f32(16384, 768), "layers": [_shapes(768, 12, 64, 2048)] * 3}
    specs = jax.tree.map(lambda _: P(), params)

    def loss(params, tokens):
        x = params["embed"][tokens[:, :-1]]
        for p in params["layers"]:
            x = _block(x, p)
        return cross_entropy(x @ params["embed"].T, tokens[:, 1:])

    tokens = place.sharded(mesh, (64, 513), P("batch"), "int32")
    return _train(place, mesh, params, specs, loss, tokens, donate=False)


@program(devices=8)
def fourth_scanned_shards(place: Place) -> Work:
    """Eight layers in a scan, each gathered by hand before use with shard_map and freed after it; bf16 on the wire."""
    mesh = place.mesh(d=8)
    params = {"a": f32(8, 2048, 8192), "b": f32(8, 8192, 2048)}
    specs = {"a": P(None, "d"), "b": P(None, "d")}

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(specs, P("d"), P("d")), out_specs=(specs, P()), check_vma=False
    )
    def step(params, x, y):
        def loss(params):
            def layer(x, p):
                a, b = (lax.all_gather(p[n].astype(jnp.bfloat16), "d", axis=0, tiled=True) for n in "ab")
                return x + jax.nn.gelu(x @ a) @ b, None

            out, _ = lax.scan(jax.checkpoint(layer), x, params)
            return jnp.square((out - y).astype(jnp.float32)).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return sgd(params, grads, 1e-3), lax.pmean(value, "d")

    data = [place.sharded(mesh, (16384, 2048), P("d"), "bfloat16")] * 2
    return Work(step, [spread(place, mesh, params, specs), *data], {"donate_argnums": (0,)})


@program(devices=8)
def fourth_score_answers(place: Place) -> Work:
    """A reward model over chosen and rejected answers, layers cut by heads, only scores come back."""
    mesh = place.mesh(data=2, model=4)
    shapes = jax.tree.map(lambda s: bf16(*s.shape), _shapes(2048, 16, 128, 5632))
    params = {"embed": bf16(32000, 2048), "layers": [shapes] * 3, "head": bf16(2048, 1)}
    cut = {name: P(None, "model") for name in ("q", "k", "v", "gate", "up")} | {
        "o": P("model"),
        "down": P("model"),
    }
    specs = {"embed": P(None, "model"), "layers": [cut | {"n": P()}] * 3, "head": P()}

    def score(params, good, bad, lengths):
        def one(tokens, length):
            x = params["embed"][tokens]
            for p in params["layers"]:
                x = _block(x, p)
            return (x[jnp.arange(len(x)), length - 1] @ params["head"])[:, 0].astype(jnp.float32)

        return jax.nn.sigmoid(one(good, lengths[0]) - one(bad, lengths[1]))

    ids = [place.sharded(mesh, (16, 1024), P("data"), "int32")] * 2
    return Work(
        score,
        [spread(place, mesh, params, specs), *ids, place.sharded(mesh, (2, 16), P(None, "data"), "int32")],
    )


@program(devices=8)
def fourth_frozen_and_adapted(place: Place) -> Work:
    """Adapters of rank sixteen on frozen layers that are spread, the adapters themselves on every device."""
    mesh = place.mesh(d=8)
    frozen = {"w": bf16(6, 4096, 4096), "v": bf16(6, 4096, 4096)}
    small = {"wa": f32(6, 4096, 16), "wb": f32(6, 16, 4096), "va": f32(6, 4096, 16), "vb": f32(6, 16, 4096)}
    specs = {name: P(None, "d") for name in frozen}

    def loss(small, frozen, x, y):
        def layer(x, both):
            f, s = both
            s = jax.tree.map(lambda w: w.astype(x.dtype), s)
            h = jax.nn.gelu(x @ f["w"] + x @ s["wa"] @ s["wb"])
            return x + h @ f["v"] + h @ s["va"] @ s["vb"], None

        x, _ = lax.scan(jax.checkpoint(layer), x, (frozen, small))
        return jnp.square((x - y).astype(jnp.float32)).mean()

    def step(small, state, frozen, x, y):
        value, grads = jax.value_and_grad(loss)(small, frozen, x, y)
        small, state = adamw(small, grads, state)
        return small, state, value

    whole = jax.tree.map(lambda _: P(), small)
    opt = {"mu": whole, "nu": whole, "count": P()}
    data = [place.sharded(mesh, (8192, 4096), P("d"), "bfloat16")] * 2
    trees = [spread(place, mesh, small, whole), spread(place, mesh, moments(small), opt)]
    return Work(step, [*trees, spread(place, mesh, frozen, specs), *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_matrix_in_blocks(place: Place) -> Work:
    """Products of large matrices on two by four: panels are sent along rows and columns, step after step."""
    mesh = place.mesh(x=2, y=4)

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("x", "y")), out_specs=P("x", "y"), check_vma=False
    )
    def multiply(a, b):
        rows = lax.all_gather(a, "y", axis=1, tiled=True)
        columns = lax.all_gather(b, "x", axis=0, tiled=True)
        return (rows @ columns).astype(a.dtype)

    def power(a, b):
        return lax.fori_loop(0, 4, lambda _, c: multiply(a, c) / 64, b)

    part = place.sharded(mesh, (16384, 16384), P("x", "y"), "bfloat16")
    return Work(power, [part, part])


@program(devices=8)
def fourth_graph_rows(place: Place) -> Work:
    """Messages on a graph whose nodes lie on devices by number: features gathered, sums along edges, three rounds."""
    mesh = place.mesh(d=8)
    nodes, edges = 1 << 19, 1 << 22
    params = [f32(128, 128)] * 3

    def loss(params, x, source, target, y):
        for w in params:
            x = jax.nn.relu(x + jax.ops.segment_sum((x @ w)[source], target, nodes) / 8)
            x = lax.with_sharding_constraint(x, NamedSharding(mesh, P("d")))
        return jnp.square(x.mean(-1) - y).mean()

    def step(params, *graph):
        value, grads = jax.value_and_grad(loss)(params, *graph)
        return sgd(params, grads), value

    graph = [place.sharded(mesh, (nodes, 128), P("d")), place.sharded(mesh, (nodes,), P("d"))]
    ends = [place.sharded(mesh, (edges,), P("d"), "int32")] * 2
    return Work(
        step, [spread(place, mesh, params, [P()] * 3), graph[0], *ends, graph[1]], {"donate_argnums": (0,)}
    )


@program(devices=8)
def fourth_many_agents(place: Place) -> Work:
    """Policy gradients with worlds on every device: sixty-four steps of a small world, then one update for all."""
    mesh = place.mesh(d=8)
    params = [f32(32, 256), f32(256, 256), f32(256, 8)]
    whole = [P()] * 3

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(whole, P("d"), P("d")),
        out_specs=(whole, P("d"), P()),
        check_vma=False,
    )
    def step(params, worlds, key):
        def policy(params, s):
            return jax.nn.log_softmax(jnp.tanh(jnp.tanh(s @ params[0]) @ params[1]) @ params[2])

        def act(s, key):
            a = jax.random.categorical(key, policy(params, s))
            s2 = 0.95 * s + 0.1 * jax.nn.one_hot(a, 32)
            return s2, (s, a, -jnp.square(s2).sum(-1))

        worlds, (s, a, r) = lax.scan(act, worlds, jax.random.split(key[0], 64))
        gains = jnp.flip(jnp.cumsum(jnp.flip(r, 0), 0), 0)
        gains = (gains - lax.pmean(gains.mean(), "d")) / (lax.pmean(gains.std(), "d") + 1e-6)

        def loss(params):
            return -(jnp.take_along_axis(policy(params, s), a[..., None], -1)[..., 0] * gains).mean()

        grads = lax.pmean(jax.grad(loss)(params), "d")
        return sgd(params, grads, 1e-2), worlds, lax.pmean(r.mean(), "d")

    data = [place.sharded(mesh, (32768, 32), P("d")), place.sharded(mesh, (8, 2), P("d"), "uint32")]
    return Work(step, [spread(place, mesh, params, whole), *data])


@program(devices=8)
def fourth_weather(place: Place) -> Work:
    """A layer of air on a sphere: lines of latitude over devices, transforms along them, winds across; a day of steps."""
    mesh = place.mesh(lat=8)
    pin = lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "lat")))  # noqa: E731

    def run(state):
        n = state.shape[2]
        k = jnp.fft.rfftfreq(n) * n

        def step(state, _):
            wave = jnp.fft.rfft(state, axis=2)
            east = jnp.fft.irfft(1j * k * wave, n, axis=2)
            calm = jnp.fft.irfft(wave * jnp.exp(-((k / 400) ** 8)), n, axis=2)
            p = jnp.pad(state, ((0, 0), (1, 1), (0, 0)), mode="edge")
            north = (p[:, 2:] - p[:, :-2]) / 2
            u, v, h = state
            turn = jnp.stack([v, -u, jnp.zeros_like(h)])
            wind = u * east + v * north
            push = jnp.stack([east[2], north[2], h * (east[0] + north[1])])
            return pin(calm - 1e-3 * (wind + push - turn)), None

        return lax.scan(step, pin(state), None, length=144)[0]

    return Work(run, [place.sharded(mesh, (3, 1024, 2048), P(None, "lat"))], {"donate_argnums": (0,)})


@program(devices=8)
def fourth_similar_items(place: Place) -> Work:
    """Which of four million things are like these: each device its part, the best of all parts merged."""
    mesh = place.mesh(d=8)

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P(), P("d")), out_specs=(P(), P()), check_vma=False
    )
    def search(questions, things):
        best, at = lax.top_k((questions @ things.T).astype(jnp.float32), 50)
        at = at + lax.axis_index("d") * things.shape[0]
        best, at = (lax.all_gather(x, "d", axis=1, tiled=True) for x in (best, at))
        top, place = lax.top_k(best, 50)
        return top, jnp.take_along_axis(at, place, 1)

    things = place.sharded(mesh, (4_194_304, 128), P("d"), "bfloat16")
    return Work(search, [place.sharded(mesh, (512, 128), P(), "bfloat16"), things])
