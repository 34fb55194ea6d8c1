"""Reads of a loop's state by its body."""

from __future__ import annotations

from hlotext.analysis import Communication, invariant_instructions
from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.lint.helpers import (
    depends_on_device,
    is_product_call,
    pieces,
    results,
    size_of,
    slices_of,
    takers,
)
from hlotext.lint.moving import before_loop
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, elements_of, source, uses

_KEPT = frozenset({"bitcast", "convert", "copy", "reshape", "slice", "transpose", "opt-barrier"})
"""Opcodes behind which a part of an array is still that part."""
_MATRIX = 16
"""Minimum ratio of a matrix's size to a vector's."""
_HANDING_ON = _KEPT | ELEMENTWISE | {"constant", "broadcast", "get-tuple-element", "parameter", "tuple"}
_SEVERAL = 3
"""Dimensions that a stack of matrices has."""
_DEEPEST = 8
"""Loops inside one another that are looked out of."""
_SCALARS = frozenset({"broadcast", "constant"})
_MOST_OPERATIONS = 20
_DONES = frozenset({"copy-done", "copy-start", "async-done", "all-gather-done"})


def is_part_of_state(one: Communication, context: Context) -> bool:
    """True if a collective in a loop sends another slice of a loop-invariant array in each iteration.

    Such as the parameters of one layer out of those that `lax.scan` stacks: gathering them in each iteration saves
    memory (FSDP).
    """
    loop = one.loop
    if loop is None or not one.start.operands:
        return False
    fixed = invariant_instructions(loop)
    callers: list[Instruction] = []
    computation = one.computation
    while computation is not None and computation is not loop.attributes.get("body"):
        caller = context.graph.caller(computation)
        if caller is None or caller.opcode not in ("fusion", "async-start", "call") or caller in callers:
            return False
        callers.insert(0, caller)
        computation = caller.computation
    sizes = [size_of(operand.shape) for operand in one.start.operands]
    parts = [_is_part(Value(operand, tuple(callers)), fixed) for operand in one.start.operands]
    # Combined with something else that is sent meanwhile it is still a gather of parameters.
    return 2 * sum(size for size, is_part in zip(sizes, parts, strict=True) if is_part) > sum(sizes)


def is_given_back(one: Communication, context: Context) -> bool:
    """True if a reduce-scatter over the same groups is in the same iteration: sequence parallelism.

    Activations are gathered for a matmul whose result is summed and scattered again.
    """
    return any(
        _gives_back(other, one, context)
        and (other.fusion.computation if other.fusion is not None else other.computation) is one.computation
        and members(other.groups) == members(one.groups)
        for other in context.communications
    )


def _gives_back(other: Communication, one: Communication, context: Context) -> bool:
    """The TPU compiler writes a reduce-scatter as a fusion of an all-reduce and of the slice that is each device's own; so it
    writes that of gradients too, which has not the shape of what was gathered. The CPU compiler leaves both apart."""
    if other.kind == "all-reduce" and other.fusion is not None:
        return _sizes(other.fusion) in [_sizes(operand) for operand in one.start.operands]
    if other.kind == "all-reduce":
        devices = other.participants or 0
        return devices > 1 and any(keeps_its_part(value, devices, context) for value in results(other))
    return other.kind == "reduce-scatter"


def keeps_its_part(value: Instruction, devices: int, context: Context) -> bool:
    """True if each of `devices` devices uses only its own slice of an array."""
    slices = slices_of(value)
    if slices is None or value.shape is None or not value.shape.is_array:
        return False
    size, kept = (
        value.shape.element_count,
        {s.shape.element_count for s in slices if s.shape is not None and s.shape.is_array},
    )
    return (
        size % devices == 0
        and kept == {size // devices}
        and all(any(depends_on_device(place, context) for place in s.operands[1:]) for s in slices)
    )


def _sizes(value: Instruction) -> tuple[int, ...]:
    """The sizes of an array, without those of 1."""
    return tuple(size for size in value.shape.dimensions if size > 1) if value.shape is not None else ()


def is_paired(one: Communication) -> bool:
    """True if a collective in a loop sends loop state so that all pairs of elements can be computed.

    Such as moved particles, all of which every device needs with any sharding.
    """
    body = one.loop.attributes.get("body") if one.loop is not None else None
    if (
        one.loop is None
        or not isinstance(body, Computation)
        or one.computation is not body
        or body.root.opcode != "tuple"
    ):
        return False
    if not any(map(_is_repeated, results(one))):
        return False
    fixed = invariant_instructions(one.loop)
    kept = {source(Value(part), _KEPT | _DONES).instruction for part in body.root.operands}
    carried = [
        size_of(operand.shape)
        for operand in one.start.operands
        if (made := source(Value(operand), _KEPT | _DONES).instruction) not in fixed
        and (made in kept or _is_of_parameter(made))
    ]
    return 2 * sum(carried) > sum(size_of(operand.shape) for operand in one.start.operands)


def exchanges_for_experts(one: Communication, context: Context) -> bool:
    """True if an all-to-all in a loop brings tokens to the batched matmul with their experts' weights: expert
    parallelism.
    """
    return any(
        any(map(_is_batched_product, pieces(user)))
        and any(_is_weights(other, context) for other in user.operands if other is not value)
        for user, value in takers(results(one), _HANDING_ON)
    )


def _is_batched_product(instruction: Instruction) -> bool:
    if instruction.opcode == "dot":
        return bool(instruction.attributes.get("lhs_batch_dims"))
    return instruction.opcode == "custom-call" and is_product_call(instruction)


def _is_weights(value: Instruction, context: Context) -> bool:
    """True if a value is a part of an argument that is no matrix but several."""
    if value.shape is None or sum(size > 1 for size in value.shape.dimensions) < _SEVERAL:
        return False
    for _ in range(_DEEPEST):
        value = source(Value(value), _KEPT | _DONES | {"dynamic-slice"}).instruction
        before = before_loop(value, context) if value.opcode == "get-tuple-element" else None
        if before is None:
            break
        value = before
    return value.opcode == "parameter" and value.computation is context.module.entry


def is_of_matrix(result: Instruction) -> bool:
    """True if a value is a vector that is only multiplied with much larger arrays, so that each device needs all of it."""
    if result.shape is None or sum(size > 1 for size in result.shape.dimensions) != 1:
        return False
    size = size_of(result.shape)
    found = [user for user, _ in uses(result, _KEPT | {"broadcast"})]
    return bool(found) and all(
        any(size_of(operand.shape) >= _MATRIX * size for operand in user.operands) for user in found
    )


def _is_repeated(result: Instruction) -> bool:
    """True if it is broadcast along one more dimension, as all pairs need it."""
    return any(
        user.opcode == "broadcast" and elements_of(user.shape) > elements_of(result.shape)
        for user, _ in uses(result, _KEPT)
    )


def _is_of_parameter(instruction: Instruction) -> bool:
    return instruction.opcode == "get-tuple-element" and instruction.operands[0].opcode == "parameter"


@weighted_cache(1024)
def members(groups: ReplicaGroups | None) -> str:
    """The groups in one form: the compiler writes the same ones as mesh axes and as a list in one module."""
    try:
        return str(groups.full_list()) if groups is not None else ""
    except ValueError:  # axes that the mesh lacks
        return str(groups)


def _is_part(value: Value, fixed: frozenset[Instruction]) -> bool:
    found = source(value, _KEPT | _DONES)
    for _ in range(_MOST_OPERATIONS):
        # Scaled and rounded to a narrower type before it is sent.
        if found.instruction.opcode not in ELEMENTWISE:
            break
        arrays = [one for one in found.operands() if source(one, _KEPT).instruction.opcode not in _SCALARS]
        if len(arrays) != 1:
            break
        found = source(arrays[0], _KEPT | _DONES)
    if found.instruction.opcode == "async-start":
        inner = found.instruction.async_wrapped_instruction
        found = Value(inner) if inner is not None else found
    if found.instruction.opcode != "dynamic-slice":
        # A gather in two steps, over two axes of the mesh, or one whose operand was sliced and gathered before.
        if found.instruction.opcode in ("all-gather", "all-gather-start") and found.instruction.operands:
            return _is_part(found.operands()[0], fixed)
        return False
    whole = source(found.operands()[0], _KEPT)
    return whole.instruction in fixed or (
        whole.instruction.opcode == "get-tuple-element" and whole.instruction in fixed
    )
