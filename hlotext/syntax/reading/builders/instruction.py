"""Values of the rules in instruction.lark and module.lark: records for the linker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
from lark import Token

from hlotext.findings.errors import TermError
from hlotext.ir.values.shape import Shape
from hlotext.syntax.language.words import bare, integer
from hlotext.syntax.reading.builders.values import Children, Field, name_of, unique_fields, unquote_at
from hlotext.syntax.reading.records import (
    ComputationRecord,
    InlineBody,
    InstructionRecord,
    ModuleRecord,
    OperandRecord,
    OperationRecord,
    ParsedAttribute,
    SectionRecord,
    SignatureRecord,
)
from hlotext.syntax.source.limits import MAX_BRACKETS, MAX_NESTING

_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")


class TokenTracker:
    """Gives the builder the end of the rule that is being reduced; Lark calls it as its post-lexer.

    Lark reduces a rule after reading the token after it, so the rule ends at the token before that one. Unfinished
    rules take about a kilobyte of Lark's stack per bracket, so the nesting depth is limited here.
    """

    always_accept = ()

    def __init__(self) -> None:
        self.end = 0
        self.opened = 0
        """Brackets that stand open where the text begins that is read."""
        self.behind = 0
        """Where the word before that ends."""

    def process(self, stream: Iterator[Token]) -> Iterable[Token]:
        end, depth = self.behind, self.opened
        for token in stream:
            self.end = end
            end = token.end_pos or 0
            depth = self.counted(token, depth)
            yield token
        self.end = end

    @staticmethod
    def counted(token: Token, depth: int) -> int:
        """Returns the number of open brackets after a token. Raises TermError if it exceeds the limit."""
        if token[-1:] in _OPENERS:
            depth += 1
            if depth > MAX_BRACKETS:
                message = f"brackets nest deeper than {MAX_BRACKETS} levels"
                raise TermError(message, _position(token), code="X124")
        elif token[:1] in _CLOSERS:
            depth -= 1
        return depth


def _position(token: Any) -> int:
    return getattr(token, "start_pos", None) or 0


class InstructionBuilder:
    """Builds the values of the rules in instruction.lark and module.lark."""

    tracker: TokenTracker

    # ---- op lines

    def instruction(self, children: Children) -> InstructionRecord:
        root, name, (operation, attributes) = children
        start = _position(root if root is not None else name)
        is_bare = not name.startswith("%")
        return InstructionRecord(
            bare(name), operation, attributes, root is not None, start, self.tracker.end, is_bare
        )

    single_instruction = instruction

    def unnamed_instruction(self, children: Children) -> InstructionRecord:
        root, (operation, attributes) = children
        start = operation.position if root is None else _position(root)
        return InstructionRecord("", operation, attributes, root is not None, start, self.tracker.end)

    def right_side(self, children: Children) -> tuple[OperationRecord, tuple[ParsedAttribute, ...]]:
        shape, (opcode, operands, argument, position), *attributes = children
        _limit(operands, position)
        return OperationRecord(str(opcode), operands, argument, shape, position), tuple(attributes)

    def operation(self, children: Children) -> Any:
        return children[0]

    def parameter(self, children: Children) -> tuple[str, tuple[OperandRecord, ...], Any, int]:
        word, number = children
        return "parameter", (), integer(number), _position(word)

    def constant(self, children: Children) -> tuple[str, tuple[OperandRecord, ...], Any, int]:
        # The literal's meaning needs the shape, so the linker reads its text again.
        word, opening, _, closing = children
        return "constant", (), (opening.end_pos, closing.start_pos), _position(word)

    def call(self, children: Children) -> tuple[str, tuple[OperandRecord, ...], Any, int]:
        word, *operands = children
        found = tuple(operand for operand in operands if isinstance(operand, OperandRecord))
        return str(word), found, None, _position(word)

    def operand_reference(self, children: Children) -> OperandRecord:
        shape, name, *indices = children
        return OperandRecord(shape, bare(name), tuple(integer(i[1:]) for i in indices), None, _position(name))

    def operand_nested(self, children: Children) -> OperandRecord:
        shape, (opcode, operands, argument, position) = children
        return OperandRecord(
            shape, None, (), OperationRecord(opcode, operands, argument, shape, position), position
        )

    def operand_unnamed(self, children: Children) -> OperandRecord:
        return OperandRecord(children[0], None, position=self.tracker.end)

    def inline_body(self, children: Children) -> InlineBody:
        opening, *instructions = children
        depth = 1 + max((body.depth for record in instructions for body in _bodies(record)), default=0)
        if depth > MAX_NESTING:
            message = f"computations nest deeper than {MAX_NESTING} levels"
            raise TermError(message, _position(opening), code="X124")
        return InlineBody(tuple(instructions), _position(opening), self.tracker.end, depth)

    def body_rest(self, children: Children) -> tuple[InstructionRecord, ...]:
        return tuple(children)

    # ---- computations

    def body(self, children: Children) -> InlineBody:
        return self.inline_body(children)

    def computation_definition(self, children: Children) -> ComputationRecord:
        entry, name, signature, body, *behind = children
        start = _position(entry if entry is not None else name)
        fields = unique_fields(behind, "a computation")
        return ComputationRecord(
            bare(name), entry is not None, signature, body.instructions, fields.get("execution_thread", "main"), start,
            body.position, self.tracker.end, fields.get("backend_config"),
        )  # fmt: skip

    def computation_attribute(self, children: Children) -> Field:
        token, value = children
        is_thread = token == "execution_thread="
        return Field(name_of(token), unquote_at(value) if is_thread else value, token)

    def signature(self, children: Children) -> SignatureRecord:
        arrow, result = children[-2:]
        return SignatureRecord(result, arrow.end_pos, self.tracker.end)

    def signature_parameter(self, children: Children) -> tuple[str, Shape]:
        name, shape = children
        return bare(name), shape

    # ---- modules

    def modules(self, children: Children) -> tuple[ModuleRecord, ...]:
        return tuple(children)

    def header(self, children: Children) -> tuple[int, str, tuple[ParsedAttribute, ...], int]:
        word, name, *attributes = children
        return _position(word), bare(name), tuple(attributes), self.tracker.end

    def module_head(self, children: Children) -> ModuleRecord:
        (start, name, attributes, header_end), *sections = children
        if not sections:
            return ModuleRecord(name, attributes, (), (), start, header_end, header_end)
        end = sections[-1].end
        return ModuleRecord(name, attributes, tuple(sections), (), start, end, end, header_end)

    def module(self, children: Children) -> ModuleRecord:
        head, *computations = children
        module: ModuleRecord = attrs.evolve(head, computations=tuple(computations), end=self.tracker.end)
        return module

    def headerless_module(self, children: Children) -> ModuleRecord:
        start = children[0].start
        return ModuleRecord("", (), (), tuple(children), start, start, self.tracker.end)

    def section(self, children: Children) -> SectionRecord:
        word, *rows = children
        return SectionRecord(str(word), tuple(rows), _position(word), self.tracker.end)

    def section_row(self, children: Children) -> str | dict[str, int]:
        _, *fields = children
        if fields and isinstance(fields[0], Token):
            return unquote_at(fields[0])
        return dict(field for field in fields if field is not None)

    def section_field(self, children: Children) -> tuple[str, int]:
        return str(children[0][:-1]), integer(children[1])


def _limit(operands: tuple[OperandRecord, ...], position: int) -> None:
    """Raises TermError when operands written in place nest too deep for the linker, which follows them by recursion."""
    depth, level = 0, [o.operation for o in operands if o.operation is not None]
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise TermError(f"operands nest deeper than {MAX_NESTING} levels", position, code="X124")
        level = [o.operation for operation in level for o in operation.operands if o.operation is not None]


def _bodies(record: InstructionRecord) -> Iterator[InlineBody]:
    for attribute in record.attributes:
        values = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
        yield from (value for value in values if isinstance(value, InlineBody))
