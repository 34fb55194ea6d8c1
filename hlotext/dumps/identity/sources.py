"""Source operations of the final HLO: the program's operations that their links lead to."""

from __future__ import annotations

import functools
from collections import defaultdict

import attrs

from hlotext.dumps.identity.graph import Chain
from hlotext.dumps.identity.looking import behind
from hlotext.dumps.identity.pairing import AMBIGUOUS, LIKELY, SAME, SURE
from hlotext.dumps.identity.states import Op, State
from hlotext.ir.tables import traits

_MOST = 64
"""Maximum number of sources of one operation; beyond it every operation counts as a source."""
_FEW = 3
_AROUND = 600
"""Maximum number of operations inspected around the end of a chain."""
_NOTHING = traits.NAMES_VALUE
"""Opcodes that never count as sources of a fusion."""
_COMMON = traits.KNOWN_VALUES | {"broadcast"}
_VIEWS = frozenset({"bitcast", "copy"})
INSERTED, OP_NAME = "inserted", "op_name"


@attrs.frozen
class Source:
    """An operation before optimization from which another one originates."""

    name: str
    rule: str
    """The kind of the weakest link on the way; `inserted` for what is read by one that a pass made, `op_name` for one that
    the text marks so."""
    weight: int
    index: int
    """The layer of the weakest link."""


class Sources:
    """Finds the operations before optimization from which those of the final HLO originate."""

    def __init__(self, chain: Chain) -> None:
        assert chain.first is not None
        assert chain.last is not None
        self._chain = chain
        self._first: State = chain.first
        self._last: State = chain.last

    def of(self, name: str) -> list[Source]:
        """Returns the sources of an operation, most likely first; empty if unknown."""
        op = self._last.ops.get(name)
        if op is None:
            return []
        found: dict[str, Source] = {}
        least = SAME
        for number, meant in enumerate(self._meant(op)):
            links = self._named(meant, self._led_to(meant.name))
            if not number:  # what else a fusion holds is no surer than what it stands for
                least = min((source.weight for source in links), default=AMBIGUOUS)
            for source in links:
                if source.weight < least or (source.weight <= SURE and self._is_common(meant, source)):
                    source = attrs.evolve(source, weight=max(least, LIKELY))
                found.setdefault(source.name, source)
        if op.opcode != "fusion":
            self._with_own(name, found)
        return list(found.values())

    def _with_own(self, name: str, found: dict[str, Source]) -> None:
        """Adds what an operation was in the program, where that had it; what its name tells does not speak against links."""
        origin = self._chain.origin(name)
        if origin.index or origin.name in found:
            return
        others = list(found.values())[: _FEW - 1]
        found.clear()
        found[origin.name] = Source(origin.name, "same", AMBIGUOUS, 0)
        found.update((source.name, source) for source in others)

    def _meant(self, op: Op) -> list[Op]:
        """Operations that stand for one: for a fusion the one it is named after, its results, and its body."""
        if op.opcode == "fusion" and op.callees:
            part = self._last.parts.get(op.callees[0])
            if part is None or part.root is None:
                return [op]
            roots = [part.root]
            if part.root.opcode == "tuple":
                roots = [self._last.ops[n] for n in part.root.operands if n in self._last.ops]
            named = [inner for inner in part.ops if op.op_name and inner.op_name == op.op_name]
            named = [inner for inner in named if inner.opcode not in _NOTHING] or named
            ends = [self._behind_views(root) for root in roots]
            held = [inner for inner in part.ops if inner.opcode not in _NOTHING]
            return list(dict.fromkeys((*named[-1:], *ends, *held)))[:_MOST]
        return [op]

    def _behind_views(self, op: Op) -> Op:
        """Result behind views."""
        seen = {op.name}
        while op.opcode in _VIEWS and op.operands:
            inner = self._last.ops.get(op.operands[0])
            if inner is None or inner.opcode == "parameter" or inner.name in seen:
                break
            seen.add(inner.name)
            op = inner
        return op

    def _led_to(self, name: str) -> list[Source]:
        """The operations of the program that links lead to, and what is read by those that have none."""
        chain = self._chain
        current: dict[str, tuple[int, str, int]] = {name: (0, "same", len(chain.layers) - 1)}
        for index in range(len(chain.layers) - 1, 0, -1):
            edges = chain.layers[index].edges
            following: dict[str, tuple[int, str, int]] = {}
            for at, way in current.items():
                edge = edges.get(at)
                if edge is None:
                    following.setdefault(at, way)
                    continue
                weight, kind = edge.weight, edge.kind
                before = edge.before
                if not before:
                    kind, weight, before = INSERTED, AMBIGUOUS, chain.layers[index].reads.get(at, ())
                step = max(way, (weight, kind, index), key=_weakness)
                for old in before[:_MOST]:
                    following.setdefault(old, step)
            current = following
            if len(current) > _MOST:
                current = dict(list(current.items())[:_MOST])
        return [
            Source(name, kind, weight, index)
            for name, (weight, kind, index) in current.items()
            if name in self._first.ops
        ]

    def _named(self, op: Op, sources: list[Source]) -> list[Source]:
        """Sources by the op_name of the links."""
        sources = [self._doubted(op, source) for source in sources]
        marked = self._marks.get(op.op_name) if op.op_name else None
        if not marked:
            return sources
        both = [source for source in sources if source.name in marked]
        if both:
            return both
        made = not sources or all(
            source.rule in (INSERTED, "replaced", "place", "merged") for source in sources
        )
        same = [n for n in marked if self._first.base(self._first.ops[n]) == self._last.base(op)]
        if made:
            likely = self._nearest([source.name for source in sources], same or list(marked))
            weight = LIKELY if len(marked) == 1 else AMBIGUOUS
            return [Source(name, OP_NAME, weight, 0) for name in likely[:_FEW]]
        return sources

    def _is_common(self, op: Op, source: Source) -> bool:
        """True if nobody can say which operation it was: equal ones are merged, and names are given to what had none."""
        was = self._first.ops[source.name]
        return not was.op_name and (bool(op.op_name) or op.opcode in _COMMON)

    def _doubted(self, op: Op, source: Source) -> Source:
        """A link to what the program calls otherwise than the text calls the operation is a contradiction."""
        other = self._first.ops[source.name].op_name
        if op.op_name and other and op.op_name.rpartition("/")[2] != other.rpartition("/")[2]:
            return attrs.evolve(source, weight=AMBIGUOUS)
        return source

    def _nearest(self, starts: list[str], wanted: list[str]) -> list[str]:
        """Those of some operations that are nearest to others in the program; all where none is near."""
        if len(wanted) <= 1:
            return wanted
        state, left = self._first, set(wanted)
        border, seen = starts, set(starts)
        while border and len(seen) < _AROUND:
            found = [name for name in border if name in left]
            if found:
                return found
            following: dict[str, None] = {}
            for name in border:
                op = state.ops[name]
                inner = behind(state, op, None)
                following.update(dict.fromkeys((inner[0].name,) if inner is not None else op.operands))
                following.update((user.name, None) for user, _ in state.home[name].users_of(name)[:16])
            border = [name for name in following if name not in seen and name in state.ops]
            seen.update(border)
        return wanted

    @functools.cached_property
    def _marks(self) -> dict[str, dict[str, None]]:
        """The operations of the program by their op_name, with those of all callers in front as they have it once inlined."""
        state = self._first
        prefixes: dict[str, set[str]] = {}
        if state.entry is not None:
            prefixes[state.entry.name] = {""}
        for part in reversed(list(state.parts.values())):
            if part.name in prefixes:
                continue
            found: set[str] = set()
            for caller in state.callers(part.name):
                above = prefixes.get(state.home[caller.name].name, {""})
                own = caller.op_name if caller.opcode == "call" else ""
                found.update(f"{prefix}/{own}".strip("/") if own else prefix for prefix in above)
            prefixes[part.name] = set(sorted(found)[:_MOST]) or {""}
        names: dict[str, dict[str, None]] = defaultdict(dict)
        for part in state.parts.values():
            for op in part.ops:
                if op.op_name:
                    names[op.op_name][op.name] = None
                    for prefix in prefixes[part.name]:
                        if prefix:
                            names[f"{prefix}/{op.op_name}"][op.name] = None
        return names


def _weakness(way: tuple[int, str, int]) -> tuple[int, bool]:
    return way[0], way[1] == INSERTED


__all__ = ["Source", "Sources"]
