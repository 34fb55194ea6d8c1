"""Reasons that the texts before and after optimization give, in words, and what must be said to be unknown."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

import hlotext as hlo
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.partitioner import SUMMING
from hlotext.dumps.collectives.records import HIGH, LOW, UNKNOWN, Confidence, Place, Reason
from hlotext.ir.tables import opcodes

ONLY_NAME = "only an op_name shows it, not the program"
NO_METADATA = "it has no metadata; its operand was followed"
NO_READER = "the operation that needs it was not found"
BY_OPERAND = "the combined collective names no parts; the operand of this one was followed"


def may_sum(place: Place, candidates: Sequence[hlo.Instruction]) -> bool:
    """Returns False for an operation known not to sum, such as a concatenation whose shards the partitioner adds up."""
    if candidates:
        return any(one.opcode in SUMMING for one in candidates)
    opcode = place.label.replace("_", "-")
    return opcode not in opcodes.OPCODES or opcode in SUMMING


_SHARD_MAP = re.compile(r"\bshard_map\b")


def is_in_shard_map(place: Place) -> bool:
    return _SHARD_MAP.search(place.op_name.rpartition("/")[0]) is not None


def unknown_sum(place: Place, axes: tuple[str, ...], what: str = "does not sum") -> Reason:
    """Returns the reason for a partial sum whose cause neither the operation nor its metadata shows."""
    doubt = f"it was created for {place}, which {what}"
    made = Reason(UNKNOWN, None, place, None, axes, None, None, LOW, "", doubts=(doubt,))
    return attrs.evolve(made, because=wording.sentence(made))


def unknown(place: Place | None, axes: tuple[str, ...], what: str = "") -> Reason:
    """Returns the reason for a collective of which nothing is known except the operation in its metadata."""
    doubt = f"its metadata names only {place}, which {what}" if place is not None else "it has no metadata"
    made = Reason(UNKNOWN, None, place, None, axes, None, None, LOW, "", doubts=(doubt,))
    return attrs.evolve(made, because=wording.sentence(made))


def worded(
    cause: str,
    wanted_by: str | None,
    user: Place | None,
    tensor: Place | None,
    axes: tuple[str, ...],
    have: str | None,
    confidence: Confidence,
    want: str | None = None,
    doubt: str = "",
) -> Reason:
    """Returns a reason with its sentence. `doubt` says why it is uncertain; it is dropped if the confidence is high."""
    doubts = (doubt,) if doubt and confidence != HIGH else ()
    made = Reason(cause, wanted_by, user, tensor, axes, have, want, confidence, "", doubts=doubts)
    return attrs.evolve(made, because=wording.sentence(made))
