"""Scheduled operations of a TPU program, which has no thunks, with what the compiler's backend_config says of each.

`after_codegen` texts have most: estimated cycles, the windows in which an operation traverses its arrays, the memory of its
code. Texts before code generation have a part of it; absent fields are None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.tables import traits
from hlotext.thunks.emission import config, part

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module

_SILENT = traits.IS_FREE - {"domain"}
MAX_DEPTH = 200
"""Levels of loops, branches and calls that are followed."""


@attrs.frozen(kw_only=True)
class Operation:
    """An operation of the program, in execution order."""

    instruction: Instruction
    depth: int
    """Loops, branches and calls around it."""
    label: str | None
    """Of the first operation of a nested sequence: "condition", "body", "branch_0" ... or "called"."""
    cycles: int | None
    """The compiler's estimate for one execution, in core cycles; None if the text has none."""
    iterations: tuple[int, ...] | None
    """Iterations over its windows, for each dimension."""
    scoped_bytes: dict[int, int]
    """Bytes that its own code takes, by memory space: used ones where the text has them, else reserved ones."""
    emitter: str | None
    """Algorithm chosen by the compiler, for convolutions and collectives."""


def operations(module: Module) -> tuple[Operation, ...]:
    """Returns the operations of a scheduled TPU module in execution order, those of called computations included.

    A computation that calls itself is entered once per chain of calls.
    """
    if not module.computations:
        return ()
    found: list[Operation] = []
    stack: list[tuple[int, str | None, Iterator[Instruction], Computation]] = []
    entered: set[Computation] = set()

    def enter(computation: Computation, depth: int, label: str | None) -> None:
        if computation not in entered and depth <= MAX_DEPTH:
            entered.add(computation)
            stack.append((depth, label, iter(computation.instructions), computation))

    enter(module.entry, 0, None)
    while stack:
        depth, label, instructions, computation = stack.pop()
        for instruction in instructions:
            if instruction.opcode in _SILENT:
                continue
            found.append(_operation(instruction, depth, label))
            label = None
            inner = _called(instruction)
            if inner:
                stack.append((depth, None, instructions, computation))
                for name, callee in reversed(inner):
                    enter(callee, depth + 1, name)
                break
        else:
            entered.discard(computation)
    return tuple(found)


def _called(instruction: Instruction) -> list[tuple[str, Computation]]:
    if instruction.opcode == "while":
        attributes: Mapping[str, Any] = instruction.attributes
        return [(name, attributes[name]) for name in ("condition", "body")]
    if instruction.opcode == "conditional":
        return [(f"branch_{n}", callee) for n, callee in enumerate(instruction.called_computations)]
    if instruction.opcode == "call":
        return [("called", callee) for callee in instruction.called_computations]
    return []


def _operation(instruction: Instruction, depth: int, label: str | None) -> Operation:
    settings = config(instruction)
    window = part(settings, "window_config")
    bounds = window.get("iteration_bounds")
    scoped = settings.get("used_scoped_memory_configs") or settings.get("scoped_memory_configs")
    algorithms = ("convolution_algorithm_config", "collective_algorithm_config")
    emitters = [part(settings, name).get("emitter") for name in algorithms]
    return Operation(
        instruction=instruction,
        depth=depth,
        label=label,
        cycles=_number(window.get("estimated_cycles")),
        iterations=_numbers(bounds),
        scoped_bytes=_scoped(scoped),
        emitter=next((str(emitter) for emitter in emitters if emitter), None),
    )


def _number(value: Any) -> int | None:
    """Protobuf's JSON writes 64-bit integers as text."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 20 else None


def _numbers(values: Any) -> tuple[int, ...] | None:
    if not isinstance(values, list) or not values:
        return None
    found = [_number(value) for value in values]
    return tuple(n for n in found if n is not None) if None not in found else None


def _scoped(configs: Any) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in configs if isinstance(configs, list) else ():
        space, size = (
            (_number(one.get(name)) for name in ("memory_space", "size"))
            if isinstance(one, dict)
            else (None, None)
        )
        if space is not None and size:
            found[space] = found.get(space, 0) + size
    return found
