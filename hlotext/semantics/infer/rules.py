"""The shape rules by name, as the opcode table names them."""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs

from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer.op import Op

RuleFunction = Callable[[Op], Shape]


class Open(enum.Enum):
    """Part of a result shape that operands and attributes do not determine."""

    NOTHING = "nothing"
    ELEMENT_TYPE = "the element type"
    DIMENSIONS = "the dimensions"
    CONTEXTS = "the elements with the transfer's state"
    DEVICES = "the group size, if the groups do not show it"
    PART = "one element of the tuple"
    ALL = "everything; the rule only checks"


@attrs.frozen
class ShapeRule:
    """Inference rule for the result shape of some opcodes."""

    name: str
    open: Open
    infer: RuleFunction
    """Function that returns the shape without layouts. Raises ShapeInferenceError and CannotInfer."""


RULES: dict[str, ShapeRule] = {}
"""Every rule; filled by the decorator when the modules of this package are imported."""


def rule(name: str, leaves_open: Open = Open.NOTHING) -> Callable[[RuleFunction], RuleFunction]:
    """Decorator that registers a shape rule under a name; `leaves_open` is the part that operands do not determine."""

    def register(function: RuleFunction) -> RuleFunction:
        if name in RULES:
            raise ValueError(f"duplicate shape rule {name}")
        RULES[name] = ShapeRule(name, leaves_open, function)
        return function

    return register
