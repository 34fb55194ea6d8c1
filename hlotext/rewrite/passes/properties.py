"""Properties that passes require and ensure."""

from __future__ import annotations

from typing import TypeGuard

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Layout, Shape, default_layout
from hlotext.rewrite.passes.base import Property, nonfusion_computations

NORMALIZED = ELEMENTWISE | {"copy"}
"""Opcodes that layout normalization computes in descending layouts."""


def _not_scheduled(module: Module) -> bool:
    return not module.is_scheduled


def _is_flat(module: Module) -> bool:
    counts: dict[object, int] = {}
    for instruction in module.instructions():
        if instruction.opcode in traits.RUNS_CALLEE:
            for callee in instruction.called_computations:
                counts[callee] = counts.get(callee, 0) + 1
    return all(count == 1 for count in counts.values())


def _has_layouts(module: Module) -> bool:
    return all(
        leaf.layout is not None or not leaf.dimensions
        for i in module.instructions() if i.shape is not None
        for _, leaf in i.shape.leaves() if leaf.is_array
    )  # fmt: skip


def is_plain(shape: Shape | None) -> TypeGuard[Shape]:
    """Returns True if a shape is a static array whose layout has only a dimension order and a memory space."""
    if shape is None or not shape.is_array or shape.layout is None or not shape.is_static:
        return False
    return attrs.evolve(shape.layout, memory_space=0) == Layout(shape.layout.minor_to_major)


def is_tiled(shape: Shape | None) -> bool:
    """Returns True if an array has a tiled layout, as on TPU after layout assignment."""
    return shape is not None and shape.layout is not None and bool(shape.layout.tiles)


def is_descending(shape: Shape) -> bool:
    """Returns True if an array has the descending layout, with the last dimension fastest."""
    return (
        shape.layout is not None and shape.layout.minor_to_major == default_layout(shape.rank).minor_to_major
    )


def _descends(module: Module) -> bool:
    """True if every array without tiles that an elementwise operation makes outside of fusions has a descending layout."""
    return all(
        is_descending(i.shape)
        for computation in nonfusion_computations(module)
        for i in computation
        if i.opcode in NORMALIZED and is_plain(i.shape)
    )


def _no_shardings(module: Module) -> bool:
    return all(i.sharding is None for i in module.instructions())


NOT_SCHEDULED = Property("the module is not scheduled", _not_scheduled)
FLAT_CALL_GRAPH = Property("each sequentially called computation has one caller", _is_flat)
LAYOUTS = Property("every array has a layout", _has_layouts)
DESCENDING = Property("elementwise operations have descending layouts", _descends)
NO_SHARDINGS = Property("nothing has a sharding", _no_shardings)
