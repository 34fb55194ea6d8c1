"""`Compilation.identity`: what an operation was at each step, who brought it, and what of the program it comes from."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.analysis.meant import names_meant
from hlotext.dumps.identity.graph import Chain, Origin
from hlotext.dumps.identity.owners import Owner, owner
from hlotext.dumps.identity.pairing import SURE, Edge
from hlotext.dumps.identity.sources import Source, Sources
from hlotext.dumps.identity.states import usual_form
from hlotext.dumps.step import Step
from hlotext.dumps.timeline import whole_text
from hlotext.ir import gc_control

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

HIGH, MEDIUM, LOW = "high", "medium", "low"
_CONFIDENCES = (HIGH, HIGH, MEDIUM, LOW)
_MOST_CANDIDATES = 16


@attrs.frozen
class Event:
    """A change of an operation between two steps of a compilation, such as a rename or a merge."""

    step: Step
    """The first step that shows the event."""
    kind: str
    """Kind of event.

    `replaced`, `renamed`, `cloned`, `place` (took the position of another operation of the same kind), `partitioned`,
    `split`, `merged` or `created`.
    """
    name: str
    """Name from that step on."""
    before: tuple[str, ...] = ()
    """Names in the previous step: several if merged, empty if new."""
    pass_name: str = ""
    """Name of the responsible pass."""
    confidence: str = HIGH
    """Confidence: `high`, `medium` or `low`."""
    owner: Owner | None = None
    """The responsible pass in detail, with `is_bracket` if only the surrounding passes are known."""


@attrs.frozen
class Birth:
    """First appearance of an operation in the steps of a compilation."""

    step: Step
    name: str
    """Name of the operation in that step."""
    confidence: str = HIGH
    candidates: tuple[str, ...] = ()
    """Operations in that step that it may originate from; a single operation if certain."""
    owner: Owner | None = None
    """The pass that introduced it, or None if unknown."""
    history: tuple[Event, ...] = ()
    """Later events, latest first, ending with the creation unless the program already had the operation."""
    rebuilt: Birth | None = None
    """First appearance of the original loop, for a loop that a pass rebuilt with different state; otherwise None."""


@attrs.frozen
class Link:
    """A link from a final operation to its origin before optimization."""

    instruction: hlo.Instruction
    """An operation of `Compilation.before`."""
    rule: str
    """Kind of the weakest step of the link.

    `same`; one of `Event.kind`; `inserted` for operands of an operation that a pass created, or that were replaced by
    their user; `op_name` for a match by op_name.
    """
    confidence: str
    """Confidence of the weakest step: `high`, `medium` or `low`."""
    step: Step
    """The step of the compilation at which the weakest step occurs."""


class Identity:
    """Identity of operations over all steps of a compilation. Files are read once, in order.

    Raises InputError or HloSyntaxError if the final HLO cannot be read. Earlier files that cannot be read are skipped.
    """

    def __init__(self, compilation: Compilation) -> None:
        self._compilation = compilation
        last = compilation.last
        self._steps = compilation.steps if last is None else compilation.steps[: last.index + 1]
        with gc_control.gc_paused(collect_first=False):  # texts and pairs are no cycles
            self._chain = Chain(_texts(self._steps, last))

    def __contains__(self, name: str) -> bool:
        return self._chain.last is not None and name.removeprefix("%") in self._chain.last.ops

    @property
    def shows_passes(self) -> bool:
        """True if there are steps between the first and the final HLO."""
        return any(step.is_pass for step in self._steps)

    def history(self, name: str) -> tuple[Event, ...]:
        """Returns the events in the history of an operation of the final HLO, latest first.

        Steps that left it unchanged are omitted. Raises LookupError if the final HLO has no operation with this name.
        """
        name = self._known(name)
        return tuple(self._event(index, at, edge) for index, at, edge in self._chain.walk(name))

    def births(self, names: Iterable[str]) -> dict[str, Birth]:
        """Returns the first appearances of operations of the final HLO, by name. Unknown names are omitted.

        An operation keeps its identity when it is renamed, copied with its computation, made asynchronous, or rewritten
        into one of the same opcode.
        """
        found = {}
        for name in names:
            if name in self and (birth := self.birth(name)) is not None:
                found[name.removeprefix("%")] = birth
        return found

    def earlier_names(self, names: Iterable[str], step: Step, earlier: Step) -> dict[str, str]:
        """Returns the names in an earlier step of operations of a later step, where all links in between are certain.

        Newer operations are omitted, as are those with uncertain links. Returns nothing for steps after the final HLO.
        """
        first, last = self._layer_of(earlier), self._layer_of(step)
        if first is None or last is None:
            return {}
        layers = self._chain.layers[first + 1 : last + 1][::-1]
        found = {}
        for name in names:
            current: str | None = name
            for layer in layers:
                edge = layer.edges.get(current) if current is not None else None
                if edge is not None:
                    is_sure = edge.weight <= SURE and len(edge.before) == 1
                    current = edge.before[0] if is_sure else None
            if current is not None:
                found[name] = current
        return found

    def _layer_of(self, step: Step) -> int | None:
        """The number of the layer that shows a step's text; None behind the final HLO."""
        if step.index >= len(self._steps):
            return None
        numbers = [n for n, layer in enumerate(self._chain.layers) if layer.step.index <= step.index]
        return numbers[-1] if numbers else None

    def birth(self, name: str) -> Birth:
        """Returns the first appearance of an operation, by its final name. Raises LookupError for other names."""
        return self._birth(self._chain.origin(self._known(name)))

    def _birth(self, origin: Origin) -> Birth:
        step = self._chain.layers[origin.index].step
        confidence = HIGH if origin.weight <= SURE else MEDIUM
        if not self.shows_passes and self._chain.layers[1:]:  # nothing of the way is seen
            confidence = LOW if origin.weight > SURE else MEDIUM
        events = [self._event(*passed) for passed in origin.passed]
        first = origin
        while first.rebuilt is not None:
            first = first.rebuilt
        if first.index:
            edge = self._chain.layers[first.index].edges[first.name]
            events.append(self._event(first.index, first.name, edge))
        rebuilt = self._birth(first) if first is not origin else None
        return Birth(
            step, origin.name, confidence, self._candidates(origin), self._owner(step), tuple(events), rebuilt
        )

    def _candidates(self, origin: Origin) -> tuple[str, ...]:
        """Possible sources of an operation."""
        found = {origin.name: None}
        for index, _, edge in origin.passed:
            for equal in edge.equals[:_MOST_CANDIDATES]:
                found[self._chain.origin(equal, index - 1).name] = None
        return tuple(found)[:_MOST_CANDIDATES]

    def sources(self, name: str) -> tuple[Link, ...]:
        """Finds the original operations of a final operation. Results and errors are those of `Compilation.trace`."""
        self._need_both_ends()
        assert self._compilation.first is not None
        before = self._compilation.first.module
        found = []
        for source in self._sources.of(self._known(name)):
            node = before.find(source.name)
            if isinstance(node, hlo.Instruction):
                found.append(self._link(node, source))
        return tuple(found)

    def results(self, name: str) -> tuple[Link, ...]:
        """Finds the final operations that an operation became. Results and errors are those of `Compilation.forward`."""
        self._need_both_ends()
        before, after = self._compilation.before, self._compilation.after
        assert before is not None
        assert after is not None
        if not isinstance(before.find(name), hlo.Instruction):
            raise LookupError(f"no instruction {name} in {self._steps[0].path}{names_meant(before, name)}")
        links = []
        for final, source in self._forward.get(name.removeprefix("%"), ()):
            node = after.find(final)
            if isinstance(node, hlo.Instruction):
                links.append(self._link(node, source))
        return tuple(links)

    def _link(self, node: hlo.Instruction, source: Source) -> Link:
        step = self._chain.layers[source.index].step
        return Link(node, source.rule, _CONFIDENCES[source.weight], step)

    @functools.cached_property
    def _sources(self) -> Sources:
        return Sources(self._chain)

    @functools.cached_property
    def _forward(self) -> dict[str, list[tuple[str, Source]]]:
        found: dict[str, list[tuple[str, Source]]] = defaultdict(list)
        state = self._chain.last
        for name in state.ops if state is not None else ():
            for source in self._sources.of(name):
                found[source.name].append((name, source))
        return found

    def _need_both_ends(self) -> None:
        compilation = self._compilation
        if compilation.first is None or compilation.last is None:
            missing = "before optimization" if compilation.first is None else "after optimization"
            raise LookupError(f"{compilation.name} has no text {missing}, so nothing can be traced")

    def _known(self, name: str) -> str:
        if name not in self:
            where = self._steps[-1].path if self._steps else self._compilation.name
            after = self._compilation.after
            raise LookupError(
                f"no instruction {name} in {where}{names_meant(after, name) if after is not None else ''}"
            )
        return name.removeprefix("%")

    def _event(self, index: int, name: str, edge: Edge) -> Event:
        step = self._chain.layers[index].step
        found = self._owner(step)
        return Event(step, edge.kind, name, edge.before, found.name, _CONFIDENCES[edge.weight], found)

    def _owner(self, step: Step) -> Owner:
        found = self._owners.get(step.index)
        if found is None:
            found = self._owners[step.index] = owner(self._compilation.steps, step.index)
        return found

    @functools.cached_property
    def _owners(self) -> dict[int, Owner]:
        return {}


def _texts(steps: Sequence[Step], last: Step | None) -> Iterator[tuple[Step, str]]:
    """The texts that can be read, in their usual form."""
    for step in steps:
        text = usual_form(step.file.text()) if step is last else whole_text(step)
        if text is not None:
            yield step, text
