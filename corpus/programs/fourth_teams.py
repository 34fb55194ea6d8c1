"""The fourth sample, still more of many devices: what several teams run, from recommendation to lattice physics."""

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
    rms_norm,
    sgd,
    spread,
)


@program(devices=8)
def fourth_state_space_lm(place: Place) -> Work:
    """A recurrent language model with diagonal states by associative scans; batch over two, channels over four."""
    mesh = place.mesh(b=2, c=4)
    params = {
        "embed": f32(32000, 1024),
        "in": f32(4, 1024, 4096),
        "decay": f32(4, 4096),
        "out": f32(4, 4096, 1024),
    }
    specs = {"embed": P(None, "c"), "in": P(None, None, "c"), "decay": P(None, "c"), "out": P(None, "c")}

    def loss(params, tokens):
        def layer(x, p):
            w, decay, out = p
            u = jax.nn.silu(rms_norm(x, jnp.ones(1024, x.dtype)) @ w.astype(x.dtype)).astype(jnp.float32)
            a = jnp.broadcast_to(jnp.exp(-jnp.exp(decay)), u.shape)
            _, h = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, u), axis=1)
            return x + h.astype(x.dtype) @ out.astype(x.dtype), None

        x = params["embed"].astype(jnp.bfloat16)[tokens[:, :-1]]
        x, _ = lax.scan(jax.checkpoint(layer), x, (params["in"], params["decay"], params["out"]))
        return cross_entropy(x @ params["embed"].T.astype(x.dtype), tokens[:, 1:])

    def step(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        params, state = adamw(params, grads, state)
        return params, state, value

    opt = {"mu": specs, "nu": specs, "count": P()}
    trees = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), opt)]
    return Work(step, [*trees, place.sharded(mesh, (8, 1025), P("b"), "int32")], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_sharded_embedding_grad(place: Place) -> Work:
    """Rows are asked of the device that has them: numbers sent, rows sent back, gradients sent again."""
    mesh = place.mesh(d=8)

    @by_hand(mesh, (P("d"), P("d"), P("d")), (P("d"), P("d")))
    def step(table, ids, goal):
        mine = ids.reshape(8, -1)
        wanted = lax.all_to_all(mine, "d", 0, 0, tiled=True)
        rows = table[wanted]
        got = lax.all_to_all(rows, "d", 0, 0, tiled=True).reshape(-1, table.shape[1])
        error = got - goal
        back = lax.all_to_all(error.reshape(8, -1, table.shape[1]), "d", 0, 0, tiled=True)
        return table.at[wanted].add(-0.1 * back), jnp.square(error).mean()[None]

    table = place.sharded(mesh, (8_000_000, 64), P("d"))
    data = [place.sharded(mesh, (262_144,), P("d"), "int32"), place.sharded(mesh, (262_144, 64), P("d"))]
    return Work(step, [table, *data], {"donate_argnums": (0,)})


@program(devices=8)
def fourth_spins_of_many(place: Place) -> Work:
    """A large lattice of spins by stripes, black then white, borders passed to both neighbours every half step."""
    mesh = place.mesh(d=8)

    @by_hand(mesh, (P("d"), P("d")), (P("d"), P("d")))
    def run(spins, key):
        colour = (jnp.arange(spins.shape[0])[:, None] + jnp.arange(spins.shape[1])) % 2

        def half(spins, key, which):
            low = lax.ppermute(spins[-1:], "d", [(i, (i + 1) % 8) for i in range(8)])
            high = lax.ppermute(spins[:1], "d", [(i, (i - 1) % 8) for i in range(8)])
            p = jnp.concatenate([low, spins, high])
            near = p[:-2] + p[2:] + jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
            flip = (jax.random.uniform(key, spins.shape) < jnp.exp(-0.88 * spins * near)) & (colour == which)
            return jnp.where(flip, -spins, spins)

        def sweep(spins, key):
            a, b = jax.random.split(key)
            spins = half(half(spins, a, 0), b, 1)
            return spins, spins.mean()

        spins, means = lax.scan(sweep, spins, jax.random.split(key[0], 200))
        return spins, means[None]

    return Work(
        run, [place.sharded(mesh, (8192, 8192), P("d")), place.sharded(mesh, (8, 2), P("d"), "uint32")]
    )


@program(devices=8)
def fourth_long_decode(place: Place) -> Work:
    """A hundred words with weights over eight devices by hidden units, scan over layers inside a loop over words."""
    mesh = place.mesh(m=8)
    params = {
        "embed": bf16(50304, 2048),
        "qkv": bf16(6, 2048, 3, 16, 128),
        "o": bf16(6, 16, 128, 2048),
        "up": bf16(6, 2048, 8192),
        "down": bf16(6, 8192, 2048),
    }
    specs = {"embed": P(), "qkv": P(None, None, None, "m"), "o": P(None, "m"), "up": P(None, None, "m")}
    specs["down"] = P(None, "m")
    cache = bf16(6, 2, 4, 1024, 16, 128)

    def run(params, cache, token):
        stack = {name: params[name] for name in ("qkv", "o", "up", "down")}

        def word(carry, at):
            cache, token = carry

            def layer(x, both):
                p, kv = both
                q, k, v = jnp.moveaxis(jnp.einsum("bd,dchk->bchk", x, p["qkv"]), 1, 0)
                kv = lax.dynamic_update_slice(kv, jnp.stack([k, v])[:, :, None], (0, 0, at, 0, 0))
                s = jnp.einsum("bhk,bshk->bhs", q, kv[0]) / math.sqrt(128)
                s = jnp.where(jnp.arange(1024) <= at, s, -1e9)
                a = jnp.einsum("bhs,bshk->bhk", jax.nn.softmax(s), kv[1])
                x = x + jnp.einsum("bhk,hkd->bd", a, p["o"])
                return x + jax.nn.gelu(x @ p["up"]) @ p["down"], kv

            x, cache = lax.scan(layer, params["embed"][token], (stack, cache))
            token = (x @ params["embed"].T).argmax(-1).astype(jnp.int32)
            return (cache, token), token

        return lax.scan(word, (cache, token), jnp.arange(100))

    where = P(None, None, None, None, "m")
    arguments = [spread(place, mesh, params, specs), spread(place, mesh, cache, where)]
    return Work(run, [*arguments, place.sharded(mesh, (4,), P(), "int32")])


@program(devices=8)
def fourth_fields_by_slabs(place: Place) -> Work:
    """Light in a box by Yee's scheme, slabs over devices, electric and magnetic fields in turn, three hundred steps."""
    mesh = place.mesh(z=8)

    @by_hand(mesh, (P(None, "z"), P(None, "z")), (P(None, "z"), P(None, "z")))
    def run(e, h):
        def ahead(f):
            return jnp.concatenate([f[1:], lax.ppermute(f[:1], "z", [(i, (i - 1) % 8) for i in range(8)])])

        def behind(f):
            return jnp.concatenate([lax.ppermute(f[-1:], "z", [(i, (i + 1) % 8) for i in range(8)]), f[:-1]])

        def step(_, fields):
            e, h = fields
            ez, ey, ex = e
            dz = [ahead(f) - f for f in e]
            dy = [jnp.roll(f, -1, 1) - f for f in e]
            dx = [jnp.roll(f, -1, 2) - f for f in e]
            h = h - 0.5 * jnp.stack([dx[1] - dy[2], dz[2] - dx[0], dy[0] - dz[1]])
            bz = [f - behind(f) for f in h]
            by = [f - jnp.roll(f, 1, 1) for f in h]
            bx = [f - jnp.roll(f, 1, 2) for f in h]
            return jnp.stack(
                [ez + 0.5 * (bx[1] - by[2]), ey + 0.5 * (bz[2] - bx[0]), ex + 0.5 * (by[0] - bz[1])]
            ), h

        return lax.fori_loop(0, 300, step, (e, h))

    field = place.sharded(mesh, (3, 256, 256, 256), P(None, "z"))
    return Work(run, [field, field], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_layers_over_pictures(place: Place) -> Work:
    """A mixer of patches and channels on two by four, hidden units over four, pictures over two, SGD."""
    mesh = place.mesh(data=2, model=4)
    block = {"t1": f32(256, 1024), "t2": f32(1024, 256), "c1": f32(1024, 4096), "c2": f32(4096, 1024)}
    params = {"in": f32(768, 1024), "blocks": [block] * 4, "out": f32(1024, 1000)}
    cut = {"t1": P(None, "model"), "t2": P("model"), "c1": P(None, "model"), "c2": P("model")}
    specs = {"in": P(), "blocks": [cut] * 4, "out": P()}

    def loss(params, x, y):
        x = x.astype(jnp.bfloat16) @ params["in"].astype(jnp.bfloat16)
        for p in jax.tree.map(lambda w: w.astype(jnp.bfloat16), params["blocks"]):
            z = jnp.einsum("bpc,ph->bhc", rms_norm(x, jnp.ones(1024, x.dtype)), p["t1"])
            x = x + jnp.einsum("bhc,hp->bpc", jax.nn.gelu(z), p["t2"])
            x = x + jax.nn.gelu(rms_norm(x, jnp.ones(1024, x.dtype)) @ p["c1"]) @ p["c2"]
        return cross_entropy(x.mean(1).astype(jnp.float32) @ params["out"], y)

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return sgd(params, grads), value

    data = [place.sharded(mesh, (128, 256, 768), P("data")), place.sharded(mesh, (128,), P("data"), "int32")]
    return Work(step, [spread(place, mesh, params, specs), *data], {"donate_argnums": (0,)})


@program(devices=8)
def fourth_votes(place: Place) -> Work:
    """Trees on bins: histograms of gradients on every device, summed, best splits of 512 features, six levels."""
    mesh = place.mesh(d=8)

    @by_hand(mesh, (P("d"), P("d")), (P(), P()))
    def grow(bins, grads):
        node = jnp.zeros(bins.shape[0], jnp.int32)
        splits, values = [], []
        for depth in range(6):
            count = 2**depth

            def one(column, node=node, count=count):
                at = node * 64 + column
                return jnp.zeros(count * 64).at[at].add(grads), jnp.zeros(count * 64).at[at].add(1.0)

            g, n = lax.map(one, bins.T)
            g, n = lax.psum((g, n), "d")
            left_g, left_n = (jnp.cumsum(x.reshape(-1, count, 64), -1) for x in (g, n))
            all_g, all_n = left_g[..., -1:], left_n[..., -1:]
            gain = left_g**2 / (left_n + 1) + (all_g - left_g) ** 2 / (all_n - left_n + 1)
            best = gain.transpose(1, 0, 2).reshape(count, -1).argmax(-1)
            feature, edge = best // 64, best % 64
            node = 2 * node + (jnp.take_along_axis(bins, feature[node][:, None], 1)[:, 0] > edge[node])
            splits.append(best)
            values.append(all_g[0, :, 0] / (all_n[0, :, 0] + 1))
        return jnp.concatenate(splits), jnp.concatenate(values)

    data = [place.sharded(mesh, (1 << 20, 512), P("d"), "int32"), place.sharded(mesh, (1 << 20,), P("d"))]
    return Work(grow, data)


@program(devices=8)
def fourth_wide_softmax(place: Place) -> Work:
    """A hundred thousand faces: features gathered, classes over devices, margins added, gradients only of the head."""
    mesh = place.mesh(d=8)

    @by_hand(mesh, (P("d"), P("d"), P("d"), P("d")), (P("d"), P("d"), P()))
    def step(head, velocity, features, labels):
        def loss(head):
            x = lax.all_gather(features, "d", tiled=True)
            y = lax.all_gather(labels, "d", tiled=True)
            x = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
            w = head / jnp.linalg.norm(head, axis=-1, keepdims=True)
            cosine = x @ w.T
            local = y - lax.axis_index("d") * head.shape[0]
            mine = (jnp.arange(head.shape[0]) == local[:, None]).astype(jnp.float32)
            logits = 64 * (cosine - 0.35 * mine)
            top = lax.pmax(lax.stop_gradient(logits).max(-1, keepdims=True), "d")
            total = lax.psum(jnp.exp(logits - top).sum(-1), "d")
            picked = lax.psum((logits * mine).sum(-1), "d")
            return (jnp.log(total) + top[:, 0] - picked).mean()

        value, grads = jax.value_and_grad(loss)(head)
        velocity = 0.9 * velocity + grads
        return head - 0.1 * velocity, velocity, value

    head = place.sharded(mesh, (131_072, 512), P("d"))
    data = [place.sharded(mesh, (4096, 512), P("d")), place.sharded(mesh, (4096,), P("d"), "int32")]
    return Work(step, [head, head, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_views_of_one(place: Place) -> Work:
    """Two views of every picture, a slow teacher, centred targets; everything on every device, batches cut."""
    mesh = place.mesh(d=8)
    params = {"a": f32(3072, 2048), "b": f32(2048, 2048), "c": f32(2048, 8192)}
    whole = jax.tree.map(lambda _: P(), params)

    def step(student, teacher, centre, one, two):
        def net(p, x):
            return jax.nn.gelu(jax.nn.gelu(x @ p["a"]) @ p["b"]) @ p["c"]

        goals = [jax.nn.softmax((net(teacher, x) - centre) / 0.04) for x in (one, two)]

        def loss(p):
            mine = [jax.nn.log_softmax(net(p, x) / 0.1) for x in (two, one)]
            return -sum((g * m).sum(-1).mean() for g, m in zip(goals, mine, strict=True)) / 2

        value, grads = jax.value_and_grad(loss)(student)
        student = sgd(student, grads, 0.03)
        teacher = jax.tree.map(lambda t, s: 0.996 * t + 0.004 * s, teacher, student)
        mean = (net(teacher, one) + net(teacher, two)).mean(0) / 2
        return student, teacher, 0.9 * centre + 0.1 * mean, value

    trees = [spread(place, mesh, params, whole)] * 2 + [place.sharded(mesh, (8192,), P())]
    data = [place.sharded(mesh, (4096, 3072), P("d"))] * 2
    return Work(step, [*trees, *data])


@program(devices=8)
def fourth_ridge_by_parts(place: Place) -> Work:
    """Features by columns over devices: blocks solve in turn for what is left, the rest is summed after each."""
    mesh = place.mesh(d=8)

    def fit(x, y):
        blocks = x.reshape(x.shape[0], 8, -1)
        blocks = lax.with_sharding_constraint(blocks, NamedSharding(mesh, P(None, "d")))
        gram = jnp.einsum("nbi,nbj->bij", blocks, blocks) + 10 * jnp.eye(blocks.shape[2])

        def again(w, _):
            left = y - jnp.einsum("nbi,bi->n", blocks, w)
            right = jnp.einsum("nbi,n->bi", blocks, left)
            return w + 0.2 * jnp.linalg.solve(gram, right[..., None])[..., 0], jnp.square(left).mean()

        return lax.scan(again, jnp.zeros((8, blocks.shape[2])), None, length=30)

    return Work(fit, [place.sharded(mesh, (65536, 4096), P(None, "d")), place.sharded(mesh, (65536,), P())])
