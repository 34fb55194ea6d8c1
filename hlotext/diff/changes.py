"""Differences between two modules, as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

import hlotext as hlo
from hlotext.analysis.communication import is_further_part
from hlotext.analysis.formatting import attribute_text, times

ADDED, REMOVED, CHANGED, RENAMED = "added", "removed", "changed", "renamed"


@attrs.frozen
class Part:
    """A property of an operation that differs."""

    name: str
    """Name of the property.

    `opcode`, `type`, `dimensions`, `layout`, `operand 0`, `members` (of a fusion), `literal`, or an attribute's name.
    """
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.name}: {self.old or 'nothing'} -> {self.new or 'nothing'}"


@attrs.frozen
class Change:
    """A difference between two modules: an operation added, removed or changed, or a change of the module header."""

    kind: str
    """`added`, `removed`, `changed` or `renamed`."""
    what: str
    """Short description, equal for similar changes: `copy of dot`, `reshape of broadcast -> broadcast`, `dot: type`."""
    new: hlo.Instruction | None = None
    """The operation in the new module, or None if it was removed, and for the header."""
    old: hlo.Instruction | None = None
    """The operation in the old module, or None if it was added, and for the header."""
    parts: tuple[Part, ...] = ()
    """Properties that differ, for a changed operation."""

    @property
    def node(self) -> hlo.Instruction | None:
        """The operation in the new module, or in the old module if removed, or None for the header."""
        return self.new if self.new is not None else self.old

    @property
    def name(self) -> str:
        """Name of the operation; empty for the header."""
        return "" if self.node is None else self.node.name

    @property
    def computation(self) -> str:
        """Name of the computation that contains the operation; empty for the header."""
        node = self.node
        return "" if node is None or node.computation is None else node.computation.name

    @property
    def opcode(self) -> str:
        """Opcode of the operation; empty for the header."""
        return "" if self.node is None else self.node.opcode

    @property
    def result(self) -> tuple[hlo.Shape, hlo.Shape] | None:
        """The largest array of the result, before and after, or None if the result did not change.

        Also None for an added or removed operation, and if the opcode or the number of arrays changed.
        """
        if self.old is None or self.new is None or not any(part.name in _RESULT for part in self.parts):
            return None
        # Of a tuple that has another number of arrays the largest is not the one that grew.
        if self.old.opcode != self.new.opcode or _arrays(self.old.shape) != _arrays(self.new.shape):
            return None
        old, new = _largest(self.old.shape), _largest(self.new.shape)
        return (old, new) if old is not None and new is not None else None

    @property
    def has_moved(self) -> bool:
        """True if the operation moved into, out of, or between loops."""
        return any(part.name == "loop" for part in self.parts)

    @property
    def growth(self) -> str:
        """Growth of the result in elements, such as `result 4x larger`; empty if it did not change size.

        Also empty for operations that moved into or out of a loop.
        """
        result = self.result
        if result is None or self.has_moved:
            return ""
        old, new = (shape.element_count for shape in result)
        if old == new or not old or not new:
            return ""
        return f"result {times(new / old)} larger" if new > old else f"result {times(old / new)} smaller"

    @property
    def conversion(self) -> str:
        """The element types of an added or removed conversion, such as `f32 -> bf16`; empty for all others."""
        node = self.node
        if self.kind not in (ADDED, REMOVED) or node is None or node.opcode != "convert" or not node.operands:
            return ""
        shapes = node.operands[0].shape, node.shape
        if any(shape is None or not shape.is_array for shape in shapes):
            return ""
        return " -> ".join(str(shape.element_type) for shape in shapes if shape is not None)

    @property
    def is_part(self) -> bool:
        """True for a part, other than the start, of a collective that the TPU compiler split over fusions."""
        node = self.node
        return node is not None and is_further_part(node)

    @property
    def line(self) -> int | None:
        """Line number from 1 in the new text, or in the old text if removed, or None if not parsed from text."""
        span = self.node.span if self.node is not None else None
        return None if span is None else span.line


_RESULT = frozenset(("shape", "dimensions"))
"""Names of parts that say that a result has other dimensions."""


def _arrays(shape: hlo.Shape | None) -> int:
    return sum(1 for _ in shape.leaves()) if shape is not None else 0


def _largest(shape: hlo.Shape | None) -> hlo.Shape | None:
    """The array with the most elements within a shape; None if there is none, or a size is not known."""
    if shape is None or shape.is_unbounded:
        return None
    arrays = [leaf for _, leaf in shape.leaves() if leaf.is_array]
    return max(arrays, key=lambda leaf: leaf.element_count, default=None)


class Changes(Sequence[Change]):
    """All differences between two modules, in text order. Renames do not count and are listed in `renamed`."""

    def __init__(self, changes: Sequence[Change], renamed: Sequence[Change] = ()) -> None:
        self._changes = tuple(changes)
        self.renamed = tuple(renamed)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._changes[index]

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    def _of(self, kind: str) -> tuple[Change, ...]:
        return tuple(change for change in self._changes if change.kind == kind)

    @property
    def added(self) -> tuple[Change, ...]:
        """Operations that are only in the new module."""
        return self._of(ADDED)

    @property
    def removed(self) -> tuple[Change, ...]:
        """Operations that are only in the old module."""
        return self._of(REMOVED)

    @property
    def changed(self) -> tuple[Change, ...]:
        """Operations that are in both modules but differ."""
        return self._of(CHANGED)

    def by_what(self) -> list[tuple[tuple[str, str], list[Change]]]:
        """Groups changes by kind and description, most frequent first."""
        found: dict[tuple[str, str], list[Change]] = {}
        for change in self._changes:
            found.setdefault((change.kind, change.what), []).append(change)
        return sorted(found.items(), key=lambda entry: -len(entry[1]))

    def folded(self) -> list[tuple[str, list[Change]]]:
        """Groups changes by the properties that differ, regardless of opcode, most frequent first.

        Results that changed size by the same factor form one group, since other differences mostly follow from that; so do
        the conversions that came or went between the same two element types, whatever they convert.
        Returns the title and changes of each group.
        """
        found: dict[tuple[str, str], list[Change]] = {}
        for change in self._changes:
            if growth := change.growth:
                found.setdefault((change.kind, growth), []).append(change)
                continue
            names = dict.fromkeys(part.name.split(" ")[0] for part in change.parts)
            is_field = change.kind == CHANGED and change.name and not names.keys() & _SAID
            same = ", ".join(names) if is_field else ""
            what = change.what
            if change.is_part and change.kind != CHANGED:
                what = f"more parts of one {change.opcode}"
            elif conversion := change.conversion:
                what = f"convert {conversion}"
            found.setdefault((change.kind, same or f"={what}"), []).append(change)
        groups = []
        for (kind, same), changes in found.items():
            if same.startswith("="):
                groups.append((f"{kind}: {same[1:]}", changes))
                continue
            opcodes = [opcode for opcode, _ in Counter(change.opcode for change in changes).most_common()]
            shown = ", ".join(opcodes[:4]) + (", ..." if len(opcodes) > 4 else "")
            is_one = len({change.what for change in changes}) == 1 and same != changes[0].growth
            what = changes[0].what if is_one else f"{same} ({shown})"
            groups.append((f"{kind}: {what}", changes))
        return sorted(groups, key=lambda group: -len(group[1]))

    def by_computation(self) -> dict[str, list[Change]]:
        """Groups changes by the name of their computation; those of the header have an empty name."""
        found: dict[str, list[Change]] = {}
        for change in self._changes:
            found.setdefault(change.computation, []).append(change)
        return found

    def counts(self) -> Counter[str]:
        """Returns the number of changes of each kind."""
        return Counter(change.kind for change in self._changes)


_SAID = {"opcode", "loop"}
"""Parts by which changes are told apart by what they were and are."""


def value_text(value: object) -> str:
    """Formats a value in HLO notation, truncated if it is long."""
    text = attribute_text(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."


_SHORT = 120
"""Characters of a value that are shown."""


def shape_parts(old: hlo.Shape | None, new: hlo.Shape | None) -> Iterator[Part]:
    """Yields the differences between two shapes."""
    if old == new:
        return
    if old is None or new is None or old.is_tuple or new.is_tuple:
        yield Part("shape", value_text(old), value_text(new))
        return
    if old.element_type != new.element_type:
        yield Part("type", str(old.element_type), str(new.element_type))
    if old.dimensions != new.dimensions:
        yield Part("dimensions", value_text(list(old.dimensions)), value_text(list(new.dimensions)))
    elif old.layout != new.layout:
        yield Part("layout", value_text(old.layout), value_text(new.layout))
    elif old.dynamic_dimensions != new.dynamic_dimensions:
        yield Part("dynamic dimensions", str(old), str(new))
    elif old.element_type == new.element_type:
        yield Part("shape", value_text(old), value_text(new))
