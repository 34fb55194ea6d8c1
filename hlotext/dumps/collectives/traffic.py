"""Estimates what a changed annotation does to the traffic: which shardings follow, and what each operation then sends."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.annotations import Annotations, Site
from hlotext.dumps.collectives.arrays import Arrays, Axes, Operation, Value
from hlotext.dumps.collectives.fates import Fate, passes_of
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.specs import Spec
from hlotext.dumps.collectives.spreading import Spreading
from hlotext.dumps.collectives.volume import Sent, Volume
from hlotext.ir.tables import traits


@attrs.frozen
class _Bar:
    """Conditions under which a change counts as one that sends less."""

    total: float
    """Share of all traffic that it has to save."""
    net: float
    """Share that it has to save of what changes either way: a small difference of large numbers says nothing."""
    off: float
    """Maximum error in what the changed operations send now, as a share of what it saves."""


_SURE = _Bar(0.0, 0.1, 0.5)
"""However the operations are carried out. Of 228 such changes of the programs of XLA 5a9e73cbd 225 sent less, recompiled."""
_LIKELY = _Bar(0.03, 0.25, math.inf)
"""With the cheapest way to carry them out."""


@attrs.frozen
class Estimate:
    """Effect of a changed annotation on the traffic."""

    change: int | None
    """Bytes that each device sends more per run, in all; negative for less. None if it would be more than all is."""
    is_sure: bool
    """True if it sends less however the changed operations are carried out, and what they send now is what was estimated."""
    is_less: bool
    """True if it sends less, surely or by a margin."""
    results: Mapping[int, int] = {}
    """Bytes that each device holds more of the results that change, by their number."""
    least: int | None = None
    """Bytes that each device sends less per run however the changed operations are carried out, without what the estimate of
    today's traffic is wrong by; None if it is not sure."""
    placed: Collection[tuple[hlo.Instruction | None, hlo.Instruction | None]] = frozenset()
    """Of the changed operations those, each with an operand, that place this operand otherwise before and after alike."""
    work: float = 0.0
    """Share by which the products of each device grow in all, in operations; negative where they shrink."""


class Traffic:
    """Bytes sent by a program, and by the same program with one annotation changed."""

    def __init__(
        self,
        partitioner: Partitioner,
        annotations: Annotations,
        fates: Mapping[hlo.Instruction, Fate] | None = None,
        makes_scatters: bool = False,
    ) -> None:
        """Reads a program.

        Args:
            partitioner: The collectives of the partitioner.
            annotations: The annotations of the program.
            fates: What passes behind the partitioner made of its collectives; None to count as if there were none.
            makes_scatters: True for a compiler that makes reduce-scatters of sums that are cut.
        """
        self._fates = fates
        self._arrays = Arrays(partitioner, annotations)
        self._spreading = Spreading(self._arrays)
        likely, dear = passes_of(self._arrays, partitioner.written, fates or {}, makes_scatters)
        self._volume = Volume(self._arrays.sizes, likely)
        self._dear = self._volume if likely == dear else Volume(self._arrays.sizes, dear)
        self._now = self._spreading.spread()
        self._sent = {one.number: self._volume.of(one, self._now) for one in self._arrays.operations}
        self._products = [one for one in self._arrays.operations if one.opcode in traits.CONTRACTIONS]
        self._work = sum(self._work_of(one, self._sent[one.number]) for one in self._products)
        self._readers: dict[object, list[int]] = defaultdict(list)
        """Operations that take an array in a sharding, which only the first of them brings about."""
        for number, sent in self._sent.items():
            for key in sent.moves if sent is not None else ():
                self._readers[key].append(number)
        self._off = self._errors(partitioner)
        self._total = sum(map(self._sent_by, partitioner.written))
        self._known: dict[tuple[object, ...], Estimate | None] = {}

    def _sent_by(self, part: Written) -> float:
        """Bytes that a collective sends: those of the final HLO."""
        if self._fates is None:
            return (part.communication.wire_bytes or 0) * (part.communication.runs or 1)
        fate = self._fates.get(part.part)
        return fate.sent or 0.0 if fate is not None else 0.0

    def _errors(self, partitioner: Partitioner) -> dict[object, float]:
        """For each instruction the bytes by which the estimate of what it sends now is wrong."""
        off: dict[object, float] = defaultdict(float)
        for part in partitioner.written:
            off[part.users[0] if part.users else None] += self._sent_by(part)
        paid: dict[object, int] = {}
        for one in self._arrays.operations:
            sent = self._sent[one.number]
            if sent is None:
                continue
            off[one.node] -= sent.own * one.runs
            for key, moved in sent.moves.items():
                off[one.node] -= moved * max(0, one.runs - paid.get(key, 0))
                paid[key] = max(paid.get(key, 0), one.runs)
        return off

    def estimate(
        self,
        site: Site | None,
        node: hlo.Instruction,
        result: int | None,
        spec: Spec,
        following: tuple[int, ...] = (),
    ) -> Estimate | None:
        """Estimates the change in the traffic of all collectives if an annotation is replaced, or added to an array
        without one.

        Args:
            site: The annotation.
            node: The array.
            result: The number of the result that is annotated; None for others.
            spec: The new annotation.
            following: Numbers of results that are annotated so with it.

        Returns:
            None if what follows from it is not known.
        """
        key = site, node, result, spec, following
        if key not in self._known:
            changed = self._arrays.changed(site, node, result, spec.axes)
            for number in following if changed else ():
                changed |= self._arrays.changed(None, node, number, spec.axes)
            self._known[key] = self._of(changed, site is not None or result is not None) if changed else None
        return self._known[key]

    def _of(self, changed: dict[int, Axes], is_annotated: bool) -> Estimate | None:
        spec = self._spreading.spread(changed)
        touched = [one for one in self._arrays.operations if any(spec[n] != self._now[n] for n in one.ids)]
        likely = {one.number: self._volume.of(one, spec) for one in touched}
        counted = self._counted(touched, likely)
        if counted is None:
            return None
        change, gross, _ = highest = counted
        if self._dear is not self._volume:
            dearest = self._counted(touched, {one.number: self._dear.of(one, spec) for one in touched})
            assert dearest is not None
            highest = dearest
        off = sum(abs(self._off[node]) for node in dict.fromkeys(one.node for one in touched))
        is_known = not any(self._arrays.is_wrong(value, self._now) for one in touched for value in one.values)

        def is_met(bar: _Bar, saved: float, gross: float) -> bool:
            return saved > max(bar.total * self._total, bar.net * gross) and off < bar.off * saved

        saved = -highest[0] - highest[2]
        is_possible = -change <= self._total
        is_sure = is_possible and is_annotated and is_known and saved > 0 and is_met(_SURE, saved, highest[1])
        is_less = is_sure or is_met(_LIKELY, -change, gross)
        return Estimate(
            round(change) if is_possible else None,
            is_sure,
            is_less,
            self._grown(spec),
            round(saved - off) if is_sure else None,
            frozenset(self._placed(touched, likely)),
            self._grown_work(likely),
        )

    def _grown_work(self, new: Mapping[int, Sent | None]) -> float:
        """Share by which the products of each device grow."""
        changed = [one for one in self._products if one.number in new]
        more = sum(
            self._work_of(one, new[one.number]) - self._work_of(one, self._sent[one.number])
            for one in changed
        )
        return more / self._work if self._work else 0.0

    @staticmethod
    def _work_of(one: Operation, sent: Sent | None) -> float:
        """Products of elements that each device computes for an operation; 0 where that is unknown."""
        if one.rule is None or sent is None:
            return 0.0
        return math.prod(factor.size for factor in one.rule.factors) / sent.parts * one.runs

    def _placed(
        self, touched: list[Operation], new: dict[int, Sent | None]
    ) -> Iterator[tuple[hlo.Instruction | None, hlo.Instruction | None]]:
        for one in touched:
            before, after = self._sent[one.number], new[one.number]
            if before is None or after is None:
                continue
            kept = before.moves.keys() & after.moves.keys()
            for value, operand in zip(
                one.values, one.node.operands if one.node is not None else (), strict=False
            ):
                if any(isinstance(key, tuple) and key[0] == id(value) for key in kept):
                    yield one.node, operand

    def _grown(self, spec: Mapping[int, Axes]) -> dict[int, int]:
        """Bytes that each device holds more of the results whose shardings change."""
        return {
            number: round((self._held(one, spec[id(one)]) - self._held(one, self._now[id(one)])) * one.width)
            for number, one in self._arrays.results.items()
            if spec[id(one)] != self._now[id(one)]
        }

    def _held(self, one: Value, axes: Axes) -> int:
        """Elements of an array that each device holds."""
        sizes = self._arrays.sizes
        return math.prod(
            -(-size // math.prod(sizes[a] for a in cut))
            for size, cut in zip(one.dimensions, axes, strict=True)
        )

    def _counted(
        self, touched: list[Operation], new: dict[int, Sent | None]
    ) -> tuple[float, float, float] | None:
        """Bytes more in all, bytes that change either way, and bytes more if all is carried out the dearest way.

        None if it is not known what an operation sends.
        """
        change = most = gross = 0.0
        for one in touched:
            before, after = self._sent[one.number], new[one.number]
            if before is None or after is None:
                return None
            change += (after.own - before.own) * one.runs
            gross += abs(after.total - before.total) * one.runs
            if after.most is not None:
                most += max(0.0, after.most - after.total) * one.runs
        return change + self._moves(touched, new), gross, most

    def _moves(self, touched: list[Operation], new: dict[int, Sent | None]) -> float:
        """Bytes more to place operands: each placement is paid once, by all that want it."""
        asked: dict[object, list[tuple[float, int]]] = defaultdict(list)
        keys: dict[object, None] = {}
        for one in touched:
            before, after = self._sent[one.number], new[one.number]
            keys.update(dict.fromkeys(before.moves if before is not None else ()))
            for key, moved in after.moves.items() if after is not None else ():
                keys[key] = None
                asked[key].append((moved, one.runs))
        change = 0.0
        for key in keys:
            was = []
            for number in self._readers.get(key, ()):
                sent = self._sent[number]
                assert sent is not None
                was.append((sent.moves[key], self._arrays.operations[number].runs))
                if number not in new:
                    asked[key].append(was[-1])
            change += max((a * b for a, b in asked[key]), default=0.0) - max(
                (a * b for a, b in was), default=0.0
            )
        return change
