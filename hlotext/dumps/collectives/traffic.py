"""Estimates what all collectives send if an annotation loses axes: some vanish, others move larger shards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.annotations import Annotations, Site
from hlotext.dumps.collectives.following import Step, contracted
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.records import HALO, PARTIAL, RESHARD
from hlotext.dumps.collectives.specs import Spec, dimensions_of, whole
from hlotext.ir.tables import opcodes

_MOST_READERS = 8
"""Maximum number of elementwise operations followed to one that reads an annotated array."""


@attrs.frozen
class _Effect:
    """Change of one collective if an annotation loses axes."""

    part: Written
    axes: frozenset[str]
    """The axes that all have to go."""
    factor: int
    """Bytes sent then, in multiples of those sent now: 0 if it vanishes."""
    sent: int


class Traffic:
    """Bytes sent by the collectives of one compilation, by the annotations that their axes come from.

    An axis of an array comes from the annotations that a walk backwards finds. If they are one, and it loses the axis, so
    does the array: what was communicated along the axis vanishes, and what is communicated along others grows.
    """

    def __init__(self, partitioner: Partitioner, annotations: Annotations) -> None:
        self._partitioner = partitioner
        self._annotations = annotations
        self._effects: dict[Site, list[_Effect]] | None = None

    def change(self, part: Written, site: Site, axes: Iterable[str]) -> int | None:
        """Estimated change in bytes that each device sends per run if an annotation loses axes, which spares a collective.

        None if that sends an unknown number of bytes.
        """
        wire, runs = part.communication.wire_bytes, part.communication.runs
        if wire is None or runs is None:
            return None
        if self._effects is None:
            self._effects = self._all()
        gone = frozenset(axes)
        found = [one for one in self._effects.get(site, ()) if one.axes <= gone]
        total = sum(one.sent * (one.factor - 1) for one in found if one.part is not part)
        return total - wire * runs

    def _all(self) -> dict[Site, list[_Effect]]:
        found: dict[Site, list[_Effect]] = defaultdict(list)
        along_all: dict[object, set[str]] = defaultdict(set)
        for part in self._partitioner.written:
            along_all[part.tensor, part.users].update(whole(part.axes))
        for part in self._partitioner.written:
            wire, runs = part.communication.wire_bytes, part.communication.runs
            if not wire or not runs:
                continue
            along, steps = whole(part.axes), along_all[part.tensor, part.users]
            sites = [self._only_site(self._cut_along(part, axis), axis) for axis in along]
            if sites and sites[0] is not None and all(one == sites[0] for one in sites):
                found[sites[0]].append(_Effect(part, frozenset(along), 0, wire * runs))
            moved = part.tensor if part.cause in (RESHARD, HALO) else next(iter(part.users), None)
            spec = self._partitioner.spec(moved) if moved is not None else None
            for dimension, cut in enumerate(spec.axes if spec is not None else ()):
                for axis in cut:
                    assert moved is not None
                    if axis in steps:
                        continue  # what is moved in several steps grows by those before
                    site = self._only_site([(moved, dimension)], axis)
                    if site is not None:
                        found[site].append(_Effect(part, frozenset({axis}), self._size(axis), wire * runs))
        return found

    def _cut_along(self, part: Written, axis: str) -> list[Step]:
        """The arrays' dimensions that make a collective go along an axis."""
        if part.cause == PARTIAL and part.users:
            places: list[Step] = contracted(part.users[0])
        elif part.cause in (RESHARD, HALO) and part.tensor is not None and part.have is not None:
            places = [(part.tensor, dimension) for dimension in range(part.have.rank)]
        else:
            return []
        return [place for place in places if self._has(*place, axis)]

    def _has(self, node: hlo.Instruction, dimension: int, axis: str) -> bool:
        spec = self._partitioner.spec(node)
        return spec is not None and dimension < spec.rank and axis in spec.axes[dimension]

    def _only_site(self, places: list[Step], axis: str) -> Site | None:
        """The one annotation that an axis of some dimensions comes from."""
        sites = {site for place in places for site in self._sites(*place, axis)}
        return sites.pop() if len(sites) == 1 else None

    def _sites(self, node: hlo.Instruction, dimension: int, axis: str) -> set[Site]:
        """The annotations that an axis comes from: what made the array, else what it is computed with."""
        for _ in range(_MOST_READERS):
            origins = self._annotations.origins(node, dimension, axis)
            if origins:
                return {origin.site for origin in origins}
            users = [
                user
                for user in node.user_view
                if user.opcode in opcodes.ELEMENTWISE and dimensions_of(user) == dimensions_of(node)
            ]
            if not users or not self._has(users[0], dimension, axis):
                break
            node = users[0]
        return set()

    def _size(self, axis: str) -> int:
        mesh = self._partitioner.mesh
        return mesh.sizes[mesh.names.index(axis)] if mesh is not None else 1

    def is_held(self, site: Site, spec: Spec) -> bool:
        """True if what a constraint takes has axes from another annotation that the constraint is to lose or to move.

        They are there all the same, and have to be gathered or moved for it.
        """
        if site.kind != "constraint" or not site.node.operands:
            return False
        return any(
            axis not in wanted and self._annotations.origins(site.node.operands[0], dimension, axis)
            for dimension, (had, wanted) in enumerate(zip(site.spec.axes, spec.axes, strict=False))
            for axis in had
        )
