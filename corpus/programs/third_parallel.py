"""The third sample, many devices by the compiler: arrays spread by PartitionSpecs, collectives left to XLA."""

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
    i32,
    moments,
    rms_norm,
    rope,
    sgd,
    spread,
)


def _opt_specs(specs):
    return {"mu": specs, "nu": specs, "count": P()}


def _layers(count, width, heads, size, ff, kind):
    return {
        "n": kind(count, 2, width),
        "qkv": kind(count, width, 3, heads, size),
        "o": kind(count, heads, size, width),
        "up": kind(count, width, ff),
        "down": kind(count, ff, width),
    }


def _layer(x, p, keep=lambda x, *_: x, causal=True):
    """One decoder layer; `keep` says how activations are spread."""
    p = jax.tree.map(lambda w: w.astype(x.dtype), p)
    y = rms_norm(x, p["n"][0])
    q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->blchk", y, p["qkv"]), 2, 0)
    positions = jnp.arange(x.shape[1])[None]
    q, k = keep(rope(q, positions), "heads"), keep(rope(k, positions), "heads")
    s = jnp.einsum("bqhk,bshk->bhqs", q, k).astype(jnp.float32) / math.sqrt(q.shape[-1])
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), s, -1e30)
    a = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(s, -1).astype(x.dtype), v)
    x = keep(x + jnp.einsum("bqhk,hkd->bqd", keep(a, "heads"), p["o"]), "residual")
    y = keep(jax.nn.gelu(rms_norm(x, p["n"][1]) @ p["up"]), "hidden")
    return keep(x + y @ p["down"], "residual")


@program(devices=8)
def third_fully_sharded_step(place: Place) -> Work:
    """Parameters and optimizer state over all devices, batch too, activations pinned to the batch, layers recomputed."""
    mesh = place.mesh(fsdp=8)
    params = {"embed": f32(32768, 2048), "layers": _layers(6, 2048, 16, 128, 8192, f32), "norm": f32(2048)}
    specs = {
        "embed": P("fsdp"),
        "layers": {
            "n": P(),
            "qkv": P(None, "fsdp"),
            "o": P(None, None, None, "fsdp"),
            "up": P(None, "fsdp"),
            "down": P(None, None, "fsdp"),
        },
        "norm": P(),
    }

    def keep(x, _):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P("fsdp")))

    def loss(params, tokens):
        x = keep(params["embed"].astype(jnp.bfloat16)[tokens[:, :-1]], "residual")
        run = jax.checkpoint(lambda x, p: (_layer(x, p, keep), None))
        x, _ = lax.scan(run, x, params["layers"])
        logits = rms_norm(x, params["norm"]) @ params["embed"].T.astype(x.dtype)
        return cross_entropy(keep(logits, "logits"), tokens[:, 1:])

    def step(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        grads, norm = clipped(grads)
        params, state = adamw(params, grads, state)
        return params, state, value, norm

    arguments = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), _opt_specs(specs))]
    tokens = place.sharded(mesh, (16, 2049), P("fsdp"), "int32")
    return Work(step, [*arguments, tokens], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_tensor_and_data_step(place: Place) -> Work:
    """Two by four: batch over two, heads and hidden units over four; sequence over four between the layers."""
    mesh = place.mesh(data=2, model=4)
    params = {"embed": f32(32768, 2048), "layers": _layers(4, 2048, 16, 128, 8192, f32), "norm": f32(2048)}
    specs = {
        "embed": P("model"),
        "layers": {
            "n": P(),
            "qkv": P(None, None, None, "model"),
            "o": P(None, "model"),
            "up": P(None, None, "model"),
            "down": P(None, "model"),
        },
        "norm": P(),
    }
    kinds = {
        "residual": P("data", "model"),
        "heads": P("data", None, "model"),
        "hidden": P("data", None, "model"),
        "logits": P("data", None, "model"),
    }

    def keep(x, kind):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, kinds[kind]))

    def loss(params, tokens, labels):
        x = keep(params["embed"].astype(jnp.bfloat16)[tokens], "residual")
        x, _ = lax.scan(lambda x, p: (_layer(x, p, keep), None), x, params["layers"])
        logits = rms_norm(x, params["norm"]) @ params["embed"].T.astype(x.dtype)
        return cross_entropy(keep(logits, "logits"), labels)

    def step(params, state, tokens, labels):
        value, grads = jax.value_and_grad(loss)(params, tokens, labels)
        params, state = adamw(params, grads, state)
        return params, state, value

    arguments = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), _opt_specs(specs))]
    tokens = place.sharded(mesh, (8, 2048), P("data"), "int32")
    return Work(step, [*arguments, tokens, tokens], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_optimizer_shards_step(place: Place) -> Work:
    """Parameters on every device, moments of Adam spread: the compiler is told both, and does what is between."""
    mesh = place.mesh(data=8)
    layer = {"a": f32(1024, 4096), "b": f32(4096, 1024)}
    params = {"in": f32(2048, 1024), "layers": [layer] * 4, "out": f32(1024, 1024)}
    whole = jax.tree.map(lambda _: P(), params)
    parts = jax.tree.map(lambda _: P("data"), params)

    def loss(params, x, y):
        h = x @ params["in"]
        for p in params["layers"]:
            h = h + jax.nn.gelu(h @ p["a"]) @ p["b"]
        return jnp.square(h @ params["out"] - y).mean()

    def step(params, state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        cut = jax.tree.map(lambda g: lax.with_sharding_constraint(g, NamedSharding(mesh, P("data"))), grads)
        params, state = adamw(params, cut, state)
        return (
            jax.tree.map(lambda p: lax.with_sharding_constraint(p, NamedSharding(mesh, P())), params),
            state,
            value,
        )

    arguments = [spread(place, mesh, params, whole), spread(place, mesh, moments(params), _opt_specs(parts))]
    data = [place.sharded(mesh, (4096, n), P("data")) for n in (2048, 1024)]
    return Work(step, [*arguments, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_sync_batch_norm_step(place: Place) -> Work:
    """Convolutions and batch norm over the batch of all devices, parameters on each; momentum, donated."""
    mesh = place.mesh(batch=8)
    sizes = [(3, 64), (64, 128), (128, 256), (256, 256)]
    params = {
        "convs": [{"w": f32(3, 3, a, b), "s": f32(b), "b": f32(b)} for a, b in sizes],
        "fc": f32(256, 100),
    }
    specs = jax.tree.map(lambda _: P(), params)

    def loss(params, x, y):
        for p in params["convs"]:
            x = lax.conv_general_dilated(
                x.astype(jnp.bfloat16),
                p["w"].astype(jnp.bfloat16),
                (2, 2),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            ).astype(jnp.float32)
            x = (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)
            x = jax.nn.relu(x * p["s"] + p["b"])
        return cross_entropy(x.mean((1, 2)) @ params["fc"], y)

    def step(params, velocity, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return sgd(params, velocity), velocity, value

    state = [spread(place, mesh, params, specs)] * 2
    data = [
        place.sharded(mesh, (512, 128, 128, 3), P("batch")),
        place.sharded(mesh, (512,), P("batch"), "int32"),
    ]
    return Work(step, [*state, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_experts_by_einsum_step(place: Place) -> Work:
    """Experts on a device each, words given to them by products with masks of one and zero, capacity bounded."""
    mesh = place.mesh(expert=8)
    width, experts = 1024, 16
    params = {
        "router": f32(width, experts),
        "up": f32(experts, width, 4096),
        "down": f32(experts, 4096, width),
    }
    specs = {"router": P(), "up": P("expert"), "down": P("expert")}

    def moe(params, x):
        groups, words, _ = x.shape
        capacity = 2 * words // experts
        probs = jax.nn.softmax(x.astype(jnp.float32) @ params["router"])
        gate, index = lax.top_k(probs, 2)
        mask = jax.nn.one_hot(index, experts, dtype=jnp.float32)
        rank = (jnp.cumsum(mask.reshape(groups, -1, experts), 1) - 1).reshape(mask.shape)
        slot = jax.nn.one_hot((rank * mask).sum(-1).astype(jnp.int32), capacity)
        combine = jnp.einsum("gsk,gske,gskc->gsec", gate, mask, slot)
        dispatch = (combine > 0).astype(x.dtype)
        sent = jnp.einsum("gsec,gsd->egcd", dispatch, x)
        sent = lax.with_sharding_constraint(sent, NamedSharding(mesh, P("expert")))
        h = jax.nn.gelu(jnp.einsum("egcd,edf->egcf", sent, params["up"].astype(x.dtype)))
        out = jnp.einsum("egcf,efd->egcd", h, params["down"].astype(x.dtype))
        out = lax.with_sharding_constraint(out, NamedSharding(mesh, P(None, "expert")))
        balance = (mask.mean((0, 1, 2)) * probs.mean((0, 1))).sum() * experts
        return jnp.einsum("gsec,egcd->gsd", combine.astype(x.dtype), out), balance

    def loss(params, x, y):
        out, balance = moe(params, x)
        return jnp.square((x + out).astype(jnp.float32) - y).mean() + 0.01 * balance

    def step(params, state, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        params, state = adamw(params, grads, state)
        return params, state, value

    arguments = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), _opt_specs(specs))]
    data = [place.sharded(mesh, (16, 1024, width), P("expert"), t) for t in ("bfloat16", "float32")]
    return Work(step, [*arguments, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_tables_by_rows_step(place: Place) -> Work:
    """Click prediction: twenty-six tables by rows over the devices, dense layers on each, Adagrad."""
    mesh = place.mesh(d=8)
    params = {
        "tables": f32(26, 100_000, 64),
        "bottom": [f32(13, 512), f32(512, 64)],
        "top": [f32(415, 512), f32(512, 256), f32(256, 1)],
    }
    specs = {"tables": P(None, "d"), "bottom": [P()] * 2, "top": [P()] * 3}

    def loss(params, dense, sparse, clicked):
        x = dense
        for w in params["bottom"]:
            x = jax.nn.relu(x @ w)
        found = jax.vmap(lambda t, i: t[i], (0, 1), 1)(params["tables"], sparse)
        all_of = jnp.concatenate([x[:, None], found], 1)
        pairs = jnp.einsum("bik,bjk->bij", all_of, all_of)
        i, j = jnp.triu_indices(27, 1)
        x = jnp.concatenate([x, pairs[:, i, j]], -1)
        for w in params["top"][:-1]:
            x = jax.nn.relu(x @ w)
        z = (x @ params["top"][-1])[:, 0]
        return (jax.nn.softplus(z) - z * clicked).mean()

    def step(params, sums, dense, sparse, clicked):
        value, grads = jax.value_and_grad(loss)(params, dense, sparse, clicked)
        sums = jax.tree.map(lambda s, g: s + g * g, sums, grads)
        params = jax.tree.map(lambda p, g, s: p - 0.02 * g / (jnp.sqrt(s) + 1e-10), params, grads, sums)
        return params, sums, value

    state = [spread(place, mesh, params, specs)] * 2
    data = [place.sharded(mesh, (8192, 13), P("d")), place.sharded(mesh, (8192, 26), P("d"), "int32")]
    return Work(step, [*state, *data, place.sharded(mesh, (8192,), P("d"))], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_decode_by_heads(place: Place) -> Work:
    """Sixty-four words in a loop: weights and cache by heads, greedy choice over a vocabulary that is spread."""
    mesh = place.mesh(model=8)
    width, heads, size, vocab, rows, length = 4096, 32, 128, 32000, 16, 2048
    params = {"embed": bf16(vocab, width), "layers": _layers(4, width, heads, size, 11008, bf16)}
    specs = {
        "embed": P("model"),
        "layers": {
            "n": P(),
            "qkv": P(None, None, None, "model"),
            "o": P(None, "model"),
            "up": P(None, None, "model"),
            "down": P(None, "model"),
        },
    }
    cache = bf16(4, 2, rows, length, heads, size)

    def one(params, cache, token, at):
        x = params["embed"][token]

        def layer(x, both):
            p, kv = both
            q, k, v = jnp.moveaxis(jnp.einsum("bd,dchk->bchk", rms_norm(x, p["n"][0]), p["qkv"]), 1, 0)
            kv = lax.dynamic_update_slice(kv, jnp.stack([k, v])[:, :, None], (0, 0, at, 0, 0))
            s = jnp.einsum("bhk,bshk->bhs", q, kv[0]).astype(jnp.float32) / math.sqrt(size)
            s = jnp.where(jnp.arange(length) <= at, s, -1e30)
            a = jnp.einsum("bhs,bshk->bhk", jax.nn.softmax(s).astype(x.dtype), kv[1])
            x = x + jnp.einsum("bhk,hkd->bd", a, p["o"])
            return x + jax.nn.silu(rms_norm(x, p["n"][1]) @ p["up"]) @ p["down"], kv

        x, cache = lax.scan(layer, x, (params["layers"], cache))
        return cache, (x @ params["embed"].T).argmax(-1).astype(jnp.int32)

    def generate(params, cache, token, at):
        def word(carry, i):
            cache, token = carry
            cache, token = one(params, cache, token, at + i)
            return (cache, token), token

        (cache, _), words = lax.scan(word, (cache, token), jnp.arange(64))
        return cache, words

    arguments = [
        spread(place, mesh, params, specs),
        spread(place, mesh, cache, P(None, None, None, None, "model")),
    ]
    token, at = spread(place, mesh, [i32(rows), i32()], [P(), P()])
    return Work(generate, [*arguments, token, at], {"donate_argnums": (1,)})


@program(devices=8)
def third_sampler_by_batch(place: Place) -> Work:
    """Thirty steps of a sampler with guidance, pictures over devices, the net's wide layers over them as well."""
    mesh = place.mesh(data=4, model=2)
    params = {"layers": _layers(6, 1024, 16, 64, 4096, bf16), "in": bf16(32, 1024), "out": bf16(1024, 32)}
    cut = {"n": P(), "qkv": P(None, None, None, "model"), "o": P(None, "model")}
    specs = {"layers": {**cut, "up": P(None, None, "model"), "down": P(None, "model")}, "in": P(), "out": P()}

    def net(params, x, label):
        h = x @ params["in"] + label[:, None, None].astype(x.dtype)
        h, _ = lax.scan(lambda h, p: (_layer(h, p, causal=False), None), h, params["layers"])
        return h @ params["out"]

    def sample(params, noise, label):
        def step(x, t):
            both = net(params, jnp.concatenate([x, x]), jnp.concatenate([label, jnp.zeros_like(label)]))
            free, led = jnp.split(both, 2)
            return x - (free + 4.0 * (led - free)) / 30, None

        return lax.scan(step, noise, jnp.linspace(1, 0, 30))[0]

    noise = place.sharded(mesh, (32, 1024, 32), P("data"), "bfloat16")
    return Work(sample, [spread(place, mesh, params, specs), noise, place.sharded(mesh, (32,), P("data"))])


@program(devices=32)
def third_hybrid_step(place: Place) -> Work:
    """Thirty-two devices: copies over four, parameters spread over eight; gradients summed over the copies."""
    mesh = place.mesh(replica=4, fsdp=8)
    params = {"embed": f32(32768, 1024), "layers": _layers(4, 1024, 8, 128, 4096, f32)}
    inside = {"n": P(), "qkv": P(None, "fsdp"), "o": P(None, None, None, "fsdp"), "up": P(None, "fsdp")}
    specs = {"embed": P(None, "fsdp"), "layers": {**inside, "down": P(None, None, "fsdp")}}
    rows = NamedSharding(mesh, P(("replica", "fsdp")))

    def loss(params, tokens):
        x = lax.with_sharding_constraint(params["embed"].astype(jnp.bfloat16)[tokens], rows)
        keep = functools.partial(lambda x, _: lax.with_sharding_constraint(x, rows))
        x, _ = lax.scan(jax.checkpoint(lambda x, p: (_layer(x, p, keep), None)), x, params["layers"])
        return cross_entropy((x @ params["embed"].T.astype(x.dtype))[:, :-1], tokens[:, 1:])

    def step(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        params, state = adamw(params, grads, state)
        return params, state, value

    arguments = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), _opt_specs(specs))]
    tokens = place.sharded(mesh, (64, 1024), P(("replica", "fsdp")), "int32")
    return Work(step, [*arguments, tokens], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_covariance_power(place: Place) -> Work:
    """Leading directions of data by rows on devices: block power iterations with QR in between."""
    mesh = place.mesh(rows=8)

    def directions(x, start):
        x = x - x.mean(0)

        def again(q, _):
            q, r = jnp.linalg.qr(x.T @ (x @ q))
            return q, jnp.abs(jnp.diagonal(r))

        return lax.scan(again, start, None, length=20)

    return Work(directions, spread(place, mesh, [f32(262144, 512), f32(512, 16)], [P("rows"), P()]))
