"""Where values of an optimised module were before optimisation."""

from __future__ import annotations

from typing import TypeAlias, Union

import attrs

from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.ir.values.text import braced
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class OriginalArray(Value):
    """An array of the module before optimization (`OriginalArray`): `{"add.1" {0}}`."""

    instruction_name: str
    """XLA writes it without escapes."""
    shape_index: ShapeIndex = ()
    call_history: str = ""
    """The calls that lead to it, which some text of 2025 has; empty when absent."""

    def __str__(self) -> str:
        index = f" {braced(self.shape_index)}" if self.shape_index else ""
        history = f' "{self.call_history}"' if self.call_history else ""
        return f'{{"{self.instruction_name}"{index}{history}}}'


OriginalNode: TypeAlias = Union[OriginalArray, tuple["OriginalNode", ...], None]  # noqa: UP007 (it names itself)
"""One array, None if it has no counterpart, or a tuple of these."""


@attrs.frozen(repr=False)
class OriginalValue(Value):
    """`origin=` of an instruction (`OriginalValue`): a tree of the same structure as the shape: `{({"a"}, {"b" {0}})}`."""

    tree: OriginalNode = None
    is_synthetic_call: bool = False
    """True for `[synthetic_call]`: a call that the compiler made, which has no counterpart."""
    call_hierarchy: str | None = None
    """The calls that lead to it, in text from the autumn of 2026 on: `{{"a"},["f/g"]}`; None when absent."""

    def __str__(self) -> str:
        if self.is_synthetic_call:
            return "{[synthetic_call]}"
        # XLA writes it without escapes.
        calls = "" if self.call_hierarchy is None else f',["{self.call_hierarchy}"]'
        return f"{{{_node_text(self.tree)}{calls}}}"

    def leaves(self) -> tuple[OriginalArray | None, ...]:
        """Returns the leaves of the tree, left to right, with None for unknown arrays."""
        found: list[OriginalArray | None] = []
        stack = [self.tree]
        while stack:
            node = stack.pop()
            if isinstance(node, tuple):
                stack.extend(reversed(node))
            else:
                found.append(node)
        return tuple(found)


def _node_text(node: OriginalNode) -> str:
    if isinstance(node, tuple):
        return f"({', '.join(map(_node_text, node))})"
    return "{}" if node is None else str(node)
