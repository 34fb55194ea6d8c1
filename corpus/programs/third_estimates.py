"""The third sample, estimates and plans: filters, prices, populations, factors, and data on its way to training."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program


@program(config={"jax_enable_x64": True}, platforms=("cpu", "gpu"))
def third_kalman(place: Place) -> Work:
    """Filter and smoother in double precision for five hundred series, square matrices of eight."""

    def track(ys, a, c, q, r):
        def forward(carry, y):
            m, p = carry
            m, p = a @ m, a @ p @ a.T + q
            s = c @ p @ c.T + r
            gain = jnp.linalg.solve(s, c @ p).T
            new = (m + gain @ (y - c @ m), p - gain @ s @ gain.T)
            return new, (*new, m, p)

        _, (ms, ps, mp, pp) = lax.scan(forward, (jnp.zeros(8), jnp.eye(8)), ys)

        def backward(carry, now):
            m, p = carry
            mf, pf, mn, pn = now
            g = jnp.linalg.solve(pn, a @ pf).T
            return (mf + g @ (m - mn), pf + g @ (p - pn) @ g.T), mf + g @ (m - mn)

        _, smooth = lax.scan(backward, (ms[-1], ps[-1]), (ms[:-1], ps[:-1], mp[1:], pp[1:]), reverse=True)
        return smooth

    sizes = [(500, 1000, 3), (8, 8), (3, 8), (8, 8), (3, 3)]
    return Work(jax.vmap(track, (0, None, None, None, None)), [place.array(s, "float64") for s in sizes])


@program()
def third_options(place: Place) -> Work:
    """The price of an average over 252 days by simulated paths, and how it moves with spot, rate and volatility."""

    def price(spot, rate, vol, key):
        def day(carry, key):
            s, total = carry
            z = jax.random.normal(key, s.shape)
            s = s * jnp.exp((rate - vol**2 / 2) / 252 + vol * jnp.sqrt(1 / 252) * z)
            return (s, total + s), None

        start = jnp.full(262144, spot)
        (_, total), _ = lax.scan(day, (start, jnp.zeros_like(start)), jax.random.split(key, 252))
        return jnp.exp(-rate) * jnp.maximum(total / 252 - 100.0, 0).mean()

    return Work(jax.value_and_grad(price, (0, 1, 2)), [place.array(())] * 3 + [place.array((2,), "uint32")])


@program()
def third_evolve_covariance(place: Place) -> Work:
    """A population that learns its covariance: samples, ranks, updates, three hundred generations of 512."""
    size, many = 128, 512
    best = many // 2
    weights = jnp.log(best + 0.5) - jnp.log(jnp.arange(1, best + 1))
    weights = weights / weights.sum()

    def cost(x):
        return 100 * jnp.square(x[..., 1:] - x[..., :-1] ** 2).sum(-1) + jnp.square(1 - x[..., :-1]).sum(-1)

    def run(mean, key):
        def generation(carry, key):
            mean, sigma, c, path = carry
            values, basis = jnp.linalg.eigh(c)
            y = jax.random.normal(key, (many, size)) * jnp.sqrt(jnp.maximum(values, 1e-12)) @ basis.T
            good = y[jnp.argsort(cost(mean + sigma * y))[:best]]
            step = weights @ good
            path = 0.9 * path + jnp.sqrt(0.19 / jnp.square(weights).sum()) * step
            c = 0.8 * c + 0.05 * jnp.outer(path, path) + 0.15 * (good.T * weights) @ good
            sigma = sigma * jnp.exp(0.1 * (jnp.linalg.norm(path) / math.sqrt(size) - 1))
            return (mean + sigma * step, sigma, c, path), cost(mean)

        start = (mean, 0.5, jnp.eye(size), jnp.zeros(size))
        return lax.scan(generation, start, jax.random.split(key, 300))

    return Work(run, [place.array((size,)), place.array((2,), "uint32")])


@program()
def third_path_planning(place: Place) -> Work:
    """A car is steered: dynamics linearized along the path, gains from the end to the start, ten rounds, 256 cars."""

    def move(s, u):
        _, _, a, v = s
        return s + 0.1 * jnp.array([v * jnp.cos(a), v * jnp.sin(a), v * jnp.tan(u[0]) / 2.5, u[1]])

    def plan(start, goal, controls):
        q, r = jnp.diag(jnp.array([1.0, 1.0, 0.1, 0.1])), 0.1 * jnp.eye(2)

        def roll(controls):
            return lax.scan(lambda s, u: (move(s, u), s), start, controls)

        def again(controls, _):
            last, states = roll(controls)
            a = jax.vmap(jax.jacfwd(move, 0))(states, controls)
            b = jax.vmap(jax.jacfwd(move, 1))(states, controls)

            def back(carry, now):
                vx, vxx = carry
                a, b, s, u = now
                qx, qu = q @ (s - goal) + a.T @ vx, r @ u + b.T @ vx
                qxx, quu, qux = q + a.T @ vxx @ a, r + b.T @ vxx @ b, b.T @ vxx @ a
                both = -jnp.linalg.solve(quu, jnp.concatenate([qu[:, None], qux], 1))
                k, kk = both[:, 0], both[:, 1:]
                return (qx + kk.T @ qu, qxx + kk.T @ qux), (k, kk)

            end = (10 * q @ (last - goal), 10 * q)
            _, (k, kk) = lax.scan(back, end, (a, b, states, controls), reverse=True)

            def ahead(s, now):
                old, u, k, kk = now
                u = u + 0.5 * k + kk @ (s - old)
                return move(s, u), u

            return lax.scan(ahead, start, (states, controls, k, kk))[1], None

        return lax.scan(again, controls, None, length=10)[0]

    return Work(jax.vmap(plan), [place.array((256, 4)), place.array((256, 4)), place.array((256, 50, 2))])


@program()
def third_neighbour_map(place: Place) -> Work:
    """Points in a plane that keep their neighbours: forces between all pairs, gains, momentum, 250 rounds."""

    def run(p, y):
        def step(carry, _):
            y, speed, gain = carry
            square = jnp.square(y[:, None] - y[None]).sum(-1)
            q = (1 / (1 + square)).at[jnp.arange(len(y)), jnp.arange(len(y))].set(0)
            push = (p - q / q.sum()) * q
            grad = 4 * (push.sum(1)[:, None] * y - push @ y)
            gain = jnp.maximum(jnp.where((grad > 0) == (speed > 0), gain * 0.8, gain + 0.2), 0.01)
            speed = 0.8 * speed - 200 * gain * grad
            return (y + speed - (y + speed).mean(0), speed, gain), None

        return lax.scan(step, (y, jnp.zeros_like(y), jnp.ones_like(y)), None, length=250)[0][0]

    return Work(run, [place.array((4096, 4096)), place.array((4096, 2))])


@program()
def third_alternating_factors(place: Place) -> Work:
    """Ratings of films: each user's vector solves a small system, then each film's, twenty times over."""

    def run(ratings, known, films):
        eye = 0.1 * jnp.eye(64)

        def solve(r, m, others):
            gram = jnp.einsum("uf,fa,fb->uab", m, others, others) + eye
            return jnp.linalg.solve(gram, ((r * m) @ others)[..., None])[..., 0]

        def both(films, _):
            users = solve(ratings, known, films)
            films = solve(ratings.T, known.T, users)
            error = jnp.square((ratings - users @ films.T) * known).sum() / known.sum()
            return films, error

        return lax.scan(both, films, None, length=20)

    return Work(run, [place.array((2048, 1024)), place.array((2048, 1024)), place.array((1024, 64))])


@program()
def third_mel_and_masks(place: Place) -> Work:
    """Sound for training: windows, transforms, mel bands, logarithm, normalized, bands and times masked."""

    def prepare(sound, bands, key):
        frames = (sound.shape[1] - 400) // 160 + 1
        index = 160 * jnp.arange(frames)[:, None] + jnp.arange(400)
        window = 0.5 - 0.5 * jnp.cos(2 * math.pi * jnp.arange(400) / 400)
        power = jnp.square(jnp.abs(jnp.fft.rfft(sound[:, index] * window, 512)))
        mel = jnp.log(power @ bands + 1e-6)
        mel = (mel - mel.mean((1, 2), keepdims=True)) / (mel.std((1, 2), keepdims=True) + 1e-5)
        a, b, c, d = (jax.random.uniform(k, (len(sound), 1)) for k in jax.random.split(key, 4))
        band, time = jnp.arange(80), jnp.arange(frames)
        hidden = (band >= a * 60) & (band < a * 60 + b * 20)
        gone = (time >= c * frames * 0.8) & (time < c * frames * 0.8 + d * 100)
        return jnp.where(hidden[:, None] | gone[:, :, None], 0, mel).astype(jnp.bfloat16)

    return Work(prepare, [place.array((64, 240000)), place.array((257, 80)), place.array((2,), "uint32")])


@program()
def third_mixed_pictures(place: Place) -> Work:
    """Pictures for training: cropped by interpolation, flipped, colours turned, mixed in pairs with their labels."""

    def prepare(pictures, labels, key):
        k = jax.random.split(key, 5)
        many = len(pictures)
        x = pictures.astype(jnp.float32) / 255

        def crop(x, corner, size):
            grid = jnp.linspace(0, 1, 224)
            rows, columns = corner[0] + size * grid, corner[1] + size * grid
            where = jnp.meshgrid(rows, columns, indexing="ij")
            take = lambda c: jax.scipy.ndimage.map_coordinates(c, where, 1)  # noqa: E731
            return jax.vmap(take, 2, 2)(x)

        size = jax.random.uniform(k[0], (many,), minval=112, maxval=256)
        x = jax.vmap(crop)(x, jax.random.uniform(k[1], (many, 2)) * (256 - size)[:, None], size)
        x = jnp.where(jax.random.bernoulli(k[2], 0.5, (many, 1, 1, 1)), x[:, :, ::-1], x)
        x = x * jax.random.uniform(k[3], (many, 1, 1, 3), minval=0.8, maxval=1.2)
        part = jax.random.beta(k[4], 0.2, 0.2)
        hot = jax.nn.one_hot(labels, 1000)
        x = (x - jnp.array([0.485, 0.456, 0.406])) / jnp.array([0.229, 0.224, 0.225])
        return (part * x + (1 - part) * x[::-1]).astype(jnp.bfloat16), part * hot + (1 - part) * hot[::-1]

    data = [
        place.array((128, 256, 256, 3), "uint8"),
        place.array((128,), "int32"),
        place.array((2,), "uint32"),
    ]
    return Work(prepare, data)
