"""The fourth sample, many devices: nets and solvers as teams write them for eight accelerators."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import adamw, bf16, cross_entropy, f32, moments, rms_norm, sgd, spread


def _pin(mesh, *spec):
    return lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


def _state_specs(specs):
    return {"mu": specs, "nu": specs, "count": P()}


@program(devices=8)
def fourth_column_row_mlp(place: Place) -> Work:
    """A deep MLP, wide layers cut by columns then by rows over eight devices, momentum, batch over none."""
    mesh = place.mesh(model=8)
    params = [{"a": bf16(4096, 16384), "b": bf16(16384, 4096)} for _ in range(3)]
    specs = [{"a": P(None, "model"), "b": P("model", None)}] * 3

    def loss(params, x, y):
        for p in params:
            x = x + jax.nn.gelu(x @ p["a"]) @ p["b"]
        return jnp.square((x - y).astype(jnp.float32)).mean()

    def step(params, velocity, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return sgd(params, velocity, 1e-3), velocity, value

    data = [place.sharded(mesh, (2048, 4096), P(), "bfloat16")] * 2
    return Work(step, [spread(place, mesh, params, specs)] * 2 + data, {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_vision_fsdp(place: Place) -> Work:
    """A vision transformer unrolled over four blocks, every matrix cut over the same eight devices as the pictures."""
    mesh = place.mesh(d=8)
    block = {"qkv": f32(1024, 3072), "o": f32(1024, 1024), "up": f32(1024, 4096), "down": f32(4096, 1024)}
    params = {"patch": f32(768, 1024), "blocks": [block | {"g": f32(2, 1024)}] * 4, "head": f32(1024, 1000)}
    specs = jax.tree.map(lambda s: P("d") if s.shape[0] > 2 else P(), params)

    def loss(params, pictures, labels):
        n = pictures.shape[0]
        x = pictures.reshape(n, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(n, 196, 768)
        x = x.astype(jnp.bfloat16) @ params["patch"].astype(jnp.bfloat16)
        for p in jax.tree.map(lambda w: w.astype(jnp.bfloat16), params["blocks"]):
            q, k, v = (h.reshape(n, 196, 16, 64) for h in jnp.split(rms_norm(x, p["g"][0]) @ p["qkv"], 3, -1))
            x = x + jax.nn.dot_product_attention(q, k, v).reshape(n, 196, 1024) @ p["o"]
            x = x + jax.nn.gelu(rms_norm(x, p["g"][1]) @ p["up"]) @ p["down"]
        return cross_entropy(x.mean(1).astype(jnp.float32) @ params["head"], labels)

    def step(params, state, pictures, labels):
        value, grads = jax.value_and_grad(loss)(params, pictures, labels)
        params, state = adamw(params, grads, state)
        return params, state, value

    state = [spread(place, mesh, params, specs), spread(place, mesh, moments(params), _state_specs(specs))]
    data = [place.sharded(mesh, (256, 224, 224, 3), P("d")), place.sharded(mesh, (256,), P("d"), "int32")]
    return Work(step, [*state, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def fourth_two_towers(place: Place) -> Work:
    """Pictures and words in one space: features of all devices are gathered, a loss over all pairs, undonated."""
    mesh = place.mesh(d=8)
    params = {
        "image": [f32(2048, 1024), f32(1024, 512)],
        "text": [f32(768, 1024), f32(1024, 512)],
        "t": f32(),
    }
    specs = jax.tree.map(lambda _: P(), params)

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(specs, specs, P("d"), P("d")),
        out_specs=(specs, specs, P()),
        check_vma=False,
    )
    def step(params, velocity, images, texts):
        def tower(ws, x):
            z = jax.nn.gelu(x @ ws[0]) @ ws[1]
            return z / jnp.linalg.norm(z, axis=-1, keepdims=True)

        def loss(params):
            a, b = tower(params["image"], images), tower(params["text"], texts)
            alls = lax.all_gather(a, "d", tiled=True), lax.all_gather(b, "d", tiled=True)
            labels = lax.axis_index("d") * len(a) + jnp.arange(len(a))
            scale = jnp.exp(params["t"])
            return (
                cross_entropy(scale * a @ alls[1].T, labels) + cross_entropy(scale * b @ alls[0].T, labels)
            ) / 2

        value, grads = jax.value_and_grad(loss)(params)
        grads = lax.pmean(grads, "d")
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return sgd(params, velocity, 0.1), velocity, lax.pmean(value, "d")

    data = [place.sharded(mesh, (16384, n), P("d")) for n in (2048, 768)]
    return Work(step, [spread(place, mesh, params, specs)] * 2 + data)


@program(devices=8)
def fourth_cut_pictures(place: Place) -> Work:
    """Segmentation of very large pictures, cut by height over the devices: convolutions need their neighbours' rows."""
    mesh = place.mesh(h=8)
    sizes = [(4, 32), (32, 64), (64, 64), (64, 8)]
    params = [f32(3, 3, a, b) for a, b in sizes]

    def loss(params, x, y):
        for i, w in enumerate(params):
            x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x) if i < 3 else x
        return cross_entropy(x, y)

    def step(params, x, y):
        value, grads = jax.value_and_grad(loss)(params, x, y)
        return sgd(params, grads), value

    data = [place.sharded(mesh, (2, 2048, 1024, 4), P(None, "h"))]
    data.append(place.sharded(mesh, (2, 2048, 1024), P(None, "h"), "int32"))
    return Work(step, [spread(place, mesh, params, [P()] * 4), *data], {"donate_argnums": (0,)})


@program(devices=8)
def fourth_ulysses_layer(place: Place) -> Work:
    """A layer on a long text: cut by words, by heads inside attention; the compiler is told both, gradients of all."""
    mesh = place.mesh(s=8)
    params = {
        "qkv": bf16(2048, 3, 16, 128),
        "o": bf16(16, 128, 2048),
        "up": bf16(2048, 8192),
        "down": bf16(8192, 2048),
    }
    words, heads = _pin(mesh, None, "s"), _pin(mesh, None, None, "s")

    def loss(params, x):
        y = words(jnp.einsum("bld,dchk->blchk", x, params["qkv"]))
        q, k, v = (heads(y[:, :, i]) for i in range(3))
        s = jnp.einsum("bqhk,bshk->bhqs", q, k) / math.sqrt(128)
        s = jnp.where(jnp.tril(jnp.ones(s.shape[2:], bool)), s, -1e9)
        a = words(heads(jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(s), v)))
        x = words(x + jnp.einsum("bqhk,hkd->bqd", a, params["o"]))
        x = words(x + jax.nn.gelu(x @ params["up"]) @ params["down"])
        return jnp.square(x.astype(jnp.float32)).mean()

    specs = jax.tree.map(lambda _: P(), params)
    x = place.sharded(mesh, (1, 8192, 2048), P(None, "s"), "bfloat16")
    return Work(jax.value_and_grad(loss), [spread(place, mesh, params, specs), x])


@program(devices=8)
def fourth_shared_and_routed(place: Place) -> Work:
    """Experts of which some see every word and others are chosen; ragged products over words sorted by expert."""
    mesh = place.mesh(e=8)
    params = {"router": f32(2048, 16), "up": bf16(16, 2048, 1024), "down": bf16(16, 1024, 2048)}
    params |= {"shared_up": bf16(2048, 4096), "shared_down": bf16(4096, 2048)}
    specs = {"router": P(), "up": P(None, None, "e"), "down": P(None, "e"), "shared_up": P(None, "e")}
    specs["shared_down"] = P("e")

    def forward(params, x):
        gate, index = lax.top_k(jax.nn.softmax(x.astype(jnp.float32) @ params["router"]), 2)
        order = jnp.argsort(index.reshape(-1))
        counts = jnp.bincount(index.reshape(-1), length=16).astype(jnp.int32)
        h = jax.nn.silu(lax.ragged_dot(x[order // 2], params["up"], counts))
        out = lax.ragged_dot(h, params["down"], counts) * gate.reshape(-1)[order][:, None].astype(x.dtype)
        routed = jnp.zeros_like(x).at[order // 2].add(out)
        return x + routed + jax.nn.silu(x @ params["shared_up"]) @ params["shared_down"]

    return Work(
        forward, [spread(place, mesh, params, specs), place.sharded(mesh, (8192, 2048), P(), "bfloat16")]
    )


@program(devices=8)
def fourth_serve_grouped(place: Place) -> Work:
    """One word for 128 requests on two by four: batch over two, heads over four, embeddings by rows, cache kept."""
    mesh = place.mesh(data=2, model=4)
    layer = {
        "q": bf16(4096, 32, 128),
        "kv": bf16(4096, 2, 8, 128),
        "o": bf16(32, 128, 4096),
        "n": bf16(2, 4096),
    }
    params = {
        "embed": bf16(64000, 4096),
        "layers": [layer | {"up": bf16(4096, 14336), "down": bf16(14336, 4096)}] * 2,
    }
    cut = {
        "q": P(None, "model"),
        "kv": P(None, None, "model"),
        "o": P("model"),
        "n": P(),
        "up": P(None, "model"),
    }
    specs = {"embed": P("model"), "layers": [cut | {"down": P("model")}] * 2}
    cache = [bf16(128, 4096, 2, 8, 128)] * 2

    def decode(params, cache, token, at):
        x, new = params["embed"][token], []
        rows = jnp.arange(128)
        for p, kv in zip(params["layers"], cache, strict=True):
            y = rms_norm(x, p["n"][0])
            kv = kv.at[rows, at].set(jnp.einsum("bd,dcgk->bcgk", y, p["kv"]))
            q = jnp.einsum("bd,dhk->bhk", y, p["q"]).reshape(128, 8, 4, 128)
            s = jnp.einsum("bgrk,bsgk->bgrs", q, kv[:, :, 0]).astype(jnp.float32) / math.sqrt(128)
            s = jnp.where((jnp.arange(4096) <= at[:, None])[:, None, None], s, -1e30)
            a = jnp.einsum("bgrs,bsgk->bgrk", jax.nn.softmax(s).astype(x.dtype), kv[:, :, 1])
            x = x + jnp.einsum("bhk,hkd->bd", a.reshape(128, 32, 128), p["o"])
            x = x + jax.nn.silu(rms_norm(x, p["n"][1]) @ p["up"]) @ p["down"]
            new.append(kv)
        return (x @ params["embed"].T).astype(jnp.float32), new

    state = [
        spread(place, mesh, params, specs),
        spread(place, mesh, cache, [P("data", None, None, "model")] * 2),
    ]
    return Work(decode, state + [place.sharded(mesh, (128,), P("data"), "int32")] * 2)


@program(devices=8)
def fourth_samples_sort(place: Place) -> Work:
    """Keys with payload sorted over devices: local sorts, splitters, buckets of fixed room exchanged, merged."""
    mesh = place.mesh(d=8)

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P("d"), P("d")), out_specs=(P("d"), P("d")), check_vma=False
    )
    def run(keys, payload):
        keys, payload = lax.sort((keys, payload), num_keys=1)
        n = keys.shape[0]
        splitters = jnp.sort(lax.all_gather(keys[:: n // 64], "d", tiled=True))[64::64][:7]
        bucket = jnp.searchsorted(splitters, keys)
        room = n // 4
        rank = jnp.arange(n) - jnp.searchsorted(bucket, jnp.arange(8))[bucket]
        at = (bucket, jnp.minimum(rank, room - 1))
        big = jnp.full((8, room), jnp.inf).at[at].set(keys)
        load = jnp.zeros((8, room), jnp.int32).at[at].set(payload)
        big, load = (lax.all_to_all(x, "d", 0, 0, tiled=True) for x in (big, load))
        return lax.sort((big.reshape(-1), load.reshape(-1)), num_keys=1)

    return Work(
        run, [place.sharded(mesh, (1 << 24,), P("d")), place.sharded(mesh, (1 << 24,), P("d"), "int32")]
    )


@program(devices=8)
def fourth_gossip(place: Place) -> Work:
    """Each device its own model, after every step mixed with both neighbours; a hundred steps in one call."""
    mesh = place.mesh(d=8)
    params = {"a": f32(8, 512, 2048), "b": f32(8, 2048, 512)}
    specs = {"a": P("d"), "b": P("d")}

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(specs, P(None, "d")), out_specs=(specs, P("d")), check_vma=False
    )
    def run(params, batches):
        def loss(p, x):
            return jnp.square(jax.nn.relu(x @ p["a"][0]) @ p["b"][0] - x).mean()

        def one(params, x):
            value, grads = jax.value_and_grad(loss)(params, x)
            params = sgd(params, grads)
            left = lax.ppermute(params, "d", [(i, (i + 1) % 8) for i in range(8)])
            right = lax.ppermute(params, "d", [(i, (i - 1) % 8) for i in range(8)])
            return jax.tree.map(lambda p, q, r: (p + q + r) / 3, params, left, right), value

        params, values = lax.scan(one, params, batches)
        return params, values[None]

    return Work(
        run, [spread(place, mesh, params, specs), place.sharded(mesh, (100, 4096, 512), P(None, "d"))]
    )


@program(devices=8)
def fourth_multigrid(place: Place) -> Work:
    """V-cycles for a Poisson problem on a plane cut by rows, smoothing and coarser grids left to the compiler."""
    mesh = place.mesh(r=8)

    def smooth(u, f, h):
        for _ in range(3):
            p = jnp.pad(u, 1)
            near = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
            u = 0.2 * u + 0.8 * (near - h * h * f) / 4
        return u

    def cycle(u, f, h):
        u = smooth(u, f, h)
        if u.shape[0] <= 64:
            return u
        p = jnp.pad(u, 1)
        near = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        rest = f - (near - 4 * u) / (h * h)
        n = u.shape[0] // 2
        coarse = rest.reshape(n, 2, n, 2).mean((1, 3))
        fix = cycle(jnp.zeros_like(coarse), coarse, 2 * h)
        return smooth(u + jnp.repeat(jnp.repeat(fix, 2, 0), 2, 1), f, h)

    def solve(f):
        return lax.fori_loop(0, 20, lambda _, u: cycle(u, f, 1 / f.shape[0]), jnp.zeros_like(f))

    return Work(solve, [place.sharded(mesh, (4096, 4096), P("r"))])


@program(devices=8)
def fourth_kernel_ridge(place: Place) -> Work:
    """Kernel regression: points by rows over devices, products with the kernel made anew in each of fifty rounds."""
    mesh = place.mesh(r=8)

    def fit(x, y):
        def kernel(v):
            square = jnp.square(x).sum(1)
            k = jnp.exp(-(square[:, None] + square - 2 * x @ x.T) / 64)
            return k @ v + 0.1 * v

        def again(carry, _):
            a, r, p, size = carry
            kp = kernel(p)
            alpha = size / jnp.vdot(p, kp)
            r = r - alpha * kp
            new = jnp.vdot(r, r)
            return (a + alpha * p, r, r + new / size * p, new), new

        return lax.scan(again, (jnp.zeros_like(y), y, y, jnp.vdot(y, y)), None, length=50)

    return Work(fit, [place.sharded(mesh, (32768, 64), P("r")), place.sharded(mesh, (32768,), P("r"))])


@program(devices=8)
def fourth_table_of_words(place: Place) -> Work:
    """Word vectors by skip-grams: tables by columns over devices, only the touched rows are changed."""
    mesh = place.mesh(c=8)

    def step(tables, centre, around, wrong):
        a, b = tables

        def loss(u, v, w):
            good = jax.nn.log_sigmoid((u * v).sum(-1))
            return -(good + jax.nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", u, w)).sum(-1)).mean()

        value, (du, dv, dw) = jax.value_and_grad(loss, (0, 1, 2))(a[centre], b[around], b[wrong])
        a = a.at[centre].add(-0.5 * du)
        b = b.at[around].add(-0.5 * dv).at[wrong].add(-0.5 * dw)
        return (a, b), value

    table = place.sharded(mesh, (500_000, 512), P(None, "c"))
    ids = [place.sharded(mesh, s, P(), "int32") for s in ((16384,), (16384,), (16384, 8))]
    return Work(step, [(table, table), *ids], {"donate_argnums": (0,)})
