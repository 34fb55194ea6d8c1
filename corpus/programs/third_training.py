"""The third sample, training on one device: steps with optimizers written by hand, in the sizes that people train."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import (
    adamw,
    bf16,
    clipped,
    cross_entropy,
    f32,
    here,
    layer_norm,
    moments,
    momentum,
    rms_norm,
    rope,
    sgd,
)


@program()
def third_llama_step(place: Place) -> Work:
    """Decoder layers in a scan, grouped heads, parameters f32, products bf16, clipped AdamW, state donated."""
    layers, width, heads, groups, size, vocab = 8, 1024, 16, 4, 64, 32000
    params = {
        "embed": f32(vocab, width),
        "norm": f32(width),
        "layers": {
            "n1": f32(layers, width),
            "n2": f32(layers, width),
            "q": f32(layers, width, heads, size),
            "kv": f32(layers, width, 2, groups, size),
            "o": f32(layers, heads, size, width),
            "up": f32(layers, width, 2, 2816),
            "down": f32(layers, 2816, width),
        },
    }

    def layer(x, p):
        p = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
        positions = jnp.arange(x.shape[1])[None]
        y = rms_norm(x, p["n1"])
        q = rope(jnp.einsum("bld,dhk->blhk", y, p["q"]), positions)
        k, v = jnp.moveaxis(jnp.einsum("bld,dcgk->blcgk", y, p["kv"]), 2, 0)
        k = rope(k, positions)
        q = q.reshape(*q.shape[:2], groups, heads // groups, size)
        s = jnp.einsum("bqgrk,bsgk->bgrqs", q, k).astype(jnp.float32) / math.sqrt(size)
        s = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), s, -1e30)
        a = jax.nn.softmax(s, -1).astype(x.dtype)
        y = jnp.einsum("bgrqs,bsgk->bqgrk", a, v).reshape(*x.shape[:2], heads, size)
        x = x + jnp.einsum("blhk,hkd->bld", y, p["o"])
        gate, up = jnp.moveaxis(jnp.einsum("bld,dcf->blcf", rms_norm(x, p["n2"]), p["up"]), 2, 0)
        return x + (jax.nn.silu(gate) * up) @ p["down"], None

    def loss(params, tokens):
        x = params["embed"].astype(jnp.bfloat16)[tokens[:, :-1]]
        x, _ = lax.scan(jax.checkpoint(layer), x, params["layers"])
        return cross_entropy(rms_norm(x, params["norm"]) @ params["embed"].T.astype(x.dtype), tokens[:, 1:])

    def step(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        grads, norm = clipped(grads)
        params, state = adamw(params, grads, state)
        return params, state, {"loss": value, "norm": norm}

    arguments = [here(place, params), here(place, moments(params)), place.array((8, 2049), "int32")]
    return Work(step, arguments, {"donate_argnums": (0, 1)})


@program()
def third_gpt2_step(place: Place) -> Work:
    """Six layers unrolled in f32, tied embedding, AdamW; a first version of a script: nothing is donated."""
    width, vocab = 768, 50304
    block = {
        "ln1": (f32(width), f32(width)),
        "qkv": f32(width, 3 * width),
        "out": f32(width, width),
        "ln2": (f32(width), f32(width)),
        "fc": f32(width, 4 * width),
        "proj": f32(4 * width, width),
    }
    params = {
        "wte": f32(vocab, width),
        "wpe": f32(1024, width),
        "blocks": [block] * 6,
        "ln": (f32(width),) * 2,
    }

    def attend(x, p):
        b, t, _ = x.shape
        q, k, v = (h.reshape(b, t, 12, 64).transpose(0, 2, 1, 3) for h in jnp.split(x @ p["qkv"], 3, -1))
        s = q @ k.transpose(0, 1, 3, 2) / 8.0
        s = jnp.where(jnp.tril(jnp.ones((t, t))) == 0, -jnp.inf, s)
        return (jax.nn.softmax(s) @ v).transpose(0, 2, 1, 3).reshape(b, t, width) @ p["out"]

    def loss(params, x, y):
        h = params["wte"][x] + params["wpe"]
        for p in params["blocks"]:
            h = h + attend(layer_norm(h, *p["ln1"]), p)
            h = h + jax.nn.gelu(layer_norm(h, *p["ln2"]) @ p["fc"]) @ p["proj"]
        return cross_entropy(layer_norm(h, *params["ln"]) @ params["wte"].T, y)

    def train_step(params, state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params, state = adamw(params, grads, state, lr=6e-4)
        return params, state, value

    ids = place.array((8, 1024), "int32")
    return Work(train_step, [here(place, params), here(place, moments(params)), ids, ids])


@program()
def third_accumulated_step(place: Place) -> Work:
    """Gradients of sixteen small batches summed in a scan, then one update; state donated."""
    width = 512
    layer = {"a": f32(width, 4 * width), "b": f32(4 * width, width), "g": f32(width)}
    params = {"in": f32(784, width), "layers": [layer] * 4, "out": f32(width, 1000)}

    def loss(params, x, y):
        h = x @ params["in"]
        for p in params["layers"]:
            h = h + jax.nn.relu(rms_norm(h, p["g"]) @ p["a"]) @ p["b"]
        return cross_entropy(h @ params["out"], y)

    def step(params, state, xs, ys):
        def micro(total, batch):
            value, grads = jax.value_and_grad(loss)(params, *batch)
            return jax.tree.map(jnp.add, total, grads), value

        zeros = jax.tree.map(jnp.zeros_like, params)
        grads, values = lax.scan(micro, zeros, (xs, ys))
        grads = jax.tree.map(lambda g: g / xs.shape[0], grads)
        params, state = adamw(params, grads, state)
        return params, state, values.mean()

    data = [place.array((16, 256, 784)), place.array((16, 256), "int32")]
    return Work(step, [here(place, params), here(place, moments(params)), *data], {"donate_argnums": (0, 1)})


@program()
def third_resnet_step(place: Place) -> Work:
    """Residual blocks on pictures of 224 x 224 in bf16, batch statistics, momentum, all of it in one state."""
    widths = (64, 128, 256, 512)

    def bn(c):
        return {"scale": f32(c), "bias": f32(c)}

    params, stats = (
        {"stem": f32(7, 7, 3, 64), "stem_bn": bn(64), "fc": f32(512, 1000)},
        {"stem_bn": (f32(64),) * 2},
    )
    previous = 64
    for i, c in enumerate(widths):
        params[f"b{i}"] = {"c1": f32(3, 3, previous, c), "n1": bn(c), "c2": f32(3, 3, c, c), "n2": bn(c)}
        params[f"b{i}"]["skip"] = f32(1, 1, previous, c)
        stats[f"b{i}"] = {"n1": (f32(c),) * 2, "n2": (f32(c),) * 2}
        previous = c

    def conv(x, w, stride=1):
        return lax.conv_general_dilated(
            x, w.astype(x.dtype), (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def norm(x, p, s):
        wide = x.astype(jnp.float32)
        mean, var = wide.mean((0, 1, 2)), wide.var((0, 1, 2))
        y = (wide - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]
        return y.astype(x.dtype), (0.9 * s[0] + 0.1 * mean, 0.9 * s[1] + 0.1 * var)

    def forward(params, stats, x):
        new = {}
        x, new["stem_bn"] = norm(
            conv(x.astype(jnp.bfloat16), params["stem"], 2), params["stem_bn"], stats["stem_bn"]
        )
        x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for i in range(4):
            p, s, stride = params[f"b{i}"], stats[f"b{i}"], 1 + (i > 0)
            y, n1 = norm(conv(x, p["c1"], stride), p["n1"], s["n1"])
            y, n2 = norm(conv(jax.nn.relu(y), p["c2"]), p["n2"], s["n2"])
            x = jax.nn.relu(y + conv(x, p["skip"], stride))
            new[f"b{i}"] = {"n1": n1, "n2": n2}
        return x.mean((1, 2)).astype(jnp.float32) @ params["fc"], new

    def step(state, images, labels):
        def loss(params):
            logits, stats = forward(params, state["stats"], images)
            return cross_entropy(logits, labels), stats

        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(state["params"])
        params, velocity = momentum(state["params"], grads, state["velocity"])
        return {"params": params, "stats": stats, "velocity": velocity}, value

    state = here(place, {"params": params, "stats": stats, "velocity": params})
    return Work(
        step, [state, place.array((128, 224, 224, 3)), place.array((128,), "int32")], {"donate_argnums": 0}
    )


@program()
def third_diffusion_transformer_step(place: Place) -> Work:
    """Flow matching on latents: layers modulated by time and class, moving average of the parameters, donated."""
    width, layers = 768, 6
    params = {
        "patch": f32(16, width),
        "pos": f32(256, width),
        "classes": f32(1001, width),
        "time": (f32(256, width), f32(width, width)),
        "layers": {
            "mod": f32(layers, width, 6 * width),
            "qkv": f32(layers, width, 3, 12, 64),
            "o": f32(layers, 12, 64, width),
            "up": f32(layers, width, 4 * width),
            "down": f32(layers, 4 * width, width),
        },
        "final": f32(width, 16),
    }

    def plain(x):
        x = x - x.mean(-1, keepdims=True)
        return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)

    def velocity(params, x, t, label):
        freq = jnp.exp(-jnp.arange(128) / 128 * math.log(10000.0))
        wave = t[:, None] * freq * 1000
        c = jnp.concatenate([jnp.cos(wave), jnp.sin(wave)], -1) @ params["time"][0]
        c = jax.nn.silu(jax.nn.silu(c) @ params["time"][1] + params["classes"][label])
        h = x @ params["patch"] + params["pos"]

        def layer(h, p):
            s1, b1, g1, s2, b2, g2 = jnp.split((c @ p["mod"])[:, None], 6, -1)
            y = plain(h) * (1 + s1) + b1
            q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->blchk", y, p["qkv"]), 2, 0)
            a = jax.nn.dot_product_attention(q, k, v)
            h = h + g1 * jnp.einsum("blhk,hkd->bld", a, p["o"])
            y = plain(h) * (1 + s2) + b2
            return h + g2 * (jax.nn.gelu(y @ p["up"]) @ p["down"]), None

        h, _ = lax.scan(layer, h, params["layers"])
        return plain(h) @ params["final"]

    def step(state, x, label, key):
        kt, kn = jax.random.split(key)
        t = jax.nn.sigmoid(jax.random.normal(kt, (x.shape[0],)))
        noise = jax.random.normal(kn, x.shape)
        mixed = (1 - t[:, None, None]) * x + t[:, None, None] * noise

        def loss(params):
            return jnp.square(velocity(params, mixed, t, label) - (noise - x)).mean()

        value, grads = jax.value_and_grad(loss)(state["params"])
        params, opt = adamw(state["params"], grads, state["opt"], lr=1e-4, decay=0.0)
        ema = jax.tree.map(lambda e, p: 0.9999 * e + 0.0001 * p, state["ema"], params)
        return {"params": params, "opt": opt, "ema": ema}, value

    state = here(place, {"params": params, "opt": moments(params), "ema": params})
    data = [place.array((32, 256, 16)), place.array((32,), "int32"), place.array((2,), "uint32")]
    return Work(step, [state, *data], {"donate_argnames": "state"})


@program()
def third_preference_step(place: Place) -> Work:
    """Direct preference optimization: a policy and a frozen reference see chosen and rejected answers."""
    width, vocab, layers = 1024, 32000, 4
    params = {
        "embed": bf16(vocab, width),
        "layers": {
            "qkv": bf16(layers, width, 3, 8, 128),
            "o": bf16(layers, 8, 128, width),
            "up": bf16(layers, width, 4 * width),
            "down": bf16(layers, 4 * width, width),
            "g": bf16(layers, 2, width),
        },
        "head": bf16(width, vocab),
    }

    def layer(x, p):
        q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->blchk", rms_norm(x, p["g"][0]), p["qkv"]), 2, 0)
        a = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + jnp.einsum("blhk,hkd->bld", a, p["o"])
        return x + jax.nn.gelu(rms_norm(x, p["g"][1]) @ p["up"]) @ p["down"], None

    def log_likelihood(params, tokens, mask):
        x, _ = lax.scan(layer, params["embed"][tokens[:, :-1]], params["layers"])
        logp = jax.nn.log_softmax((x @ params["head"]).astype(jnp.float32))
        picked = jnp.take_along_axis(logp, tokens[:, 1:, None], -1)[..., 0]
        return (picked * mask[:, 1:]).sum(-1)

    def step(policy, opt, reference, chosen, rejected, chosen_mask, rejected_mask):
        def loss(policy):
            good = log_likelihood(policy, chosen, chosen_mask) - log_likelihood(
                reference, chosen, chosen_mask
            )
            bad = log_likelihood(policy, rejected, rejected_mask)
            bad = bad - log_likelihood(reference, rejected, rejected_mask)
            return -jax.nn.log_sigmoid(0.1 * (good - bad)).mean()

        value, grads = jax.value_and_grad(loss)(policy)
        policy, opt = adamw(policy, grads, opt, lr=5e-7)
        return policy, opt, value

    ids, mask = place.array((4, 1024), "int32"), place.array((4, 1024))
    state = [here(place, params), here(place, moments(params)), here(place, params)]
    return Work(step, [*state, ids, ids, mask, mask], {"donate_argnums": (0, 1)})


@program()
def third_private_step(place: Place) -> Work:
    """Gradients of every example by vmap, each clipped, summed, noise added."""
    params = [(f32(3072, 1024), f32(1024)), (f32(1024, 512), f32(512)), (f32(512, 10), f32(10))]

    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        return cross_entropy(x @ params[-1][0] + params[-1][1], y)

    def step(params, x, y, key):
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
        grads, norms = jax.vmap(functools.partial(clipped, limit=0.5))(grads)
        keys = jax.random.split(key, 6)
        leaves, tree = jax.tree.flatten(grads)
        leaves = [
            g.mean(0) + 1e-3 * jax.random.normal(k, g.shape[1:]) for g, k in zip(leaves, keys, strict=True)
        ]
        return sgd(params, jax.tree.unflatten(tree, leaves), 0.05), norms.mean()

    data = [place.array((256, 3072)), place.array((256,), "int32"), place.array((2,), "uint32")]
    return Work(step, [here(place, params), *data], {"donate_argnums": (0,)})


@program()
def third_transducer_step(place: Place) -> Work:
    """Speech recognition: an encoder, a predictor and the transducer's loss over the lattice of times and labels."""
    width, labels = 256, 512
    params = {
        "encoder": [(f32(320 if i == 0 else width, width), f32(width)) for i in range(4)],
        "embed": f32(labels, width),
        "cell": (f32(2 * width, 3 * width), f32(3 * width)),
        "joint": f32(width, labels),
    }

    def gru(p, h, x):
        z, r, n = jnp.split(jnp.concatenate([x, h], -1) @ p[0] + p[1], 3, -1)
        z, r = jax.nn.sigmoid(z), jax.nn.sigmoid(r)
        h = (1 - z) * jnp.tanh(n * r) + z * h
        return h, h

    def loss(params, sound, words):
        h = sound
        for w, b in params["encoder"]:
            h = jax.nn.swish(h @ w + b)
        batch, times, _ = h.shape
        state = jnp.zeros((batch, width))
        _, g = lax.scan(functools.partial(gru, params["cell"]), state, params["embed"][words].swapaxes(0, 1))
        g = jnp.concatenate([state[:, None], g.swapaxes(0, 1)], 1)
        logp = jax.nn.log_softmax(jnp.tanh(h[:, :, None] + g[:, None]) @ params["joint"])
        blank, emit = logp[..., 0], jnp.take_along_axis(logp[:, :, :-1], words[:, None, :, None], -1)[..., 0]

        def column(alpha, now):
            blank, emit = now
            stay = alpha + blank

            def label(left, both):
                value = jnp.logaddexp(left + both[0], both[1])
                return value, value

            _, rest = lax.scan(label, stay[:, 0], (emit.T, stay[:, 1:].T))
            return jnp.concatenate([stay[:, :1], rest.T], 1), None

        start = jnp.concatenate([jnp.zeros((batch, 1)), jnp.cumsum(emit[:, 0], 1)], 1)
        alpha, _ = lax.scan(column, start, (blank[:, 1:].swapaxes(0, 1), emit[:, 1:].swapaxes(0, 1)))
        return -(alpha[:, -1] + blank[:, -1, -1]).mean() / times

    def step(params, state, sound, words):
        value, grads = jax.value_and_grad(loss)(params, sound, words)
        params, state = adamw(params, grads, state)
        return params, state, value

    data = [place.array((8, 200, 320)), place.array((8, 40), "int32")]
    return Work(step, [here(place, params), here(place, moments(params)), *data])
