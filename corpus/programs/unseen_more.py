"""More programs of another hand, made after those of `unseen` had been judged: the second sample of what the linter says."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from corpus.programs.registry import Place, Work, program


def _shapes(function, *arguments):
    return jax.eval_shape(function, *arguments)


def _like(place, tree):
    return jax.tree.map(lambda x: place.array(x.shape, x.dtype), tree)


def _train(place, loss, params, tx, *data, donate=False):
    """A step as tutorials write it: gradients, an optimizer of optax, new parameters."""
    import optax

    def step(params, state, *data):
        value, grads = jax.value_and_grad(loss)(params, *data)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    options = {"donate_argnums": (0, 1)} if donate else {}
    return Work(step, [_like(place, params), _like(place, _shapes(tx.init, params)), *data], options)


def _spread_train(place, mesh, loss, params, specs, *data):
    """The same with plain gradient descent, parameters spread as `specs` say."""

    def step(params, *data):
        value, grads = jax.value_and_grad(loss)(params, *data)
        return jax.tree.map(lambda p, g: p - 0.01 * g.astype(p.dtype), params, grads), value

    here = jax.tree.map(
        lambda shape, spec: place.sharded(mesh, shape.shape, spec, shape.dtype), params, specs
    )
    return Work(step, [here, *data], {"donate_argnums": (0,)})


def _s(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


# ---- training steps


@program()
def more_bert(place: Place) -> Work:
    """Masked words of an encoder of flax, LAMB."""
    import flax.linen as nn
    import optax

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, tokens, kinds):
            x = nn.Embed(30522, 512)(tokens) + nn.Embed(2, 512)(kinds)
            x = nn.LayerNorm()(x + self.param("p", nn.initializers.zeros, (256, 512)))
            for _ in range(4):
                x = nn.LayerNorm()(x + nn.SelfAttention(8)(x))
                x = nn.LayerNorm()(x + nn.Dense(512)(nn.gelu(nn.Dense(2048)(x))))
            return nn.Dense(30522)(nn.LayerNorm()(nn.gelu(nn.Dense(512)(x))))

    net = Encoder()

    def loss(p, tokens, kinds, labels, weights):
        logits = net.apply(p, tokens, kinds)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return (each * weights).sum() / weights.sum()

    one = jnp.zeros((1, 256), jnp.int32)
    params = _shapes(lambda: net.init(random.PRNGKey(0), one, one))
    ids = place.array((32, 256), "int32")
    return _train(place, loss, params, optax.lamb(1e-3), ids, ids, ids, place.array((32, 256)))


@program()
def more_vision_transformer(place: Place) -> Work:
    """Patches and attention of flax with dropout, cosine schedule, state donated."""
    import flax.linen as nn
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train=True):
            x = nn.Conv(384, (16, 16), (16, 16), dtype=jnp.bfloat16)(x)
            x = x.reshape(x.shape[0], -1, 384)
            x = x + self.param("pos", nn.initializers.normal(0.02), (1, 196, 384))
            for _ in range(4):
                y = nn.LayerNorm(dtype=jnp.bfloat16)(x)
                x = x + nn.MultiHeadDotProductAttention(6, dtype=jnp.bfloat16)(y, y)
                y = nn.Dense(1536, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x))
                y = nn.Dropout(0.1, deterministic=not train)(nn.gelu(y))
                x = x + nn.Dense(384, dtype=jnp.bfloat16)(y)
            return nn.Dense(1000)(x.mean(1))

    net = Net()

    def loss(p, images, labels, key):
        logits = net.apply(p, images, rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    params = _shapes(lambda: net.init(random.PRNGKey(0), jnp.zeros((1, 224, 224, 3)), train=False))
    tx = optax.adamw(optax.warmup_cosine_decay_schedule(0, 1e-3, 1000, 10000))
    data = [place.array((64, 224, 224, 3)), place.array((64,), "int32"), place.array((2,), "uint32")]
    return _train(place, loss, params, tx, *data, donate=True)


@program()
def more_segmentation(place: Place) -> Work:
    """A U-shaped net for pictures of one channel, written with lax alone, RMSProp."""
    import optax

    def conv(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def loss(p, images, masks):
        x, skips = images, []
        for a, b in p["down"]:
            x = jax.nn.relu(conv(jax.nn.relu(conv(x, a)), b))
            skips.append(x)
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        for a, b in p["up"]:
            n, h, w, c = x.shape
            x = jax.image.resize(x, (n, 2 * h, 2 * w, c), "bilinear")
            x = jnp.concatenate([x, skips.pop()], -1)
            x = jax.nn.relu(conv(jax.nn.relu(conv(x, a)), b))
        logits = conv(x, p["out"])[..., 0]
        return optax.sigmoid_binary_cross_entropy(logits, masks).mean()

    params = {
        "down": [(_s(3, 3, 1, 32), _s(3, 3, 32, 32)), (_s(3, 3, 32, 64), _s(3, 3, 64, 64))],
        "up": [(_s(3, 3, 128, 64), _s(3, 3, 64, 64)), (_s(3, 3, 96, 32), _s(3, 3, 32, 32))],
        "out": _s(1, 1, 32, 1),
    }
    data = [place.array((16, 256, 256, 1)), place.array((16, 256, 256))]
    return _train(place, loss, params, optax.rmsprop(1e-3), *data)


@program()
def more_word2vec(place: Place) -> Work:
    """Words and their neighbours, negative samples, a large table without donation."""
    import optax

    def loss(p, centre, context, negative):
        v, u, n = p["in"][centre], p["out"][context], p["out"][negative]
        good = jax.nn.log_sigmoid((v * u).sum(-1))
        bad = jax.nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", v, n)).sum(-1)
        return -(good + bad).mean()

    params = {"in": _s(200000, 256), "out": _s(200000, 256)}
    ids = place.array((4096,), "int32")
    return _train(place, loss, params, optax.sgd(0.1), ids, ids, place.array((4096, 10), "int32"))


@program()
def more_gan(place: Place) -> Work:
    """One step of both players of an adversarial game."""
    import optax

    tx = optax.adam(2e-4, b1=0.5)

    def mlp(p, x):
        for w in p[:-1]:
            x = jax.nn.leaky_relu(x @ w, 0.2)
        return x @ p[-1]

    def step(g, d, sg, sd, real, noise):
        def lose(d):
            fake = mlp(g, noise)
            return jax.nn.softplus(mlp(d, fake)).mean() + jax.nn.softplus(-mlp(d, real)).mean()

        grads = jax.grad(lose)(d)
        updates, sd = tx.update(grads, sd)
        d = optax.apply_updates(d, updates)
        grads = jax.grad(lambda g: jax.nn.softplus(-mlp(d, mlp(g, noise))).mean())(g)
        updates, sg = tx.update(grads, sg)
        return optax.apply_updates(g, updates), d, sg, sd

    g = [place.array(s) for s in ((128, 1024), (1024, 1024), (1024, 3072))]
    d = [place.array(s) for s in ((3072, 1024), (1024, 1024), (1024, 1))]
    states = [_like(place, _shapes(tx.init, p)) for p in (g, d)]
    return Work(step, [g, d, *states, place.array((512, 3072)), place.array((512, 128))])


@program()
def more_mixer(place: Place) -> Work:
    """A mixer of equinox, whole batches by vmap, Lion, gradients clipped."""
    import equinox as eqx
    import optax

    class Mix(eqx.Module):
        a: eqx.nn.MLP
        b: eqx.nn.MLP
        n: eqx.nn.LayerNorm

        def __init__(self, key):
            k, m = random.split(key)
            self.a = eqx.nn.MLP(196, 196, 384, 1, jax.nn.gelu, key=k)
            self.b = eqx.nn.MLP(512, 512, 2048, 1, jax.nn.gelu, key=m)
            self.n = eqx.nn.LayerNorm((512,))

        def __call__(self, x):
            y = jax.vmap(self.n)(x)
            x = x + jax.vmap(self.a)(y.T).T
            return x + jax.vmap(self.b)(jax.vmap(self.n)(x))

    keys = random.split(random.PRNGKey(0), 4)
    arrays, static = eqx.partition([Mix(k) for k in keys], eqx.is_array)

    def loss(arrays, patches, goal):
        blocks = eqx.combine(arrays, static)

        def one(x):
            for block in blocks:
                x = block(x)
            return x.mean(0)

        return jnp.square(jax.vmap(one)(patches) - goal).mean()

    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-4))
    return _train(place, loss, arrays, tx, place.array((64, 196, 512)), place.array((64, 512)))


@program()
def more_distil(place: Place) -> Work:
    """A small model learns from a frozen large one, both of plain matrices in bfloat16."""
    import optax

    def net(p, x):
        for w, v in p:
            x = x + jax.nn.gelu(x @ w) @ v
        return x

    def step(small, state, large, head, x):
        def loss(small):
            mine, theirs = net(small, x) @ head, lax.stop_gradient(net(large, x) @ head)
            logs = jax.nn.log_softmax(mine.astype(jnp.float32))
            return -(jax.nn.softmax(theirs.astype(jnp.float32)) * logs).sum(-1).mean()

        value, grads = jax.value_and_grad(loss)(small)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(small, updates), state, value

    tx = optax.adam(1e-4)
    half = "bfloat16"
    pair = lambda n: [(place.array((1024, n), half), place.array((n, 1024), half))]  # noqa: E731
    small, large = pair(1024) * 4, pair(4096) * 8
    state = _like(place, _shapes(tx.init, small))
    return Work(
        step, [small, state, large, place.array((1024, 32000), half), place.array((2048, 1024), half)]
    )


@program()
def more_pointnet(place: Place) -> Work:
    """Clouds of points: neighbours by distance, features by maximum."""
    import optax

    def loss(p, points, labels):
        def one(cloud):
            apart = jnp.square(cloud[:, None] - cloud[None]).sum(-1)
            _, near = lax.top_k(-apart, 16)
            x = cloud[near] - cloud[:, None]
            for w in p["local"]:
                x = jax.nn.relu(x @ w)
            x = x.max(1)
            for w in p["wide"]:
                x = jax.nn.relu(x @ w)
            return x.max(0) @ p["out"]

        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(one)(points), labels).mean()

    params = {"local": [_s(3, 64), _s(64, 128)], "wide": [_s(128, 1024)], "out": _s(1024, 40)}
    data = [place.array((16, 1024, 3)), place.array((16,), "int32")]
    return _train(place, loss, params, optax.adam(1e-3), *data)


@program()
def more_retention(place: Place) -> Work:
    """Linear attention in chunks with a decaying state between them, and its gradients."""

    def layer(x, p):
        q, k, v = (jnp.moveaxis((x @ p[n]).reshape(*x.shape[:2], 8, 64), 2, 1) for n in "qkv")
        chunks = lambda y: jnp.moveaxis(y.reshape(*y.shape[:2], -1, 128, 64), 2, 0)  # noqa: E731
        decay = 0.99 ** jnp.arange(128.0)
        inner = jnp.tril(decay[:, None] / decay[None])

        def step(state, qkv):
            q, k, v = qkv
            now = jnp.einsum("bhqd,bhkd->bhqk", q, k) * inner
            out = jnp.einsum("bhqk,bhkd->bhqd", now, v)
            out = out + jnp.einsum("bhqd,bhde->bhqe", q * decay[:, None], state)
            state = state * 0.99**128 + jnp.einsum("bhkd,bhke->bhde", k, v)
            return state, out

        state = jnp.zeros((x.shape[0], 8, 64, 64))
        _, out = lax.scan(step, state, (chunks(q), chunks(k), chunks(v)))
        out = jnp.moveaxis(out, 0, 2).reshape(x.shape[0], 8, -1, 64)
        return x + jnp.moveaxis(out, 1, 2).reshape(x.shape) @ p["o"]

    def loss(params, x):
        for p in params:
            x = layer(x, p)
        return jnp.square(x).mean()

    params = [{n: place.array((512, 512)) for n in "qkvo"}] * 2
    return Work(jax.grad(loss), [params, place.array((4, 2048, 512))])


# ---- over several devices


@program(devices=8)
def more_data_parallel_pmean(place: Place) -> Work:
    """Gradients averaged leaf by leaf in shard_map, momentum, everything on every device."""
    mesh = place.mesh(batch=8)

    def step(params, velocity, x, y):
        def loss(p):
            h = x
            for w, b in p:
                h = jax.nn.relu(h @ w + b)
            return jnp.square(h - y).mean()

        grads = jax.tree.map(lambda g: lax.pmean(g, "batch"), jax.grad(loss)(params))
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - 0.01 * v, params, velocity), velocity

    apply = jax.shard_map(
        step, mesh=mesh, in_specs=(P(), P(), P("batch"), P("batch")), out_specs=P(), check_vma=False
    )
    one = lambda s, *spec: place.sharded(mesh, s, P(*spec))  # noqa: E731
    params = [(one((2048, 2048)), one((2048,)))] * 6
    data = one((1024, 2048), "batch")
    return Work(apply, [params, params, data, data])


@program(devices=8)
def more_tensor_parallel(place: Place) -> Work:
    """A decoder over two axes: batches over one, heads and hidden features over the other, constraints given."""
    mesh = place.mesh(data=2, tensor=4)
    width, heads, layers = 1024, 16, 4
    at = lambda x, *spec: lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))  # noqa: E731

    def block(x, p):
        h = x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6)
        q, k, v = (at((h @ p[n]).reshape(*h.shape[:2], heads, -1), "data", None, "tensor") for n in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.125)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape)
        x = at(x + mixed @ p["o"], "data")
        h = at(jax.nn.gelu(x @ p["up"]), "data", None, "tensor")
        return at(x + h @ p["down"], "data"), None

    def loss(params, tokens, labels):
        x = at(params["embed"][tokens], "data")
        x, _ = lax.scan(block, x, params["layers"])
        logits = at(x @ params["embed"].T, "data", None, "tensor")
        logs = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.take_along_axis(logs, labels[..., None], -1).mean()

    half = "bfloat16"
    square, column, row = _s(layers, width, width, dtype=half), P(None, None, "tensor"), P(None, "tensor")
    params = {
        "embed": _s(32768, width, dtype=half),
        "layers": {
            **dict.fromkeys("qkvo", square),
            "up": _s(layers, width, 4 * width, dtype=half),
            "down": _s(layers, 4 * width, width, dtype=half),
        },
    }
    specs = {
        "embed": P("tensor"),
        "layers": {"q": column, "k": column, "v": column, "o": row, "up": column, "down": row},
    }
    tokens = place.sharded(mesh, (8, 512), P("data"), "int32")
    return _spread_train(place, mesh, loss, params, specs, tokens, tokens)


@program(devices=8)
def more_zero(place: Place) -> Work:
    """Optimizer state spread over the devices that all hold the parameters."""
    mesh = place.mesh(data=8)

    def step(params, mean, square, x, y):
        def loss(p):
            h = x
            for w in p:
                h = jax.nn.silu(h @ w)
            return jnp.square(h - y).mean()

        grads = jax.grad(loss)(params)
        part = lambda t: jax.tree.map(  # noqa: E731
            lambda g: lax.with_sharding_constraint(g, NamedSharding(mesh, P("data"))), t
        )
        grads = part(grads)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)
        new = jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8), part(params), mean, square)
        whole = jax.tree.map(lambda p: lax.with_sharding_constraint(p, NamedSharding(mesh, P())), new)
        return whole, mean, square

    params = [place.sharded(mesh, (2048, 2048), P())] * 6
    state = [place.sharded(mesh, (2048, 2048), P("data"))] * 6
    data = place.sharded(mesh, (2048, 2048), P("data"))
    return Work(step, [params, state, state, data, data], {"donate_argnums": (0, 1, 2)})


@program(devices=8)
def more_pipeline(place: Place) -> Work:
    """Stages on devices, small batches handed on in a loop."""
    mesh = place.mesh(stage=8)

    def run(weights, batches):
        def tick(carry, n):
            held, out = carry
            x = jnp.where(lax.axis_index("stage") == 0, batches[jnp.minimum(n, 15)], held)
            y = jax.nn.gelu(x @ weights[0, 0]) @ weights[0, 1]
            out = lax.dynamic_update_index_in_dim(out, y, jnp.maximum(n - 7, 0), 0)
            held = lax.ppermute(y, "stage", [(i, (i + 1) % 8) for i in range(8)])
            return (held, out), None

        start = jnp.zeros_like(batches[0]), jnp.zeros_like(batches)
        start = jax.tree.map(lambda x: lax.pcast(x, ("stage",), to="varying"), start)
        (_, out), _ = lax.scan(tick, start, jnp.arange(23))
        return lax.psum(jnp.where(lax.axis_index("stage") == 7, out, 0), "stage")

    apply = jax.shard_map(run, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())
    weights = place.sharded(mesh, (8, 2, 2048, 2048), P("stage"), "bfloat16")
    return Work(apply, [weights, place.sharded(mesh, (16, 256, 2048), P(), "bfloat16")])


@program(devices=8)
def more_experts_by_compiler(place: Place) -> Work:
    """A mixture of experts as einsums over a dispatch mask, spread by the compiler, with its gradients."""
    mesh = place.mesh(data=4, expert=2)
    experts, room, width = 8, 256, 1024

    def loss(params, x):
        gates = jax.nn.softmax((x @ params["router"]).astype(jnp.float32))
        top, chosen = lax.top_k(gates, 2)
        mask = jax.nn.one_hot(chosen, experts)
        position = jnp.cumsum(mask.reshape(x.shape[0], -1, experts), axis=1).reshape(mask.shape) * mask - 1
        slots = jax.nn.one_hot(position.max(-1).astype(jnp.int32), room) * top[..., None]
        combine = jnp.einsum("gske,gskr->gser", mask, slots).astype(x.dtype)
        sent = jnp.einsum("gser,gsd->egrd", (combine > 0).astype(x.dtype), x)
        sent = lax.with_sharding_constraint(sent, NamedSharding(mesh, P("expert", "data")))
        h = jax.nn.relu(jnp.einsum("egrd,edh->egrh", sent, params["up"]))
        y = jnp.einsum("egrh,ehd->egrd", h, params["down"])
        return jnp.square(x + jnp.einsum("gser,egrd->gsd", combine, y)).mean()

    half = "bfloat16"
    params = {
        "router": _s(width, experts, dtype=half),
        "up": _s(experts, width, 4096, dtype=half),
        "down": _s(experts, 4096, width, dtype=half),
    }
    specs = {"router": P(), "up": P("expert"), "down": P("expert")}
    x = place.sharded(mesh, (8, 1024, width), P("data"), half)
    return _spread_train(place, mesh, loss, params, specs, x)


@program(devices=8)
def more_ulysses(place: Place) -> Work:
    """Long sequences: all_to_all from words to heads, attention, and back."""
    mesh = place.mesh(sequence=8)

    def attend(x, qkv, out):
        q, k, v = jnp.split(x @ qkv, 3, -1)
        turn = lambda y: lax.all_to_all(  # noqa: E731
            y.reshape(y.shape[0], y.shape[1], 16, 64), "sequence", 2, 1, tiled=True
        )
        q, k, v = turn(q), turn(k), turn(v)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        back = lax.all_to_all(mixed, "sequence", 1, 2, tiled=True)
        return x + back.reshape(x.shape) @ out

    spec = P(None, "sequence")
    apply = jax.shard_map(attend, mesh=mesh, in_specs=(spec, P(), P()), out_specs=spec, check_vma=False)
    half = "bfloat16"
    arrays = [
        place.sharded(mesh, (1, 8192, 1024), spec, half),
        place.sharded(mesh, (1024, 3072), P(), half),
        place.sharded(mesh, (1024, 1024), P(), half),
    ]
    return Work(apply, arrays)


@program(devices=8)
def more_sharded_decode(place: Place) -> Work:
    """Several words of a decoder whose weights and cache are spread by heads; the cache is not donated."""
    mesh = place.mesh(tensor=8)
    width, heads, layers, longest = 2048, 16, 4, 2048

    def generate(params, cache, token, at):
        def word(carry, _):
            cache, token, at = carry
            x = params["embed"][token]

            def layer(x, inputs):
                p, keys, values = inputs
                q, k, v = (x @ p[n] for n in "qkv")
                keys = lax.dynamic_update_slice(keys, k[:, None], (0, at, 0))
                values = lax.dynamic_update_slice(values, v[:, None], (0, at, 0))
                split = lambda y: y.reshape(*y.shape[:-1], heads, -1)  # noqa: E731
                scores = jnp.einsum("bhd,bthd->bht", split(q), split(keys)) * 0.088
                scores = jnp.where(jnp.arange(longest) <= at, scores, -1e9)
                mixed = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores), split(values))
                x = x + mixed.reshape(x.shape) @ p["o"]
                return x + jax.nn.silu(x @ p["up"]) @ p["down"], (keys, values)

            x, cache = lax.scan(layer, x, (params["layers"], *cache))
            token = jnp.argmax(x @ params["embed"].T, -1).astype(jnp.int32)
            return (cache, token, at + 1), token

        (cache, _, _), words = lax.scan(word, (cache, token, at), None, length=16)
        return words, cache

    half = "bfloat16"
    put = lambda s, *spec: place.sharded(mesh, s, P(*spec), half)  # noqa: E731
    column = put((layers, width, width), None, None, "tensor")
    params = {
        "embed": put((32000, width), "tensor"),
        "layers": {
            "q": column,
            "k": column,
            "v": column,
            "o": put((layers, width, width), None, "tensor"),
            "up": put((layers, width, 4 * width), None, None, "tensor"),
            "down": put((layers, 4 * width, width), None, "tensor"),
        },
    }
    cache = put((layers, 8, longest, width), None, None, None, "tensor")
    token = place.sharded(mesh, (8,), P(), "int32")
    return Work(generate, [params, (cache, cache), token, place.sharded(mesh, (), P(), "int32")])


@program(devices=8)
def more_halo(place: Place) -> Work:
    """A stencil on a grid that is spread over devices: edges are handed to neighbours in every step."""
    mesh = place.mesh(y=8)

    def simulate(u):
        up = [(i, (i + 1) % 8) for i in range(8)]
        down = [(b, a) for a, b in up]

        def step(_, u):
            above, below = lax.ppermute(u[-1:], "y", up), lax.ppermute(u[:1], "y", down)
            v = jnp.concatenate([above, u, below])
            around = v[:-2] + v[2:] + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
            return u + 0.1 * (around - 4 * u)

        return lax.fori_loop(0, 500, step, u)

    apply = jax.shard_map(simulate, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    return Work(apply, [place.sharded(mesh, (8192, 8192), P("y"))])


@program(devices=8)
def more_distributed_transform(place: Place) -> Work:
    """A transform in two dimensions over devices: rows, an exchange, columns, and back."""
    mesh = place.mesh(x=8)

    def solve(f):
        g = jnp.fft.fft(f, axis=1)
        g = lax.all_to_all(g, "x", 1, 0, tiled=True)
        g = jnp.fft.fft(g, axis=0)
        k = jnp.fft.fftfreq(g.shape[0]) * g.shape[0]
        g = g / (1 + k[:, None] ** 2)
        g = jnp.fft.ifft(g, axis=0)
        g = lax.all_to_all(g, "x", 0, 1, tiled=True)
        return jnp.fft.ifft(g, axis=1).real

    apply = jax.shard_map(solve, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    return Work(apply, [place.sharded(mesh, (4096, 4096), P("x"))])


@program(devices=8)
def more_evolution(place: Place) -> Work:
    """Evolution strategies: each device tries its own noise, returns are gathered, all add up."""
    mesh = place.mesh(worker=8)

    def step(params, x, y, key):
        key = random.fold_in(key[0], lax.axis_index("worker"))

        def score(key):
            noise = jax.tree.map(lambda p: random.normal(key, p.shape), params)
            h = x
            for w, e in zip(params, noise, strict=True):
                h = jnp.tanh(h @ (w + 0.01 * e))
            return -jnp.square(h - y).mean()

        keys = random.split(key, 16)
        mine = lax.map(score, keys)
        every = lax.all_gather(mine, "worker", tiled=True)
        rank = (mine - every.mean()) / (every.std() + 1e-8)

        def gradient(total, inputs):
            key, r = inputs
            return jax.tree.map(lambda t: t + r * random.normal(key, t.shape), total), None

        zeros = jax.tree.map(lambda p: lax.pcast(jnp.zeros_like(p), ("worker",), to="varying"), params)
        grads, _ = lax.scan(gradient, zeros, (keys, rank))
        return jax.tree.map(lambda p, g: p + 0.01 * lax.psum(g, "worker"), params, grads)

    apply = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P(), P()), out_specs=P(), check_vma=False)
    put = lambda s, dtype="float32": place.sharded(mesh, s, P(), dtype)  # noqa: E731
    params = [put((1024, 1024))] * 3
    return Work(apply, [params, put((256, 1024)), put((256, 1024)), put((1, 2), "uint32")])


# ---- loops


@program()
def more_conjugate_gradients(place: Place) -> Work:
    """Conjugate gradients until the rest is small."""

    def solve(a, b):
        def body(state):
            x, r, p, old, n = state
            q = a @ p
            alpha = old / (p @ q)
            x, r = x + alpha * p, r - alpha * q
            new = r @ r
            return x, r, r + new / old * p, new, n + 1

        start = jnp.zeros_like(b), b, b, b @ b, 0
        return lax.while_loop(lambda s: (s[3] > 1e-8) & (s[4] < 1000), body, start)[0]

    return Work(solve, [place.array((2048, 2048)), place.array((2048,))])


@program()
def more_newton(place: Place) -> Work:
    """Roots of many equations by Newton's method, all at once, until all have converged."""

    def solve(c):
        f = lambda x: x**5 - c[..., 0] * x - c[..., 1]  # noqa: E731

        def body(state):
            x, _ = state
            y = f(x)
            step = y / (5 * x**4 - c[..., 0] + 1e-9)
            return x - step, jnp.abs(step).max()

        return lax.while_loop(lambda s: s[1] > 1e-6, body, (jnp.ones(c.shape[:-1]), jnp.inf))[0]

    return Work(solve, [place.array((100000, 2))])


@program()
def more_bisection(place: Place) -> Work:
    """Quantiles of many distributions by bisection, sixty rounds."""

    def quantile(weights, means, level):
        def cdf(x):
            return (weights * jax.scipy.stats.norm.cdf(x[:, None] - means)).sum(-1)

        def body(_, bounds):
            low, high = bounds
            middle = (low + high) / 2
            below = cdf(middle) < level
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        start = jnp.full(level.shape, -50.0), jnp.full(level.shape, 50.0)
        return lax.fori_loop(0, 60, body, start)[0]

    return Work(quantile, [place.array((8192, 32)), place.array((8192, 32)), place.array((8192,))])


@program()
def more_page_rank(place: Place) -> Work:
    """Ranks of pages until they stay, over edges."""

    def rank(sources, targets, degree):
        n = degree.shape[0]

        def body(state):
            r, _, k = state
            sent = (r / jnp.maximum(degree, 1))[sources]
            new = 0.15 / n + 0.85 * jnp.zeros((n,)).at[targets].add(sent)
            return new, jnp.abs(new - r).sum(), k + 1

        start = jnp.full((n,), 1.0 / n), jnp.float32(1), 0
        return lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 200), body, start)[0]

    edges = place.array((2000000,), "int32")
    return Work(rank, [edges, edges, place.array((100000,))])


@program()
def more_edit_distance(place: Place) -> Work:
    """Distances between pairs of texts, a row of the table at a time."""

    def distance(a, b):
        def row(old, x):
            index, letter = x
            cost = (b != letter).astype(jnp.int32)
            swap = jnp.minimum(old[1:] + 1, old[:-1] + cost)
            first = index + 1

            def cell(left, value):
                new = jnp.minimum(left + 1, value)
                return new, new

            _, rest = lax.scan(cell, first, swap)
            new = jnp.concatenate([first[None], rest])
            return new, None

        start = jnp.arange(b.shape[0] + 1, dtype=jnp.int32)
        return lax.scan(row, start, (jnp.arange(a.shape[0], dtype=jnp.int32), a))[0][-1]

    texts = place.array((64, 128), "int32")
    return Work(jax.vmap(distance), [texts, texts])


@program()
def more_reservoir(place: Place) -> Work:
    """An echo-state network: a fixed random recurrence over a long series, then least squares."""

    def fit(series, inner, entry):
        def step(h, x):
            h = 0.7 * h + 0.3 * jnp.tanh(inner @ h + entry @ x)
            return h, h

        _, states = lax.scan(step, jnp.zeros(inner.shape[0]), series[:-1])
        gram = states.T @ states + 1e-3 * jnp.eye(inner.shape[0])
        return jnp.linalg.solve(gram, states.T @ series[1:])

    return Work(fit, [place.array((20000, 8)), place.array((256, 256)), place.array((256, 8))])


@program()
def more_particle_filter(place: Place) -> Work:
    """Particles are moved, weighed and drawn again, for each of a thousand observations."""

    def run(particles, seen, key):
        def step(carry, inputs):
            x = carry
            y, key = inputs
            a, b = random.split(key)
            x = 0.9 * x + 0.1 * random.normal(a, x.shape)
            logs = -0.5 * jnp.square(x - y).sum(-1)
            index = random.categorical(b, logs, shape=logs.shape)
            x = x[index]
            return x, x.mean(0)

        return lax.scan(step, particles, (seen, random.split(key, seen.shape[0])))[1]

    return Work(run, [place.array((10000, 4)), place.array((1000, 4)), place.array((2,), "uint32")])


@program()
def more_bandits(place: Place) -> Work:
    """Ten thousand rounds of Thompson sampling for a few arms."""

    def play(means, key):
        def turn(state, key):
            total, count = state
            a, b = random.split(key)
            guess = total / jnp.maximum(count, 1) + random.normal(a, means.shape) / jnp.sqrt(count + 1)
            arm = jnp.argmax(guess)
            reward = means[arm] + random.normal(b)
            return (total.at[arm].add(reward), count.at[arm].add(1)), reward

        start = jnp.zeros_like(means), jnp.zeros_like(means)
        return lax.scan(turn, start, random.split(key, 10000))[1]

    return Work(play, [place.array((16,)), place.array((2,), "uint32")])


@program()
def more_flow(place: Place) -> Work:
    """Incompressible flow by transforms, a Runge-Kutta step in a loop, double precision asked for."""

    def simulate(w):
        n = w.shape[0]
        k = jnp.fft.fftfreq(n) * n
        kx, ky = k[:, None], k[None]
        square = kx**2 + ky**2
        inverse = jnp.where(square == 0, 0, 1 / jnp.where(square == 0, 1, square))

        def rate(w):
            h = jnp.fft.fft2(w)
            back = lambda z: jnp.fft.ifft2(z).real  # noqa: E731
            u, v = back(1j * ky * inverse * h), back(-1j * kx * inverse * h)
            return -u * back(1j * kx * h) - v * back(1j * ky * h) - back(1e-3 * square * h)

        def step(_, w):
            a = rate(w)
            return w + 0.01 * rate(w + 0.005 * a)

        return lax.fori_loop(0, 200, step, w)

    return Work(simulate, [place.array((512, 512))])


# ---- tables and pictures


@program()
def more_histograms(place: Place) -> Work:
    """Gradient boosting: sums of gradients by bin for every feature, and the best split."""

    def split(bins, grads, hessians):
        def feature(b):
            g = jnp.zeros((256,)).at[b].add(grads)
            h = jnp.zeros((256,)).at[b].add(hessians)
            gl, hl = jnp.cumsum(g), jnp.cumsum(h)
            gain = gl**2 / (hl + 1) + (gl[-1] - gl) ** 2 / (hl[-1] - hl + 1)
            return gain.max(), gain.argmax()

        return lax.map(feature, bins)

    rows = 1000000
    return Work(split, [place.array((100, rows), "uint8"), place.array((rows,)), place.array((rows,))])


@program()
def more_search(place: Place) -> Work:
    """Nearest of two million vectors for a batch of queries."""

    def find(table, queries):
        scores = queries @ table.T
        best, index = lax.top_k(scores, 100)
        return best, index, table[index[:, 0]]

    return Work(find, [place.array((2000000, 128), "bfloat16"), place.array((256, 128), "bfloat16")])


@program()
def more_labels_as_vectors(place: Place) -> Work:
    """Class means of features by one-hot labels, and a classifier by distance."""

    def fit(x, labels, query):
        table = jax.nn.one_hot(labels, 1000)
        means = table.T @ x / jnp.maximum(table.sum(0), 1)[:, None]
        apart = jnp.square(query).sum(-1)[:, None] - 2 * query @ means.T + jnp.square(means).sum(-1)
        return apart.argmin(-1)

    return Work(fit, [place.array((100000, 512)), place.array((100000,), "int32"), place.array((4096, 512))])


@program()
def more_splats(place: Place) -> Work:
    """Gaussians drawn into a picture, sorted by depth, in tiles."""

    def draw(means, scales, colours, alphas):
        order = jnp.argsort(means[:, 2])
        means, scales, colours, alphas = (x[order] for x in (means, scales, colours, alphas))
        grid = jnp.stack(jnp.meshgrid(jnp.arange(128.0), jnp.arange(128.0)), -1).reshape(-1, 2)

        def tile(points):
            apart = jnp.square((points[:, None] - means[None, :, :2]) / scales).sum(-1)
            a = jnp.clip(alphas * jnp.exp(-0.5 * apart), 0, 0.99)
            through = jnp.cumprod(1 - a, axis=1)
            through = jnp.concatenate([jnp.ones((a.shape[0], 1)), through[:, :-1]], 1)
            return (a * through) @ colours

        return lax.map(tile, grid.reshape(64, -1, 2)).reshape(128, 128, 3)

    n = 20000
    arrays = [place.array((n, 3)), place.array((n, 2)), place.array((n, 3)), place.array((n,))]
    return Work(draw, arrays)


@program()
def more_similarity_loss(place: Place) -> Work:
    """A large matrix of similarities of one batch kept for its gradient, in single precision."""

    def loss(w, x, y):
        a, b = x @ w, y @ w
        a = a / jnp.linalg.norm(a, axis=-1, keepdims=True)
        b = b / jnp.linalg.norm(b, axis=-1, keepdims=True)
        scores = a @ b.T * 20.0
        hard = jax.nn.softmax(lax.stop_gradient(scores))
        return -(jax.nn.log_softmax(scores) * hard).sum(-1).mean()

    x = place.array((32768, 512))
    return Work(jax.value_and_grad(loss), [place.array((512, 256)), x, x])


@program()
def more_long_context_loss(place: Place) -> Work:
    """Logits of a large vocabulary kept whole between forward and backward, eight thousand words."""
    import optax

    def loss(p, x, labels):
        for w, v in p["blocks"]:
            x = x + jax.nn.gelu(x @ w) @ v
        logits = (x @ p["head"]).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    half = "bfloat16"
    pair = (_s(1024, 4096, dtype=half), _s(4096, 1024, dtype=half))
    params = {"blocks": [pair] * 2, "head": _s(1024, 128256, dtype=half)}
    data = [place.array((8192, 1024), half), place.array((8192,), "int32")]
    return _train(place, loss, params, optax.adafactor(1e-3), *data, donate=True)


@program()
def more_saved_activations(place: Place) -> Work:
    """A deep residual network in a scan, every activation saved for the gradient."""

    def loss(params, x):
        def layer(x, p):
            h = jax.nn.gelu(jax.nn.standardize(x) @ p[0])
            return x + h @ p[1], None

        x, _ = lax.scan(layer, x, params)
        return jnp.square(x.astype(jnp.float32)).mean()

    params = [place.array((24, 1024, 4096), "bfloat16"), place.array((24, 4096, 1024), "bfloat16")]
    return Work(jax.value_and_grad(loss), [params, place.array((16384, 1024), "bfloat16")])


@program(devices=8)
def more_checkpointed(place: Place) -> Work:
    """Layers under jax.checkpoint though everything is small, batches over all devices."""
    mesh = place.mesh(data=8)

    def loss(params, x, y):
        @functools.partial(jax.checkpoint)
        def layer(x, w):
            return jnp.tanh(x @ w[0]) @ w[1] + x

        for w in params:
            x = layer(x, w)
        return jnp.square(x - y).mean()

    params = [[_s(1024, 1024), _s(1024, 1024)]] * 4
    specs = jax.tree.map(lambda _: P(), params)
    data = place.sharded(mesh, (1024, 1024), P("data"))
    return _spread_train(place, mesh, loss, params, specs, data, data)


@program(devices=8)
def more_two_by_four_products(place: Place) -> Work:
    """A chain of products of matrices that are spread over both axes, as the compiler pleases."""
    mesh = place.mesh(x=2, y=4)

    def chain(a, bs):
        for b in bs:
            a = jax.nn.relu(a @ b)
        return a, np.float32(0) + a.sum()

    put = lambda s: place.sharded(mesh, s, P("x", "y"))  # noqa: E731
    return Work(chain, [put((4096, 4096)), [put((4096, 4096))] * 4])


# ---- a few more, most of them over several devices


def _plain_step(loss):
    def step(params, *data):
        value, grads = jax.value_and_grad(loss)(params, *data)
        return jax.tree.map(lambda p, g: p - 0.01 * g.astype(p.dtype), params, grads), value

    return step


@program(devices=8)
def more_sharded_vision(place: Place) -> Work:
    """Convolutions over batches on all devices, batch statistics over all of them, nothing donated."""
    mesh = place.mesh(data=8)

    def conv(x, w, s=1):
        return lax.conv_general_dilated(x, w, (s, s), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x):
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5)

    def loss(p, x, y):
        for n, w in enumerate(p["convs"]):
            x = jax.nn.relu(norm(conv(x, w, 1 + n % 2)))
        logs = jax.nn.log_softmax(x.mean((1, 2)) @ p["out"])
        return -jnp.take_along_axis(logs, y[:, None], 1).mean()

    put = lambda s: place.sharded(mesh, s, P())  # noqa: E731
    widths = [3, 64, 128, 256, 512, 1024]
    convs = [put((3, 3, a, b)) for a, b in itertools.pairwise(widths)]
    images = place.sharded(mesh, (256, 96, 96, 3), P("data"))
    labels = place.sharded(mesh, (256,), P("data"), "int32")
    return Work(_plain_step(loss), [{"convs": convs, "out": put((1024, 100))}, images, labels])


@program(devices=8)
def more_sequence_model_over_words(place: Place) -> Work:
    """A recurrent scan over words while the batch is spread, parameters spread by rows."""
    mesh = place.mesh(data=2, model=4)

    def loss(p, x, y):
        def step(h, x):
            z, r, n = jnp.split(x @ p["w"] + h @ p["u"], 3, -1)
            z, r = jax.nn.sigmoid(z), jax.nn.sigmoid(r)
            h = (1 - z) * h + z * jnp.tanh(n * r)
            return h, h

        start = jnp.zeros((x.shape[1], p["u"].shape[0]))
        _, hs = lax.scan(step, start, x)
        return jnp.square(hs @ p["out"] - y).mean()

    put = lambda s, *spec: place.sharded(mesh, s, P(*spec))  # noqa: E731
    params = {
        "w": put((512, 3072), None, "model"),
        "u": put((1024, 3072), None, "model"),
        "out": put((1024, 512), "model"),
    }
    data = put((128, 64, 512), None, "data")
    return Work(_plain_step(loss), [params, data, data])


@program(devices=8)
def more_gathered_parameters(place: Place) -> Work:
    """Parameters in eight parts, put together by hand before each layer, gradients scattered."""
    mesh = place.mesh(shard=8)

    def step(params, x, y):
        def loss(p):
            h = x
            for a, b in p:
                a, b = (lax.all_gather(w, "shard", tiled=True) for w in (a, b))
                h = h + jax.nn.gelu(h @ a) @ b
            return jnp.square(h - y).mean()

        grads = jax.grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.01 * g / 8, params, grads)

    apply = jax.shard_map(
        step, mesh=mesh, in_specs=(P("shard"), P("shard"), P("shard")), out_specs=P("shard")
    )
    put = lambda s: place.sharded(mesh, s, P("shard"), "bfloat16")  # noqa: E731
    params = [(put((1024, 4096)), put((4096, 1024)))] * 4
    return Work(apply, [params, put((4096, 1024)), put((4096, 1024))], {"donate_argnums": (0,)})


@program(devices=8)
def more_graph_over_devices(place: Place) -> Work:
    """Messages along edges that are spread over devices, nodes on all of them."""
    mesh = place.mesh(edge=8)

    def loss(p, x, senders, receivers, y):
        for w in p:
            sent = jax.nn.relu(x @ w)[senders]
            x = x + jnp.zeros_like(x).at[receivers].add(sent)
        return jnp.square(x - y).mean()

    put = lambda s, *spec, dtype="float32": place.sharded(mesh, s, P(*spec), dtype)  # noqa: E731
    ids = put((1 << 20,), "edge", dtype="int32")
    nodes = put((65536, 128))
    return Work(_plain_step(loss), [[put((128, 128))] * 3, nodes, ids, ids, nodes])


@program(devices=8)
def more_long_sequence(place: Place) -> Work:
    """Attention with the sequence spread, the compiler left to find out how."""
    mesh = place.mesh(sequence=8)

    def loss(p, x):
        for w in p:
            q, k, v = (x @ w[n] for n in "qkv")
            split = lambda y: y.reshape(*y.shape[:2], 8, -1)  # noqa: E731
            scores = jnp.einsum("bqhd,bkhd->bhqk", split(q), split(k)) * 0.088
            x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), split(v)).reshape(x.shape) @ w["o"]
        return jnp.square(x).mean()

    put = lambda s, *spec: place.sharded(mesh, s, P(*spec), "bfloat16")  # noqa: E731
    params = [{n: put((1024, 1024)) for n in "qkvo"}] * 2
    return Work(_plain_step(loss), [params, put((1, 8192, 1024), None, "sequence")])


@program(devices=8)
def more_embedding_by_exchange(place: Place) -> Work:
    """Rows of a table that is spread over devices, asked for and sent by all_to_all."""
    mesh = place.mesh(shard=8)

    def look_up(table, ids):
        size, mine = table.shape[0], lax.axis_index("shard")
        asked = lax.all_gather(ids, "shard")
        here = asked - mine * size
        found = jnp.where(((here >= 0) & (here < size))[..., None], table[jnp.clip(here, 0, size - 1)], 0)
        return lax.psum_scatter(found, "shard", tiled=False)

    apply = jax.shard_map(look_up, mesh=mesh, in_specs=(P("shard"), P("shard")), out_specs=P("shard"))
    table = place.sharded(mesh, (1 << 20, 128), P("shard"))
    return Work(apply, [table, place.sharded(mesh, (65536,), P("shard"), "int32")])


@program(devices=8)
def more_sort_over_devices(place: Place) -> Work:
    """Samples sorted by splitters: sorted here, cut, exchanged, sorted again."""
    mesh = place.mesh(part=8)

    def order(x):
        x = jnp.sort(x)
        splitters = jnp.sort(lax.all_gather(x[:: x.shape[0] // 8], "part", tiled=True))[8::8]
        target = jnp.searchsorted(splitters, x)
        room = x.shape[0] // 4
        slot = jnp.arange(x.shape[0]) - jnp.searchsorted(target, target)
        sent = jnp.full((8, room), jnp.inf).at[target, jnp.minimum(slot, room - 1)].set(x)
        return jnp.sort(lax.all_to_all(sent, "part", 0, 0, tiled=True).reshape(-1))

    apply = jax.shard_map(order, mesh=mesh, in_specs=P("part"), out_specs=P("part"))
    return Work(apply, [place.sharded(mesh, (1 << 23,), P("part"))])


@program(devices=8)
def more_power_iteration(place: Place) -> Work:
    """The largest eigenvector of a matrix that is spread by rows, a hundred products."""
    mesh = place.mesh(row=8)

    def run(a, v):
        def step(_, v):
            v = lax.all_gather(a @ v, "row", tiled=True)
            return v / jnp.linalg.norm(v)

        return lax.fori_loop(0, 100, step, v)

    apply = jax.shard_map(run, mesh=mesh, in_specs=(P("row"), P()), out_specs=P(), check_vma=False)
    return Work(apply, [place.sharded(mesh, (16384, 16384), P("row")), place.sharded(mesh, (16384,), P())])


@program(devices=8)
def more_lasso(place: Place) -> Work:
    """Proximal gradients for least squares, rows spread, one sum in each of three hundred rounds."""
    mesh = place.mesh(row=8)

    def fit(a, b):
        def step(_, x):
            g = a.T @ (a @ x - b)
            x = x - 1e-4 * lax.psum(g, "row")
            return jnp.sign(x) * jnp.maximum(jnp.abs(x) - 1e-3, 0)

        return lax.fori_loop(0, 300, step, jnp.zeros(a.shape[1]))

    apply = jax.shard_map(fit, mesh=mesh, in_specs=(P("row"), P("row")), out_specs=P())
    return Work(
        apply, [place.sharded(mesh, (65536, 2048), P("row")), place.sharded(mesh, (65536,), P("row"))]
    )


@program()
def more_siamese(place: Place) -> Work:
    """Two pictures through one net, Adam by hand, no donation."""

    def embed(p, x):
        for w in p["convs"]:
            x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x)
        return x.reshape(x.shape[0], -1) @ p["out"]

    def loss(p, a, b, same):
        apart = jnp.square(embed(p, a) - embed(p, b)).sum(-1)
        return (same * apart + (1 - same) * jnp.maximum(1 - jnp.sqrt(apart + 1e-6), 0) ** 2).mean()

    def step(p, m, s, *data):
        g = jax.grad(loss)(p, *data)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        s = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, s, g)
        return jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8), p, m, s), m, s

    widths = [3, 32, 64, 128]
    convs = [place.array((5, 5, a, b)) for a, b in itertools.pairwise(widths)]
    params = {"convs": convs, "out": place.array((16 * 16 * 128, 256))}
    pictures = place.array((64, 128, 128, 3))
    return Work(step, [params, params, params, pictures, pictures, place.array((64,))])


@program()
def more_autoregressive_pixels(place: Place) -> Work:
    """Pixels one after the other, each from those before it through masked layers."""

    def sample(w1, w2, w3, key):
        def pixel(n, state):
            x, key = state
            key, now = random.split(key)
            h = jax.nn.relu(x @ w1)
            logits = jax.nn.relu(h @ w2) @ w3
            value = random.bernoulli(now, jax.nn.sigmoid(logits[:, n])).astype(x.dtype)
            return x.at[:, n].set(value), key

        return lax.fori_loop(0, 784, pixel, (jnp.zeros((64, 784)), key))[0]

    shapes = [(784, 1024), (1024, 1024), (1024, 784)]
    return Work(sample, [*map(place.array, shapes), place.array((2,), "uint32")])


@program()
def more_cellular(place: Place) -> Work:
    """A neural cellular automaton: ninety-six steps of a small net at every cell, with gradients through time."""

    def loss(p, x, goal):
        def step(x, _):
            y = lax.conv_general_dilated(
                x,
                p["look"],
                (1, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
                feature_group_count=16,
            )
            return x + jax.nn.relu(y @ p["a"]) @ p["b"], None

        x, _ = lax.scan(step, x, None, length=96)
        return jnp.square(x[..., :4] - goal).mean()

    params = {
        "look": place.array((3, 3, 1, 48)),
        "a": place.array((48, 128)),
        "b": place.array((128, 16)),
    }
    return Work(_plain_step(loss), [params, place.array((8, 72, 72, 16)), place.array((8, 72, 72, 4))])


@program()
def more_speculative(place: Place) -> Work:
    """A draft proposes four words, the large model judges them at once; both caches come and go."""

    def attend(x, keys, values, at):
        where = jnp.arange(keys.shape[1])[None, None] <= at + jnp.arange(x.shape[1])[None, :, None]
        scores = jnp.where(where, jnp.einsum("bqd,bkd->bqk", x, keys), -1e9)
        return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), values)

    def forward(p, cache, tokens, at):
        x = p["embed"][tokens]
        new = []
        for w, (keys, values) in zip(p["layers"], cache, strict=True):
            keys = lax.dynamic_update_slice(keys, x @ w[0], (0, at, 0))
            values = lax.dynamic_update_slice(values, x @ w[1], (0, at, 0))
            x = x + attend(x @ w[2], keys, values, at) @ w[3]
            new.append((keys, values))
        return x @ p["embed"].T, new

    def step(small, large, cs, cl, token, at):
        words = [token]
        for n in range(4):
            logits, cs = forward(small, cs, words[-1][:, None], at + n)
            words.append(logits[:, 0].argmax(-1).astype(jnp.int32))
        tokens = jnp.stack(words, 1)
        logits, cl = forward(large, cl, tokens, at)
        agreed = (logits[:, :-1].argmax(-1) == tokens[:, 1:]).cumprod(-1).sum(-1)
        return agreed, logits.argmax(-1), cs, cl

    def model(width, layers):
        half = "bfloat16"
        w = [place.array((width, width), half)] * 4
        params = {"embed": place.array((32000, width), half), "layers": [w] * layers}
        return params, [(place.array((4, 2048, width), half),) * 2] * layers

    (small, cs), (large, cl) = model(512, 2), model(2048, 4)
    return Work(step, [small, large, cs, cl, place.array((4,), "int32"), place.array((), "int32")])


@program()
def more_control(place: Place) -> Work:
    """Model-predictive control by sampled plans: a small dynamics net rolled out for many plans."""

    def plan(weights, state, mean, key):
        def improve(mean, key):
            noise = random.normal(key, (1024, *mean.shape))
            plans = mean + 0.3 * noise

            def roll(state, action):
                x = jnp.concatenate([state, action], -1)
                for w in weights[:-1]:
                    x = jnp.tanh(x @ w)
                state = state + x @ weights[-1]
                return state, -jnp.square(state).sum(-1)

            start = jnp.broadcast_to(state, (1024, state.shape[0]))
            _, rewards = lax.scan(roll, start, jnp.moveaxis(plans, 1, 0))
            weight = jax.nn.softmax(rewards.sum(0))
            return jnp.einsum("n,nta->ta", weight, plans), None

        return lax.scan(improve, mean, random.split(key, 10))[0]

    weights = [place.array(s) for s in ((24, 256), (256, 256), (256, 16))]
    return Work(plan, [weights, place.array((16,)), place.array((50, 8)), place.array((2,), "uint32")])


@program()
def more_elastic_net_path(place: Place) -> Work:
    """Coordinate descent, one coordinate after the other, fifty sweeps."""

    def fit(a, y):
        square = jnp.square(a).sum(0)

        def sweep(_, state):
            def one(j, state):
                w, r = state
                column = a[:, j]
                old = w[j]
                rho = column @ r + square[j] * old
                new = jnp.sign(rho) * jnp.maximum(jnp.abs(rho) - 0.1, 0) / (square[j] + 0.1)
                return w.at[j].set(new), r + column * (old - new)

            return lax.fori_loop(0, a.shape[1], one, state)

        return lax.fori_loop(0, 50, sweep, (jnp.zeros(a.shape[1]), y))[0]

    return Work(fit, [place.array((4096, 256)), place.array((4096,))])
