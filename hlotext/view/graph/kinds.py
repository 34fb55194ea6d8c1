"""Colours of operations by what they do, the same in pictures and on pages."""

from __future__ import annotations

import re

import hlotext as hlo
from hlotext.ir.caches import text_cache
from hlotext.ir.tables import traits

_KINDS = (
    (r"^(dot|convolution|cholesky|triangular-solve|fft|fusion|custom-call|ragged-dot|scaled-dot)$", 0,
     "matmuls, fusions, custom calls"),
    (r"(all-|collective-|reduce-scatter|ragged-all|^send|^recv|partition-id|replica-id)", 5, "communication"),
    (r"^(copy|transpose|reshape|bitcast|slice|dynamic-|concatenate|pad|gather|scatter|broadcast|tuple|get-tuple|iota|reverse)",
     1,
     "copies, slices and other data movement"),
    (r"^(while|conditional|call|async-|map|sort|reduce|reduce-window|select-and-scatter)",
     2, "loops, calls, reductions, sorts"),
    (r"^(parameter|constant|after-all|rng|infeed|outfeed)", 7, "parameters, constants, random numbers"),
    (r"", 4, "other elementwise operations"),
)  # fmt: skip
_PATTERNS = [(re.compile(pattern), colour) for pattern, colour, _ in _KINDS]
KINDS = tuple((colour, text) for _, colour, text in _KINDS)
"""Numbers in the palette, and what they stand for."""


def colour_of(one: hlo.Instruction) -> int:
    """Returns the number of an instruction's color in the palette."""
    return colour_of_opcode(_work(one))


@text_cache(1 << 10)
def colour_of_opcode(opcode: str) -> int:
    """Returns the number of an opcode's color in the palette."""
    return next(colour for pattern, colour in _PATTERNS if pattern.search(opcode))


def _work(one: hlo.Instruction) -> str:
    """The opcode; of an asynchronous operation that of what it wraps, a collective before what is done to its results."""
    body = one.async_wrapped_computation if one.opcode in traits.ASYNC_ROLES else None
    if body is None or not len(body):
        return one.opcode
    sent = (inner.opcode for inner in body if inner.opcode in traits.COMMUNICATION)
    return next(sent, body.root.opcode)
