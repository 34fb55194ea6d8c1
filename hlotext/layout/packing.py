"""Narrow elements in bytes: with `E(n)`, n < 8, several share a byte, the first in the low bits.

Measured for 4 bits (constants of TPU programs, `bitcast-convert` on CPU); 1 and 2 bits are taken to follow
the same order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def pack(values: Bytes, bits: int) -> Bytes:
    """Packs elements, stored one per byte in its low bits, into `ceil(len * bits / 8)` bytes. Unused bits of the last
    byte are 0.
    """
    if bits == 1:
        return np.packbits(values & 1, bitorder="little")
    if 8 % bits:
        # 6 and other widths that cross bytes: by way of single bits.
        places = np.arange(bits, dtype=np.uint8)
        return np.packbits((values[:, None] >> places) & 1, axis=None, bitorder="little")
    in_byte = 8 // bits
    result = np.zeros(-(-len(values) // in_byte), np.uint8)
    for place in range(in_byte):
        part = values[place::in_byte] & ((1 << bits) - 1)
        result[: len(part)] |= part << (place * bits)
    return result


def unpack(data: Bytes, bits: int, count: int) -> Bytes:
    """Unpacks the first `count` elements, one per byte in its low bits. Inverse of `pack`."""
    if bits == 1:
        return np.unpackbits(data, count=count, bitorder="little")
    if 8 % bits:
        single = np.unpackbits(data, count=count * bits, bitorder="little").reshape(count, bits)
        return np.asarray(single @ (1 << np.arange(bits)), np.uint8)
    in_byte = 8 // bits
    result = np.empty(count, np.uint8)
    for place in range(in_byte):
        part = result[place::in_byte]
        part[...] = (data[: len(part)] >> (place * bits)) & ((1 << bits) - 1)
    return result
