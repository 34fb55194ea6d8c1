"""Arguments drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hlotext.execution.errors import NotExecutable
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import TypeKind

if TYPE_CHECKING:
    from hlotext.execution.plain_text import PlainModule

MOST_BYTES = 2 << 30
"""Arguments that are made at most."""


def random_arrays(shapes: Sequence[Shape], seed: int = 0, shift: float = 0.0) -> list[np.ndarray[Any, Any]]:
    """Creates random arrays: small integers, normally distributed floats with mean `shift`, and booleans.

    Equal seeds give equal arrays. Raises NotExecutable for shapes other than static arrays, and for more than 2 GiB in
    total.
    """
    total = sum(shape.element_count * shape.element_type.byte_width for shape in shapes if shape.is_array)
    if total > MOST_BYTES:
        raise NotExecutable(
            f"its arguments take {total >> 20:,} MiB, but random arguments are limited to {MOST_BYTES >> 20:,} MiB; pass "
            "them as files, or run one of its computations"
        )
    generator = np.random.default_rng(seed)
    return [_random(shape, generator, shift) for shape in shapes]


def device_arrays(
    text: PlainModule, seed: int = 0, shift: float = 0.0, types: Sequence[Shape] | None = None
) -> list[np.ndarray[Any, Any]]:
    """Returns random arrays for the parameters of a program; with several devices, the first dimension is the device.

    Devices that hold the same shard of a parameter get equal arrays. `types` are the shapes to draw; None: those that
    the program takes. Raises NotExecutable as `random_arrays` does.
    """
    types = text.taken if types is None else types
    if text.devices == 1:
        return random_arrays(types, seed, shift)
    counts = [max(held) + 1 for held in text.pieces]
    shapes = [shape for shape, count in zip(types, counts, strict=True) for shape in [shape] * count]
    drawn = iter(random_arrays(shapes, seed, shift))
    found = []
    for count, held in zip(counts, text.pieces, strict=True):
        own = [next(drawn) for _ in range(count)]
        found.append(np.stack([own[number] for number in held]))
    return found


def _random(shape: Shape, generator: np.random.Generator, shift: float) -> np.ndarray[Any, Any]:
    if not shape.is_array or not shape.is_static:
        raise NotExecutable(f"a parameter is {shape}, which is not an array")
    type_, sizes = shape.element_type, shape.dimensions
    if type_.kind is TypeKind.PREDICATE:
        return generator.integers(0, 2, sizes).astype(bool)
    if type_.is_integral:
        return generator.integers(0, min(8, 2 ** (type_.bits - 1)), sizes).astype(type_.dtype)
    if type_.is_complex:
        return (generator.normal(size=sizes) + 1j * generator.normal(size=sizes)).astype(type_.dtype)
    return (generator.normal(size=sizes) + shift).astype(type_.dtype)
