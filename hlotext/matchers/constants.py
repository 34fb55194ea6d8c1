"""Patterns of constants."""

from __future__ import annotations

from hlotext.ir.values.literal import Literal
from hlotext.matchers.numbers import Number, is_all, plain
from hlotext.matchers.pattern import Pattern, remembered


@remembered
def constant(value: Number | Literal | None = None, name: str | None = None) -> Pattern:
    """Matches a constant. If a value is given, all elements must equal it in value and type (`m::Constant`).

    `True` matches booleans, `1` integers of any type, `1.0` floats. A `Literal` is compared bit by bit.
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
    """Matches a scalar constant. If a value is given, the constant must equal it (`m::ConstantScalar`)."""
    return constant(value, name).with_rank(0)


def constant_effective_scalar(value: Number | None = None, name: str | None = None) -> Pattern:
    """Matches a constant with a single element, of any rank (`m::ConstantEffectiveScalar`)."""
    return constant(value, name).with_effective_scalar()


def splat(value: Number | None = None, name: str | None = None) -> Pattern:
    """Matches a constant with equal elements or a broadcast of a scalar constant, and captures the whole value."""
    scalar = constant_scalar(value)
    broadcast = Pattern(opcode="broadcast", operands=(scalar,), capture=name)
    return Pattern(
        alternatives=(broadcast, constant(value, name) if value is not None else constant_scalar(None, name))
    )
