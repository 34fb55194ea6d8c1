"""Control flow, calls, scopes and metadata, random numbers, callbacks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.experimental.ode import odeint
from jax.experimental.xla_metadata import set_xla_metadata

from corpus.programs.registry import Place, Work, program
from corpus.programs.types import with_flags


@program()
def conditionals(place: Place) -> Work:
    def f(p, i, x):
        two = lax.cond(p, lambda x: x @ x, lambda x: x.T * 2, x)
        branches = [jnp.sin, lambda x: x - 1, lambda x: jnp.linalg.norm(x) * x, jnp.sort]
        batched = jax.vmap(lambda q, y: lax.cond(q > 0, jnp.sin, jnp.cos, y))
        return two, lax.switch(i, branches, x), batched(x[0], x)

    return Work(f, [place.array((), "bool"), place.array((), "int32"), place.array((32, 32))])


@program()
def ode_integrator(place: Place) -> Work:
    def f(y, t):
        return jax.grad(lambda y: jnp.sum(odeint(lambda y, t: -y * jnp.sin(t), y, t)))(y)

    return Work(f, [place.array((4,)), place.array((5,))])


@program()
def barrier_and_scopes(place: Place) -> Work:
    def f(x):
        with jax.named_scope("first"):
            y, z = lax.optimization_barrier((jnp.sin(x), jnp.cos(x)))
        with jax.named_scope("second block/with slash"):
            return y @ z, jax.checkpoint(lambda v: jnp.tanh(v @ v))(y)

    return Work(f, [place.array((64, 64))])


with_flags("barrier_and_scopes", "inline_frames", {"xla_hlo_print_inline_stack_frames": True})


@program(platforms=("cpu", "tpu"))
def composite_call(place: Place) -> Work:
    def rms_norm(x, *, eps):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps)

    norm = lax.composite(rms_norm, name="my.rms_norm", version=3)
    return Work(lambda x: norm(x, eps=np.float32(1e-5)), [place.array((8, 64))])


@program()
def metadata_attributes(place: Place) -> Work:
    def f(x):
        with set_xla_metadata(_scheduling_group_id="1", my_key="my value, {1}"):
            y = jnp.sin(x) @ x
        return y + set_xla_metadata(jnp.cos(x), other="2")

    return Work(f, [place.array((32, 32))])


@program()
def rng_algorithms(place: Place) -> Work:
    algorithms = [lax.RandomAlgorithm.RNG_DEFAULT, lax.RandomAlgorithm.RNG_PHILOX]
    if place.platform != "tpu":
        algorithms.append(lax.RandomAlgorithm.RNG_THREE_FRY)

    def f(key):
        return [lax.rng_bit_generator(key, (12, 8), "uint32", algorithm) for algorithm in algorithms]

    return Work(f, [place.array((4,), "uint32")])


@program()
def rng_uniform(place: Place) -> Work:
    return Work(lambda a, b: lax.rng_uniform(a, b, (4, 16)), [place.array(()), place.array(())])


@program(platforms=("cpu", "tpu"))  # a GPU callback wants the GPU
def callback_io(place: Place) -> Work:
    def f(x):
        io_callback(lambda v: None, None, x, ordered=True)
        jax.debug.print("x sum {s}", s=x.sum())
        return x * 2

    return Work(f, [place.array((4, 8))])
