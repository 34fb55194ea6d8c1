"""Changes of one step: operations added, removed, changed or renamed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

import hlotext as hlo
from hlotext import analysis
from hlotext.dumps.identity.graph import paired
from hlotext.dumps.identity.pairing import Pairing
from hlotext.dumps.identity.states import NOT_COUNTED, Op, State
from hlotext.ir.caches import text_cache
from hlotext.ir.tables import traits
from hlotext.syntax import read_terms

_REFERENCE = re.compile(r"%([A-Za-z_][\w.\-]*)", re.ASCII)


@attrs.frozen
class Change:
    """An operation that a step changed."""

    kind: str
    """`added`, `removed`, `changed` or `renamed`."""
    name: str
    """Its name after the step; of one that went its name before."""
    computation: str
    opcode: str
    shape: str
    """As it is written."""
    old_name: str = ""
    """Of one that was renamed, its name before."""
    parts: tuple[str, ...] = ()
    """Changed parts: `shape`, `layout`, `opcode`, `operands`, `attributes`, `root`."""
    before: str = ""
    """Of one that changed, what it was: shape and opcode before."""

    @property
    def bytes(self) -> int | None:
        """Bytes of the result, or None if the shape is unknown."""
        return shape_bytes(self.shape)


@attrs.frozen
class Changes:
    """Changes of a step since the previous one, ignoring metadata and the order of operations."""

    added: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    renamed: tuple[Change, ...] = ()
    is_same_text: bool = False
    """True if the texts are identical."""
    bytes: int | None = 0
    """Increase in the bytes of the results of all operations that run step by step: those of the entry and of what it calls
    or repeats, but not those inside fusions and reducers. None if a shape is unknown.
    """

    def __iter__(self) -> Iterator[Change]:
        yield from self.added
        yield from self.removed
        yield from self.changed
        yield from self.renamed

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed) + len(self.renamed)


@text_cache(1 << 14)
def shape_bytes(shape: str) -> int | None:
    """Returns the bytes of an array, or of all arrays of a tuple, as XLA counts them; None if the text is not a shape."""
    try:
        parsed = read_terms.read_shape(shape)
    except hlo.HloSyntaxError:
        return None
    total = 0
    for _, leaf in parsed.leaves():
        size = analysis.array_bytes(leaf) if leaf.is_array else (0, 0)
        if size is None:
            return None
        total += size[0]
    return total


def changes(old: State, new: State, pass_name: str = "") -> Changes:
    """Compares two states of a module, one pass apart. Operations are paired as for `Compilation.identity`.

    Only computations whose text differs are compared.
    """
    if old.text == new.text:
        return Changes(is_same_text=True)
    pairing = paired(old, new, pass_name)
    ops = [
        op
        for chunk, part in new.chunks.items()
        if chunk not in old.chunks or not pairing.trusts_names
        for op in part.ops
    ]
    was = _befores(pairing, ops)
    added, changed, renamed = [], [], []
    for op in ops:
        before = was.get(op.name)
        if before is None:
            added.append(_change("added", new, op))
            continue
        parts = _parts(pairing, op, before, was)
        if parts:
            changed.append(_change("changed", new, op, before, parts))
        elif before.name != op.name:
            renamed.append(_change("renamed", new, op, before))
    taken = {before.name for before in was.values()}
    gone = (op for op in old.ops.values() if op.name not in taken and pairing.is_gone(op))
    bytes_before, bytes_after = _result_bytes(old), _result_bytes(new)
    return Changes(
        tuple(added),
        tuple(_change("removed", old, op) for op in gone),
        tuple(changed),
        tuple(renamed),
        bytes=None if bytes_before is None or bytes_after is None else bytes_after - bytes_before,
    )


def _result_bytes(state: State) -> int | None:
    """Bytes of the results of all operations that run step by step; None if a shape is unknown."""
    if state.entry is None:
        return None
    reached = {state.entry.name: state.entry}
    for part in (parts := [state.entry]):
        for op in part.callers:
            if op.opcode in traits.CONTROL_FLOW:
                for name in op.callees:
                    if name in state.parts and name not in reached:
                        reached[name] = state.parts[name]
                        parts.append(state.parts[name])
    total = 0
    for part in parts:
        if part.bytes == NOT_COUNTED:
            sizes = [shape_bytes(op.shape) for op in part.ops]
            part.bytes = None if None in sizes else sum(size or 0 for size in sizes)
        if part.bytes is None:
            return None
        total += part.bytes
    return total


def _befores(pairing: Pairing, ops: Iterable[Op]) -> dict[str, Op]:
    """Old operation of each new one, each used once: of several new ones the first."""
    found: dict[str, Op] = {}
    taken: set[str] = set()
    for op in ops:
        before = pairing.was(op.name)
        if before is None or before.name in taken:
            continue
        if op.name != before.name and (not pairing.is_gone(before) or not pairing.same_kind(op, before)):
            continue
        found[op.name] = before
        taken.add(before.name)
    return found


def _parts(pairing: Pairing, new: Op, old: Op, was: Mapping[str, Op]) -> tuple[str, ...]:
    """Differences between two lines of one operation."""
    if new is old:
        return ()
    found = []
    if old.opcode != new.opcode:
        found.append("opcode")
    if old.shape != new.shape:
        found.append("layout" if old.plain == new.plain else "shape")
    here, there = pairing.new.home[new.name], pairing.old.home[old.name]
    moved = here.name != there.name and pairing.parts.get(here.name) is not there
    operands = tuple(was[name].name if name in was else name for name in new.operands)
    if not moved and (operands != old.operands or new.inner != old.inner):
        found.append("operands")
    if old.tail != new.tail and _with_names(new.tail, pairing, was) != old.tail:
        found.append("attributes")
    if old.is_root != new.is_root and not moved:
        found.append("root")
    return tuple(found)


def _with_names(tail: str, pairing: Pairing, was: Mapping[str, Op]) -> str:
    """Attributes with the names that stood there before; a computation that is still there is another one."""
    if "%" not in tail:
        return tail

    def name_before(match: re.Match[str]) -> str:
        part = pairing.parts.get(match[1])
        if part is not None and (part.name not in pairing.new.parts or not pairing.trusts_names):
            return f"%{part.name}"
        return f"%{was[match[1]].name}" if match[1] in was else match[0]

    return _REFERENCE.sub(name_before, tail)


def _change(kind: str, state: State, op: Op, before: Op | None = None, parts: tuple[str, ...] = ()) -> Change:
    old_name = before.name if before is not None and before.name != op.name else ""
    was = f"{before.shape} {before.opcode}" if before is not None and parts else ""
    return Change(kind, op.name, state.home[op.name].name, op.opcode, op.shape, old_name, parts, was)
