"""Parts of an op line before its attributes, cached by their text: shape and opcode, operands, numbers, constants."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hlotext.findings.errors import TermError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.raw import CallAttributes, NodeHead
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Count, Payload
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.semantics import conditions
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import patterns
from hlotext.syntax.linking.linker import Linker
from hlotext.syntax.linking.scope import Scope
from hlotext.syntax.linking.undefined import note_unknown_types
from hlotext.syntax.literals import read_literal

_ODD = re.compile(r"[\r\n]|//")
"""Text that a shape before an opcode cannot contain: a line end, or a comment that extends over the opcode."""

OTHER = 3
"""See `Head.takes`. (A number too, since numbers are compared faster with each other.)"""


class Head(NamedTuple):
    """Result shape and opcode of op lines, with everything that the fast reader's inner loop needs to know about them."""

    node: NodeHead
    """Head of the instructions that take operands, shared by all of them."""
    takes: int
    """Fixed number of operands: 1 or 2; 0 for a parameter, which has a number; OTHER for all other opcodes."""
    arguments: dict[str, NodeHead] | None
    """For `parameter` and `constant` the heads with the numbers and literals met so far, by text; None for what takes
    operands."""
    met: dict[Any, Any] | None
    """For an opcode of which XLA's reader asks more than the number of operands and the names of attributes, the
    operands' shapes and attributes that were found to be right, by their ids; None for the others."""
    tails: dict[str, dict[str, Any]]
    """The attributes met on the opcode so far by the text of all of them."""
    called: str | None
    """The attribute that names the one computation that the opcode calls; None for the others."""
    mark: str
    """Text before that name in a tail."""
    minimum: int
    maximum: int
    """Bounds of the number of operands."""


Known = tuple[
    NodeHead, int, dict[str, NodeHead] | None, dict[Any, Any] | None, dict[str, dict[str, Any]], Head
]
"""The first fields of a head, and the head: unpacking a plain tuple takes a fraction of the time of a named one."""


class LineParts:
    """Caches the parts of a module's op lines for the fast reader. Methods return None if the grammar must parse a
    part.
    """

    def __init__(self, linker: Linker) -> None:
        self.heads: dict[str, Known] = {}
        """Shapes with opcodes by text, as far as they have been met."""
        self._linker = linker
        self._reporter = linker.reporter
        self._parts = linker.module._parts
        self._tails: dict[str, dict[str, dict[str, Any]]] = {}
        self._shapes: dict[str, Shape] = {}
        self._signature_shapes: set[str] = set()
        self._without_comments = patterns.block_comment().sub

    def head(self, text: str, position: int) -> Known | None:
        """Returns cached facts about a result shape and opcode; None if the grammar must parse them."""
        shape_text, _, opcode = text.rpartition(" ")
        row = opcodes.OPCODES.get(opcode)
        if row is None or _ODD.search(text):
            return None
        shape = self.shape(shape_text, position)
        if shape is None or (
            opcode in opcodes.NATIVE_ASYNC and opcodes.generic_half(opcode, shape, None) is not None
        ):
            return None
        tails = self._tails.setdefault(opcode, {})
        arity, called = row.arity, opcodes.CALLED_NAMES[row.name]
        has_conditions = (
            opcode in conditions.BY_OPCODE
            or opcode in conditions.ONCE_READ
            or arity.count in (Count.EVEN, Count.ODD)
            or opcode in opcodes.CONTEXT_DEPENDENT
        )
        self._parts.append((text, opcode, shape, False))
        head = Head(
            NodeHead(row.name, shape),
            arity.minimum
            if row.payload is Payload.PARAMETER_NUMBER or arity.minimum == arity.maximum in (1, 2)
            else OTHER,
            {} if row.payload in (Payload.PARAMETER_NUMBER, Payload.LITERAL) else None,
            {} if has_conditions else None,
            tails,
            called[0] if len(called) == 1 else None,
            f", {called[0]}=%" if called else "",
            arity.minimum,
            1 << 60 if arity.maximum is None else arity.maximum,
        )
        known = self.heads[text] = (*head[:5], head)
        return known

    def argument(self, head: Head, text: str | None) -> NodeHead | None:
        """Returns the head with the number of a parameter or value of a constant; None if the grammar must parse it."""
        if text is None or head.arguments is None or "//" in text:
            return None
        value: int | Literal
        opcode, shape = head.node.opcode, head.node.shape
        if opcode == "parameter":
            if not (text.isdecimal() and text.isascii() and len(text) < 10):
                return None
            value = int(text)
        else:
            try:
                value = read_literal(text, shape)  # type: ignore[arg-type]
            except TermError:
                return None
        self._parts.append((text, opcode, value, type(value) is int and text == str(value)))
        known = head.arguments[text] = NodeHead(opcode, shape, value)
        return known

    def meets_conditions(self, instruction: Instruction, met: dict[Any, Any]) -> bool:
        """True if an instruction satisfies XLA's conditions; otherwise the grammar and the linker report the error."""
        attributes: Any = instruction._attributes
        if type(attributes) is CallAttributes:
            attributes = attributes.common
        shapes = [operand._head.shape for operand in instruction._operands]
        key = (id(attributes), *map(id, shapes))
        if key in met:
            return True
        opcode = instruction._head.opcode
        if not opcodes.OPCODES[opcode].arity.accepts(len(shapes)):
            return False
        if any(True for _ in conditions.of_values(instruction)):
            return False
        if opcode in opcodes.CONTEXT_DEPENDENT:
            if instruction.computation is not None:
                instruction.computation._parts_read = None
        elif opcode not in conditions.LOOK_FURTHER:
            met[key] = attributes, shapes  # which keeps them alive, so that their ids stay theirs
        return True

    def shape(self, text: str, position: int) -> Shape | None:
        """Returns the shape of a text at an offset; None if the grammar must parse it."""
        return self._shapes.get(text) or self._new_shape(text, position)

    def is_shape(self, text: str) -> bool:
        """True if a text is a shape. Its value is irrelevant, so unknown element types give no note."""
        if text in self._shapes or text in self._signature_shapes:
            return True
        try:
            shortcuts.read("shape", text)
        except TermError:
            return False
        self._signature_shapes.add(text)
        return True

    def _new_shape(self, text: str, position: int) -> Shape | None:
        try:
            shape: Shape = shortcuts.read("shape", text)
        except TermError:
            return None
        note_unknown_types(self._reporter, shape, position)
        self._shapes[text] = shape
        return shape

    def operands(
        self, scope: Scope, head: Head, match: re.Match[str], mark: str
    ) -> tuple[Instruction, ...] | None:
        """Returns the operands of an op line that are not a plain list of names; None if the grammar must parse them."""
        names, inner = match.group(4, 5)
        operands: tuple[Instruction, ...] | None = ()
        if names is not None:
            operands = self._other_operands(scope, f"{mark}{names}", mark, match.start(4))
        elif inner:
            operands = self._other_operands(scope, inner, mark, match.start(5))
        if operands is None or not head.minimum <= len(operands) <= head.maximum:
            return None
        return operands

    def _other_operands(
        self, scope: Scope, text: str, mark: str, start: int
    ) -> tuple[Instruction, ...] | None:
        """Operands with numbers, shapes or comments between them; None when the grammar must look at them."""
        defined = scope.defined
        names = text.split(", ")
        if text.startswith(mark) and text.count("/*") == (len(names) - 1) // 5:  # as XLA writes them
            for number in range(5, len(names), 5):
                names[number] = names[number].removeprefix(f"/*index={number}*/")
            try:
                return tuple(map(defined.__getitem__, ", ".join(names).removeprefix(mark).split(f", {mark}")))
            except KeyError:
                pass
        scope.computation._name_mark = None
        if "\r" in text or "\n" in text:
            return None
        if "/*" in text:
            if text.rfind("/*") > text.rfind("*/"):
                return None  # a comment without an end would be looked for from each of its beginnings
            text = self._without_comments("", text)
        try:
            if "[" in text:
                return self._declared_operands(scope, text, start)
            return tuple([defined[name.removeprefix("%")] for name in text.split(", ")])
        except KeyError:
            return None

    def _declared_operands(self, scope: Scope, text: str, start: int) -> tuple[Instruction, ...] | None:
        """Operands with their shapes written before them."""
        found = []
        position = 0
        while position < len(text) and (match := patterns.declared_operand().match(text, position)):
            position = match.end()
            operand = scope.defined[match[2]]
            shape = self.shape(match[1], start)
            if shape is None:
                return None
            if (
                operand.shape is not None
                and shape != operand.shape
                and not conditions.compatible(shape, operand.shape)
            ):
                return None
            found.append(operand)
        return tuple(found) if position == len(text) else None
