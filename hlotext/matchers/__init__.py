"""Instruction patterns, named as in XLA's pattern matcher. Patterns are immutable values that can be reused.

Every opcode is a function: `m.add(m.op("x"), m.constant(0))` matches an add of any operand (captured as `x`) and a
constant whose elements are all 0, in this order; `m.add_any_order(...)` matches either order. `match` returns the
captures; `explain` says why an instruction does not match.

>>> import hlotext as hlo
>>> from hlotext import matchers as m
>>> module = hlo.parse("ENTRY e { x = f32[] parameter(0)  z = f32[] constant(0)  ROOT y = f32[] add(z, x) }")
>>> pattern = m.add_any_order(m.op("x"), m.constant(0))
>>> pattern.match(module.entry.root)["x"].name
'x'
>>> print(m.add(m.op("x"), m.constant(0)).explain(module.entry.root))
operand 1 of y, x: the opcode is parameter, not constant
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.matchers import words
from hlotext.matchers.constants import constant, constant_effective_scalar, constant_scalar, splat
from hlotext.matchers.facts import COMMUTATIVE
from hlotext.matchers.matching import MatchOptions
from hlotext.matchers.pattern import Condition, Match, Pattern, PatternError, remembered
from hlotext.matchers.text import parse_pattern

if TYPE_CHECKING:
    from hlotext.matchers.opcode_matchers import *  # noqa: F403 - one for each opcode
else:
    from hlotext.matchers.opcode_matchers import _OPCODES
    from hlotext.matchers.opcode_matchers import __getattr__ as __getattr__

    def __dir__() -> list[str]:
        return sorted({*globals(), *_OPCODES})


__all__ = [
    "COMMUTATIVE",
    "Condition",
    "Match",
    "MatchOptions",
    "Not",
    "Pattern",
    "PatternError",
    "any_of",
    "constant",
    "constant_effective_scalar",
    "constant_scalar",
    "op",
    "parameter",
    "parse_pattern",
    "splat",
]


def op(name: str | None = None, opcode: str | None = None) -> Pattern:
    """Returns a pattern for any instruction, or for any with this opcode, captured under a name if given (`m::Op`).

    Raises PatternError for an unknown opcode.
    """
    if name is not None and not isinstance(name, str):
        raise PatternError(f"op() captures under a name, a string, not {type(name).__name__}")
    if opcode is not None and (said := words.unknown_opcode(opcode)):
        raise PatternError(said)
    return Pattern(opcode=opcode, capture=name)


@remembered
def parameter(number: int | None = None, name: str | None = None) -> Pattern:
    """Returns a pattern for any parameter, or for the one with this number (`m::Parameter`). `name` captures it."""
    pattern = Pattern(opcode="parameter", capture=name)
    if number is None:
        return pattern
    return pattern.with_predicate(lambda i: i.parameter_number == number, f"its number is {number}")


def any_of(*patterns: Pattern) -> Pattern:
    """Returns a pattern that matches if one of these patterns does, tried in order (`m::AnyOf`)."""
    return Pattern(alternatives=patterns)


def Not(pattern: Pattern, name: str | None = None) -> Pattern:  # noqa: N802 - `not` is a word of Python, `not_` an opcode
    """Returns a pattern that matches if the given one does not. `name` captures the instruction.

    Captures of the given pattern are dropped.
    """
    return Pattern(capture=name, forbidden=(pattern,))
