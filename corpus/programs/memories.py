"""More than one memory or core: host offload, SparseCore, and kernels written in Pallas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import pallas as pl
from jax.experimental.compute_on import compute_on

from corpus.programs.registry import Place, Work, program


@program(platforms=("tpu", "gpu"))
def host_offload_remat(place: Place) -> Work:
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["act"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def layer(x, w):
        return checkpoint_name(jnp.tanh(x @ w), "act"), None

    def loss(x, ws):
        return jnp.sum(lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0])

    return Work(jax.grad(loss, (0, 1)), [place.array((512, 512)), place.array((6, 512, 512))])


@program(platforms=("tpu", "gpu"))
def host_compute(place: Place) -> Work:
    @compute_on("device_host")
    @jax.jit
    def on_host(x):
        return jnp.sin(x) * 2

    return Work(lambda x: on_host(x + 1) @ x, [place.array((256, 256))])


@program(platforms=("tpu",), topologies={"tpu": ("v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1")})
def sparsecore_compute(place: Place) -> Work:
    @compute_on("tpu_sparsecore")
    @jax.jit
    def gather(table, i):
        return table[i]

    return Work(
        lambda table, i: gather(table, i) * 2, [place.array((65536, 128)), place.array((4096,), "int32")]
    )


@program(platforms=("tpu",), topologies={"tpu": ("v4:2x2x1", "v5e:2x2x1", "v6e:2x2", "tpu7x:2x2x1")})
def pallas_matmul(place: Place) -> Work:
    from jax.experimental.pallas import tpu as pltpu

    def kernel(a, b, o, total):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(a[...], b[...], preferred_element_type=jnp.float32)
        o[...] = total[...].astype(o.dtype)

    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((512, 512), jnp.bfloat16),
        grid=(2, 2, 4),
        in_specs=[
            pl.BlockSpec((256, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 256), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((256, 256), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((256, 256), jnp.float32)],
        cost_estimate=pl.CostEstimate(flops=2 * 512**3, bytes_accessed=1572864, transcendentals=0),
        name="my_matmul",
    )
    return Work(lambda a, b: call(a, b) + 1, [place.array((512, 512), "bfloat16")] * 2)


@program(platforms=("tpu",))
def pallas_flash_attention_grad(place: Place) -> Work:
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    def loss(q, k, v):
        return jnp.sum(flash_attention(q, k, v, causal=True).astype(jnp.float32))

    return Work(jax.grad(loss, (0, 1, 2)), [place.array((1, 2, 512, 128), "bfloat16")] * 3)


@program(platforms=("gpu",))
def pallas_triton(place: Place) -> Work:
    from jax.experimental.pallas import triton

    def kernel(x, y, o):
        o[...] = x[...] * 2 + y[...]

    block = pl.BlockSpec((128,), lambda i: i)
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1024,), jnp.float32),
        grid=(8,),
        in_specs=[block, block],
        out_specs=block,
        compiler_params=triton.CompilerParams(num_warps=4),
    )
    return Work(call, [place.array((1024,)), place.array((1024,))])
