"""Platform-specific rules of buffer assignment, one row each.

CPU's and GPU's rules are read in XLA's source. TPU's are inferred from what libtpu 0.0.42.1 wrote for v2 to tpu7x: its
source is not public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from hlotext.analysis.backend import Backend
from hlotext.analysis.chip_choice import ASSUMED_TPU
from hlotext.analysis.chips import Chip
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout import allocated_bytes, host_shape_size, shapes_equal, unpadded_bytes
from hlotext.memory.elementwise import Elementwise, parameter_of, roots_of
from hlotext.memory.gpu_alias_info import gpu_hint
from hlotext.memory.in_place import GPU_NO_OPS, NO_OPS
from hlotext.memory.sharing import Hint, no_hint
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Value

SPARSE_CORE_TUPLES = 7
"""The memory space of tuples inside what runs on TPU's SparseCores."""


def _anything_may(_: Value) -> bool:
    return False


@attrs.frozen
class Platform:
    """Buffer assignment rules of a backend."""

    backend: Backend
    size_of: Callable[[Shape, int], int]
    """Bytes of an array, tuple table or token in a memory space. Raises LayoutError if it is unknown."""
    alignments: Mapping[int, int]
    """Alignment of allocations by memory space, in bytes."""
    other_alignment: int
    """Alignment in memory spaces without a row."""
    hint: Hint = no_hint
    no_ops: frozenset[str] = NO_OPS
    one_space_for_each_buffer: bool = False
    """True if a buffer's memory space is the one that any of its values names."""
    merged_spaces: frozenset[int] = frozenset()
    """Memory spaces whose heap is packed by time (fast merge), not by size."""
    merged_up_to: int | None = None
    """Bytes of main memory up to which that is done; where more is needed, all is assigned once more by size, and the
    assignment that needs least is taken. None: always."""
    certain_spaces: frozenset[int] | None = None
    """Memory spaces whose heaps were as large as the compiler's in all that was compared; None: all."""
    fast_space: int | None = None
    """The memory space that is filled before buffers are assigned (memory space assignment)."""
    scoped_floor: int = 0
    """Bytes of it that are kept for instructions while they run."""
    keeps_traces: bool = True
    """True if XLA's peak includes the heap; on CPU its traces are dropped first, which leaves the static part."""
    knows_temporaries: bool = True
    """True if temporary memory is the sum of its allocations; on TPU the code generator decides."""
    cannot_live_out: Callable[[Value], bool] = _anything_may
    """Predicate of values that must not be in an allocation that outlives the program."""

    def alignment(self, memory_space: int) -> int:
        return self.alignments.get(memory_space, self.other_alignment)


def _host_size(shape: Shape, _: int) -> int:
    return host_shape_size(shape)


CPU = Platform(Backend.CPU, _host_size, {}, 64, keeps_traces=False)
"""`CpuCompiler`: alignment of `cpu_function_runtime::MinAlign`; no rules of its own for sharing."""

GPU = Platform(
    Backend.GPU,
    _host_size,
    {},
    256,
    hint=gpu_hint,
    no_ops=GPU_NO_OPS,
    one_space_for_each_buffer=True,
)
"""`GpuCompiler`: `kXlaAllocatedBufferAlignBytes`, `NVPTXAliasInfo`."""

_WITHOUT_TILES = frozenset({2, 8, 10})
"""TPU's memory spaces without tiles: scalar memory, and flags of SparseCores."""

_ELEMENTS_IN_A_ROW = 1024
"""Elements to a multiple of which an array without tiles is rounded up."""


@attrs.frozen
class _TpuChip:
    """Properties in which TPU generations differ. Inferred."""

    table_alignment: int
    """A tuple's table is rounded up to a multiple of this."""
    sync_alignment: int = 512
    """Alignment in memory space 6."""
    scoped_floor: int = 0
    """Bytes from 0 up of the fast memory that are kept for instructions while they run, whatever these ask for."""


_LEFT_BY_MERGING = 5 << 29
"""Bytes of what a program may use that must be left where heaps are packed by time. For programs of growing size the log of
libtpu 0.0.52 has "Trying strategy: 1, 4", and with less left 1, 5 (which never needed least), 0, 2 and 0, 3 too: on v5e from
2 MiB below this bound on, and on v2, v5p and tpu7x between two programs around it."""

_TPU_CHIPS = {
    "v2": _TpuChip(1024, 1024),
    "v3": _TpuChip(1024, 1024),
    "v4": _TpuChip(512),
    "v5e": _TpuChip(512),
    "v5p": _TpuChip(32),
    "v6e": _TpuChip(32),
    "tpu7x": _TpuChip(32, scoped_floor=1 << 25),
}


def table_alignment(chip: Chip) -> int:
    """Returns the alignment in bytes to which a TPU rounds up the pointer table of a tuple."""
    return _tpu_rules(chip).table_alignment


def _tpu_rules(chip: Chip) -> _TpuChip:
    """The rules of a chip; of one of the user's own those of the chip that it goes on from."""
    return _TPU_CHIPS.get(chip.base or chip.name) or _TPU_CHIPS[ASSUMED_TPU]


@attrs.frozen
class _TpuSize:
    """Bytes on TPU: all tiles; tables of 4 bytes for each element. Inferred."""

    table_alignment: int

    def __call__(self, shape: Shape, memory_space: int) -> int:
        if shape.is_tuple:
            if memory_space == SPARSE_CORE_TUPLES:
                return 0
            return rounded_up(4 * len(shape.tuple_shapes), self.table_alignment)
        if shape.is_token:
            return 0
        if not shape.is_array:
            return unpadded_bytes(shape)
        layout = shape.layout
        if memory_space in _WITHOUT_TILES:
            return unpadded_bytes(shape)
        if layout is None or not layout.tiles:
            elements = rounded_up(shape.element_count, _ELEMENTS_IN_A_ROW)
            bits = layout.element_size_in_bits if layout is not None and layout.element_size_in_bits else 0
            return (elements * (bits or 8 * shape.element_type.byte_width) + 7) // 8
        return allocated_bytes(shape)


def rounded_up(number: int, multiple: int) -> int:
    """Returns the smallest multiple of `multiple` that is at least `number`."""
    return -(-number // multiple) * multiple


def _tpu_hint(
    elementwise: Elementwise, operand: Instruction, user: Instruction, index: ShapeIndex
) -> bool | None:
    """TPU: an all-reduce writes over its own element, a power over its base, a fusion over what it reads in order.

    Inferred.
    """
    if user.opcode == "all-reduce":
        operands = user.operands
        return len(operands) == 1 or (
            len(index) == 1 and index[0] < len(operands) and operands[index[0]] is operand
        )
    if user.opcode == "power" and operand is not user.operands[0]:
        return False
    if user.opcode == "fusion" and _reads_in_order(elementwise, operand, user, index):
        return True
    return None


def _reads_in_order(
    elementwise: Elementwise, operand: Instruction, fusion: Instruction, index: ShapeIndex
) -> bool:
    """True if a loop or output fusion reads an operand elementwise for the result at an index, whatever its other results do.

    All 955 pairs that libtpu's configurations of such fusions name (`aliasing_operands`) with equal shapes are such pairs.
    """
    shape = fusion.shape
    if str(fusion.attributes.get("kind")) not in ("kLoop", "kOutput") or shape is None or len(index) > 1:
        return False
    made = shape.tuple_shapes[index[0]] if index else shape
    given = operand.shape
    numbers = [number for number, other in enumerate(fusion.operands) if other is operand]
    if len(numbers) != 1 or given is None or not given.is_array or not shapes_equal(given, made):
        return False
    roots = roots_of(fusion.called_computations[0])
    parameter = parameter_of(fusion, numbers[0])
    result = roots[index[0]] if index and index[0] < len(roots) else roots[0]
    return parameter is not None and elementwise.to_result(parameter, result)


_LEAVE_THE_CHIP = frozenset(
    {
        "all-gather",
        "all-gather-start",
        "all-to-all",
        "collective-permute",
        "collective-permute-start",
        "recv",
        "reduce-scatter",
        "send",
    }
)


def _tpu_cannot_live_out(value: Value) -> bool:
    """Values that TPU's interconnect writes to or its host thread accesses. Inferred."""
    instruction = value.instruction
    if instruction is None:
        return False
    opcode = instruction._head.opcode
    if opcode in _LEAVE_THE_CHIP:
        return True
    thread = _thread(instruction)
    if thread == "host" or (opcode == "all-reduce" and thread == "sparsecore"):
        return True
    places = value.flat_positions()[::2]
    return any(isinstance(place, Instruction) and _thread(place) == "host" for place in places)


def _thread(instruction: Instruction) -> str:
    computation = instruction._computation
    return computation._execution_thread if computation is not None else "main"


def tpu(chip: Chip, *, is_timed: bool = True) -> Platform:
    """Returns the rules of a TPU. With `is_timed`, memory space 6 is packed by time, as libtpu does since `FAST_MERGE`."""
    rules, usable = _tpu_rules(chip), chip.usable_bytes(0)
    merged = max(0, usable - _LEFT_BY_MERGING) if usable is not None else None
    spaces = {0: 16384, 1: 4096, 2: 4, 3: 4096, 4: 512, 6: rules.sync_alignment, 8: 4}
    return Platform(
        Backend.TPU,
        _TpuSize(rules.table_alignment),
        spaces,
        4096,
        hint=_tpu_hint,
        merged_spaces=frozenset({0, 6} if is_timed else {0}),
        merged_up_to=merged,
        certain_spaces=frozenset({0, 2}),
        fast_space=chip.fast_memory_space,
        scoped_floor=rules.scoped_floor,
        knows_temporaries=False,
        cannot_live_out=_tpu_cannot_live_out,
    )
