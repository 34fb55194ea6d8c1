"""The proof that makes a finding a warning, besides its cost: that the author of the program can take the cost away."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers

_THROUGH = VIEWS | {"get-tuple-element"}


def is_avoidable(rule: Rule, report: Report, context: Context) -> bool:
    """True if a report proves that the author of the program can avoid what it finds.

    The rule must prove by dependences that the work is unnecessary. If the remedy is another form of an array, that
    must not be internal to a JAX function. If the remedy trades time for memory, the module must exceed the memory.
    """
    proved = rule.is_proved if report.is_proved is None else report.is_proved
    if rule.is_trade and context.excess is not None:
        return True
    if proved and rule.gives_form and report.instruction is not None:
        return not _is_of_library_alone(report.instruction)
    return proved


def _is_of_library_alone(instruction: Instruction) -> bool:
    """True if a function of JAX makes an array that it alone reads: names with an underscore are JAX's own."""
    function = _function(instruction)
    if not function:
        return False
    readers = [user.instruction for user, _ in consumers(Value(instruction), _THROUGH)]
    return bool(readers) and all(not _named(one) or _function(one) == function for one in readers)


def _function(instruction: Instruction) -> str:
    """The scope of the innermost function of JAX that an instruction is in; empty outside of these."""
    name = _named(instruction)
    start = name.rfind("jit(_")
    return name[: name.index(")", start) + 1] if start >= 0 and ")" in name[start:] else ""


def _named(instruction: Instruction) -> str:
    return instruction.metadata.op_name if instruction.metadata is not None else ""
