"""Fingerprints of programs, independent of names, ids, metadata, tables of files and module numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import attrs

import hlotext as hlo
from hlotext.analysis.communication import KINDS
from hlotext.analysis.devices import devices_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.print_options import PrintOptions

_OPTIONS = attrs.evolve(
    PrintOptions.module_fingerprint(), print_only_essential_constants=False, print_large_constants=True
)
"""XLA's fingerprint, with every constant: a learning rate is one."""
_WITHOUT_MEANING = traits.PROVENANCE | {"original_value", "stack_frame_id"}
_GROUPS = ("replica_groups", "source_target_pairs", "channel_id")


_EXACT = attrs.evolve(PrintOptions(), print_metadata=False, print_large_constants=True)


def fingerprint(module: Module, *, with_names: bool = False) -> str:
    """Equal for modules that differ in names, ids, metadata and tables alone; channels and orders count.

    `with_names` the names inside the module count too.
    """
    return _hash(module.to_text(_EXACT if with_names else _OPTIONS))


@attrs.frozen
class Collective:
    """A collective as its partners on other devices must have it."""

    instruction: str
    kind: str
    shape: str
    groups: tuple[str, ...]
    """Groups or pairs, and the channel."""

    @property
    def meeting(self) -> tuple[str, str, tuple[str, ...]]:
        """All but the name, which devices do not exchange."""
        return self.kind, self.shape, self.groups


def collective_order(module: Module) -> tuple[Collective, ...]:
    """The collectives in the order in which a device executes them, inside asynchronous wrappers, fusions, calls and loops.

    Each computation counts at its first call; later calls execute the same collectives in the same order.
    """
    return tuple(_collective(i) for i in _walk(module.entry) if i.opcode in KINDS)


def _walk(entry: Computation) -> Iterator[Instruction]:
    seen = {entry}
    stack = [iter(entry.instructions)]
    while stack:
        instruction = next(stack[-1], None)
        if instruction is None:
            stack.pop()
            continue
        yield instruction
        for callee in reversed(instruction.called_computations):
            if callee not in seen:
                seen.add(callee)
                stack.append(iter(callee.instructions))


def _collective(instruction: Instruction) -> Collective:
    attributes = instruction.attributes
    groups = tuple(f"{name}={attributes[name]}" for name in _GROUPS if name in attributes)
    shape = str(instruction.shape) if instruction.shape is not None else ""
    return Collective(instruction.name, KINDS[instruction.opcode], shape, groups)


def first_difference(old: Module, new: Module) -> tuple[Instruction | None, Instruction | None]:
    """The first instructions of the two entries that differ, in the order of the texts; None after the end of one."""
    ours, theirs = _Signatures(), _Signatures()
    for one, other in zip(old.entry.instructions, new.entry.instructions, strict=False):
        if ours.of(one) != theirs.of(other):
            return one, other
    first, second = list(old.entry.instructions), list(new.entry.instructions)
    least = min(len(first), len(second))
    return next(iter(first[least:]), None), next(iter(second[least:]), None)


class _Signatures:
    """Signature of an instruction without names: operands by position."""

    def __init__(self) -> None:
        self._places: dict[Computation, dict[Instruction, int]] = {}
        self._computations: dict[Computation, str] = {}

    def of(self, instruction: Instruction) -> str:
        computation = instruction.computation
        places = self._places_in(computation) if computation is not None else {}
        parts: list[object] = [instruction.opcode, instruction.shape]
        parts += [places.get(operand, -1) for operand in instruction.operands]
        parts += [places.get(other, -1) for other in instruction.control_predecessors]
        if instruction.opcode == "constant":
            parts.append(instruction.literal)
        if instruction.opcode == "parameter":
            parts.append(instruction.parameter_number)
        for name, value in sorted(instruction.attributes.items()):
            if name not in _WITHOUT_MEANING and name != "control-predecessors":
                parts.append(f"{name}={self._value(value)}")
        return _hash("\x1f".join(map(str, parts)))

    def _value(self, value: object) -> str:
        if isinstance(value, Computation):
            return self._computation(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return ",".join(map(self._value, value))
        return str(value)

    def _computation(self, computation: Computation) -> str:
        pending = [computation]
        while pending:
            one = pending[-1]
            missing = [c for i in one for c in i.called_computations if c not in self._computations]
            if missing and one not in self._computations:
                pending += missing
                continue
            if one not in self._computations:
                self._computations[one] = _hash("\n".join(map(self.of, one.instructions)))
            pending.pop()
        return self._computations[computation]

    def _places_in(self, computation: Computation) -> dict[Instruction, int]:
        found = self._places.get(computation)
        if found is None:
            found = {instruction: place for place, instruction in enumerate(computation.instructions)}
            self._places[computation] = found
        return found


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def is_for_one_device(module: hlo.Module) -> bool:
    """True if one device runs it, and meets no other. XLA does not print counts of one."""
    return devices_of(module).total in (1, None) and not collective_order(module)
