"""The third sample, serving: decoding with caches, sampling, retrieval, encoders, detection."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

from corpus.programs.registry import Place, Work, program
from corpus.programs.third_support import bf16, f32, here, rms_norm, rope


@program()
def third_paged_decode(place: Place) -> Work:
    """One word for each of sixty-four requests: cache in pages, a table of pages for every request."""
    width, heads, groups, size, layers, pages, page = 2048, 16, 4, 128, 4, 4096, 16
    params = {
        "n": bf16(layers, 2, width),
        "q": bf16(layers, width, heads, size),
        "kv": bf16(layers, width, 2, groups, size),
        "o": bf16(layers, heads, size, width),
        "up": bf16(layers, width, 2, 5632),
        "down": bf16(layers, 5632, width),
    }

    def decode(params, embed, cache, table, lengths, token):
        x = embed[token]
        where = jnp.take_along_axis(table, (lengths // page)[:, None], 1)[:, 0]

        def layer(x, both):
            p, cache = both
            y = rms_norm(x, p["n"][0])
            q = rope(jnp.einsum("bd,dhk->bhk", y, p["q"])[:, None], lengths[:, None])[:, 0]
            k, v = jnp.moveaxis(jnp.einsum("bd,dcgk->bcgk", y, p["kv"]), 1, 0)
            k = rope(k[:, None], lengths[:, None])[:, 0]
            cache = cache.at[:, where, lengths % page].set(jnp.stack([k, v]))
            keys, values = cache[:, table].reshape(2, len(token), -1, groups, size)
            q = q.reshape(-1, groups, heads // groups, size)
            s = jnp.einsum("bgrk,bsgk->bgrs", q, keys).astype(jnp.float32) / math.sqrt(size)
            seen = jnp.arange(keys.shape[1]) <= lengths[:, None]
            a = jax.nn.softmax(jnp.where(seen[:, None, None], s, -1e30)).astype(x.dtype)
            y = jnp.einsum("bgrs,bsgk->bgrk", a, values).reshape(-1, heads, size)
            x = x + jnp.einsum("bhk,hkd->bd", y, p["o"])
            g, u = jnp.moveaxis(jnp.einsum("bd,dcf->bcf", rms_norm(x, p["n"][1]), p["up"]), 1, 0)
            return x + (jax.nn.silu(g) * u) @ p["down"], cache

        x, cache = lax.scan(layer, x, (params, cache))
        return (x @ embed.T).astype(jnp.float32), cache

    cache = place.array((layers, 2, pages, page, groups, size), "bfloat16")
    ids = place.array((64,), "int32")
    arguments = [here(place, params), place.array((32000, width), "bfloat16"), cache]
    return Work(decode, [*arguments, place.array((64, 64), "int32"), ids, ids], {"donate_argnums": (2,)})


@program()
def third_prefill(place: Place) -> Work:
    """A prompt of eight thousand words: attention block by block with running maxima, the cache is returned."""
    width, heads, size, layers, block = 2048, 16, 128, 4, 512
    params = {"qkv": bf16(layers, width, 3, heads, size), "o": bf16(layers, heads, size, width)}
    params |= {
        "n": bf16(layers, 2, width),
        "up": bf16(layers, width, 8192),
        "down": bf16(layers, 8192, width),
    }

    def attend(q, k, v):
        length = q.shape[0]

        def row(i):
            mine = lax.dynamic_slice_in_dim(q, i * block, block)

            def column(carry, j):
                top, total, out = carry
                ks, vs = (lax.dynamic_slice_in_dim(a, j * block, block) for a in (k, v))
                s = jnp.einsum("qhk,shk->hqs", mine, ks).astype(jnp.float32) / math.sqrt(size)
                late = (i * block + jnp.arange(block))[:, None] >= j * block + jnp.arange(block)
                s = jnp.where(late, s, -1e30)
                new = jnp.maximum(top, s.max(-1))
                p, scale = jnp.exp(s - new[..., None]), jnp.exp(top - new)
                out = out * scale[..., None] + jnp.einsum("hqs,shk->hqk", p.astype(v.dtype), vs)
                return (new, total * scale + p.sum(-1), out), None

            start = (
                jnp.full((heads, block), -1e30),
                jnp.zeros((heads, block)),
                jnp.zeros((heads, block, size)),
            )
            (_, total, out), _ = lax.scan(column, start, jnp.arange(length // block))
            return (out / total[..., None]).astype(q.dtype).swapaxes(0, 1)

        return lax.map(row, jnp.arange(length // block)).reshape(length, heads, size)

    def prefill(params, embed, tokens):
        def layer(x, p):
            q, k, v = jnp.moveaxis(jnp.einsum("ld,dchk->lchk", rms_norm(x, p["n"][0]), p["qkv"]), 1, 0)
            x = x + jnp.einsum("lhk,hkd->ld", attend(q, k, v), p["o"])
            return x + jax.nn.gelu(rms_norm(x, p["n"][1]) @ p["up"]) @ p["down"], (k, v)

        x, cache = lax.scan(layer, embed[tokens], params)
        return x[-1] @ embed.T, cache

    return Work(
        prefill, [here(place, params), place.array((32000, width), "bfloat16"), place.array((8192,), "int32")]
    )


@program()
def third_nucleus_generate(place: Place) -> Work:
    """Recurrent decoding of 256 words: sorted probabilities cut at 0.9, temperature, a penalty for repeats."""
    width, vocab = 1024, 32000
    params = {"embed": bf16(vocab, width), "mix": bf16(4, width, 2 * width), "out": bf16(4, 2 * width, width)}

    def generate(params, state, token, key):
        def word(carry, key):
            state, token, seen = carry
            x = params["embed"][token]
            new = []
            for i in range(4):
                state_i = 0.9 * state[i] + 0.1 * x
                x = x + jax.nn.gelu((x + state_i) @ params["mix"][i]) @ params["out"][i]
                new.append(state_i)
            logits = (x @ params["embed"].T).astype(jnp.float32) / 0.8
            logits = jnp.where(seen > 0, logits - 1.2, logits)
            order = jnp.argsort(-logits, -1)
            ranked = jnp.take_along_axis(logits, order, -1)
            mass = jnp.cumsum(jax.nn.softmax(ranked), -1)
            ranked = jnp.where(mass - jax.nn.softmax(ranked) > 0.9, -jnp.inf, ranked)
            pick = jax.random.categorical(key, ranked)
            token = jnp.take_along_axis(order, pick[:, None], -1)[:, 0]
            seen = seen.at[jnp.arange(len(token)), token].add(1)
            return (jnp.stack(new), token, seen), token

        seen = jnp.zeros((len(token), vocab), jnp.int32)
        _, words = lax.scan(word, (state, token, seen), jax.random.split(key, 256))
        return words.T

    data = [place.array((4, 16, width), "bfloat16"), place.array((16,), "int32"), place.array((2,), "uint32")]
    return Work(generate, [here(place, params), *data])


@program()
def third_eight_bit_cache(place: Place) -> Work:
    """A word against a cache of eight bits with a scale for each key; the weights are eight bits too."""
    rows, length, heads, size, width = 32, 4096, 16, 128, 2048
    weights = {"qkv": (jax.ShapeDtypeStruct((width, 3 * width), jnp.int8), f32(3 * width))}
    weights["o"] = (jax.ShapeDtypeStruct((width, width), jnp.int8), f32(width))

    def narrow(x):
        scale = jnp.abs(x).max(-1, keepdims=True) / 127 + 1e-8
        return jnp.round(x / scale).astype(jnp.int8), scale

    def decode(weights, keys, values, kscale, vscale, x, at):
        qkv = (x @ weights["qkv"][0].astype(jnp.float32)) * weights["qkv"][1]
        q, k, v = (y.reshape(rows, heads, size) for y in jnp.split(qkv, 3, -1))
        (k, ks), (v, vs) = narrow(k), narrow(v)
        keys, values = keys.at[:, at].set(k), values.at[:, at].set(v)
        kscale, vscale = kscale.at[:, at].set(ks[..., 0]), vscale.at[:, at].set(vs[..., 0])
        s = jnp.einsum("bhk,bshk->bsh", q, keys.astype(jnp.float32)) * kscale / math.sqrt(size)
        p = jax.nn.softmax(jnp.where(jnp.arange(length)[:, None] <= at, s, -1e30), 1)
        out = jnp.einsum("bsh,bshk->bhk", p * vscale, values.astype(jnp.float32)).reshape(rows, width)
        x = x + (out @ weights["o"][0].astype(jnp.float32)) * weights["o"][1]
        return x, keys, values, kscale, vscale

    cache, scale = place.array((rows, length, heads, size), "int8"), place.array((rows, length, heads))
    arguments = [here(place, weights), cache, cache, scale, scale, place.array((rows, width))]
    return Work(decode, [*arguments, place.array((), "int32")], {"donate_argnums": (1, 2, 3, 4)})


@program()
def third_retrieve(place: Place) -> Work:
    """The best hundred of two million vectors for each of 256 questions, in blocks, merged as it goes."""

    def search(questions, documents):
        block = 65536

        def part(carry, i):
            best, index = carry
            rows = lax.dynamic_slice_in_dim(documents, i * block, block)
            score = (questions @ rows.T).astype(jnp.float32)
            score, place = lax.top_k(jnp.concatenate([best, score], 1), 100)
            known = jnp.concatenate([index, jnp.broadcast_to(i * block + jnp.arange(block), (256, block))], 1)
            return (score, jnp.take_along_axis(known, place, 1)), None

        start = (jnp.full((256, 100), -jnp.inf), jnp.zeros((256, 100), jnp.int32))
        return lax.scan(part, start, jnp.arange(32))[0]

    return Work(search, [place.array((256, 256), "bfloat16"), place.array((2097152, 256), "bfloat16")])


@program()
def third_sound_encoder(place: Place) -> Work:
    """Speech to features: two convolutions in time, six layers, serving in bf16."""
    width = 768
    params = {
        "c1": bf16(3, 80, width),
        "c2": bf16(3, width, width),
        "pos": bf16(1500, width),
        "layers": {
            "qkv": bf16(6, width, 3, 12, 64),
            "o": bf16(6, 12, 64, width),
            "up": bf16(6, width, 3072),
            "down": bf16(6, 3072, width),
            "n": bf16(6, 2, width),
        },
    }

    def encode(params, mel):
        def conv(x, w, stride):
            return lax.conv_general_dilated(x, w, (stride,), "SAME", dimension_numbers=("NHC", "HIO", "NHC"))

        x = jax.nn.gelu(conv(mel.swapaxes(1, 2), params["c1"], 1))
        x = jax.nn.gelu(conv(x, params["c2"], 2)) + params["pos"]

        def layer(x, p):
            q, k, v = jnp.moveaxis(jnp.einsum("bld,dchk->blchk", rms_norm(x, p["n"][0]), p["qkv"]), 2, 0)
            x = x + jnp.einsum("blhk,hkd->bld", jax.nn.dot_product_attention(q, k, v), p["o"])
            return x + jax.nn.gelu(rms_norm(x, p["n"][1]) @ p["up"]) @ p["down"], None

        return lax.scan(layer, x, params["layers"])[0]

    return Work(encode, [here(place, params), place.array((8, 80, 3000), "bfloat16")])


@program()
def third_boxes(place: Place) -> Work:
    """Detections of a batch: decoded against anchors, the best five hundred, soft suppression one by one."""

    def detect(scores, deltas, anchors):
        size = anchors[:, 2:] - anchors[:, :2]
        middle = anchors[:, :2] + size / 2
        at, wide = deltas[..., :2] * size + middle, jnp.exp(jnp.clip(deltas[..., 2:], -4, 4)) * size
        boxes = jnp.concatenate([at - wide / 2, at + wide / 2], -1)

        def one(scores, boxes):
            best, index = lax.top_k(scores.max(-1), 500)
            kind, boxes = scores[index].argmax(-1), boxes[index]
            area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
            low = jnp.maximum(boxes[:, None, :2], boxes[None, :, :2])
            high = jnp.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
            common = jnp.maximum(high - low, 0).prod(-1)
            overlap = common / (area[:, None] + area - common + 1e-9) * (kind[:, None] == kind)

            def pick(left, _):
                i = left.argmax()
                return (left * jnp.exp(-jnp.square(overlap[i]) / 0.5)).at[i].set(-1.0), (i, left[i])

            _, (order, score) = lax.scan(pick, best, None, length=100)
            return boxes[order], kind[order], score

        return jax.vmap(one)(jax.nn.sigmoid(scores), boxes)

    data = [place.array((16, 49104, 90)), place.array((16, 49104, 4)), place.array((49104, 4))]
    return Work(detect, data)
