"""Programs that waste something on purpose: each is what a rule of the linter looks for.

What is made of them lies in tests/data/lint/compiled, and the pages of the rules show it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.layout import Format, Layout
from jax.sharding import PartitionSpec as P

from corpus.programs.parallel import per_device, ring
from corpus.programs.registry import Place, Work, program


@program(devices=8)
def waste_gather_in_loop(place: Place) -> Work:
    """C101: all of the carried rows in every round."""
    mesh = place.mesh(data=8)

    @per_device(mesh, P("data"), P("data"))
    def run(x):
        def step(carry, _):
            whole = lax.all_gather(carry, "data", tiled=True)
            return jnp.tanh(carry + whole.mean(0)), None

        return lax.scan(step, x, None, length=16)[0]

    return Work(run, [place.sharded(mesh, (64, 4096), P("data"))])


@program(devices=8)
def waste_sum_in_loop(place: Place) -> Work:
    """C102: the sum of the same weights in every round."""
    mesh = place.mesh(data=8)

    @per_device(mesh, (P(None), P("data")), P("data"))
    def run(weights, x):
        def step(carry, _):
            return jnp.tanh(carry * lax.psum(weights, "data")), None

        return lax.scan(step, x, None, length=16)[0]

    return Work(run, [place.sharded(mesh, (4096,), P(None)), place.sharded(mesh, (8, 4096), P("data"))])


@program(devices=8)
def waste_axis_of_one(place: Place) -> Work:
    """C103: collectives over a mesh axis of one device."""
    mesh = place.mesh(stage=1, data=8)

    @per_device(mesh, P(None, "data"), P(None, "data"))
    def run(x):
        passed = lax.ppermute(x, "stage", ring(1))
        return lax.psum(lax.all_gather(jnp.sin(passed), "stage").sum(0), "stage")

    return Work(run, [place.sharded(mesh, (16, 4096), P(None, "data"))])


@program(devices=8)
def waste_sum_then_slice(place: Place) -> Work:
    """C104: every device gets the whole sum, and keeps its own part."""
    mesh = place.mesh(data=8)

    @per_device(mesh, P("data"), P("data"))
    def run(x):
        whole = lax.psum(jnp.sin(x[0]), "data")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("data") * 64, 64)

    return Work(run, [place.sharded(mesh, (8, 512, 1024), P("data"))])


@program(devices=8)
def waste_gather_twice(place: Place) -> Work:
    """C105: the same rows for two uses."""
    mesh = place.mesh(data=8)

    @per_device(mesh, P("data"), P(None))
    def run(x):
        first, again = (lax.all_gather(x, "data", tiled=True) for _ in range(2))
        return jnp.sort(first, axis=0) + jnp.cumsum(again, axis=1)

    return Work(run, [place.sharded(mesh, (512, 1024), P("data"))])


@program(devices=8)
def waste_wide_gather(place: Place) -> Work:
    """C107: bytes become floats before they are gathered, not after."""
    mesh = place.mesh(data=8)

    @per_device(mesh, P("data"), P(None))
    def run(x):
        return jnp.sin(lax.all_gather(x.astype(jnp.float32), "data", tiled=True))

    return Work(run, [place.sharded(mesh, (8192, 64), P("data"), "int8")])


@program(devices=8)
def waste_gather_then_slice(place: Place) -> Work:
    """C108: every device gathers all rows, and keeps some columns."""
    mesh = place.mesh(data=8)

    @per_device(mesh, P("data"), P(None, "data"))
    def run(x):
        whole = lax.all_gather(x, "data", tiled=True)
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("data") * 128, 128, axis=1) * 2

    return Work(run, [place.sharded(mesh, (512, 1024), P("data"))])


@program(devices=8)
def waste_idle_axis(place: Place) -> Work:
    """C118: a training step on a mesh of which one axis splits nothing."""
    mesh = place.mesh(data=4, model=2)

    def loss(weights, x, y):
        first, second = weights
        return jnp.mean(jnp.square(jax.nn.gelu(x @ first) @ second - y))

    def step(weights, x, y):
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, jax.grad(loss)(weights, x, y))

    weights = [
        place.sharded(mesh, (1024, 4096), P(None, None)),
        place.sharded(mesh, (4096, 1024), P(None, None)),
    ]
    rows = place.sharded(mesh, (4096, 1024), P("data", None))
    return Work(step, [weights, rows, rows])


@program(devices=8)
def waste_lookup_loses_batch(place: Place) -> Work:
    """C119: what is looked up takes the sharding of the table, and each device goes on with the whole batch."""
    mesh = place.mesh(fsdp=8)

    def loss(params, tokens):
        def layer(x, weights):
            first, second = weights
            return x + jax.nn.gelu(x @ first) @ second, None

        x, _ = lax.scan(layer, params["table"][tokens], params["layers"])
        return jnp.mean(jnp.square(x))

    def step(params, tokens):
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, jax.grad(loss)(params, tokens))

    params = {
        "table": place.sharded(mesh, (4096, 512), P(None, "fsdp")),
        "layers": (
            place.sharded(mesh, (4, 512, 2048), P(None, "fsdp", None)),
            place.sharded(mesh, (4, 2048, 512), P(None, "fsdp", None)),
        ),
    }
    return Work(
        step,
        [params, place.sharded(mesh, (64, 1024), P("fsdp"), "int32")],
        {"donate_argnums": 0},
    )


@program()
def waste_round_trip(place: Place) -> Work:
    """D102: widened and narrowed again."""
    return Work(
        lambda x: x.astype(jnp.float32).astype(jnp.bfloat16) * 2, [place.array((256, 256), "bfloat16")]
    )


@program()
def waste_upcast_dot(place: Place) -> Work:
    """D103: narrow arrays are widened before they are multiplied."""
    narrow = place.array((1024, 1024), "bfloat16")
    return Work(lambda x, w: jnp.sin(x.astype(jnp.float32) @ w.astype(jnp.float32)), [narrow, narrow])


@program()
def waste_reduce_precision(place: Place) -> Work:
    """D104: rounded to the bits that the elements have, and twice to the same ones."""

    def run(x):
        full = lax.reduce_precision(x, 8, 23)
        once = lax.reduce_precision(jnp.sin(full), 5, 10)
        return lax.reduce_precision(once.reshape(-1), 5, 10) + 1

    return Work(run, [place.array((256, 256))])


@program(platforms=("cpu",))
def waste_unknown_kernel(place: Place) -> Work:
    """G105: a kernel of which the text says nothing but its name."""
    array = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    return Work(jax.ffi.ffi_call("my_kernel", array), [place.array((256, 256))])


@program()
def waste_large_constant(place: Place) -> Work:
    """K101: a table that is part of the program."""
    table = np.sin(np.arange(600_000, dtype=np.float32)).reshape(600, 1000)
    return Work(lambda x: x @ table, [place.array((8, 600))])


@program()
def waste_transpose(place: Place) -> Work:
    """L104: nothing but a transpose."""
    return Work(lambda x: x.T, [place.array((1024, 2048))])


@program()
def waste_argument_layout(place: Place) -> Work:
    """L105: the argument comes in another order of dimensions than the sort takes."""
    return Work(lambda x: jnp.sort(x, axis=0), [place.array((512, 4, 1024))])


@program(platforms=("tpu",))
def waste_donated_layout(place: Place) -> Work:
    """M101: a donated argument whose result has the same shape and another layout, so that it needs a place of its own."""
    rows, columns = Format(Layout((0, 1)), place.one), Format(Layout((1, 0)), place.one)
    options = {"donate_argnums": (0,), "in_shardings": rows, "out_shardings": columns}
    return Work(jnp.sin, [jax.ShapeDtypeStruct((2048, 8), jnp.float32)], options)


@program(devices=8)
def waste_donation(place: Place) -> Work:
    """M102: an argument is donated that no result has the size of."""
    mesh = place.mesh(data=8)
    arguments = [place.sharded(mesh, (512, 1024), P("data")), place.sharded(mesh, (64, 1024), P("data"))]
    return Work(lambda x, y: (jnp.sin(x).sum(), y * 2), arguments, {"donate_argnums": (0,)})


@program(platforms=("tpu", "gpu"))
def waste_host_copies(place: Place) -> Work:
    """M104: the weights of each layer come from the host in its round of the loop."""
    host = place.one.with_memory_kind("pinned_host")

    def layer(x, w):
        return jnp.tanh(x @ jax.device_put(w, jax.memory.Space.Device)), None

    weights = place.array((8, 1024, 1024), sharding=host)
    return Work(lambda x, ws: lax.scan(layer, x, ws)[0], [place.array((512, 1024)), weights])


@program(platforms=("tpu", "gpu"))
def waste_host_copy(place: Place) -> Work:
    """S103: nothing else to do while an argument comes from the host."""
    host = place.one.with_memory_kind("pinned_host")
    argument = place.array((1024, 1024), sharding=host)
    return Work(lambda x: jnp.sin(jax.device_put(x, jax.memory.Space.Device)), [argument])


@program(platforms=("tpu",))
def waste_memory(place: Place) -> Work:
    """M105: more activations than fit into memory at once."""

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x.sum()

    weights = [place.array((4096, 4096)) for _ in range(10)]
    return Work(jax.grad(loss), [weights, place.array((131072, 4096))])


@program(platforms=("tpu",))
def waste_layer_residuals(place: Place) -> Work:
    """M124: each of eight layers keeps what its backward pass needs, most of a chip's memory; checkpointed, it would not."""

    def layer(w, x):
        up, down = w
        return x + jnp.tanh(jnp.tanh(x @ up) @ down)

    def loss(weights, x):
        for w in weights:
            x = layer(w, x)
        return (x.astype(jnp.float32) ** 2).mean()

    up, down = (place.array(shape, jnp.bfloat16) for shape in ((1024, 4096), (4096, 1024)))
    return Work(jax.grad(loss), [[(up, down)] * 8, place.array((98304, 1024), jnp.bfloat16)])


@program(platforms=("gpu",))
def waste_attention_scores(place: Place) -> Work:
    """M125: a score for each pair of a query and a key goes to memory and back; a fused kernel holds a block of them."""

    def attend(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k, preferred_element_type=jnp.float32) / 8
        return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores).astype(v.dtype), v)

    return Work(attend, [place.array((4, 8, 2048, 64), jnp.bfloat16)] * 3)


@program(devices=4, platforms=("tpu", "gpu"))
def waste_nothing_meanwhile(place: Place) -> Work:
    """S102: a neighbour's block, and nothing to compute until it is there."""
    mesh = place.mesh(data=4)
    run = per_device(mesh, P("data"), P("data"))(lambda x: jnp.sin(lax.ppermute(jnp.cos(x), "data", ring(4))))
    return Work(run, [place.sharded(mesh, (2048, 1024), P("data"))])


@program(platforms=("tpu",))
def waste_padding(place: Place) -> Work:
    """L101: points with their three coordinates last, in a layout that the caller insists on."""
    rows = Format(Layout((0, 1)), place.one)
    return Work(
        lambda x: x * 2,
        [jax.ShapeDtypeStruct((65536, 3), jnp.float32)],
        {"in_shardings": rows, "out_shardings": rows},
    )
