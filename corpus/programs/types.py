"""Element types: narrow, wide and complex ones, conversions, and constants written out."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from corpus.programs.registry import REGISTRY, Place, Work, add, program

WIDE = {"jax_enable_x64": True}
FULL_CONSTANTS = {"xla_dump_large_constants": True}
FLOAT8 = ("e4m3fn", "e5m2", "e4m3b11fnuz", "e4m3fnuz", "e5m2fnuz", "e3m4", "e4m3", "e8m0fnu")


@program()
def rounding(place: Place) -> Work:
    def f(x):
        nearest, away = lax.RoundingMethod.TO_NEAREST_EVEN, lax.RoundingMethod.AWAY_FROM_ZERO
        rounded = lax.round(x, nearest), lax.round(x, away), jnp.trunc(x)
        return *rounded, lax.reduce_precision(x, 5, 10), lax.reduce_precision(x, 8, 7)

    return Work(f, [place.array((100,))])


@program(config=WIDE)
def integers_64(place: Place) -> Work:
    def f(x, y):
        # The TPU compiler cannot take a 64-bit mulhi apart.
        wide = () if place.platform == "tpu" else (lax.mulhi(x, y),)
        return x * y, x // y, wide, x >> 3, lax.population_count(x), jnp.cumsum(x)

    return Work(f, [place.array((5, 7), "int64")] * 2)


@program()
def complex64(place: Place) -> Work:
    def f(z, x):
        w = lax.complex(x, x + 1)
        parts = z.real, z.imag, jnp.conj(z), jnp.abs(z), jnp.angle(z)
        constant = jnp.full((2,), 1.5 - 2.25j, jnp.complex64)
        return z * w, z / w, jnp.exp(z), jnp.sqrt(z), jnp.log(w), z @ w.T, parts, constant

    return Work(f, [place.array((6, 10), "complex64"), place.array((6, 10))])


@program(platforms=("cpu", "gpu"), config=WIDE)
def complex128(place: Place) -> Work:
    def f(z):
        return z * (2 - 1j), jnp.fft.fft(z), jnp.abs(z), z @ z.T

    return Work(f, [place.array((6, 8), "complex128")])


@program(topologies={"tpu": ("v5e:2x2x1", "v6e:2x2", "tpu7x:2x2x1")})
def float8(place: Place) -> Work:
    def f(x):
        small = [x.astype(f"float8_{kind}") for kind in FLOAT8]
        return small, [s.astype(jnp.float32) * 2 for s in small]

    return Work(f, [place.array((32, 128))])


@program(topologies={"tpu": ("v5e:2x2x1", "tpu7x:2x2x1")})
def float4(place: Place) -> Work:
    def f(x):
        y = x.astype("float4_e2m1fn")
        return y, y.astype(jnp.bfloat16)

    return Work(f, [place.array((32, 128))])


@program(topologies={"tpu": ("v5e:2x2x1", "v6e:2x2", "tpu7x:2x2x1")})
def int4(place: Place) -> Work:
    def f(x, w, u):
        product = lax.dot(x, w.astype(jnp.bfloat16))
        return product, w.astype("int8") + 1, u.astype("uint8"), x.astype("int4"), x.astype("uint4")

    return Work(
        f, [place.array((16, 128), "bfloat16"), place.array((128, 256), "int4"), place.array((3, 5), "uint4")]
    )


@program()
def int2(place: Place) -> Work:
    """The TPU compiler aborts on this one, after it has written after_optimizations."""

    def f(x, u):
        return x.astype("int8") * 3, u.astype("int32"), (x.astype("int8") + 1).astype("int2")

    return Work(f, [place.array((64, 256), "int2"), place.array((64, 256), "uint2")])


@program()
def int8_matmul(place: Place) -> Work:
    def f(a, b):
        return lax.dot(a, b, preferred_element_type=jnp.int32), a.astype("int16"), b.astype("uint8")

    return Work(f, [place.array((64, 256), "int8"), place.array((256, 128), "int8")])


@program(config=WIDE)
def conversions(place: Place) -> Work:
    integers = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]

    def f(x):
        return [x.astype(kind) for kind in ("bool", *integers, "float16", "bfloat16", "float32", "float64")]

    return Work(f, [place.array((3, 5))])


@program()
def special_functions(place: Place) -> Work:
    def f(a, x):
        special = jax.scipy.special
        y = jax.nn.sigmoid(x)
        gamma = lax.igamma(a, x), lax.betainc(a, a + 1, y), special.zeta(a + 2, x)
        return gamma, special.ndtri(y), special.expi(x), jax.nn.gelu(x)

    return Work(f, [place.array((20,)), place.array((20,))])


@program(flags=FULL_CONSTANTS)
def literals_full(place: Place) -> Work:
    random = np.random.RandomState(0)

    def normal(*shape):
        return jnp.asarray(random.randn(*shape).astype("float32"))

    def f(x):
        whole = [
            jnp.asarray(random.randint(-9, 9, (2, 3, 4)).astype("int32")),
            jnp.asarray(random.randint(-8, 7, (4, 4)).astype("int8")).astype("int4"),
            jnp.asarray(random.randint(0, 255, (40,)).astype("uint8")),
            jnp.asarray([True, False, True]),
        ]
        odd = jnp.asarray(np.array([np.inf, -np.inf, np.nan, -0.0, 1e-40], "float32"))
        pair = jnp.asarray(np.array([[1 + 2j, -0.5j]], "complex64"))
        narrow = [normal(5).astype(kind) for kind in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")]
        return x + normal(3, 5), whole, odd, pair, narrow, jnp.zeros((0, 3)), normal(2, 1, 2, 2)

    return Work(f, [place.array((3, 5))])


def with_flags(name: str, suffix: str, flags: dict[str, object]) -> None:
    """Registers a program once more under `NAME_SUFFIX`, with other compiler options."""
    base = REGISTRY[name]
    add(dataclasses.replace(base, name=f"{name}_{suffix}", flags={**base.flags, **flags}))


with_flags("literals_full", "short_text", {"xla_dump_hlo_as_long_text": False})
