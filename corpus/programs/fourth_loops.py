"""The fourth sample, loops and data: simulations, fits, games and signals as scientists write them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program


@program()
def fourth_springs(place: Place) -> Work:
    """A cloth of springs, a thousand small steps, the frame of every tenth kept."""

    def force(x, v):
        f = jnp.zeros_like(x).at[..., 2].add(-9.8)
        for axis in (0, 1):
            gap = jnp.diff(x, axis=axis)
            far = jnp.linalg.norm(gap, axis=-1, keepdims=True)
            pull = 5e3 * (far - 0.01) * gap / far
            pad = [(0, 0)] * 3
            pad[axis] = (0, 1)
            f = f + jnp.pad(pull, pad)
            pad[axis] = (1, 0)
            f = f - jnp.pad(pull, pad)
        return f - 0.1 * v

    def run(x, v):
        def step(carry, _):
            x, v = carry
            v = v + 1e-3 * force(x, v)
            return (x + 1e-3 * v, v), None

        def ten(carry, _):
            carry, _ = lax.scan(step, carry, None, length=10)
            return carry, carry[0]

        return lax.scan(ten, (x, v), None, length=100)[1]

    return Work(run, [place.array((512, 512, 3)), place.array((512, 512, 3))])


@program()
def fourth_reactions(place: Place) -> Work:
    """Stiff chemistry in a hundred thousand cells: implicit steps, a few rounds of Newton in each."""

    def rates(y):
        a, b, c = y
        return jnp.stack([-0.04 * a + 1e4 * b * c, 0.04 * a - 1e4 * b * c - 3e7 * b * b, 3e7 * b * b])

    def cell(y):
        def step(y, dt):
            def newton(_, z):
                jac = jnp.eye(3) - dt * jax.jacfwd(rates)(z)
                return z - jnp.linalg.solve(jac, z - y - dt * rates(z))

            return lax.fori_loop(0, 4, newton, y), None

        return lax.scan(step, y, jnp.logspace(-4, 2, 60))[0]

    return Work(jax.vmap(cell), [place.array((100_000, 3))])


@program()
def fourth_orbits(place: Place) -> Work:
    """Four thousand bodies attract each other; leapfrog, energies recorded, five hundred steps."""

    def pull(x, m):
        apart = x[None] - x[:, None]
        square = jnp.square(apart).sum(-1) + 1e-3
        return jnp.einsum("ij,ijk->ik", m * square**-1.5, apart)

    def run(x, v, m):
        def step(carry, _):
            x, v, a = carry
            v = v + 5e-4 * a
            x = x + 1e-3 * v
            a = pull(x, m)
            v = v + 5e-4 * a
            return (x, v, a), 0.5 * (m * jnp.square(v).sum(-1)).sum()

        (x, v, _), heat = lax.scan(step, (x, v, pull(x, m)), None, length=500)
        return x, v, heat

    return Work(run, [place.array((4096, 3)), place.array((4096, 3)), place.array((4096,))])


@program()
def fourth_epidemic(place: Place) -> Work:
    """A million people meet at random through a year; states, ages of infection, daily counts."""

    def run(state, days, key):
        def day(carry, key):
            state, days = carry
            a, b, c = jax.random.split(key, 3)
            ill = state == 1
            risk = 1 - (1 - 0.03) ** (8 * ill.mean())
            new = (state == 0) & (jax.random.uniform(a, state.shape) < risk)
            well = ill & (days > 5) & (jax.random.uniform(b, state.shape) < 0.2)
            gone = (state == 2) & (jax.random.uniform(c, state.shape) < 0.005)
            state = jnp.where(new, 1, jnp.where(well, 2, jnp.where(gone, 0, state)))
            days = jnp.where(state == 1, days + 1, 0)
            return (state, days), jnp.bincount(state, length=3)

        return lax.scan(day, (state, days), jax.random.split(key, 365))

    people = [place.array((1_000_000,), "int32")] * 2
    return Work(run, [*people, place.array((2,), "uint32")], {"donate_argnums": (0, 1)})


@program()
def fourth_mixture(place: Place) -> Work:
    """Gaussians with full covariances fitted by expectation and maximization until they stay."""

    def fit(x, means):
        k, d = means.shape

        def again(carry):
            means, covs, share, old, _, n = carry
            chol = jnp.linalg.cholesky(covs + 1e-3 * jnp.eye(d))
            apart = x[None] - means[:, None]
            z = jax.vmap(lambda c, a: jax.scipy.linalg.solve_triangular(c, a.T, lower=True))(chol, apart)
            logs = jnp.log(jnp.diagonal(chol, axis1=1, axis2=2)).sum(1)
            logp = jnp.log(share)[:, None] - 0.5 * jnp.square(z).sum(1) - logs[:, None]
            total = jax.nn.logsumexp(logp, 0)
            part = jnp.exp(logp - total)
            mass = part.sum(1)
            means = part @ x / mass[:, None]
            covs = (
                jnp.einsum("kn,nd,ne->kde", part, x, x) / mass[:, None, None]
                - means[:, :, None] * means[:, None]
            )
            return means, covs, mass / len(x), total.mean(), old, n + 1

        start = (means, jnp.tile(jnp.eye(d), (k, 1, 1)), jnp.full(k, 1 / k), -jnp.inf, jnp.inf, 0)
        return lax.while_loop(
            lambda c: (jnp.abs(c[3] - c[4]) > 1e-4) & (c[5] < 200) | (c[5] < 2), again, start
        )

    return Work(fit, [place.array((100_000, 16)), place.array((32, 16))])


@program()
def fourth_quasi_newton(place: Place) -> Work:
    """Logistic regression by a limited memory of ten pairs, steps halved until they are good, a hundred rounds."""

    def fit(x, y, w):
        def loss(w):
            return jax.nn.softplus(-y * (x @ w)).mean() + 1e-4 * jnp.square(w).sum()

        def direction(g, s, t, rho):
            def down(q, now):
                s, t, r = now
                a = r * (s @ q)
                return q - a * t, a

            q, alphas = lax.scan(down, g, (s, t, rho), reverse=True)
            gamma = (s[-1] @ t[-1] + 1e-9) / (t[-1] @ t[-1] + 1e-9)

            def up(q, now):
                s, t, r, a = now
                return q + s * (a - r * (t @ q)), None

            return -lax.scan(up, gamma * q, (s, t, rho, alphas))[0]

        def again(carry, _):
            w, value, g, s, t, rho = carry
            p = direction(g, s, t, rho)

            def worse(c):
                return (c[1] > value + 1e-4 * c[0] * (g @ p)) & (c[0] > 1e-6)

            rate, _ = lax.while_loop(worse, lambda c: (c[0] / 2, loss(w + c[0] / 2 * p)), (1.0, loss(w + p)))
            new = w + rate * p
            value, slope = jax.value_and_grad(loss)(new)
            ds, dt = new - w, slope - g
            s, t = jnp.roll(s, -1, 0).at[-1].set(ds), jnp.roll(t, -1, 0).at[-1].set(dt)
            rho = jnp.roll(rho, -1).at[-1].set(1 / (ds @ dt + 1e-9))
            return (new, value, slope, s, t, rho), value

        value, g = jax.value_and_grad(loss)(w)
        memory = jnp.zeros((10, len(w)))
        return lax.scan(again, (w, value, g, memory, memory, jnp.zeros(10)), None, length=100)

    return Work(fit, [place.array((200_000, 512)), place.array((200_000,)), place.array((512,))])


@program()
def fourth_chains(place: Place) -> Work:
    """Hamiltonian Monte Carlo for a hierarchical model, sixty-four chains, a thousand draws of ten leaps."""

    def log_p(q, y, group):
        mean, spread, each = q[0], q[1], q[2:]
        prior = -0.5 * (mean**2 / 25 + jnp.square(spread)) - 0.5 * jnp.square(each).sum()
        return prior - 0.5 * jnp.square(y - mean - jnp.exp(spread) * each[group]).sum()

    def chain(q, key, y, group):
        slope = jax.grad(log_p)

        def draw(q, key):
            a, b = jax.random.split(key)
            p = jax.random.normal(a, q.shape)

            def leap(carry, _):
                q, p = carry
                p = p + 0.01 * slope(q, y, group)
                q = q + 0.02 * p
                return (q, p + 0.01 * slope(q, y, group)), None

            (new, end), _ = lax.scan(leap, (q, p), None, length=10)
            change = log_p(new, y, group) - log_p(q, y, group) + 0.5 * (p @ p - end @ end)
            q = jnp.where(jnp.log(jax.random.uniform(b)) < change, new, q)
            return q, q

        return lax.scan(draw, q, jax.random.split(key, 1000))[1]

    data = [
        place.array((64, 52)),
        place.array((64, 2), "uint32"),
        place.array((5000,)),
        place.array((5000,), "int32"),
    ]
    return Work(jax.vmap(chain, (0, 0, None, None)), data)


@program()
def fourth_align(place: Place) -> Work:
    """Sequences aligned in pairs with affine gaps, diagonal by diagonal, two hundred and fifty-six pairs at once."""

    def score(a, b, table):
        n = len(a)

        def diagonal(carry, d):
            best, older, gap_a, gap_b = carry
            i = jnp.arange(n)
            j = d - i
            fine = (j >= 0) & (j < n)
            match = table[a[i], b[jnp.clip(j, 0, n - 1)]]
            left, up = best, jnp.concatenate([jnp.zeros(1), best[:-1]])
            gap_a = jnp.maximum(left - 11, gap_a - 1)
            gap_b = jnp.maximum(up - 11, jnp.concatenate([jnp.full(1, -1e9), gap_b[:-1]]) - 1)
            corner = jnp.concatenate([jnp.zeros(1), older[:-1]])
            new = jnp.maximum(jnp.maximum(corner + match, 0), jnp.maximum(gap_a, gap_b))
            new = jnp.where(fine, new, 0)
            return (new, best, gap_a, gap_b), new.max()

        zero, low = jnp.zeros(n), jnp.full(n, -1e9)
        return lax.scan(diagonal, (zero, zero, low, low), jnp.arange(2 * n - 1))[1].max()

    data = [place.array((256, 1024), "int32"), place.array((256, 1024), "int32"), place.array((24, 24))]
    return Work(jax.vmap(score, (0, 0, None)), data)


@program()
def fourth_tomograph(place: Place) -> Work:
    """Slices from shadows: projections by rotated pictures, back again by the transpose, forty rounds."""

    def project(x, angles):
        n = x.shape[0]
        grid = jnp.arange(n) - n / 2

        def one(angle):
            c, s = jnp.cos(angle), jnp.sin(angle)
            rows = c * grid[:, None] - s * grid[None] + n / 2
            columns = s * grid[:, None] + c * grid[None] + n / 2
            return jax.scipy.ndimage.map_coordinates(x, [rows, columns], 1).sum(0)

        return lax.map(one, angles)

    def run(shadows, angles):
        x = jnp.zeros((shadows.shape[1],) * 2)
        _, back = jax.vjp(lambda x: project(x, angles), x)

        def again(x, _):
            (step,) = back(shadows - project(x, angles))
            return jnp.maximum(x + 1e-4 * step, 0), None

        return lax.scan(again, x, None, length=40)[0]

    return Work(run, [place.array((180, 512)), place.array((180,))])


@program()
def fourth_filters(place: Place) -> Work:
    """Sound in real time: a bank of second-order filters sample by sample, envelopes, sixteen channels."""

    def run(sound, b, a):
        def sample(carry, x):
            z1, z2, level = carry
            y = b[:, 0, None] * x + z1
            z1 = b[:, 1, None] * x - a[:, 0, None] * y + z2
            z2 = b[:, 2, None] * x - a[:, 1, None] * y
            level = jnp.maximum(jnp.abs(y), 0.999 * level)
            return (z1, z2, level), level

        zero = jnp.zeros((b.shape[0], sound.shape[1]))
        return lax.scan(sample, (zero, zero, zero), sound)[1]

    return Work(run, [place.array((48000, 16)), place.array((32, 3)), place.array((32, 2))])


@program()
def fourth_dictionary(place: Place) -> Work:
    """Patches of pictures as sparse sums: shrinkage with momentum for the codes, one step for the dictionary."""

    def step(patches, atoms):
        gram = atoms @ atoms.T
        rate = 1 / jnp.linalg.norm(gram, 2)

        def again(carry, _):
            code, y, t = carry
            z = y - rate * (y @ gram - patches @ atoms.T)
            new = jnp.sign(z) * jnp.maximum(jnp.abs(z) - 0.1 * rate, 0)
            ahead = (1 + jnp.sqrt(1 + 4 * t * t)) / 2
            return (new, new + (t - 1) / ahead * (new - code), ahead), None

        zero = jnp.zeros((len(patches), len(atoms)))
        (code, _, _), _ = lax.scan(again, (zero, zero, 1.0), None, length=50)
        atoms = atoms - 0.1 * code.T @ (code @ atoms - patches) / len(patches)
        return atoms / jnp.linalg.norm(atoms, axis=1, keepdims=True), code

    return Work(step, [place.array((65536, 144)), place.array((1024, 144))], {"donate_argnums": (1,)})


@program()
def fourth_pack_texts(place: Place) -> Work:
    """Documents put behind one another into rows of fixed length: places, segments, masks for attention."""

    def pack(tokens, lengths):
        ends = jnp.cumsum(lengths)
        begins = ends - lengths
        row, column = begins // 2048, begins % 2048
        flat = jnp.arange(tokens.shape[0] * 512)
        document, inner = flat // 512, flat % 512
        good = inner < lengths[document]
        place = jnp.where(good, begins[document] + inner, 256 * 2048)
        out = (
            jnp.zeros((256 * 2048 + 1,), jnp.int32).at[place].set(tokens.reshape(-1))[:-1].reshape(256, 2048)
        )
        segment = jnp.zeros((256 * 2048 + 1,), jnp.int32).at[place].set(document + 1)[:-1].reshape(256, 2048)
        mask = (segment[:, :, None] == segment[:, None]) & jnp.tril(jnp.ones((2048, 2048), bool))
        return out, segment, jnp.where(mask, 0, -1e9).astype(jnp.bfloat16), row, column

    return Work(pack, [place.array((1000, 512), "int32"), place.array((1000,), "int32")])
