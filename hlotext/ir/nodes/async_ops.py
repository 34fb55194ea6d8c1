"""Starts, updates and dones of asynchronous operations, and how they pair up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from hlotext.ir.tables import traits

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction

ROLES = traits.ASYNC_ROLES
"""Every opcode that is part of an asynchronous operation, and which part."""

CARRIERS = frozenset({"copy", "get-tuple-element", "opt-barrier", "tuple", "while"})
"""Opcodes through which the state passes between an async-start and its update or done (`TraceAsyncChain`)."""

FINISHERS = {
    "async-start": ("async-update", "async-done", *sorted(CARRIERS)),
    "async-update": ("async-update", "async-done", *sorted(CARRIERS)),
    **{start: (done,) for start, done in traits.NATIVE_PAIRS.items()},
    "recv": ("recv-done", "tuple"),
    "send": ("send-done", "tuple"),
}
"""Opcodes that may use each start (`VerifySingleUser`); pipelined loops carry sends and receives in tuples."""

STARTS = {
    **dict.fromkeys(
        ("async-update", "async-done"),
        ("async-start", "async-update", *sorted(CARRIERS - {"tuple"}), "parameter"),
    ),
    **{done: (start,) for start, done in traits.NATIVE_PAIRS.items()},
    "recv-done": ("recv", "get-tuple-element"),
    "send-done": ("send", "get-tuple-element"),
}
"""Opcodes that may be the operand of each update or done (`VerifySingleOperand`)."""

_MANUAL = frozenset({"GlobalToLocalShape", "LocalToGlobalShape"})
_CARRYING_TARGETS = frozenset({"Sharding", *_MANUAL, *(f"xla.sdy.{target}" for target in _MANUAL)})
"""Custom calls through which it passes."""


def is_carrier(instruction: Instruction) -> bool:
    """Returns True if the state of an asynchronous operation may pass through an instruction."""
    return instruction._head.opcode in CARRIERS or (
        instruction._head.opcode == "custom-call"
        and instruction._attributes.get("custom_call_target") in _CARRYING_TARGETS
    )


Callers = Callable[["Computation"], Iterable["Instruction"]]
"""Returns the instructions that call a computation."""


def async_starts(instruction: Instruction, callers: Callers | None = None) -> list[Instruction]:
    """Returns the async-starts whose state an async-update or async-done receives, as far as its operands show.

    Usually there is one, its first operand. The state may pass through tuples, copies and loops; a loop-carried state
    has the starts before the loop and those in its body. Parameters of loop bodies are followed only if `callers` is
    given.
    """
    found: dict[Instruction, None] = {}
    seen: set[tuple[Instruction, tuple[int, ...]]] = set()
    stack: list[tuple[Instruction, tuple[int, ...]]] = [(o, ()) for o in instruction._operands[:1]]
    while stack and len(seen) < MAX_TRACED:
        place, index = stack.pop()
        if (place, index) in seen:
            continue
        seen.add((place, index))
        opcode, operands = place._head.opcode, place._operands
        if opcode == "async-start":
            if not index:
                found[place] = None
        elif opcode == "get-tuple-element":
            element = place._attributes.get("index")
            if isinstance(element, int):
                stack += [(operand, (element, *index)) for operand in operands[:1]]
        elif opcode == "tuple":
            if index and 0 <= index[0] < len(operands):
                stack.append((operands[index[0]], index[1:]))
        elif opcode == "parameter":
            if callers is not None and place._computation is not None:
                stack += _around(callers(place._computation), index)
        elif opcode == "async-update" or is_carrier(place):
            stack += [(operand, index) for operand in operands[:1]]
            if opcode == "while":
                stack += _results(place, index)
    return list(found)


MAX_TRACED = 100_000
"""Instructions through which the state of one asynchronous operation is followed."""


def _results(loop: Instruction, index: tuple[int, ...]) -> list[tuple[Instruction, tuple[int, ...]]]:
    body = loop._attributes.get("body")
    return [(body.root, index)] if body is not None and getattr(body, "_instructions", None) else []


def _around(
    callers: Iterable[Instruction], index: tuple[int, ...]
) -> list[tuple[Instruction, tuple[int, ...]]]:
    """Values of the parameter of a loop's body or condition."""
    found: list[tuple[Instruction, tuple[int, ...]]] = []
    for caller in callers:
        if caller._head.opcode == "while":
            found += [(operand, index) for operand in caller._operands[:1]]
            found += _results(caller, index)
    return found


ON_BOTH = traits.PROVENANCE | traits.ANNOTATIONS
"""Attributes that the short spelling of an asynchronous operation applies to the start and, copied, to the wrapped
operation."""

COLLECTIVES_GROUP = "_collectives_group"
"""The frontend attribute of an async-start whose computation is a group of collectives."""


def is_async_body(computation: Computation) -> bool:
    """Returns True if an async-start calls the computation."""
    return any(caller._head.opcode == "async-start" for caller in computation.calls)


def is_single_operation(computation: Computation) -> bool:
    """Returns True if an async-start calls the computation, so that it may contain only one operation.

    Starts marked as groups of collectives do not count.
    """
    starts = [caller for caller in computation.calls if caller._head.opcode == "async-start"]
    return any(COLLECTIVES_GROUP not in start.frontend_attributes for start in starts)


def extra_operation(
    body: Computation, instructions: Sequence[Instruction], root: Instruction
) -> Instruction | None:
    """Returns an instruction beyond the single operation allowed in the body of an async-start, or None if there is
    none.

    Corresponds to XLA's `VerifyAsyncComputation`. Forwarding operations and control dependencies do not count.
    Computations of other threads may contain any number of operations.
    """
    others = [i for i in instructions if i._head.opcode != "parameter" and i is not root]
    if (
        not others
        or body.execution_thread != "main"
        or all(i._head.opcode == "get-tuple-element" for i in others)
    ):
        return None
    is_group = all(i._head.opcode in _TRANSFERS for i in instructions) and any(
        i._head.opcode in ROLES for i in instructions
    )
    return None if is_group else others[0]


_TRANSFERS = traits.TRANSFERS | traits.TUPLES | {"parameter"}
