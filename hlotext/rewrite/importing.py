"""Computations brought over from another module."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.metadata import Metadata
from hlotext.rewrite.kit.builder import Builder


def import_computation(
    module: Module, computation: Computation, name: str | None = None, before: Computation | None = None
) -> Computation:
    """Copies a computation with its callees from another module, inserting it before the entry or another computation.

    Names are made unique. References to the source module are translated: stack-frame ids become file and line, and
    channels get unused ids, consistently. The copy has no callers yet, and the source module is not modified.

    Args:
        module: The module to copy into.
        computation: The computation of another module.
        name: Requested name; None keeps the original's.
        before: Computation to insert before; None inserts before the entry.

    Returns:
        The copy of `computation`.

    Raises:
        EditError: The computation is not in a module.

    >>> import hlotext as hlo
    >>> library = hlo.parse("gelu { p = f32[] parameter(0)  ROOT t = f32[] tanh(p) }  ENTRY e { x = f32[] parameter(0) }")
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  ROOT t = f32[] negate(x) }")
    >>> callee = import_computation(m, library.find("gelu"), before=m.entry)
    >>> from hlotext.rewrite import Builder
    >>> m.entry.root.replace_with(Builder.before(m.entry.root).call(m.entry["x"], to_apply=callee))
    >>> print(m.entry.root)
    ROOT call = f32[] call(x), to_apply=gelu
    """
    expect_module(module)
    if computation.module is None:
        raise EditError(f"{computation.name} is not in a module")
    copies = _Copies(module)
    with module.transaction():
        place = before
        if place is None and len(module.computations):
            place = module.entry  # callers, the entry last of all, stand behind what they call
        for callee in post_order([computation]):
            copies.add(callee, name if callee is computation else None, place)
        copied: Computation = copies.nodes[computation]
    return copied


class _Copies:
    """Copies of nodes in another module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.nodes: dict[Any, Any] = {}
        self.channels: dict[int, int] = {}

    @functools.cached_property
    def free_channels(self) -> Iterator[int]:
        """Channels that are free in the module; most computations that are copied need none."""
        used = (i.attributes.get("channel_id") for i in self.module.instructions())
        return itertools.count(1 + max((number for number in used if isinstance(number, int)), default=0))

    def add(self, computation: Computation, name: str | None, before: Computation | None) -> None:
        builder = Builder.new(self.module, name or computation.name or "inline_body", before=before)
        copy = builder.computation
        if copy.execution_thread != computation.execution_thread:
            copy.execution_thread = computation.execution_thread
        self.nodes[computation] = copy
        for old in computation:
            operands = tuple(self.nodes[operand] for operand in old.operands)
            attributes = {key: self.value(old, key, value) for key, value in old.attributes.items()}
            argument = old.literal if old.literal is not None else old.parameter_number
            unique = self.module.instruction_names.unique(old.name)
            new = Instruction(unique, old.opcode, old.shape, operands, attributes, argument)
            self.nodes[old] = copy.add(new, typed=False)
        builder.finish(self.nodes[computation.root])

    def value(self, instruction: Instruction, name: str, value: Any) -> Any:
        """An attribute's value as the other module has it."""
        if isinstance(value, Computation | Instruction):
            return self.nodes[value]
        if type(value) is tuple and any(isinstance(item, Computation | Instruction) for item in value):
            return tuple(self.nodes[item] for item in value)
        if name == "channel_id" and isinstance(value, int):
            if value not in self.channels:
                self.channels[value] = next(self.free_channels)
            return self.channels[value]
        if isinstance(value, Metadata) and value.stack_frame_id:
            frame = instruction.innermost_frame
            return value.with_frame(frame) if frame is not None else value
        return value
