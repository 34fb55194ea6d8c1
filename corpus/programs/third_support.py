"""What the programs of the third sample share: shapes of parameters, and optimizers as people write them by hand."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from corpus.programs.registry import Place


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def bf16(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


def i32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def here(place: Place, tree, sharding=None):
    """Arguments of the shapes of a tree, all with one sharding."""
    return jax.tree.map(lambda s: place.array(s.shape, s.dtype, sharding), tree)


def spread(place: Place, mesh, tree, specs):
    """Arguments of the shapes of a tree, each with its own PartitionSpec."""
    return jax.tree.map(lambda s, spec: place.sharded(mesh, s.shape, spec, s.dtype), tree, specs)


def moments(params):
    """The state of Adam for parameters."""
    zeros = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, jnp.float32), params)
    return {"mu": zeros, "nu": zeros, "count": i32()}


def adamw(params, grads, state, lr=3e-4, b1=0.9, b2=0.95, eps=1e-8, decay=0.1):
    """One update of AdamW, bias corrected."""
    count = state["count"] + 1
    t = count.astype(jnp.float32)
    mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g.astype(jnp.float32), state["mu"], grads)
    nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g.astype(jnp.float32)), state["nu"], grads)

    def move(p, m, v):
        step = (m / (1 - b1**t)) / (jnp.sqrt(v / (1 - b2**t)) + eps)
        return (p - lr * (step + decay * p)).astype(p.dtype)

    return jax.tree.map(move, params, mu, nu), {"mu": mu, "nu": nu, "count": count}


def clipped(grads, limit=1.0):
    """Gradients scaled down to a global norm, and the norm."""
    norm = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in jax.tree.leaves(grads)))
    scale = jnp.minimum(1.0, limit / (norm + 1e-6))
    return jax.tree.map(lambda g: g * scale.astype(g.dtype), grads), norm


def sgd(params, grads, lr=0.1):
    return jax.tree.map(lambda p, g: (p - lr * g).astype(p.dtype), params, grads)


def momentum(params, grads, velocity, lr=0.1, beta=0.9):
    velocity = jax.tree.map(lambda v, g: beta * v + g, velocity, grads)
    return jax.tree.map(lambda p, v: p - lr * v, params, velocity), velocity


def rms_norm(x, scale):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(
        x.dtype
    ) * scale.astype(x.dtype)


def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + bias


def cross_entropy(logits, labels):
    """Mean loss of labels given as numbers."""
    logits = logits.astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


def rope(x, positions):
    """Rotary positions on the last axis of [..., length, heads, size]."""
    half = x.shape[-1] // 2
    angle = positions[..., :, None, None] * 10000.0 ** (-jnp.arange(half) / half)
    a, b = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    turned = [a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)]
    return jnp.concatenate(turned, -1).astype(x.dtype)


def by_hand(mesh, inputs, outputs):
    """Makes a function run on each device, which says itself what they exchange."""
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
