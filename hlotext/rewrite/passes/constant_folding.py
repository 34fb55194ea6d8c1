"""Constants computed from constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import TypeKind
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.rewriter import remove_dead_operands

Array = np.ndarray[Any, Any]


@attrs.frozen
class ConstantFolding(Pass):
    """Replaces operations on small constants by their value (`HloConstantFolding`), as far as numpy gives XLA's bits.

    That is what moves or selects elements, and arithmetic of integers and truth values; of floats only what IEEE rounds
    exactly (sums, products, quotients, negation, comparisons) in f32 and f64. Results that would be larger than all their
    operands together and than `max_elements` stay.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { a = s32[2] constant({1, 2})  b = s32[2] constant({3, 4})  ROOT r = s32[2] multiply(a, b) }")
    >>> ConstantFolding().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root)
    ROOT %r.1 = s32[2] constant({3, 8})
    """

    name: ClassVar[str] = "constant-folding"
    summary: ClassVar[str] = "Computes what depends on small constants only."

    max_elements: int = 1024
    """Elements of the largest result."""

    def run(self, module: Module) -> PassResult:
        count = 0
        for computation in nonfusion_computations(module):
            for instruction in computation.instructions:
                if instruction.computation is computation and self._fold(instruction):
                    count += 1
        return PassResult.of({"instructions": count})

    def _fold(self, i: Instruction) -> bool:
        function = _FUNCTIONS.get(i.opcode)
        shape = i.shape
        if function is None or shape is None or not shape.is_array or not shape.is_static or not i.operands:
            return False
        if shape.element_count > self.max_elements or i.control_predecessors or i.control_successors:
            return False
        arrays = [o.literal.known_array if o.literal is not None else None for o in i.operands]
        if i.opcode not in _MOVING and not all(_is_exact(o) for o in (i, *i.operands)):
            return False
        known = [array for array in arrays if array is not None]
        if len(known) < len(arrays):
            return False
        with np.errstate(all="ignore"):
            value = function(i, known)
        if value is None or value.shape != shape.dimensions:
            return False
        literal = Literal.from_array(
            np.ascontiguousarray(value).astype(shape.element_type.dtype).reshape(value.shape), shape
        )
        computation = i.computation
        assert computation is not None and computation.module is not None  # noqa: PT018 - narrows both for mypy
        new = Instruction(
            computation.module.instruction_names.unique(i.name), "constant", shape, (),
            {k: v for k, v in i._attributes.items() if k in ("metadata", "sharding")}, literal,
        )  # fmt: skip
        operands = i.operands
        computation.add(new, i, typed=False)
        i.replace_with(new)
        remove_dead_operands(operands)
        return True


def _is_exact(i: Instruction) -> bool:
    """Whether numpy computes this type as XLA does: whole integers, truth values, f32 and f64."""
    type_ = i.shape.element_type if i.shape is not None else None
    if type_ is None:
        return False
    if type_.kind in (TypeKind.SIGNED, TypeKind.UNSIGNED):
        return type_.bits >= 8
    return type_.kind is TypeKind.PREDICATE or type_.name in ("f32", "f64")


def _compare(i: Instruction, a: list[Array]) -> Array | None:
    if str(i.attributes.get("type", "")) == "TOTALORDER":
        return None
    functions = {
        "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    }  # fmt: skip
    return functions[str(i.attributes["direction"])](a[0], a[1])


def _broadcast(i: Instruction, a: list[Array]) -> Array:
    assert i.shape is not None
    sizes = [1] * i.shape.rank
    for source, target in enumerate(i.attributes.get("dimensions", ())):
        sizes[target] = a[0].shape[source]
    return np.broadcast_to(a[0].reshape(sizes), i.shape.dimensions)


def _slice(i: Instruction, a: list[Array]) -> Array:
    ranges = i.attributes["slice"].dimensions
    part: Array = a[0][tuple(slice(r.start, r.limit, r.stride) for r in ranges)]
    return part


def _convert(i: Instruction, a: list[Array]) -> Array | None:
    source, target = (x.shape.element_type for x in (i.operands[0], i) if x.shape is not None)
    if source.is_floating and not target.is_floating:
        return None  # what is out of range differs
    return a[0].astype(target.dtype)


def _logic(
    whole: Callable[..., Array], truth: Callable[..., Array]
) -> Callable[[Instruction, list[Array]], Array]:
    """A function of integers and its counterpart of truth values."""
    return lambda _, a: truth(*a) if a[0].dtype == bool else whole(*a)


_Function = Callable[[Instruction, list[Array]], "Array | None"]
_FUNCTIONS: dict[str, _Function] = {
    "add": _logic(np.add, np.logical_or),
    "subtract": lambda _, a: np.subtract(*a) if a[0].dtype != bool else None,
    "multiply": _logic(np.multiply, np.logical_and),
    "divide": lambda _, a: np.divide(*a) if a[0].dtype.kind == "f" else None,
    "negate": lambda _, a: np.negative(a[0]),
    "abs": lambda _, a: np.abs(a[0]),
    "and": lambda _, a: np.bitwise_and(*a),
    "or": lambda _, a: np.bitwise_or(*a),
    "xor": lambda _, a: np.bitwise_xor(*a),
    "not": _logic(np.invert, np.logical_not),
    "maximum": lambda _, a: np.maximum(*a),
    "minimum": lambda _, a: np.minimum(*a),
    "compare": _compare,
    "select": lambda _, a: np.where(a[0], a[1], a[2]) if a[0].shape == a[1].shape else None,
    "convert": _convert,
    "broadcast": _broadcast,
    "reshape": lambda i, a: a[0].reshape(i.shape.dimensions) if i.shape is not None else None,
    "transpose": lambda i, a: a[0].transpose(i.attributes["dimensions"]),
    "slice": _slice,
    "concatenate": lambda i, a: np.concatenate(a, i.attributes["dimensions"][0]),
    "reverse": lambda i, a: np.flip(a[0], i.attributes["dimensions"]),
}

_MOVING = frozenset({"broadcast", "reshape", "transpose", "slice", "concatenate", "reverse"})
"""What works for elements of every type."""
