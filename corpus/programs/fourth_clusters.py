"""The fourth sample, the last of many devices: language, speech, pictures and numbers over eight accelerators."""

from __future__ import annotations

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
    by_hand,
    cross_entropy,
    f32,
    moments,
    momentum,
    rms_norm,
    sgd,
    spread,
)


@program(devices=8)
def fourth_bytes_lm(place: Place) -> Work:
    """A model of bytes: patches of four, a wide net over patches, cut by hidden units; state kept apart, undonated."""
    mesh = place.mesh(m=8)
    params = {
        "byte": f32(256, 512),
        "up": f32(6, 2048, 8192),
        "down": f32(6, 8192, 2048),
        "out": f32(2048, 1024),
    }
    specs = {"byte": P(), "up": P(None, None, "m"), "down": P(None, "m"), "out": P(None, "m")}

    def loss(params, data):
        x = params["byte"][data].reshape(data.shape[0], -1, 2048).astype(jnp.bfloat16)

        def layer(x, p):
            y = jnp.cumsum(x, 1) / (1 + jnp.arange(x.shape[1]))[None, :, None].astype(x.dtype)
            return x + jax.nn.gelu(y @ p[0].astype(x.dtype)) @ p[1].astype(x.dtype), None

        x, _ = lax.scan(layer, x, (params["up"], params["down"]))
        logits = (x[:, :-1] @ params["out"].astype(x.dtype)).reshape(data.shape[0], -1, 256)
        return cross_entropy(logits, data[:, 4:])

    def step(params, state, data):
        value, grads = jax.value_and_grad(loss)(params, data)
        params, state = adamw(params, grads, state)
        return params, state, value

    opt = {"mu": specs, "nu": specs, "count": P()}
    trees = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), opt)]
    return Work(step, [*trees, place.sharded(mesh, (16, 4096), P(), "int32")])


@program(devices=8)
def fourth_mean_of_gradients(place: Place) -> Work:
    """The first program of a tutorial: shard_map over the batch, pmean of the gradients leaf by leaf, momentum."""
    mesh = place.mesh(batch=8)
    params = [f32(784, 2048), f32(2048, 2048), f32(2048, 2048), f32(2048, 10)]
    whole = [P()] * 4

    @by_hand(mesh, (whole, whole, P("batch"), P("batch")), (whole, whole, P()))
    def step(params, velocity, x, y):
        def loss(params):
            h = x
            for w in params[:-1]:
                h = jax.nn.relu(h @ w)
            return cross_entropy(h @ params[-1], y)

        value, grads = jax.value_and_grad(loss)(params)
        grads = [lax.pmean(g, "batch") for g in grads]
        params, velocity = momentum(params, grads, velocity)
        return params, velocity, lax.pmean(value, "batch")

    data = [place.sharded(mesh, (16384, 784), P("batch")), place.sharded(mesh, (16384,), P("batch"), "int32")]
    return Work(step, [spread(place, mesh, params, whole)] * 2 + data, {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_gathered_keys(place: Place) -> Work:
    """Attention with queries by length on devices, keys and values gathered whole; loss of a layer, by hand."""
    mesh = place.mesh(s=8)
    params = {
        "q": bf16(2048, 16, 128),
        "k": bf16(2048, 4, 128),
        "v": bf16(2048, 4, 128),
        "o": bf16(16, 128, 2048),
    }
    whole = jax.tree.map(lambda _: P(), params)

    @by_hand(mesh, (whole, P("s"), P("s")), (whole, P()))
    def run(params, x, y):
        def loss(params):
            q = jnp.einsum("ld,dhk->lhk", x, params["q"]).reshape(-1, 4, 4, 128)
            k, v = (lax.all_gather(jnp.einsum("ld,dgk->lgk", x, params[n]), "s", tiled=True) for n in "kv")
            s = jnp.einsum("qgrk,sgk->grqs", q, k).astype(jnp.float32) / math.sqrt(128)
            here = lax.axis_index("s") * len(x) + jnp.arange(len(x))
            s = jnp.where(here[:, None] >= jnp.arange(k.shape[0]), s, -1e30)
            a = jnp.einsum("grqs,sgk->qgrk", jax.nn.softmax(s).astype(v.dtype), v).reshape(-1, 16, 128)
            out = x + jnp.einsum("lhk,hkd->ld", a, params["o"])
            return jnp.square((out - y).astype(jnp.float32)).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return lax.pmean(grads, "s"), lax.pmean(value, "s")

    data = [place.sharded(mesh, (16384, 2048), P("s"), "bfloat16")] * 2
    return Work(run, [spread(place, mesh, params, whole), *data])


@program(devices=8)
def fourth_speech_encoder_step(place: Place) -> Work:
    """Conformer-like blocks on sound, batch over devices, parameters spread over the same and gathered by the compiler."""
    mesh = place.mesh(d=8)
    block = {
        "up": f32(1024, 4096),
        "down": f32(4096, 1024),
        "qkv": f32(1024, 3, 16, 64),
        "o": f32(16, 64, 1024),
    }
    block |= {"conv": f32(31, 1, 1024), "point": f32(1024, 1024), "g": f32(3, 1024)}
    params = {"in": f32(320, 1024), "blocks": [block] * 3, "out": f32(1024, 1024)}
    specs = jax.tree.map(lambda s: P("d") if s.shape[0] % 8 == 0 and s.shape[0] > 31 else P(), params)

    def loss(params, sound, labels):
        rows = NamedSharding(mesh, P("d"))
        x = lax.with_sharding_constraint((sound @ params["in"]).astype(jnp.bfloat16), rows)
        for p in jax.tree.map(lambda w: w.astype(jnp.bfloat16), params["blocks"]):
            x = x + jax.nn.silu(rms_norm(x, p["g"][0]) @ p["up"]) @ p["down"] / 2
            q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->blchk", rms_norm(x, p["g"][1]), p["qkv"]), 2, 0)
            s = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k) / 8)
            x = x + jnp.einsum("bqhk,hkd->bqd", jnp.einsum("bhqs,bshk->bqhk", s, v), p["o"])
            y = lax.conv_general_dilated(
                rms_norm(x, p["g"][2]),
                p["conv"],
                (1,),
                "SAME",
                dimension_numbers=("NHC", "HIO", "NHC"),
                feature_group_count=1024,
            )
            x = lax.with_sharding_constraint(x + jax.nn.silu(y) @ p["point"], rows)
        return cross_entropy(x.astype(jnp.float32) @ params["out"], labels)

    def step(params, state, sound, labels):
        value, grads = jax.value_and_grad(loss)(params, sound, labels)
        params, state = adamw(params, grads, state)
        return params, state, value

    opt = {"mu": specs, "nu": specs, "count": P()}
    trees = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), opt)]
    data = [place.sharded(mesh, (32, 512, 320), P("d")), place.sharded(mesh, (32, 512), P("d"), "int32")]
    return Work(step, [*trees, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_two_models(place: Place) -> Work:
    """A small model guesses four words, a large one over devices checks them at once; both caches go through."""
    mesh = place.mesh(m=8)
    large = {"e": bf16(32000, 4096), "a": bf16(4, 4096, 16384), "b": bf16(4, 16384, 4096)}
    small = {"e": bf16(32000, 512), "a": bf16(2, 512, 2048), "b": bf16(2, 2048, 512)}
    cut = {"e": P("m"), "a": P(None, None, "m"), "b": P(None, "m")}
    whole = {name: P() for name in small}

    def net(p, state, tokens):
        x = p["e"][tokens]
        state = state + x.mean(1)
        x = x + state[:, None]

        def layer(x, w):
            return x + jax.nn.gelu(x @ w[0]) @ w[1], None

        x, _ = lax.scan(layer, x, (p["a"], p["b"]))
        return (x @ p["e"].T).argmax(-1).astype(jnp.int32), state

    def run(large, small, big, little, token):
        def guess(carry, _):
            token, little = carry
            token, little = net(small, little, token)
            return (token, little), token[:, 0]

        def round_(carry, _):
            token, big, little = carry
            (_, little), guesses = lax.scan(guess, (token, little), None, length=4)
            said, big = net(large, big, jnp.concatenate([token, guesses.T], 1))
            good = jnp.cumprod((said[:, :-1] == guesses.T).astype(jnp.int32), 1).sum(1)
            return (said[jnp.arange(len(said)), good][:, None], big, little), good

        return lax.scan(round_, (token, big, little), None, length=16)

    trees = [spread(place, mesh, large, cut), spread(place, mesh, small, whole)]
    states = [place.sharded(mesh, (8, n), P(), "bfloat16") for n in (4096, 512)]
    return Work(run, [*trees, *states, place.sharded(mesh, (8, 1), P(), "int32")])


@program(devices=8)
def fourth_products_then_rows(place: Place) -> Work:
    """A matrix is factored by QR in rows over devices (tall and thin), the small factors gathered and factored again."""
    mesh = place.mesh(r=8)

    @by_hand(mesh, (P("r"), P("r")), (P("r"), P(), P()))
    def solve(a, b):
        q, r = jnp.linalg.qr(a)
        q2, r2 = jnp.linalg.qr(lax.all_gather(r, "r", tiled=True))
        mine = lax.dynamic_slice_in_dim(q2, lax.axis_index("r") * a.shape[1], a.shape[1])
        q = q @ mine
        x = jax.scipy.linalg.solve_triangular(r2, lax.psum(q.T @ b, "r"))
        return q, r2, x

    return Work(
        solve, [place.sharded(mesh, (1 << 20, 256), P("r")), place.sharded(mesh, (1 << 20, 8), P("r"))]
    )


@program(devices=8)
def fourth_slow_and_fast_axes(place: Place) -> Work:
    """Gradients are summed inside four, scattered, summed over two, gathered again: by hand, over one flat vector."""
    mesh = place.mesh(far=2, near=4)
    params = [f32(2048, 8192), f32(8192, 2048)]
    whole = [P()] * 2

    @by_hand(mesh, (whole, P(("far", "near"))), (whole, P()))
    def step(params, x):
        value, grads = jax.value_and_grad(lambda p: jnp.square(jax.nn.relu(x @ p[0]) @ p[1] - x).mean())(
            params
        )
        flat, back = jax.flatten_util.ravel_pytree(grads)
        part = lax.psum_scatter(flat, "near", tiled=True)
        flat = lax.all_gather(lax.psum(part, "far") / 8, "near", tiled=True)
        return sgd(params, back(flat), 0.01), lax.pmean(value, ("far", "near"))

    x = place.sharded(mesh, (16384, 2048), P(("far", "near")))
    return Work(step, [spread(place, mesh, params, whole), x], {"donate_argnums": (0,)})


@program(devices=8)
def fourth_image_words(place: Place) -> Work:
    """Pictures as words for a language model: projected, put before the text, the net cut by heads and units."""
    mesh = place.mesh(data=2, model=4)
    layer = {
        "qkv": bf16(2048, 3, 16, 128),
        "o": bf16(16, 128, 2048),
        "up": bf16(2048, 8192),
        "down": bf16(8192, 2048),
    }
    params = {"see": bf16(1024, 2048), "embed": bf16(32000, 2048), "layers": [layer] * 3}
    cut = {"qkv": P(None, None, "model"), "o": P("model"), "up": P(None, "model"), "down": P("model")}
    specs = {"see": P(None, "model"), "embed": P(None, "model"), "layers": [cut] * 3}

    def loss(params, pictures, text):
        x = jnp.concatenate([pictures @ params["see"], params["embed"][text[:, :-1]]], 1)
        for p in params["layers"]:
            q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->blchk", x, p["qkv"]), 2, 0)
            s = jnp.einsum("bqhk,bshk->bhqs", q, k).astype(jnp.float32) / math.sqrt(128)
            s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool)), s, -1e30)
            a = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(s).astype(x.dtype), v)
            x = x + jnp.einsum("bqhk,hkd->bqd", a, p["o"])
            x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
        return cross_entropy(x[:, pictures.shape[1] :] @ params["embed"].T, text[:, 1:])

    def step(params, velocity, pictures, text):
        value, grads = jax.value_and_grad(loss)(params, pictures, text)
        params, velocity = momentum(params, grads, velocity, 1e-3)
        return params, velocity, value

    data = [
        place.sharded(mesh, (8, 256, 1024), P("data"), "bfloat16"),
        place.sharded(mesh, (8, 769), P("data"), "int32"),
    ]
    return Work(step, [spread(place, mesh, params, specs)] * 2 + data, {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_particles_over_cells(place: Place) -> Work:
    """Particles move to the device that has their place: counted, packed with room, exchanged, forces from a mesh."""
    mesh = place.mesh(x=8)

    @by_hand(mesh, (P("x"), P("x")), (P("x"), P("x")))
    def run(p, v):
        n, room = p.shape[0], p.shape[0] // 4

        def step(carry, _):
            p, v = carry
            home = jnp.clip((p[:, 0] * 8).astype(jnp.int32), 0, 7)
            order = jnp.argsort(home)
            home, p, v = home[order], p[order], v[order]
            rank = jnp.arange(n) - jnp.searchsorted(home, jnp.arange(8))[home]
            box = jnp.zeros((8, room, 6)).at[home, rank].set(jnp.concatenate([p, v], 1), mode="drop")
            box = lax.all_to_all(box, "x", 0, 0, tiled=True).reshape(-1, 6)[:n]
            p, v = box[:, :3], box[:, 3:]
            cell = jnp.clip((p * 64).astype(jnp.int32), 0, 63)
            grid = jnp.zeros((64, 64, 64)).at[cell[:, 0], cell[:, 1], cell[:, 2]].add(1.0)
            grid = lax.psum(grid, "x")
            slope = jnp.stack(jnp.gradient(grid), -1)[cell[:, 0], cell[:, 1], cell[:, 2]]
            v = v - 1e-4 * slope
            return ((p + 1e-2 * v) % 1.0, v), None

        return lax.scan(step, (p, v), None, length=50)[0]

    part = place.sharded(mesh, (1 << 21, 3), P("x"))
    return Work(run, [part, part], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_half_frozen(place: Place) -> Work:
    """The upper half of a net is trained, the lower half only runs; both spread over all devices; cosine schedule."""
    mesh = place.mesh(d=8)
    low, high = bf16(4, 2048, 8192), f32(4, 2048, 8192)

    def loss(high, low, x, y):
        def layer(x, w):
            w = w.astype(x.dtype)
            return x + jax.nn.relu(x @ w) @ w.T, None

        x, _ = lax.scan(layer, x, low)
        x, _ = lax.scan(jax.checkpoint(layer), lax.stop_gradient(x), high)
        return jnp.square((x - y).astype(jnp.float32)).mean()

    def step(high, velocity, count, low, x, y):
        value, grads = jax.value_and_grad(loss)(high, low, x, y)
        rate = 0.5 * 1e-2 * (1 + jnp.cos(count / 10000 * math.pi))
        velocity = 0.9 * velocity + grads
        return high - rate * velocity, velocity, count + 1, value

    cut = P(None, "d")
    state = spread(place, mesh, [high, high, f32()], [cut, cut, P()])
    data = [place.sharded(mesh, (8192, 2048), P("d"), "bfloat16")] * 2
    return Work(
        step, [*state, place.sharded(mesh, low.shape, cut, "bfloat16"), *data], {"donate_argnums": (0, 1, 2)}
    )
