"""Dots, convolutions, windows, sorting, gather and scatter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program

NHWC = ("NHWC", "HWIO", "NHWC")


def convolve(x, kernel, strides=(1, 1), **options):
    """A two-dimensional convolution in the usual layout that keeps the size."""
    options = {"padding": "SAME", **options}
    return lax.conv_general_dilated(x, kernel, window_strides=strides, dimension_numbers=NHWC, **options)


@program()
def dots(place: Place) -> Work:
    def f(a, b, v):
        products = a @ b, jnp.einsum("ij,jk->ki", a, b), jnp.dot(v, b), jnp.vdot(v, v), jnp.outer(v, v)
        return products, lax.dot(a, b, precision=lax.Precision.HIGHEST), jnp.dot(a, b, precision="high")

    return Work(f, [place.array((64, 48)), place.array((48, 96)), place.array((48,))])


@program()
def dot_algorithm(place: Place) -> Work:
    algorithm = {"cpu": "F32_F32_F32", "gpu": "TF32_TF32_F32", "tpu": "BF16_BF16_F32_X3"}[place.platform]

    def f(a, b):
        return lax.dot(a, b, precision=lax.DotAlgorithmPreset[algorithm])

    return Work(f, [place.array((64, 64))] * 2)


@program(topologies={"gpu": ("h100:1x1x1", "b200:1x1x1"), "tpu": ("v5e:2x2x1", "tpu7x:2x2x1")})
def scaled_dot(place: Place) -> Work:
    def f(a, b, a_scale, b_scale):
        return lax.scaled_dot(a, b, lhs_scale=a_scale, rhs_scale=b_scale, preferred_element_type=jnp.float32)

    operands = [place.array((128, 256), "float8_e4m3fn"), place.array((256, 128), "float8_e4m3fn")]
    return Work(
        f, [*operands, place.array((128, 8), "float8_e8m0fnu"), place.array((8, 128), "float8_e8m0fnu")]
    )


@program()
def convolution_batch_group(place: Place) -> Work:
    def f(x, k):
        return convolve(x, k, batch_group_count=2)

    return Work(f, [place.array((4, 9, 9, 4)), place.array((3, 3, 4, 8))])


@program()
def convolution_transpose(place: Place) -> Work:
    def f(x, k):
        patches = lax.conv_general_dilated_patches(x.transpose(0, 3, 1, 2), (3, 3), (1, 1), "SAME")
        return lax.conv_transpose(x, k, (2, 2), "SAME"), patches

    return Work(f, [place.array((1, 8, 8, 4)), place.array((3, 3, 4, 8))])


@program()
def max_pool_grad(place: Place) -> Work:
    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return Work(jax.grad(lambda x: jnp.sum(pool(x) ** 2)), [place.array((2, 8, 8, 16))])


@program()
def sorting(place: Place) -> Work:
    def f(x, k):
        sorts = jnp.sort(x), jnp.argsort(x, axis=0), lax.sort((x, k), num_keys=2, is_stable=False)
        descending = jnp.sort(x, descending=True), lax.top_k(x, 5), jnp.median(x)
        return sorts, descending, jnp.searchsorted(x[0], k[0].astype("float32")), jnp.unique(k, size=10)

    return Work(f, [place.array((8, 50)), place.array((8, 50), "int32")])


@program()
def approx_top_k(place: Place) -> Work:
    def f(x):
        return lax.approx_max_k(x, 10), lax.approx_min_k(x, 3, recall_target=0.9)

    return Work(f, [place.array((16, 4096))])


@program(platforms=("cpu",))
def eig_schur_expm(place: Place) -> Work:
    def f(a):
        return jnp.linalg.eig(a), jax.scipy.linalg.schur(a), jax.scipy.linalg.expm(a)

    return Work(f, [place.array((6, 6))])


@program()
def scatters(place: Place) -> Work:
    def f(x, i, u, j, v):
        rows = x.at[i]
        combined = rows.add(u), rows.max(u), rows.min(u), rows.mul(u), rows.apply(jnp.sin)
        replaced = rows.set(u, mode="drop"), rows.set(u, unique_indices=True, indices_are_sorted=True)
        batched = jax.vmap(lambda row, k, w: row.at[k].add(w))(x, j, v)
        return combined, replaced, batched, x.at[1, i % 9].set(0.0), x.at[2:4, 3].add(1.0)

    table, rows = place.array((12, 9)), place.array((7, 9))
    return Work(
        f, [table, place.array((7,), "int32"), rows, place.array((12, 3), "int32"), place.array((12, 3))]
    )
