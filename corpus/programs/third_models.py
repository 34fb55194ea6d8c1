"""The third sample, more of training on one device: other kinds of models, losses and optimizers."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import (
    adamw,
    bf16,
    cross_entropy,
    f32,
    here,
    layer_norm,
    moments,
    momentum,
    rms_norm,
    sgd,
)


@program()
def third_muon_step(place: Place) -> Work:
    """Matrices are moved along their momentum, made orthogonal by five rounds of Newton and Schulz."""
    width = 1024
    params = [{"up": f32(width, 4 * width), "down": f32(4 * width, width)} for _ in range(3)]

    def loss(params, x, y):
        for p in params:
            x = x + jax.nn.relu(x @ p["up"]) ** 2 @ p["down"]
        return jnp.square(x - y).mean()

    def orthogonal(g):
        x = g.astype(jnp.bfloat16)
        flip = x.shape[0] > x.shape[1]
        x = x.T if flip else x
        x = x / (jnp.linalg.norm(x) + 1e-7)
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x.T if flip else x

    def step(params, buffer, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        buffer = jax.tree.map(lambda m, g: 0.95 * m + g, buffer, grads)
        params = jax.tree.map(lambda p, m: p - 0.02 * orthogonal(m).astype(p.dtype), params, buffer)
        return params, buffer, value

    data = [place.array((4096, width)), place.array((4096, width))]
    return Work(step, [here(place, params), here(place, params), *data], {"donate_argnums": (0, 1)})


@program()
def third_shampoo_step(place: Place) -> Work:
    """Statistics of rows and columns, inverse roots of them by eigenvalues in every step."""
    params = [f32(512, 1024), f32(1024, 256)]
    stats = [(f32(512, 512), f32(1024, 1024)), (f32(1024, 1024), f32(256, 256))]

    def loss(params, x, y):
        return cross_entropy(jnp.tanh(x @ params[0]) @ params[1], y)

    def root(m):
        values, vectors = jnp.linalg.eigh(m + 1e-6 * jnp.eye(m.shape[0]))
        return (vectors * jnp.maximum(values, 1e-6) ** -0.25) @ vectors.T

    def step(params, stats, x, y):
        grads = jax.grad(loss)(params, x, y)
        stats = [(0.99 * a + g @ g.T, 0.99 * b + g.T @ g) for (a, b), g in zip(stats, grads, strict=True)]
        grads = [root(a) @ g @ root(b) for (a, b), g in zip(stats, grads, strict=True)]
        return sgd(params, grads, 1e-3), stats

    arguments = [
        here(place, params),
        here(place, stats),
        place.array((2048, 512)),
        place.array((2048,), "int32"),
    ]
    return Work(step, arguments, {"donate_argnums": (0, 1)})


@program()
def third_hash_grid_step(place: Place) -> Work:
    """Points look up features in sixteen grids by a hash of the corners; the tables are trained with Adam."""
    levels, entries = 16, 2**17
    params = {
        "table": f32(levels, entries, 2),
        "w1": f32(2 * levels, 64),
        "w2": f32(64, 64),
        "w3": f32(64, 4),
    }
    corners = jnp.array([[(c >> i) & 1 for i in range(3)] for c in range(8)], jnp.uint32)
    primes = jnp.array([1, 2654435761, 805459861], jnp.uint32)

    def features(table, points):
        def level(table, scale):
            scaled = points * scale
            base = jnp.floor(scaled)
            part = scaled - base
            at = base.astype(jnp.uint32)[:, None] + corners
            index = jax.lax.reduce(at * primes, jnp.uint32(0), lax.bitwise_xor, (2,)) % entries
            weight = jnp.where(corners == 1, part[:, None], 1 - part[:, None]).prod(-1)
            return (table[index] * weight[..., None]).sum(1)

        return jax.vmap(level, out_axes=1)(table, 16.0 * 1.5 ** jnp.arange(levels)).reshape(len(points), -1)

    def loss(params, points, colours):
        h = jax.nn.relu(features(params["table"], points) @ params["w1"])
        return jnp.square(jax.nn.sigmoid(jax.nn.relu(h @ params["w2"]) @ params["w3"]) - colours).mean()

    def step(params, state, points, colours):
        value, grads = jax.value_and_grad(loss)(params, points, colours)
        params, state = adamw(params, grads, state, lr=1e-2, decay=0.0)
        return params, state, value

    data = [place.array((65536, 3)), place.array((65536, 4))]
    return Work(step, [here(place, params), here(place, moments(params)), *data], {"donate_argnums": (0, 1)})


@program()
def third_word_lstm_step(place: Place) -> Work:
    """Truncated backpropagation: a recurrent net goes on from the state of the last piece of text."""
    width, vocab = 650, 10000
    params = {
        "embed": f32(vocab, width),
        "cells": [(f32(2 * width, 4 * width), f32(4 * width))] * 2,
        "out": (f32(width, vocab), f32(vocab)),
    }
    carry = [(f32(64, width), f32(64, width))] * 2

    def cell(p, state, x):
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ p[0] + p[1], 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    def loss(params, carry, x, y):
        def word(carry, now):
            new = []
            for p, state in zip(params["cells"], carry, strict=True):
                state, now = cell(p, state, now)
                new.append(state)
            return new, now

        carry, hidden = lax.scan(word, carry, params["embed"][x].swapaxes(0, 1))
        logits = hidden.swapaxes(0, 1) @ params["out"][0] + params["out"][1]
        return cross_entropy(logits, y), carry

    def step(params, carry, x, y):
        (value, carry), grads = jax.value_and_grad(loss, has_aux=True)(params, carry, x, y)
        return sgd(params, grads, 1.0), carry, value

    ids = place.array((64, 35), "int32")
    return Work(step, [here(place, params), here(place, carry), ids, ids])


@program()
def third_world_model_step(place: Place) -> Work:
    """A recurrent state space model on sequences of codes: categorical states, free bits, one decoder."""
    wide, kinds = 512, 32
    params = {
        "in": f32(kinds * kinds + 6, wide),
        "gru": f32(2 * wide, 3 * wide),
        "prior": (f32(wide, wide), f32(wide, kinds * kinds)),
        "post": (f32(2 * wide, wide), f32(wide, kinds * kinds)),
        "encode": f32(1024, wide),
        "decode": (f32(wide + kinds * kinds, wide), f32(wide, 1024)),
        "reward": f32(wide, 1),
    }

    def logits(p, x):
        return (jax.nn.silu(x @ p[0]) @ p[1]).reshape(*x.shape[:-1], kinds, kinds)

    def loss(params, seen, actions, rewards, key):
        code = jax.nn.silu(seen @ params["encode"])

        def advance(carry, now):
            h, z = carry
            e, a, k = now
            x = jax.nn.silu(jnp.concatenate([z, a], -1) @ params["in"])
            r, u, c = jnp.split(jnp.concatenate([x, h], -1) @ params["gru"], 3, -1)
            u = jax.nn.sigmoid(u - 1)
            h = u * jnp.tanh(jax.nn.sigmoid(r) * c) + (1 - u) * h
            prior = logits(params["prior"], h)
            post = logits(params["post"], jnp.concatenate([h, e], -1))
            probs = jax.nn.softmax(post)
            drawn = jax.nn.one_hot(jax.random.categorical(k, post), kinds)
            z = (drawn + probs - lax.stop_gradient(probs)).reshape(*h.shape[:-1], -1)
            return (h, z), (h, z, prior, post)

        start = (jnp.zeros((seen.shape[0], wide)), jnp.zeros((seen.shape[0], kinds * kinds)))
        moved = (code.swapaxes(0, 1), actions.swapaxes(0, 1), jax.random.split(key, seen.shape[1]))
        _, (h, z, prior, post) = lax.scan(advance, start, moved)
        out = jax.nn.silu(jnp.concatenate([h, z], -1) @ params["decode"][0]) @ params["decode"][1]
        p, q = jax.nn.log_softmax(post), jax.nn.log_softmax(prior)
        kl = jnp.maximum((jnp.exp(p) * (p - q)).sum((-1, -2)), 1.0).mean()
        again = jnp.square(out - seen.swapaxes(0, 1)).sum(-1).mean()
        return again + kl + jnp.square((h @ params["reward"])[..., 0] - rewards.T).mean()

    def step(params, state, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        params, state = adamw(params, grads, state, lr=1e-4)
        return params, state, value

    data = [place.array((16, 64, 1024)), place.array((16, 64, 6)), place.array((16, 64))]
    arguments = [here(place, params), here(place, moments(params)), *data, place.array((2,), "uint32")]
    return Work(step, arguments, {"donate_argnums": (0, 1)})


@program()
def third_meta_step(place: Place) -> Work:
    """Learning to learn: five inner steps for each of thirty-two tasks, a gradient through all of them."""
    params = [(f32(1, 40), f32(40)), (f32(40, 40), f32(40)), (f32(40, 1), f32(1))]

    def net(params, x):
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        return x @ params[-1][0] + params[-1][1]

    def error(params, x, y):
        return jnp.square(net(params, x) - y).mean()

    def adapted(params, x, y):
        def inner(params, _):
            return sgd(params, jax.grad(error)(params, x, y), 0.01), None

        return lax.scan(inner, params, None, length=5)[0]

    def outer(params, x, y, x2, y2):
        return jax.vmap(lambda *task: error(adapted(params, *task[:2]), *task[2:]))(x, y, x2, y2).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, *tasks):
        value, grads = jax.value_and_grad(outer)(params, *tasks)
        params, state = adamw(params, grads, state, decay=0.0)
        return params, state, value

    task = place.array((32, 20, 1))
    return Work(step, [here(place, params), here(place, moments(params)), task, task, task, task])


@program()
def third_linear_attention_step(place: Place) -> Work:
    """Gated linear attention by chunks: products inside a chunk, a scan of the state over chunks."""
    width, heads, size, chunk = 1024, 8, 128, 128
    params = {"qkvg": bf16(4, width, 4, heads, size), "o": bf16(4, heads, size, width), "g": bf16(4, width)}

    def mix(x, p):
        b, t, _ = x.shape
        q, k, v, g = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", x, p["qkvg"]), 2, 0)
        decay = jax.nn.log_sigmoid(g.astype(jnp.float32).mean(-1)) / 16

        def pieces(y):
            return jnp.moveaxis(y.reshape(b, t // chunk, chunk, *y.shape[2:]), 1, 0)

        def piece(state, now):
            q, k, v, d = now
            total = jnp.cumsum(d, 1)
            weight = jnp.exp(total[:, :, None] - total[:, None])
            causal = jnp.tril(jnp.ones((chunk, chunk), bool))[None, :, :, None]
            inside = jnp.einsum("bqhk,bshk->bqsh", q, k) * jnp.where(causal, weight, 0)
            out = jnp.einsum("bqsh,bshv->bqhv", inside.astype(v.dtype), v)
            out = out + jnp.einsum("bqhk,bhkv->bqhv", q * jnp.exp(total)[..., None].astype(q.dtype), state)
            rest = jnp.exp(total[:, -1:] - total)[..., None].astype(k.dtype)
            state = state * jnp.exp(total[:, -1])[..., None, None].astype(state.dtype)
            return state + jnp.einsum("bshk,bshv->bhkv", k * rest, v), out

        state = jnp.zeros((b, heads, size, size), x.dtype)
        _, out = lax.scan(piece, state, tuple(map(pieces, (q, k, v, decay))))
        return jnp.einsum("bthv,hvd->btd", jnp.moveaxis(out, 0, 1).reshape(b, t, heads, size), p["o"])

    def loss(params, x, y):
        def layer(x, p):
            return x + mix(rms_norm(x, p["g"]), p), None

        x, _ = lax.scan(layer, x, params)
        return jnp.square(x.astype(jnp.float32) - y).mean()

    def step(params, velocity, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params, velocity = momentum(params, grads, velocity, 1e-3)
        return params, velocity, value

    data = [place.array((4, 4096, width), "bfloat16"), place.array((4, 4096, width))]
    return Work(step, [here(place, params), here(place, params), *data], {"donate_argnums": (0, 1)})


@program()
def third_codebook_step(place: Place) -> Work:
    """Pictures as codes: convolutions down and up, the nearest of 1,024 vectors by distances, straight through."""

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(
            x, w, (stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    params = {
        "down": [f32(4, 4, 3, 128), f32(4, 4, 128, 256), f32(3, 3, 256, 64)],
        "codes": f32(1024, 64),
        "up": [f32(3, 3, 64, 256), f32(4, 4, 256, 128), f32(4, 4, 128, 3)],
    }

    def loss(params, x):
        h = jax.nn.relu(conv(x, params["down"][0], 2))
        h = conv(jax.nn.relu(conv(h, params["down"][1], 2)), params["down"][2])
        flat, codes = h.reshape(-1, 64), params["codes"]
        distance = jnp.square(flat[:, None] - codes[None]).sum(-1)
        near = codes[distance.argmin(-1)].reshape(h.shape)
        commit = (
            jnp.square(lax.stop_gradient(near) - h).mean() + jnp.square(near - lax.stop_gradient(h)).mean()
        )
        y = jax.nn.relu(conv(h + lax.stop_gradient(near - h), params["up"][0]))
        for w in params["up"][1:]:
            y = jax.image.resize(y, (y.shape[0], 2 * y.shape[1], 2 * y.shape[2], y.shape[3]), "nearest")
            y = conv(y, w) if w is params["up"][-1] else jax.nn.relu(conv(y, w))
        return jnp.square(y - x).mean() + 0.25 * commit

    def step(params, state, x):
        value, grads = jax.value_and_grad(loss)(params, x)
        params, state = adamw(params, grads, state)
        return params, state, value

    return Work(step, [here(place, params), here(place, moments(params)), place.array((64, 64, 64, 3))])


@program()
def third_graph_step(place: Place) -> Work:
    """Three layers of attention along edges, softmax over what comes in at a node, nodes classified."""
    nodes, edges, width = 169343, 1166243, 128
    params = [{"w": f32(width, width), "a": f32(2, width), "n": (f32(width), f32(width))} for _ in range(3)]
    params = {"layers": params, "out": f32(width, 40)}

    def loss(params, x, source, target, labels, chosen):
        for p in params["layers"]:
            h = x @ p["w"]
            score = jax.nn.leaky_relu((h @ p["a"][0])[source] + (h @ p["a"][1])[target], 0.2)
            top = jax.ops.segment_max(score, target, nodes)
            part = jnp.exp(score - top[target])
            total = jax.ops.segment_sum(part, target, nodes)
            message = h[source] * (part / (total[target] + 1e-9))[:, None]
            x = jax.nn.elu(layer_norm(x + jax.ops.segment_sum(message, target, nodes), *p["n"]))
        return cross_entropy((x @ params["out"])[chosen], labels[chosen])

    def step(params, state, *graph):
        value, grads = jax.value_and_grad(loss)(params, *graph)
        params, state = adamw(params, grads, state, lr=1e-2)
        return params, state, value

    graph = [place.array((nodes, width)), place.array((edges,), "int32"), place.array((edges,), "int32")]
    graph += [place.array((nodes,), "int32"), place.array((90941,), "int32")]
    arguments = [here(place, params), here(place, moments(params)), *graph]
    return Work(step, arguments, {"donate_argnums": (0, 1)})


@program()
def third_fp8_step(place: Place) -> Work:
    """Products of e4m3 with scales from the last step's largest values, gradients through them in bf16."""
    width = 2048
    params = {"w": bf16(4, width, width), "scale": f32(4, 2)}

    @jax.custom_vjp
    def dot(x, w, scale):
        def narrow(v, s):
            return jnp.clip(v.astype(jnp.float32) / s, -448, 448).astype(jnp.float8_e4m3fn)

        out = lax.dot_general(
            narrow(x, scale[0]),
            narrow(w, scale[1]),
            (((1,), (0,)), ((), ())),
            preferred_element_type=jnp.float32,
        )
        return (out * scale[0] * scale[1]).astype(jnp.bfloat16)

    dot.defvjp(
        lambda x, w, s: (dot(x, w, s), (x, w)),
        lambda r, g: (g @ r[1].T, r[0].T @ g, jnp.zeros((2,), jnp.float32)),
    )

    def step(params, x, y):
        def loss(w):
            h, tops = x, []
            for i in range(4):
                tops.append(jnp.stack([jnp.abs(h).max(), jnp.abs(w[i]).max()]).astype(jnp.float32))
                h = jax.nn.gelu(dot(h, w[i], params["scale"][i]))
            return jnp.square(h - y).astype(jnp.float32).mean(), jnp.stack(tops)

        (value, tops), grads = jax.value_and_grad(loss, has_aux=True)(params["w"])
        return {"w": params["w"] - 1e-3 * grads, "scale": tops / 448}, value

    data = place.array((8192, width), "bfloat16")
    return Work(step, [here(place, params), data, data], {"donate_argnums": (0,)})
