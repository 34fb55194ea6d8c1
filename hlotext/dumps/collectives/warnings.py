"""The partitioner's own warnings in a log, and the collectives that they speak of."""

from __future__ import annotations

from collections.abc import Iterable

from hlotext import messages
from hlotext.dumps.collectives.records import RESHARD, CollectiveCause, Reason
from hlotext.messages import Message


def warned(causes: Iterable[CollectiveCause], log: str) -> dict[str, tuple[Message, ...]]:
    """Assigns "involuntary full rematerialization" warnings in a log to collectives of the final HLO.

    A warning names the tensor and its two shardings, but not the collective. Warnings that match none are dropped.

    Args:
        causes: The result of `Compilation.collectives`.
        log: The compiler's log, with or without prefixes.

    Returns:
        Warnings by name of the collective.
    """
    found: dict[str, tuple[Message, ...]] = {}
    known = list(causes)
    for message in messages.read(log).of("remat"):
        for one in known:
            if any(_fits(reason, message) for reason in one.reasons):
                found[one.instruction.name] = (*found.get(one.instruction.name, ()), message)
    return found


def _fits(reason: Reason, message: Message) -> bool:
    """True for a resharded tensor with the op_name and the shardings of a warning."""
    if reason.cause != RESHARD or reason.tensor is None:
        return False
    if message.op_name is not None and reason.tensor.op_name != message.op_name:
        return False
    sides = (reason.have_sharding, message.facts.get("from")), (reason.want_sharding, message.facts.get("to"))
    told = [(mine, theirs) for mine, theirs in sides if mine is not None and theirs is not None]
    return bool(told) and all(_plain(mine) == _plain(theirs) for mine, theirs in told)


def _plain(sharding: str) -> str:
    return "".join(sharding.split())
