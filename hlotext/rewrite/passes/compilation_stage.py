"""Compilation stage and platform of a module, as far as its text shows them: some passes of XLA depend on both."""

from __future__ import annotations

import math

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.shape import ComputationLayout, Shape


def is_tpu(module: Module) -> bool:
    """Returns True if the entry layout in the header is tiled, as the TPU compiler's is from the start."""
    layout = module.attributes.get(ENTRY_LAYOUT)
    if not isinstance(layout, ComputationLayout):
        return False
    shapes = (*layout.parameter_shapes, layout.result_shape)
    return any(_is_tiled(shape) for shape in shapes)


def is_for_tpu(module: Module, platform: str) -> bool:
    """Returns True if a pass should follow the TPU compiler: by `platform`, or if that is empty or `auto`, by the
    module.
    """
    return platform == "tpu" or (platform in ("", "auto") and is_tpu(module))


def layouts_count(module: Module) -> bool:
    """Returns True if layouts have been assigned, so that passes must keep them.

    On TPU, all arrays including the entry's parameters are then tiled. Elsewhere, the module then has bitcasts, which
    replace reshapes at that point, or fusions. Earlier layouts in the text have no meaning.
    """
    if is_tpu(module):
        looked_at = (module.entry.parameters if len(module.computations) else ()) or module.instructions()
        return any(i.shape is not None and _is_tiled(i.shape) for i in looked_at)
    return any(i.opcode in ("bitcast", "fusion") for i in module.instructions()) and not module_is_bare(
        module
    )


def module_is_bare(module: Module) -> bool:
    """Returns True if no array in the module has a layout."""
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


def is_raw(module: Module) -> bool:
    """Returns True if a module has not been simplified yet: it contains what frontends emit and `algsimp` removes.

    That is a broadcast that repeats nothing, or (before partitioning, which emits such too) a division by a constant or
    subtraction of one, but no reshape or transpose without effect, which the first iteration leaves.
    """
    is_partitioned = len(module.computations) and module.entry.name.endswith("_spmd")
    is_written = _has_idle_broadcast(module) or (not is_partitioned and _has_constant_on_the_right(module))
    return is_written and not _has_idle_move(module)


def _has_constant_on_the_right(module: Module) -> bool:
    """True if a constant is subtracted or divided by: the simplifier adds its negative or multiplies by its inverse."""
    for i in module.instructions():
        if (
            len(i.operands) != 2
            or i.opcode not in ("subtract", "divide")
            or i.operands[0].opcode == "constant"
        ):
            continue
        right = i.operands[1]
        whole = i.shape is not None and i.shape.is_array and i.shape.element_type.is_integral
        if i.opcode == "divide" and whole:
            continue
        if right.opcode == "constant" or (
            right.opcode == "broadcast" and right.operands[0].opcode == "constant"
        ):
            return True
    return False


def _has_idle_broadcast(module: Module) -> bool:
    return any(
        i.opcode == "broadcast" and bool(_sizes(i.operands[0])) and _count(i) == _count(i.operands[0])
        for i in module.instructions()
        if len(i.operands) == 1
    )


def _has_idle_move(module: Module) -> bool:
    return any(
        (i.opcode == "reshape" and _sizes(i) == _sizes(i.operands[0]))
        or (i.opcode == "transpose" and list(i.attributes["dimensions"]) == list(range(len(_sizes(i)))))
        for i in module.instructions()
        if len(i.operands) == 1
    )


def has_been_fused(module: Module) -> bool:
    """Returns True if a TPU module is past main fusion: before it, all fusions are custom fusions."""
    return any(
        i.opcode == "fusion" and str(i.attributes.get("kind")) in ("kLoop", "kInput", "kOutput")
        for i in module.instructions()
    )


def is_for_gpu(module: Module) -> bool:
    """Returns True if a non-TPU module with layouts is for GPU: it has no fusions yet, or GPU-specific backend configs.

    The CPU compiler fuses before that point.
    """
    fused = False
    for i in module.instructions():
        fused |= i.opcode == "fusion"
        config = i.attributes.get("backend_config")
        if config is not None and any(word in str(config) for word in _GPU_SETTINGS):
            return True
    return not fused


_GPU_SETTINGS = ("operation_queue_id", "fusion_backend_config", "gemm_backend_config")


def computes_in_bf16(module: Module) -> bool:
    """Returns True if bf16 values are added or multiplied.

    The CPU compiler widens such operations before it moves reshapes, unless it moves them after partitioning.
    """
    return any(
        i.opcode in ("add", "subtract", "multiply", "divide", "exponential") and _type(i) == "bf16"
        for i in module.instructions()
    )


def multiplies_8_bit_floats(module: Module) -> bool:
    """Returns True if a product has 8-bit float operands, which the CPU compiler widens before bf16."""
    return any(
        i.opcode == "dot" and all(_type(o).startswith("f8") for o in i.operands)
        for i in module.instructions()
    )


def was_walked_once(module: Module) -> bool:
    """Returns True if `algsimp` ran for a single iteration: a reshape or transpose without effect is left.

    This is so on GPU; the CPU compiler iterates until nothing changes (inferred from dumps of both).
    """
    return not _has_idle_broadcast(module) and _has_idle_move(module)


def _type(i: Instruction) -> str:
    return i.shape.element_type.name if i.shape is not None and i.shape.is_array else ""


def _sizes(i: Instruction) -> tuple[int, ...]:
    return i.shape.dimensions if i.shape is not None else ()


def _count(i: Instruction) -> int:
    return math.prod(_sizes(i))
