"""The annotations of the program that a sharding comes from: arguments, constraints and results."""

from __future__ import annotations

from typing import Literal

import attrs

import hlotext as hlo
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.following import Step, sources
from hlotext.dumps.collectives.places import Places, is_annotation, is_constraint, op_name_of
from hlotext.dumps.collectives.records import Place
from hlotext.dumps.collectives.shardings import Shardings
from hlotext.dumps.collectives.specs import Spec, dimensions_of
from hlotext.ir.tables import opcodes

_ANNOTATED = frozenset({"parameter", "copy", "custom-call"})
_MOST = 512
"""Maximum number of arrays followed to an annotation."""
_MOST_SITES = 8
_COMPUTING = frozenset({"dot", "convolution", "reduce", "gather", "scatter", "reduce-window", "sort"})


@attrs.frozen
class Site:
    """A place where the program annotates an array with a sharding."""

    kind: Literal["argument", "constraint", "result"]
    name: str
    line: int | None
    node: hlo.Instruction
    """The array, in the text before partitioning."""
    spec: Spec
    dimensions: tuple[int, ...]

    @property
    def label(self) -> str:
        """Name for sentences."""
        if self.kind == "constraint":
            return wording.constraint(Place(self.name, self.line, "", "", None))
        return f"{self.kind} {self.name}" if self.kind == "argument" else self.name


@attrs.frozen
class Origin:
    """An annotation from which an axis is propagated, and its dimension there."""

    site: Site
    dimension: int
    computed: tuple[hlo.Instruction, ...]
    """Operations on the way that compute, the nearest to the array first."""


class _Stop:
    """A dimension of an array on the way of an axis."""

    __slots__ = ("dimension", "further", "is_computing", "node", "site", "walk")

    def __init__(self, node: hlo.Instruction, dimension: int) -> None:
        self.node = node
        self.dimension = dimension
        self.is_computing = node.opcode in _COMPUTING
        self.site: Site | None = None
        self.further: tuple[_Stop, ...] | None = None
        """Where the axis comes from; None until that was asked."""
        self.walk = 0
        """The last walk that came here."""


_Passed = tuple["_Passed", hlo.Instruction] | None
"""The operations passed on the way, the last first, as a linked list: ways share their beginnings."""


def _listed(passed: _Passed) -> tuple[hlo.Instruction, ...]:
    found = []
    while passed is not None:
        passed, one = passed
        found.append(one)
    return tuple(reversed(found))


class Annotations:
    """Finds the annotations in the HLO before partitioning, and traces shardings to them."""

    def __init__(self, shardings: Shardings, places: Places) -> None:
        self._shardings = shardings
        self._places = places
        self.module = shardings.text.module
        self._results = self._fixed_results()
        self._stops: dict[str | None, dict[Step, _Stop]] = {}
        """The arrays on the ways of each axis: many ways lead through the same ones."""
        self._walks = 0
        self._known: dict[tuple[hlo.Instruction, int, str | None], tuple[Origin, ...]] = {}

    # ---- sites

    def site(self, node: hlo.Instruction) -> Site | None:
        """Returns the annotation of an array before partitioning: as an argument or by a constraint; None if it has
        none.
        """
        if node.opcode not in _ANNOTATED:
            return None
        spec, dimensions = self._shardings.spec(node), dimensions_of(node)
        if spec is None or dimensions is None:
            return None
        if node.opcode == "parameter" and node.computation is not None and node.computation.is_entry:
            name = op_name_of(node) or f"argument {node.parameter_number}"
            return Site("argument", name, None, node, spec, dimensions)
        if is_constraint(node):
            frame = self._places.frame(node)
            line = frame.line if frame is not None and frame.line else None
            return Site("constraint", op_name_of(node), line, node, spec, dimensions)
        return None

    def is_fixed(self, result: int) -> bool:
        """Returns True if the program specifies the sharding of a result."""
        return self._results is None or (result < len(self._results) and self._results[result])

    def _fixed_results(self) -> list[bool] | None:
        """Results that the program annotates; None for all."""
        free = self.module.attributes.get("allow_spmd_sharding_propagation_to_output")
        if free is None:
            return None
        values = free if isinstance(free, tuple) else (free,)
        flags = [value is False for value in values]
        root = self.module.entry.root
        count = len(root.shape.tuple_shapes) if root.shape is not None and root.shape.is_tuple else 1
        return flags * count if len(flags) == 1 else flags

    # ---- backwards

    def origins(self, node: hlo.Instruction, dimension: int, axis: str | None) -> tuple[Origin, ...]:
        """Returns the annotations from which an axis of a dimension of an array is propagated.

        Without an axis, returns the annotated arrays along which the dimension runs, however they are sharded.
        """
        key = node, dimension, axis
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._walk(node, dimension, axis))
        return found

    def _walk(self, node: hlo.Instruction, dimension: int, axis: str | None) -> list[Origin]:
        self._walks += 1
        walk, seen = self._walks, 1
        found: list[Origin] = []
        first = self._stop(node, dimension, axis)
        first.walk = walk
        stack: list[tuple[_Stop, _Passed]] = [(first, None)]
        while stack and seen < _MOST and len(found) < _MOST_SITES:
            stop, computed = stack.pop()
            further = stop.further
            if further is None:
                further = self._arrive(stop, axis)
            if stop.site is not None:
                found.append(Origin(stop.site, stop.dimension, _listed(computed)))
                continue
            if stop.is_computing:
                computed = (computed, stop.node)
            for one in further:
                if one.walk != walk:
                    one.walk = walk
                    seen += 1
                    stack.append((one, computed))
        return found

    def _stop(self, node: hlo.Instruction, dimension: int, axis: str | None) -> _Stop:
        known = self._stops.setdefault(axis, {})
        found = known.get((node, dimension))
        if found is None:
            found = known[node, dimension] = _Stop(node, dimension)
        return found

    def _arrive(self, stop: _Stop, axis: str | None) -> tuple[_Stop, ...]:
        """Finds the annotation at an array, or the arrays that bring the axis there."""
        stop.site = self.site(stop.node)
        places = () if stop.site is not None else sources(stop.node, stop.dimension)
        stop.further = tuple(self._stop(*one, axis) for one in places if self._has(*one, axis))
        return stop.further

    def _has(self, node: hlo.Instruction, dimension: int, axis: str | None) -> bool:
        if axis is None:
            return True
        spec = self._shardings.spec(node)
        return spec is not None and dimension < spec.rank and axis in spec.axes[dimension]

    # ---- forwards

    def asked_by(self, node: hlo.Instruction) -> tuple[Site, tuple[int, ...]] | None:
        """Returns the constraint or result downstream of an operation that determines its sharding, with its dimension
        order there.

        Follows operations that keep the sharding: elementwise ones, transposes, tuple elements. Returns None if there
        is none.
        """
        spec = self._shardings.spec(node)
        if spec is None:
            return None
        seen = {node}
        queue = [(node, tuple(range(spec.rank)))]
        at = 0
        while at < len(queue) and at < _MOST:
            one, order = queue[at]
            at += 1
            if is_constraint(one) and one is not node:
                site = self.site(one)
                return (site, order) if site is not None else None
            result = self._result(one, order)
            if result is not None:
                return result, order
            for user in one.user_view:
                if user in seen:
                    continue
                turned = self._kept(one, user, order, spec)
                if turned is not None:
                    seen.add(user)
                    queue.append((user, turned))
        return None

    def _kept(
        self, node: hlo.Instruction, user: hlo.Instruction, order: tuple[int, ...], spec: Spec
    ) -> tuple[int, ...] | None:
        """The order of dimensions behind an operation that keeps the placement; None for one that does not."""
        if user.opcode == "transpose":
            turned = user.attributes.get("dimensions")
            order = tuple(order[d] for d in turned) if isinstance(turned, tuple) else order
        elif not _keeps_placement(user) or dimensions_of(user) != dimensions_of(node):
            return None
        found = self._shardings.spec(user)
        if found is None or found.axes != tuple(spec.axes[d] for d in order):
            return None
        return order

    def _result(self, node: hlo.Instruction, order: tuple[int, ...]) -> Site | None:
        """The result of the program that an array is, where the program annotates it."""
        home = node.computation
        if home is None or not home.is_entry:
            return None
        number = None
        if home.root is node:
            number = 0
        else:
            for user in node.user_view:
                if user.opcode == "tuple" and user is home.root:
                    number = user.operands.index(node)
                elif user.opcode == "tuple" and any(
                    g is home.root for g in user.user_view if g.opcode == "get-tuple-element"
                ):
                    number = 0
        spec, dimensions = self._shardings.spec(node), dimensions_of(node)
        if number is None or not self.is_fixed(number) or spec is None or dimensions is None:
            return None
        return Site("result", f"result[{number}]", None, node, spec, dimensions)


def _keeps_placement(node: hlo.Instruction) -> bool:
    """True for what has its result where its operands are; a constraint of the program is a custom call there."""
    return node.opcode in opcodes.ELEMENTWISE or node.opcode == "copy" or is_annotation(node)
