"""The fifth sample, on one device: those of its programs of which the linter says something."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import (
    adamw,
    bf16,
    f32,
    here,
    moments,
    rms_norm,
    rope,
)


@program(platforms=("tpu", "gpu"))
def fifth_chat_decode(place: Place) -> Work:
    """One word for sixteen chats: layers in a scan, grouped heads, the cache goes in and comes out; donated."""
    layers, width, heads, kv, size, hidden, room = 12, 2048, 16, 4, 128, 5632, 2048
    params = {
        "wq": bf16(layers, width, heads * size),
        "wk": bf16(layers, width, kv * size),
        "wv": bf16(layers, width, kv * size),
        "wo": bf16(layers, heads * size, width),
        "gate": bf16(layers, width, hidden),
        "up": bf16(layers, width, hidden),
        "down": bf16(layers, hidden, width),
        "norm": f32(layers, 2, width),
    }
    cache = {"k": bf16(layers, 16, room, kv, size), "v": bf16(layers, 16, room, kv, size)}

    def step(params, embed, cache, token, pos, key):
        x = embed[token].astype(jnp.bfloat16)

        def layer(x, inputs):
            p, k_old, v_old = inputs
            h = rms_norm(x, p["norm"][0])
            q = rope((h @ p["wq"]).reshape(16, 1, heads, size), pos[:, None])[:, 0]
            k = rope((h @ p["wk"]).reshape(16, 1, kv, size), pos[:, None])[:, 0]
            v = (h @ p["wv"]).reshape(16, kv, size)
            k_all = jax.vmap(lambda c, new, i: lax.dynamic_update_slice(c, new[None], (i, 0, 0)))(
                k_old, k, pos
            )
            v_all = jax.vmap(lambda c, new, i: lax.dynamic_update_slice(c, new[None], (i, 0, 0)))(
                v_old, v, pos
            )
            q = q.reshape(16, kv, heads // kv, size)
            s = jnp.einsum("bkgd,btkd->bkgt", q, k_all).astype(jnp.float32) / math.sqrt(size)
            s = jnp.where(jnp.arange(room)[None, None, None] <= pos[:, None, None, None], s, -1e30)
            a = jnp.einsum("bkgt,btkd->bkgd", jax.nn.softmax(s).astype(jnp.bfloat16), v_all)
            x = x + a.reshape(16, -1) @ p["wo"]
            h = rms_norm(x, p["norm"][1])
            return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], (k_all, v_all)

        x, (k, v) = lax.scan(layer, x, (params, cache["k"], cache["v"]))
        logits = (x @ embed.T).astype(jnp.float32)
        top, ids = lax.top_k(logits / 0.8, 50)
        choice = jax.random.categorical(key, top)
        return jnp.take_along_axis(ids, choice[:, None], 1)[:, 0], {"k": k, "v": v}

    trees = [here(place, params), place.array((32000, width), "bfloat16"), here(place, cache)]
    rest = [place.array((16,), "int32"), place.array((16,), "int32"), place.array((2,), "uint32")]
    return Work(step, [*trees, *rest], {"donate_argnums": (2,)})


@program(platforms=("gpu",))
def fifth_gan_step(place: Place) -> Work:
    """Both nets in one step, two Adams, hinge loss; the trees go in and come out, nothing is donated."""
    gen = {"fc": f32(128, 4 * 4 * 512), "c": [f32(4, 4, 512, 256), f32(4, 4, 256, 128), f32(4, 4, 128, 3)]}
    dis = {"c": [f32(4, 4, 3, 128), f32(4, 4, 128, 256), f32(4, 4, 256, 512)], "fc": f32(4 * 4 * 512, 1)}

    def make(g, z):
        x = jax.nn.relu(z @ g["fc"]).reshape(-1, 4, 4, 512)
        for i, w in enumerate(g["c"]):
            x = lax.conv_transpose(x, w, (2, 2), "SAME")
            x = jax.nn.relu(x) if i < 2 else jnp.tanh(x)
        return x

    def judge(d, x):
        for w in d["c"]:
            x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.leaky_relu(x, 0.2)
        return x.reshape(x.shape[0], -1) @ d["fc"]

    def step(gen, dis, sg, sd, real, key):
        z = jax.random.normal(key, (64, 128))

        def d_loss(dis):
            return jax.nn.relu(1 - judge(dis, real)).mean() + jax.nn.relu(1 + judge(dis, make(gen, z))).mean()

        ld, gd = jax.value_and_grad(d_loss)(dis)
        dis, sd = adamw(dis, gd, sd)
        lg, gg = jax.value_and_grad(lambda g: -judge(dis, make(g, z)).mean())(gen)
        gen, sg = adamw(gen, gg, sg)
        return gen, dis, sg, sd, ld, lg

    trees = [here(place, t) for t in (gen, dis, moments(gen), moments(dis))]
    return Work(step, [*trees, place.array((64, 32, 32, 3)), place.array((2,), "uint32")])


@program(platforms=("cpu", "gpu"))
def fifth_sparse_cg(place: Place) -> Work:
    """A sparse system by rows, columns and values, conjugate gradients with a diagonal, until small or 500."""

    def solve(rows, cols, vals, b):
        n = b.shape[0]

        def mul(x):
            return jax.ops.segment_sum(vals * x[cols], rows, n)

        diag = jax.ops.segment_sum(jnp.where(rows == cols, vals, 0.0), rows, n)
        x, _ = jax.scipy.sparse.linalg.cg(mul, b, maxiter=500, tol=1e-6, M=lambda r: r / diag)
        return x, jnp.linalg.norm(mul(x) - b)

    index = [place.array((5_000_000,), "int32") for _ in range(2)]
    return Work(solve, [*index, place.array((5_000_000,)), place.array((1_000_000,))])


@program(platforms=("cpu", "gpu"))
def fifth_kalman(place: Place) -> Work:
    """A tracker for 256 objects: six states each, predict and update for a thousand frames, smoothed backwards."""

    def track(f, q, h, r, zs):
        def one(zs):
            def body(carry, z):
                x, p = carry
                x, p = f @ x, f @ p @ f.T + q
                s = h @ p @ h.T + r
                gain = p @ h.T @ jnp.linalg.inv(s)
                new = x + gain @ (z - h @ x), (jnp.eye(6) - gain @ h) @ p
                return new, (*new, x, p)

            _, (xs, ps, xp, pp) = lax.scan(body, (jnp.zeros(6), jnp.eye(6) * 10), zs)

            def back(carry, inputs):
                x, p, xn, pn = inputs
                c = p @ f.T @ jnp.linalg.inv(pn)
                out = x + c @ (carry - xn)
                return out, out

            _, smooth = lax.scan(back, xs[-1], (xs[:-1], ps[:-1], xp[1:], pp[1:]), reverse=True)
            return smooth

        return jax.vmap(one)(zs)

    m = [place.array(s) for s in ((6, 6), (6, 6), (2, 6), (2, 2))]
    return Work(track, [*m, place.array((256, 1000, 2))])
