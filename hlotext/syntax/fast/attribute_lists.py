"""The attributes behind an op line's parentheses, by the text of all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import CallAttributes
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Printing
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

_BY_MORE = (Printing.DERIVED, Printing.IF_NOT_DEFAULT, Printing.IF_ANY_NOT_DEFAULT, Printing.INPUT_ONLY)
_WHEN_ABSENT = (Printing.ALWAYS, Printing.DERIVED)
_WHEN_SAID = (Printing.IF_TRUE, Printing.IF_NOT_EMPTY)
_SAYS_NOTHING = ("=false", "={}", '=""')
"""Ends of such attributes that are not printed."""

_is_name = re.compile(patterns.IDENTIFIER).fullmatch


class AttributeLists:
    """Reads the attributes of a module's op lines for the fast reader. Lines with equal attribute texts share a dict."""

    def __init__(self, module: Module, computations: dict[str, Computation]) -> None:
        self._parts = module._parts
        self._computations = computations
        self._values: dict[str, tuple[str, Any, bool]] = {}
        """Attributes by their text: name, value, and whether XLA is known to write the value so."""
        self._fitting: dict[tuple[str, ...], frozenset[str] | None] = {}
        """Opcodes with the names of attributes that they were found to take, and what `printed_when_said` says of them."""
        self._is_written = False
        """True if the last tail is known to be the one that XLA writes for its attributes."""
        self._later: dict[tuple[str, str], dict[str, Any]] = {}
        """Tails that name a computation which is not defined so far, by opcode and the rest of them."""
        self.waiting: list[tuple[str, str, int]] = []
        """Of the last tail: the attribute that names such a computation, its name, and where that stands in the tail."""

    def read(self, scope: Scope, head: Head, tail: str) -> Mapping[str, Any] | None:
        """Returns the attributes after an op line's parentheses; None if the grammar must parse them.

        If one computation is called, only its name differs between lines, so the rest is cached.
        """
        called = head.called
        if called is not None:
            before, found, after = tail.partition(head.mark)
            if found:
                name, comma, behind = after.partition(",")
                rest = f"{before}\n{comma}{behind}"  # no tail looks like this, since none holds a line end
                common = head.tails.get(rest)
                if common is not None and (callee := self._computations.get(name)) is not None:
                    return CallAttributes(common, called, callee)
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
            self._parts.append((tail, head.node.opcode, attributes, self._is_written))

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

    def _call_later(
        self, scope: Scope, head: Head, tail: str, rest: str, name: str
    ) -> Mapping[str, Any] | None:
        """The attributes of a tail that calls a computation which is not defined so far: `waiting` says which."""
        before = rest.partition("\n")[0]
        if before.count("{") != before.count("}") or '"' in before or not _is_name(name):
            return None
        called = head.called or ""
        common = self._later.get((head.node.opcode, rest))
        if common is None:
            piece = f"{called}=%{name}"
            self._values[piece] = called, None, True
            common = self._cut(scope, head, tail)
            del self._values[piece]
            if common is None or called not in common or "control-predecessors" in common:
                return None
            self._later[head.node.opcode, rest] = common
        scope.computation._parts_read = None
        self.waiting.append((called, name, len(before) + len(head.mark) - 1))
        return CallAttributes(common, called, None)

    def _cut(self, scope: Scope, head: Head, tail: str) -> dict[str, Any] | None:
        """Cuts a tail into attributes and types each; None when the grammar must look at it."""
        if "\r" in tail:
            return None
        attributes: dict[str, Any] = {}
        values, is_written = self._values, True
        pieces = patterns.attribute().findall(tail)
        for piece in pieces:
            known = values.get(piece)
            if known is None and (known := self._value(scope, piece)) is None:
                return None
            attributes[known[0]] = known[1]
            is_written &= known[2]
        if sum(map(len, pieces)) + 2 * len(pieces) != len(tail) or len(attributes) != len(pieces):
            return None
        names = (head.node.opcode, *attributes)
        if names not in self._fitting:
            if (
                not conditions.attributes_fit(head.node.opcode, names[1:])
                or "parameter_replication" in attributes
            ):
                return None
            self._fitting[names] = printed_when_said(*names)
        said = self._fitting[names]
        if not said:
            self._is_written = is_written and said is not None
        else:
            self._is_written = is_written and not any(
                piece.endswith(_SAYS_NOTHING) and piece.partition("=")[0] in said for piece in pieces
            )
        return attributes

    def _value(self, scope: Scope, piece: str) -> tuple[str, Any, bool] | None:
        """Name and value of an attribute met for the first time, and whether XLA writes it so.

        None when the grammar must look at it.
        """
        name, _, text = piece.partition("=")
        rule = attribute_rule(name)
        if rule is None:
            return None
        word, name = name, SPELLINGS.get(name, name)
        value: Any
        try:
            if rule in _NAMED:
                return self._named(scope, name, rule, text, piece)
            value, is_written = shortcuts.read_attribute(rule, name, text)
        except TermError:
            return None
        if isinstance(value, RawValue) or (rule == "metadata" and value.fields_meant()):
            return None
        known = self._values[piece] = (name, value, is_written and word == name)
        return known

    def _named(
        self, scope: Scope, name: str, rule: str, text: str, piece: str
    ) -> tuple[str, Any, bool] | None:
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
            return name, tuple(dict.fromkeys(defined[item] for item in names)), False
        if rule == "computation":
            found = self._computations.get(text.removeprefix("%"))
            if found is None:
                return None
            known = self._values[piece] = (name, found, text.startswith("%"))
            return known
        callees = tuple(
            self._computations.get(item.strip(_BLANKS).removeprefix("%")) for item in text[1:-1].split(",")
        )
        if None in callees:
            return None
        return name, callees, False


def printed_when_said(opcode: str, *names: str) -> frozenset[str] | None:
    """Returns which of these attributes of an opcode XLA omits if they are false or empty.

    None if XLA prints them in another order, prints further ones, or decides by more than their values.
    """
    row = opcodes.OPCODES[opcode]
    known = opcodes.allowed_attributes(row)
    if [name for name in known if name in names] != list(names):
        return None
    if any(use.printed in (_BY_MORE if use.name in names else _WHEN_ABSENT) for use in known.values()):
        return None
    return frozenset(name for name in names if known[name].printed in _WHEN_SAID)
