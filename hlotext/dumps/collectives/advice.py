"""Suggests the annotation that would spare a collective.

Each rule names one annotation and what to write there; `Traffic` follows it through the program, and only what sends less
in all is suggested. "Constrain the tensor that is gathered" is not among the rules: it spared none of 13.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping

import hlotext as hlo
from hlotext.analysis.entries import aliases_of, donors_of
from hlotext.analysis.updates import updates
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.advice_rules import CONSTRAINED, MEASURED_ON, RULES, TAKING, Where
from hlotext.dumps.collectives.annotations import Annotations
from hlotext.dumps.collectives.changes import Change, Changes
from hlotext.dumps.collectives.fates import Fate
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.places import Places
from hlotext.dumps.collectives.records import HIGH, LOW, Suggestion
from hlotext.dumps.collectives.specs import Spec, Specs, dimensions_of
from hlotext.dumps.collectives.traffic import Estimate, Traffic

MOST = 4
"""Maximum number of suggestions per reason."""


_MAKE_SCATTERS = frozenset({"tpu", "gpu"})
"""Compilers that make a reduce-scatter of a sum of which each device keeps a part."""


class Advice:
    """Suggestions for the collectives of one compilation."""

    def __init__(
        self,
        partitioner: Partitioner,
        annotations: Annotations,
        places: Places,
        where: Where,
        fates: Mapping[hlo.Instruction, Fate],
    ) -> None:
        self._partitioner = partitioner
        self._annotations = annotations
        self._places = places
        self._where = where
        self._fates = fates
        self._known_traffic: Traffic | None = None
        self.mesh = partitioner.mesh
        self._changes = Changes(partitioner, annotations, places)

    @property
    def _traffic(self) -> Traffic:
        if self._known_traffic is None:
            self._known_traffic = Traffic(
                self._partitioner, self._annotations, self._fates, self._where in _MAKE_SCATTERS
            )
        return self._known_traffic

    def suggestions(self, part: Written) -> tuple[Suggestion, ...]:
        """Returns up to four changes of one annotation that reduce the total traffic.

        Those that duplicate no work come first, among these constraints before other changes, then the most certain.
        """
        if self.mesh is None:
            return ()
        found: dict[tuple[str, str, int | None, Spec], tuple[Change, Estimate]] = {}
        order = list(RULES)
        for change in sorted(self._changes.of(part), key=lambda one: order.index(one.rule)):
            key = change.kind, change.name, change.line, change.spec
            if change.spec == change.now or key in found or not self._is_possible(change):
                continue
            result = int(change.name[len("result[") : -1]) if change.kind == "result" else None
            following = self._annotated_with(change)
            estimate = self._traffic.estimate(change.site, change.node, result, change.spec, following)
            if estimate is None or not estimate.is_less:
                continue
            # Work that is done several times is a sure price, and no unsure saving is worth it.
            if estimate.is_sure or estimate.work <= 0:
                found[key] = change, estimate
        made = [self._suggestion(change, part, estimate) for change, estimate in found.values()]
        made.sort(key=lambda one: (one.work > 0, one.rule != CONSTRAINED, one.confidence != HIGH))
        return tuple(made[:MOST])

    def _is_possible(self, change: Change) -> bool:
        """False for an argument or a result that would be cut into unequal parts, which jax refuses."""
        dimensions = dimensions_of(change.node)
        if change.kind == "constraint" or dimensions is None or len(dimensions) != change.spec.rank:
            return True
        return self.mesh is None or change.spec.divides(dimensions, self.mesh)

    def _suggestion(self, change: Change, part: Written, estimate: Estimate) -> Suggestion:
        rule = RULES[change.rule]
        measured = rule.spared[self._where]
        fate = self._fates.get(part.part)
        sent = round(fate.sent) if fate is not None and fate.sent is not None else None
        user = part.users[0] if part.users else None
        # Where other operations change, traffic in all may fall while this collective stays.
        spared = 0 if (user, part.tensor) in estimate.placed else sent
        total = estimate.change
        own = self._grows(change)
        following, annotated = self._following(change, estimate), self._annotated_with(change)
        grows = own + sum(following.values()) if own is not None else None
        lost = [self._places.of(one) for one in change.computed] if change.rule in TAKING else []
        because = wording.suggestion(
            change.label,
            str(change.spec),
            rule.what,
            spared,
            estimate.least,
            grows,
            change.kind == "constraint",
            [n for n in following if n in annotated],
            [n for n in following if n not in annotated],
            lost,
            measured,
            MEASURED_ON[self._where],
            estimate.work,
        )
        return Suggestion(
            kind=change.kind,
            name=change.name,
            line=change.line,
            spec=str(change.spec),
            now=str(change.now) if change.now is not None else None,
            confidence=HIGH if estimate.is_sure else LOW,
            because=because,
            rule=rule.name,
            measured=measured,
            measured_on=MEASURED_ON[self._where],
            bytes_spared=spared,
            bytes_per_device=grows,
            spec_axes=change.spec.axes,
            bytes_total=total,
            work=estimate.work,
        )

    def _grows(self, change: Change) -> int | None:
        """Bytes by which the annotated array grows on each device."""
        assert self.mesh is not None
        dimensions = dimensions_of(change.node)
        before = change.now or self._partitioner.spec(change.node)
        if dimensions is None or before is None or change.node.shape is None:
            return None
        if len(dimensions) != change.spec.rank or len(dimensions) != before.rank:
            return None
        width = change.node.shape.element_type.byte_width
        new, old = (math.prod(one.local(dimensions, self.mesh)) for one in (change.spec, before))
        return int((new - old) * width)

    def _following(self, change: Change, estimate: Estimate) -> dict[int, int]:
        """Bytes that each device holds more of the results that take the new sharding, by their number.

        One that Shardy is free to shard follows; one that the program shards as the argument that it is the new value of has
        to be annotated as the argument, or the next step reshards it. What is in an argument's own memory counts once.
        """
        if change.kind == "result":
            return {}
        module = self._annotations.module
        shared = {one.output_index[:1] for one in aliases_of(module)}
        found = {n: size for n, size in estimate.results.items() if not shared & {(n,), ()}}
        given = {one.param_number for one in donors_of(module)}
        for number in self._annotated_with(change) if change.node.parameter_number in given else ():
            found.pop(number, None)
        return {n: size for n, size in found.items() if size}

    def _annotated_with(self, change: Change) -> tuple[int, ...]:
        """The results that have to be annotated as an argument is: its new values, where the program shards them alike."""
        if change.kind != "argument":
            return ()
        return tuple(
            n
            for n in self._new_values.get(change.node, ())
            if self._annotations.is_fixed(n) and self._is_sharded_so(n, change)
        )

    @functools.cached_property
    def _new_values(self) -> dict[hlo.Instruction, list[int]]:
        """The results that are new values of arguments."""
        found: dict[hlo.Instruction, list[int]] = {}
        for update in updates(self._annotations.module, with_aliased=True):
            found.setdefault(update.parameter, []).append(update.index[0] if update.index else 0)
        return found

    def _is_sharded_so(self, result: int, change: Change) -> bool:
        """True if a result has the sharding that its argument has now."""
        assert self.mesh is not None
        sharding = self._partitioner.result_sharding(result)
        return sharding is not None and Specs(self.mesh).of(sharding, change.spec.rank) == change.now
