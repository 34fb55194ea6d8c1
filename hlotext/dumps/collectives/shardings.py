"""The shardings that a text before partitioning gives its arrays, as they stand and as PartitionSpecs."""

from __future__ import annotations

import hlotext as hlo
from hlotext.analysis import DeviceMesh
from hlotext.dumps.collectives.keys import Text
from hlotext.dumps.collectives.specs import Spec, Specs, dimensions_of
from hlotext.ir.values.sharding import Sharding

_MOST_TUPLES = 64
"""Maximum number of tuples followed for the sharding of an element."""


class Shardings:
    """The shardings of one module before partitioning."""

    def __init__(self, text: Text, mesh: DeviceMesh | None) -> None:
        self.text = text
        self.mesh = mesh
        self.specs = Specs(mesh) if mesh is not None else None
        self._spec_of: dict[hlo.Instruction, Spec | None] = {}

    def spec(self, node: hlo.Instruction) -> Spec | None:
        """Returns the spec of an array before partitioning; None without a mesh, or if no PartitionSpec expresses it."""
        if node not in self._spec_of:
            dimensions = dimensions_of(node)
            found = None
            if self.specs is not None and dimensions is not None:
                found = self.specs.of(sharding_of(node), len(dimensions))
            self._spec_of[node] = found
        return self._spec_of[node]

    def result_sharding(self, number: int) -> Sharding | None:
        """Returns the sharding of a result of the program, or None if absent."""
        root = self.text.module.entry.root
        if root.shape is not None and root.shape.is_tuple:
            found = sharding_of(root, number)
            if found is None and root.sharding is None and root.opcode == "tuple":
                return sharding_of(root.operands[number])
            return found
        return sharding_of(root)


def sharding_of(node: hlo.Instruction, index: int | None = None) -> Sharding | None:
    """Returns the sharding of an array before partitioning, or of one array of a tuple; None means replicated."""
    found = node.sharding
    if found is None and node.opcode == "get-tuple-element" and index is None:
        return _of_element(node)
    if found is None or node.shape is None:
        return None
    if not node.shape.is_tuple:
        return found.tuple_elements[0] if found.is_tuple and len(found.tuple_elements) == 1 else found
    each = found.for_shape(node.shape).tuple_elements
    return each[index] if index is not None and index < len(each) else None


def _of_element(node: hlo.Instruction) -> Sharding | None:
    """The sharding of an element that compact texts do not write out: that of its tuple."""
    for _ in range(_MOST_TUPLES):
        index = node.attributes.get("index")
        source = node.operands[0] if node.operands else None
        if source is None or not isinstance(index, int) or source.shape is None:
            return None
        if source.sharding is not None:
            if node.shape is None or node.shape.is_tuple:
                return None
            before = [
                max(1, sum(1 for _ in one.leaves())) if one.is_tuple else 1
                for one in source.shape.tuple_shapes
            ]
            each = source.sharding.for_shape(source.shape).tuple_elements
            place = sum(before[:index])
            return each[place] if place < len(each) else None
        if source.opcode == "tuple" and index < len(source.operands):
            node = source.operands[index]
            if node.sharding is not None or node.opcode != "get-tuple-element":
                return node.sharding
        else:
            return None
    return None
