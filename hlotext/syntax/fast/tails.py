"""The attributes behind an op line's parentheses, by the text of all of them."""

from __future__ import annotations

import re
from typing import Any

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import CallAttributes
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import SPELLINGS
from hlotext.ir.values.raw_value import RawValue
from hlotext.semantics import conditions
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.fast.line_parts import Head
from hlotext.syntax.language import patterns
from hlotext.syntax.language.grammar import attribute_rule
from hlotext.syntax.linking.scope import Scope

_NAMED = frozenset({"computation", "computation_list", "instruction_list"})
"""Rules whose values name nodes of the module."""

_BLANKS = " \t\r\n"

_is_name = re.compile(patterns.IDENTIFIER).fullmatch


class Tails:
    """Reads the attributes of one module's op lines for the fast reader; lines with equal texts share one dict."""

    def __init__(self, module: Module, computations: dict[str, Computation]) -> None:
        self._parts = module._parts
        self._computations = computations
        self._values: dict[str, tuple[str, Any]] = {}
        """Attributes by their text: name and value."""
        self._fitting: set[tuple[str, ...]] = set()
        """Opcodes with the names of attributes that they were found to take."""
        self._later: dict[tuple[str, str], dict[str, Any]] = {}
        """Tails that name a computation which is not defined so far, by opcode and the rest of them."""
        self.waiting: list[tuple[str, str, int]] = []
        """Of the last tail: the attribute that names such a computation, its name, and where that stands in the tail."""

    def read(self, scope: Scope, head: Head, tail: str) -> dict[str, Any] | None:
        """The attributes behind an op line's parentheses; None when the grammar must look at them.

        Where one computation is called, only its name differs from line to line, so the rest is looked up.
        """
        called = head.called
        if called is not None:
            before, found, after = tail.partition(head.mark)
            if found:
                name, comma, behind = after.partition(",")
                rest = f"{before}\n{comma}{behind}"  # no tail looks like this, since none holds a line end
                common = head.tails.get(rest)
                if common is not None and (callee := self._computations.get(name)) is not None:
                    shared = CallAttributes(common)
                    shared[called] = callee
                    shared.common = common
                    return shared
                if name not in self._computations:
                    return self._call_later(scope, head, tail, rest, name)
                return self._call(scope, head, tail, rest, name)
        attributes = self._cut(scope, head, tail)
        if attributes is not None:
            self._remember(scope, head, tail, tail, attributes)
        return attributes

    def _remember(self, scope: Scope, head: Head, key: str, tail: str, attributes: dict[str, Any]) -> None:
        """Keeps the attributes of a tail for the next line that has them, unless they belong to this computation."""
        if "control-predecessors" in attributes:
            scope.computation._parts_read = None
        else:
            head.tails[key] = attributes
            self._parts.append((tail, head.opcode, attributes))

    def _call(self, scope: Scope, head: Head, tail: str, rest: str, name: str) -> dict[str, Any] | None:
        """The attributes of a tail that calls a computation, the first of those whose rest is the same."""
        attributes = self._cut(scope, head, tail)
        callee = self._computations.get(name)
        if attributes is None or callee is None or attributes.get(head.called or "") is not callee:
            scope.computation._parts_read = None
            return attributes
        before = rest.partition("\n")[0]
        if before.count("{") != before.count("}") or '"' in before:
            scope.computation._parts_read = None  # the name may stand inside of some value
        else:
            self._remember(scope, head, rest, tail, attributes)
        return attributes

    def _call_later(self, scope: Scope, head: Head, tail: str, rest: str, name: str) -> dict[str, Any] | None:
        """The attributes of a tail that calls a computation which is not defined so far: `waiting` says which."""
        before = rest.partition("\n")[0]
        if before.count("{") != before.count("}") or '"' in before or not _is_name(name):
            return None
        called = head.called or ""
        common = self._later.get((head.opcode, rest))
        if common is None:
            piece = f"{called}=%{name}"
            self._values[piece] = called, None
            common = self._cut(scope, head, tail)
            del self._values[piece]
            if common is None or called not in common or "control-predecessors" in common:
                return None
            self._later[head.opcode, rest] = common
        scope.computation._parts_read = None
        shared = CallAttributes(common)
        shared.common = common
        self.waiting.append((called, name, len(before) + len(head.mark) - 1))
        return shared

    def _cut(self, scope: Scope, head: Head, tail: str) -> dict[str, Any] | None:
        """Cuts a tail into attributes and types each; None when the grammar must look at it."""
        if "\r" in tail:
            return None
        attributes: dict[str, Any] = {}
        values = self._values
        pieces = patterns.attribute().findall(tail)
        for piece in pieces:
            pair = values.get(piece)
            if pair is None and (pair := self._value(scope, piece)) is None:
                return None
            attributes[pair[0]] = pair[1]
        if sum(map(len, pieces)) + 2 * len(pieces) != len(tail) or len(attributes) != len(pieces):
            return None
        names = (head.opcode, *attributes)
        if names not in self._fitting:
            if not conditions.attributes_fit(head.opcode, names[1:]) or "parameter_replication" in attributes:
                return None
            self._fitting.add(names)
        return attributes

    def _value(self, scope: Scope, piece: str) -> tuple[str, Any] | None:
        """Name and value of an attribute met for the first time; None when the grammar must look at it."""
        name, _, text = piece.partition("=")
        rule = attribute_rule(name)
        if rule is None:
            return None
        name = SPELLINGS.get(name, name)
        value: Any
        try:
            if rule in _NAMED:
                return self._named(scope, name, rule, text, piece)
            value = shortcuts.read(rule, text)
        except TermError:
            return None
        if isinstance(value, RawValue):
            return None
        pair = self._values[piece] = (name, value)
        return pair

    def _named(self, scope: Scope, name: str, rule: str, text: str, piece: str) -> tuple[str, Any] | None:
        """The value of an attribute that names computations or instructions."""
        if rule == "instruction_list":
            defined = scope.defined
            names = (
                [item.strip(_BLANKS).removeprefix("%") for item in text[1:-1].split(",")]
                if text[1:-1].strip(_BLANKS)
                else []
            )
            if not all(item in defined for item in names):
                return None
            return name, tuple(dict.fromkeys(defined[item] for item in names))
        if rule == "computation":
            found = self._computations.get(text.removeprefix("%"))
            if found is None:
                return None
            pair = self._values[piece] = (name, found)
            return pair
        callees = tuple(
            self._computations.get(item.strip(_BLANKS).removeprefix("%")) for item in text[1:-1].split(",")
        )
        if None in callees:
            return None
        return name, callees
