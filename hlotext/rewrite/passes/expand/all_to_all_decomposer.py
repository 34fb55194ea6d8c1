"""All-to-alls of an array as all-to-alls of its parts."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.facts import dims, resized, shape_of, sizes
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class AllToAllDecomposer(Pass):
    """Decomposes array all-to-alls into ones with one operand per part, and concatenates the results (XLA's
    `AllToAllDecomposer`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4,6] parameter(0)  ROOT a = f32[4,6] all-to-all(x), channel_id=1,"
    ...     "  replica_groups={{0,1}}, dimensions={1} }")
    >>> AllToAllDecomposer().run(m).statistics
    {'all-to-alls': 1}
    >>> print(m.entry.root.operands[0].operands[0])
    all-to-all = (f32[4,3], f32[4,3]) all-to-all(slice, slice.1), channel_id=1, replica_groups={{0,1}}
    """

    name: ClassVar[str] = "all-to-all-decomposer"
    summary: ClassVar[str] = "Decomposes array all-to-alls into all-to-alls with one operand per part."

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [decompose], driver="once"))


@pattern("all-to-all", name="all-to-alls")
def decompose(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(i):
        return None
    split, count = dims(i)[0], _group_size(i)
    size = sizes(i)[split] // count
    shape = resized(shape_of(i), [size if d == split else n for d, n in enumerate(sizes(i))])
    parts = []
    for place in range(0, size * count, size) if size else [0] * count:
        ranges = tuple(
            SliceDimension(place, place + size, 1) if d == split else SliceDimension(0, n, 1)
            for d, n in enumerate(sizes(i))
        )
        parts.append(r.create_like(i, "slice", shape, i.operands, slice=SliceDimensions(ranges)))
    own: dict[str, Any] = {k: i.attributes[k] for k in ("channel_id", "replica_groups") if k in i.attributes}
    new = r.create_like(i, "all-to-all", Shape.tuple((shape,) * count), parts, **own)
    elements = [r.create("get-tuple-element", shape, (new,), index=n) for n in range(count)]
    return r.create_like(i, "concatenate", shape_of(i), elements, dimensions=(split,))


def _matches(i: Instruction) -> bool:
    if len(i.operands) != 1 or len(dims(i)) != 1 or shape_of(i).is_tuple:
        return False
    count = _group_size(i)
    return not i.attributes.get("constrain_layout") and count > 0 and not sizes(i)[dims(i)[0]] % count


def _group_size(i: Instruction) -> int:
    """Members of a group; the module's replicas where no groups are given."""
    groups = i.attributes.get("replica_groups")
    if isinstance(groups, ReplicaGroups) and groups.group_count:
        return groups.group_size or 0
    module = i.computation.module if i.computation is not None else None
    replicas = module.attributes.get("replica_count", 1) if module is not None else 1
    return replicas if isinstance(replicas, int) else 1
