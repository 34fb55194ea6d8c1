"""Matches the operations of two texts of which one was transformed from the other.

Names are the first witness, but passes rename; structure is the second, but passes restructure. So candidates for each
operation are gathered from names, from the program's operations (`op_name`), from contents and from neighbours that are
known, and weighed by all of these together. What fits best is tried first, so that sure pairs help to find the others.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

import hlotext as hlo
from hlotext.diff.value_graph import Graph, base_opcode, element_count, family, op_name, plain_shape
from hlotext.diff.value_numbering import config_text
from hlotext.dumps.identity.states import stem
from hlotext.ir.tables import traits
from hlotext.ir.values.configs import BackendConfig

_LEFT_OUT = (
    traits.PROVENANCE
    | traits.ANNOTATIONS
    | traits.IDENTIFIERS
    | traits.REFERENCES
    | traits.SHARDING
    | traits.CONTROL
    | {"original_value", "outer_dimension_partitions"}
)
"""Attributes that say nothing of what an operation computes, or that other parts of the comparison look at."""

_FORM = 0.8
"""Weight of elements that are read in another form, where 1 is an identical read."""
_CANDIDATES = 24
"""Maximum number of similar operations that are compared with each other: those nearest in order."""


@attrs.frozen
class _Sweep:
    """One pass over what is not matched yet."""

    least: float
    """Minimum weight of a pair."""
    margin: float = 0.0
    """Minimum lead over the next best. Ambiguous pairs wait until their neighbours are known."""
    backwards: bool = False
    """True if users are visited before their operands."""
    may_share: bool = False
    """True if two operations may match the same old one, as clones do."""


_SWEEPS = (
    _Sweep(8, 1),
    _Sweep(6, 1),
    _Sweep(6, 1, backwards=True),
    _Sweep(6, 1),
    _Sweep(6, 0.5, backwards=True),
    _Sweep(8),
    _Sweep(6, 0.5, backwards=True),
    _Sweep(6),
    _Sweep(4.5, 0.5, may_share=True),
    _Sweep(4.5, backwards=True, may_share=True),
    _Sweep(3, may_share=True),
)


class Matching:
    """Matches the unpaired operations of two modules. Operations that only forward a value stand for its source."""

    def __init__(self, old: Graph, new: Graph, known: Mapping[hlo.Instruction, hlo.Instruction]) -> None:
        """Of two modules; `known` are the pairs, new to old, that are found already."""
        self.old, self.new = old, new
        self._pairs: dict[hlo.Instruction, hlo.Instruction] = {}
        self._taken: dict[hlo.Instruction, hlo.Instruction] = {}
        self._likenesses: dict[tuple[hlo.Instruction, hlo.Instruction], float] = {}
        self._old_real, self._new_real = old.real, new.real
        for mine, theirs in known.items():
            self._pair(mine, theirs)
        self._run()

    def partner(self, node: hlo.Instruction) -> hlo.Instruction | None:
        """Returns the old operation that matches a new one, or None if it is new."""
        return self._pairs.get(node)

    # ---- finding

    def _run(self) -> None:
        self._buckets()
        self._same_names()
        left = [node for node in self._new_real if node not in self._pairs]
        for sweep in _SWEEPS:
            self._sweep(sweep, left)
        self._replaced()

    def _pair(self, new: hlo.Instruction, old: hlo.Instruction) -> None:
        self._pairs[new] = old
        self._taken.setdefault(old, new)

    def _unpair(self, new: hlo.Instruction) -> None:
        old = self._pairs.pop(new)
        if self._taken.get(old) is new:
            del self._taken[old]

    def _buckets(self) -> None:
        """Where to look for operations that look alike."""
        self._by_content: dict[object, list[hlo.Instruction]] = defaultdict(list)
        self._by_op_name: dict[str, list[hlo.Instruction]] = defaultdict(list)
        for node in self._old_real:
            self._by_content[_content(node)].append(node)
            name = op_name(node)
            if name:
                self._by_op_name[name].append(node)
                # A call's operations get its name in front when they are put in its place.
                self._by_op_name["*" + name.rsplit("/", 1)[-1]].append(node)

    def _same_names(self) -> None:
        """Operations that kept their name, and are of the same kind; taken back where all that they read is another."""
        named: dict[hlo.Instruction, hlo.Instruction] = {}
        for node in self._new_real:
            if node in self._pairs:
                continue
            same = self.old.names.get(node.name)
            if same is None or same in self._taken or not self.old.is_real(same):
                continue
            if base_opcode(same) != base_opcode(node) or plain_shape(same.shape) != plain_shape(node.shape):
                continue
            first, second = op_name(node), op_name(same)
            if first and second and not _tails(first, second):
                continue
            if not _agrees(node, same):
                continue
            self._pair(node, same)
            named[node] = same
        for _ in range(2):
            wrong = [node for node, old in named.items() if self._contradicts(node, old)]
            for node in wrong:
                self._unpair(node)
                del named[node]
            if not wrong:
                break

    def _contradicts(self, new: hlo.Instruction, old: hlo.Instruction) -> bool:
        """True if everything known around two operations says that they are not the same."""
        good = bad = 0
        for mine, theirs in zip(self.new.inputs(new), self.old.inputs(old), strict=False):
            known = self._pairs.get(mine)
            if known is not None:
                good, bad = good + (known is theirs), bad + (known is not theirs)
        return bad > 0 and good == 0 and op_name(new) != op_name(old)

    def _sweep(self, sweep: _Sweep, left: Sequence[hlo.Instruction]) -> None:
        """One pass over what is not matched yet, of what names left over."""
        for node in reversed(left) if sweep.backwards else left:
            if node in self._pairs:
                continue
            weighed = []
            for candidate in self._candidates(node):
                is_taken = candidate in self._taken
                if is_taken and not sweep.may_share:
                    continue
                weight = self._weight(node, candidate) - 1.5 * is_taken
                weighed.append((weight, -self._distance(node, candidate), candidate))
            if not weighed:
                continue
            weighed.sort(key=lambda entry: entry[:2], reverse=True)
            best, _, chosen = weighed[0]
            margin = best - weighed[1][0] if len(weighed) > 1 else best
            if best >= sweep.least and margin >= sweep.margin:
                self._pair(node, chosen)

    def _distance(self, new: hlo.Instruction, old: hlo.Instruction) -> float:
        """Distance of two operations in the order of their texts, as shares of these."""
        return abs(
            self.new.place[new] / max(1, len(self.new.nodes))
            - self.old.place[old] / max(1, len(self.old.nodes))
        )

    def _candidates(self, node: hlo.Instruction) -> Iterable[hlo.Instruction]:
        found: dict[hlo.Instruction, None] = {}
        same = self.old.names.get(node.name)
        if same is not None and self.old.is_real(same):
            found[same] = None
        longer = node.name
        while "." in longer:
            longer = longer.rpartition(".")[0]
            shorter = self.old.names.get(longer)
            if shorter is not None and self.old.is_real(shorter):
                found[shorter] = None
                break
        for slot, operand in enumerate(self.new.inputs(node)):
            partner = self._pairs.get(operand)
            if partner is not None:
                users = self.old.users.get(partner, ())
                for user, place in users if len(users) <= _CANDIDATES else self._near(node, users):
                    if place == slot or len(users) < 4:
                        found[user] = None
        for user, slot in self.new.users.get(node, ())[:_CANDIDATES]:
            partner = self._pairs.get(user)
            if partner is not None:
                inputs = self.old.inputs(partner)
                if slot < len(inputs):
                    found[inputs[slot]] = None
        for operand in self.new.inputs(node)[:4]:
            partner = self._pairs.get(self.new.core(operand))
            if partner is not None:
                for user, _ in self._near(node, self.old.core_users(self.old.core(partner)))[:8]:
                    found[user] = None
        for user, slot in self.new.core_users(self.new.core(node))[:8]:
            partner = self._pairs.get(user)
            inputs = self.old.inputs(partner) if partner is not None else ()
            if slot < len(inputs):
                found[inputs[slot]] = None
                found[self.old.core(inputs[slot])] = None
        name = op_name(node)
        if name:
            self._nearest(node, self._by_op_name.get(name, ()), found)
            if name not in self._by_op_name:
                alike = self._by_op_name.get("*" + name.rsplit("/", 1)[-1], ())
                self._nearest(
                    node,
                    [other for other in alike if _tails(name, op_name(other))] if len(alike) < 500 else alike,
                    found,
                )
        self._nearest(node, self._by_content.get(_content(node), ()), found)
        return found

    def _near(
        self, node: hlo.Instruction, users: Sequence[tuple[hlo.Instruction, int]]
    ) -> Sequence[tuple[hlo.Instruction, int]]:
        base = base_opcode(node)
        alike = (use for use in users[:1000] if base_opcode(use[0]) == base)
        return list(itertools.islice(alike, _CANDIDATES))

    def _nearest(
        self, node: hlo.Instruction, among: Sequence[hlo.Instruction], into: dict[hlo.Instruction, None]
    ) -> None:
        """The first few of operations in order that are near in order."""
        if len(among) <= _CANDIDATES:
            into.update(dict.fromkeys(among))
            return
        wanted = self.new.place[node] * len(self.old.nodes) / max(1, len(self.new.nodes))
        middle = bisect.bisect(among, wanted, key=self.old.place.__getitem__)
        start = max(0, min(middle - _CANDIDATES // 2, len(among) - _CANDIDATES))
        into.update(dict.fromkeys(among[start : start + _CANDIDATES]))

    def _weight(self, new: hlo.Instruction, old: hlo.Instruction) -> float:
        """Total evidence that two operations are the same."""
        weight = self._likenesses.get((new, old))
        if weight is None:
            weight = self._likenesses[new, old] = likeness(new, old)
        return weight + self._neighbours(new, old)

    def _neighbours(self, new: hlo.Instruction, old: hlo.Instruction) -> float:
        """Evidence from operands and users of two operations."""
        mine, theirs = self.new.inputs(new)[:16], self.old.inputs(old)
        known = good = 0.0
        for slot, operand in enumerate(mine):
            partner = self._pairs.get(operand)
            there = theirs[slot] if slot < len(theirs) else None
            if partner is not None and (partner is there or (there is None and partner in theirs)):
                known, good = known + 1, good + 1
                continue
            core = self._pairs.get(self.new.core(operand))
            if core is not None:
                core = self.old.core(core)
                known += 1
                good += _FORM if there is not None and self.old.core(there) is core else 0
            elif partner is not None:
                known += 1
        weight = (4 * good - 2 * (known - good)) / len(mine) if known else 0.0
        return weight + self._readers(new, old)

    def _readers(self, new: hlo.Instruction, old: hlo.Instruction) -> float:
        """Evidence from the users of two operations."""
        seen = agreed = 0.0
        users = set(self.old.users.get(old, ())[:64])
        for user, slot in self.new.users.get(new, ())[:16]:
            partner = self._pairs.get(user)
            if partner is not None:
                seen, agreed = seen + 1, agreed + ((partner, slot) in users)
        if agreed < max(seen, 1):
            others = set(self.old.core_users(self.old.core(old))[:64])
            known = [
                (partner, slot) in others
                for user, slot in self.new.core_users(self.new.core(new))[:16]
                if (partner := self._pairs.get(user)) is not None
            ]
            if known and _FORM * sum(known) / len(known) > (agreed / seen if seen else 0):
                seen, agreed = len(known), _FORM * sum(known)
        return (3 * agreed - (seen - agreed)) / seen if seen else 0.0

    def _replaced(self) -> None:
        """Matches operations that replaced a removed one: same user, same shape."""
        for node in reversed(self._new_real):
            if node in self._pairs:
                continue
            for user, slot in self.new.users.get(node, ())[:_CANDIDATES]:
                partner = self._pairs.get(user)
                inputs = self.old.inputs(partner) if partner is not None else ()
                if slot < len(inputs) and inputs[slot] not in self._taken:
                    was = inputs[slot]
                    if element_count(was.shape) == element_count(node.shape) and was.opcode not in (
                        "constant",
                        "parameter",
                    ):
                        self._pair(node, was)
                        break


def likeness(new: hlo.Instruction, old: hlo.Instruction) -> float:
    """Returns the similarity of two operations, ignoring their neighbors. Higher is more similar."""
    weight = 0.0
    mine, theirs = base_opcode(new), base_opcode(old)
    if mine == theirs:
        weight += 5 if _agrees(new, old) else 2
    else:
        weight += 1.5 if family(mine) == family(theirs) else -2
    if plain_shape(new.shape) == plain_shape(old.shape):
        weight += 2
    elif element_count(new.shape) != element_count(old.shape):
        weight -= 1
    if new.name == old.name:
        weight += 3
    elif "." in old.name and new.name.startswith(f"{old.name}."):
        weight += 2  # a number more, as passes that make names unique put it
    elif stem(new.name) == stem(old.name):
        weight += 1
    first, second = op_name(new), op_name(old)
    if first and second:
        weight += 4 if first == second else 3.5 if _tails(first, second) else -4
    return weight


def _content(node: hlo.Instruction) -> object:
    """Content of an operation without its operands."""
    return base_opcode(node), plain_shape(node.shape)


def _agrees(new: hlo.Instruction, old: hlo.Instruction) -> bool:
    """True if attributes, parameter numbers and literals are the same."""
    if new.parameter_number != old.parameter_number:
        return False
    if new.opcode == "constant":
        return str(new.literal) == str(old.literal)
    mine, theirs = new.attributes, old.attributes
    for name in mine:
        if name not in _LEFT_OUT and (name not in theirs or not _is_same(theirs[name], mine[name])):
            return False
    return all(name in mine for name in theirs if name not in _LEFT_OUT)


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is BackendConfig and type(other) is BackendConfig:
        return one == other or config_text(one) == config_text(other)
    return bool(one == other)


def _tails(first: str, second: str) -> bool:
    """True if one name of an operation is the other with more scopes in front."""
    return first == second or first.endswith(f"/{second}") or second.endswith(f"/{first}")
