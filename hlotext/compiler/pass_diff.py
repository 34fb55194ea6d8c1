"""Two texts of one pass, operation by operation: what stayed, changed, moved, got another name, came and went.

Passes keep names, so names tell which operation is which; the rest is paired as in dumps (`Compilation.identity`). Every
operation of both texts is accounted for once: what came minus what went is what there is more.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import hlotext as hlo
from hlotext.diff import Change, Part
from hlotext.diff.changes import shape_parts, value_text
from hlotext.dumps.identity import State, paired
from hlotext.ir.tables import traits

ADDED, REMOVED, CHANGED, RENAMED, MOVED, ORDERED = (
    "added",
    "removed",
    "changed",
    "renamed",
    "moved",
    "ordered",
)
"""Kinds of change; `ordered` is reported once per computation."""
LEFT_OUT = traits.PROVENANCE | traits.CONTROL | {"original_value", "stack_frame_id"}
"""Attributes that say where an operation comes from; what it waits for is compared by itself."""
_HEADER_LEFT_OUT = frozenset({"stack_frames", "file_names", "function_names", "file_locations"})


class PassDiff:
    """Changes of the operations of a module by one step."""

    def __init__(self, before: hlo.Module, after: hlo.Module, pass_name: str = "") -> None:
        self.before, self.after = before, after
        self._pass_name = pass_name
        self.old_of: dict[hlo.Instruction, hlo.Instruction] = {}
        """The operation before that each operation after is."""
        self.new_of: dict[hlo.Instruction, hlo.Instruction] = {}
        """The same, the other way round."""
        self._pair_by_name()
        self._pair_the_rest()
        self._old_computations = {c.name: c for c in before.computations}
        self._new_computations = {c.name for c in after.computations}
        self._texts: dict[int, tuple[Any, str]] = {}
        self.changes: tuple[Change, ...] = tuple(self._all()) or tuple(self._order_of_text())

    # ---- which is which

    def _pair(self, new: hlo.Instruction, old: hlo.Instruction) -> None:
        self.old_of[new] = old
        self.new_of[old] = new

    def _pair_by_name(self) -> None:
        """Equal names; of a name that stands several times those in computations of one name, else in order."""
        named: dict[str, list[hlo.Instruction]] = {}
        at_home: dict[tuple[str, str], deque[hlo.Instruction]] = {}
        for old in self.before.instructions():
            named.setdefault(old.name, []).append(old)
            at_home.setdefault((old.name, _home(old)), deque()).append(old)
        later = []
        for new in self.after.instructions():
            found = named.get(new.name)
            if found is None:
                continue
            if len(found) == 1:
                if found[0] not in self.new_of:
                    self._pair(new, found[0])
                continue
            same = at_home.get((new.name, _home(new)))
            if same:
                self._pair(new, same.popleft())
            else:
                later.append(new)
        rest: dict[str, Iterator[hlo.Instruction]] = {}
        for new in later:
            if new.name not in rest:
                rest[new.name] = (o for o in named[new.name] if o not in self.new_of)
            free = next(rest[new.name], None)
            if free is not None:
                self._pair(new, free)

    def _pair_the_rest(self) -> None:
        """Pairs operations with different names by opcode, attributes and operands."""
        news = [i for i in self.after.instructions() if i not in self.old_of]
        olds = {i.name: i for i in self.before.instructions() if i not in self.new_of}
        if not news or not olds:
            return
        first = State(self.before.to_text())
        edges = paired(first, State(self.after.to_text(), first), self._pass_name).edges
        for new in news:
            edge = edges.get(new.name) or edges.get(_start_around(new))
            old = olds.get(edge.before[0]) if edge is not None and len(edge.before) == 1 else None
            if old is not None and old.opcode == new.opcode and old not in self.new_of:
                self._pair(new, old)

    # ---- what became of it

    def _all(self) -> Iterator[Change]:
        yield from self._header()
        yield from self._order()
        came = self._new_computations - set(self._old_computations)
        for new in self.after.instructions():
            old = self.old_of.get(new)
            if old is None:
                yield Change(ADDED, self._of(new, came), new)
                continue
            parts = tuple(self._parts(new, old))
            if parts:
                yield Change(CHANGED, _what(new, old, parts), new, old, parts)
            elif _home(new) != _home(old):
                yield Change(MOVED, _where(new, old), new, old)
            elif new.name != old.name:
                yield Change(RENAMED, "operations", new, old)
        gone = set(self._old_computations) - self._new_computations
        for old in self.before.instructions():
            if old not in self.new_of:
                yield Change(REMOVED, self._of(old, gone), None, old)

    def _of(self, i: hlo.Instruction, computations: set[str]) -> str:
        known = dict.fromkeys(operand.opcode for operand in i.operands)
        shown = " and ".join(list(known)[:2]) + (", ..." if len(known) > 2 else "")
        inside = ", with its computation" if _home(i) in computations else ""
        return f"{i.opcode} of {shown}{inside}" if known else f"{i.opcode}{inside}"

    def _parts(self, new: hlo.Instruction, old: hlo.Instruction) -> Iterator[Part]:
        """Differences between two texts of one operation."""
        if new.opcode != old.opcode:
            yield Part("opcode", old.opcode, new.opcode)
        yield from shape_parts(old.shape, new.shape)
        if new.parameter_number != old.parameter_number:
            yield Part("parameter number", str(old.parameter_number), str(new.parameter_number))
        if new.literal is not None or old.literal is not None:
            a, b = self._text(old.literal), self._text(new.literal)
            if a != b:
                yield Part("literal", value_text(a), value_text(b))
        mine, theirs = new.operands, old.operands
        if len(mine) != len(theirs):
            yield Part("operands", _names(theirs), _names(mine))
        else:
            for number, (was, now) in enumerate(zip(theirs, mine, strict=True)):
                if self.old_of.get(now) is not was:
                    yield Part(f"operand {number}", was.name, now.name)
        yield from self._attributes(new, old)
        waits = {self.old_of.get(i) for i in new.control_predecessors}
        if waits != set(old.control_predecessors):
            yield Part(
                "control-predecessors", _names(old.control_predecessors), _names(new.control_predecessors)
            )
        if new.is_root != old.is_root:
            yield Part("root", str(old.is_root), str(new.is_root))

    def _attributes(self, new: hlo.Instruction, old: hlo.Instruction) -> Iterator[Part]:
        mine, theirs = new.attributes, old.attributes
        for name in dict.fromkeys((*theirs, *mine)):
            if name not in LEFT_OUT:
                a, b = self._text(theirs.get(name)), self._text(mine.get(name))
                if a != b:
                    yield Part(name, value_text(a), value_text(b))

    def _text(self, value: Any) -> str:
        """A value's text, found once; of computations their names."""
        if value is None:
            return ""
        known = self._texts.get(id(value))
        if known is not None:
            return known[1]
        if isinstance(value, hlo.Computation):
            text = value.name
        elif isinstance(value, tuple):
            text = ", ".join(
                v.name if isinstance(v, hlo.Computation | hlo.Instruction) else str(v) for v in value
            )
        else:
            text = str(value)
        self._texts[id(value)] = value, text
        return text

    def _header(self) -> Iterator[Change]:
        old, new = self.before.attributes, self.after.attributes
        for name in dict.fromkeys((*old, *new)):
            a, b = self._text(old.get(name)), self._text(new.get(name))
            if a != b and name not in _HEADER_LEFT_OUT:
                yield Change(CHANGED, f"header: {name}", parts=(Part(name, value_text(a), value_text(b)),))

    def _order(self) -> Iterator[Change]:
        """Computations of a scheduled module whose operations run in another order than they stood in before."""
        if not self.after.is_scheduled:
            return
        for computation in self.after.computations:
            old = self._old_computations.get(computation.name)
            if old is None or computation.is_fusion_body:
                continue
            place = {i: number for number, i in enumerate(old)}
            places = [place[o] for i in computation if (o := self.old_of.get(i)) in place]
            moved = len(places) - _longest_rise(places)
            if moved:
                said = "in a different order" if self.before.is_scheduled else "ordered"
                part = Part("order", f"{len(places)} operations", f"{moved} of them moved")
                yield Change(ORDERED, f"computations {said}", computation.root, old.root, (part,))

    def _order_of_text(self) -> Iterator[Change]:
        """Changes of order only: computations or operations at another position in the text. Last resort."""
        before = [(c.name, [i.name for i in c]) for c in self.before.computations]
        after = [(c.name, [i.name for i in c]) for c in self.after.computations]
        if [name for name, _ in before] != [name for name, _ in after]:
            yield Change(
                ORDERED,
                "computations of the text",
                parts=(Part("order", "", "computations are in a different order"),),
            )
        elif before != after:
            yield Change(
                ORDERED,
                "operations of the text",
                parts=(Part("order", "", "operations are in a different order"),),
            )

    def adds_up(self) -> bool:
        """Returns True if the changes account for the difference in the number of operations of every opcode."""
        counts = Counter(i.opcode for i in self.before.instructions())
        for change in self.changes:
            if change.kind == ADDED:
                counts[change.opcode] += 1
            elif change.kind == REMOVED:
                counts[change.opcode] -= 1
            elif change.kind == CHANGED and change.old is not None and change.new is not None:
                counts[change.old.opcode] -= 1
                counts[change.new.opcode] += 1
        return +counts == Counter(i.opcode for i in self.after.instructions())


def _start_around(i: hlo.Instruction) -> str:
    """The asynchronous start that runs an operation, which the short spelling of the two leaves out; "" for others."""
    home = i.computation
    if home is None or not i.is_root:
        return ""
    return next((caller.name for caller in home.callers if caller.opcode == "async-start"), "")


def _home(i: hlo.Instruction) -> str:
    return "" if i.computation is None else i.computation.name


def _where(new: hlo.Instruction, old: hlo.Instruction) -> str:
    """Where an operation went, in words."""
    now, was = (c is not None and c.is_fusion_body for c in (new.computation, old.computation))
    if now and not was:
        return "into fusions"
    if was and not now:
        return "out of fusions"
    return "to other fusions" if now else "to other computations"


def _what(new: hlo.Instruction, old: hlo.Instruction, parts: tuple[Part, ...]) -> str:
    """A change in a few words, equal for equal changes."""
    if new.opcode != old.opcode:
        return f"{old.opcode} -> {new.opcode}"
    names = dict.fromkeys("operands" if part.name.startswith("operand") else part.name for part in parts)
    return f"{new.opcode}: {', '.join(names)}"


def _names(nodes: tuple[hlo.Instruction, ...]) -> str:
    return value_text(", ".join(node.name for node in nodes))


def _longest_rise(places: list[int]) -> int:
    """Length of the longest increasing subsequence: the number of items that keep their order."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)
