"""How far a module has come, and for which device it is, as far as its text tells: some passes of XLA depend on both."""

from __future__ import annotations

from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.shape import ComputationLayout, Shape


def is_tpu(module: Module) -> bool:
    """Whether the header gives the entry tiled layouts, as the TPU compiler's do from the start."""
    layout = module.attributes.get(ENTRY_LAYOUT)
    if not isinstance(layout, ComputationLayout):
        return False
    shapes = (*layout.parameter_shapes, layout.result_shape)
    return any(_is_tiled(shape) for shape in shapes)


def layouts_count(module: Module) -> bool:
    """Whether layouts have been assigned, so that passes must keep them.

    On TPU arrays are tiled then. Elsewhere there are bitcasts, into which reshapes are made at that point, or fusions.
    Before, the text gives layouts too, but nothing depends on them.
    """
    if is_tpu(module):
        return any(i.shape is not None and _is_tiled(i.shape) for i in module.instructions())
    return any(i.opcode in ("bitcast", "fusion") for i in module.instructions()) and not module_is_bare(
        module
    )


def module_is_bare(module: Module) -> bool:
    """Whether the text gives no array a layout."""
    return not any(
        leaf.layout is not None
        for i in module.instructions()
        if i.shape is not None
        for _, leaf in i.shape.leaves()
        if leaf.is_array and leaf.dimensions
    )


def _is_tiled(shape: Shape) -> bool:
    return any(
        leaf.layout is not None and bool(leaf.layout.tiles) for _, leaf in shape.leaves() if leaf.dimensions
    )
