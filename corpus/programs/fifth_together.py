"""The fifth sample, on several devices: those of its programs of which the linter says something."""

from __future__ import annotations

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
    clipped,
    cross_entropy,
    f32,
    here,
    moments,
    momentum,
    rms_norm,
    rope,
    sgd,
    spread,
)


def _state(specs):
    return {"mu": specs, "nu": specs, "count": P()}


@program(platforms=("tpu", "gpu"), devices=8)
def fifth_llama_mesh_step(place: Place) -> Work:
    """A decoder on two (fsdp) by four (heads, hidden units): scan with remat, hints on activations, donated."""
    mesh = place.mesh(fsdp=2, tp=4)
    n, d, heads, size, hidden = 8, 2048, 16, 128, 5632
    shapes = {"q": f32(n, d, d), "k": f32(n, d, d), "v": f32(n, d, d), "o": f32(n, d, d), "norm": f32(n, 2, d),
              "gate": f32(n, d, hidden), "up": f32(n, d, hidden), "down": f32(n, hidden, d)}  # fmt: skip
    cols, rows = P(None, "fsdp", "tp"), P(None, "tp", "fsdp")
    specs = {"q": cols, "k": cols, "v": cols, "o": rows, "norm": P(), "gate": cols, "up": cols, "down": rows}
    params, places = {"l": shapes, "emb": f32(32000, d)}, {"l": specs, "emb": P("tp", "fsdp")}

    def pin(x):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P("fsdp", None, None)))

    def loss(params, tokens):
        x = pin(params["emb"].astype(jnp.bfloat16)[tokens[:, :-1]])
        at = jnp.arange(x.shape[1])

        @jax.checkpoint
        def layer(x, p):
            w = {k: v.astype(jnp.bfloat16) for k, v in p.items()}
            h = rms_norm(x, p["norm"][0])
            q, k, v = ((h @ w[i]).reshape(*x.shape[:2], heads, size) for i in "qkv")
            a = jax.nn.dot_product_attention(rope(q, at), rope(k, at), v, is_causal=True)
            x = pin(x + a.reshape(x.shape) @ w["o"])
            h = rms_norm(x, p["norm"][1])
            return pin(x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]), None

        x, _ = lax.scan(layer, x, params["l"])
        return cross_entropy(x @ params["emb"].T.astype(x.dtype), tokens[:, 1:])

    def step(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        grads, norm = clipped(grads)
        return *adamw(params, grads, state), value, norm

    trees = [spread(place, mesh, params, places), spread(place, mesh, moments(params), _state(places))]
    data = place.sharded(mesh, (8, 2049), P("fsdp"), "int32")
    return Work(step, [*trees, data], {"donate_argnums": (0, 1)})


@program(platforms=("cpu", "gpu"), devices=4)
def fifth_resnet_copies(place: Place) -> Work:
    """Pictures over four devices, everything else whole on each; the script from the guide, state not donated."""
    mesh = place.mesh(data=4)
    params = {"stem": f32(3, 3, 3, 64), "b": [(f32(3, 3, 64, 64), f32(3, 3, 64, 64)) for _ in range(4)],
              "down": f32(3, 3, 64, 256), "c": [(f32(3, 3, 256, 256), f32(3, 3, 256, 256)) for _ in range(3)],
              "fc": f32(256, 1000)}  # fmt: skip

    def conv(x, w, s=1):
        return lax.conv_general_dilated(x, w, (s, s), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x):
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)

    def loss(params, x, y):
        x = jax.nn.relu(norm(conv(x, params["stem"], 2)))
        for a, b in params["b"]:
            x = jax.nn.relu(x + norm(conv(jax.nn.relu(norm(conv(x, a))), b)))
        x = jax.nn.relu(norm(conv(x, params["down"], 2)))
        for a, b in params["c"]:
            x = jax.nn.relu(x + norm(conv(jax.nn.relu(norm(conv(x, a))), b)))
        logits = x.mean((1, 2)) @ params["fc"]
        return cross_entropy(logits, y), (logits.argmax(-1) == y).mean()

    def step(params, velocity, x, y):
        (value, hits), grads = jax.value_and_grad(loss, has_aux=True)(params, x, y)
        return *momentum(params, grads, velocity), value, hits

    whole = NamedSharding(mesh, P())
    data = [place.sharded(mesh, (128, 64, 64, 3), P("data")), place.sharded(mesh, (128,), P("data"), "int32")]
    return Work(step, [here(place, params, whole), here(place, params, whole), *data])


@program(platforms=("tpu", "gpu"), devices=8)
def fifth_routed_experts(place: Place) -> Work:
    """Sixteen experts on eight devices, two for each word, exchanged both ways by hand; forward and backward."""
    mesh = place.mesh(e=8)
    d, hidden, room = 1024, 4096, 320

    @by_hand(mesh, (P(), P("e"), P("e"), P("e")), P("e"))
    def layer(router, up, down, x):
        gates = jax.nn.softmax((x @ router).astype(jnp.float32))
        weight, which = lax.top_k(gates, 2)
        one = jax.nn.one_hot(which.reshape(-1), 16, dtype=jnp.int32)
        place_in = jnp.sum((jnp.cumsum(one, 0) - 1) * one, -1)
        keep = place_in < room
        slot = jnp.where(keep, which.reshape(-1) * room + place_in, 16 * room)
        packed = jnp.zeros((16 * room, d), x.dtype).at[slot].set(jnp.repeat(x, 2, 0), mode="drop")
        there = lax.all_to_all(packed.reshape(8, 2 * room, d), "e", 0, 0)
        there = there.reshape(8, 2, room, d).swapaxes(0, 1).reshape(2, 8 * room, d)
        y = jnp.einsum("erh,ehd->erd", jax.nn.gelu(jnp.einsum("erd,edh->erh", there, up)), down)
        back = lax.all_to_all(y.reshape(2, 8, room, d).swapaxes(0, 1), "e", 0, 0).reshape(16 * room, d)
        got = jnp.where(keep[:, None], back[jnp.minimum(slot, 16 * room - 1)], 0)
        return x + jnp.sum(got.reshape(-1, 2, d) * weight[..., None].astype(x.dtype), 1)

    def step(params, x, target):
        def loss(p):
            return jnp.mean(jnp.square(layer(*p, x).astype(jnp.float32) - target))

        value, grads = jax.value_and_grad(loss)(params)
        return sgd(params, grads), value

    params = [bf16(d, 16), bf16(16, d, hidden), bf16(16, hidden, d)]
    trees = [
        place.sharded(mesh, s.shape, p, s.dtype) for s, p in zip(params, [P(), P("e"), P("e")], strict=True)
    ]
    data = [place.sharded(mesh, (16384, d), P("e"), "bfloat16"), place.sharded(mesh, (16384, d), P("e"))]
    return Work(step, [trees, *data], {"donate_argnums": (0,)})


@program(platforms=("tpu",), devices=4)
def fifth_two_tower_tables(place: Place) -> Work:
    """Users and things in large tables cut by rows, sampled softmax inside the batch, Adagrad on the tables."""
    mesh = place.mesh(m=4)
    params = {"user": f32(2_000_000, 64), "item": f32(1_000_000, 64), "mlp": [f32(64, 256), f32(256, 64)]}
    specs = {"user": P("m"), "item": P("m"), "mlp": [P(), P()]}

    def loss(p, users, items):
        u, i = p["user"][users], p["item"][items]
        for w in p["mlp"]:
            u, i = jax.nn.relu(u @ w) if w.shape[1] == 256 else u @ w, i
        return cross_entropy(u @ i.T / 8, jnp.arange(u.shape[0]))

    def step(params, sums, users, items):
        value, grads = jax.value_and_grad(loss)(params, users, items)
        sums = jax.tree.map(lambda s, g: s + g * g, sums, grads)
        params = jax.tree.map(lambda p, g, s: p - 0.05 * g * lax.rsqrt(s + 1e-8), params, grads, sums)
        return params, sums, value

    trees = [spread(place, mesh, params, specs), spread(place, mesh, params, specs)]
    data = [place.sharded(mesh, (8192,), P("m"), "int32") for _ in range(2)]
    return Work(step, [*trees, *data], {"donate_argnums": (0, 1)})


@program(platforms=("tpu", "cpu"), devices=8)
def fifth_ring_attention(place: Place) -> Work:
    """A long text over eight devices: keys and values go round, sums of softmax kept as it goes; gradients too."""
    mesh = place.mesh(s=8)

    @by_hand(mesh, (P(None, "s"),) * 3, P(None, "s"))
    def attend(q, k, v):
        def body(carry, _):
            k, v, top, low, acc = carry
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / 8
            new = jnp.maximum(top, s.max(-1))
            w, fix = jnp.exp(s - new[..., None]), jnp.exp(top - new)
            acc = acc * fix[..., None] + jnp.einsum("bhqk,bkhd->bhqd", w.astype(v.dtype), v).astype(
                jnp.float32
            )
            low = low * fix + w.sum(-1)
            k, v = (lax.ppermute(t, "s", [(i, (i + 1) % 8) for i in range(8)]) for t in (k, v))
            return (k, v, new, low, acc), None

        b, t, h, d = q.shape
        start = (k, v, jnp.full((b, h, t), -jnp.inf), jnp.zeros((b, h, t)), jnp.zeros((b, h, t, d)))
        (_, _, _, low, acc), _ = lax.scan(body, start, None, length=8)
        return (acc / low[..., None]).swapaxes(1, 2).astype(q.dtype)

    def run(ws, x):
        def loss(ws):
            q, k, v = ((x @ w).reshape(*x.shape[:2], 16, 64) for w in ws[:3])
            return jnp.mean(jnp.square((attend(q, k, v).reshape(x.shape) @ ws[3]).astype(jnp.float32)))

        return jax.value_and_grad(loss)(ws)

    ws = [place.sharded(mesh, (1024, 1024), P(), "bfloat16") for _ in range(4)]
    return Work(run, [ws, place.sharded(mesh, (1, 32768, 1024), P(None, "s"), "bfloat16")])


@program(platforms=("cpu", "tpu"), devices=4)
def fifth_eval_loop(place: Place) -> Work:
    """Held-out batches in a scan, the batch over four devices, wide layers by columns; hits and loss returned."""
    mesh = place.mesh(d=2, m=2)
    ws = [f32(1024, 4096), f32(4096, 4096), f32(4096, 1000)]
    specs = [P(None, "m"), P(None, "m"), P(None, "m")]

    def evaluate(ws, xs, ys):
        def one(totals, batch):
            x, y = batch
            for w in ws[:-1]:
                x = jax.nn.relu(x @ w)
            logits = x @ ws[-1]
            return (totals[0] + cross_entropy(logits, y), totals[1] + jnp.sum(logits.argmax(-1) == y)), None

        return lax.scan(one, (0.0, 0), (xs, ys))[0]

    data = [
        place.sharded(mesh, (64, 512, 1024), P(None, "d")),
        place.sharded(mesh, (64, 512), P(None, "d"), "int32"),
    ]
    return Work(evaluate, [spread(place, mesh, ws, specs), *data])


@program(platforms=("cpu", "gpu"), devices=4)
def fifth_no_hints_transformer(place: Place) -> Work:
    """Parameters cut by columns everywhere, the batch by rows on the same axis, nothing said between; SGD."""
    mesh = place.mesh(x=4)
    params = [
        {"qkv": f32(512, 1536), "o": f32(512, 512), "up": f32(512, 2048), "down": f32(2048, 512)}
        for _ in range(3)
    ]

    def loss(params, emb, tokens):
        x = emb[tokens[:, :-1]]
        for p in params:
            q, k, v = jnp.split(x @ p["qkv"], 3, -1)

            def heads(t):
                return t.reshape(*t.shape[:2], 8, 64)

            x = (
                x
                + jax.nn.dot_product_attention(heads(q), heads(k), heads(v), is_causal=True).reshape(x.shape)
                @ p["o"]
            )
            x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
        return cross_entropy(x @ emb.T, tokens[:, 1:])

    def step(params, emb, tokens):
        value, grads = jax.value_and_grad(loss)(params, emb, tokens)
        return sgd(params, grads), value

    specs = [dict.fromkeys(p, P(None, "x")) for p in params]
    data = [place.sharded(mesh, (16000, 512), P()), place.sharded(mesh, (32, 257), P("x"), "int32")]
    return Work(step, [spread(place, mesh, params, specs), *data], {"donate_argnums": (0,)})


@program(platforms=("gpu", "tpu"), devices=4)
def fifth_spectral_box(place: Place) -> Work:
    """Turbulence in a periodic box, slabs over four devices, transforms in three directions, fifty steps."""
    mesh = place.mesh(z=4)
    n = 256
    slab = NamedSharding(mesh, P(None, "z"))
    pencil = NamedSharding(mesh, P(None, None, "z"))

    def run(u):
        k = jnp.fft.fftfreq(n, 1 / n)
        kx, ky, kz = jnp.meshgrid(k, k, k, indexing="ij")
        k2 = kx**2 + ky**2 + kz**2

        def forward(f):
            f = jnp.fft.fft2(lax.with_sharding_constraint(f.astype(jnp.complex64), slab), axes=(2, 3))
            return jnp.fft.fft(lax.with_sharding_constraint(f, pencil), axis=1)

        def back(f):
            f = lax.with_sharding_constraint(jnp.fft.ifft(f, axis=1), slab)
            return jnp.fft.ifft2(f, axes=(2, 3)).real

        def body(_, uh):
            u = back(uh)
            w = back(
                1j * jnp.stack([ky * uh[2] - kz * uh[1], kz * uh[0] - kx * uh[2], kx * uh[1] - ky * uh[0]])
            )
            c = forward(jnp.cross(u, w, axis=0))
            div = (kx * c[0] + ky * c[1] + kz * c[2]) / jnp.maximum(k2, 1)
            c = c - jnp.stack([kx, ky, kz]) * div
            return (uh + 1e-3 * c) * jnp.exp(-1e-5 * k2)

        return back(lax.fori_loop(0, 50, body, forward(u)))

    return Work(run, [place.sharded(mesh, (3, n, n, n), P(None, "z"))])
