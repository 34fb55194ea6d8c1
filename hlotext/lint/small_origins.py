"""Small arrays that a large one is computed from, so that it need not be kept."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import is_librarys, is_product_call, size_of, sources
from hlotext.lint.rounds import parts_of, rounds_of
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS

_FUSED = {
    Backend.TPU: "a fused kernel (flash_attention of jax.experimental.pallas.ops.tpu.flash_attention)",
    Backend.GPU: "a fused kernel (jax.nn.dot_product_attention(..., implementation='cudnn'), for float16 and bfloat16 "
    "with a head dimension that is a multiple of 8 and at most 128, or 256 on Hopper and later)",
}
"""Attention that never writes its scores, where JAX has it. `dot_product_attention` by default is plain XLA."""
_IN_BLOCKS = "a jax.lax.map over blocks of queries, each under jax.checkpoint"


CHECKPOINT = "jax.checkpoint around the code that computes them:"
"""The repair for arrays that are kept though they need not be; its price follows."""
_SMALLER = 4
"""Minimum ratio of the array to all of them: most activations of a layer are not so much larger than its input."""
_MOST = 32
"""Instructions that are looked through."""
_PASSING = VIEWS | traits.COPY_HALVES


@attrs.frozen
class Origin:
    """The small arrays from which a large one is computed."""

    computed: tuple[Instruction, ...]
    """The operations in between."""
    bytes: int


def without_scores(backend: Backend | None) -> str:
    """Returns text that names an attention which never writes all scores."""
    return _FUSED.get(backend, _IN_BLOCKS) if backend is not None else _IN_BLOCKS


def are_of_attention(origins: Iterable[Origin]) -> bool:
    """True if arrays may be attention scores and their exponentials: a batched matmul computes them."""
    parts = [part for origin in origins for one in origin.computed for part in parts_of(one)]
    return any(part.opcode == "exponential" for part in parts) and any(
        is_product_call(part) or (part.opcode in traits.DOTS and part.attributes.get("lhs_batch_dims"))
        for part in parts
    )


def small_origin(
    made: Instruction, size: int, context: Context, *, through_samplers: bool = False
) -> Origin | None:
    """Returns the origin of an array of `size` bytes; None if it is not much smaller, or may be changed meanwhile.

    With `through_samplers`, random numbers originate in their key, and state changed by other loops counts as given.
    """
    most = size // _SMALLER
    computed: dict[Instruction, None] = {}
    given: dict[Instruction, int] = {}
    pending = [made]
    while pending:
        one = pending.pop()
        before = sources(one, context)
        if through_samplers and _is_changed(one):
            return None
        if one.opcode not in _PASSING and not _is_handed_in(one, before):
            if one in computed:
                continue
            is_sampler = through_samplers and one.opcode == "while" and is_librarys(one)
            is_opaque = bool(one.called_computations) and one.opcode != "fusion" and not is_sampler
            if len(computed) == _MOST or not before or is_opaque:
                return None
            computed[one] = None
        for operand in before:
            shape = operand.shape
            bytes_ = size_of(shape) if shape is not None and shape.is_array else None
            if bytes_ is not None and bytes_ <= most:
                given[operand] = bytes_
            else:
                pending.append(operand)
    total = sum(given.values())
    return Origin(tuple(computed), total) if total <= most else None


def _is_changed(one: Instruction) -> bool:
    """True for an element of a loop's state that iterations change, but for loops of JAX's own functions."""
    if one.opcode != "get-tuple-element" or one.operands[0].opcode != "parameter" or one.computation is None:
        return False
    callers = one.computation.callers
    if len(callers) != 1 or callers[0].opcode != "while" or is_librarys(callers[0]):
        return False
    rounds = rounds_of(callers[0])
    return rounds is None or one.attributes.get("index") not in rounds.passed


def _is_handed_in(one: Instruction, before: list[Instruction]) -> bool:
    """True for a parameter of a fusion, which is an operand of it."""
    return one.opcode == "parameter" and bool(before)
