"""Suggests the annotation that would spare a collective: rules that find it.

Each rule names one annotation and what to write there; `Traffic` follows it through the program, and only what sends less
in all is suggested. "Constrain the tensor that is gathered" is not among the rules: it spared none of 13.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

import hlotext as hlo
from hlotext.analysis.updates import undonated_updates
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.annotations import Annotations, Origin, Site
from hlotext.dumps.collectives.fates import Fate
from hlotext.dumps.collectives.partitioner import Partitioner, Written
from hlotext.dumps.collectives.places import Places, is_constraint
from hlotext.dumps.collectives.records import (
    HALO,
    HIGH,
    LOW,
    PARTIAL,
    RESHARD,
    RESULT,
    Suggestion,
)
from hlotext.dumps.collectives.specs import Spec, Specs, dimensions_of, whole
from hlotext.dumps.collectives.traffic import Estimate, Traffic
from hlotext.ir.tables import opcodes

Where = Literal["cpu", "tpu", "gpu", "gspmd"]
MOST = 4
"""Maximum number of suggestions per reason."""


@attrs.frozen
class Rule:
    """One way to find an annotation to change."""

    name: str
    what: str
    """The change, in a few words."""
    spared: dict[str, tuple[int, int]]
    """Where it was measured: how often less was sent, of how many recompilations."""


_ROWS = (
    # On CPU with Shardy only programs that no rule had been made with, at their first judgement: the held-out ones of XLA
    # 5a9e73cbd (by the collective that was to be spared), and 13 programs by JAX 0.12.0.1 (by the traffic in all). On TPU,
    # GPU and with GSPMD the rules made on CPU, recompiled there. All before changes were followed through the program:
    # those that would send more were counted too.
    ("result", "give the result the sharding that the tensor has", (1, 1), (2, 2), (2, 2), (13, 13)),
    ("constraint", "constrain to the sharding that the tensor has", (4, 4), (2, 2), (2, 2), (4, 4)),
    ("edge", "leave the dimension whose edges are read whole", (4, 7), (6, 6), (6, 6), (12, 12)),
    ("want", "shard it as the operation needs it", (34, 49), (27, 32), (30, 35), (84, 94)),
    ("axes off", "do not shard it along the axes of the collective", (29, 42), (19, 23), (23, 28), (56, 66)),
    ("asked result", "give the result the sharding that the tensor has", (5, 7), (5, 7), (5, 7), (0, 3)),
    ("reader", "constrain the operation to the sharding that the tensor has", (2, 5), (6, 7), (8, 9), (4, 7)),
    ("summed off", "leave the summed dimension whole", (21, 34), (11, 18), (18, 25), (30, 45)),
    ("summed moved", "shard another dimension than the summed one", (20, 28), (9, 27), (24, 32), (33, 51)),
    ("edge moved", "shard another dimension than the one whose edges are read", (2, 6), (2, 10), (2, 10), (7, 16)),
    ("factor off", "leave the contracted dimension of one factor whole", (6, 12), (8, 22), (9, 23), (21, 99)),
)  # fmt: skip
RULES = {
    name: Rule(name, what, {"cpu": cpu, "tpu": tpu, "gpu": gpu, "gspmd": gspmd})
    for name, what, cpu, tpu, gpu, gspmd in _ROWS
}
"""The rules by name, the surest first."""

_MEASURED_ON = {
    "cpu": "CPU with Shardy",
    "tpu": "TPU (fewer programs than on CPU)",
    "gpu": "GPU (fewer programs than on CPU)",
    "gspmd": "CPU with GSPMD (fewer programs than with Shardy)",
}


_MAKE_SCATTERS = frozenset({"tpu", "gpu"})
"""Compilers that make a reduce-scatter of a sum of which each device keeps a part."""


@attrs.frozen
class _Change:
    """A rule's change before it is put into words."""

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

    @property
    def _traffic(self) -> Traffic:
        if self._known_traffic is None:
            self._known_traffic = Traffic(
                self._partitioner, self._annotations, self._fates, self._where in _MAKE_SCATTERS
            )
        return self._known_traffic

    def suggestions(self, part: Written) -> tuple[Suggestion, ...]:
        """At most four changes of one annotation with which less is sent in all, the surest first."""
        if self.mesh is None:
            return ()
        found: dict[tuple[str, str, int | None, Spec], tuple[_Change, Estimate]] = {}
        order = list(RULES)
        for change in sorted(self._changes(part), key=lambda one: order.index(one.rule)):
            key = change.kind, change.name, change.line, change.spec
            if change.spec == change.now or key in found or not self._is_possible(change):
                continue
            result = int(change.name[len("result[") : -1]) if change.kind == "result" else None
            estimate = self._traffic.estimate(change.site, change.node, result, change.spec)
            if estimate is not None and estimate.is_less:
                found[key] = change, estimate
        made = [self._suggestion(change, part, estimate) for change, estimate in found.values()]
        return tuple(sorted(made, key=lambda one: one.confidence != HIGH)[:MOST])

    def _is_possible(self, change: _Change) -> bool:
        """False for an argument or a result that would be cut into unequal parts, which jax refuses."""
        dimensions = dimensions_of(change.node)
        if change.kind == "constraint" or dimensions is None or len(dimensions) != change.spec.rank:
            return True
        return self.mesh is None or change.spec.divides(dimensions, self.mesh)

    def _changes(self, part: Written) -> Iterator[_Change]:
        if part.cause == RESHARD and part.side == "operand":
            yield from self._of_reshard(part)
        elif part.cause == RESHARD and part.side == "result":
            yield from self._of_carried_out(part)
        elif part.cause == HALO:
            yield from self._of_halo(part)
        elif part.cause == PARTIAL:
            yield from self._of_partial(part)

    # ---- resharded

    def _of_reshard(self, part: Written) -> Iterator[_Change]:
        have, tensor, user = part.have, part.tensor, part.users[0] if part.users else None
        if tensor is None or have is None:
            return
        if part.wanted_by == RESULT:
            if part.result is not None and self._annotations.is_fixed(part.result):
                name = f"result[{part.result}]"
                yield _Change("result", "result", name, None, name, have, part.want, tensor)
        elif user is not None:
            yield from self._of_reader(part, user, have)
        yield from self._of_tensor(part, tensor, have)

    def _of_reader(self, part: Written, user: hlo.Instruction, have: Spec) -> Iterator[_Change]:
        """Changes of what the reader is asked to be."""
        if is_constraint(user):
            site = self._annotations.site(user)
            if site is not None:
                yield self._at("constraint", site, have)
            return
        if user.opcode not in opcodes.ELEMENTWISE or dimensions_of(user) is None:
            return
        if part.want is None or self._partitioner.spec(user) != part.want:
            return
        asked = self._annotations.asked_by(user)
        if asked is not None:
            site, order = asked
            spec = Spec(tuple(have.axes[d] for d in order))
            yield self._at("constraint" if site.kind == "constraint" else "asked result", site, spec)
            if site.kind == "constraint":
                return
        place = self._places.of(user)
        if place.line is not None:
            label = f"{place.label} in line {place.line}"
            yield _Change("reader", "constraint", place.op_name, place.line, label, have, None, user)

    def _of_tensor(self, part: Written, tensor: hlo.Instruction, have: Spec) -> Iterator[_Change]:
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

    def _axes_off(self, node: hlo.Instruction, axes: tuple[str, ...]) -> Iterator[_Change]:
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

    def _of_carried_out(self, part: Written) -> Iterator[_Change]:
        """An operation carried out in another sharding than its result has: take the axes off what it reads."""
        user = part.users[0] if part.users else None
        if user is None or user.opcode in ("dot", "convolution"):
            return
        axes = whole(part.axes)
        for operand in user.operands:
            yield from self._axes_off(operand, axes)

    # ---- edges

    def _of_halo(self, part: Written) -> Iterator[_Change]:
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

    def _of_partial(self, part: Written) -> Iterator[_Change]:
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
    ) -> Iterator[_Change]:
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

    def _of_factor(self, user: hlo.Instruction, axes: tuple[str, ...]) -> Iterator[_Change]:
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

    # ---- in words

    def _at(self, rule: str, site: Site, spec: Spec, computed: tuple[hlo.Instruction, ...] = ()) -> _Change:
        return _Change(
            rule, site.kind, site.name, site.line, site.label, spec, site.spec, site.node, computed, site
        )

    def _suggestion(self, change: _Change, part: Written, estimate: Estimate) -> Suggestion:
        rule = RULES[change.rule]
        measured = rule.spared[self._where]
        fate = self._fates.get(part.part)
        spared = round(fate.sent) if fate is not None and fate.sent is not None else None
        total = estimate.change
        own = self._grows(change)
        following = self._following(change, estimate, own)
        grows = own + sum(following.values()) if own is not None else None
        lost = [self._places.of(one) for one in change.computed] if change.rule in _TAKING else []
        because = wording.suggestion(
            change.label,
            str(change.spec),
            rule.what,
            spared,
            total,
            grows,
            list(following),
            lost,
            measured,
            _MEASURED_ON[self._where],
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
            measured_on=_MEASURED_ON[self._where],
            bytes_spared=spared,
            bytes_per_device=grows,
            spec_axes=change.spec.axes,
            bytes_total=total,
        )

    def _grows(self, change: _Change) -> int | None:
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

    def _following(self, change: _Change, estimate: Estimate, own: int | None) -> dict[int, int]:
        """Bytes that each device holds more of the results that take the new sharding, by their number.

        One that Shardy is free to shard follows; one that the program shards as the argument that it is the new value of has
        to be annotated as the argument, or the next step reshards it. A result in an argument's own memory counts once.
        """
        if change.kind == "result":
            return {}
        module = self._annotations.module
        aliases = module.attributes.get("input_output_alias")
        shared = {one.output_index[:1] for one in aliases.entries} if aliases is not None else set()
        found = {n: size for n, size in estimate.results.items() if not shared & {(n,), ()}}
        for update in undonated_updates(module) if change.kind == "argument" else ():
            number = update.index[0] if update.index else 0
            if update.parameter is change.node and self._is_sharded_so(number, change):
                found.setdefault(number, own or 0)
        return {n: size for n, size in found.items() if size}

    def _is_sharded_so(self, result: int, change: _Change) -> bool:
        """True if a result has the sharding that its argument has now."""
        assert self.mesh is not None
        sharding = self._partitioner.result_sharding(result)
        return sharding is not None and Specs(self.mesh).of(sharding, change.spec.rank) == change.now


_TAKING = frozenset({"want", "axes off", "summed off", "factor off", "edge"})
"""Rules that make devices compute the same several times where they take an axis off."""


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
