"""What passes ask of modules and promise of them."""

from __future__ import annotations

from hlotext.ir.module import Module
from hlotext.ir.shape import default_layout
from hlotext.rewrite.passes.base import Property


def _not_scheduled(module: Module) -> bool:
    return not module.is_scheduled


def _is_flat(module: Module) -> bool:
    counts: dict[object, int] = {}
    for instruction in module.instructions():
        if instruction.opcode in ("call", "while", "conditional", "async-start"):
            for callee in instruction.called_computations:
                counts[callee] = counts.get(callee, 0) + 1
    return all(count == 1 for count in counts.values())


def _has_layouts(module: Module) -> bool:
    return all(
        leaf.layout is not None or not leaf.dimensions
        for i in module.instructions() if i.shape is not None
        for _, leaf in i.shape.leaves() if leaf.is_array
    )  # fmt: skip


def _descends(module: Module) -> bool:
    """Whether every array that an elementwise operation makes outside of fusions has the descending layout."""
    from hlotext.rewrite.passes.layout_normalization import NORMALIZED

    return all(
        i.shape.layout.minor_to_major == default_layout(i.shape.rank).minor_to_major
        for c in module.computations if not c.is_fusion_body
        for i in c if i.opcode in NORMALIZED and i.shape is not None and i.shape.layout is not None
    )  # fmt: skip


def _no_shardings(module: Module) -> bool:
    return all(i.sharding is None for i in module.instructions())


NOT_SCHEDULED = Property("the module is not scheduled", _not_scheduled)
FLAT_CALL_GRAPH = Property("each computation that runs by itself has one caller", _is_flat)
LAYOUTS = Property("every array has a layout", _has_layouts)
DESCENDING = Property("elementwise operations have descending layouts", _descends)
NO_SHARDINGS = Property("nothing has a sharding", _no_shardings)
