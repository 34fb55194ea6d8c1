"""Fingerprints of programs, independent of names, ids, metadata, tables of files and module numbers."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import attrs

import hlotext as hlo
from hlotext.analysis.backend import GPU_FINGERPRINT
from hlotext.analysis.communication import KINDS
from hlotext.analysis.devices import devices_of
from hlotext.analysis.formatting import attribute_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.replica_groups import ReplicaGroups

_OPTIONS = attrs.evolve(
    PrintOptions.module_fingerprint(), print_only_essential_constants=False, print_large_constants=True
)
"""XLA's fingerprint, with every constant: a learning rate is one."""
_WITHOUT_MEANING = traits.PROVENANCE | {"original_value", "stack_frame_id"}
_GROUPS = ("replica_groups", "source_target_pairs", "channel_id")


_EXACT = attrs.evolve(PrintOptions(), print_metadata=False, print_large_constants=True)


NOTATION = ("sharding", "frontend_attributes")
"""Attributes that one release of JAX writes in another form than the next."""
_OWN_HASH = re.compile(rf'{GPU_FINGERPRINT}="[^"]*"')


def fingerprint(module: Module, *, with_names: bool = False) -> str:
    """Returns a hash that is equal for modules that differ only in names, ids, metadata and stack-frame tables.

    Channels and instruction order count. With `with_names`, so do the name of the module and names inside it. XLA's own
    fingerprint in the header is ignored, since it depends on names.
    """
    text = module.to_text(_EXACT if with_names else _OPTIONS)
    header, *rest = text.partition("\n")
    return _hash(_OWN_HASH.sub("", header) + "".join(rest))


def is_same_computation(old: Module, new: Module) -> bool:
    """Returns True if two entries compute equal values, whatever the order of operations and notation of attributes."""
    one, other = (Signatures(NOTATION, by_value=True).of_computation(side.entry) for side in (old, new))
    return one == other


def other_notation(old: Module, new: Module) -> tuple[str, str] | None:
    """Returns the JAX releases that the notation of shardings shows, if they differ between two programs; otherwise
    None.
    """
    one, other = _notation(old), _notation(new)
    return (one, other) if one is not None and other is not None and one != other else None


def _notation(module: Module) -> str | None:
    text = str(module)
    return next((words for words, mark in _FORMS.items() if mark in text), None)


_FORMS = {
    "JAX 0.11 or later, by the form of shardings": "sharding={mesh[",
    "JAX 0.10 or before, by the form of shardings": "xla.sdy.sharding=",
}


@attrs.frozen
class Collective:
    """A collective, with the properties that must agree with its partners on other devices."""

    instruction: str
    kind: str
    shape: str
    groups: tuple[str, ...]
    """Groups or pairs, and the channel, as the text has them."""
    devices: Hashable = None
    """Groups or pairs as lists, which names of mesh axes do not change."""
    place: str | None = None
    """The line of the Python program."""

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place is not None else ""
        return " ".join((self.kind, self.instruction, self.shape, *self.groups)) + where

    @property
    def meeting(self) -> Hashable:
        """All properties except the name, which need not agree between devices."""
        return self.kind, self.shape, self.channel, self.devices

    @property
    def channel(self) -> str | None:
        """The channel id, as in the text, or None if absent."""
        return next((group for group in self.groups if group.startswith("channel_id")), None)


def collective_order(module: Module) -> tuple[Collective, ...]:
    """Returns the collectives in execution order on a device, including those in async wrappers, fusions, calls and
    loops.

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
    groups = tuple(f"{name}={attribute_text(attributes[name])}" for name in _GROUPS if name in attributes)
    shape = str(instruction.shape) if instruction.shape is not None else ""
    return Collective(
        instruction.name, KINDS[instruction.opcode], shape, groups, _devices(instruction), _place(instruction)
    )


def _devices(instruction: Instruction) -> Hashable:
    """Groups or pairs as sorted lists; the order inside a group counts."""
    groups = instruction.attributes.get("replica_groups")
    try:
        lists = groups.groups() if isinstance(groups, ReplicaGroups) else ()
    except ValueError:
        return str(groups)
    return tuple(sorted(map(tuple, lists))), str(instruction.attributes.get("source_target_pairs"))


def _place(instruction: Instruction) -> str | None:
    frame = instruction.innermost_frame
    return f"{frame.file}:{frame.line}" if frame is not None else None


def first_difference(
    old: Module, new: Module, *, inside: bool = False, left_out: Collection[str] = ()
) -> tuple[Instruction | None, Instruction | None]:
    """Returns the first pair of differing instructions of two entries, in text order; None past the end of one.

    With `inside`, descends into called computations if the instructions do not differ otherwise. Attributes in
    `left_out` are ignored.
    """
    ours, theirs = Signatures(left_out), Signatures(left_out)
    one, other = _first(old.entry, new.entry, ours, theirs)
    while inside and one is not None and other is not None and ours.of(one, False) == theirs.of(other, False):
        pairs = zip(one.called_computations, other.called_computations, strict=False)
        differing = (_first(first, second, ours, theirs) for first, second in pairs)
        inner = next((pair for pair in differing if pair != (None, None)), None)
        if inner is None:
            break
        one, other = inner
    return one, other


def _first(
    old: Computation, new: Computation, ours: Signatures, theirs: Signatures
) -> tuple[Instruction | None, Instruction | None]:
    before, after = _in_order(old), _in_order(new)
    for number, (one, other) in enumerate(itertools.zip_longest(before, after)):
        if one is None or other is None:
            return _of_one_side(before, after, number, ours, theirs) or (one, other)
        if ours.of(one) != theirs.of(other):
            pairs = zip(one.operands, other.operands, strict=False) if one.opcode == other.opcode else ()
            differing = [pair for pair in pairs if ours.place(pair[0]) != theirs.place(pair[1])]
            # What differs in constants alone is told by the first of them.
            if differing and all(map(_are_constants, differing)):
                return differing[0]
            return _of_one_side(before, after, number, ours, theirs) or (one, other)
    return None, None


def _of_one_side(
    before: Sequence[Instruction],
    after: Sequence[Instruction],
    start: int,
    ours: Signatures,
    theirs: Signatures,
) -> tuple[Instruction | None, Instruction | None] | None:
    """An operation from `start` on that one side has and the other lacks, inputs aside; None if each has one at `start`.

    What stands behind an operation that was put in differs in its place alone.
    """
    rest = list(before[start:]), list(after[start:])
    own = [ours.alone(i) for i in rest[0]], [theirs.alone(i) for i in rest[1]]
    lacking = Counter(own[0]) - Counter(own[1]), Counter(own[1]) - Counter(own[0])
    extra = [[number for number, one in enumerate(own[side]) if lacking[side][one]] for side in (0, 1)]
    if not any(extra) or (all(extra) and extra[0][0] == extra[1][0]):
        return None
    side = min((0, 1), key=lambda number: extra[number][0] if extra[number] else len(own[number]))
    some = [rest[side][number] for number in extra[side]]
    first = next((i for i in some if i.opcode not in FORMS_OF_VALUES), some[0])
    return (first, None) if side == 0 else (None, first)


FORMS_OF_VALUES = traits.NAMES_VALUE | traits.REPEATS_ELEMENTS
"""Opcodes that say less than what reads them."""


def _are_constants(pair: tuple[Instruction, Instruction]) -> bool:
    return pair[0].opcode == pair[1].opcode == "constant"


def _in_order(computation: Computation) -> list[Instruction]:
    """Parameters by number, then the rest in the order of the text. Constants count where they are used."""
    rest = (i for i in computation.instructions if i.opcode not in ("parameter", "constant") or not i.users)
    return list(dict.fromkeys((*computation.parameters, *rest)))


_LONGEST = 60
"""Characters of a differing value."""


def differing_values(old: Instruction, new: Instruction) -> tuple[str, str]:
    """Returns the old and new value of the first property in which two instructions differ: constant, opcode, shape,
    attribute or operands.
    """
    pairs = [
        (old.opcode, new.opcode),
        (str(old.shape), str(new.shape)),
        *([(str(old.literal), str(new.literal))] if old.opcode == new.opcode == "constant" else []),
    ]
    every = dict.fromkeys((*old.attributes, *new.attributes))
    names = [name for name in every if name not in _WITHOUT_MEANING]
    for name in names:
        sides = [one.attributes.get(name) for one in (old, new)]
        if not any(isinstance(side, Computation) for side in sides):
            one, other = map(attribute_text, sides)
            pairs.append((f"{name}={one or 'none'}", f"{name}={other or 'none'}"))
    pairs.append((_operands(old), _operands(new)))
    for was, now in pairs:
        if was != now:
            return _short(was), _short(now)
    return old.name, new.name


def _operands(instruction: Instruction) -> str:
    return f"operands {', '.join(operand.name for operand in instruction.operands)}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class Signatures:
    """Name-independent signatures of instructions, with operands by position or by their own signatures."""

    def __init__(self, left_out: Collection[str] = (), *, by_value: bool = False) -> None:
        self._left_out = {*_WITHOUT_MEANING, "control-predecessors", *left_out}
        self._values: dict[Instruction, str] | None = {} if by_value else None
        self._places: dict[Computation, dict[Instruction, object]] = {}
        self._computations: dict[Computation, str] = {}
        self._alone: dict[Instruction, str] = {}

    def of(self, instruction: Instruction, with_bodies: bool = True) -> str:
        computation = instruction.computation
        places: Mapping[Instruction, object] = {}
        if self._values is not None:
            places = self._values
        elif computation is not None:
            places = self._places_in(computation)
        parts: list[object] = [instruction.opcode, instruction.shape]
        parts += [places.get(operand, -1) for operand in instruction.operands]
        parts += [places.get(other, -1) for other in instruction.control_predecessors]
        if instruction.opcode == "constant":
            parts.append(instruction.literal)
        if instruction.opcode == "parameter":
            parts.append(instruction.parameter_number)
        for name, value in sorted(instruction.attributes.items()):
            if name not in self._left_out and (with_bodies or not _is_body(value)):
                parts.append(f"{name}={self._value(value)}")
        return _hash("\x1f".join(map(str, parts)))

    def alone(self, instruction: Instruction) -> str:
        """Returns the signature of an instruction without its operands."""
        if instruction not in self._alone:
            parts: list[object] = [instruction.opcode, instruction.shape]
            if instruction.opcode == "constant":
                parts.append(instruction.literal)
            parts += [
                f"{name}={self._value(value)}"
                for name, value in sorted(instruction.attributes.items())
                if name not in self._left_out
            ]
            self._alone[instruction] = _hash("\x1f".join(map(str, parts)))
        return self._alone[instruction]

    def _value(self, value: object) -> str:
        if isinstance(value, Computation):
            return self._computation(value)
        if isinstance(value, tuple) and _is_body(value):
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
                self._computations[one] = _hash("\n".join(self._lines_of(one)))
            pending.pop()
        return self._computations[computation]

    def _lines_of(self, computation: Computation) -> Iterable[str]:
        """The signatures of its instructions in their order; by value those of its results in any order."""
        if self._values is None:
            return map(self.of, _in_order(computation))
        results = []
        for instruction in computation.instructions:
            self._values[instruction] = value = self.of(instruction)
            if not instruction.users:
                results.append(value)
        return sorted(results)

    def of_computation(self, computation: Computation) -> str:
        """Returns the signature of a computation."""
        return self._computation(computation)

    def place(self, instruction: Instruction) -> object:
        """Returns the key of an operand: its position in the computation, or for a constant its signature."""
        if instruction.computation is None:
            return -1
        return self._places_in(instruction.computation).get(instruction, -1)

    def _places_in(self, computation: Computation) -> dict[Instruction, object]:
        found = self._places.get(computation)
        if found is None:
            found = {instruction: place for place, instruction in enumerate(_in_order(computation))}
            self._places[computation] = found
            found.update((i, self.of(i)) for i in computation.instructions if i not in found)
        return found


def _is_body(value: object) -> bool:
    return isinstance(value, Computation) or (
        isinstance(value, tuple) and bool(value) and isinstance(value[0], Computation)
    )


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def is_for_one_device(module: hlo.Module) -> bool:
    """Returns True if a module runs on a single device and does not communicate. XLA does not print counts of 1."""
    return devices_of(module).total in (1, None) and not collective_order(module)
