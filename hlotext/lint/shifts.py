"""Exchanges for shifts along a dimension that is split over devices, and how to write these so that only edges are sent."""

from __future__ import annotations

from hlotext.analysis import Communication
from hlotext.lint.helpers import results
from hlotext.lint.values import VIEWS, Value, consumers

_ROLL = (
    "roll by a static amount (known at trace time): then only the rows that cross to another device are sent"
)
_WRITE = (
    "select by position instead of writing to part of a sharded dimension (jnp.where(mask, new, x), with jnp.roll "
    "for neighbors): then only the rows that cross to another device are sent"
)
_JOIN = (
    ", or, to shift it, use jnp.roll, with jnp.where at the ends, instead of concatenating: then only the rows that "
    "cross to another device are sent"
)
_SPLIT = (
    "split along a dimension that is not sharded: give the parts a dimension of their own, as weights of shape "
    "(d, 3, heads * size) do for queries, keys and values; then each device has its share of every part"
)
_DERIVED = "transpose("
"""Part of an op_name of a backward pass, where JAX joins only the gradients of what `jnp.split` took apart."""

_PASSING = VIEWS | {"slice"}


def shift_remedy(one: Communication, usual: str) -> str:
    """Returns advice for a collective: for a shift how to write it, else the usual advice, extended for a
    concatenation.
    """
    metadata = one.instruction.metadata or one.start.metadata
    path = metadata.op_name.split("/") if metadata is not None else []
    if "jit(_roll_dynamic)" in path:
        return _ROLL
    if _is_written_to(one):
        return _WRITE
    if path[-1:] != ["concatenate"]:
        return usual
    return _SPLIT if any(_DERIVED in part for part in path) else usual + _JOIN


def _is_written_to(one: Communication) -> bool:
    """True if what is gathered is written to in a part of the gathered dimension, or is what is written there."""
    along = one.start.attributes.get("dimensions", ())
    if one.kind != "all-gather" or len(along) != 1:
        return False
    for value in results(one):
        for user, number in consumers(Value(value), _PASSING):
            write = user.instruction
            if write.opcode != "dynamic-update-slice" or number > 1:
                continue
            whole, part = write.shape, write.operands[1].shape
            if whole is None or part is None or not whole.rank == part.rank > along[0]:
                continue
            if part.dimensions[along[0]] < whole.dimensions[along[0]]:
                return True
    return False
