"""Programs with one classic fault each, as they are written by mistake; what XLA makes of them is in tests/data/lint/faults.

Some compilers repair some of them: tests/data/lint/faults.csv says for each module what is left to be found.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from corpus.programs.parallel import per_device, ring
from corpus.programs.registry import Place, Work, program


@program(devices=8)
def fault_invariant_collective(place: Place) -> Work:
    """The mean of the scales over all devices, once for each step."""
    mesh = place.mesh(data=8)

    @per_device(mesh, (P("data"), P("data")), P("data"))
    def run(scales, x):
        def step(carry, t):
            return jnp.sin(carry * lax.pmean(scales, "data") + t), None

        return lax.scan(step, x, jnp.arange(32.0))[0]

    return Work(run, [place.sharded(mesh, (8, 32768), P("data")), place.sharded(mesh, (8, 32768), P("data"))])


@program(config={"jax_enable_x64": True})
def fault_double(place: Place) -> Work:
    """numpy's default type gets into the program, with a table that nobody gave a type."""
    return Work(lambda x: jnp.tanh(x * np.float64(0.5) + np.linspace(0, 1, 512)), [place.array((256, 512))])


@program()
def fault_captured_table(place: Place) -> Work:
    """A table that a closure holds instead of an argument."""
    table = np.random.default_rng(0).standard_normal((1024, 768)).astype(np.float32)
    return Work(lambda i: jnp.asarray(table)[i].sum(0), [place.array((64,), "int32")])


@program(devices=8)
def fault_sum_all_keep_part(place: Place) -> Work:
    """psum where psum_scatter was meant."""
    mesh = place.mesh(model=8)

    @per_device(mesh, (P(None, "model"), P("model")), P("model"))
    def run(x, w):
        whole = lax.psum(x @ w, "model")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("model") * 128, 128)

    return Work(
        run,
        [place.sharded(mesh, (1024, 2048), P(None, "model")), place.sharded(mesh, (2048, 512), P("model"))],
    )


@program()
def fault_callback_in_loop(place: Place) -> Work:
    """The loss of every step goes to Python."""

    def step(i, x):
        jax.debug.callback(lambda loss: None, x.mean())
        return jnp.cos(x) * 0.9

    return Work(lambda x: lax.fori_loop(0, 100, step, x), [place.array((128, 256))])


@program()
def fault_upcast_product(place: Place) -> Work:
    """bf16 operands become f32 before they are multiplied."""
    return Work(
        lambda x, w: jnp.maximum(x.astype(jnp.float32) @ w.astype(jnp.float32), 0).astype(jnp.bfloat16),
        [place.array((1024, 1024), "bfloat16"), place.array((1024, 2048), "bfloat16")],
    )


@program(devices=8)
def fault_full_rematerialization(place: Place) -> Work:
    """A change of sharding for which the partitioner gathers the whole array."""
    mesh = place.mesh(a=4, b=2)

    def run(x):
        y = lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P("a", None, "b")))
        return (
            lax.with_sharding_constraint(y.reshape(192, 2048), NamedSharding(mesh, P(("b", "a"), None))) * 2
        )

    return Work(run, [place.sharded(mesh, (64, 96, 64), P("a", None, "b"))])


@program()
def fault_layouts_that_disagree(place: Place) -> Work:
    """Sums and sorts along different dimensions, one after the other."""

    def run(x):
        for axis in (0, 1, 0, 1):
            x = jnp.sort(jnp.cos(x), axis=axis)
        return x

    return Work(run, [place.array((1024, 1536))])


@program(devices=4)
def fault_nothing_to_overlap(place: Place) -> Work:
    """Each step waits for the neighbour's block."""
    mesh = place.mesh(data=4)

    @per_device(mesh, P("data"), P("data"))
    def run(x):
        for _ in range(3):
            x = jnp.sin(lax.ppermute(x, "data", ring(4)))
        return x

    return Work(run, [place.sharded(mesh, (2048, 2048), P("data"))])


@program()
def fault_unused_argument(place: Place) -> Work:
    """A parameter of a head that was removed."""
    return Work(
        lambda w, head, x: jnp.tanh(x @ w),
        [place.array((256, 256)), place.array((1024, 1024)), place.array((8, 256))],
        {"keep_unused": True},
    )


def _loss(params, x, y):
    for w, b in params:
        x = jnp.tanh(x @ w + b)
    return jnp.mean((x - y) ** 2)


def _network(place: Place):
    return [(place.array((512, 512)), place.array((512,))) for _ in range(4)]


@program()
def fault_params_not_donated(place: Place) -> Work:
    """Gradient descent that keeps the old parameters."""

    def step(params, x, y):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(_loss)(params, x, y))

    return Work(step, [_network(place), place.array((64, 512)), place.array((64, 512))])


@program()
def fault_optimizer_not_donated(place: Place) -> Work:
    """Adam whose parameters are donated and whose moments are not."""

    def step(params, mean, square, x, y):
        grads = jax.grad(_loss)(params, x, y)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
        params = jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return params, mean, square

    state = [_network(place) for _ in range(3)]
    return Work(step, [*state, place.array((64, 512)), place.array((64, 512))], {"donate_argnums": (0,)})


@program()
def fault_cache_not_donated(place: Place) -> Work:
    """A decoding step that writes one row of a cache and returns a new one."""

    def step(cache, q, k, at):
        cache = lax.dynamic_update_slice(cache, k[:, None], (0, at, 0))
        return cache, jax.nn.softmax(jnp.einsum("bd,btd->bt", q, cache))

    arguments = [
        place.array((8, 2048, 128)),
        place.array((8, 128)),
        place.array((8, 128)),
        place.array((), "int32"),
    ]
    return Work(step, arguments)


@program(devices=8)
def fault_replicated_parameter(place: Place) -> Work:
    """An embedding of 128 MiB on every device."""
    mesh = place.mesh(data=8)
    arguments = [place.sharded(mesh, (32768, 1024), P()), place.sharded(mesh, (64,), P("data"), "int32")]
    return Work(lambda table, i: jnp.tanh(table[i]), arguments)


@program()
def fault_needless_remat(place: Place) -> Work:
    """jax.checkpoint on a small network."""

    def loss(ws, x):
        @jax.checkpoint
        def layer(x, w):
            return jnp.tanh(jnp.tanh(x @ w) @ w.T), None

        return (lax.scan(layer, x, ws)[0] ** 2).sum()

    return Work(jax.grad(loss), [place.array((6, 512, 512)), place.array((256, 512))])


@program()
def fault_one_hot(place: Place) -> Work:
    """Rows of a table by a product."""
    return Work(
        lambda table, i: jax.nn.one_hot(i, 16384, dtype=jnp.float32) @ table,
        [place.array((16384, 256)), place.array((512,), "int32")],
    )


@program()
def fault_tiny_rounds(place: Place) -> Work:
    """A recurrence of thousands of steps over a short vector."""

    def step(carry, x):
        carry = 0.99 * carry + x
        return carry, jnp.sin(carry)

    return Work(lambda xs: lax.scan(step, jnp.zeros(16), xs), [place.array((4096, 16))])


@program()
def fault_narrow_minor(place: Place) -> Work:
    """Vectors of three last, millions of them first."""

    def run(points):
        norm = jnp.sqrt((points**2).sum(-1, keepdims=True))
        return jnp.cumsum(points / norm, axis=1)

    return Work(run, [place.array((64, 4096, 3))])


@program()
def fault_transposed_weight(place: Place) -> Work:
    """A weight that every step turns round, and uses in both orders."""

    def run(w, xs):
        return lax.scan(
            lambda c, x: (jnp.tanh(jnp.sort(w.T + c[:, None], axis=-1).sum(1) + x), None), xs[0], xs
        )[0]

    return Work(run, [place.array((1024, 1024)), place.array((16, 1024))])


@program(platforms=("tpu", "gpu"))
def fault_host_transfer_in_loop(place: Place) -> Work:
    """Activations are fetched from the host layer by layer."""
    host = place.one.with_memory_kind("pinned_host")

    def layer(x, saved):
        return jnp.cos(x) + jax.device_put(saved, jax.memory.Space.Device), None

    return Work(
        lambda x, saved: lax.scan(layer, x, saved)[0],
        [place.array((1024, 512)), place.array((12, 1024, 512), sharding=host)],
    )


@program(devices=8)
def fault_repeated_gather(place: Place) -> Work:
    """The same weights are gathered for the forward pass and for the penalty."""
    mesh = place.mesh(data=8)

    @per_device(mesh, (P("data"), P("data")), P("data"))
    def run(w, x):
        y = jnp.tanh(x @ lax.all_gather(w, "data", tiled=True))
        _, y = lax.optimization_barrier((w, y))
        penalty = (lax.all_gather(w, "data", tiled=True) ** 2).sum()
        return y * penalty

    return Work(
        run, [place.sharded(mesh, (1024, 1024), P("data")), place.sharded(mesh, (64, 1024), P("data"))]
    )


@program(devices=8)
def fault_wide_gather(place: Place) -> Work:
    """bf16 values travel as f32, and are scaled behind the gather only."""
    mesh = place.mesh(data=8)

    @per_device(mesh, P("data"), P("data"))
    def run(x):
        whole = lax.all_gather(x.T.astype(jnp.float32), "data", axis=1, tiled=True)
        return lax.dynamic_slice_in_dim(jnp.cumsum(whole, axis=1).T, lax.axis_index("data"), 8)

    return Work(run, [place.sharded(mesh, (4096, 512), P("data"), "bfloat16")])


@program()
def fault_huge_scatter(place: Place) -> Work:
    """A histogram by a million single additions."""
    return Work(
        lambda i, x: jnp.zeros(65536).at[i].add(x),
        [place.array((1 << 20,), "int32"), place.array((1 << 20,))],
    )


@program()
def fault_highest_precision(place: Place) -> Work:
    """Six passes where one would do."""

    def run(x, first, second):
        with jax.default_matmul_precision("highest"):
            return jax.nn.gelu(x @ first) @ second

    return Work(run, [place.array((512, 1024)), place.array((1024, 4096)), place.array((4096, 1024))])


@program(devices=4)
def fault_uneven_split(place: Place) -> Work:
    """Ten experts over four devices."""
    mesh = place.mesh(expert=4)

    def run(x):
        return lax.with_sharding_constraint(
            jnp.sin(x).reshape(10, 64, 1024), NamedSharding(mesh, P("expert"))
        ).sum(1)

    return Work(run, [place.sharded(mesh, (640, 1024), P("expert"))])
