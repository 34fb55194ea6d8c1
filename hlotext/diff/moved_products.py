"""Products that one module computes in a loop and the other outside of it, for all iterations at once.

The shapes differ, and so do the operations around them. They are one product if both multiply the same arrays, of which the
loop takes a slice in each iteration, over as many elements, with as many operations in all runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping

import hlotext as hlo
from hlotext import analysis, cost
from hlotext.analysis.views import VIEWS
from hlotext.diff.value_graph import Graph
from hlotext.ir.tables import traits

_MOST_STEPS = 200
_THROUGH = VIEWS | traits.REARRANGES_ELEMENTS | {"dynamic-slice", "slice"}
"""Opcodes through which an array is looked for: a loop's slice of it is a part of the same array."""


def moved_products(
    left: Iterable[hlo.Instruction],
    gone: Iterable[hlo.Instruction],
    new: Graph,
    old: Graph,
    partner: Mapping[hlo.Instruction, hlo.Instruction],
) -> Iterator[tuple[hlo.Instruction, hlo.Instruction]]:
    """Yields pairs of unpaired products, new and old, with different execution counts, if no other pairing is possible.

    Args:
        left: The operations of the new module that are not paired.
        gone: Those of the old one.
        new: The new module.
        old: The old one.
        partner: What is paired already, new to old.
    """
    mine = _by_key(left, new, partner)
    theirs = _by_key(gone, old, {}) if mine else {}
    for key, nodes in mine.items():
        others = theirs.get(key, ())
        if len(nodes) == len(others) == 1 and nodes[0][1] != others[0][1]:
            yield nodes[0][0], others[0][0]


def _by_key(
    nodes: Iterable[hlo.Instruction], graph: Graph, partner: Mapping[hlo.Instruction, hlo.Instruction]
) -> dict[Hashable, list[tuple[hlo.Instruction, int]]]:
    """Products with their numbers of runs, by what they multiply: arrays of the old module where they are paired."""
    found: dict[Hashable, list[tuple[hlo.Instruction, int]]] = defaultdict(list)
    products = [node for node in nodes if node.opcode in traits.CONTRACTIONS]
    calls = analysis.call_graph(graph.module) if products else None
    for node in products:
        sizes, inputs = cost.product_sizes(node), graph.inputs(node)
        runs = (
            calls.runs.get(node.computation) if calls is not None and node.computation is not None else None
        )
        if sizes is None or runs is None or len(inputs) < 2 or node.shape is None or not node.shape.is_array:
            continue
        batch, rows, columns, summed = sizes
        arrays = tuple(partner.get(one, one) for one in (_origin(graph, each) for each in inputs[:2]))
        key = node.opcode, node.shape.element_type, summed, batch * rows * columns * runs, arrays
        found[key].append((node, runs))
    return found


def _origin(graph: Graph, node: hlo.Instruction) -> hlo.Instruction:
    """The array that a value is a part or a view of, out of loops that pass it on unchanged."""
    for _ in range(_MOST_STEPS):
        before: hlo.Instruction | None
        if node.opcode == "get-tuple-element":
            before = _before_loop(node)
        elif node.opcode in _THROUGH and (inputs := graph.inputs(node)):
            before = inputs[0]
        else:
            break
        if before is None:
            break
        node = graph.source(before)
    return node


def _before_loop(element: hlo.Instruction) -> hlo.Instruction | None:
    """The initial value of a slot of a loop's state that no iteration changes; None for any other element."""
    state, slot, body = element.operands[0], element.attributes.get("index"), element.computation
    if state.opcode != "parameter" or body is None or not isinstance(slot, int) or len(body.callers) != 1:
        return None
    loop, given = body.callers[0], body.root
    if loop.attributes.get("body") is not body or given.opcode != "tuple" or slot >= len(given.operands):
        return None
    passed, first = _unmoved(given.operands[slot]), _unmoved(loop.operands[0])
    is_passed = (
        passed.opcode == "get-tuple-element"
        and passed.operands[0] is state
        and passed.attributes.get("index") == slot
    )
    return first.operands[slot] if is_passed and first.opcode == "tuple" else None


def _unmoved(node: hlo.Instruction) -> hlo.Instruction:
    while node.opcode in traits.COPIES and node.operands:
        node = node.operands[0]
    return node
