"""What a round of a loop takes from the loop's state."""

from __future__ import annotations

from hlotext.analysis import Communication, invariant_instructions
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, source

_KEPT = frozenset({"bitcast", "convert", "copy", "reshape", "slice", "transpose", "opt-barrier"})
"""Opcodes behind which a part of an array is still that part."""
_SCALARS = frozenset({"broadcast", "constant"})
_MOST_OPERATIONS = 20
_DONES = frozenset({"copy-done", "copy-start", "async-done", "all-gather-done"})


def is_part_of_state(one: Communication, context: Context) -> bool:
    """Whether a collective in a loop sends, in each round, another slice of an array that does not change.

    So are the parameters of one layer, of all that `lax.scan` has stacked: gathering them in each round instead of before
    the loop is what keeps memory small (FSDP).
    """
    loop = one.loop
    if loop is None or not one.start.operands:
        return False
    fixed = invariant_instructions(loop)
    callers: list[Instruction] = []
    computation = one.computation
    while computation is not None and computation is not loop.attributes.get("body"):
        caller = context.graph.caller(computation)
        if caller is None or caller.opcode not in ("fusion", "async-start", "call"):
            return False
        callers.insert(0, caller)
        computation = caller.computation
    sizes = [size_of(operand.shape) for operand in one.start.operands]
    parts = [_is_part(Value(operand, tuple(callers)), fixed) for operand in one.start.operands]
    # Combined with something else that is sent meanwhile it is still a gather of parameters.
    return 2 * sum(size for size, is_part in zip(sizes, parts, strict=True) if is_part) > sum(sizes)


def is_given_back(one: Communication, context: Context) -> bool:
    """Whether a reduce-scatter over the same groups stands in the same round: activations that are gathered for a product,
    whose result is summed up and spread again (sequence parallelism)."""
    return any(
        other.kind == "reduce-scatter"
        and other.computation is one.computation
        and _members(other.groups) == _members(one.groups)
        for other in context.communications
    )


def _members(groups: ReplicaGroups | None) -> str:
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
