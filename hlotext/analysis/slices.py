"""Collectives between slices, which the TPU compiler takes apart into transfers of the megascale runtime.

Each is a `send` and a `recv` to and from the host with frontend attributes that say what they carry out; the same rendezvous
name ties them together. XLA does not document the attributes; what is read here was seen in what it compiles.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.analysis.sizes import total_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits

_HANDLER, _RUNTIME = "_xla_host_transfer_handler_name", "xla_megascale_runtime"
_TYPE, _RENDEZVOUS = "_xla_megascale_transfer_type", "_xla_host_transfer_rendezvous"
TARGET = "_xla_megascale_target"
"""The frontend attribute that names slices and devices, such as `{1,2}x{0:3}`. Its form is not documented."""


def transfer_type(instruction: Instruction) -> str | None:
    """Returns the collective that a transfer between slices implements, such as `all-gather`; None for other
    instructions.
    """
    attributes = instruction.frontend_attributes
    kind = attributes.get(_TYPE)
    if kind is None or attributes.get(_HANDLER, _RUNTIME) != _RUNTIME:
        return None
    return kind.lower().replace("_", "-")


def dcn_bytes(kind: str, sent: int, slices: int | None) -> int | None:
    """Returns the bytes that a device sends to other slices out of the `sent` operand bytes, or None if this depends on
    an unknown number of slices.

    The operand of a reduce-scatter has one part per slice, including the device's own. For other unknown kinds, all
    bytes count.
    """
    if slices is None:
        return None if kind in _SHARED else sent
    if kind == "all-gather":
        return sent * (slices - 1)
    if kind in _SHARED:
        return sent * (slices - 1) * traits.WIRE_RULES[kind].rounds // slices
    return sent


_SHARED = frozenset(
    kind for kind, rule in traits.WIRE_RULES.items() if rule.is_shared and not rule.is_at_most
)


class Slices:
    """The transfers between slices of a module (Megascale): send/recv pairs, and the number of slices."""

    def __init__(self, transfers: Iterable[Instruction]) -> None:
        sends: dict[tuple[str, str], Instruction] = {}
        recvs: dict[tuple[str, str], Instruction] = {}
        for instruction in transfers:
            kind = transfer_type(instruction)
            if kind is None:
                continue
            key = kind, instruction.frontend_attributes.get(_RENDEZVOUS, instruction.name)
            (sends if instruction.opcode == "send" else recvs).setdefault(key, instruction)
        self.received: frozenset[Instruction] = frozenset(recvs[key] for key in recvs.keys() & sends.keys())
        """Every recv that belongs to a send."""
        self._answers = {sends[key]: recvs[key] for key in recvs.keys() & sends.keys()}
        counts = {count for send in self._answers if (count := self._own_count(send)) is not None}
        self._common = counts.pop() if len(counts) == 1 else None

    def result_bytes(self, send: Instruction) -> int:
        """Returns the bytes received in answer to a send; 0 if there is no matching recv."""
        answer = self._answers.get(send)
        return _data_bytes(answer) if answer is not None else 0

    def count(self, send: Instruction) -> int | None:
        """Returns the number of slices, from the sizes of the transfer or else of all transfers, or None if unknown."""
        own = self._own_count(send)
        return own if own is not None else self._common

    def _own_count(self, send: Instruction) -> int | None:
        answer, kind = self._answers.get(send), transfer_type(send)
        if answer is None:
            return None
        sent, received = _data_bytes(send), _data_bytes(answer)
        few, many = (sent, received) if kind == "all-gather" else (received, sent)
        if kind not in ("all-gather", "reduce-scatter") or not few or many % few:
            return None
        return many // few


def _data_bytes(transfer: Instruction) -> int:
    """Bytes of what a send takes or a recv gives, without context and token."""
    if transfer.opcode == "send":
        return total_of(transfer.operands[0].shape).unpadded_bytes if transfer.operands else 0
    shape = transfer.shape
    return total_of(
        shape.tuple_shapes[0] if shape is not None and shape.tuple_shapes else shape
    ).unpadded_bytes
