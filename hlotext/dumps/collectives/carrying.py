"""The sharding that an operation's result has by its operands, whatever it is asked to be."""

from __future__ import annotations

import hlotext as hlo
from hlotext.dumps.collectives.factors import rule_of
from hlotext.dumps.collectives.shardings import Shardings
from hlotext.dumps.collectives.specs import Spec, dimensions_of
from hlotext.dumps.collectives.spreading import project
from hlotext.ir.tables import traits


def carried_out(shardings: Shardings, node: hlo.Instruction) -> Spec | None:
    """Returns the sharding in which an operation runs without moving its operands, or None if they disagree or are
    unknown.
    """
    dimensions = dimensions_of(node)
    if dimensions is None or shardings.mesh is None:
        return None
    whole = [dimensions_of(one) or () for one in node.operands]
    try:
        rule = rule_of(node, whole, [dimensions])
    except (IndexError, ValueError):
        return None
    if rule is None:
        return None
    sizes = dict(zip(shardings.mesh.names, shardings.mesh.sizes, strict=True))
    cut: dict[int, tuple[str, ...]] = {}
    kept = {factor for factors in rule.dims[-1] for factor in factors}
    for n, one in enumerate(node.operands):
        if not whole[n] or _is_uniform(one):
            continue
        spec = shardings.spec(one)
        if spec is None:
            return None
        for factor, axes in project(rule, n, spec.axes, sizes).items():
            if cut.setdefault(factor, axes) != axes and factor in kept:
                return None
    found = Spec(tuple(sum((cut.get(f, ()) for f in factors), ()) for factors in rule.dims[-1]))
    return found if len(set(found.used)) == len(found.used) else None


def _is_uniform(node: hlo.Instruction) -> bool:
    """True for a constant in any shape, which every device has whole."""
    while node.opcode in traits.KEEPS_ELEMENTS | {"broadcast"} and node.operands:
        node = node.operands[0]
    return node.opcode in traits.SOURCES - {"parameter"}
