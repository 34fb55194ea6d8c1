"""The identity of operations over all steps of a compilation: links from each text to the one before, and queries of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from hlotext.dumps.identity.leftovers import complete
from hlotext.dumps.identity.local_ids import ids_of
from hlotext.dumps.identity.looking import behind
from hlotext.dumps.identity.pairing import AMBIGUOUS, LIKELY, SAME, SURE, Edge, Pairing
from hlotext.dumps.identity.states import State

if TYPE_CHECKING:
    from hlotext.dumps.step import Step

CREATED = "created"
_REBUILT = frozenset({"while"})
"""Opcodes that passes build anew, with a body and a condition of their own, instead of changing them."""


@attrs.frozen(eq=False)
class _Layer:
    """One text that differs from the one before."""

    step: Step
    edges: dict[str, Edge]
    bases: dict[str, str]
    """The base opcodes of the names that came with it."""
    reads: dict[str, tuple[str, ...]]
    """Operands of created operations, by the names of the text before."""


@attrs.frozen
class Origin:
    """The step that introduced an operation, found by following links."""

    index: int
    """Of the layer."""
    name: str
    """Name there."""
    weight: int
    """The weakest link on the way."""
    passed: tuple[tuple[int, str, Edge], ...] = ()
    """The links on the way, latest first, with their layers and names."""
    rebuilt: Origin | None = None
    """Of a loop that a pass built anew to carry other state: the origin of the one that it replaced."""


class Chain:
    """The links between consecutive steps of a compilation. At most two texts are in memory."""

    def __init__(self, texts: Iterator[tuple[Step, str]]) -> None:
        self.layers: list[_Layer] = []
        self._merged: dict[tuple[int, str], Origin] = {}
        """The origins of what was merged, by layer and name."""
        before: State | None = None
        self.first: State | None = None
        for step, following in texts:
            state = state_of(step, following, before)
            if state is before:
                continue
            if before is None:
                self.first = state
                bases = {op.name: state.base(op) for op in state.ops.values()}
                layer = _Layer(step, {}, bases, {})
            else:
                pairing = paired(before, state, step.name)
                reads = _created(pairing)
                bases = {op.name: state.base(op) for op in pairing.fresh}
                layer = _Layer(step, pairing.edges, bases, reads)
            self.layers.append(layer)
            for name, edge in layer.edges.items():
                if len(edge.before) > 1:  # those before it are known: no way is long
                    self._merged[len(self.layers) - 1, name] = self._of_merged(name, edge)
            before = state
        self.last = before

    def base(self, name: str, index: int) -> str:
        """Returns the base opcode of an operation in a layer; empty if unknown."""
        for layer in reversed(self.layers[: index + 1]):
            found = layer.bases.get(name)
            if found is not None:
                return found
        return ""

    def walk(self, name: str, index: int | None = None) -> Iterator[tuple[int, str, Edge]]:
        """Yields the links of an operation of the last text, latest first, each with its layer and name.

        Of an operation merged from several, the first is followed.
        """
        at = len(self.layers) - 1 if index is None else index
        while at > 0:
            edge = self.layers[at].edges.get(name)
            if edge is not None:
                yield at, name, edge
                if not edge.before:
                    return
                name = edge.before[0]
            at -= 1

    def origin(self, name: str, index: int | None = None) -> Origin:
        """Returns the step that introduced the operation, following links as long as the base opcode stays the same.

        A merged operation originates where all its parts do; if these are in different steps, in the step that merged
        them.
        """
        weight, base = SAME, ""
        passed: list[tuple[int, str, Edge]] = []
        at, current = 0, name
        for at, current, edge in self.walk(name, index):
            base = base or self.base(current, at)
            if not edge.before:
                return Origin(at, current, max(weight, edge.weight), tuple(passed))
            if edge.kind == "place" and base in _REBUILT:
                was = self.origin(edge.before[0], at - 1)
                passed += [(at, current, edge), *was.passed]
                return Origin(at, current, max(weight, edge.weight), tuple(passed), was)
            if self.base(edge.before[0], at - 1) != base:
                ambiguous = edge.weight if edge.weight == AMBIGUOUS else SURE
                return Origin(at, current, max(weight, ambiguous), tuple(passed))
            if len(edge.before) > 1:
                merged = self._merged[at, current]
                return attrs.evolve(
                    merged, weight=max(weight, merged.weight), passed=(*passed, *merged.passed)
                )
            weight = max(weight, edge.weight)
            passed.append((at, current, edge))
            current = edge.before[0]
        return Origin(0, current, weight, tuple(passed))

    def _of_merged(self, name: str, edge: Edge) -> Origin:
        """The origin of what was merged in the last layer."""
        at = len(self.layers) - 1
        found = [self.origin(one, at - 1) for one in edge.before]
        if len({one.index for one in found}) > 1:
            return Origin(at, name, edge.weight)
        weight = max(edge.weight, *(one.weight for one in found))
        return attrs.evolve(found[0], weight=weight, passed=((at, name, edge), *found[0].passed))


def state_of(step: Step, text: str, before: State | None = None) -> State:
    """Creates the state of a step from its text in `usual_form`. Returns `before` if the text is unchanged."""
    if before is not None and before.text == text:
        return before
    return State(text, before, functools.partial(ids_of, step))


def paired(old: State, new: State, pass_name: str = "") -> Pairing:
    """Pairs the operations of two states of one compilation. `pass_name` is the pass between them, if known."""
    pairing = Pairing(old, new, _mode(old, new, pass_name))
    complete(pairing)
    return pairing


def _mode(old: State, new: State, pass_name: str) -> str:
    if ("xla.sdy.meshes" in old.head and "xla.sdy.meshes" not in new.head) or "shardy" in pass_name:
        return "reimported"
    if new.entry is None or old.entry is None:
        return ""
    is_partitioned = new.entry.name.endswith("_spmd") and not old.entry.name.endswith("_spmd")
    return "partitioned" if is_partitioned else ""


def _created(pairing: Pairing) -> dict[str, tuple[str, ...]]:
    """Marks what nothing led to, and says what it was made for and reads: the nearest operations that were there before."""
    reads: dict[str, tuple[str, ...]] = {}
    lost = {pairing.old.base(op) for _, op in pairing.gone if not pairing.claimed.get(op.name)}
    for op in pairing.fresh:
        if op.name not in pairing.edges:
            rival = pairing.new.base(op) in lost
            pairing.edges[op.name] = Edge(CREATED, (), LIKELY if rival else SURE)
            found: dict[str, None] = {}
            pending, seen = list(op.operands[:_READ]), {op.name}
            while pending and len(found) < _READ and len(seen) < 4 * _READ:
                name = pending.pop(0)
                if name in seen:
                    continue
                seen.add(name)
                was = pairing.was(name)
                if was is not None:
                    found[was.name] = None
                elif (inner := pairing.new.ops.get(name)) is not None:
                    following = behind(pairing.new, inner, None)
                    pending[:0] = [following[0].name] if following is not None else inner.operands[:_READ]
            with_it = {
                name: None
                for user, _ in pairing.new.home[op.name].users_of(op.name)[:_READ]
                if (edge := pairing.edges.get(user.name)) is not None
                for name in edge.before[:1]
            }
            reads[op.name] = (*with_it, *found)[:_MOST_READ]
    return reads


_READ, _MOST_READ = 8, 3
