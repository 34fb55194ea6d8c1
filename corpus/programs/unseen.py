"""Programs of another hand, of kinds and libraries that no rule of the linter was tried on before it was judged by them.

They use what people use (flax, optax, equinox, diffrax, jraph, blackjax, mctx, distrax), imported where needed: only
who compiles them needs these. What the linter says of them is judged in tests/data/lint/judged.csv.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from corpus.programs.registry import Place, Work, program


def _like(place, tree, sharding=None):
    """Arguments of the shapes of a tree."""
    return jax.tree.map(
        lambda x: (
            place.array(x.shape, x.dtype, sharding(x) if callable(sharding) else sharding)
            if not jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
            else x
        ),
        tree,
    )


def _shapes(function, *arguments):
    return jax.eval_shape(function, *arguments)


def _key():
    return random.PRNGKey(0)


# ---- language


@program()
def unseen_flax_lm_train(place: Place) -> Work:
    """A decoder of flax with AdamW, as the examples of flax write it: nothing is donated."""
    import flax.linen as nn
    import optax

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=12, dtype=jnp.bfloat16)(y, y, mask=mask)
            y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
            return x + nn.Dense(768, dtype=jnp.bfloat16)(nn.gelu(nn.Dense(3072, dtype=jnp.bfloat16)(y)))

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            embed = nn.Embed(32000, 768)
            x = embed(tokens) + self.param("pos", nn.initializers.normal(0.02), (512, 768))
            mask = nn.make_causal_mask(tokens)
            for _ in range(6):
                x = Block()(x.astype(jnp.bfloat16), mask)
            return embed.attend(nn.LayerNorm()(x).astype(jnp.float32))

    model, tx = Model(), optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4))

    def step(params, state, tokens):
        def loss(p):
            logits = model.apply(p, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    tokens = place.array((16, 513), "int32")
    params = _shapes(lambda: model.init(_key(), jnp.zeros((1, 512), jnp.int32)))
    return Work(step, [_like(place, params), _like(place, _shapes(tx.init, params)), tokens])


@program()
def unseen_greedy_generate(place: Place) -> Work:
    """Greedy decoding until every row has ended, with a cache of keys and values."""
    layers, width, heads, vocabulary, longest, batch = 4, 1024, 16, 50304, 1024, 8

    def generate(params, cache, tokens, length):
        def layer(carry, inputs):
            x, at = carry
            p, keys, values = inputs
            q, k, v = jnp.split(x @ p["qkv"], 3, axis=-1)
            keys = lax.dynamic_update_slice(keys, k[:, None], (0, at, 0))
            values = lax.dynamic_update_slice(values, v[:, None], (0, at, 0))
            split = lambda y: y.reshape(*y.shape[:-1], heads, width // heads)  # noqa: E731
            scores = jnp.einsum("bhd,bthd->bht", split(q), split(keys)) * (width // heads) ** -0.5
            scores = jnp.where(jnp.arange(longest) <= at, scores, -jnp.inf)
            mixed = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores), split(values))
            x = x + mixed.reshape(batch, width) @ p["out"]
            x = x + jax.nn.silu(x @ p["gate"]) * (x @ p["up"]) @ p["down"]
            return (x, at), (keys, values)

        def body(state):
            tokens, at, done, (keys, values) = state
            x = params["embed"][lax.dynamic_index_in_dim(tokens, at, 1, keepdims=False)]
            (x, _), cache = lax.scan(layer, (x, at), (params["layers"], keys, values))
            new = jnp.argmax(x @ params["embed"].T, axis=-1).astype(jnp.int32)
            tokens = lax.dynamic_update_slice(tokens, new[:, None], (0, at + 1))
            return tokens, at + 1, done | (new == 2), cache

        state = tokens, length, jnp.zeros((batch,), bool), cache
        return lax.while_loop(lambda s: (s[1] < longest - 1) & ~s[2].all(), body, state)[0]

    dtype = "bfloat16"
    shapes = {
        "qkv": (width, 3 * width),
        "out": (width, width),
        "gate": (width, width),
        "up": (width, width),
        "down": (width, width),
    }
    params = {
        "embed": place.array((vocabulary, width), dtype),
        "layers": {k: place.array((layers, *s), dtype) for k, s in shapes.items()},
    }
    cache = [place.array((layers, batch, longest, width), dtype)] * 2
    return Work(
        generate,
        [params, tuple(cache), place.array((batch, longest), "int32"), place.array((), "int32")],
    )


@program()
def unseen_beam_search(place: Place) -> Work:
    """Beam search over a recurrent language model, a fixed number of steps."""
    beams, width, vocabulary, steps, batch = 4, 512, 8000, 64, 16

    def search(embed, w, u, out, start):
        def step(state, _):
            h, scores, last = state
            x = embed[last]
            h = jnp.tanh(x @ w + h @ u)
            logs = jax.nn.log_softmax(h @ out) + scores[..., None]
            best, index = lax.top_k(logs.reshape(batch, -1), beams)
            parent, token = index // vocabulary, index % vocabulary
            h = jnp.take_along_axis(h, parent[..., None], axis=1)
            return (h, best, token), (token, parent)

        h = jnp.broadcast_to(start[:, None], (batch, beams, width))
        scores = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9) * jnp.ones((batch, 1))
        state = h, scores, jnp.zeros((batch, beams), jnp.int32)
        (_, scores, _), path = lax.scan(step, state, None, length=steps)
        return scores, path

    shapes = [(vocabulary, width), (width, width), (width, width), (width, vocabulary), (batch, width)]
    return Work(search, [place.array(s) for s in shapes])


@program()
def unseen_encoder_decoder(place: Place) -> Work:
    """A step of an encoder and decoder with relative positions, layers unrolled, parameters donated."""
    import optax

    width, heads, length, vocabulary = 512, 8, 256, 32128
    tx = optax.adafactor(1e-3)

    def attend(p, x, y, bias):
        split = lambda z: z.reshape(*z.shape[:2], heads, -1)  # noqa: E731
        scores = jnp.einsum("bqhd,bkhd->bhqk", split(x @ p["q"]), split(y @ p["k"])) + bias
        return (
            jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), split(y @ p["v"])).reshape(x.shape) @ p["o"]
        )

    def norm(x):
        return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)

    def bias(table):
        distance = jnp.clip(jnp.arange(length)[None] - jnp.arange(length)[:, None], -16, 15) + 16
        return jnp.moveaxis(table[distance], -1, 0)

    def loss(params, source, target):
        x = params["embed"][source]
        for p in params["encoder"]:
            x = x + attend(p["self"], norm(x), norm(x), bias(p["table"]))
            x = x + jax.nn.relu(norm(x) @ p["up"]) @ p["down"]
        y = params["embed"][target[:, :-1]]
        causal = jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0.0, -1e9)
        for p in params["decoder"]:
            y = y + attend(p["self"], norm(y), norm(y), bias(p["table"]) + causal)
            y = y + attend(p["cross"], norm(y), x, 0.0)
            y = y + jax.nn.relu(norm(y) @ p["up"]) @ p["down"]
        logits = norm(y) @ params["embed"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, target[:, 1:]).mean()

    def step(params, state, source, target):
        value, grads = jax.value_and_grad(loss)(params, source, target)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    square = {k: place.array((width, width)) for k in "qkvo"}
    block = {
        "self": square,
        "table": place.array((32, heads)),
        "up": place.array((width, 4 * width)),
        "down": place.array((4 * width, width)),
    }
    params = {
        "embed": place.array((vocabulary, width)),
        "encoder": [block] * 3,
        "decoder": [{**block, "cross": square}] * 3,
    }
    tokens = [place.array((8, length), "int32"), place.array((8, length + 1), "int32")]
    return Work(step, [params, _like(place, _shapes(tx.init, params)), *tokens], {"donate_argnums": (0, 1)})


@program()
def unseen_lora(place: Place) -> Work:
    """Fine-tuning of small matrices beside frozen ones, gradients summed over small batches in a scan."""
    import optax

    width, layers, rank = 2048, 8, 16
    tx = optax.adamw(1e-4)

    def loss(adapters, frozen, x, y):
        def layer(x, p):
            (w, v), (a, b, c, d) = p
            h = jax.nn.gelu(x @ w + (x @ a) @ b)
            return x + h @ v + (h @ c) @ d, None

        x, _ = lax.scan(layer, x.astype(jnp.bfloat16), (frozen, adapters))
        return jnp.square(x.astype(jnp.float32) - y).mean()

    def step(adapters, state, frozen, xs, ys):
        def accumulate(total, batch):
            value, grads = jax.value_and_grad(loss)(adapters, frozen, *batch)
            return jax.tree.map(jnp.add, total, grads), value

        zeros = jax.tree.map(jnp.zeros_like, adapters)
        grads, values = lax.scan(accumulate, zeros, (xs, ys))
        updates, state = tx.update(grads, state, adapters)
        return optax.apply_updates(adapters, updates), state, values.mean()

    half = "bfloat16"
    frozen = [
        place.array((layers, width, 4 * width), half),
        place.array((layers, 4 * width, width), half),
    ]
    adapters = [
        place.array((layers, a, b), half)
        for a, b in ((width, rank), (rank, 4 * width), (4 * width, rank), (rank, width))
    ]
    data = [place.array((4, 2, 512, width)), place.array((4, 2, 512, width))]
    return Work(step, [adapters, _like(place, _shapes(tx.init, adapters)), frozen, *data])


@program(devices=8)
def unseen_fsdp_lm(place: Place) -> Work:
    """A scanned decoder whose parameters are spread over all devices and recomputed layer by layer."""
    import optax

    mesh = place.mesh(fsdp=8)
    width, layers, vocabulary, batch, length = 1024, 8, 32768, 16, 512
    tx = optax.adamw(1e-4)

    def block(x, p):
        h = x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)
        q, k, v = (h @ p[n] for n in ("q", "k", "v"))
        heads = lambda y: y.reshape(*y.shape[:2], 16, -1)  # noqa: E731
        x = (
            x
            + jax.nn.dot_product_attention(heads(q), heads(k), heads(v), is_causal=True).reshape(x.shape)
            @ p["o"]
        )
        h = x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)
        return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]

    def loss(params, tokens):
        half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        x = half["embed"][tokens[:, :-1]]
        x = lax.scan(jax.checkpoint(lambda x, p: (block(x, p), None)), x, half["layers"])[0]
        logits = (x @ half["embed"].T).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def step(params, state, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    shapes = dict.fromkeys("qkvo", (width, width)) | {
        "gate": (width, 4 * width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    spread = lambda shape, spec: place.sharded(mesh, shape, spec)  # noqa: E731
    params = {
        "embed": spread((vocabulary, width), P("fsdp")),
        "layers": {k: spread((layers, *s), P(None, "fsdp")) for k, s in shapes.items()},
    }
    state = jax.tree.map(
        lambda x: x if x.ndim == 0 else spread(x.shape, P("fsdp") if x.ndim == 2 else P(None, "fsdp")),
        _shapes(tx.init, params),
    )
    state = jax.tree.map(lambda x: spread(x.shape, P()) if x.ndim == 0 else x, state)
    scalar = NamedSharding(mesh, P())
    state = jax.tree.map(
        lambda x, y: place.array(y.shape, y.dtype, x.sharding if y.ndim else scalar),
        state,
        _shapes(tx.init, params),
    )
    tokens = place.sharded(mesh, (batch, length + 1), P("fsdp"), "int32")
    return Work(step, [params, state, tokens], {"donate_argnums": (0, 1)})


@program(devices=8, topologies={"tpu": ("v6e:2x4",)})
def unseen_expert_parallel(place: Place) -> Work:
    """Two experts of eight for each word, experts on a device each, words sent by all_to_all."""
    mesh = place.mesh(expert=8)
    words, width, hidden, experts, room = 8192, 1024, 4096, 8, 512

    def layer(x, router, up, down):
        gates, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
        one_hot = jax.nn.one_hot(chosen, experts, dtype=jnp.int32).reshape(-1, experts)
        place_in = (jnp.cumsum(one_hot, axis=0) - 1) * one_hot
        slot = place_in.sum(-1).reshape(-1, 2)
        keep = slot < room
        sent = jnp.zeros((experts, room, width), x.dtype)
        for k in range(2):
            sent = sent.at[chosen[:, k], jnp.where(keep[:, k], slot[:, k], room - 1)].add(
                jnp.where(keep[:, k, None], x, 0)
            )
        got = lax.all_to_all(sent, "expert", 0, 0)
        done = jax.nn.gelu(jnp.einsum("erd,dh->erh", got, up[0])) @ down[0]
        back = lax.all_to_all(done, "expert", 0, 0)
        y = sum(
            jnp.where(keep[:, k, None], back[chosen[:, k], slot[:, k]], 0) * gates[:, k, None]
            for k in range(2)
        )
        return x + y

    apply = jax.shard_map(
        layer,
        mesh=mesh,
        in_specs=(P("expert"), P(), P("expert"), P("expert")),
        out_specs=P("expert"),
    )
    spread = lambda shape, spec: place.sharded(mesh, shape, spec, "bfloat16")  # noqa: E731
    return Work(
        apply,
        [
            spread((words, width), P("expert")),
            spread((width, experts), P()),
            spread((experts, width, hidden), P("expert")),
            spread((experts, hidden, width), P("expert")),
        ],
    )


@program(devices=8)
def unseen_ring_attention(place: Place) -> Work:
    """Attention over a sequence that is spread over devices: keys and values go round in a ring."""
    mesh = place.mesh(sequence=8)

    def attend(q, k, v):
        def round_(carry, _):
            k, v, top, total, out = carry
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) / np.sqrt(q.shape[-1])
            new = jnp.maximum(top, scores.max(-1))
            weights = jnp.exp(scores - new[..., None])
            scale = jnp.exp(top - new)
            total = total * scale + weights.sum(-1)
            out = out * scale[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights.astype(q.dtype), v)
            steps = [(i, (i + 1) % 8) for i in range(8)]
            k, v = (lax.ppermute(x, "sequence", steps) for x in (k, v))
            return (k, v, new, total, out), None

        batch, length, heads, size = q.shape
        top = jnp.full((batch, heads, length), -1e30, jnp.float32)
        total = jnp.zeros((batch, heads, length), jnp.float32)
        out = jnp.zeros((batch, heads, length, size), jnp.float32)
        top, total, out = (lax.pcast(x, ("sequence",), to="varying") for x in (top, total, out))
        (_, _, _, total, out), _ = lax.scan(round_, (k, v, top, total, out), None, length=8)
        return (out / total[..., None]).astype(q.dtype)

    spec = P(None, "sequence")
    apply = jax.shard_map(attend, mesh=mesh, in_specs=(spec,) * 3, out_specs=P(None, None, "sequence"))
    one = place.sharded(mesh, (2, 16384, 16, 128), spec, "bfloat16")
    return Work(apply, [one] * 3)


# ---- pictures and sound


@program()
def unseen_resnet_train(place: Place) -> Work:
    """A small residual network of flax with batch norm and momentum."""
    import flax.linen as nn
    import optax

    class Block(nn.Module):
        features: int
        stride: int = 1

        @nn.compact
        def __call__(self, x):
            norm = lambda: nn.BatchNorm(use_running_average=False, dtype=jnp.bfloat16)  # noqa: E731
            conv = lambda *a: nn.Conv(*a, use_bias=False, dtype=jnp.bfloat16)  # noqa: E731
            y = nn.relu(
                norm()(nn.Conv(self.features, (3, 3), self.stride, use_bias=False, dtype=jnp.bfloat16)(x))
            )
            y = norm()(conv(self.features, (3, 3))(y))
            if x.shape != y.shape:
                x = nn.Conv(self.features, (1, 1), self.stride, use_bias=False, dtype=jnp.bfloat16)(x)
            return nn.relu(x + y)

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(64, (7, 7), 2, use_bias=False, dtype=jnp.bfloat16)(x)
            x = nn.max_pool(nn.relu(x), (3, 3), (2, 2), "SAME")
            for n, features in enumerate((64, 128, 256, 512)):
                x = Block(features, 1 if n == 0 else 2)(x)
                x = Block(features)(x)
            return nn.Dense(1000)(x.mean((1, 2)))

    net, tx = Net(), optax.sgd(0.1, momentum=0.9, nesterov=True)

    def step(variables, state, images, labels):
        def loss(params):
            logits, new = net.apply(
                {"params": params, "batch_stats": variables["batch_stats"]}, images, mutable=["batch_stats"]
            )
            logits = logits.astype(jnp.float32)
            return optax.softmax_cross_entropy(logits, jax.nn.one_hot(labels, 1000)).mean(), new

        (value, new), grads = jax.value_and_grad(loss, has_aux=True)(variables["params"])
        updates, state = tx.update(grads, state, variables["params"])
        return {"params": optax.apply_updates(variables["params"], updates), **new}, state, value

    variables = _shapes(lambda: net.init(_key(), jnp.zeros((1, 224, 224, 3))))
    state = _shapes(tx.init, variables["params"])
    data = [place.array((64, 224, 224, 3)), place.array((64,), "int32")]
    return Work(step, [_like(place, variables), _like(place, state), *data])


@program()
def unseen_vae(place: Place) -> Work:
    """A variational autoencoder with transposed convolutions, of equinox."""
    import equinox as eqx
    import optax

    class Model(eqx.Module):
        encoder: list
        decoder: list

        def __init__(self, key):
            keys = random.split(key, 6)
            self.encoder = [
                eqx.nn.Conv2d(3, 32, 4, 2, 1, key=keys[0]),
                eqx.nn.Conv2d(32, 64, 4, 2, 1, key=keys[1]),
                eqx.nn.Linear(64 * 16 * 16, 256, key=keys[2]),
            ]
            self.decoder = [
                eqx.nn.Linear(128, 64 * 16 * 16, key=keys[3]),
                eqx.nn.ConvTranspose2d(64, 32, 4, 2, padding=1, key=keys[4]),
                eqx.nn.ConvTranspose2d(32, 3, 4, 2, padding=1, key=keys[5]),
            ]

        def __call__(self, x, key):
            for conv in self.encoder[:2]:
                x = jax.nn.relu(conv(x))
            mean, log = jnp.split(self.encoder[2](x.reshape(-1)), 2)
            z = mean + jnp.exp(log / 2) * random.normal(key, mean.shape)
            y = jax.nn.relu(self.decoder[0](z)).reshape(64, 16, 16)
            y = self.decoder[2](jax.nn.relu(self.decoder[1](y)))
            return y, -0.5 * jnp.sum(1 + log - mean**2 - jnp.exp(log))

    tx = optax.adam(1e-3)
    model = Model(_key())
    arrays, static = eqx.partition(model, eqx.is_array)

    def step(arrays, state, images, key):
        def loss(arrays):
            keys = random.split(key, images.shape[0])
            y, kl = jax.vmap(eqx.combine(arrays, static))(images, keys)
            return (jnp.square(y - images).sum((1, 2, 3)) + kl).mean()

        value, grads = jax.value_and_grad(loss)(arrays)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(arrays, updates), state, value

    state = _like(place, _shapes(tx.init, arrays))
    return Work(
        step,
        [_like(place, arrays), state, place.array((256, 3, 64, 64)), place.array((2,), "uint32")],
    )


def _unet(nn, width, dtype):
    class Res(nn.Module):
        features: int

        @nn.compact
        def __call__(self, x, t):
            h = nn.Conv(self.features, (3, 3), dtype=dtype)(nn.silu(nn.GroupNorm(8, dtype=dtype)(x)))
            h = h + nn.Dense(self.features, dtype=dtype)(nn.silu(t))[:, None, None]
            h = nn.Conv(self.features, (3, 3), dtype=dtype)(nn.silu(nn.GroupNorm(8, dtype=dtype)(h)))
            return h + nn.Conv(self.features, (1, 1), dtype=dtype)(x)

    class UNet(nn.Module):
        @nn.compact
        def __call__(self, x, t):
            angles = t[:, None] * jnp.exp(-jnp.linspace(0, 9.2, 64))
            t = nn.Dense(256, dtype=dtype)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))
            skips = []
            x = nn.Conv(width, (3, 3), dtype=dtype)(x)
            for scale in (1, 2, 4):
                x = Res(width * scale)(x, t)
                skips.append(x)
                x = nn.avg_pool(x, (2, 2), (2, 2))
            x = Res(width * 4)(x, t)
            flat = x.reshape(x.shape[0], -1, x.shape[-1])
            x = x + nn.SelfAttention(4, dtype=dtype)(flat).reshape(x.shape)
            for scale in (4, 2, 1):
                b, h, w, c = x.shape
                x = jax.image.resize(x, (b, 2 * h, 2 * w, c), "nearest")
                x = Res(width * scale)(jnp.concatenate([x, skips.pop()], -1), t)
            return nn.Conv(3, (3, 3), dtype=jnp.float32)(x)

    return UNet()


@program()
def unseen_diffusion_train(place: Place) -> Work:
    """A step of a diffusion model with a moving average of the parameters; all state is donated."""
    import flax.linen as nn
    import optax

    net, tx = _unet(nn, 64, jnp.bfloat16), optax.adam(2e-4)

    def step(params, average, state, images, key):
        a, b = random.split(key)
        t = random.uniform(a, (images.shape[0],))
        noise = random.normal(b, images.shape)
        signal = jnp.cos(t * np.pi / 2)[:, None, None, None]
        noisy = signal * images + jnp.sqrt(1 - signal**2) * noise
        loss = lambda p: jnp.square(net.apply(p, noisy, t) - noise).mean()  # noqa: E731
        value, grads = jax.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state)
        params = optax.apply_updates(params, updates)
        average = optax.incremental_update(params, average, 0.001)
        return params, average, state, value

    params = _shapes(lambda: net.init(_key(), jnp.zeros((1, 64, 64, 3)), jnp.zeros((1,))))
    like = _like(place, params)
    state = _like(place, _shapes(tx.init, params))
    data = [place.array((32, 64, 64, 3)), place.array((2,), "uint32")]
    return Work(step, [like, like, state, *data], {"donate_argnums": (0, 1, 2)})


@program()
def unseen_diffusion_sample(place: Place) -> Work:
    """Fifty steps of a sampler with guidance, in a loop."""
    import flax.linen as nn

    net = _unet(nn, 64, jnp.float32)

    def sample(params, noise):
        def step(i, x):
            t = jnp.full((x.shape[0],), 1.0) - i / 50
            both = net.apply(params, jnp.concatenate([x, x]), jnp.concatenate([t, t]))
            with_, without = jnp.split(both, 2)
            eps = without + 3.0 * (with_ - without)
            signal, later = jnp.cos(t * np.pi / 2), jnp.cos((t - 0.02) * np.pi / 2)
            signal, later = signal[:, None, None, None], later[:, None, None, None]
            clean = (x - jnp.sqrt(1 - signal**2) * eps) / jnp.maximum(signal, 1e-3)
            return later * clean + jnp.sqrt(1 - later**2) * eps

        return lax.fori_loop(0, 50, step, noise)

    params = _shapes(lambda: net.init(_key(), jnp.zeros((1, 64, 64, 3)), jnp.zeros((1,))))
    return Work(sample, [_like(place, params), place.array((16, 64, 64, 3))])


@program()
def unseen_conformer(place: Place) -> Work:
    """Speech: convolution and attention blocks, CTC loss."""
    import flax.linen as nn
    import optax

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + 0.5 * nn.Dense(256)(nn.silu(nn.Dense(1024)(nn.LayerNorm()(x))))
            x = x + nn.SelfAttention(4)(nn.LayerNorm()(x))
            y = nn.glu(nn.Dense(512)(nn.LayerNorm()(x)))
            y = nn.Conv(256, (31,), feature_group_count=256)(y)
            x = x + nn.Dense(256)(nn.silu(nn.LayerNorm()(y)))
            return nn.LayerNorm()(x + 0.5 * nn.Dense(256)(nn.silu(nn.Dense(1024)(nn.LayerNorm()(x)))))

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Conv(32, (3, 3), (2, 2))(x[..., None]))
            x = nn.relu(nn.Conv(32, (3, 3), (2, 2))(x))
            x = nn.Dense(256)(x.reshape(*x.shape[:2], -1))
            for _ in range(3):
                x = Block()(x)
            return nn.Dense(128)(x)

    net = Net()

    def gradients(params, sound, lengths, labels, label_padding):
        def loss(p):
            logits = net.apply(p, sound)
            padding = (jnp.arange(logits.shape[1]) >= lengths[:, None]).astype(jnp.float32)
            return optax.ctc_loss(logits, padding, labels, label_padding).mean()

        return jax.value_and_grad(loss)(params)

    params = _shapes(lambda: net.init(_key(), jnp.zeros((1, 800, 80))))
    arrays = [
        place.array((16, 800, 80)),
        place.array((16,), "int32"),
        place.array((16, 60), "int32"),
        place.array((16, 60)),
    ]
    return Work(gradients, [_like(place, params), *arrays])


@program(devices=8)
def unseen_contrastive(place: Place) -> Work:
    """Two towers, every picture compared with every text of all devices; parameters on every device."""
    mesh = place.mesh(data=8)
    width = 1024

    def tower(p, x):
        for w in p:
            x = jax.nn.gelu(x @ w)
        return x / jnp.linalg.norm(x, axis=-1, keepdims=True)

    def step(params, pictures, texts):
        def loss(params):
            a, b = tower(params[0], pictures), tower(params[1], texts)
            every_a, every_b = lax.all_gather(a, "data", tiled=True), lax.all_gather(b, "data", tiled=True)
            mine = lax.axis_index("data") * a.shape[0] + jnp.arange(a.shape[0])
            one = jax.nn.log_softmax(a @ every_b.T * 20)
            other = jax.nn.log_softmax(b @ every_a.T * 20)
            rows = jnp.arange(a.shape[0])
            return -(one[rows, mine] + other[rows, mine]).mean()

        value, grads = jax.value_and_grad(loss)(params)
        grads = jax.tree.map(lambda g: lax.pmean(g, "data"), grads)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), lax.pmean(value, "data")

    apply = jax.shard_map(
        step, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=(P(), P()), check_vma=False
    )
    weights = [[place.sharded(mesh, (width, width), P())] * 4] * 2
    data = place.sharded(mesh, (4096, width), P("data"))
    return Work(apply, [weights, data, data])


@program()
def unseen_augment(place: Place) -> Work:
    """Random crops, flips and colours of a batch of pictures."""

    def one(key, image):
        a, b, c, d = random.split(key, 4)
        y, x = random.randint(a, (2,), 0, 32)
        image = lax.dynamic_slice(image, (y, x, 0), (224, 224, 3)).astype(jnp.float32) / 255
        image = jnp.where(random.bernoulli(b), image[:, ::-1], image)
        image = image * random.uniform(c, (3,), minval=0.8, maxval=1.2)
        gray = image.mean(-1, keepdims=True)
        return gray + (image - gray) * random.uniform(d, (), minval=0.5, maxval=1.5)

    def batch(key, images):
        return jax.vmap(one)(random.split(key, images.shape[0]), images)

    return Work(batch, [place.array((2,), "uint32"), place.array((128, 256, 256, 3), "uint8")])


@program()
def unseen_detection(place: Place) -> Work:
    """The boxes of a detector: the best thousand, then those that do not overlap."""

    def overlap(a, b):
        low, high = jnp.maximum(a[:2], b[:2]), jnp.minimum(a[2:], b[2:])
        inner = jnp.prod(jnp.maximum(high - low, 0))
        area = lambda c: jnp.prod(c[2:] - c[:2])  # noqa: E731
        return inner / (area(a) + area(b) - inner + 1e-6)

    def suppress(boxes, scores):
        best, index = lax.top_k(scores, 1000)
        boxes = boxes[index]
        table = jax.vmap(lambda a: jax.vmap(lambda b: overlap(a, b))(boxes))(boxes)

        def body(i, keep):
            return keep & ~((table[i] > 0.5) & keep[i] & (jnp.arange(1000) > i))

        keep = lax.fori_loop(0, 1000, body, jnp.ones((1000,), bool))
        return boxes, jnp.where(keep, best, 0)

    return Work(jax.vmap(suppress), [place.array((8, 20000, 4)), place.array((8, 20000))])


@program()
def unseen_radiance(place: Place) -> Work:
    """A radiance field: rays in blocks, an MLP at every sample, colours summed along the ray."""

    def encode(x):
        scaled = (x[..., None, :] * 2.0 ** jnp.arange(10)[:, None]).reshape(*x.shape[:-1], -1)
        return jnp.concatenate([x, jnp.sin(scaled), jnp.cos(scaled)], -1)

    def render(weights, origins, directions, key):
        def rays(args):
            o, d, k = args
            t = jnp.sort(random.uniform(k, (o.shape[0], 64)) * 4 + 2, axis=-1)
            points = o[:, None] + t[..., None] * d[:, None]
            x = encode(points)
            for w in weights[:-1]:
                x = jax.nn.relu(x @ w)
            out = x @ weights[-1]
            density, colour = jax.nn.softplus(out[..., 0]), jax.nn.sigmoid(out[..., 1:])
            alpha = 1 - jnp.exp(-density * jnp.diff(t, append=10.0))
            through = jnp.cumprod(1 - alpha + 1e-10, -1)
            return ((alpha * through)[..., None] * colour).sum(1)

        blocks = origins.shape[0] // 4096
        split = lambda x: x.reshape(blocks, 4096, -1)  # noqa: E731
        return lax.map(rays, (split(origins), split(directions), random.split(key, blocks)))

    weights = [place.array(s) for s in ((63, 256), (256, 256), (256, 256), (256, 4))]
    rays = [place.array((65536, 3))] * 2
    return Work(render, [weights, *rays, place.array((2,), "uint32")])


# ---- sequences without attention


@program()
def unseen_selective_state_space(place: Place) -> Work:
    """A step of a selective state space model: an associative scan along the sequence."""
    import optax

    batch, length, width, state_size = 4, 2048, 512, 16
    tx = optax.adamw(1e-3)

    def layer(p, x):
        u, z = jnp.split(x @ p["in"], 2, -1)
        u = jax.nn.silu(u)
        delta = jax.nn.softplus(u @ p["delta"])
        b, c = jnp.split(u @ p["bc"], 2, -1)
        decay = jnp.exp(-delta[..., None] * jnp.exp(p["a"]))
        drive = (delta * u)[..., None] * b[:, :, None, :]
        _, h = lax.associative_scan(
            lambda one, two: (one[0] * two[0], two[0] * one[1] + two[1]), (decay, drive), axis=1
        )
        y = jnp.einsum("blds,bls->bld", h, c) + u * p["d"]
        return x + (y * jax.nn.silu(z)) @ p["out"]

    def step(params, state, x, y):
        def loss(params):
            h = x
            for p in params:
                h = layer(p, h)
            return jnp.square(h - y).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    one = {
        "in": (width, 2 * width),
        "delta": (width, width),
        "bc": (width, 2 * state_size),
        "a": (width, state_size),
        "d": (width,),
        "out": (width, width),
    }
    params = [{k: place.array(s) for k, s in one.items()} for _ in range(2)]
    data = place.array((batch, length, width))
    return Work(step, [params, _like(place, _shapes(tx.init, params)), data, data])


@program()
def unseen_seq2seq(place: Place) -> Work:
    """Recurrent cells of flax, a sequence to a sequence, gradients only."""
    import flax.linen as nn
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, source, target):
            embed = nn.Embed(10000, 512)
            carry, _ = nn.RNN(nn.OptimizedLSTMCell(512), return_carry=True)(embed(source))
            x = nn.RNN(nn.OptimizedLSTMCell(512))(embed(target), initial_carry=carry)
            return nn.Dense(10000)(x)

    net = Net()

    def gradients(params, source, target):
        def loss(p):
            logits = net.apply(p, source, target[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, target[:, 1:]).mean()

        return jax.value_and_grad(loss)(params)

    tokens = [place.array((64, 100), "int32"), place.array((64, 101), "int32")]
    params = _shapes(lambda: net.init(_key(), jnp.zeros((1, 100), jnp.int32), jnp.zeros((1, 100), jnp.int32)))
    return Work(gradients, [_like(place, params), *tokens])


@program()
def unseen_hidden_markov(place: Place) -> Work:
    """Forward and backward probabilities of a hidden Markov model for many sequences."""

    def smooth(initial, transition, emission, seen):
        logs = jnp.log(emission).T[seen]

        def forward(alpha, x):
            alpha = jax.nn.logsumexp(alpha[:, None] + jnp.log(transition), axis=0) + x
            return alpha, alpha

        def backward(beta, x):
            beta = jax.nn.logsumexp(jnp.log(transition) + (x + beta)[None], axis=1)
            return beta, beta

        first = jnp.log(initial) + logs[0]
        _, alphas = lax.scan(forward, first, logs[1:])
        _, betas = lax.scan(backward, jnp.zeros_like(first), logs[1:], reverse=True)
        return jax.nn.softmax(alphas + betas)

    states, symbols = 64, 256
    arrays = [
        place.array((states,)),
        place.array((states, states)),
        place.array((states, symbols)),
        place.array((32, 4096), "int32"),
    ]
    return Work(jax.vmap(smooth, in_axes=(None, None, None, 0)), arrays)


# ---- graphs, games, recommendations


@program()
def unseen_graph_attention(place: Place) -> Work:
    """A graph network of jraph: messages along edges, summed at nodes; a training step."""
    import jraph
    import optax

    nodes, edges, width = 100000, 1000000, 64
    tx = optax.adam(1e-2)

    def step(params, state, x, senders, receivers, labels):
        def loss(params):
            h = x
            for w, a in params:
                h = h @ w
                scores = jax.nn.leaky_relu((h @ a[:, 0])[senders] + (h @ a[:, 1])[receivers])
                weights = jraph.segment_softmax(scores, receivers, nodes)
                h = jax.nn.elu(jraph.segment_sum(weights[:, None] * h[senders], receivers, nodes))
            return optax.softmax_cross_entropy_with_integer_labels(h, labels).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    params = [(place.array((width, width)), place.array((width, 2)))] * 2
    arrays = [
        place.array((nodes, width)),
        place.array((edges,), "int32"),
        place.array((edges,), "int32"),
        place.array((nodes,), "int32"),
    ]
    return Work(step, [params, _like(place, _shapes(tx.init, params)), *arrays])


@program()
def unseen_policy_update(place: Place) -> Work:
    """Proximal policy optimization: epochs of shuffled small batches, in two loops."""
    import distrax
    import optax

    tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4))

    def network(p, x):
        for w, b in p[:-1]:
            x = jnp.tanh(x @ w + b)
        w, b = p[-1]
        out = x @ w + b
        return distrax.Categorical(logits=out[..., :-1]), out[..., -1]

    def update(params, state, data, key):
        def small(carry, batch):
            params, state = carry
            observed, actions, old, advantages, returns = batch

            def loss(p):
                policy, value = network(p, observed)
                ratio = jnp.exp(policy.log_prob(actions) - old)
                clipped = jnp.clip(ratio, 0.8, 1.2)
                gain = jnp.minimum(ratio * advantages, clipped * advantages).mean()
                return -gain + 0.5 * jnp.square(value - returns).mean() - 0.01 * policy.entropy().mean()

            value, grads = jax.value_and_grad(loss)(params)
            updates, state = tx.update(grads, state)
            return (optax.apply_updates(params, updates), state), value

        def epoch(carry, key):
            order = random.permutation(key, 2048)
            batches = jax.tree.map(lambda x: x[order].reshape(32, 64, *x.shape[1:]), data)
            return lax.scan(small, carry, batches)

        return lax.scan(epoch, (params, state), random.split(key, 10))

    sizes = [64, 256, 256, 19]
    params = [(place.array((a, b)), place.array((b,))) for a, b in itertools.pairwise(sizes)]
    data = (
        place.array((2048, 64)),
        place.array((2048,), "int32"),
        *[place.array((2048,))] * 3,
    )
    return Work(update, [params, _like(place, _shapes(tx.init, params)), data, place.array((2,), "uint32")])


@program()
def unseen_replay(place: Place) -> Work:
    """Learning from a large buffer on the device: a row is written, a batch is drawn, a step is made."""

    def learn(params, target, buffer, at, row, key):
        buffer = jax.tree.map(
            lambda b, r: lax.dynamic_update_index_in_dim(b, r, at % b.shape[0], 0), buffer, row
        )
        index = random.randint(key, (256,), 0, 100000)
        batch = jax.tree.map(lambda b: b[index], buffer)

        def value(p, x):
            return jax.nn.relu(jax.nn.relu(x @ p[0]) @ p[1]) @ p[2]

        def loss(p):
            best = value(target, batch["next"]).max(-1)
            goal = batch["reward"] + 0.99 * (1 - batch["done"]) * best
            q = jnp.take_along_axis(value(p, batch["seen"]), batch["action"][:, None], 1)[:, 0]
            return optax_huber(q - goal).mean()

        def optax_huber(x):
            return jnp.where(jnp.abs(x) < 1, 0.5 * x * x, jnp.abs(x) - 0.5)

        grads = jax.grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads)
        target = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, target, params)
        return params, target, buffer, at + 1

    size = 100000
    net = [place.array(s) for s in ((128, 512), (512, 512), (512, 18))]

    def rows(*front):
        return {
            "seen": place.array((*front, 128)),
            "next": place.array((*front, 128)),
            "action": place.array(front, "int32"),
            "reward": place.array(front),
            "done": place.array(front),
        }

    return Work(
        learn,
        [net, net, rows(size), place.array((), "int32"), rows(), place.array((2,), "uint32")],
    )


@program(platforms=("cpu", "gpu"))
def unseen_tree_search(place: Place) -> Work:
    """A search of mctx with a learned model."""
    import mctx

    batch, actions, width = 32, 16, 128

    def search(params, observed, key):
        def model(params, key, action, state):
            w, out = params
            state = jnp.tanh(jnp.concatenate([state, jax.nn.one_hot(action, actions)], -1) @ w)
            logits = state @ out
            return (
                mctx.RecurrentFnOutput(
                    reward=logits[:, 0],
                    discount=jnp.full((batch,), 0.99),
                    prior_logits=logits[:, 1 : actions + 1],
                    value=logits[:, -1],
                ),
                state,
            )

        logits = observed @ params[1]
        root = mctx.RootFnOutput(
            prior_logits=logits[:, 1 : actions + 1], value=logits[:, -1], embedding=observed
        )
        return mctx.gumbel_muzero_policy(params, key, root, model, num_simulations=32).action_weights

    params = (place.array((width + actions, width)), place.array((width, actions + 2)))
    return Work(search, [params, place.array((batch, width)), place.array((2,), "uint32")])


@program(devices=8)
def unseen_recommend(place: Place) -> Work:
    """Click prediction: embedding tables spread by rows, dense layers on every device."""
    mesh = place.mesh(data=2, model=4)

    def step(tables, dense, features, ids, clicks):
        def loss(tables, dense):
            x = jax.nn.relu(features @ dense[0])
            found = [t[ids[:, n]] for n, t in enumerate(tables)]
            every = jnp.stack([x, *found], 1)
            pairs = jnp.einsum("bnd,bmd->bnm", every, every)
            rows, columns = np.tril_indices(len(found) + 1, -1)
            h = jnp.concatenate([x, pairs[:, rows, columns]], -1)
            h = jax.nn.relu(h @ dense[1])
            logits = (h @ dense[2])[:, 0]
            return jnp.mean(jnp.logaddexp(0, logits) - clicks * logits)

        value, (gt, gd) = jax.value_and_grad(loss, (0, 1))(tables, dense)
        tables = jax.tree.map(lambda t, g: t - 0.01 * g, tables, gt)
        dense = jax.tree.map(lambda t, g: t - 0.01 * g, dense, gd)
        return tables, dense, value

    spread = lambda shape, spec, dtype="float32": place.sharded(mesh, shape, spec, dtype)  # noqa: E731
    tables = [spread((1 << 18, 64), P("model"))] * 8
    dense = [spread(s, P()) for s in ((13, 64), (64 + 36, 512), (512, 1))]
    data = [
        spread((8192, 13), P("data")),
        spread((8192, 8), P("data"), "int32"),
        spread((8192,), P("data")),
    ]
    return Work(step, [tables, dense, *data], {"donate_argnums": (0, 1)})


# ---- science


@program()
def unseen_fourier_operator(place: Place) -> Work:
    """A Fourier neural operator: a step with transforms in two dimensions."""

    def apply(params, x):
        x = x @ params["lift"]
        for real, imag, skip in params["layers"]:
            modes = jnp.fft.rfft2(x, axes=(1, 2))
            low = jnp.einsum("bxyi,xyio->bxyo", modes[:, :16, :16], real + 1j * imag)
            full = jnp.zeros_like(modes).at[:, :16, :16].set(low)
            x = jax.nn.gelu(jnp.fft.irfft2(full, s=x.shape[1:3], axes=(1, 2)) + x @ skip)
        return x @ params["drop"]

    def step(params, x, y):
        value, grads = jax.value_and_grad(lambda p: jnp.square(apply(p, x) - y).mean())(params)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), value

    width = 32
    layer = (
        place.array((16, 16, width, width)),
        place.array((16, 16, width, width)),
        place.array((width, width)),
    )
    params = {
        "lift": place.array((3, width)),
        "layers": [layer] * 4,
        "drop": place.array((width, 1)),
    }
    return Work(step, [params, place.array((16, 128, 128, 3)), place.array((16, 128, 128, 1))])


@program()
def unseen_neural_ode(place: Place) -> Work:
    """A differential equation of diffrax with adaptive steps, and its gradient."""
    import diffrax

    def loss(weights, start, times, goal):
        def field(t, y, args):
            for w in weights[:-1]:
                y = jnp.tanh(y @ w)
            return y @ weights[-1]

        found = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=0.01,
            y0=start,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
            max_steps=256,
        )
        return jnp.square(found.ys - goal).mean()

    weights = [place.array(s) for s in ((32, 128), (128, 128), (128, 32))]
    return Work(
        jax.value_and_grad(loss),
        [weights, place.array((64, 32)), place.array((20,)), place.array((20, 64, 32))],
    )


@program()
def unseen_hamiltonian_sampling(place: Place) -> Work:
    """A chain of blackjax's NUTS for a logistic regression."""
    import blackjax

    def chain(data, labels, start, key):
        def log_density(w):
            logits = data @ w
            return -jnp.logaddexp(0, -labels * logits).sum() - 0.5 * jnp.square(w).sum()

        nuts = blackjax.nuts(log_density, step_size=0.05, inverse_mass_matrix=jnp.ones(start.shape))

        def step(state, key):
            state, info = nuts.step(key, state)
            return state, (state.position, info.acceptance_rate)

        return lax.scan(step, nuts.init(start), random.split(key, 1000))[1]

    arrays = [place.array((10000, 50)), place.array((10000,)), place.array((50,))]
    return Work(chain, [*arrays, place.array((2,), "uint32")])


@program()
def unseen_waves(place: Place) -> Work:
    """A wave equation in three dimensions, a thousand steps by neighbours' differences."""

    def simulate(u, speed):
        def step(_, state):
            now, before = state
            around = sum(jnp.roll(now, s, a) for a in range(3) for s in (1, -1)) - 6 * now
            return 2 * now - before + 0.1 * speed * around, now

        return lax.fori_loop(0, 1000, step, (u, u))[0]

    return Work(simulate, [place.array((128, 128, 128)), place.array((128, 128, 128))])


@program()
def unseen_bodies(place: Place) -> Work:
    """Bodies that attract each other, in double precision, positions of every tenth step kept."""

    def simulate(x, v, mass):
        def force(x):
            apart = x[None] - x[:, None]
            distance = jnp.square(apart).sum(-1) + 1e-4
            return (apart * (mass[None, :, None] * distance[..., None] ** -1.5)).sum(1)

        def leap(_, state):
            x, v = state
            v = v + 0.005 * force(x)
            x = x + 0.01 * v
            return x, v + 0.005 * force(x)

        def ten(state, _):
            state = lax.fori_loop(0, 10, leap, state)
            return state, state[0]

        return lax.scan(ten, (x, v), None, length=100)

    return Work(simulate, [place.array((2048, 3)), place.array((2048, 3)), place.array((2048,))])


@program()
def unseen_clusters(place: Place) -> Work:
    """Lloyd's iterations until the centres stay."""

    def cluster(points, centres):
        def body(state):
            old, _, n = state
            distance = jnp.square(points).sum(1)[:, None] - 2 * points @ old.T + jnp.square(old).sum(1)[None]
            label = jnp.argmin(distance, 1)
            total = jax.ops.segment_sum(points, label, old.shape[0])
            count = jax.ops.segment_sum(jnp.ones_like(label, jnp.float32), label, old.shape[0])
            new = total / jnp.maximum(count, 1)[:, None]
            return new, jnp.abs(new - old).max(), n + 1

        return lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 300), body, (centres, jnp.inf, 0))[0]

    return Work(cluster, [place.array((500000, 64)), place.array((256, 64))])


@program()
def unseen_gaussian_fit(place: Place) -> Work:
    """Fits a Gaussian process by two hundred steps of Adam."""
    import optax

    tx = optax.adam(0.05)

    def fit(x, y, start):
        def loss(p):
            apart = jnp.square((x[:, None] - x[None]) / jnp.exp(p["length"])).sum(-1)
            k = jnp.exp(p["scale"] - 0.5 * apart) + jnp.exp(p["noise"]) * jnp.eye(x.shape[0])
            factor = jnp.linalg.cholesky(k)
            solved = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
            return 0.5 * solved @ solved + jnp.log(jnp.diag(factor)).sum()

        def step(carry, _):
            p, state = carry
            value, grads = jax.value_and_grad(loss)(p)
            updates, state = tx.update(grads, state)
            return (optax.apply_updates(p, updates), state), value

        return lax.scan(step, (start, tx.init(start)), None, length=200)

    start = {"length": place.array((8,)), "scale": place.array(()), "noise": place.array(())}
    return Work(fit, [place.array((1000, 8)), place.array((1000,)), start])


@program()
def unseen_transport(place: Place) -> Work:
    """Optimal transport by Sinkhorn's iterations on a cost matrix made in advance."""

    def solve(x, y, a, b):
        cost = jnp.square(x[:, None] - y[None]).sum(-1)

        def body(state):
            f, g, _, n = state
            f = -0.05 * jax.nn.logsumexp((g[None] - cost) / 0.05 + jnp.log(b)[None], axis=1)
            new = -0.05 * jax.nn.logsumexp((f[:, None] - cost) / 0.05 + jnp.log(a)[:, None], axis=0)
            return f, new, jnp.abs(new - g).max(), n + 1

        state = jnp.zeros_like(a), jnp.zeros_like(b), jnp.inf, 0
        f, g, _, _ = lax.while_loop(lambda s: (s[2] > 1e-3) & (s[3] < 500), body, state)
        return jnp.exp((f[:, None] + g[None] - cost) / 0.05) * a[:, None] * b[None]

    arrays = [place.array((4096, 16)), place.array((4096, 16)), place.array((4096,)), place.array((4096,))]
    return Work(solve, arrays)


@program()
def unseen_spins(place: Place) -> Work:
    """Spins on a lattice, a checkerboard at a time."""

    def simulate(spins, key):
        board = (jnp.indices(spins.shape).sum(0) % 2).astype(bool)

        def half(spins, key, mask):
            around = sum(jnp.roll(spins, s, a) for a in range(2) for s in (1, -1))
            chance = jnp.exp(-2 * 0.44 * spins * around)
            flip = (random.uniform(key, spins.shape) < chance) & mask
            return jnp.where(flip, -spins, spins)

        def step(spins, key):
            a, b = random.split(key)
            spins = half(half(spins, a, board), b, ~board)
            return spins, spins.mean()

        return lax.scan(step, spins, random.split(key, 2000))

    return Work(simulate, [place.array((1024, 1024)), place.array((2,), "uint32")])


@program()
def unseen_folding(place: Place) -> Work:
    """A block of pair updates as in protein folding: triangle products and attention over rows."""

    def block(p, z):
        def norm(x):
            x = x - x.mean(-1, keepdims=True)
            return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5)

        h = norm(z)
        a, b = jax.nn.sigmoid(h @ p["ga"]) * (h @ p["a"]), jax.nn.sigmoid(h @ p["gb"]) * (h @ p["b"])
        z = z + norm(jnp.einsum("ikc,jkc->ijc", a, b)) @ p["t"]
        h = norm(z)
        q, k, v = (jnp.reshape(h @ p[n], (*h.shape[:2], 4, 32)) for n in "qkv")
        bias = jnp.moveaxis(h @ p["bias"], -1, 0)
        scores = jnp.einsum("iqhd,ikhd->ihqk", q, k) / np.sqrt(32) + bias[None]
        mixed = jnp.einsum("ihqk,ikhd->iqhd", jax.nn.softmax(scores), v)
        z = z + mixed.reshape(h.shape) @ p["o"]
        return z + jax.nn.relu(norm(z) @ p["up"]) @ p["down"]

    def forward(params, z):
        return lax.scan(lambda z, p: (block(p, z), None), z, params)[0]

    width = 128
    shapes = dict.fromkeys(("ga", "a", "gb", "b", "t", "q", "k", "v", "o"), (width, width))
    shapes |= {"bias": (width, 4), "up": (width, 4 * width), "down": (4 * width, width)}
    params = {k: place.array((4, *s)) for k, s in shapes.items()}
    return Work(forward, [params, place.array((256, 256, width))])


@program()
def unseen_int8_mlp(place: Place) -> Work:
    """Inference with weights of eight bits and activations quantized on the way."""

    def forward(x, layers, scales):
        for w, s in zip(layers, scales, strict=True):
            top = jnp.abs(x).max(-1, keepdims=True) / 127
            q = jnp.round(x / top).astype(jnp.int8)
            y = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
            x = jax.nn.relu(y.astype(jnp.float32) * top * s)
        return x

    layers = [place.array((4096, 4096), "int8")] * 4
    scales = [place.array((4096,))] * 4
    return Work(forward, [place.array((256, 4096)), layers, scales])


@program(platforms=("gpu", "tpu"))
def unseen_decode_quantized(place: Place) -> Work:
    """One word with weights of four bits that are widened before the product; the cache is given back."""

    def step(x, weights, scales, keys, values, at):
        for w, s in zip(weights, scales, strict=True):
            x = x + jnp.tanh(x @ (w.astype(jnp.bfloat16) * s))
        keys = lax.dynamic_update_slice(keys, x[:, None], (0, at, 0))
        values = lax.dynamic_update_slice(values, x[:, None], (0, at, 0))
        scores = jax.nn.softmax(jnp.einsum("bd,btd->bt", x, keys))
        return jnp.einsum("bt,btd->bd", scores, values), keys, values

    width = 4096
    weights = [place.array((width, width), "int4")] * 4
    scales = [place.array((width,), "bfloat16")] * 4
    cache = [place.array((8, 2048, width), "bfloat16")] * 2
    arguments = [place.array((8, width), "bfloat16"), weights, scales, *cache, place.array((), "int32")]
    return Work(step, arguments)
