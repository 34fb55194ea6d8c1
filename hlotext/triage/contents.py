"""The contents of a module's memory at its peak: weights, state, caches, inputs, results, temporaries by repeated layer."""

from __future__ import annotations

import enum
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import attrs

from hlotext import memory
from hlotext.analysis import scopes
from hlotext.analysis.entries import arguments
from hlotext.analysis.scopes import TOP
from hlotext.analysis.updates import tree_of, updates
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.types import TypeKind
from hlotext.memory import usage
from hlotext.memory.subshapes import ShapeIndex

MAIN = 0
"""The memory space that is looked at: HBM, a GPU's memory, on CPU the only one."""
_LAYERS = 8
_PASSING = traits.KEEPS_ELEMENTS | traits.CONVERSIONS
"""Opcodes that keep the elements of their operand."""
_SEVERAL = 2
_WIDE = 32
"""Bits of integers that are no quantized weights."""


class Role(enum.Enum):
    """Role of an array in the program."""

    WEIGHTS = "weights"
    """Read-only arguments with a typical parameter name, such as `params['w']`."""
    EMBEDDINGS = "embeddings"
    """Read-only arguments from which gathers look up rows."""
    STATE = "state"
    """Arguments whose new value is a result: donated arguments, and parameters and loop state even if not donated."""
    CACHES = "caches"
    """Arguments that are partially updated, donated or not, such as a KV cache."""
    INPUTS = "inputs"
    """Read-only integers of 32 bits or more and booleans, such as tokens or masks, and arguments named like a batch."""
    READ_ONLY = "read only"
    """Other read-only arguments, which may be weights or floating-point batches."""
    RESULTS = "results"
    """Results not aliased to arguments."""
    CONSTANTS = "constants"
    TEMPORARIES = "temporaries"
    """Everything else live at the peak, mostly activations."""


@attrs.frozen
class Content:
    """The arrays of one role in main memory at the peak."""

    role: Role
    bytes: int
    arrays: int
    largest: str
    """Name of the largest array in the program, or else of its instruction."""


@attrs.frozen
class Layer:
    """Temporaries of one scope at the peak; numbered layers are merged."""

    scope: str
    """Scope in the program, with `*` in place of layer numbers."""
    bytes: int
    arrays: int
    largest: int
    """Bytes of the largest array."""


def contents_of(assignment: memory.Assignment) -> tuple[tuple[Content, ...], tuple[Layer, ...]]:
    """Returns the contents of main memory at the peak by role, and the largest scopes of temporaries, by decreasing
    bytes.
    """
    module = assignment.module
    if module is None or not module.computations:
        return (), ()
    labels = {(one.number, one.index): one.label for one in arguments(module)}
    updated = _updated(module)
    in_part = _in_part(module)
    held: dict[Role, list[tuple[int, str]]] = defaultdict(list)
    for allocation in assignment.allocations:
        if allocation.memory_space == MAIN and allocation.is_static and allocation.bytes:
            label = labels.get((allocation.parameter_number or 0, allocation.parameter_index), "")
            if not allocation.is_parameter or not label:
                label = str(allocation.slices[0].value) if allocation.slices else ""
            held[_role(allocation, label, updated, in_part)].append((allocation.bytes, label))
    time = assignment.peak(MAIN).time
    rows = [row for row in usage.live_arrays(assignment, MAIN, time) if row.kind == "temporary"]
    held[Role.TEMPORARIES] = [(row.bytes, row.op_name or row.label) for row in rows]
    contents = [
        Content(role, sum(size for size, _ in mine), len(mine), max(mine, key=lambda one: one[0])[1])
        for role, mine in held.items()
        if mine
    ]
    return tuple(sorted(contents, key=lambda one: (-one.bytes, one.role.value))), _layers(module, rows)


def _updated(module: Module) -> dict[tuple[int, ShapeIndex], Role]:
    """The roles of arguments that come back updated in other memory, by parameter and index.

    A result may be a function of one array by chance: that is no update unless it holds for most of a tree of several.
    """
    found = list(updates(module, with_moved=True))
    leaves = Counter(map(tree_of, module.entry.parameters))
    updated = Counter(tree_of(one.parameter) for one in found)
    roles = {}
    for one in found:
        tree = tree_of(one.parameter)
        is_tree = updated[tree] >= _SEVERAL and 2 * updated[tree] >= leaves[tree]
        if one.is_in_place or one.is_rolled:
            role = Role.CACHES
        elif one.is_carried or is_tree:
            role = Role.STATE
        else:
            continue
        roles[one.parameter.parameter_number or 0, one.part] = role
    return roles


def _in_part(module: Module) -> frozenset[tuple[int, ShapeIndex]]:
    """The arguments, donated or not, that come back with a part of them changed, by parameter and index.

    Where a loop takes their slices and gives new ones, what is written over a donated argument is a copy of all of these.
    """
    found = updates(module, with_aliased=True, with_moved=True)
    return frozenset(
        (one.parameter.parameter_number or 0, one.part) for one in found if one.is_in_place or one.is_rolled
    )


def _role(
    allocation: memory.Allocation,
    label: str,
    updated: Mapping[tuple[int, ShapeIndex], Role],
    in_part: Collection[tuple[int, ShapeIndex]],
) -> Role:
    """The role of an allocation that is held from start to end; `label` is the argument's name in the program."""
    if not allocation.is_parameter:
        return Role.CONSTANTS if allocation.is_constant else Role.RESULTS
    values = [piece.value for piece in allocation.slices]
    place = allocation.parameter_number or 0, allocation.parameter_index
    if allocation.is_aliased:
        return Role.CACHES if place in in_part or any(map(_writes_part, values)) else Role.STATE
    if any(_is_gathered_from(value) for value in values):
        return Role.EMBEDDINGS
    role = updated.get(place)
    if role is not None:
        return role
    types = {value.shape.element_type for value in values if value.shape is not None and value.shape.is_array}
    if types and all(
        one.kind is TypeKind.PREDICATE or (one.is_integral and one.bits >= _WIDE) for one in types
    ):
        return Role.INPUTS
    return _by_name(label)


_PARAMETERS = re.compile(
    r"(params?|parameters|variables|weights?|ws?\d*|kernels?|bias(es)?|embed\w*|table|layers?|model)\b"
)
_BATCH = re.compile(r"(xs?|ys?|batch|inputs?|images?|labels?|targets?|features|data|obs\w*)\b")


def _by_name(label: str) -> Role:
    """The role of an argument that is only read, by the names that JAX programs give: `params['w']`, `batch['x']`."""
    if _PARAMETERS.match(label):
        return Role.WEIGHTS
    return Role.INPUTS if _BATCH.match(label) else Role.READ_ONLY


def _writes_part(value: memory.Value) -> bool:
    """True if the writer of a value updates a part of the buffer in place, by itself or in a fusion."""
    one = value.instruction
    if one is not None and one.opcode == "fusion" and one.called_computations:
        one = one.called_computations[0].root
        if value.index and one.opcode == "tuple" and value.index[0] < len(one.operands):
            one = one.operands[value.index[0]]
        while one.operands and one.opcode in _PASSING:
            one = one.operands[0]
    return one is not None and one.opcode in traits.UPDATES_ELEMENTS


def _is_gathered_from(value: memory.Value) -> bool:
    """True if a gather looks rows of a value up, by itself or in a fusion."""
    for use in value.uses:
        if use.instruction is None:
            continue
        if use.instruction.opcode == "fusion":
            body = use.instruction.called_computations
            readers = list(_readers(body[0].parameters[use.operand_number])) if body else []
        else:
            readers = [(use.instruction, use.operand_number)]
        if any(user.opcode == "gather" and number == 0 and _looks_rows_up(user) for user, number in readers):
            return True
    return False


def _looks_rows_up(gather: Instruction) -> bool:
    """True unless the slices are single elements, or as many as there are, as where a linear solve permutes rows."""
    table, result = gather.operands[0].shape, gather.shape
    size = math.prod(gather.attributes.get("slice_sizes", ()))
    if table is None or result is None or size <= 1:
        return False
    return result.element_count != table.element_count


def _readers(instruction: Instruction) -> Iterator[tuple[Instruction, int]]:
    """The readers of a fusion's parameter with the operand number, also behind views and conversions of it."""
    waiting, seen = [instruction], {instruction}
    while waiting:
        one = waiting.pop()
        for user in one.users:
            for number, operand in enumerate(user.operands):
                if operand is one:
                    yield user, number
            if user.opcode in _PASSING and user not in seen:
                seen.add(user)
                waiting.append(user)


def _layers(module: Module, rows: Iterable[usage.LiveArray]) -> tuple[Layer, ...]:
    """The scopes with most bytes, those of repeated layers as one."""
    found = scopes(module)
    wanted = {row.writer or row.name for row in rows}
    named = {one.name: one for one in module.instructions() if one.name in wanted}
    sizes: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        writer = named.get(row.writer or row.name)
        path = found.folded(found.of(writer)) if writer is not None else ()
        sizes["/".join(path) or TOP].append(row.bytes)
    ranked = sorted(sizes.items(), key=lambda pair: (-sum(pair[1]), pair[0]))[:_LAYERS]
    return tuple(Layer(scope, sum(mine), len(mine), max(mine)) for scope, mine in ranked)
