"""Patterns of constants."""

from __future__ import annotations

from hlotext.ir.values.literal import Literal
from hlotext.matchers.numbers import Number, is_all, plain
from hlotext.matchers.pattern import Pattern, remembered


@remembered
def constant(value: Number | Literal | None = None, name: str | None = None) -> Pattern:
    """A constant; with a value one whose elements are all that (`m::Constant`), by value and type.

    `True` is a truth value, `1` a whole number of any type, `1.0` a float. A `Literal` is compared to the bit.
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
    """A constant without dimensions; with a value one that is that (`m::ConstantScalar`)."""
    return constant(value, name).with_rank(0)


def constant_effective_scalar(value: Number | None = None, name: str | None = None) -> Pattern:
    """A constant of one element, in however many dimensions (`m::ConstantEffectiveScalar`)."""
    return constant(value, name).with_effective_scalar()


def splat(value: Number | None = None, name: str | None = None) -> Pattern:
    """One value everywhere: a constant, or the broadcast of a scalar one; the capture is the whole."""
    scalar = constant_scalar(value)
    broadcast = Pattern(opcode="broadcast", operands=(scalar,), capture=name)
    return Pattern(
        alternatives=(broadcast, constant(value, name) if value is not None else constant_scalar(None, name))
    )
