"""Renames and replacements shown by the ids in XLA's protos, if there are `.hlo.pb` files next to the texts.

An id is a computation's id and a local one. Local ids are assigned in creation order; a pass closes the gaps
of removed ones, so ids shift, but the order within a computation is kept: older instructions first, new ones last. So a new
name between two survivors is an old instruction with another name, and a name that fell behind others is a replacement that
took over its predecessor's name. Ids that follow the order of the text were given anew, as to a copy of the module, and
tell nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from hlotext.dumps.names import PROTO
from hlotext.findings.errors import HloSyntaxError
from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.syntax.source.inputs import InputError

if TYPE_CHECKING:
    from hlotext.dumps.files import DumpFile
    from hlotext.dumps.step import Step

_MODULE, _COMPUTATIONS = 1, 3
_COMPUTATION_NAME, _INSTRUCTIONS, _COMPUTATION_ID = 1, 2, 5
_NAME, _ID = 1, 35
"""Numbers of fields in HloProto, HloModuleProto, HloComputationProto and HloInstructionProto."""
_LOCAL = (1 << 32) - 1


class LocalIds:
    """The order of the instructions of a module by their local ids. Computations are read on access."""

    def __init__(self, data: bytes, name: str = "") -> None:
        self._buffer = wire.Buffer.of(data, name)
        self._instructions: dict[int, tuple[list[int], list[int]]] = {}
        self.computations: dict[str, int] = {}
        """The ids of computations by their names."""
        self.as_written: set[int] = set()
        """The computations, of those whose order was asked for, whose ids follow the text."""
        self._orders: dict[int, tuple[str, ...]] = {}
        for number, kind, start, end in wire.scan(data, 0, len(data), name):
            if number == _MODULE and kind == wire.BYTES:
                for inner, inner_kind, first, last in wire.scan(data, start, end, name):
                    if inner == _COMPUTATIONS and inner_kind == wire.BYTES:
                        self._computation(data, first, last, name)

    def _computation(self, data: bytes, start: int, end: int, name: str) -> None:
        called, id_, starts, ends = "", 0, [], []
        for number, kind, first, last in wire.scan(data, start, end, name):
            if number == _INSTRUCTIONS and kind == wire.BYTES:
                starts.append(first)
                ends.append(last)
            elif number == _COMPUTATION_NAME and kind == wire.BYTES:
                called = data[first:last].decode("utf-8", "surrogateescape")
            elif number == _COMPUTATION_ID and kind == wire.VARINT:
                id_ = first
        self.computations[called] = id_
        self._instructions[id_] = starts, ends

    def order(self, computation: int) -> tuple[str, ...]:
        """Returns the names of a computation's instructions in order of local ids; empty if the ids are unusable."""
        found = self._orders.get(computation)
        if found is None:
            found = self._orders[computation] = self._ordered(computation)
        return found

    def _ordered(self, computation: int) -> tuple[str, ...]:
        starts, ends = self._instructions.get(computation, ([], []))
        if not starts:
            return ()
        columns, _ = wire.columns(
            self._buffer, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64), _ID
        )
        names, ids = columns.get(_NAME), columns.get(_ID)
        if names is None or ids is None or len(names.rows) != len(starts) or len(ids.rows) != len(starts):
            return ()
        local = ids.start & _LOCAL
        if len(np.unique(local)) != len(starts):
            return ()  # some X64 passes of TPU write protos without ids
        if (np.diff(local) > 0).all():
            self.as_written.add(computation)
        data = self._buffer.data
        places = list(zip(names.start.tolist(), names.end.tolist(), strict=True))
        return tuple(
            data[slice(*places[row])].decode("utf-8", "surrogateescape")
            for row in np.argsort(local, kind="stable").tolist()
        )


def ids_of(step: Step) -> LocalIds | None:
    """Returns the ids of a step's module, or None without a readable proto.

    Also returns None for a dump from inside a pass, where gaps are not closed yet and clones may replace originals.
    """
    if step.is_pass and step.next_pass is None:
        return None
    file = _proto_beside(step.file)
    if file is None:
        return None
    try:
        return LocalIds(file.read(), file.path)
    except (InputError, ProtoError, HloSyntaxError, ValueError):
        return None


def _proto_beside(file: DumpFile) -> DumpFile | None:
    compilation = file.compilation
    if compilation is None or file.kind == PROTO:
        return None
    return compilation.protos.get(file.name.stem)


@attrs.frozen
class Moves:
    """The renames and replacements in one computation that the order of ids explains."""

    renamed: tuple[tuple[str, str], ...]
    """New and old names of what is the same object."""
    replaced: tuple[str, ...]
    """Names that a new instruction took over from the one that it replaced."""


NOTHING = Moves((), ())


def moves(
    old: Sequence[str],
    new: Sequence[str],
    old_opcode: Callable[[str], str | None],
    new_opcode: Callable[[str], str | None],
) -> Moves:
    """Finds the renames and replacements between two orders of one computation.

    Empty if most common names are in another order, which means that ids were reassigned.
    """
    where = {name: at for at, name in enumerate(old)}
    there = set(new)
    kept: list[tuple[int, int]] = []  # the places of survivors in both orders
    replaced = []
    for at, name in enumerate(new):
        before = where.get(name)
        if before is None:
            continue
        if kept and before < kept[-1][0]:
            replaced.append(name)
        else:
            kept.append((before, at))
    if len(replaced) > len(kept):
        return NOTHING
    renamed: list[tuple[str, str]] = []
    last_old = last_new = -1
    for before, at in kept:
        fresh = [name for name in new[last_new + 1 : at] if name not in where]
        if fresh:
            gone = [name for name in old[last_old + 1 : before] if name not in there]
            renamed += _aligned(gone, fresh, old_opcode, new_opcode)
        last_old, last_new = before, at
    return Moves(tuple(renamed), tuple(replaced))


def _aligned(
    gone: list[str],
    fresh: list[str],
    old_opcode: Callable[[str], str | None],
    new_opcode: Callable[[str], str | None],
) -> list[tuple[str, str]]:
    """The new names with the old ones, in order, by their opcodes; none where there is more than one way to do it."""

    def taken(old: list[str], new: list[str]) -> list[tuple[str, str]]:
        found, at = [], 0
        for name in new:
            opcode = new_opcode(name)
            while at < len(old) and old_opcode(old[at]) != opcode:
                at += 1
            if at == len(old):
                return []
            found.append((name, old[at]))
            at += 1
        return found

    first = taken(gone, fresh)
    last = taken(gone[::-1], fresh[::-1])[::-1]
    return first if first == last else []
