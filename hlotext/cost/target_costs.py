"""Costs of custom calls by a table of one's own: targets, and formulas over the sizes of operands and results."""

from __future__ import annotations

import ast
import fnmatch
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from hlotext.cost.op_cost import CannotCountError, OpCost
from hlotext.cost.sizes import elements
from hlotext.ir import toml
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout import host_shape_size

_LONGEST = 1_000
_DEEPEST = 50
_MOST = 10**30
_FIGURES = ("flops", "transcendentals", "bytes")
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "log2": math.log2,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
_SIZES = ("bytes", "elements")
_ARRAYS = ("operands", "results")


@attrs.frozen
class Formula:
    """A cost expression, such as `2 * operands[0][0] * elements(results[0])`.

    `operands[N]` and `results[N]` are arrays, `operands[N][D]` is the size of a dimension, and `elements(...)` and
    `bytes(...)` give the size of an array. Numbers, `+ - * / // %`, `min`, `max`, `ceil`, `log2` and `sqrt` are
    supported.
    """

    text: str
    _tree: ast.expr = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, value: object) -> Formula:
        """Creates a formula from text or a number. Raises ValueError if it is invalid."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"a cost must be a number or a formula, not {value!r}")
        text = str(value)
        if len(text) > _LONGEST:
            raise ValueError(f"a formula has at most {_LONGEST:,} characters")
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueError(f"{text!r} is not a formula") from None
        _check(tree, text, _DEEPEST)
        return cls(text, tree)

    def value(self, instruction: Instruction) -> float:
        """Evaluates the formula for a custom call.

        Raises CannotCountError if the formula refers to a missing operand or result, cannot be evaluated (as for a
        division by zero), or is negative or too large.
        """
        try:
            found = float(_value(self._tree, _arrays(instruction)))
        except IndexError as error:
            raise CannotCountError(f"formula {self.text!r} refers to {error}") from None
        except (ArithmeticError, TypeError, ValueError):
            raise CannotCountError(f"formula {self.text!r} cannot be evaluated for it") from None
        if not 0 <= found <= _MOST:
            raise CannotCountError(f"formula {self.text!r} evaluates to {found:g}")
        return found


@attrs.frozen
class TargetCost:
    """The cost of one call of a custom-call target."""

    flops: Formula
    transcendentals: Formula
    bytes: Formula | None = None
    """Bytes read and written, or None for the bytes of operands and results."""


@attrs.frozen
class TargetCosts:
    """A table of costs by custom-call target, which overrides hlotext's built-in costs."""

    rows: tuple[tuple[str, TargetCost], ...]
    """Target patterns (`*` matches anything) with their costs; the first match applies."""

    def of(self, target: str) -> TargetCost | None:
        """Returns the cost of a target, or None if the table has no row for it."""
        return next((cost for name, cost in self.rows if fnmatch.fnmatchcase(target, name)), None)

    def work(self, instruction: Instruction, work: OpCost) -> OpCost | None:
        """Returns the cost of a custom call, `instruction`, or None if the table has no row for its target.

        `work` supplies the values that the row lacks: the cost of a call that reads its operands and writes its
        results. Raises CannotCountError if a formula cannot be evaluated for the call.
        """
        cost = self.of(str(instruction.attributes.get("custom_call_target", "")))
        if cost is None:
            return None
        found = work._replace(
            flops=round(cost.flops.value(instruction)),
            transcendentals=round(cost.transcendentals.value(instruction)),
            is_unknown=False,
        )
        if cost.bytes is None:
            return found
        return found._replace(written=(cost.bytes.value(instruction),), read=())


def target_costs(table: Mapping[str, object]) -> TargetCosts:
    """Creates a table of costs from a mapping: `{"my_kernel": {"flops": "2 * elements(results[0])"}}`.

    The keys are `flops`, `transcendentals` and `bytes`. Missing values are 0, except that `bytes` defaults to the bytes
    of operands and results. Raises ValueError, naming the target, for an invalid value.
    """
    rows = []
    for target, row in table.items():
        if not isinstance(row, Mapping):
            raise ValueError(f"{target}: a target has costs ({', '.join(_FIGURES)}), not {row!r}")
        wrong = [name for name in row if name not in _FIGURES]
        if wrong:
            raise ValueError(f"{target}: {wrong[0]} is not a cost; known: {', '.join(_FIGURES)}")
        try:
            formulas = {name: Formula.of(value) for name, value in row.items()}
        except ValueError as error:
            raise ValueError(f"{target}: {error}") from None
        zero = Formula.of(0)
        cost = TargetCost(
            formulas.get("flops", zero), formulas.get("transcendentals", zero), formulas.get("bytes")
        )
        rows.append((target, cost))
    return TargetCosts(tuple(rows))


def read_costs(text: str) -> TargetCosts:
    """Parses a table of costs from TOML, with one section per target.

    For example `["my_kernel"]` with `flops = "2 * elements(results[0])"`. Raises ValueError if the table is invalid.
    """
    try:
        table = toml.loads(text)
    except toml.TomlError as error:
        raise ValueError(f"it is not valid TOML: {error}") from None
    return target_costs(table)


def _arrays(instruction: Instruction) -> Mapping[str, tuple[Shape, ...]]:
    shape = instruction.shape
    return {
        "operands": tuple(
            leaf
            for operand in instruction.operands
            if operand.shape is not None
            for leaf in _leaves(operand.shape)
        ),
        "results": _leaves(shape) if shape is not None else (),
    }


def _leaves(shape: Shape) -> tuple[Shape, ...]:
    return tuple(leaf for _, leaf in shape.leaves() if leaf.is_array)


def _check(node: ast.expr, text: str, depth: int) -> None:
    """Raises ValueError for what no formula has."""
    if not depth:
        raise ValueError(f"a formula is at most {_DEEPEST} operations deep")
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _check(operand, text, depth - 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            _check(left, text, depth - 1)
            return _check(right, text, depth - 1)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in _SIZES:
            if _is_array(argument):
                return None
            raise ValueError(f"{name}() takes operands[N] or results[N] in {text!r}")
        case ast.Call(func=ast.Name(id=name), args=[_, *_], keywords=[]) if name in _FUNCTIONS:
            for argument in node.args:
                _check(argument, text, depth - 1)
            return None
        case ast.Subscript(value=array) if _is_array(array) and _number(node.slice) is not None:
            return None
    part = ast.get_source_segment(text, node) or text
    raise ValueError(
        f"{part!r} is not allowed in a formula; allowed are numbers, operands[N][D], results[N][D], elements(operands[N]), "
        f"bytes(results[N]), + - * / // %, {', '.join(_FUNCTIONS)}"
    )


def _is_array(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in _ARRAYS
        and _number(node.slice) is not None
    )


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
    return None


def _array(node: ast.expr, arrays: Mapping[str, tuple[Shape, ...]]) -> Shape:
    assert isinstance(node, ast.Subscript)
    assert isinstance(node.value, ast.Name)
    number = _number(node.slice)
    assert number is not None
    listed = arrays[node.value.id]
    if not -len(listed) <= number < len(listed):
        raise IndexError(f"{node.value.id}[{number}], and there are {len(listed)}")
    return listed[number]


def _value(node: ast.expr, arrays: Mapping[str, tuple[Shape, ...]]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(operand=operand):
            return -_value(operand, arrays)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, arrays), _value(right, arrays))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            if name in _SIZES:
                return _size(_array(arguments[0], arrays), name)
            return _FUNCTIONS[name](*(_value(argument, arrays) for argument in arguments))
        case ast.Subscript(value=array, slice=slice_):
            dimensions = _array(array, arrays).dimensions
            number = _number(slice_)
            assert number is not None
            if not -len(dimensions) <= number < len(dimensions):
                raise IndexError(f"dimension {number} of an array that has {len(dimensions)}")
            return dimensions[number]
    raise AssertionError(node)  # `_check` lets nothing else through


def _size(shape: Shape, name: str) -> int:
    return elements(shape) if name == "elements" else host_shape_size(shape)
