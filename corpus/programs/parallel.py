"""Many devices: data, tensor, expert, sequence and pipeline parallelism, and the collectives alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from corpus.programs.linear import convolve
from corpus.programs.models import block_shapes, language_model_loss, mlp
from corpus.programs.registry import Place, Work, program
from corpus.programs.types import with_flags

GSPMD = {"jax_use_shardy_partitioner": False}


def per_device(mesh, inputs, outputs):
    """The decorated function is what one device does."""
    return lambda f: jax.shard_map(f, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)


def ring(n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)]


@program(devices=4)
def data_parallel(place: Place) -> Work:
    mesh = place.mesh(data=4)

    def layer(a: int, b: int):
        return {"w": place.sharded(mesh, (a, b), P()), "b": place.sharded(mesh, (b,), P())}

    def step(params, x, y):
        grads = jax.grad(lambda p: jnp.mean((mlp(p, x) - y) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    batch = [place.sharded(mesh, (128, n), P("data")) for n in (256, 10)]
    return Work(step, [[layer(256, 512), layer(512, 10)], *batch], {"donate_argnums": (0,)})


@program(devices=128)
def fsdp_tp_128(place: Place) -> Work:
    """Weights spread over both axes, activations over the first: a training step of four blocks."""
    mesh = place.mesh(fsdp=16, tp=8)
    d, heads, f, vocabulary, layers = 512, 16, 1024, 1024, 4
    specs = {
        "ln1": P(None, None),
        "ln2": P(None, None),
        "qkv": P(None, "fsdp", None, "tp"),
        "out": P(None, "tp", None, "fsdp"),
        "up": P(None, "fsdp", "tp"),
        "gate": P(None, "fsdp", "tp"),
        "down": P(None, "tp", "fsdp"),
    }
    params = {
        "embed": place.sharded(mesh, (vocabulary, d), P("tp", "fsdp"), "bfloat16"),
        "final": place.sharded(mesh, (d,), P(), "bfloat16"),
        "blocks": {
            k: place.sharded(mesh, (layers, *shape), specs[k], "bfloat16")
            for k, shape in block_shapes(d, heads, f).items()
        },
    }

    def constrain(x):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P("fsdp", None, None)))

    def train_step(params, tokens):
        loss, grads = jax.value_and_grad(lambda p: language_model_loss(p, tokens, constrain=constrain))(
            params
        )
        return loss, jax.tree.map(lambda p, g: p - (1e-3 * g).astype(p.dtype), params, grads)

    tokens = place.sharded(mesh, (16, 129), P("fsdp", None), "int32")
    return Work(train_step, [params, tokens], {"donate_argnums": (0,)})


@program(devices=256)
def collectives_256(place: Place) -> Work:
    mesh = place.mesh(x=128, y=2)

    @per_device(mesh, P("x", "y"), P("x", "y"))
    def f(a):
        total = lax.psum(a, "x") + lax.pmax(a, "y") + lax.pmin(a, ("x", "y")) + lax.pmean(a, "y")
        scattered = lax.psum_scatter(lax.all_gather(a, "x", tiled=True), "x", tiled=True)
        turned = lax.all_to_all(a.reshape(128, -1, a.shape[1]), "x", 0, 1).reshape(a.shape)
        moved = lax.ppermute(a, "x", ring(128)) + lax.ppermute(a, "y", [(0, 1)])
        gathered = lax.all_gather(a, "y", axis=1).sum(1)
        return total + scattered + turned + moved + gathered + lax.axis_index("x") + lax.axis_index("y")

    return Work(f, [place.sharded(mesh, (128 * 128, 256), P("x", "y"))])


@program(devices=8)
def collective_groups(place: Place) -> Work:
    mesh = place.mesh(x=8)
    halves, crosswise = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 3, 5, 6], [1, 2, 4, 7]]
    pairs = [[0, 2], [1, 3], [4, 6], [5, 7]]

    @per_device(mesh, P("x"), P("x"))
    def f(a):
        gathered = lax.all_gather(a, "x", axis_index_groups=pairs, tiled=True)
        scattered = lax.psum_scatter(gathered, "x", axis_index_groups=pairs, tiled=True)
        sums = lax.psum(a, "x", axis_index_groups=halves), lax.psum(a, "x", axis_index_groups=crosswise)
        return sums[0] + scattered + sums[1]

    return Work(f, [place.sharded(mesh, (64, 128), P("x"))])


@program(platforms=("tpu", "gpu"), devices=4)
def ragged_all_to_all(place: Place) -> Work:
    mesh = place.mesh(x=4)

    @per_device(mesh, P("x"), P("x"))
    def f(a, out, sizes):
        sizes = sizes.reshape(4)
        starts = jnp.cumsum(sizes) - sizes
        return lax.ragged_all_to_all(a, out, starts, sizes, sizes * 0, sizes, axis_name="x")

    arrays = [place.sharded(mesh, (n, 128), P("x")) for n in (256, 512)]
    return Work(f, [*arrays, place.sharded(mesh, (16,), P("x"), "int32")])


@program(devices=4)
def moe_4(place: Place) -> Work:
    """A mixture of experts: each token goes to two of eight, which live on four devices."""
    mesh = place.mesh(ep=4)
    experts, capacity, d, f, tokens = 8, 32, 128, 256, 64

    @per_device(mesh, (P("ep"), P(), P("ep"), P("ep")), P("ep"))
    def layer(x, router, up, down):
        gate = jax.nn.softmax((x @ router).astype(jnp.float32))
        _, chosen = lax.top_k(gate, 2)
        mask = jax.nn.one_hot(chosen, experts).sum(1)
        position = jnp.cumsum(mask, 0) * mask - 1
        dispatch = jax.nn.one_hot(position, capacity, dtype=x.dtype) * mask[..., None].astype(x.dtype)
        y = lax.all_to_all(jnp.einsum("td,tec->ecd", x, dispatch), "ep", 0, 1, tiled=True)
        y = jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum("ecd,edf->ecf", y, up)), down)
        y = lax.all_to_all(y, "ep", 1, 0, tiled=True)
        return jnp.einsum("ecd,tec,te->td", y, dispatch, (mask * gate).astype(x.dtype))

    def array(spec, *shape):
        return place.sharded(mesh, shape, spec, "bfloat16")

    weights = [array(P("ep"), experts, d, f), array(P("ep"), experts, f, d)]
    return Work(layer, [array(P("ep"), tokens * 4, d), array(P(), d, experts), *weights])


with_flags("moe_4", "sharding_v3", {"xla_enable_hlo_sharding_v3": True})


@program(devices=4)
def pipeline_4(place: Place) -> Work:
    n = 4
    mesh = place.mesh(stage=n)

    @per_device(mesh, (P("stage"), P()), P())
    def f(w, xs):
        stage = lax.axis_index("stage")

        def tick(carry, i):
            state, out = carry
            y = jnp.tanh(jnp.where(stage == 0, xs[jnp.minimum(i, 7)], state) @ w[0])
            out = lax.dynamic_update_index_in_dim(out, y, jnp.clip(i - n + 1, 0, 7), 0)
            return (lax.ppermute(y, "stage", ring(n)), out), None

        start = jnp.zeros(xs.shape[1:]), jnp.zeros(xs.shape)
        (_, out), _ = lax.scan(tick, start, jnp.arange(8 + n - 1))
        return lax.psum(jnp.where(stage == n - 1, out, 0), "stage")

    return Work(f, [place.sharded(mesh, (n, 256, 256), P("stage")), place.sharded(mesh, (8, 16, 256), P())])


@program(devices=4)
def ring_attention(place: Place) -> Work:
    mesh = place.mesh(seq=4)

    @per_device(mesh, (P(None, "seq"),) * 3, P(None, "seq"))
    def f(q, k, v):
        def body(i, carry):
            out, total, highest, k, v = carry
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32)
            higher = jnp.maximum(highest, scores.max(-1))
            weights = jnp.exp(scores - higher[..., None])
            decay = jnp.exp(highest - higher)
            out = out * decay.transpose(0, 2, 1)[..., None]
            out = out + jnp.einsum("bhqk,bkhd->bqhd", weights, v.astype(jnp.float32))
            k, v = (lax.ppermute(x, "seq", ring(4)) for x in (k, v))
            return out, total * decay + weights.sum(-1), higher, k, v

        b, t, h, _ = q.shape
        start = jnp.zeros(q.shape), jnp.zeros((b, h, t)), jnp.full((b, h, t), -1e30), k, v
        out, total, *_ = lax.fori_loop(0, 4, body, start)
        return (out / total.transpose(0, 2, 1)[..., None]).astype(q.dtype)

    return Work(f, [place.sharded(mesh, (2, 256, 4, 64), P(None, "seq"), "bfloat16")] * 3)


@program(devices=8, config=GSPMD)
def gspmd_kinds(place: Place) -> Work:
    mesh = place.mesh(a=2, b=2, c=2)

    def spread(x, *spec):
        return lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def f(x, y):
        u = spread(x, ("a", "b"), None) @ spread(y, "c", None)
        some = spread(u, "a", "c"), spread(jnp.sin(u), P.UNCONSTRAINED, "b"), spread(u.T, None, None)
        return some, spread(u.reshape(8, 8, 64), "c", ("b", "a"))

    arrays = place.sharded(mesh, (64, 128), P("a", "b")), place.sharded(mesh, (128, 64), P(None, ("c", "a")))
    return Work(f, arrays)


@program(devices=8, config=GSPMD)
def gspmd_manual_subgroup(place: Place) -> Work:
    mesh = place.mesh(data=2, model=4)

    def g(x):
        return lax.psum(jnp.sin(x), "data")

    f = jax.shard_map(g, mesh=mesh, in_specs=P("data"), out_specs=P(), axis_names={"data"}, check_vma=False)
    return Work(
        lambda x: jax.jit(f)(x) @ jnp.ones((128, 32)), [place.sharded(mesh, (64, 128), P("data", "model"))]
    )


@program(devices=4)
def sharded_sort_fft_conv(place: Place) -> Work:
    mesh = place.mesh(x=4)

    def f(x, k, g):
        orders = jnp.sort(x, axis=0), lax.top_k(x.T, 3), jnp.cumsum(x, 0)
        return orders, jnp.fft.rfft(x), convolve(k, g), jnp.roll(x, 3, 0), jnp.pad(x, 5)

    image, kernel = (
        place.sharded(mesh, (2, 32, 16, 8), P(None, "x")),
        place.sharded(mesh, (3, 3, 8, 8), P()),
    )
    return Work(f, [place.sharded(mesh, (64, 32), P("x")), image, kernel])
