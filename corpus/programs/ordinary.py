"""Programs as people write them, without any fault in mind: what the linter says of them was judged, finding by finding.

The judgements are in tests/data/lint/judged.csv.
"""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from corpus.programs.parallel import per_device, ring
from corpus.programs.registry import Place, Work, program

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 4, 512, 8, 8192, 256, 8


def _norm(x):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _attention(x, qkv, out):
    q, k, v = jnp.moveaxis((x @ qkv).reshape(*x.shape[:2], 3, HEADS, -1), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9).astype(jnp.float32)).astype(x.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ out


def _block(x, p):
    x = x + _attention(_norm(x), p["qkv"], p["out"])
    return x + jax.nn.gelu(_norm(x) @ p["up"]) @ p["down"]


_SHAPES = {
    "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
}


def _parameters(array, stacked=True):
    blocks = {name: array((LAYERS, *shape)) for name, shape in _SHAPES.items()} if stacked else None
    return {"embed": array((VOCABULARY, WIDTH)), "blocks": blocks}


def _lm_loss(params, tokens, dtype=jnp.bfloat16, remat=False):
    params = jax.tree.map(lambda p: p.astype(dtype), params)
    x = params["embed"][tokens[:, :-1]]
    block = jax.checkpoint(_block) if remat else _block
    x = lax.scan(lambda x, p: (block(x, p), None), x, params["blocks"])[0]
    logits = (_norm(x) @ params["embed"].T).astype(jnp.float32)
    logs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(logs, tokens[:, 1:, None], axis=-1).mean()


def _adam(params, mean, square, grads):
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, grads)
    new = jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return new, mean, square


@program()
def ordinary_gpt_train(place: Place) -> Work:
    def step(params, mean, square, tokens):
        loss, grads = jax.value_and_grad(_lm_loss)(params, tokens)
        return *_adam(params, mean, square, grads), loss

    state = [_parameters(place.array) for _ in range(3)]
    return Work(step, [*state, place.array((BATCH, LENGTH), "int32")], {"donate_argnums": (0, 1, 2)})


@program(devices=8)
def ordinary_gpt_fsdp(place: Place) -> Work:
    mesh = place.mesh(data=8)

    def array(shape):
        return place.sharded(mesh, shape, P(*[None] * (len(shape) - 2), "data", None))

    def step(params, mean, square, tokens):
        loss, grads = jax.value_and_grad(_lm_loss)(params, tokens, remat=True)
        return *_adam(params, mean, square, grads), loss

    state = [_parameters(array) for _ in range(3)]
    return Work(
        step,
        [*state, place.sharded(mesh, (BATCH, LENGTH), P("data"), "int32")],
        {"donate_argnums": (0, 1, 2)},
    )


@program(devices=8)
def ordinary_gpt_tensor_parallel(place: Place) -> Work:
    mesh = place.mesh(data=2, model=4)
    specs = {
        "qkv": P(None, None, "model"),
        "out": P(None, "model", None),
        "up": P(None, None, "model"),
        "down": P(None, "model", None),
    }

    def step(params, tokens):
        loss, grads = jax.value_and_grad(_lm_loss)(params, tokens)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss

    blocks = {name: place.sharded(mesh, (LAYERS, *shape), specs[name]) for name, shape in _SHAPES.items()}
    params = {"embed": place.sharded(mesh, (VOCABULARY, WIDTH), P("model", None)), "blocks": blocks}
    tokens = place.sharded(mesh, (BATCH, LENGTH), P("data"), "int32")
    return Work(step, [params, tokens], {"donate_argnums": (0,)})


@program(devices=8)
def ordinary_data_parallel(place: Place) -> Work:
    mesh = place.mesh(data=8)

    def step(params, tokens):
        grads = jax.grad(_lm_loss)(params, tokens, jnp.float32)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads)

    params = _parameters(lambda shape: place.sharded(mesh, shape, P()))
    tokens = place.sharded(mesh, (BATCH, LENGTH), P("data"), "int32")
    return Work(step, [params, tokens], {"donate_argnums": (0,)})


@program()
def ordinary_decode(place: Place) -> Work:
    def step(params, keys, values, token, at):
        x = params["embed"][token]

        def layer(x, p):
            block, k_cache, v_cache = p
            q, k, v = jnp.split(_norm(x) @ block["qkv"], 3, axis=-1)
            k_cache = lax.dynamic_update_slice(k_cache, k[:, None], (0, at, 0))
            v_cache = lax.dynamic_update_slice(v_cache, v[:, None], (0, at, 0))
            heads = lambda c: c.reshape(*c.shape[:-1], HEADS, -1)  # noqa: E731
            scores = jnp.einsum("bhd,bthd->bht", heads(q), heads(k_cache)) / 8.0
            scores = jnp.where(jnp.arange(k_cache.shape[1]) <= at, scores, -1e9)
            y = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(scores), heads(v_cache)).reshape(x.shape)
            x = x + y @ block["out"]
            return x + jax.nn.gelu(_norm(x) @ block["up"]) @ block["down"], (k_cache, v_cache)

        x, (keys, values) = lax.scan(layer, x, (params["blocks"], keys, values))
        return keys, values, jnp.argmax(x @ params["embed"].T, -1)

    cache = [place.array((LAYERS, BATCH, 2048, WIDTH)) for _ in range(2)]
    arguments = [_parameters(place.array), *cache, place.array((BATCH,), "int32"), place.array((), "int32")]
    return Work(step, arguments, {"donate_argnums": (1, 2)})


@program()
def ordinary_sample_text(place: Place) -> Work:
    def run(params, tokens, key):
        def more(state):
            tokens, at, _ = state
            return (at < 64) & (tokens[:, at - 1] != 0).any()

        def step(state):
            tokens, at, key = state
            x = params["embed"][tokens]
            x = lax.scan(lambda x, p: (_block(x, p), None), x, params["blocks"])[0]
            key, use = jax.random.split(key)
            token = jax.random.categorical(use, x[:, at - 1] @ params["embed"].T)
            return tokens.at[:, at].set(token), at + 1, key

        return lax.while_loop(more, step, (tokens, 1, key))[0]

    return Work(
        run, [_parameters(place.array), place.array((BATCH, 64), "int32"), place.array((2,), "uint32")]
    )


@program()
def ordinary_vit(place: Place) -> Work:
    def run(params, patches, head):
        x = patches.reshape(16, 196, 768) @ params["embed"][:768].astype(jnp.bfloat16)
        blocks = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params["blocks"])
        for i in range(LAYERS):
            x = _block(x, jax.tree.map(lambda p, i=i: p[i], blocks))
        return x.mean(1) @ head

    arguments = [
        _parameters(place.array),
        place.array((16, 14, 14, 768), "bfloat16"),
        place.array((WIDTH, 1000), "bfloat16"),
    ]
    return Work(run, arguments)


@program()
def ordinary_convnet_train(place: Place) -> Work:
    def conv(x, w, stride=1):
        return lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(params, images, labels):
        x = images
        for i, w in enumerate(params["convs"]):
            x = conv(x, w, 2 if i % 2 else 1)
            x = jax.nn.relu((x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5))
        logits = x.mean((1, 2)) @ params["head"]
        return -(jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, 100)).sum(-1).mean()

    def step(params, images, labels):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, images, labels))

    sizes = (3, 64, 128, 128, 256)
    convs = [place.array((3, 3, a, b)) for a, b in itertools.pairwise(sizes)]
    params = {"convs": convs, "head": place.array((256, 100))}
    return Work(step, [params, place.array((32, 64, 64, 3)), place.array((32,), "int32")])


@program()
def ordinary_unet(place: Place) -> Work:
    def conv(x, w):
        return jax.nn.silu(
            lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        )

    def run(ws, x):
        saved = []
        for w in ws[:3]:
            x = conv(x, w)
            saved.append(x)
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
        for w, old in zip(ws[3:], reversed(saved), strict=True):
            x = jax.image.resize(x, (*old.shape[:3], x.shape[-1]), "nearest")
            x = conv(jnp.concatenate([x, old], -1), w)
        return x

    shapes = [
        (3, 3, 4, 64),
        (3, 3, 64, 128),
        (3, 3, 128, 256),
        (3, 3, 512, 128),
        (3, 3, 256, 64),
        (3, 3, 128, 4),
    ]
    return Work(run, [[place.array(s, "bfloat16") for s in shapes], place.array((4, 64, 64, 4), "bfloat16")])


@program(devices=4)
def ordinary_mixture_of_experts(place: Place) -> Work:
    mesh = place.mesh(expert=4)

    @per_device(mesh, (P("expert"), P(None), P("expert"), P("expert")), P("expert"))
    def run(x, router, up, down):
        weights, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
        slots = jax.nn.one_hot(chosen, 8, dtype=x.dtype) * weights[..., None]
        place_of = (jnp.cumsum(slots.sum(1) > 0, axis=0) - 1).astype(jnp.int32)
        dispatch = slots.sum(1)[..., None] * jax.nn.one_hot(place_of, 256, dtype=x.dtype)
        sent = lax.all_to_all(jnp.einsum("tec,td->ecd", dispatch, x), "expert", 0, 1, tiled=True)
        y = jnp.einsum("ecf,efd->ecd", jax.nn.silu(jnp.einsum("ecd,edf->ecf", sent, up)), down)
        back = lax.all_to_all(y, "expert", 1, 0, tiled=True)
        return jnp.einsum("tec,ecd->td", dispatch, back)

    arguments = [
        place.sharded(mesh, (4096, WIDTH), P("expert")),
        place.sharded(mesh, (WIDTH, 8), P(None)),
        place.sharded(mesh, (8, WIDTH, 1024), P("expert")),
        place.sharded(mesh, (8, 1024, WIDTH), P("expert")),
    ]
    return Work(run, arguments)


@program()
def ordinary_lstm(place: Place) -> Work:
    def run(w, u, xs):
        def cell(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w + h @ u, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((32, 256))
        return (lax.scan(cell, (zero, zero), xs)[1] ** 2).mean()

    return Work(
        jax.grad(run, argnums=(0, 1)),
        [place.array((256, 1024)), place.array((256, 1024)), place.array((128, 32, 256))],
    )


@program()
def ordinary_masked_words(place: Place) -> Work:
    def loss(params, tokens, labels):
        x = params["embed"][tokens]
        x = lax.scan(lambda x, p: (_block(x, p), None), x, params["blocks"])[0]
        logs = jax.nn.log_softmax(x @ params["embed"].T)
        return -(logs * jax.nn.one_hot(labels, VOCABULARY)).sum(-1).mean()

    tokens = place.array((BATCH, 128), "int32")
    return Work(jax.grad(loss), [_parameters(place.array), tokens, tokens])


@program()
def ordinary_advantages(place: Place) -> Work:
    def run(rewards, values, dones):
        def back(carry, t):
            reward, value, following, done = t
            delta = reward + 0.99 * following * (1 - done) - value
            carry = delta + 0.99 * 0.95 * (1 - done) * carry
            return carry, carry

        steps = (rewards, values[:-1], values[1:], dones)
        return lax.scan(back, jnp.zeros(64), steps, reverse=True)[1]

    return Work(run, [place.array((2048, 64)), place.array((2049, 64)), place.array((2048, 64))])


@program()
def ordinary_monte_carlo(place: Place) -> Work:
    def potential(x):
        return 0.5 * (x**2).sum() + jnp.logaddexp(x.sum(), 0.0)

    def run(x, key):
        def sample(state, _):
            x, key = state
            key, a, b = jax.random.split(key, 3)
            momentum = jax.random.normal(a, x.shape)

            def leap(_, s):
                q, p = s
                p = p - 0.05 * jax.grad(potential)(q)
                return q + 0.1 * p, p - 0.05 * jax.grad(potential)(q + 0.1 * p)

            q, p = lax.fori_loop(0, 16, leap, (x, momentum))
            change = potential(x) + 0.5 * (momentum**2).sum() - potential(q) - 0.5 * (p**2).sum()
            x = jnp.where(jnp.log(jax.random.uniform(b)) < change, q, x)
            return (x, key), x

        return lax.scan(sample, (x, key), None, length=500)[1]

    return Work(run, [place.array((64,)), place.array((2,), "uint32")])


@program()
def ordinary_kalman(place: Place) -> Work:
    def run(a, c, ys):
        def step(state, y):
            x, p = state
            x, p = a @ x, a @ p @ a.T + 0.1 * jnp.eye(16)
            s = c @ p @ c.T + jnp.eye(8)
            gain = jnp.linalg.solve(s, c @ p).T
            return (x + gain @ (y - c @ x), p - gain @ c @ p), x

        return lax.scan(step, (jnp.zeros(16), jnp.eye(16)), ys)[1]

    return Work(run, [place.array((16, 16)), place.array((8, 16)), place.array((200, 8))])


@program()
def ordinary_heat(place: Place) -> Work:
    def step(_, u):
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return u + 0.1 * (around - 4 * u)

    return Work(lambda u: lax.fori_loop(0, 1000, step, u), [place.array((1024, 1024))])


@program()
def ordinary_graph_network(place: Place) -> Work:
    def run(nodes, w, u, senders, receivers):
        for _ in range(3):
            messages = jax.nn.relu(nodes[senders] @ w)
            nodes = jax.nn.relu(jax.ops.segment_sum(messages, receivers, 10000) + nodes @ u)
        return nodes

    edges = place.array((60000,), "int32")
    return Work(
        run, [place.array((10000, 128)), place.array((128, 128)), place.array((128, 128)), edges, edges]
    )


@program()
def ordinary_gaussian_process(place: Place) -> Work:
    def run(x, y, new):
        def kernel(a, b):
            return jnp.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))

        lower = jnp.linalg.cholesky(kernel(x, x) + 1e-3 * jnp.eye(512))
        alpha = jax.scipy.linalg.cho_solve((lower, True), y)
        return kernel(new, x) @ alpha

    return Work(run, [place.array((512, 8)), place.array((512,)), place.array((128, 8))])


@program()
def ordinary_spectrum(place: Place) -> Work:
    def run(signal, window):
        frames = signal[:, jnp.arange(0, 15000, 256)[:, None] + jnp.arange(512)]
        spectrum = jnp.abs(jnp.fft.rfft(frames * window)) ** 2
        return jnp.log(spectrum.transpose(0, 2, 1) + 1e-6)

    return Work(run, [place.array((32, 16000)), place.array((512,))])


@program()
def ordinary_word_vectors(place: Place) -> Work:
    def step(table, centers, contexts, negatives):
        def loss(table):
            c, o, n = table[centers], table[contexts], table[negatives]
            good = jax.nn.log_sigmoid((c * o).sum(-1))
            return -(good + jax.nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", c, n)).sum(-1)).mean()

        return table - 0.05 * jax.grad(loss)(table)

    words = place.array((4096,), "int32")
    return Work(step, [place.array((50000, 128)), words, words, place.array((4096, 5), "int32")])


@program(devices=4)
def ordinary_pipeline(place: Place) -> Work:
    mesh = place.mesh(stage=4)

    @per_device(mesh, (P("stage"), P(None)), P("stage"))
    def run(w, batches):
        def tick(carry, i):
            out = jnp.tanh(carry @ w[0])
            following = lax.ppermute(out, "stage", ring(4))
            fresh = batches[jnp.minimum(i + 1, 7)]
            return jnp.where(lax.axis_index("stage") == 0, fresh, following), out

        start = lax.pcast(batches[0], "stage", to="varying") if hasattr(lax, "pcast") else batches[0]
        return lax.scan(tick, start, jnp.arange(11))[1]

    return Work(
        run, [place.sharded(mesh, (4, 512, 512), P("stage")), place.sharded(mesh, (8, 64, 512), P(None))]
    )


@program()
def ordinary_diffusion(place: Place) -> Work:
    def run(params, x, key):
        def step(i, state):
            x, key = state
            key, use = jax.random.split(key)
            noise = jnp.tanh(x @ params[0] + i / 50) @ params[1]
            x = 0.99 * x - 0.1 * noise + 0.01 * jax.random.normal(use, x.shape)
            return x, key

        return lax.fori_loop(0, 50, step, (x, key))[0]

    weights = [place.array((1024, 2048)), place.array((2048, 1024))]
    return Work(run, [weights, place.array((256, 1024)), place.array((2,), "uint32")])


@program()
def ordinary_quantized(place: Place) -> Work:
    def run(x, w, scale):
        top = jnp.abs(x).max(-1, keepdims=True) / 127
        q = jnp.round(x / top).astype(jnp.int8)
        y = lax.dot(q, w, preferred_element_type=jnp.int32)
        return y.astype(jnp.float32) * top * scale

    return Work(run, [place.array((512, 1024)), place.array((1024, 2048), "int8"), place.array((2048,))])


@program(devices=4)
def ordinary_sequence_parallel(place: Place) -> Work:
    mesh = place.mesh(model=4)

    @per_device(mesh, (P(None, "model"), P(None, None, "model"), P(None, "model")), P(None, "model"))
    def run(x, ups, downs):
        def layer(x, ws):
            up, down = ws
            whole = lax.all_gather(x, "model", axis=1, tiled=True)
            return x + lax.psum_scatter(
                jax.nn.gelu(whole @ up) @ down, "model", scatter_dimension=1, tiled=True
            ), None

        return lax.scan(layer, x, (ups, downs))[0]

    arguments = [
        place.sharded(mesh, (4, 1024, 512), P(None, "model"), "bfloat16"),
        place.sharded(mesh, (6, 512, 2048), P(None, None, "model"), "bfloat16"),
        place.sharded(mesh, (6, 2048, 512), P(None, "model"), "bfloat16"),
    ]
    return Work(run, arguments)


@program()
def ordinary_least_squares(place: Place) -> Work:
    def run(a, b):
        x, residual, _, values = jnp.linalg.lstsq(a, b)
        return x, residual, values, jnp.linalg.eigh(a.T @ a)[0]

    return Work(run, [place.array((400, 48)), place.array((400,))])


@program()
def ordinary_nearest_neighbours(place: Place) -> Work:
    def run(points, queries):
        distances = (queries**2).sum(-1)[:, None] - 2 * queries @ points.T + (points**2).sum(-1)
        return lax.top_k(-distances, 10)

    return Work(run, [place.array((20000, 64)), place.array((512, 64))])


@program()
def ordinary_q_learning(place: Place) -> Work:
    def value(ws, s):
        for w in ws:
            s = jax.nn.relu(s @ w)
        return s

    def step(online, target, states, actions, rewards, following):
        def loss(online):
            q = jnp.take_along_axis(value(online, states), actions[:, None], 1)[:, 0]
            best = value(target, following).max(-1)
            return ((q - rewards - 0.99 * best) ** 2).mean()

        online = jax.tree.map(lambda p, g: p - 1e-3 * g, online, jax.grad(loss)(online))
        target = jax.tree.map(lambda t, p: 0.995 * t + 0.005 * p, target, online)
        return online, target

    def network():
        return [place.array(s) for s in ((128, 1024), (1024, 1024), (1024, 18))]

    batch = [
        place.array((256, 128)),
        place.array((256,), "int32"),
        place.array((256,)),
        place.array((256, 128)),
    ]
    return Work(step, [network(), network(), *batch])
