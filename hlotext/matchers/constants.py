"""Patterns of constants."""

from __future__ import annotations

from hlotext.ir.values.literal import Literal
from hlotext.matchers.numbers import Number, is_all, plain
from hlotext.matchers.pattern import Pattern, remembered


@remembered
def constant(value: Number | Literal | None = None, name: str | None = None) -> Pattern:
    """Returns a pattern for a constant, all of whose elements equal `value` if it is given (`m::Constant`).

    `True` matches booleans, `1` integers of any type, `1.0` floats. A `Literal` is compared bit by bit. `name` captures
    the constant.
    """
    pattern = Pattern(opcode="constant", capture=name)
    if value is None:
        return pattern
    if isinstance(value, Literal):
        return pattern.with_predicate(
            lambda i: i.literal == value, f"the value is {value.abbreviated_text()}"
        )
    number = plain(value)
    return pattern.with_predicate(lambda i: is_all(i.literal, number), f"all elements are {value}")


def constant_scalar(value: Number | None = None, name: str | None = None) -> Pattern:
    """Returns a pattern for a scalar constant, equal to `value` if it is given (`m::ConstantScalar`).

    Values are compared as in `constant`. `name` captures the constant.
    """
    return constant(value, name).with_rank(0)


def constant_effective_scalar(value: Number | None = None, name: str | None = None) -> Pattern:
    """Returns a pattern for a constant with a single element, of any rank (`m::ConstantEffectiveScalar`).

    If `value` is given, the element must equal it, compared as in `constant`. `name` captures the constant.
    """
    return constant(value, name).with_effective_scalar()


def splat(value: Number | None = None, name: str | None = None) -> Pattern:
    """Returns a pattern for a value with equal elements: a constant, or a broadcast of a scalar constant.

    If `value` is given, the elements must equal it, compared as in `constant`; otherwise a constant matches only if it is
    a scalar. `name` captures the constant or the broadcast.
    """
    scalar = constant_scalar(value)
    broadcast = Pattern(opcode="broadcast", operands=(scalar,), capture=name)
    return Pattern(
        alternatives=(broadcast, constant(value, name) if value is not None else constant_scalar(None, name))
    )
