"""Computations that do the same, as the fusions of repeated layers do."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from hlotext.analysis.communication import KINDS, communications
from hlotext.analysis.facts import fact
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.configs import FrontendAttributes

_LEFT_OUT = traits.PROVENANCE | traits.CONTROL | {"original_value", "channel_id"}
_CHAINED = "frontend_attributes"
"""The attribute that names the chain of a collective: only whether there is one matters."""


@fact
def equal_computations(module: Module) -> Mapping[Computation, Computation]:
    """Maps each computation, callees first, to the first one with equal contents in the same order, ignoring names and
    metadata.

    Ids of channels and chains count as names; of a collective in a chain, only its number of devices and whether it is
    the reported part are compared. Opcodes, shapes and attributes are compared by identity, so parts that are written
    differently may count as different.
    """
    found: dict[Computation, Computation] = {}
    first_of: dict[Hashable, Computation] = {}
    known: dict[int, Hashable] = {}
    begun = {one.instruction: one.participants for one in communications(module)}
    for computation in post_order(module.computations):
        if computation is module.entry:  # often a quarter of a module, and nothing calls it
            found[computation] = computation
            continue
        place = {}
        rows: list[Hashable] = [computation.execution_thread]
        for number, node in enumerate(computation._instructions):
            place[node] = number
            attributes = node._attributes
            own = known.get(id(attributes))
            if own is None:
                said: list[Hashable] = []
                for name, value in attributes.items():
                    if name == _CHAINED and isinstance(value, FrontendAttributes):
                        said.append((name, "chain_id" in value))
                    elif name not in _LEFT_OUT:
                        same = found.get(value) if isinstance(value, Computation) else None
                        said.append((name, id(value if same is None else same)))
                own = known[id(attributes)] = tuple(said)
            head = id(node._head)
            operands = node._operands
            if len(operands) == 1:
                rows.append((head, own, place.get(operands[0])))
            else:
                rows.append((head, own, *[place.get(operand) for operand in operands]))
            if node._head.opcode in KINDS:
                rows.append((node in begun, begun.get(node)))
        rows.append(place.get(computation.root) if place else None)
        found[computation] = first_of.setdefault(tuple(rows), computation)
    return found
