"""Many small collectives made one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import attrs

from hlotext.analysis import written_bytes
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.passes.base import Pass, PassResult

OPCODES = (traits.COLLECTIVE_KINDS & traits.MAY_COUNT_DEVICES) - {"collective-reduce"}
"""Collectives that take several operands, each treated by itself."""

_NOTES = traits.PROVENANCE | traits.ANNOTATIONS | traits.IDENTIFIERS | {"to_apply"}
"""Attributes that may differ between collectives that become one; channels are compared by whether there is one."""


@attrs.frozen
class CombineCollectives(Pass):
    """Merges independent collectives that perform the same operation on the same devices.

    Opcode, element type, groups, dimensions, channel semantics and reduction must be equal. Within a computation they are
    merged in text order, up to `max_bytes` of results and `max_count`, and never with a (transitive) user. Unlike XLA's `all-
    reduce-combiner` and similar passes, it considers neither cost nor shardings: instructions with a sharding, a control
    dependency or several results are not changed.

    >>> import hlotext as hlo
    >>> m = hlo.parse("s { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }  ENTRY e {"
    ...     "  x = f32[4] parameter(0)  y = f32[2] parameter(1)  p = f32[4] all-reduce(x), replica_groups={}, to_apply=s"
    ...     "  q = f32[2] all-reduce(y), replica_groups={}, to_apply=s  ROOT t = (f32[4], f32[2]) tuple(p, q) }")
    >>> CombineCollectives().run(m).statistics
    {'combined': 2, 'made': 1}
    >>> print(m.entry["all-reduce"])
    all-reduce = (f32[4], f32[2]) all-reduce(x, y), replica_groups={}, to_apply=s
    """

    name: ClassVar[str] = "combine-collectives"
    summary: ClassVar[str] = "Combines independent collectives of the same kind into one."

    max_bytes: int = 256 << 20
    """Bytes of the results of what becomes one."""
    max_count: int = 256
    """Maximum number of collectives combined into one."""

    def run(self, module: Module) -> PassResult:
        reductions: dict[Computation, Hashable] = {}
        combined = made = 0
        for computation in module.computations:
            if computation.is_sugared or computation.is_fusion_body:
                continue
            for group in self._groups(computation, reductions):
                if _combine(computation, group):
                    combined, made = combined + len(group), made + 1
        return PassResult.of({"combined": combined, "made": made})

    def _groups(
        self, computation: Computation, reductions: dict[Computation, Hashable]
    ) -> list[list[Instruction]]:
        """Groups of collectives that may be combined."""
        alike: dict[Hashable, list[Instruction]] = {}
        for i in computation:
            if i.opcode in OPCODES and (key := _key(i, reductions)) is not None:
                alike.setdefault(key, []).append(i)
        candidates = [i for found in alike.values() if len(found) > 1 for i in found]
        return self._independent(computation, alike, candidates) if candidates else []

    def _independent(
        self,
        computation: Computation,
        alike: dict[Hashable, list[Instruction]],
        candidates: Sequence[Instruction],
    ) -> list[list[Instruction]]:
        """Groups without a way from one member to another, nor around over other groups.

        Collectives at one depth (the number of collectives on the longest way to them, counted in groups) never need each
        other; since a group lies at one depth, and all it needs at smaller ones, groups do not need each other in a circle.
        """
        members = set(candidates)
        depths: dict[Instruction, int] = {}
        for i in computation:
            before = max(
                (depths[p] + (p in members) for p in (*i.operands, *i.control_predecessors)), default=0
            )
            depths[i] = before
        found: list[list[Instruction]] = []
        for collectives in alike.values():
            levels: dict[int, list[Instruction]] = {}
            for i in collectives:
                levels.setdefault(depths[i], []).append(i)
            for level in levels.values():
                found.extend(group for group in self._sized(level) if len(group) > 1)
        return found

    def _sized(self, collectives: Sequence[Instruction]) -> list[list[Instruction]]:
        """Runs of collectives within the bounds."""
        found: list[list[Instruction]] = []
        size = 0
        for i in collectives:
            own = written_bytes(i)
            if not found or size + own > self.max_bytes or len(found[-1]) >= self.max_count:
                found.append([])
                size = 0
            found[-1].append(i)
            size += own
        return found


def _key(i: Instruction, reductions: dict[Computation, Hashable]) -> Hashable | None:
    """Equal for collectives that may become one; None for what stays."""
    if i.sharding is not None or i.control_predecessors or i.control_successors:
        return None
    if len(i.operands) != 1 or i.shape is None or not i.shape.is_array:
        return None
    attributes = i.attributes
    own = tuple(sorted((name, value) for name, value in attributes.items() if name not in _NOTES))
    callee = attributes.get("to_apply")
    reduction = None
    if isinstance(callee, Computation):
        if callee not in reductions:
            reductions[callee] = _body_key(callee)
        reduction = reductions[callee]
    return i.opcode, str(i.shape.element_type), "channel_id" in attributes, own, reduction


def _body_key(computation: Computation) -> Hashable:
    """Equal for computations of equal instructions, names and notes aside."""
    numbers = {i: number for number, i in enumerate(computation)}
    return tuple(
        (
            i.opcode, str(i.shape), i.parameter_number, i.literal, tuple(numbers[o] for o in i.operands), i.is_root,
            tuple(sorted((name, str(value)) for name, value in i.attributes.items() if name not in _NOTES)),
            i.called_computations,
        )
        for i in computation
    )  # fmt: skip


def _combine(computation: Computation, group: Sequence[Instruction]) -> bool:
    """Puts one collective in the place of several, before the first thing that needs one; whether that was possible."""
    module, first = computation.module, group[0]
    assert module is not None
    operands = [i.operands[0] for i in group]
    shape = Shape.tuple(tuple(i.shape for i in group if i.shape is not None))
    try:
        with module.transaction():
            last = max(operands, key=computation.order.__getitem__)
            b = Builder.after(last, first)
            own = {k: v for k, v in first.attributes.items() if k not in ("metadata", "frontend_attributes")}
            new = b.op(first.opcode, operands, shape=shape, **own)
            for number, old in enumerate(group):
                old.replace_with(Builder.after(new, old).get_tuple_element(new, number, shape=old.shape))
    except EditError:  # layouts that must stay, for example
        return False
    return True
