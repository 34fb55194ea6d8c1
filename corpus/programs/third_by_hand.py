"""The third sample, many devices by hand: programs under shard_map, collectives written out."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import adamw, bf16, cross_entropy, f32, i32, moments, rms_norm, sgd, spread


def _shard_map(mesh, inputs, outputs):
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)


@program(devices=8)
def third_ring_attention(place: Place) -> Work:
    """A long sequence over devices: keys and values go round, running maxima and sums, forward and backward."""
    mesh = place.mesh(seq=8)
    spec = P(None, "seq")

    @_shard_map(mesh, (spec,) * 3, spec)
    def attend(q, k, v):
        me, count = lax.axis_index("seq"), 8
        length = q.shape[1]
        here = me * length + jnp.arange(length)

        def part(i, carry):
            top, total, out, k, v = carry
            there = ((me - i) % count) * length + jnp.arange(length)
            s = jnp.einsum("bqhk,bshk->bhqs", q, k).astype(jnp.float32) / math.sqrt(q.shape[-1])
            s = jnp.where(here[:, None] >= there, s, -1e30)
            new = jnp.maximum(top, s.max(-1))
            p = jnp.exp(s - new[..., None])
            scale = jnp.exp(top - new)
            out = out * scale[..., None] + jnp.einsum("bhqs,bshk->bhqk", p, v.astype(jnp.float32))
            ring = [(j, (j + 1) % count) for j in range(count)]
            return (
                new,
                total * scale + p.sum(-1),
                out,
                lax.ppermute(k, "seq", ring),
                lax.ppermute(v, "seq", ring),
            )

        b, _, h, d = q.shape
        start = (
            jnp.full((b, h, length), -1e30),
            jnp.zeros((b, h, length)),
            jnp.zeros((b, h, length, d)),
            k,
            v,
        )
        _, total, out, _, _ = lax.fori_loop(0, count, part, start)
        return (out / total[..., None]).swapaxes(1, 2).astype(q.dtype)

    def loss(qkv, y):
        return jnp.square(attend(*qkv).astype(jnp.float32) - y).mean()

    part = place.sharded(mesh, (1, 32768, 8, 128), spec, "bfloat16")
    return Work(jax.grad(loss), [(part, part, part), place.sharded(mesh, (1, 32768, 8, 128), spec)])


@program(devices=8)
def third_experts_by_exchange_step(place: Place) -> Work:
    """Words are sorted by expert, sent by all_to_all, worked on, sent back; gradients of shared parts summed."""
    mesh = place.mesh(ep=8)
    width, experts, capacity = 1024, 8, 640
    params = {
        "router": f32(width, experts),
        "up": f32(experts, width, 4096),
        "down": f32(experts, 4096, width),
    }
    specs = {"router": P(), "up": P("ep"), "down": P("ep")}

    def moe(params, x):
        probs = jax.nn.softmax(x.astype(jnp.float32) @ params["router"])
        gate, choice = probs.max(-1), probs.argmax(-1)
        hot = jax.nn.one_hot(choice, experts, dtype=jnp.int32)
        rank = jnp.take_along_axis(jnp.cumsum(hot, 0), choice[:, None], 1)[:, 0] - 1
        good = rank < capacity
        at = jnp.where(good, choice * capacity + rank, experts * capacity)
        box = (
            jnp.zeros((experts * capacity + 1, width), x.dtype)
            .at[at]
            .set(x)[:-1]
            .reshape(experts, capacity, width)
        )
        box = lax.all_to_all(box, "ep", 0, 1, tiled=True)
        h = jax.nn.silu(jnp.einsum("ecd,edf->ecf", box, params["up"].astype(x.dtype)))
        box = jnp.einsum("ecf,efd->ecd", h, params["down"].astype(x.dtype))
        box = lax.all_to_all(box, "ep", 1, 0, tiled=True).reshape(-1, width)
        out = jnp.where(good[:, None], box[jnp.minimum(at, experts * capacity - 1)], 0)
        return out * gate[:, None].astype(x.dtype)

    @_shard_map(mesh, (specs, P("ep"), P("ep")), (specs, P()))
    def step(params, x, y):
        def loss(params):
            return jnp.square((x + moe(params, x)).astype(jnp.float32) - y).mean()

        value, grads = jax.value_and_grad(loss)(params)
        grads["router"] = lax.pmean(grads["router"], "ep")
        return sgd(params, grads, 1e-2), lax.pmean(value, "ep")

    data = [place.sharded(mesh, (32768, width), P("ep"), t) for t in ("bfloat16", "float32")]
    return Work(step, [spread(place, mesh, params, specs), *data], {"donate_argnums": (0,)})


@program(devices=8)
def third_pipelined_step(place: Place) -> Work:
    """Eight stages of two layers, thirty-two small batches through them, what is ready is passed on each round."""
    mesh = place.mesh(stage=8)
    params = {"a": bf16(8, 2, 2048, 8192), "b": bf16(8, 2, 8192, 2048)}
    specs = {"a": P("stage"), "b": P("stage")}

    def stage(params, x):
        for i in range(2):
            x = x + jax.nn.gelu(x @ params["a"][0, i]) @ params["b"][0, i]
        return x

    @_shard_map(mesh, (specs, P()), P())
    def forward(params, batches):
        me = lax.axis_index("stage")

        def tick(carry, i):
            now, done = carry
            fresh = lax.dynamic_index_in_dim(batches, jnp.minimum(i, 31), keepdims=False)
            now = jax.checkpoint(stage)(params, jnp.where(me == 0, fresh, now))
            done = jnp.where(
                i >= 7, lax.dynamic_update_index_in_dim(done, now, jnp.maximum(i - 7, 0), 0), done
            )
            now = lax.ppermute(now, "stage", [(j, (j + 1) % 8) for j in range(8)])
            return (now, done), None

        start = (jnp.zeros_like(batches[0]), jnp.zeros_like(batches))
        (_, done), _ = lax.scan(tick, start, jnp.arange(39))
        return lax.psum(jnp.where(me == 7, done, 0), "stage")

    def step(params, x, y):
        def loss(params):
            return jnp.square((forward(params, x) - y).astype(jnp.float32)).mean()

        value, grads = jax.value_and_grad(loss)(params)
        return sgd(params, grads, 1e-3), value

    data = [place.sharded(mesh, (32, 256, 2048), P(), "bfloat16")] * 2
    return Work(step, [spread(place, mesh, params, specs), *data], {"donate_argnums": (0,)})


@program(devices=8)
def third_narrow_gradients_step(place: Place) -> Work:
    """Data parallel: gradients of each device as one vector of bf16, summed at once, errors kept for the next step."""
    mesh = place.mesh(d=8)
    params = [f32(1024, 4096), f32(4096, 4096), f32(4096, 1000)]
    specs = [P()] * 3

    @_shard_map(mesh, (specs, P("d"), P("d"), P("d")), (specs, P("d"), P()))
    def step(params, error, x, y):
        def loss(params):
            h = x
            for w in params[:-1]:
                h = jax.nn.relu(h @ w)
            return cross_entropy(h @ params[-1], y)

        value, grads = jax.value_and_grad(loss)(params)
        flat, back = jax.flatten_util.ravel_pytree(grads)
        flat = flat + error[0]
        sent = flat.astype(jnp.bfloat16)
        error = flat - sent.astype(jnp.float32)
        mean = lax.pmean(sent, "d").astype(jnp.float32)
        return sgd(params, back(mean)), error[None], lax.pmean(value, "d")

    total = sum(math.prod(p.shape) for p in params)
    error = place.sharded(mesh, (8, total), P("d"))
    data = [place.sharded(mesh, (4096, 1024), P("d")), place.sharded(mesh, (4096,), P("d"), "int32")]
    return Work(step, [spread(place, mesh, params, specs), error, *data], {"donate_argnums": (0, 1)})


@program(devices=8)
def third_vocabulary_loss(place: Place) -> Work:
    """Cross entropy over a vocabulary on eight devices without gathering the logits; gradients of both sides."""
    mesh = place.mesh(v=8)

    @_shard_map(mesh, (P(), P("v"), P()), P())
    def loss(hidden, table, labels):
        logits = (hidden @ table.T).astype(jnp.float32)
        top = lax.pmax(lax.stop_gradient(logits.max(-1)), "v")
        total = lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "v")
        local = labels - lax.axis_index("v") * table.shape[0]
        mine = (local >= 0) & (local < table.shape[0])
        picked = jnp.take_along_axis(logits, jnp.clip(local, 0, table.shape[0] - 1)[:, None], 1)[:, 0]
        return (top + jnp.log(total) - lax.psum(jnp.where(mine, picked, 0), "v")).mean()

    arguments = [bf16(8192, 4096), bf16(128256, 4096), i32(8192)]
    return Work(jax.value_and_grad(loss, (0, 1)), spread(place, mesh, arguments, [P(), P("v"), P()]))


@program(devices=8)
def third_cache_by_length(place: Place) -> Work:
    """One word against a very long cache that is spread along its length; partial softmaxes are merged."""
    mesh = place.mesh(s=8)
    cache = P(None, "s")

    @_shard_map(mesh, (P(), cache, cache, P(), P(), P()), (P(), cache, cache))
    def attend(q, keys, values, k, v, at):
        length = keys.shape[1]
        local = at - lax.axis_index("s") * length
        mine = (local >= 0) & (local < length)
        spot = jnp.clip(local, 0, length - 1)
        keys = keys.at[:, spot].set(jnp.where(mine, k, keys[:, spot]))
        values = values.at[:, spot].set(jnp.where(mine, v, values[:, spot]))
        s = jnp.einsum("bhk,bshk->bhs", q, keys).astype(jnp.float32) / math.sqrt(q.shape[-1])
        s = jnp.where(jnp.arange(length) <= local, s, -1e30)
        top = lax.pmax(s.max(-1), "s")
        p = jnp.exp(s - top[..., None])
        out = lax.psum(jnp.einsum("bhs,bshk->bhk", p, values.astype(jnp.float32)), "s")
        return (out / lax.psum(p.sum(-1), "s")[..., None]).astype(q.dtype), keys, values

    one, long = place.sharded(mesh, (4, 16, 128), P(), "bfloat16"), (4, 131072, 16, 128)
    caches = [place.sharded(mesh, long, cache, "bfloat16")] * 2
    at = place.sharded(mesh, (), P(), "int32")
    return Work(attend, [one, *caches, one, one, at], {"donate_argnums": (1, 2)})


@program(devices=8)
def third_heat_in_a_box(place: Place) -> Work:
    """Seven-point differences on a box cut into slabs, five hundred steps, faces exchanged in each."""
    mesh = place.mesh(z=8)

    @_shard_map(mesh, (P("z"),), P("z"))
    def run(u):
        up, down = [(i, i + 1) for i in range(7)], [(i + 1, i) for i in range(7)]

        def step(_, u):
            below, above = lax.ppermute(u[-1:], "z", up), lax.ppermute(u[:1], "z", down)
            w = jnp.concatenate([below, u, above])
            flat = sum(jnp.roll(u, s, a) for a in (1, 2) for s in (1, -1))
            return u + 0.1 * (w[:-2] + w[2:] + flat - 6 * u)

        return lax.fori_loop(0, 500, step, u)

    return Work(run, [place.sharded(mesh, (512, 512, 512), P("z"))], {"donate_argnums": (0,)})


@program(devices=8)
def third_poisson_by_transforms(place: Place) -> Work:
    """A Poisson equation in three dimensions: transforms of two axes, an exchange, the third, and all the way back."""
    mesh = place.mesh(p=8)

    @_shard_map(mesh, (P("p"),), P("p"))
    def solve(f):
        n = f.shape[1]
        g = jnp.fft.fftn(f, axes=(1, 2))
        g = lax.all_to_all(g, "p", 1, 0, tiled=True)
        g = jnp.fft.fft(g, axis=0)
        k = jnp.fft.fftfreq(n) * n
        ky = lax.dynamic_slice(k, (lax.axis_index("p") * (n // 8),), (n // 8,))
        square = k[:, None, None] ** 2 + ky[:, None] ** 2 + k**2
        g = jnp.fft.ifft(g / jnp.where(square == 0, 1, -square), axis=0)
        g = lax.all_to_all(g, "p", 0, 1, tiled=True)
        return jnp.fft.ifftn(g, axes=(1, 2)).real

    return Work(solve, [place.sharded(mesh, (256, 256, 256), P("p"))])


@program(devices=8)
def third_rows_of_a_system(place: Place) -> Work:
    """Conjugate gradients: rows of the matrix on devices, the vector gathered, sums over all, until it is small."""
    mesh = place.mesh(r=8)

    @_shard_map(mesh, (P("r"), P("r")), (P("r"), P()))
    def solve(a, b):
        def dot(x, y):
            return lax.psum(jnp.vdot(x, y), "r")

        def more(carry):
            _, _, _, size, i = carry
            return (size > 1e-8) & (i < 1000)

        def again(carry):
            x, r, p, size, i = carry
            ap = a @ lax.all_gather(p, "r", tiled=True)
            alpha = size / dot(p, ap)
            x, r = x + alpha * p, r - alpha * ap
            new = dot(r, r)
            return x, r, r + new / size * p, new, i + 1

        x, _, _, _, rounds = lax.while_loop(more, again, (jnp.zeros_like(b), b, b, dot(b, b), 0))
        return x, rounds

    return Work(solve, [place.sharded(mesh, (16384, 16384), P("r")), place.sharded(mesh, (16384,), P("r"))])


@program(devices=8)
def third_product_in_a_ring(place: Place) -> Work:
    """A layer of a net over devices: the gather of the input goes in steps beside the product, the sum likewise."""
    mesh = place.mesh(m=8)

    @_shard_map(mesh, (P("m"), P(None, "m"), P("m")), P("m"))
    def layer(x, a, b):
        me, rows = lax.axis_index("m"), x.shape[0]
        ring = [(i, (i - 1) % 8) for i in range(8)]
        h = jnp.zeros((8 * rows, a.shape[1]), x.dtype)
        for i in range(8):
            h = lax.dynamic_update_slice(h, jax.nn.gelu(x @ a), (((me + i) % 8) * rows, 0))
            x = lax.ppermute(x, "m", ring) if i < 7 else x
        out = jnp.zeros((rows, b.shape[1]), jnp.float32)
        for i in range(8):
            part = lax.dynamic_slice(h, (((me - i - 1) % 8) * rows, 0), (rows, h.shape[1]))
            out = lax.ppermute(out, "m", [(j, (j + 1) % 8) for j in range(8)]) if i else out
            out = out + (part @ b).astype(jnp.float32)
        return out.astype(x.dtype)

    arguments = [bf16(8192, 4096), bf16(4096, 16384), bf16(16384, 4096)]
    return Work(layer, spread(place, mesh, arguments, [P("m"), P(None, "m"), P("m")]))


@program(devices=8)
def third_tempered_chains(place: Place) -> Work:
    """A chain of Metropolis at each of eight temperatures, neighbours exchange their states every hundred steps."""
    mesh = place.mesh(t=8)

    def energy(x):
        return (jnp.square(x * x - 1).sum(-1) + 0.1 * x.sum(-1)) * 4

    @_shard_map(mesh, (P("t"), P("t")), (P("t"), P("t")))
    def run(x, key):
        me = lax.axis_index("t")
        beta = 0.7 ** me.astype(jnp.float32)

        def hundred(carry, even):
            x, key = carry

            def move(i, carry):
                x, key = carry
                key, a, b = jax.random.split(key, 3)
                y = x + 0.3 * jax.random.normal(a, x.shape)
                fine = jnp.log(jax.random.uniform(b, x.shape[:1])) < beta * (energy(x) - energy(y))
                return jnp.where(fine[:, None], y, x), key

            x, key = lax.fori_loop(0, 100, move, (x, key))
            first = (me % 2) == even
            other = jnp.where(
                first,
                lax.ppermute(x, "t", [(i, (i - 1) % 8) for i in range(8)]),
                lax.ppermute(x, "t", [(i, (i + 1) % 8) for i in range(8)]),
            )
            better = (energy(other) < energy(x)) == (beta > 0.5)
            return (jnp.where(better[:, None], other, x), key), energy(x).mean()

        (x, _), trace = lax.scan(hundred, (x, key[0]), jnp.arange(100) % 2)
        return x, trace[None]

    return Work(run, [place.sharded(mesh, (8192, 32), P("t")), place.sharded(mesh, (8, 2), P("t"), "uint32")])


@program(devices=8)
def third_local_steps(place: Place) -> Work:
    """Twenty steps on each device alone, then the mean of how far parameters moved, Nesterov on the outside."""
    mesh = place.mesh(w=8)
    params = {"layers": f32(6, 1024, 1024), "g": f32(6, 1024), "out": f32(1024, 256)}
    whole = jax.tree.map(lambda _: P(), params)
    local = jax.tree.map(lambda _: P("w"), moments(params))
    state = jax.tree.map(lambda s: jax.ShapeDtypeStruct((8, *s.shape), s.dtype), moments(params))

    @_shard_map(mesh, (whole, whole, local, P(None, "w"), P(None, "w")), (whole, whole, local, P()))
    def outer(params, velocity, state, xs, ys):
        state = jax.tree.map(lambda s: s[0], state)

        def loss(params, x, y):
            def layer(x, p):
                return x + jax.nn.relu(rms_norm(x, p[1]) @ p[0]), None

            x, _ = lax.scan(layer, x, (params["layers"], params["g"]))
            return jnp.square(x @ params["out"] - y).mean()

        def inner(carry, batch):
            value, grads = jax.value_and_grad(loss)(carry[0], *batch)
            return adamw(carry[0], grads, carry[1]), value

        (moved, state), values = lax.scan(inner, (params, state), (xs, ys))
        delta = jax.tree.map(lambda a, b: lax.pmean(a - b, "w"), params, moved)
        velocity = jax.tree.map(lambda v, d: 0.9 * v + d, velocity, delta)
        params = jax.tree.map(lambda p, d, v: p - 0.7 * (d + 0.9 * v), params, delta, velocity)
        return params, velocity, jax.tree.map(lambda s: s[None], state), lax.pmean(values.mean(), "w")

    arguments = [spread(place, mesh, params, whole), spread(place, mesh, params, whole)]
    data = [place.sharded(mesh, (20, 2048, n), P(None, "w")) for n in (1024, 256)]
    return Work(outer, [*arguments, spread(place, mesh, state, local), *data], {"donate_argnums": (0, 1, 2)})
