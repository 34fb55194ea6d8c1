"""Small models on one device: perceptron, transformer, residual network."""

from __future__ import annotations

from itertools import pairwise

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.linear import convolve
from corpus.programs.registry import Place, Work, program

GENERATIONS = ("v2:2x2", "v3:2x2", "v4:2x2x1", "v5e:2x2x1", "v5p:2x2x1", "v6e:2x2", "tpu7x:2x2x1")
SIZES = (784, 256, 128, 10)


def mlp(params, x):
    """A perceptron with relu between its layers."""
    for i, layer in enumerate(params):
        with jax.named_scope(f"layer_{i}"):
            x = x @ layer["w"] + layer["b"]
            if i + 1 < len(params):
                x = jax.nn.relu(x)
    return x


def mlp_params(place: Place):
    return [{"w": place.array((a, b)), "b": place.array((b,))} for a, b in pairwise(SIZES)]


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 10), -1))


def adam(params, grads, m, v, step):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)

    def update(p, m, v):
        return p - 1e-3 * (m / (1 - 0.9**step)) / (jnp.sqrt(v) + 1e-8)

    return jax.tree.map(update, params, m, v), m, v


@program(topologies={"gpu": ("h100:1x1x1", "b200:1x1x1"), "tpu": GENERATIONS})
def mlp_forward(place: Place) -> Work:
    return Work(mlp, [mlp_params(place), place.array((64, 784))])


@program(topologies={"tpu": GENERATIONS})
def mlp_train(place: Place) -> Work:
    def train_step(params, m, v, step, x, y):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(params)
        return (*adam(params, grads, m, v, step), value)

    params = mlp_params(place)
    batch = [place.array((64, 784)), place.array((64,), "int32")]
    return Work(train_step, [params, params, params, place.array(()), *batch], {"donate_argnums": (0, 1, 2)})


def block_shapes(d: int, heads: int, f: int) -> dict[str, tuple[int, ...]]:
    """The weights of one transformer block."""
    e = d // heads
    return {
        "ln1": (d,),
        "ln2": (d,),
        "qkv": (d, 3, heads, e),
        "out": (heads, e, d),
        "up": (d, f),
        "gate": (d, f),
        "down": (f, d),
    }


def norm(x, gain):
    y = x.astype(jnp.float32)
    return (y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)).astype(x.dtype) * gain


def rope(x):
    t, d = x.shape[1], x.shape[-1]
    angle = jnp.arange(t)[:, None] / 10000 ** (jnp.arange(d // 2) / (d // 2))
    c, s = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1).astype(x.dtype)


def attention(q, k, v):
    t = q.shape[1]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, -1).astype(q.dtype), v)


def feed_forward(x, p):
    y = norm(x, p["ln2"])
    return x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]


def query_key_value(x, p):
    return jnp.moveaxis(jnp.einsum("btd,dnhe->btnhe", norm(x, p["ln1"]), p["qkv"]), 2, 0)


def block(x, p, constrain=lambda x: x):
    """One transformer block; `constrain` is where a sharding may be asked for."""
    with jax.named_scope("attention"):
        q, k, v = query_key_value(x, p)
        x = constrain(x + jnp.einsum("bthe,hed->btd", attention(rope(q), rope(k), v), p["out"]))
    with jax.named_scope("mlp"):
        return constrain(feed_forward(x, p))


def language_model_loss(params, tokens, remat=False, constrain=lambda x: x):
    """The loss of a decoder whose blocks are stacked along a leading axis."""

    def body(x, p):
        return block(x, p, constrain), None

    if remat:
        body = jax.checkpoint(body, policy=jax.checkpoint_policies.nothing_saveable)
    x, _ = lax.scan(body, params["embed"][tokens[:, :-1]], params["blocks"])
    logits = (norm(x, params["final"]) @ params["embed"].T).astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], -1))


def language_model(place: Place, blocks):
    return {
        "embed": place.array((512, 128), "bfloat16"),
        "final": place.array((128,), "bfloat16"),
        "blocks": blocks,
    }


def stacked_blocks(place: Place, layers: int):
    return {k: place.array((layers, *shape), "bfloat16") for k, shape in block_shapes(128, 4, 256).items()}


@program()
def transformer_train_scan(place: Place) -> Work:
    def train_step(params, tokens):
        loss, grads = jax.value_and_grad(language_model_loss)(params, tokens)
        return loss, jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads)

    params = language_model(place, stacked_blocks(place, 4))
    return Work(train_step, [params, place.array((2, 65), "int32")], {"donate_argnums": (0,)})


@program()
def transformer_train_remat(place: Place) -> Work:
    def gradient(params, tokens):
        return jax.value_and_grad(lambda p: language_model_loss(p, tokens, remat=True))(params)

    return Work(gradient, [language_model(place, stacked_blocks(place, 4)), place.array((2, 65), "int32")])


@program()
def transformer_decode(place: Place) -> Work:
    layers, batch, heads, length, size = 2, 4, 4, 128, 32

    def step(params, cache, token, position):
        x = params["embed"][token]
        kept = []
        for p, (keys, values) in zip(params["blocks"], cache, strict=True):
            q, k, v = query_key_value(x, p)
            keys = lax.dynamic_update_slice(keys, k, (0, position, 0, 0))
            values = lax.dynamic_update_slice(values, v, (0, position, 0, 0))
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys).astype(jnp.float32)
            weights = jax.nn.softmax(jnp.where(jnp.arange(length) <= position, scores, -1e30))
            x = x + jnp.einsum("bhqk,bkhd,hdz->bqz", weights.astype(jnp.bfloat16), values, p["out"])
            x = feed_forward(x, p)
            kept.append((keys, values))
        return jnp.argmax((x @ params["embed"].T)[:, 0], -1), kept

    shapes = block_shapes(128, heads, 256)
    params = language_model(
        place, [{k: place.array(s, "bfloat16") for k, s in shapes.items()} for _ in range(layers)]
    )
    cache = [(place.array((batch, length, heads, size), "bfloat16"),) * 2] * layers
    arguments = [params, cache, place.array((batch, 1), "int32"), place.array((), "int32")]
    return Work(step, arguments, {"donate_argnums": (1,)})


def batch_norm(x, scale, offset):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


def resnet(params, x):
    """A residual network of three blocks."""
    x = convolve(x, params["stem"], (2, 2))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for p in params["blocks"]:
        strides = (2, 2) if "short" in p else (1, 1)
        short = convolve(x, p["short"], strides) if "short" in p else x
        x = jax.nn.relu(batch_norm(convolve(x, p["c1"], strides), p["s"], p["b"]))
        x = jax.nn.relu(batch_norm(convolve(x, p["c2"]), p["s"], p["b"]) + short)
    return x.mean((1, 2)) @ params["head"]


@program()
def resnet_train(place: Place) -> Work:
    blocks, channels = [], 16
    for n in (16, 32, 64):
        p = {"c1": (3, 3, channels, n), "c2": (3, 3, n, n), "s": (n,), "b": (n,)}
        if n != channels:
            p["short"] = (1, 1, channels, n)
        blocks.append({k: place.array(shape) for k, shape in p.items()})
        channels = n
    params = {"stem": place.array((7, 7, 3, 16)), "blocks": blocks, "head": place.array((64, 10))}

    def gradient(params, x, y):
        return jax.value_and_grad(lambda p: cross_entropy(resnet(p, x), y))(params)

    return Work(gradient, [params, place.array((4, 64, 64, 3)), place.array((4,), "int32")])
