"""Thunks of a GPU fusion: a kernel, one or several copies, the kernels of a sort, or a dynamic-slice fusion.

After `EmitFusion` of `xla/service/gpu/thunk_emitter.cc` and the emitters of `xla/backends/gpu/codegen/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext import layout
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.values.shape import Shape
from hlotext.thunks.emission import config, part
from hlotext.thunks.thunk import NESTED, Thunk

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.thunks.emission import Emitter

KERNEL = "kCustomKernel"
OLD_KERNEL = "kKernel"
"""The kind of kernels, and what it was called before 2026-03-28."""
KINDS = {"__cudnn$fusion": "kCuDnn"}
"""Thunk kinds of fusions by `fusion_backend_config.kind`; Triton's and all others are kCustomKernel."""
SLICES = "dynamic_slice_fusion"
"""Name of the custom fusion around one operation on slices."""
_NO_OPS = ("bitcast", "reshape")
_SILENT = traits.NAMES_VALUE | {"reshape"}
_SLICING = traits.SLICES | {"dynamic-update-slice"}


def kind_of_age(emitter: Emitter, kind: str) -> str:
    """Returns the name of a thunk kind in the XLA version."""
    return OLD_KERNEL if kind == KERNEL and not emitter.age.has(xla_changes.THUNK_KINDS) else kind


def emit_own(emitter: Emitter, fusion: Instruction) -> list[Thunk]:
    """Emits the thunks of a fusion that does not run asynchronously."""
    return emit(emitter, fusion, fusion)


def emit(emitter: Emitter, fusion: Instruction, holder: Instruction) -> list[Thunk]:
    """Emits the thunks of a fusion; `holder` is the async-start around it, or the fusion itself, and has its buffers."""
    body = fusion.called_computations[0]
    root = body.root
    settings = part(config(fusion), "fusion_backend_config")
    kind = str(settings.get("kind", ""))
    has_copied_slices = emitter.age.has(xla_changes.THUNK_KINDS)
    if has_copied_slices and is_contiguous_slice(fusion, root):
        return [_copied(emitter, fusion, root.operands[0], root)]
    if not has_copied_slices and is_copy_of_slice(fusion, root):
        return [_whole_copy(emitter, fusion)]
    if emitter.age.has(xla_changes.COPY_FUSIONS) and is_copy_by_slice(fusion, root):
        return _copy_of_slices(emitter, fusion, holder)
    if part(settings, "custom_fusion_config").get("name") == SLICES:
        hero = find_hero(body)
        if hero is not None:
            return _of_slices(emitter, fusion, hero)
    if not kind.startswith("__") and _is_copies(root):
        return _copies(emitter, fusion, root)
    if not kind.startswith("__") and root.opcode == "sort":
        return sort(emitter, root, fusion)
    thunk = emitter.thunk(KINDS.get(kind, kind_of_age(emitter, KERNEL)), fusion)
    emitter.buffers.arguments(thunk, fusion)
    return [thunk]


# ---- copies


def _copied(emitter: Emitter, fusion: Instruction, parameter: Instruction, root: Instruction) -> Thunk:
    thunk = emitter.thunk("kCopy", fusion)
    source = fusion.operands[parameter.parameter_number or 0]
    emitter.buffers.reads_part(
        thunk, source, _static_offset(root), layout.unpadded_bytes(root.shape) if root.shape else 0
    )
    emitter.buffers.writes(thunk, fusion)
    return thunk


def is_contiguous_slice(fusion: Instruction, root: Instruction) -> bool:
    """True if a fusion only copies a contiguous slice of an operand (`AnalyzeStaticSliceCopyFusion`)."""
    if root.opcode != "slice" or fusion.attributes.get("kind") == "kCustom":
        return False
    source = root.operands[0]
    if source.opcode != "parameter" or fusion.shape is None or root.shape is None:
        return False
    return _order(root.shape) == _order(fusion.shape) and _is_static_and_contiguous(root)


def _is_static_and_contiguous(piece: Instruction) -> bool:
    """True if a slice takes consecutive bytes."""
    source, shape = piece.operands[0].shape, piece.shape
    if source is None or shape is None or _order(source) is None or _order(source) != _order(shape):
        return False
    strides = [step for _, _, step in _limits(piece)]
    whole = source.dimensions
    if any(
        strides[d] != 1 and 1 < shape.dimensions[d] < whole[d] for d in range(len(whole)) if d < len(strides)
    ):
        return False
    return not _is_packed(source) and _is_contiguous(shape, source)


def _is_contiguous(piece: Shape, whole: Shape) -> bool:
    """True if elements of these sizes lie behind each other, wherever in the whole they begin."""
    sliced = False
    for dimension in _order(whole) or ():
        size = piece.dimensions[dimension]
        if sliced and size != 1:
            return False
        sliced = sliced or size < whole.dimensions[dimension]
    return True


def _order(shape: Shape) -> tuple[int, ...] | None:
    return shape.layout.minor_to_major if shape.layout is not None else None


def _is_packed(shape: Shape) -> bool:
    """True if elements share bytes: such arrays have no strides in bytes."""
    return shape.layout is not None and bool(shape.layout.element_size_in_bits)


def _limits(piece: Instruction) -> list[tuple[int, int, int]]:
    """Start, limit and stride of each dimension of a slice."""
    found = piece.attributes.get("slice")
    return [(d.start, d.limit, d.stride) for d in found.dimensions] if found is not None else []


def _static_offset(piece: Instruction) -> int:
    """Bytes from the beginning of the operand to a contiguous slice."""
    source = piece.operands[0].shape
    assert source is not None
    bits = 0
    stride = source.element_type.bits or 8
    for dimension in _order(source) or ():
        bits += _limits(piece)[dimension][0] * stride
        stride *= source.dimensions[dimension]
    return bits // 8


def _roots(root: Instruction) -> tuple[Instruction, ...]:
    return root.operands if root.opcode == "tuple" else (root,)


def _is_copies(root: Instruction) -> bool:
    """True if every root is a copy of a parameter with equal layouts (`HloFusionInfo::GetCopyFusion`)."""
    return all(
        copy.opcode == "copy"
        and copy.operands[0].opcode == "parameter"
        and copy.shape is not None
        and copy.operands[0].shape is not None
        and copy.shape.layout == copy.operands[0].shape.layout
        for copy in _roots(root)
    )


def _copies(emitter: Emitter, fusion: Instruction, root: Instruction) -> list[Thunk]:
    """One copy for each root whose source and destination are not one slice (`MemcpyFusion::Emit`)."""
    thunks = []
    for position, copy in enumerate(_roots(root)):
        source = fusion.operands[copy.operands[0].parameter_number or 0]
        index = (position,) if root.opcode == "tuple" else ()
        if emitter.buffers.differ(source, (), fusion, index):
            thunk = emitter.thunk("kCopy", fusion)
            emitter.buffers.reads(thunk, source)
            emitter.buffers.writes(thunk, fusion, index)
            thunks.append(thunk)
    return thunks


# ---- sort


def sort(emitter: Emitter, operation: Instruction, holder: Instruction) -> list[Thunk]:
    """Emits copies of the operands that are not sorted in place, then the kernels of a bitonic sort.

    `holder` is the fusion around the sort, or the sort itself. Inside a fusion an iota needs no copy.
    """
    thunks = []
    for position, operand in enumerate(operation.operands):
        index = (position,) if len(operation.operands) > 1 else ()
        source = operand
        if holder is not operation:
            if operand.opcode != "parameter":
                continue
            source = holder.operands[operand.parameter_number or 0]
        if emitter.buffers.differ(source, (), holder, index):
            copy = emitter.thunk("kCopy", holder)
            emitter.buffers.reads(copy, source)
            emitter.buffers.writes(copy, holder, index)
            thunks.append(copy)
    count = kernel_count(
        operation, emitter.options.threads_per_block, emitter.options.shared_memory_per_block
    )
    for _ in range(count):
        kernel = emitter.thunk(kind_of_age(emitter, KERNEL), holder)
        emitter.buffers.arguments(kernel, holder)
        thunks.append(kernel)
    return thunks


_UNROLL = 4
"""Elements for each thread of a sort (`kBitonicSortUnrollFactor`)."""


def kernel_count(operation: Instruction, threads_per_block: int, shared_memory_per_block: int) -> int:
    """Returns the number of kernels of a bitonic sort (`EmitBitonicSortLLVMIR`): consecutive small steps share one.

    `shared_memory_per_block` is in bytes.
    """
    keys = operation.operands[0].shape
    dimension = operation.attributes.get("dimensions", (0,))
    assert keys is not None
    size = keys.dimensions[dimension[0]] if dimension[0] < keys.rank else 1
    stages = (size - 1).bit_length()
    element_bytes = sum(
        max(operand.shape.element_type.byte_width, 1) for operand in operation.operands if operand.shape
    )
    tile = min(threads_per_block * _UNROLL, shared_memory_per_block // max(element_bytes, 1), 1 << stages)
    tile = 1 << (max(tile, 1).bit_length() - 1)
    kernels, shares = 0, False
    for stage in range(stages):
        for step in range(stage, -1, -1):
            mask = (1 << (stage + 1)) - 1 if step == stage else 1 << step
            kernels += mask >= tile or not shares
            shares = mask < tile
    return kernels


# ---- fusions of slices


def find_hero(body: Computation) -> Instruction | None:
    """Returns the hero of a dynamic-slice fusion (`DynamicSliceFusion::FindHero`), which neither slices nor computes
    offsets.

    None if the fusion only slices.
    """
    offsets: set[Instruction] = set()
    wanted: list[Instruction] = []
    for instruction in body.instructions:
        if instruction.opcode in ("dynamic-slice", "dynamic-update-slice"):
            wanted += instruction.operands[1 if instruction.opcode == "dynamic-slice" else 2 :]
    while wanted:
        instruction = through(wanted.pop())
        if instruction not in offsets:
            offsets.add(instruction)
            if instruction.opcode not in ("parameter", "constant"):
                wanted += instruction.operands
    for instruction in body.instructions:
        if instruction in offsets or instruction.opcode in _SILENT or instruction.opcode in _SLICING:
            continue
        return instruction
    return None


def through(instruction: Instruction) -> Instruction:
    """Returns the instruction from which bitcasts and reshapes take their value."""
    while instruction.opcode in _NO_OPS:
        instruction = instruction.operands[0]
    return instruction


def _of_slices(emitter: Emitter, fusion: Instruction, hero: Instruction) -> list[Thunk]:
    """A fusion of slices around the thunks of its hero, whose buffers are the slices (`EmitDynamicSliceFusionV2`)."""
    number = emitter.number()
    rule = emitter.rule_of(hero)
    with emitter.buffers.inside(hero):
        found = rule.emit(emitter, hero) if rule is not None else []
    if not isinstance(found, list):
        emitter.note(hero, f"{hero.opcode} inside a fusion of slices is not supported")
        found = []
    thunk = Thunk(
        kind="kDynamicSliceFusion",
        number=number,
        instruction=fusion,
        name=fusion.name,
        children=((NESTED, tuple(found)),),
        facts={"is_loop_dependent": is_loop_dependent(fusion.called_computations[0])},
    )
    for operand in hero.operands:
        source = through(operand)
        if source.opcode in ("dynamic-slice", "slice"):
            source = through(source.operands[0])
        if source.opcode == "parameter" and source.parameter_number is not None:
            emitter.buffers.reads(thunk, fusion.operands[source.parameter_number])
    emitter.buffers.writes_all(thunk, fusion)
    return [thunk]


def is_loop_dependent(body: Computation) -> bool:
    """True if a slice of a fusion depends on a loop's iteration number, according to its dynamic_slice_config."""
    slicing = (i for i in body.instructions if i.opcode in ("dynamic-slice", "dynamic-update-slice"))
    return any("loop_index" in part(config(i), "dynamic_slice_config") for i in slicing)


# ---- copies of slices


def _of_no_ops(instruction: Instruction) -> Instruction:
    """Source of an instruction through bitcasts."""
    while instruction.opcode == "bitcast":
        instruction = instruction.operands[0]
    return instruction


def is_copy_of_slice(fusion: Instruction, root: Instruction) -> bool:
    """True if XLA before 2026-03-28 emits a copy for a fusion in place of a kernel (`DynamicMemcpyFusion`).

    The root is a contiguous dynamic-slice of a parameter, or a contiguous dynamic-update-slice of a parameter by
    another, at an offset that depends only on constants and the loop's iteration number.
    """
    piece = _of_no_ops(root)
    if fusion.attributes.get("kind") == "kCustom" or piece.opcode not in (
        "dynamic-slice",
        "dynamic-update-slice",
    ):
        return False
    is_update = piece.opcode == "dynamic-update-slice"
    whole = piece.operands[0].shape
    part_of_it = piece.operands[1].shape if is_update else piece.shape
    sources = piece.operands[:2] if is_update else piece.operands[:1]
    if whole is None or part_of_it is None or _order(whole) is None or _order(whole) != _order(part_of_it):
        return False
    if any(_of_no_ops(source).opcode != "parameter" for source in sources):
        return False
    indices = piece.operands[len(sources) :]
    return _is_contiguous(part_of_it, whole) and all(_is_of_iteration(fusion, index) for index in indices)


def _is_of_iteration(fusion: Instruction, index: Instruction) -> bool:
    """True if an index inside of a fusion is a constant or follows from the induction variable of the loop around."""
    wanted, seen = [index], {index}
    while wanted:
        one = wanted.pop()
        if one.opcode == "parameter":
            if not _is_induction_variable(fusion.operands[one.parameter_number or 0]):
                return False
        elif one.opcode != "constant" and not one.operands:
            return False
        wanted += [operand for operand in one.operands if operand not in seen]
        seen.update(one.operands)
    return True


def _is_induction_variable(value: Instruction) -> bool:
    while value.opcode in ("bitcast", "copy"):
        value = value.operands[0]
    if value.opcode == "constant":
        return True
    if value.opcode != "get-tuple-element" or value.operands[0].opcode != "parameter":
        return False
    home = value.computation
    loop = (
        next((caller for caller in home.callers if caller.opcode == "while"), None)
        if home is not None
        else None
    )
    if loop is None or loop.attributes.get("body") is not home:
        return False
    variable = part(config(loop), "known_induction_variable").get("tuple_index")
    return variable is not None and str(variable) == str(value.attributes.get("index"))


def _whole_copy(emitter: Emitter, fusion: Instruction) -> Thunk:
    thunk = emitter.thunk("kCopy", fusion)
    emitter.buffers.arguments(thunk, fusion)
    return thunk


def is_copy_by_slice(fusion: Instruction, root: Instruction) -> bool:
    """True if XLA since 2026-06-17 emits a fusion as a dynamic-slice fusion around a copy.

    The root, through bitcasts and reshapes, is a slice or an update with a `dynamic_slice_config`. Whatever slices in it has
    one, or takes consecutive bytes that do not move. What is copied comes from a parameter, sliced at most once.
    """
    piece = through(root)
    if fusion.attributes.get("kind") == "kCustom" or piece.opcode not in (
        "dynamic-slice",
        "dynamic-update-slice",
    ):
        return False
    if not all(
        _is_static_and_contiguous(i) if i.opcode == "slice" else "dynamic_slice_config" in config(i)
        for i in fusion.called_computations[0].instructions
        if i.opcode in _SLICING
    ):
        return False
    copied = piece if piece.opcode == "dynamic-slice" else piece.operands[1]
    source = through(copied)
    if source.opcode in ("dynamic-slice", "slice"):
        return through(source.operands[0]).opcode == "parameter"
    if source.opcode != "parameter" or source.shape is None or copied.shape is None:
        return False
    return layout.unpadded_bytes(source.shape) == layout.unpadded_bytes(copied.shape)


def _copy_of_slices(emitter: Emitter, fusion: Instruction, holder: Instruction) -> list[Thunk]:
    """A fusion of slices around one copy, numbered before it. Offsets do not count among what it reads."""
    piece = through(fusion.called_computations[0].root)
    copied = piece if piece.opcode == "dynamic-slice" else piece.operands[1]
    source = through(copied)
    if source.opcode in _SLICING:
        source = through(source.operands[0])
    copy = emitter.thunk("kCopy", fusion)
    thunk = emitter.thunk(
        "kDynamicSliceFusion",
        fusion,
        children=((NESTED, (copy,)),),
        facts={"is_loop_dependent": is_loop_dependent(fusion.called_computations[0])},
    )
    emitter.buffers.reads(thunk, fusion.operands[source.parameter_number or 0])
    if holder is fusion:
        emitter.buffers.writes_all(thunk, fusion)
    else:
        emitter.buffers.writes(thunk, holder, (1,))
    return [thunk]


def describe() -> list[tuple[str, str, str]]:
    """Returns the rows of fusions for the table of rules: what is matched, thunks, source."""
    rows: list[tuple[str, str, str]] = [
        ("fusion whose root is a contiguous slice of a parameter", "kCopy", "AnalyzeStaticSliceCopyFusion"),
        (
            "fusion whose root is a dynamic slice, or an update by one, of a known offset, since 2026-06-17",
            "kDynamicSliceFusion{kCopy}",
            "DynamicSliceCopyFusion",
        ),
        (
            "fusion __custom_fusion dynamic_slice_fusion",
            "kDynamicSliceFusion{its hero's}",
            "EmitDynamicSliceFusionV2",
        ),
        ("fusion whose roots are copies of parameters", "kCopy for each that moves", "MemcpyFusion"),
        ("fusion whose root is a sort", "as sort", "SortFusion"),
        ("fusion __cudnn$fusion", "kCuDnn", "CuDnnFusion"),
        ("any other fusion", "kCustomKernel", "GetFusionEmitter"),
    ]
    return rows
