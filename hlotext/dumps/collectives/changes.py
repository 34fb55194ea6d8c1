"""Finds the annotations that a collective comes from, and what to write there: changes that may spare it, by rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.advice_rules import CONSTRAINED
from hlotext.dumps.collectives.annotations import Annotations, Origin, Site
from hlotext.dumps.collectives.carrying import carried_out
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.places import Places, is_constraint
from hlotext.dumps.collectives.records import HALO, PARTIAL, RESHARD, RESULT
from hlotext.dumps.collectives.specs import Spec, dimensions_of, whole
from hlotext.ir.tables import opcodes


@attrs.frozen
class Change:
    """A change proposed by a rule, before it is formatted."""

    rule: str
    kind: Literal["argument", "constraint", "result"]
    name: str
    line: int | None
    label: str
    spec: Spec
    now: Spec | None
    node: hlo.Instruction
    computed: tuple[hlo.Instruction, ...] = ()
    site: Site | None = None


class Changes:
    """Changes for the collectives of one compilation."""

    def __init__(self, partitioner: Partitioner, annotations: Annotations, places: Places) -> None:
        self._partitioner = partitioner
        self._annotations = annotations
        self._places = places
        self.mesh = partitioner.mesh

    def of(self, part: Written) -> Iterator[Change]:
        """Yields the changes that may spare a collective, whatever else they bring."""
        if part.cause == RESHARD and part.side == "operand":
            yield from self._of_reshard(part)
        elif part.cause == RESHARD and part.side == "result":
            yield from self._of_carried_out(part)
        elif part.cause == HALO:
            yield from self._of_halo(part)
        elif part.cause == PARTIAL:
            yield from self._of_partial(part)

    # ---- resharded

    def _of_reshard(self, part: Written) -> Iterator[Change]:
        have, tensor, user = part.have, part.tensor, part.users[0] if part.users else None
        if tensor is None or have is None:
            return
        if part.wanted_by == RESULT:
            if part.result is not None and self._annotations.is_fixed(part.result):
                name = f"result[{part.result}]"
                yield Change("result", "result", name, None, name, have, part.want, tensor)
        elif user is not None:
            yield from self._of_constraints(user, have)
            yield from self._of_reader(part, user, have)
        yield from self._of_tensor(part, tensor, have)

    def _of_constraints(self, user: hlo.Instruction, have: Spec) -> Iterator[Change]:
        """Constraints as what they take is sharded: the one that asks, and those of what the reader takes and makes."""
        asked = self._annotations.asked_by(user)
        near = [user, *user.operands, *([asked[0].node] if asked is not None else ())]
        for one in dict.fromkeys(filter(is_constraint, near)):
            site, made = self._annotations.site(one), one.operands[0]
            spec = have if one is user else self._partitioner.spec(made)
            if site is not None and spec == site.spec:
                spec = carried_out(self._partitioner, made)
            if site is not None and spec is not None:
                yield self._at(CONSTRAINED, site, spec)

    def _of_reader(self, part: Written, user: hlo.Instruction, have: Spec) -> Iterator[Change]:
        """Changes of what the reader is asked to be."""
        if user.opcode not in opcodes.ELEMENTWISE or dimensions_of(user) is None:
            return
        if part.want is None or self._partitioner.spec(user) != part.want:
            return
        asked = self._annotations.asked_by(user)
        if asked is not None:
            site, order = asked
            spec = Spec(tuple(have.axes[d] for d in order))
            yield self._at(CONSTRAINED if site.kind == "constraint" else "asked result", site, spec)
            if site.kind == "constraint":
                return
        place = self._places.of(user)
        if place.line is not None:
            label = f"{place.label} in line {place.line}"
            yield Change("reader", "constraint", place.op_name, place.line, label, have, None, user)

    def _of_tensor(self, part: Written, tensor: hlo.Instruction, have: Spec) -> Iterator[Change]:
        """Changes of the annotations that the tensor's sharding comes from."""
        axes = whole(part.axes)
        user = part.users[0] if part.users else None
        if user is not None and user.opcode == "scatter" and tensor in user.operands[1:2]:
            yield from self._axes_off(user.operands[2], axes)  # the indices are placed as the updates are
            return
        if part.want is not None:
            gone = tuple((d, a) for d, cut in enumerate(have.axes) for a in cut if a not in part.want.axes[d])
            sites = self._sites(tensor, gone)
            if len({origin.site for origin in sites}) == 1:
                spec = self._as_wanted(tensor, sites[0].site, have, part.want)
                if spec is not None:
                    yield self._at("want", sites[0].site, spec, sites[0].computed)
        yield from self._axes_off(tensor, axes)

    def _axes_off(self, node: hlo.Instruction, axes: tuple[str, ...]) -> Iterator[Change]:
        """The axes taken off the one annotation that they come from."""
        spec = self._partitioner.spec(node)
        if spec is None:
            return
        held = tuple((d, a) for d, cut in enumerate(spec.axes) for a in cut if a in axes)
        sites = self._sites(node, held)
        if len({origin.site for origin in sites}) == 1:
            site = sites[0].site
            yield self._at("axes off", site, site.spec.without(axes), sites[0].computed)

    def _sites(self, node: hlo.Instruction, held: tuple[tuple[int, str], ...]) -> list[Origin]:
        return [origin for d, a in held for origin in self._annotations.origins(node, d, a)]

    def _as_wanted(self, tensor: hlo.Instruction, site: Site, have: Spec, want: Spec) -> Spec | None:
        """Sharding for an annotated array such that the tensor derived from it has the wanted one."""
        if site.node is tensor:
            return want
        axes = list(site.spec.axes)
        for dimension, (had, wants) in enumerate(zip(have.axes, want.axes, strict=True)):
            if had == wants:
                continue
            for origin in self._annotations.origins(tensor, dimension, None):
                if origin.site == site and axes[origin.dimension] == had:
                    axes[origin.dimension] = wants
        used = [a for cut in axes for a in cut]
        return Spec(tuple(axes)) if len(used) == len(set(used)) else None

    def _of_carried_out(self, part: Written) -> Iterator[Change]:
        """An operation carried out in another sharding than its result has: take the axes off what it reads."""
        user = part.users[0] if part.users else None
        if user is None or user.opcode in ("dot", "convolution"):
            return
        axes = whole(part.axes)
        for operand in user.operands:
            yield from self._axes_off(operand, axes)

    # ---- edges

    def _of_halo(self, part: Written) -> Iterator[Change]:
        tensor, have = part.tensor, part.have
        if tensor is None or have is None:
            return
        axes = whole(part.axes)
        held = tuple((d, a) for d, cut in enumerate(have.axes) for a in cut if a in axes)
        sites = self._sites(tensor, held)
        if len({origin.site for origin in sites}) != 1:
            return  # the axis stays where another annotation brings it too
        for origin in sites:
            site = origin.site
            yield self._at("edge", site, site.spec.without(axes), origin.computed)
            others = _without_edges(part.users[0]) if part.users else ()
            for spec in self._moved(tensor, others, site, axes):
                yield self._at("edge moved", site, spec, origin.computed)

    def _moved(
        self, node: hlo.Instruction, dimensions: tuple[int, ...], site: Site, axes: tuple[str, ...]
    ) -> Iterator[Spec]:
        """The axes of an annotated array moved to one of these dimensions of what is made of it: the first that they divide
        and that nothing cuts, else any."""
        assert self.mesh is not None
        found = []
        for other in dict.fromkeys(
            origin.dimension
            for dimension in dimensions
            for origin in self._annotations.origins(node, dimension, None)
            if origin.site == site
        ):
            spec = site.spec.without(axes)
            for axis in axes:
                spec = spec.moved(axis, other)
            if spec.divides(site.dimensions, self.mesh):
                found.append((len(spec.axes[other]) > len(axes), other, spec))
        yield from (spec for _, _, spec in sorted(found, key=lambda one: one[:2])[:1])

    # ---- partial sums

    def _of_partial(self, part: Written) -> Iterator[Change]:
        user = part.users[0] if part.users else None
        if user is None:
            return
        axes = whole(part.axes)
        if user.opcode in ("reduce", "reduce-window", "gather"):
            operand = user.operands[0]
            for dimension in _summed(user):
                yield from self._of_summed(user, operand, dimension, axes)
        elif user.opcode == "dot":
            yield from self._of_factor(user, axes)

    def _of_summed(
        self, user: hlo.Instruction, operand: hlo.Instruction, dimension: int, axes: tuple[str, ...]
    ) -> Iterator[Change]:
        spec = self._partitioner.spec(operand)
        if spec is None or dimension >= spec.rank:
            return
        held = tuple((dimension, a) for a in spec.axes[dimension] if a in axes)
        sites = self._sites(operand, held)
        if len({origin.site for origin in sites}) != 1:
            return
        gone = tuple(a for _, a in held)
        origin = sites[0]
        yield self._at("summed off", origin.site, origin.site.spec.without(gone), origin.computed)
        others = tuple(d for d in range(spec.rank) if d not in _summed(user))
        for moved in self._moved(operand, others, origin.site, gone):
            yield self._at("summed moved", origin.site, moved, origin.computed)

    def _of_factor(self, user: hlo.Instruction, axes: tuple[str, ...]) -> Iterator[Change]:
        """A dot one of whose factors alone is cut along the contracted dimension."""
        cut: list[tuple[hlo.Instruction, tuple[tuple[int, str], ...]]] = []
        for side, operand in zip(("lhs", "rhs"), user.operands, strict=False):
            spec = self._partitioner.spec(operand)
            dims = user.attributes.get(f"{side}_contracting_dims") or ()
            if spec is None:
                return
            held = tuple((d, a) for d in dims for a in spec.axes[d] if a in axes)
            if held:
                cut.append((operand, held))
        if len(cut) != 1:
            return
        operand, held = cut[0]
        sites = self._sites(operand, held)
        if len({origin.site for origin in sites}) == 1:
            site = sites[0].site
            yield self._at("factor off", site, site.spec.without(axes), sites[0].computed)

    def _at(self, rule: str, site: Site, spec: Spec, computed: tuple[hlo.Instruction, ...] = ()) -> Change:
        return Change(
            rule, site.kind, site.name, site.line, site.label, spec, site.spec, site.node, computed, site
        )


def _summed(user: hlo.Instruction) -> tuple[int, ...]:
    """The dimensions of operand 0 that an operation sums over or looks up in."""
    name = "start_index_map" if user.opcode == "gather" else "dimensions"
    value = user.attributes.get(name)
    return tuple(value) if isinstance(value, tuple) else ()


def _without_edges(user: hlo.Instruction) -> tuple[int, ...]:
    """The dimensions of operand 0 along which an operation reads no neighbours."""
    operand = user.operands[0]
    rank = len(operand.shape.dimensions) if operand.shape is not None else 0
    labels = user.attributes.get("dim_labels")
    if labels is not None:
        return (labels.input_batch_dimension,)
    window = user.attributes.get("window")
    if window is not None:
        sizes = [one.size for one in window.dimensions]
        return tuple(d for d in range(rank) if d < len(sizes) and sizes[d] == 1)
    whole = operand.shape.dimensions if operand.shape is not None else ()
    result = user.shape.dimensions if user.shape is not None and user.shape.is_array else ()
    if user.opcode == "concatenate":
        along = user.attributes.get("dimensions") or ()
        return tuple(d for d in range(rank) if d not in along)
    return tuple(d for d in range(min(rank, len(result))) if whole[d] == result[d])
