"""Conditions of rules in English: what a candidate is, and what it would have to be.

A comment behind a condition of a rule is its sentence; without one it is made of the docstring of the predicate, the names of
attributes, and numbers with their bounds. Variables have no names that a reader knows: what is about them alone has no words.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any

import attrs

from hlotext.analysis import Communication, byte_text
from hlotext.analysis.formatting import format_count, pluralize, seconds
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rounds import Rounds
from hlotext.lint.rule import Rule

_PREDICATE = "True if "
"""Beginning of the docstring of a function that answers yes or no."""
_MOST_LISTED = 6
_UNITS: Mapping[Callable[[float], str], tuple[str, ...]] = {
    lambda value: f"{format_count(value)}{'' if value >= _LARGE else ' '}FLOP": ("flops",),
    lambda value: byte_text(int(value)): (
        "bytes", "copied", "held", "peak", "read", "saved", "size", "size_of", "stake", "total",
    ),
    lambda value: f"{value:.3g}%": ("percent",),
    seconds: ("seconds", "step", "waits"),
    lambda value: pluralize(int(value), "iteration"): ("rounds", "trips"),
    lambda value: pluralize(int(value), "class", "classes"): ("classes",),
    lambda value: pluralize(int(value), "device"): ("devices",),
    lambda value: pluralize(int(value), "element"): ("elements", "element_count"),
    lambda value: pluralize(int(value), "instruction"): ("instructions",),
    lambda value: pluralize(int(value), "thunk"): ("thunks",),
    lambda value: f"{value:,.3g}x": ("factor",),
}  # fmt: skip
"""Writers of quantities with their units, by the last words of their names: of a sum of bytes and of a part of it, bytes."""
_LARGE = 1000
_LIMITS = {"below": "below the minimum of", "above": "above the maximum of"}
_FAILED: dict[tuple[type[ast.cmpop], bool], str] = {
    (ast.Lt, True): "not less than",
    (ast.Lt, False): "below",
    (ast.LtE, True): "above",
    (ast.LtE, False): "not more than",
    (ast.Gt, True): "not more than",
    (ast.Gt, False): "above",
    (ast.GtE, True): "below",
    (ast.GtE, False): "not less than",
}
"""Relation of a quantity to its bound after a comparison that has not come out as wanted."""
_SWAPPED = {
    "below": "above",
    "above": "below",
    "not less than": "not more than",
    "not more than": "not less than",
}


@attrs.frozen
class _Clause:
    """A term that had to be otherwise."""

    text: str
    """Empty if its names are those of variables."""
    numbers: str = ""
    """A quantity and its bound."""


@attrs.frozen
class Condition:
    """A test in a rule's code, with the values of its names and its outcome."""

    test: ast.expr
    names: Mapping[str, Any]
    outcome: bool
    rule: Rule
    comment: str = ""
    """The comment behind it."""

    def sentence(self) -> str:
        """Returns the decisive part of the condition in English; empty if its terms cannot be named."""
        try:
            parts = list(dict.fromkeys(self._parts(self.test, self.outcome)))
        except Exception:  # the names are of a moment that has passed
            parts = []
        if not self.comment:
            return " and ".join(part.text for part in parts) if all(part.text for part in parts) else ""
        numbers = [part.numbers for part in parts if part.numbers]
        return f"{self.comment} ({'; '.join(numbers)})" if numbers else self.comment

    def decisive(self) -> ast.expr:
        """Returns the single term of the test that decided; else the whole test."""
        node = self.test
        try:
            while isinstance(node, ast.BoolOp) and self.outcome is isinstance(node.op, ast.Or):
                node = next(one for one in node.values if bool(self._value(one)) is self.outcome)
        except Exception:  # the names are of a moment that has passed
            return self.test
        return node

    def _parts(self, node: ast.expr, outcome: bool) -> Iterator[_Clause]:
        """Yields a clause for each term that had to be otherwise."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._parts(node.operand, not outcome)
        elif isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            if outcome is decides:
                node = next(one for one in node.values if bool(self._value(one)) is decides)
                yield from self._parts(node, outcome)
            else:
                for one in node.values:
                    yield from self._parts(one, outcome)
        else:
            yield self._clause(node, not outcome)

    def _clause(self, node: ast.expr, wanted: bool) -> _Clause:
        if isinstance(node, ast.NamedExpr):
            node = node.value if isinstance(node.value, ast.Call) else node.target
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            op = node.ops[0]
            if (how := _FAILED.get((type(op), wanted))) is not None:
                return self._measured(node.left, how, node.comparators[0])
            return _Clause(self._comparison(node.left, op, node.comparators[0], wanted))
        return _Clause(self._call(node, wanted) if isinstance(node, ast.Call) else self._having(node, wanted))

    def _having(self, node: ast.expr, wanted: bool) -> str:
        """That an instruction has an attribute, or has none."""
        owner = self._named(node)
        if not owner or isinstance(node, ast.Name) or isinstance(self._value(node), bool):
            return ""
        attribute = self._attribute(node)
        if not attribute:
            return ""
        return f"{owner} has {'no ' if wanted else ''}{attribute}"

    # ---- comparisons

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, wanted: bool) -> str:
        if isinstance(op, ast.IsNot | ast.NotEq | ast.NotIn):
            wanted = not wanted
        if isinstance(op, ast.Is | ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
            return self._having(left, not wanted)
        value, other = self._value(left), self._value(right)
        if isinstance(op, ast.In | ast.NotIn):
            asked = self._listed(right, other)
        else:
            asked = _word(other)
        noun, said = self._noun(left), _word(value)
        if isinstance(left, ast.Name) or not noun or not said or not asked:
            return ""
        return f"the {noun} is {said}, not {asked}" if wanted else f"the {noun} is {said}"

    def _measured(self, left: ast.expr, how: str, right: ast.expr) -> _Clause:
        """A quantity and its bound, both without the numbers that they are multiplied by in the text."""
        value, bound = self._value(left), self._value(right)
        if _is_fixed(left) and not _is_fixed(right):
            left, right, value, bound, how = right, left, bound, value, _SWAPPED[how]
        factor, left = _factored(left)
        shown, limit = (_quantity(one / factor, (left, right)) for one in (value, bound))
        if not shown or not limit:
            return _Clause("")
        settings = {field.name for field in attrs.fields(type(self.rule))}
        named = [name for name in dict.fromkeys(_settings(left) + _settings(right)) if name in settings]
        told = " and ".join(f"{name.replace('_', '-')} = {getattr(self.rule, name):,}" for name in named)
        noun = self._noun(left)
        numbers = f"{shown}, {_LIMITS.get(how, how)} {limit}{f', the setting {told}' if told else ''}"
        return _Clause(f"the {noun} is {numbers}" if noun and not isinstance(left, ast.Name) else "", numbers)

    def _listed(self, node: ast.expr, values: Any) -> str:
        words = sorted(map(_word, values)) if isinstance(values, list | tuple | set | frozenset) else []
        if 0 < len(words) <= _MOST_LISTED and all(words):
            return words[0] if len(words) == 1 else f"one of {', '.join(words)}"
        return ""

    # ---- calls

    def _call(self, node: ast.Call, wanted: bool) -> str:
        name = _name_of(node.func)
        if name in ("any", "all") and len(node.args) == 1:
            return self._of_several(node.args[0], name, wanted)
        meaning = _meaning(self._function(node.func))
        if meaning:
            return f"it is not true that {meaning}" if wanted else meaning
        return self._having(node, wanted) if name == "get" else ""

    def _of_several(self, node: ast.expr, name: str, wanted: bool) -> str:
        """Of any or all of several values, with a predicate or a comparison for each."""
        if isinstance(node, ast.Call) and _name_of(node.func) == "map":
            meaning, noun = _meaning(self._function(node.args[0])), self._noun(node.args[1])
        elif isinstance(node, ast.GeneratorExp):
            test, noun = node.elt, self._noun(node.generators[0].iter)
            meaning = _meaning(self._function(test.func)) if isinstance(test, ast.Call) else ""
        else:
            return ""
        of = {"any": ("some", "none"), "all": ("all", "not all")}[name][wanted]
        return f"for {of} of its {noun}, {meaning}" if meaning and noun else ""

    def _function(self, node: ast.expr) -> Callable[..., Any] | None:
        try:
            found = self._value(node)
        except Exception:
            return None
        return found if callable(found) else None

    # ---- values and names

    def _value(self, node: ast.expr) -> Any:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(self.names.get(inner.id), Iterator):
                raise ValueError("an iterator would be used up")
        return eval(compile(ast.Expression(node), "<condition>", "eval"), dict(self.names))

    def _named(self, node: ast.expr) -> str:
        """The name of the instruction that an expression stands for, or is about; empty for none."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and (name := name_of(self.names.get(inner.id))):
                return name
        return ""

    def _attribute(self, node: ast.expr) -> str:
        """The attribute of an instruction that an expression reads; empty for anything else."""
        if isinstance(node, ast.Attribute):
            return _spoken(node.attr)
        if isinstance(node, ast.Call) and _name_of(node.func) == "get" and node.args:
            return _spoken(str(node.args[0].value)) if isinstance(node.args[0], ast.Constant) else ""
        return ""

    def _noun(self, node: ast.expr) -> str:
        """A noun for an expression, from the names in it; empty if it has none that reads well."""
        if isinstance(node, ast.Name):
            return _spoken(node.id)
        if isinstance(node, ast.NamedExpr):
            return self._noun(node.target)
        if isinstance(node, ast.Subscript):
            return self._noun(node.value)
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Call) and _name_of(node.func) == "get"):
            of = self._named(node)
            attribute = self._attribute(node)
            return f"{attribute} of {of}" if of and attribute else attribute
        if isinstance(node, ast.Call):
            return self._noun_of_call(node)
        return ""

    def _noun_of_call(self, node: ast.Call) -> str:
        name = _name_of(node.func)
        if name in ("int", "float", "max", "min", "next", "str", "sum", "abs") and node.args:
            return self._noun(node.args[0])
        if name == "len" and node.args:
            return f"number of {self._noun(node.args[0])}"
        of = next((word for one in node.args if (word := self._named(one))), "")
        return f"{_spoken(name).removesuffix(' of')} of {of}" if of else ""


def _factored(node: ast.expr) -> tuple[float, ast.expr]:
    """The number that an expression is multiplied by, and the rest."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for number, rest in ((node.left, node.right), (node.right, node.left)):
            if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
                return number.value, rest
    return 1, node


def _is_fixed(node: ast.expr) -> bool:
    """True if an expression has no variables but the rule's thresholds and constants."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return all(name == "self" or name.isupper() for name in names) and not any(
        isinstance(one, ast.Call) for one in ast.walk(node)
    )


def _settings(node: ast.expr) -> list[str]:
    """Thresholds of the rule that an expression names."""
    return [
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
    ]


def _quantity(value: float, named: Iterable[ast.expr] = ()) -> str:
    """A quantity with the unit that these names have, a count without one; empty for a number of no known unit."""
    words = [
        node.attr if isinstance(node, ast.Attribute) else node.id
        for one in named
        for node in ast.walk(one)
        if isinstance(node, ast.Attribute | ast.Name)
    ]
    for written, ends in _UNITS.items():
        if value >= 0 and any(word.lower().endswith(ends) for word in words):
            return written(value)
    return f"{value:,.0f}" if value == int(value) else ""


def name_of(value: object) -> str:
    """Returns the name of an instruction, or of a communication's or loop's; empty for anything else."""
    if isinstance(value, Communication):
        value = value.start
    elif isinstance(value, Rounds):
        value = value.loop
    return value.name if isinstance(value, Instruction) else ""


def _word(value: object) -> str:
    """A value in a word; empty for what has none."""
    if name := name_of(value):
        return name
    if isinstance(value, enum.Enum):
        return str(value.value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value or "empty"
    if isinstance(value, int | float):
        return _quantity(value)
    return "empty" if isinstance(value, Sized) and not value else ""


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _spoken(name: str) -> str:
    """A name of the code in words."""
    return name.strip("_").lower().replace("_", " ")


def _meaning(function: Callable[..., Any] | None) -> str:
    """The sentence that a predicate is true of, from its docstring."""
    text = " ".join((getattr(function, "__doc__", None) or "").split())
    if not text.startswith(_PREDICATE):
        return ""
    return text.removeprefix(_PREDICATE).partition(". ")[0].rstrip(".")
