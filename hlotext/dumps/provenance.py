"""Where the operations of a text come from, step by step, down to the program before optimization."""

from __future__ import annotations

import functools
from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.diff.graph import Graph, base_opcode, family, op_name, plain_shape
from hlotext.diff.matching import HIGH, LOW, MEDIUM, RANK, RULES, Matching
from hlotext.dumps.step import Step
from hlotext.dumps.timeline import whole_text

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation


@attrs.frozen
class Link:
    """One operation before optimization that a final one comes from."""

    instruction: hlo.Instruction
    """An operation of `Compilation.before`."""
    rule: str
    """The rule of the weakest match on the way."""
    confidence: str
    """`high`, `medium` or `low`: that of the weakest match on the way."""
    step: Step
    """Where that match was made."""


class _Steps:
    """The matching of one step with the one before, kept as numbers: the places of operations in their texts."""

    def __init__(self, matching: Matching) -> None:
        old, new = matching.old, matching.new
        self.one = array("i", [-1]) * len(new.nodes)
        """The place of what each operation was; -1 for none, -2 for several."""
        self.how = bytearray(len(new.nodes))
        """By which rule and how surely."""
        self.several: dict[int, tuple[int, ...]] = {}
        for node, match in matching.found.items():
            place = new.place[node]
            self.how[place] = RULES.index(match.rule) * 3 + RANK[match.confidence]
            places = tuple(old.place[old.source(other)] for other in match.nodes)
            if len(places) == 1:
                self.one[place] = places[0]
            elif places:
                self.one[place] = -2
                self.several[place] = places

    def of(self, place: int) -> tuple[tuple[int, ...], str, str]:
        """What an operation was, the rule, and how sure that is."""
        one = self.one[place]
        rule, rank = divmod(self.how[place], 3)
        places = () if one == -1 else self.several[place] if one == -2 else (one,)
        return places, RULES[rule], _CONFIDENCES[rank]


_CONFIDENCES = {rank: name for name, rank in RANK.items()}


class Provenance:
    """The chain of matchings of one compilation. Texts are read once, one after the other, and only the ends kept."""

    def __init__(self, compilation: Compilation) -> None:
        first, last = compilation.first, compilation.last
        if first is None or last is None:
            missing = "before optimization" if first is None else "after optimization"
            raise LookupError(f"{compilation.name} has no text {missing}, so nothing can be traced")
        self.at: list[Step] = [first]
        """The steps that have another text than the one before."""
        self._matchings: list[_Steps] = []
        self.before = graph = Graph(first.module)
        text = first.file.text()
        for step in compilation.steps[first.index + 1 : last.index + 1]:
            following = whole_text(step) if step is not last else step.file.text()
            if following is None or following == text:
                continue  # what cannot be read is passed over
            module = last.module if step is last else _parsed(following, step)
            if module is None:
                continue
            text = following
            new = Graph(module)
            self._matchings.append(_Steps(Matching(graph, new)))
            self.at.append(step)
            graph = new
        self.final = graph
        self._by_op_name = _full_names(self.before)

    def trace(self, name: str) -> tuple[Link, ...]:
        """See `Compilation.trace`."""
        node = self.final.module.find(name)
        if not isinstance(node, hlo.Instruction):
            raise LookupError(f"there is no instruction {name} in {self.at[-1].path}")
        links: dict[hlo.Instruction, Link] = {}
        for real in self._meant(node):
            for link in self._trace(real):
                links.setdefault(link.instruction, link)
        return tuple(links.values())

    def forward(self, name: str) -> tuple[Link, ...]:
        """See `Compilation.forward`."""
        node = self.before.module.find(name)
        if not isinstance(node, hlo.Instruction):
            raise LookupError(f"there is no instruction {name} in {self.at[0].path}")
        source = self.before.source(node)
        return tuple(attrs.evolve(link, instruction=final) for final, link in self._forward.get(source, ()))

    @functools.cached_property
    def _forward(self) -> dict[hlo.Instruction, list[tuple[hlo.Instruction, Link]]]:
        found: dict[hlo.Instruction, list[tuple[hlo.Instruction, Link]]] = defaultdict(list)
        for node in self.final.nodes:
            if self.final.is_real(node):
                for link in self._trace(node):
                    found[link.instruction].append((node, link))
        return found

    def _meant(self, node: hlo.Instruction) -> Iterable[hlo.Instruction]:
        """The operations that a node stands for: of a fusion those that it is named after, else its results."""
        reals = self.final.results(node)
        name = op_name(node)
        if node.opcode != "fusion" or not node.called_computations:
            return reals
        body = [inner for inner in node.called_computations[0].instructions if self.final.is_real(inner)]
        named = [inner for inner in body if name and op_name(inner) == name]
        if named:
            ends = [inner for inner in named if inner in reals]
            return ends or named[-1:]
        products = [inner for inner in body if family(inner.opcode) == "product"]
        return products or reals

    def _trace(self, real: hlo.Instruction) -> list[Link]:
        """Follows one operation back."""
        current: dict[int, tuple[str, str, int]] = {
            self.final.place[real]: ("same", HIGH, len(self._matchings))
        }
        for index in range(len(self._matchings) - 1, -1, -1):
            following: dict[int, tuple[str, str, int]] = {}
            for place, way in current.items():
                places, rule, confidence = self._matchings[index].of(place)
                for old in places:
                    following.setdefault(old, min(way, (rule, confidence, index + 1), key=_trust))
            current = following
        links = [Link(self.before.nodes[node], *way[:2], self.at[way[2]]) for node, way in current.items()]
        return self._with_op_name(real, links)

    def _with_op_name(self, real: hlo.Instruction, links: list[Link]) -> list[Link]:
        """What the name of the program's operation says about it."""
        name = op_name(real)
        named = self._by_op_name.get(name, {}) if name else {}
        links = [_doubted(link, len(named)) for link in links]
        if not named:
            return [link if not name and link.rule in _SURE else _at_most_medium(link) for link in links]
        both = [link for link in links if link.instruction in named]
        if both:
            return both
        near = self._near([link.instruction for link in links], named)
        same = _alike(real, near or list(named))
        sure = MEDIUM if len(named) == 1 else LOW
        return [Link(node, "op_name", sure, self.at[0]) for node in same[:2]]

    def _near(
        self, starts: Iterable[hlo.Instruction], wanted: dict[hlo.Instruction, None]
    ) -> list[hlo.Instruction]:
        """Those of some operations before optimization that are nearest to where a chain led, if any is near."""
        graph = self.before
        seen = dict.fromkeys(starts)
        border = list(seen)
        while border and len(seen) < _NEIGHBOURHOOD:
            found = [node for node in border if node in wanted]
            if found:
                return found
            following: dict[hlo.Instruction, None] = {}
            for node in border:
                following.update(dict.fromkeys(graph.inputs(node)))
                following.update(dict.fromkeys(user for user, _ in graph.users.get(node, ())[:16]))
            border = [node for node in following if node not in seen]
            seen.update(dict.fromkeys(border))
        return []


def _parsed(text: str, step: Step) -> hlo.Module | None:
    """The module of a text; None for what is no HLO."""
    try:
        return hlo.parse(text, name=step.path)
    except hlo.HloSyntaxError:
        return None


def _trust(link: tuple[str, str, int]) -> tuple[int, int]:
    """How far a match can be trusted; a chain is what its weakest match is."""
    return RANK[link[1]], -RULES.index(link[0])


_SURE = ("same", "position", "name")
"""Rules that are sure where the text does not say which operation of the program it is."""


def _at_most_medium(link: Link) -> Link:
    return attrs.evolve(link, confidence=MEDIUM) if link.confidence == HIGH else link


def _doubted(link: Link, named: int) -> Link:
    """A link that hangs on names which several operations share is not of high confidence."""
    return _at_most_medium(link) if link.rule == "stem" or (link.rule == "op_name" and named > 1) else link


_NEIGHBOURHOOD = 600
"""How many operations around the end of a chain are looked at for one that the program calls the same."""


def _alike(real: hlo.Instruction, among: list[hlo.Instruction]) -> list[hlo.Instruction]:
    """Those of some operations that are of the same kind and shape, if any are."""
    same = [n for n in among if base_opcode(n) == base_opcode(real)]
    same = same or [n for n in among if family(n.opcode) == family(real.opcode)] or among
    return [n for n in same if plain_shape(n.shape) == plain_shape(real.shape)] or same


def _full_names(graph: Graph) -> dict[str, dict[hlo.Instruction, None]]:
    """The operations by their name with those of all callers in front, as they have it once calls are inlined."""
    prefixes: dict[hlo.Computation, set[str]] = {graph.module.entry: {""}}
    for computation in reversed(graph.module.computations):
        if computation in prefixes:
            continue
        found: set[str] = set()
        for caller in graph.callers.get(computation, ()):
            above = prefixes.get(caller.computation, {""}) if caller.computation is not None else {""}
            name = op_name(caller) if caller.opcode == "call" else ""
            for prefix in above:
                found.add(f"{prefix}/{name}".strip("/") if caller.opcode == "call" else prefix)
        prefixes[computation] = set(sorted(found)[:64]) or {""}
    names: dict[str, dict[hlo.Instruction, None]] = defaultdict(dict)
    for node in graph.nodes:
        own = op_name(node)
        if own and node.computation is not None:
            names[own][node] = None
            for prefix in prefixes.get(node.computation, ()):
                if prefix:
                    names[f"{prefix}/{own}"][node] = None
    return names
