"""The third sample, computing in science: particles, fields, statistics, optimization, pictures and sound."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import f32, here


@program()
def third_cell_lists(place: Place) -> Work:
    """Particles that repel and attract in a periodic box: sorted into cells, forces from 27 cells, velocity Verlet."""
    cells, room, box = 16, 16, 32.0

    def forces(x):
        cell = jnp.floor(x / (box / cells)).astype(jnp.int32) % cells
        flat = (cell[:, 0] * cells + cell[:, 1]) * cells + cell[:, 2]
        order = jnp.argsort(flat)
        first = jnp.searchsorted(flat[order], jnp.arange(cells**3))
        rank = jnp.arange(len(x)) - first[flat[order]]
        table = jnp.full((cells**3, room), -1).at[flat[order], rank].set(order, mode="drop")
        grid = table.reshape(cells, cells, cells, room)
        near = [
            jnp.roll(grid, (a, b, c), (0, 1, 2)) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)
        ]
        others = jnp.stack(near, 3).reshape(cells**3, 27 * room)[flat]
        apart = x[:, None] - x[others]
        apart = apart - box * jnp.round(apart / box)
        square = jnp.square(apart).sum(-1)
        fine = (others >= 0) & (others != jnp.arange(len(x))[:, None]) & (square < 4.0)
        inverse = 1 / jnp.where(fine, square, 1.0) ** 3
        return jnp.where(fine[..., None], 24 * (2 * inverse**2 - inverse)[..., None] * apart, 0).sum(1)

    def run(x, v):
        def step(carry, _):
            x, v, f = carry
            v = v + 0.0025 * f
            x = (x + 0.005 * v) % box
            f = forces(x)
            v = v + 0.0025 * f
            return (x, v, f), 0.5 * jnp.square(v).sum()

        (x, v, _), heat = lax.scan(step, (x, v, forces(x)), None, length=1000)
        return x, v, heat

    return Work(run, [place.array((16384, 3)), place.array((16384, 3))])


@program()
def third_lattice_flow(place: Place) -> Work:
    """Flow around a cylinder: nine directions on a lattice, collide and stream, two thousand steps."""
    ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    cx, cy = jnp.array(ways).T
    weight = jnp.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    back = jnp.array([0, 3, 4, 1, 2, 7, 8, 5, 6])

    def run(f, solid):
        def step(_, f):
            density = f.sum(0)
            ux, uy = jnp.tensordot(cx, f, 1) / density, jnp.tensordot(cy, f, 1) / density
            along = 3 * (cx[:, None, None] * ux + cy[:, None, None] * uy)
            rest = density * weight[:, None, None] * (1 + along + along**2 / 2 - 1.5 * (ux**2 + uy**2))
            out = jnp.where(solid, f[back], f + 1.7 * (rest - f))
            return jnp.stack([jnp.roll(o, way, (1, 0)) for o, way in zip(out, ways, strict=True)])

        return lax.fori_loop(0, 2000, step, f)

    return Work(
        run, [place.array((9, 400, 1600)), place.array((400, 1600), "bool")], {"donate_argnums": (0,)}
    )


@program()
def third_turbulence(place: Place) -> Work:
    """Vorticity in two dimensions by transforms, four stages of Runge and Kutta, a field kept every fifty steps."""
    n = 512
    k = jnp.fft.fftfreq(n) * n
    kx, ky = k[:, None], (jnp.fft.rfftfreq(n) * n)[None]
    square = jnp.where(kx**2 + ky**2 == 0, 1, kx**2 + ky**2)
    keep = (jnp.abs(kx) < n / 3) & (jnp.abs(ky) < n / 3)

    def change(w):
        psi = w / square
        u, v = jnp.fft.irfft2(1j * ky * psi), jnp.fft.irfft2(-1j * kx * psi)
        wx, wy = jnp.fft.irfft2(1j * kx * w), jnp.fft.irfft2(1j * ky * w)
        return jnp.where(keep, -jnp.fft.rfft2(u * wx + v * wy), 0) - 1e-4 * square * w

    def run(field):
        def step(w, _):
            a = change(w)
            b = change(w + 5e-4 * a)
            c = change(w + 5e-4 * b)
            return w + 1e-3 / 6 * (a + 2 * b + 2 * c + change(w + 1e-3 * c)), None

        def fifty(w, _):
            w, _ = lax.scan(step, w, None, length=50)
            return w, jnp.fft.irfft2(w)

        return lax.scan(fifty, jnp.fft.rfft2(field), None, length=20)[1]

    return Work(run, [place.array((n, n))])


@program()
def third_shallow_water(place: Place) -> Work:
    """Waves in a basin: heights and momenta by finite volumes with fluxes of Rusanov, time step from the fastest wave."""

    def flux(q):
        h, u, v = q[0], q[1] / q[0], q[2] / q[0]
        return jnp.stack([q[1], q[1] * u + 4.905 * h * h, q[1] * v]), jnp.abs(u) + jnp.sqrt(9.81 * h)

    def sweep(q):
        f, c = flux(q)
        right = jnp.concatenate([q[..., 1:], q[..., -1:]], -1)
        fr, cr = flux(right)
        side = 0.5 * (f + fr) - 0.5 * jnp.maximum(c, cr) * (right - q)
        return side - jnp.concatenate([side[..., :1], side[..., :-1]], -1)

    def run(q, end):
        def step(carry):
            q, t, n = carry
            speed = jnp.maximum(flux(q)[1].max(), flux(q[jnp.array([0, 2, 1])])[1].max())
            dt = jnp.minimum(0.4 / speed, end - t)
            turned = q[jnp.array([0, 2, 1])].swapaxes(1, 2)
            other = sweep(turned).swapaxes(1, 2)[jnp.array([0, 2, 1])]
            return q - dt * (sweep(q) + other), t + dt, n + 1

        return lax.while_loop(lambda c: c[1] < end, step, (q, 0.0, 0))

    return Work(run, [place.array((3, 1024, 1024)), place.array(())])


@program()
def third_plasma(place: Place) -> Work:
    """A million charges in a grid: scattered to nodes, field by a transform, gathered back, two hundred steps."""
    nodes, length = 1024, 50.0

    def run(x, v):
        k = jnp.fft.rfftfreq(nodes, length / nodes / (2 * math.pi))

        def step(carry, _):
            x, v = carry
            at = x / length * nodes
            low = jnp.floor(at).astype(jnp.int32)
            part = at - low
            rho = jnp.zeros(nodes).at[low % nodes].add(1 - part).at[(low + 1) % nodes].add(part)
            rho = rho * nodes / len(x) - 1
            spectrum = jnp.fft.rfft(rho)
            field = jnp.fft.irfft(jnp.where(k == 0, 0, -1j * spectrum / jnp.where(k == 0, 1, k)))
            force = -(field[low % nodes] * (1 - part) + field[(low + 1) % nodes] * part)
            v = v + 0.1 * force
            return ((x + 0.1 * v) % length, v), jnp.square(field).sum()

        return lax.scan(step, (x, v), None, length=200)

    return Work(run, [place.array((1048576,)), place.array((1048576,))], {"donate_argnums": (0, 1)})


@program()
def third_sphere_march(place: Place) -> Work:
    """A scene as distances: rays march until they are near, normals by gradients, one shadow ray."""

    def distance(p):
        ball = jnp.linalg.norm(p - jnp.array([0.0, 1.0, 0.0])) - 1.0
        ring = jnp.hypot(jnp.hypot(p[0], p[2]) - 2.0, p[1] - 0.4) - 0.3
        return jnp.minimum(jnp.minimum(ball, ring), p[1])

    def march(origin, way):
        def more(c):
            return (c[1] > 1e-3) & (c[0] < 20) & (c[2] < 200)

        return lax.while_loop(
            more,
            lambda c: (c[0] + c[1], distance(origin + (c[0] + c[1]) * way), c[2] + 1),
            (
                0.05,
                distance(origin + 0.05 * way),
                0,
            ),
        )[0]

    def pixel(way, eye, sun):
        far = march(eye, way)
        at = eye + far * way
        normal = jax.grad(distance)(at)
        shade = jnp.maximum(normal @ sun, 0) * (march(at + 1e-2 * normal, sun) > 19)
        return jnp.where(far < 20, 0.1 + 0.9 * shade, 0.5)

    render = jax.vmap(jax.vmap(pixel, (0, None, None)), (0, None, None))
    return Work(render, [place.array((720, 1280, 3)), place.array((3,)), place.array((3,))])


@program()
def third_wave_function(place: Place) -> Work:
    """Electrons of an atom: a net with determinants, local energies by second derivatives, Metropolis in between."""
    params = {"w1": f32(4, 64), "w2": f32(128, 64), "orbit": f32(4, 64, 10), "decay": f32(4, 10)}

    def log_psi(params, x):
        x = x.reshape(10, 3)
        r = jnp.linalg.norm(x, axis=1, keepdims=True)
        h = jnp.tanh(jnp.concatenate([x, r], 1) @ params["w1"])
        h = h + jnp.tanh(jnp.concatenate([h, jnp.broadcast_to(h.mean(0), h.shape)], 1) @ params["w2"])
        orbits = jnp.einsum("ef,dfo->deo", h, params["orbit"]) * jnp.exp(-params["decay"][:, None] * r)
        sign, logs = jnp.linalg.slogdet(orbits)
        top = logs.max()
        return jnp.log(jnp.abs((sign * jnp.exp(logs - top)).sum())) + top

    def energy(params, x):
        slope = jax.grad(log_psi, 1)
        _, second = lax.scan(
            lambda _, e: (None, jax.jvp(lambda y: slope(params, y), (x,), (e,))[1] @ e), None, jnp.eye(30)
        )
        electrons = x.reshape(10, 3)
        pair = jnp.linalg.norm(electrons[:, None] - electrons + jnp.eye(10)[..., None], axis=-1)
        potential = jnp.triu(1 / pair, 1).sum() - (10 / jnp.linalg.norm(electrons, axis=1)).sum()
        return -0.5 * (second.sum() + jnp.square(slope(params, x)).sum()) + potential

    def step(params, walkers, key):
        def move(walkers, key):
            a, b = jax.random.split(key)
            new = walkers + 0.1 * jax.random.normal(a, walkers.shape)
            both = jax.vmap(log_psi, (None, 0))
            ratio = 2 * (both(params, new) - both(params, walkers))
            fine = jnp.log(jax.random.uniform(b, ratio.shape)) < ratio
            return jnp.where(fine[:, None], new, walkers), None

        walkers, _ = lax.scan(move, walkers, jax.random.split(key, 20))
        local = jax.vmap(energy, (None, 0))(params, walkers)
        centred = local - local.mean()
        grads = jax.grad(lambda p: 2 * (centred * jax.vmap(log_psi, (None, 0))(p, walkers)).mean())(params)
        return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads), walkers, local.mean()

    return Work(step, [here(place, params), place.array((512, 30)), place.array((2,), "uint32")])
