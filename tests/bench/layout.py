"""How fast layouts are resolved, as ratios to numpy written by hand for the one case.

    python -m tests.bench.layout [ROUNDS]

`to_memory` is compared with the fastest of several ways to write the copy (1.0 is as fast, the aim is 0.8);
`byte_offsets` of 10 million indices with `numpy.ravel_multi_index` of the indices already cut by the tiles
(the aim is 0.5). Every way is checked to give the same bytes. Ways are timed in turn, and the quickest round
of each counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import hlotext as hlo
from hlotext import layout

Array = npt.NDArray[Any]
SIDE = 8192
MANY = 10_000_000
COPY_AIM, OFFSETS_AIM = 0.8, 0.5


def quickest(ways: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds of the quickest round of each way."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


# ---- whole buffers, by hand; `words` is a square array of unsigned integers


def tiles_of(words: Array, rows: int, packing: int) -> Array:
    """The view by tile row, tile column, word row, column, place in the word."""
    side = words.shape[0]
    cut = words.reshape(side // rows, rows // packing, packing, side // 128, 128)
    return cut.transpose(0, 3, 1, 4, 2)


def plain(words: Array, rows: int, packing: int) -> Array:
    """Reshape, transpose, one contiguous copy."""
    return np.ascontiguousarray(tiles_of(words, rows, packing))


def by_lane(words: Array, rows: int, packing: int) -> Array:
    """One copy for each place in the word."""
    view = tiles_of(words, rows, packing)
    result = np.empty(view.shape, words.dtype)
    for lane in range(packing):
        result[..., lane] = view[..., lane]
    return result


def by_lane_in_blocks(words: Array, rows: int, packing: int) -> Array:
    """The same for a few rows of tiles at a time, which stay in the cache."""
    view = tiles_of(words, rows, packing)
    result = np.empty(view.shape, words.dtype)
    for start in range(0, len(view), 8):
        for lane in range(packing):
            result[start : start + 8, ..., lane] = view[start : start + 8, ..., lane]
    return result


def by_shifts(words: Array, rows: int, packing: int) -> Array:
    """The elements of a word put together by shifts, a few rows of tiles at a time."""
    view = tiles_of(words, rows, packing)
    wide = np.dtype(f"u{words.itemsize * packing}")
    result = np.empty(view.shape[:-1], wide)
    for start in range(0, len(view), 8):
        block, out = view[start : start + 8], result[start : start + 8]
        out[...] = block[..., packing - 1]
        for lane in range(packing - 2, -1, -1):
            np.left_shift(out, 8 * words.itemsize, out=out)
            np.bitwise_or(out, block[..., lane], out=out)
    return result


def padded_plain(words: Array, rows: int, packing: int) -> Array:
    """As `plain`, through `numpy.pad`."""
    padding = [(0, -size % unit) for size, unit in zip(words.shape, (rows, 128), strict=True)]
    padded = np.pad(words, padding)
    cut = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // 128, 128)
    return np.ascontiguousarray(cut.transpose(0, 2, 1, 3))


def padded_empty(words: Array, rows: int, packing: int) -> Array:
    """As `padded_plain`, through an array of zeros."""
    padded = np.zeros(
        tuple(-(-size // unit) * unit for size, unit in zip(words.shape, (rows, 128), strict=True)),
        words.dtype,
    )
    padded[: words.shape[0], : words.shape[1]] = words
    cut = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // 128, 128)
    return np.ascontiguousarray(cut.transpose(0, 2, 1, 3))


PACKED_WAYS = (plain, by_lane, by_lane_in_blocks, by_shifts)
COPIES: tuple[tuple[str, int, int, tuple[Callable[[Array, int, int], Array], ...]], ...] = (
    ("bf16[8192,8192]{1,0:T(8,128)(2,1)}", 8, 2, PACKED_WAYS),
    ("s8[8192,8192]{1,0:T(8,128)(4,1)}", 8, 4, PACKED_WAYS),
    ("s8[8192,8192]{1,0:T(32,128)(4,1)}", 32, 4, PACKED_WAYS),
    ("f32[8192,8192]{1,0:T(8,128)}", 8, 1, (plain, by_lane_in_blocks)),
    ("f32[8190,8190]{1,0:T(8,128)}", 8, 1, (padded_plain, padded_empty)),
)


def copies(rounds: int) -> bool:
    """Prints one line for each whole buffer; whether all reach the aim."""
    reached = True
    for text, rows, packing, by_hand in COPIES:
        shape = hlo.parse_shape(text)
        dtype = shape.element_type.dtype
        raw = np.random.default_rng(0).integers(0, 256, (*shape.dimensions, dtype.itemsize), np.uint8)
        array = raw.view(dtype).reshape(shape.dimensions)
        words = array.view(f"u{dtype.itemsize}")
        expected = layout.to_memory(array, shape).tobytes()
        ways: dict[str, Callable[[], Any]] = {"to_memory": lambda a=array, s=shape: layout.to_memory(a, s)}  # type: ignore[misc]
        for way in by_hand:
            assert way(words, rows, packing).tobytes() == expected, (text, way.__name__)
            ways[way.__name__] = lambda w=way, x=words, r=rows, p=packing: w(x, r, p)  # type: ignore[misc]
        reached &= report(text, quickest(ways, rounds), "to_memory", COPY_AIM)
    return reached


# ---- many offsets

INDEXED = (
    "bf16[8192,8192]{1,0:T(8,128)(2,1)}",
    "f32[8192,8192]{1,0:T(8,128)}",
    "s8[64,1024,1024]{2,0,1:T(8,128)(4,1)}",
    "bf16[1000000000]{0:T(1024)(128)(2,1)}",
    "f32[100000,100000]{1,0:T(8,128)}",
    "f32[1000,1000,1000]{2,1,0:T(*,8,128)}",
    "f32[8192,8192]{1,0}",
)


def offsets(rounds: int) -> bool:
    """Prints one line for each shape; whether all reach the aim."""
    reached = True
    for text in INDEXED:
        shape = hlo.parse_shape(text)
        tiled = layout.placement(shape).tiled_dimensions
        rng = np.random.default_rng(0)
        indices = np.stack([rng.integers(0, size, MANY) for size in shape.dimensions], -1)
        cut = tuple(map(np.ascontiguousarray, np.unravel_index(layout.linear_indices(shape, indices), tiled)))
        ways: dict[str, Callable[[], Any]] = {
            "byte_offsets": lambda s=shape, i=indices: layout.byte_offsets(s, i),  # type: ignore[misc]
            "ravel_multi_index": lambda c=cut, t=tiled: np.ravel_multi_index(c, t),  # type: ignore[misc]
        }
        reached &= report(text, quickest(ways, rounds), "byte_offsets", OFFSETS_AIM)
    return reached


def report(text: str, seconds: dict[str, float], ours: str, aim: float) -> bool:
    """Prints the ratio of the quickest other way to ours; whether it reaches the aim."""
    best = min((name for name in seconds if name != ours), key=seconds.__getitem__)
    ratio = seconds[best] / seconds[ours]
    times = f"{1e3 * seconds[ours]:7.1f} ms, {best} {1e3 * seconds[best]:.1f} ms"
    print(f"{ratio:5.2f} (aim {aim})  {ours:12} {text:38} {times}", flush=True)
    return ratio >= aim


def main(rounds: int) -> int:
    """Exit status 0 if every ratio reaches its aim."""
    return 0 if all([copies(rounds), offsets(rounds)]) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
