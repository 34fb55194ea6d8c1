"""Where shardings come from, and collectives that belong to a partitioning scheme: they are expected, not mistakes."""

from __future__ import annotations

from collections.abc import Sequence

import hlotext as hlo
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.annotations import Annotations, Site
from hlotext.dumps.collectives.carrying import carried_out
from hlotext.dumps.collectives.following import contracted
from hlotext.dumps.collectives.partitioner import Written
from hlotext.dumps.collectives.places import is_constraint, op_name_of
from hlotext.dumps.collectives.records import HALO, PARTIAL, RESHARD, RESULT
from hlotext.dumps.collectives.shardings import Shardings
from hlotext.dumps.collectives.specs import Spec, dimensions_of, whole

FSDP = (
    "expected for an argument sharded along an axis that the result has from the other operand, such as a weight in FSDP: "
    "every use gathers it"
)
GRADIENT = "expected with data parallelism: it sums a weight's gradient over the batch"
CONTRACTED = (
    "inherent in sharding the contracted dimension of both operands: changing one annotation mostly trades it for other "
    "traffic"
)
PROPAGATED = "propagated; no annotation found"


class Schemes:
    """Recognizes partitioning schemes around the collectives of one compilation."""

    def __init__(self, shardings: Shardings, annotations: Annotations) -> None:
        self._shardings = shardings
        self._annotations = annotations
        entry = annotations.module.entry
        shape = entry.root.shape
        results = [leaf for _, leaf in shape.leaves()] if shape is not None else []
        sizes = {tuple(leaf.dimensions) for leaf in results}
        self._weights: dict[tuple[int, ...], Spec] = {}
        """Arguments that come back as results of the same size: what a step updates."""
        self._batch: set[str] = set()
        """Axes of the other arguments: of what a step reads, such as the batch."""
        for parameter in entry.parameters:
            dimensions, spec = dimensions_of(parameter), shardings.spec(parameter)
            if dimensions is None or spec is None:
                continue
            if dimensions not in sizes:
                self._batch.update(spec.used)
            elif len(dimensions) > 1:
                self._weights.setdefault(dimensions, spec)

    # ---- where a sharding comes from

    def origin(self, part: Written) -> str:
        """Returns the origin of the tensor's sharding, in one sentence; empty for collectives that the program
        requests.
        """
        told = []
        if part.cause in (RESHARD, HALO) and part.tensor is not None and part.have is not None:
            told.append(self._of(part.tensor, part.have))
        elif part.cause == PARTIAL and part.users:
            told.append(self._of_summed(part))
        if part.wanted_by == RESULT and part.result is not None and self._annotations.is_fixed(part.result):
            told.append(f"result[{part.result}] is annotated with this sharding")
        elif part.cause == RESHARD and part.users and part.want is not None:
            told.append(self._asked(part.users[0], part.want))
        return "; ".join(filter(None, told))

    def _of(self, node: hlo.Instruction, have: Spec) -> str:
        if not have.used:
            return ""
        own = self._annotations.site(node)
        if own is not None and own.kind == "argument":
            return f"{have} is the annotation of argument {own.name}"
        sites: dict[Site, None] = {}
        missing = []
        for dimension, cut in enumerate(have.axes):
            for axis in cut:
                found = self._annotations.origins(node, dimension, axis)
                sites.update(dict.fromkeys(origin.site for origin in found))
                if not found:
                    missing.append(axis)
        if not sites:
            return f"{have} is {PROPAGATED}"
        text = f"{have} comes from {_listed(list(sites))}"
        return text + (f" ({named(missing)}: {PROPAGATED})" if missing else "")

    def _of_summed(self, part: Written) -> str:
        user = part.users[0]
        sites: dict[Site, None] = {}
        for operand, dimension in contracted(user):
            spec = self._shardings.spec(operand)
            if spec is None or dimension >= spec.rank:
                continue
            for axis in spec.axes[dimension]:
                if axis in {one.partition(":")[0] for one in part.axes}:
                    found = self._annotations.origins(operand, dimension, axis)
                    sites.update(dict.fromkeys(origin.site for origin in found))
        if not part.axes:
            return ""
        axes, is_one = named(part.axes), len(part.axes) == 1
        if not sites:
            return f"{axes} {'is' if is_one else 'are'} {PROPAGATED}"
        return f"{axes} {'comes' if is_one else 'come'} from {_listed(list(sites))}"

    def _asked(self, user: hlo.Instruction, want: Spec) -> str:
        if self._shardings.spec(user) != want:
            return ""
        asked = self._annotations.asked_by(user)
        is_result = asked is not None and asked[0].kind != "constraint"  # a constraint is a cause
        return f"{want} is requested by {asked[0].label}" if asked is not None and is_result else ""

    def constraint(self, part: Written) -> str:
        """Returns the constraint for which an operation needs another sharding of its operand; empty if none is known."""
        user = part.users[0] if part.users else None
        if part.cause != RESHARD or part.side != "operand" or user is None or part.want is None:
            return ""
        asked = self._annotations.asked_by(user)
        if asked is not None and asked[0].kind == "constraint":
            if self._shardings.spec(user) == part.want:
                return wording.asks(asked[0].label)
            if gone := self._taken_off(part, asked[0], user):
                return f"{asked[0].label} leaves its result without {named(gone)}"
        for one in user.operands:
            site = self._annotations.site(one) if is_constraint(one) and one is not part.tensor else None
            if site is not None and (gone := self._taken_off(part, site, one.operands[0])):
                return f"{site.label} leaves its other operand without {named(gone)}"
        return ""

    def _taken_off(self, part: Written, site: Site, node: hlo.Instruction) -> tuple[str, ...]:
        """The axes of a collective with which an array is computed, but that its constraint does not have."""
        made = carried_out(self._shardings, node)
        held = made.used if made is not None else ()
        return tuple(axis for axis in whole(part.axes) if axis in held and axis not in site.spec.used)

    # ---- schemes

    def scheme(self, part: Written) -> str:
        """Returns the scheme that a collective belongs to; empty if none is recognized."""
        if part.cause == RESHARD and part.side == "operand" and part.communication.kind == "all-gather":
            return FSDP if self._is_fsdp(part) else ""
        if part.cause == PARTIAL and part.users and part.users[0].opcode in ("dot", "reduce"):
            if self._is_gradient(part):
                return GRADIENT
            return CONTRACTED if self._is_both(part) else ""
        return ""

    def _is_fsdp(self, part: Written) -> bool:
        """True for an argument whose axes cut another dimension of the product that reads it."""
        tensor, user = part.tensor, part.users[0] if part.users else None
        if tensor is None or user is None or part.have is None or user.opcode not in ("dot", "convolution"):
            return False
        axes = {axis.partition(":")[0] for axis in part.axes}
        held = [(d, a) for d, cut in enumerate(part.have.axes) for a in cut if a in axes]
        found = [o for d, a in held for o in self._annotations.origins(tensor, d, a)]
        if not found or any(o.site.kind != "argument" or o.computed for o in found):
            return False
        others = [self._shardings.spec(one) for one in user.operands if one is not tensor]
        result = self._shardings.spec(user)
        if result is None or not axes <= set(result.used):
            return False
        return any(spec is not None and axes <= set(spec.used) for spec in others)

    def _is_gradient(self, part: Written) -> bool:
        user = part.users[0]
        dimensions = dimensions_of(user)
        if dimensions is None or "transpose(" not in op_name_of(user):
            return False
        axes = {axis.partition(":")[0] for axis in part.axes}
        for sizes in (dimensions, dimensions[::-1]):
            spec = self._weights.get(sizes)
            if spec is not None and not axes & set(spec.used):
                return axes <= self._batch
        return False

    def _is_both(self, part: Written) -> bool:
        axes = {axis.partition(":")[0] for axis in part.axes}
        cut = set()
        for operand, dimension in contracted(part.users[0]):
            spec = self._shardings.spec(operand)
            if spec is not None and dimension < spec.rank and axes & set(spec.axes[dimension]):
                cut.add(operand)
        user = part.users[0]
        return user.opcode == "dot" and cut == set(user.operands[:2])


def named(axes: Sequence[str]) -> str:
    """Formats axes for sentences: `axis 'data'`."""
    return f"ax{'is' if len(axes) == 1 else 'es'} {' and '.join(map(repr, axes))}"


def _listed(sites: list[Site]) -> str:
    """Annotations as sentences list them; of one line, which may constrain several arrays alike, each sharding once."""
    arguments = list(dict.fromkeys(f"{one.name}: {one.spec}" for one in sites if one.kind == "argument"))
    others = list(dict.fromkeys(f"{one.label}: {one.spec}" for one in sites if one.kind != "argument"))
    parts = []
    if arguments:
        *first, last = arguments
        listed = f"{', '.join(first)} and {last}" if first else last
        parts.append(f"argument{'s' if first else ''} {listed}")
    return " and ".join(parts + others)
