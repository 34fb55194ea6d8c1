"""The third sample, acting and choosing: agents that learn, games that are searched, tags and examples that are picked."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import adamw, cross_entropy, f32, here, moments, sgd


def _mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ params[-1][0] + params[-1][1]


def _sizes(*sizes):
    return [(f32(a, b), f32(b)) for a, b in itertools.pairwise(sizes)]


@program()
def third_actor_critic_step(place: Place) -> Work:
    """Soft actor and critic: two critics, slow copies, temperature; a class holds it all, nothing is donated."""
    nets = {"actor": _sizes(376, 256, 256, 34), "critics": [_sizes(393, 256, 256, 1)] * 2, "log_alpha": f32()}

    def act(actor, seen, key):
        mean, spread = jnp.split(_mlp(actor, seen), 2, -1)
        spread = jnp.exp(jnp.clip(spread, -20, 2))
        raw = mean + spread * jax.random.normal(key, mean.shape)
        logp = (
            -0.5 * jnp.square((raw - mean) / spread)
            - jnp.log(spread)
            - jnp.log(1 - jnp.tanh(raw) ** 2 + 1e-6)
        )
        return jnp.tanh(raw), logp.sum(-1)

    def value(critics, seen, action):
        x = jnp.concatenate([seen, action], -1)
        return jnp.minimum(*(_mlp(c, x)[:, 0] for c in critics))

    def update(nets, slow, opt, batch, key):
        k1, k2 = jax.random.split(key)
        action, logp = act(nets["actor"], batch["next"], k1)
        alpha = jnp.exp(nets["log_alpha"])
        goal = batch["reward"] + 0.99 * batch["alive"] * (value(slow, batch["next"], action) - alpha * logp)

        def loss(nets):
            x = jnp.concatenate([batch["seen"], batch["action"]], -1)
            critic = sum(jnp.square(_mlp(c, x)[:, 0] - goal).mean() for c in nets["critics"])
            action, logp = act(nets["actor"], batch["seen"], k2)
            frozen = jax.tree.map(lax.stop_gradient, nets["critics"])
            actor = (lax.stop_gradient(alpha) * logp - value(frozen, batch["seen"], action)).mean()
            return critic + actor - (jnp.exp(nets["log_alpha"]) * lax.stop_gradient(logp - 17)).mean()

        grads = jax.grad(loss)(nets)
        nets, opt = adamw(nets, grads, opt, decay=0.0)
        return nets, jax.tree.map(lambda s, c: 0.995 * s + 0.005 * c, slow, nets["critics"]), opt

    batch = {"seen": f32(256, 376), "next": f32(256, 376), "action": f32(256, 17), "reward": f32(256)}
    batch["alive"] = f32(256)
    trees = [nets, nets["critics"], moments(nets), batch]
    return Work(update, [*(here(place, t) for t in trees), place.array((2,), "uint32")])


@program()
def third_off_policy_step(place: Place) -> Work:
    """Learners behind actors: importance weights cut at one, values corrected backwards in time, one update."""
    params = {"torso": _sizes(8 * 8 * 64, 512), "policy": _sizes(512, 18), "value": _sizes(512, 1)}
    params["convs"] = [f32(8, 8, 4, 32), f32(4, 4, 32, 64), f32(3, 3, 64, 64)]

    def net(params, frames):
        x = frames.astype(jnp.float32).reshape(-1, 84, 84, 4) / 255
        for w, stride in zip(params["convs"], (4, 2, 1), strict=True):
            x = lax.conv_general_dilated(
                x, w, (stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x)
        x = jax.image.resize(x, (x.shape[0], 8, 8, 64), "linear").reshape(x.shape[0], -1)
        x = jax.nn.relu(_mlp(params["torso"], x)).reshape(*frames.shape[:2], 512)
        return _mlp(params["policy"], x), _mlp(params["value"], x)[..., 0]

    def step(params, state, frames, actions, rewards, behaviour):
        def loss(params):
            logits, values = net(params, frames)
            logp = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], -1)[..., 0]
            rho = jnp.minimum(jnp.exp(lax.stop_gradient(logp) - behaviour), 1.0)[:-1]
            ahead, now = lax.stop_gradient(values[1:]), lax.stop_gradient(values[:-1])
            delta = rho * (rewards[:-1] + 0.99 * ahead - now)

            def back(later, x):
                later = x[0] + 0.99 * x[1] * later
                return later, later

            _, more = lax.scan(back, jnp.zeros(rewards.shape[1]), (delta, rho), reverse=True)
            goal = now + more
            advantage = rho * (rewards[:-1] + 0.99 * jnp.concatenate([goal[1:], ahead[-1:]]) - now)
            entropy = -(jax.nn.softmax(logits) * jax.nn.log_softmax(logits)).sum(-1).mean()
            return (
                -(advantage * logp[:-1]).mean() + 0.5 * jnp.square(goal - values[:-1]).mean() - 0.01 * entropy
            )

        value, grads = jax.value_and_grad(loss)(params)
        params, state = adamw(params, grads, state, lr=6e-4, decay=0.0)
        return params, state, value

    data = [place.array((20, 32, 84, 84, 4), "uint8"), place.array((20, 32), "int32")]
    arguments = [here(place, params), here(place, moments(params)), *data]
    return Work(step, [*arguments, place.array((20, 32)), place.array((20, 32))], {"donate_argnums": (0, 1)})


@program()
def third_many_carts(place: Place) -> Work:
    """Four thousand carts with poles: a policy acts 500 steps, what ends begins anew, all is recorded."""
    params = _sizes(4, 64, 64, 2)

    def rollout(params, state, key):
        def step(carry, key):
            s, age = carry
            k1, k2 = jax.random.split(key)
            action = jax.random.categorical(k1, _mlp(params, s))
            x, v, a, w = s.T
            force = jnp.where(action == 1, 10.0, -10.0)
            push = (force + 0.05 * w**2 * jnp.sin(a)) / 1.1
            turn = (9.8 * jnp.sin(a) - jnp.cos(a) * push) / (0.5 * (4 / 3 - 0.1 * jnp.cos(a) ** 2 / 1.1))
            speed = push - 0.05 * turn * jnp.cos(a) / 1.1
            new = jnp.stack([x + 0.02 * v, v + 0.02 * speed, a + 0.02 * w, w + 0.02 * turn], 1)
            over = (jnp.abs(new[:, 0]) > 2.4) | (jnp.abs(new[:, 2]) > 0.21) | (age >= 499)
            fresh = jax.random.uniform(k2, new.shape, minval=-0.05, maxval=0.05)
            new = jnp.where(over[:, None], fresh, new)
            return (new, jnp.where(over, 0, age + 1)), (s, action, over)

        return lax.scan(step, state, jax.random.split(key, 500))

    state = (place.array((4096, 4)), place.array((4096,), "int32"))
    return Work(rollout, [here(place, params), state, place.array((2,), "uint32")])


@program()
def third_tree_search(place: Place) -> Work:
    """A search of 128 rounds on 256 boards of tic-tac-toe at once: arrays as trees, random ends of games."""
    lines = jnp.array(
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
    )
    rounds = 128

    def result(board):
        total = board[lines].sum(-1)
        return (total == 3).any() * 1.0 - (total == -3).any() * 1.0

    def playout(board, player, key):
        def move(carry):
            board, player, key = carry
            key, k = jax.random.split(key)
            spot = jax.random.categorical(k, jnp.where(board == 0, 0.0, -jnp.inf))
            return board.at[spot].set(player), -player, key

        def going(carry):
            return (result(carry[0]) == 0) & (carry[0] == 0).any()

        return result(lax.while_loop(going, move, (board, player, key))[0])

    def search(board, key):
        child = jnp.full((rounds + 1, 9), -1)
        visits, worth = jnp.zeros(rounds + 1), jnp.zeros(rounds + 1)

        def one(i, carry):
            child, visits, worth, parent, key = carry
            key, k = jax.random.split(key)

            def descend(now):
                node, board, player, _ = now
                kids = child[node]
                score = jnp.where(kids >= 0, player * worth[kids] / (visits[kids] + 1e-9), 10.0)
                score = score + jnp.where(
                    kids >= 0, jnp.sqrt(2 * jnp.log(visits[node] + 1) / (visits[kids] + 1)), 0
                )
                action = jnp.where(board == 0, score, -jnp.inf).argmax()
                return kids[action], board.at[action].set(player), -player, node * 9 + action

            def inside(now):
                return (now[0] >= 0) & (result(now[1]) == 0) & (now[1] == 0).any()

            leaf, end, player, edge = lax.while_loop(inside, descend, (0, board, 1, 0))
            new = jnp.where(leaf < 0, i + 1, leaf)
            child = child.reshape(-1).at[edge].set(new).reshape(child.shape)
            parent = parent.at[new].set(edge // 9)
            gain = playout(end, player, k)

            def up(now):
                node, visits, worth = now
                return parent[node], visits.at[node].add(1), worth.at[node].add(gain)

            _, visits, worth = lax.while_loop(lambda now: now[0] >= 0, up, (new, visits, worth))
            return child, visits, worth, parent, key

        parent = jnp.full(rounds + 1, -1)
        child, visits, _, _, _ = lax.fori_loop(0, rounds, one, (child, visits, worth, parent, key))
        return jnp.where(child[0] >= 0, visits[child[0]], 0)

    return Work(jax.vmap(search), [place.array((256, 9), "int32"), place.array((256, 2), "uint32")])


@program()
def third_tagging_step(place: Place) -> Work:
    """Tags of words: scores, the partition function by a scan, the best path by another, gradient descent."""
    tags, width = 48, 768
    params = {"w": f32(width, tags), "t": f32(tags, tags)}

    def loss(params, x, y, mask):
        scores = x @ params["w"]

        def forward(alpha, now):
            score, on = now
            new = jax.nn.logsumexp(alpha[:, :, None] + params["t"] + score[:, None], 1)
            return jnp.where(on[:, None], new, alpha), None

        rest = (scores[:, 1:].swapaxes(0, 1), mask[:, 1:].T)
        alpha, _ = lax.scan(forward, scores[:, 0], rest)
        gold = jnp.take_along_axis(scores, y[..., None], -1)[..., 0] * mask
        steps = params["t"][y[:, :-1], y[:, 1:]] * mask[:, 1:]
        return (jax.nn.logsumexp(alpha, -1) - gold.sum(1) - steps.sum(1)).mean(), scores

    def best(params, scores):
        def forward(alpha, score):
            each = alpha[:, :, None] + params["t"]
            return each.max(1) + score, each.argmax(1)

        alpha, back = lax.scan(forward, scores[:, 0], scores[:, 1:].swapaxes(0, 1))

        def trace(tag, pointers):
            tag = jnp.take_along_axis(pointers, tag[:, None], 1)[:, 0]
            return tag, tag

        return lax.scan(trace, alpha.argmax(-1), back, reverse=True)[1]

    def step(params, x, y, mask):
        (value, scores), grads = jax.value_and_grad(loss, has_aux=True)(params, x, y, mask)
        return sgd(params, grads), value, best(params, scores)

    data = [place.array((32, 128, width)), place.array((32, 128), "int32"), place.array((32, 128), "bool")]
    return Work(step, [here(place, params), *data])


@program()
def third_pick_data(place: Place) -> Work:
    """Hard examples first: losses of a large pool by a small net, the worst tenth is drawn, one step on it."""
    params = _sizes(512, 1024, 1024, 100)

    def step(params, x, y, key):
        logits = _mlp(params, x)
        losses = jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, y[:, None], 1)[:, 0]
        noise = jax.random.gumbel(key, losses.shape)
        _, index = lax.top_k(jnp.log(losses + 1e-9) + noise, len(y) // 10)
        value, grads = jax.value_and_grad(lambda p: cross_entropy(_mlp(p, x[index]), y[index]))(params)
        return sgd(params, grads, 0.01), value

    data = [place.array((40960, 512)), place.array((40960,), "int32"), place.array((2,), "uint32")]
    return Work(step, [here(place, params), *data], {"donate_argnums": (0,)})
