"""Values seen through what only passes them on: fusions, calls, tuples, parameters of what is called at one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hlotext.dumps.identity.states import Op, State

Context: TypeAlias = "tuple[Op, Context] | None"
"""The fusions and calls that were entered on the way, the innermost first."""

INLINE = frozenset({"fusion", "call"})
"""Opcodes whose result is that of the one computation that they run once."""
MOVES = frozenset(
    {
        "reshape", "transpose", "copy", "convert", "bitcast", "slice", "broadcast", "get-tuple-element",
        "bitcast-convert", "reduce-precision", "opt-barrier", "copy-start", "copy-done", "concatenate", "pad",
    }
)  # fmt: skip
"""Opcodes that passes insert between an operation and its user."""
PARTITIONING = MOVES | frozenset(
    {
        "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "dynamic-slice",
        "dynamic-update-slice", "pad", "select", "concatenate", "collective-broadcast", "all-gather-done", "all-reduce-done",
        "collective-permute-done",
    }
)  # fmt: skip
"""Opcodes that partitioning inserts there."""
ANNOTATIONS = frozenset(
    {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "X64SplitLow", "X64SplitHigh", "X64Combine"}
)
"""Custom calls that only say something of their operand."""
_HOPS = 24


def behind(state: State, op: Op, context: Context) -> tuple[Op, Context] | None:
    """Returns the origin of a forwarded value, or None if the operation computes its value."""
    opcode = op.opcode
    if opcode in INLINE and op.callees:
        part = state.parts.get(op.callees[0])
        return None if part is None or part.root is None else (part.root, (op, context))
    if opcode == "parameter":
        part = state.home.get(op.name)
        if part is None:
            return None
        if context is not None and part.name in context[0].callees:
            caller, above = context
        else:
            callers = state.callers(part.name)
            if len(callers) != 1 or callers[0].opcode not in INLINE:
                return None
            caller, above = callers[0], None
        if 0 <= op.number < len(caller.operands):
            found = state.ops.get(caller.operands[op.number])
            return None if found is None else (found, above)
        return None
    if opcode == "get-tuple-element" and op.operands and op.number >= 0:
        return _element(state, op, context)
    return None


def _element(state: State, op: Op, context: Context) -> tuple[Op, Context] | None:
    """Element of a tuple, if its construction is visible."""
    indices = [op.number]
    inner = state.ops.get(op.operands[0])
    for _ in range(_HOPS):
        if inner is None:
            return None
        if inner.opcode == "tuple":
            index = indices.pop()
            if index >= len(inner.operands):
                return None
            found = state.ops.get(inner.operands[index])
            if found is None:
                return None
            if not indices:
                return found, context
            inner = found
        elif inner.opcode == "get-tuple-element" and inner.operands:
            indices.append(inner.number)
            inner = state.ops.get(inner.operands[0])
        else:
            following = behind(state, inner, context)
            if following is None:
                return None
            inner, context = following
    return None


def seen_through(state: State, op: Op, context: Context) -> Iterator[tuple[Op, Context]]:
    """Yields an operation, then the chain of values that it forwards."""
    yield op, context
    for _ in range(_HOPS):
        following = behind(state, op, context)
        if following is None:
            return
        op, context = following
        yield op, context


def moved_through(
    state: State, op: Op, context: Context, opcodes: frozenset[str], most: int
) -> Iterator[tuple[Op, Context, int]]:
    """Yields an operation and its sources through data movement, with the number of operations in between.

    Every operand is followed.
    """
    pending: list[tuple[Op, Context, int]] = [(op, context, 0)]
    seen: set[str] = set()
    while pending and len(seen) < _HOPS * 4:
        op, context, depth = pending.pop(0)
        if op.name in seen:
            continue
        seen.add(op.name)
        yield op, context, depth
        following = behind(state, op, context)
        if following is not None:
            pending.insert(0, (*following, depth))
            continue
        if depth < most and (op.opcode in opcodes or _annotates(op)):
            for name in op.operands[:4]:
                inner = state.ops.get(name)
                if inner is not None:
                    pending.append((inner, context, depth + 1))


def _annotates(op: Op) -> bool:
    if op.opcode != "custom-call":
        return False
    return any(f'"{target}"' in op.attributes for target in ANNOTATIONS) or '"xla.sdy.' in op.attributes
