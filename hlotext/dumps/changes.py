"""What one step changed: operations that came, went, were changed, or were only renamed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import attrs

import hlotext as hlo
from hlotext import analysis
from hlotext.dumps.lines import Line, computations, differing, lines_of, name_of
from hlotext.ir.memo import memoised

_REFERENCE = re.compile(r"%([A-Za-z_][\w.\-]*)", re.ASCII)


@attrs.frozen
class Change:
    """One operation that a step changed."""

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
    """What changed: `shape`, `layout`, `opcode`, `operands`, `attributes`, `root`."""
    before: str = ""
    """Of one that changed, what it was: shape and opcode before."""

    @property
    def bytes(self) -> int | None:
        """Bytes of its result; None where the shape does not tell."""
        return shape_bytes(self.shape)


@attrs.frozen
class Changes:
    """What a step changed against the one before it. Metadata does not count, nor the order of operations."""

    added: tuple[Change, ...] = ()
    removed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    renamed: tuple[Change, ...] = ()
    is_same_text: bool = False
    """Whether not even a character differs."""

    def __iter__(self) -> Iterator[Change]:
        yield from self.added
        yield from self.removed
        yield from self.changed
        yield from self.renamed

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed) + len(self.renamed)

    @property
    def bytes(self) -> int | None:
        """How many more bytes all results together have; None where a shape does not tell."""
        sizes = [(1, change.bytes) for change in self.added] + [(-1, change.bytes) for change in self.removed]
        sizes += [(1, change.bytes) for change in self.changed]
        sizes += [(-1, shape_bytes(change.before.rpartition(" ")[0])) for change in self.changed]
        if any(size is None for _, size in sizes):
            return None
        return sum(sign * (size or 0) for sign, size in sizes)


@memoised(1 << 14)
def shape_bytes(shape: str) -> int | None:
    """Bytes that an array takes as XLA counts them, of a tuple all of its arrays; None for what is no shape."""
    try:
        parsed = hlo.parse_shape(shape)
    except hlo.HloSyntaxError:
        return None
    total = 0
    for _, leaf in parsed.leaves():
        size = analysis.array_bytes(leaf) if leaf.is_array else (0, 0)
        if size is None:
            return None
        total += size[0]
    return total


def changes(old: str, new: str) -> Changes:
    """What differs between two texts of one module, one pass apart. Only computations with another text are looked at."""
    if old == new:
        return Changes(is_same_text=True)
    old_parts, new_parts = map(computations, differing(old, new))
    same = set(old_parts).intersection(new_parts)
    return _Comparison(
        [part for part in old_parts if part not in same], [part for part in new_parts if part not in same]
    ).run()


class _Comparison:
    """Compares the computations whose texts differ."""

    def __init__(self, old: Iterable[str], new: Iterable[str]) -> None:
        self.old = _read(old)
        self.new = _read(new)
        self.old_names = {line.name: line for lines in self.old.values() for line in lines}
        self.new_names = {line.name: line for lines in self.new.values() for line in lines}
        self.was: dict[str, str] = {}
        """Names of operations and computations after the step that were others before, and what they were."""
        self.gone: dict[object, list[Line]] = defaultdict(list)
        for line in self.old_names.values():
            if line.name not in self.new_names:
                self.gone[self._key(line, {})].append(line)
        self.free = self._signatures(
            {name: lines for name, lines in self.old.items() if name not in self.new}
        )

    def run(self) -> Changes:
        added, changed, renamed = [], [], []
        taken: set[str] = set()
        for name, lines in self.new.items():
            if name not in self.old:
                self._whole(name, lines)
            for line in lines:
                before = self.old_names.get(self.was.get(line.name, line.name))
                if before is None or before.name in taken:
                    before = self._only_renamed(line, taken)
                if before is None:
                    added.append(_change("added", line))
                    continue
                taken.add(before.name)
                parts = self._parts(before, line)
                if parts:
                    changed.append(_change("changed", line, before, parts))
                elif before.name != line.name:
                    renamed.append(_change("renamed", line, before))
        removed = [_change("removed", line) for name, line in self.old_names.items() if name not in taken]
        return Changes(tuple(added), tuple(removed), tuple(changed), tuple(renamed))

    def _whole(self, name: str, lines: list[Line]) -> None:
        """Finds the computation that a new one was, where it holds the same under another name."""
        candidates = self.free.get(_signature(lines), [])
        for number, candidate in enumerate(candidates):
            theirs = self.old[candidate]
            own = {a.name: b.name for a, b in zip(lines, theirs, strict=True)}
            names = {**self.was, **own}
            if all(self._key(a, names) == self._key(b, {}) for a, b in zip(lines, theirs, strict=True)):
                self.was.update({new: old for new, old in own.items() if new not in self.old_names})
                self.was[name] = candidate
                del candidates[number]
                return

    def _only_renamed(self, line: Line, taken: set[str]) -> Line | None:
        """The operation that went where this one came, if it says the same but for names."""
        candidates = self.gone.get(self._key(line, self.was), ())
        inside = self.was.get(line.computation, line.computation)
        found = [c for c in candidates if c.name not in taken and c.computation == inside]
        if not found:
            return None
        self.was[line.name] = found[0].name
        return found[0]

    def _key(self, line: Line, was: Mapping[str, str]) -> object:
        """What an operation says, but for its own name, and other names as they were before."""
        return line.head, tuple(was.get(o, o) for o in line.operands), _with_names(line.tail, was)

    def _parts(self, old: Line, new: Line) -> tuple[str, ...]:
        """What differs between two lines of one operation."""
        found = []
        if old.head != new.head:
            if old.opcode != new.opcode:
                found.append("opcode")
            if old.shape != new.shape:
                same = _without_layout(old.shape) == _without_layout(new.shape)
                found.append("layout" if same else "shape")
        was = self.was
        moved = self.was.get(new.computation, new.computation) != old.computation
        if not moved and tuple(was.get(o, o) for o in new.operands) != old.operands:
            found.append("operands")
        if old.tail != new.tail and _with_names(new.tail, was) != old.tail:
            found.append("attributes")
        if old.is_root != new.is_root and not moved:
            found.append("root")
        return tuple(found)

    @staticmethod
    def _signatures(computations: Mapping[str, list[Line]]) -> dict[object, list[str]]:
        found: dict[object, list[str]] = defaultdict(list)
        for name, lines in computations.items():
            found[_signature(lines)].append(name)
        return found


def _read(parts: Iterable[str]) -> dict[str, list[Line]]:
    found = {}
    for part in parts:
        name = name_of(part)
        if name is not None:
            found[name] = list(lines_of(part))
    return found


def _signature(lines: list[Line]) -> object:
    return tuple((line.head, len(line.operands)) for line in lines)


def _with_names(tail: str, was: Mapping[str, str]) -> str:
    """Attributes with the names that stood there before."""
    if not was or "%" not in tail:
        return tail
    return _REFERENCE.sub(lambda match: f"%{was.get(match[1], match[1])}", tail)


def _without_layout(shape: str) -> str:
    return re.sub(r"\{[^{}]*\}", "", shape)


def _change(kind: str, line: Line, before: Line | None = None, parts: tuple[str, ...] = ()) -> Change:
    old_name = before.name if before is not None and before.name != line.name else ""
    was = before.head if before is not None and parts else ""
    return Change(kind, line.name, line.computation, line.opcode, line.shape, old_name, parts, was)
