"""The matchers that are made from the opcode table; `opcode_matchers.pyi` lists them for type checkers.

`add`, `get_tuple_element`, `and_`, `add_any_order` ...: the pattern of an opcode and its operands' patterns. Without operands
any will do; `name=` captures; further keywords are attributes, as `Pattern.with_attribute` takes them, PatternError for
others.
"""

from __future__ import annotations

from collections.abc import Callable

from hlotext.ir.lazy_imports import no_such_name
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.other_names import opcode_suggested
from hlotext.matchers.facts import COMMUTATIVE
from hlotext.matchers.pattern import Pattern, check_operands


def _by_method_name() -> dict[str, tuple[str, bool]]:
    names = {}
    for name in opcodes.OPCODES:
        method = name.replace("-", "_")
        names[method] = names[f"{method}_"] = (name, False)
        if name in COMMUTATIVE:
            names[f"{method}_any_order"] = (name, True)
    return names


_OPCODES = _by_method_name()


def __getattr__(name: str) -> Callable[..., Pattern]:
    if name not in _OPCODES:
        raise no_such_name("hlotext.matchers", name, opcode_suggested(name))
    opcode, any_order = _OPCODES[name]

    def make(*operands: Pattern, name: str | None = None, **attributes: object) -> Pattern:
        check_operands(opcode, operands)
        pattern = Pattern(opcode=opcode, operands=operands or None, capture=name, any_order=any_order)
        for attribute, value in attributes.items():
            pattern = pattern.with_attribute(_in_text(opcode, attribute), value)
        return pattern

    make.__name__ = name
    make.__doc__ = f"An instruction of opcode {opcode}."
    return make


def _in_text(opcode: str, keyword: str) -> str:
    """The attribute's name in the text: `control_predecessors` is `control-predecessors`."""
    for name in opcodes.allowed_attributes(opcodes.OPCODES[opcode]):
        if name.replace("-", "_") == keyword:
            return name
    return keyword
