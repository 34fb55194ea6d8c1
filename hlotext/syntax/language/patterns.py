"""The fast reader's regular expressions, assembled from the grammar's terminals.

Each cuts one line of the form in which XLA writes text. What does not look like that is left to the grammar itself, so
these need not know every form of the language; they must only never cut a line wrongly.

What comes in may be hostile, so none of them may try a second way through a long text: repetitions are possessive (`*+`), and
where two of them follow each other they share no character.
"""

from __future__ import annotations

import functools
import re

from hlotext.syntax.language import grammar

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_.\-]*+"
"""The grammar's IDENTIFIER, which a test compares, for expressions that are made before the grammar is read. Possessive."""
WORD_END = r"(?![A-Za-z0-9_.\-])"
"""Behind a word: no character that would belong to it."""

_DEPTH = 10
"""Nesting of braces that the expressions follow, for backend_config; deeper ones go through the grammar."""

_SHAPE_DEPTH = 6
"""The same for tuple shapes, whose parentheses are their own and those of tiles."""

_PLAIN = r"[^()\r\n]*+"
"""Text between parentheses on one line."""


@functools.cache
def quoted() -> str:
    """A double-quoted string: the first alternative of STRING."""
    return grammar.terminals()["STRING"].split("|", 1)[0]


@functools.cache
def braces() -> str:
    """Balanced braces; braces inside double quotes do not count."""
    string = quoted()
    pattern = rf'\{{[^{{}}"]*+(?:{string}[^{{}}"]*+)*+\}}'
    for _ in range(_DEPTH):
        pattern = rf'\{{[^{{}}"]*+(?:(?:{string}|{pattern})[^{{}}"]*+)*+\}}'
    return pattern


@functools.cache
def _parentheses(depth: int) -> str:
    """Balanced parentheses on one line, at most so many of them in each other."""
    inner = rf"(?:\({_PLAIN}\){_PLAIN})*+"
    for _ in range(depth - 2):
        inner = rf"(?:\({_PLAIN}{inner}\){_PLAIN})*+"
    return rf"\({_PLAIN}{inner}\)"


@functools.cache
def piece() -> str:
    """One `name=value` whose value is a word, a number, a string, balanced braces, or replica groups."""
    iota = r"\[[0-9,]*\]<=\[[0-9,]*\](?:T\([0-9,]*\))?"
    mesh = r"mesh\[[^\[\]]*\](?:, device_ids=\([^ (){}]*(?:\([0-9,]*\))?\))? ?\{[^{}]*\}"
    bare = r"[^\s,{}()\[\]\"]+"
    return rf"{grammar.terminals()['ATTRIBUTE_NAME']}(?:{braces()}|{quoted()}|{iota}|{mesh}|{bare})"


@functools.cache
def attribute() -> re.Pattern[str]:
    """One attribute of a tail, with the comma before it; the group is `name=value`."""
    return re.compile(rf", ({piece()})(?=,|$)")


@functools.cache
def attributes() -> re.Pattern[str]:
    """A whole tail of them."""
    return re.compile(rf"(?:, {piece()}(?=,|$))*+")


@functools.cache
def header_attribute() -> re.Pattern[str]:
    """One attribute of a module's header, with the comma before it; the group is `name=value`."""
    return re.compile(rf", ({grammar.terminals()['ATTRIBUTE_NAME']}(?:{braces()}|[a-z0-9]+))(?=,|$)")


@functools.cache
def bare_name() -> str:
    """A name without a percent sign, which is no reserved word."""
    return rf"(?!(?:{'|'.join(grammar.reserved())}){WORD_END}){grammar.terminals()['IDENTIFIER']}"


@functools.cache
def name() -> re.Pattern[str]:
    """A name as the grammar reads it, with or without `%`; a colon behind it is swallowed."""
    return re.compile(grammar.terminals()["NAME"])


@functools.cache
def shape() -> str:
    """Pattern of a possible shape on an op line: anything without blanks, or in parentheses."""
    return rf"{_parentheses(_SHAPE_DEPTH)}|[a-z][!-~]*+"


@functools.cache
def op_line(indent: str, mark: str, *, bounded: bool = False) -> re.Pattern[str]:
    """An op line with the line end before it; `mark` is what stands before names, `%` or nothing.

    Groups: ROOT, name, shape and opcode, operands when they begin like names (without the first mark), else what is in the
    parentheses, the tail.

    Shape, opcode and operands are cut where they end if they are what they seem: whoever reads them looks each up among
    what is known, and finds out. Asking only for the character at which a part ends takes a fraction of the time of asking
    each character whether it belongs there. Without `bounded` that character is looked for beyond the line too, which is
    for those who stop where the first line does not fit: for others it could take long, each time.
    """
    line_end = r"\n" if bounded else ""
    name = grammar.terminals()["IDENTIFIER"] if mark else bare_name()
    operands = rf"{mark}([^){line_end}]*+)" if mark else rf"({name}(?:, {name})*+)(?=\))"
    inner = rf"{_PLAIN}(?=\))|{_PLAIN}(?:\({_PLAIN}(?:\({_PLAIN}\){_PLAIN})*+\){_PLAIN})*+"
    opcode = rf"[^({line_end}]*+"
    # A tuple's shape ends at the parenthesis that an opcode follows.
    head = rf"[a-z][^ {line_end}]*+ {opcode}|\((?:[^)\n]*+\)(?! [a-z]))*+[^)\n]*+\) {opcode}"
    line = r".*+" if indent.startswith("\n") else r"[^\r\n]*+"
    # Names that start with "__" are left to the grammar, whose checks say which of them are allowed.
    return re.compile(
        rf"{re.escape(indent)}(?:{mark}|(ROOT ){mark})((?!__){name}) = ({head})\((?:{operands}|({inner}))\)({line})"
    )


@functools.cache
def computation_header() -> re.Pattern[str]:
    """The line that opens a computation. Groups: ENTRY, name, signature with the brace behind it, brace without one."""
    name = rf"%{grammar.terminals()['IDENTIFIER']}|{bare_name()}"
    return re.compile(rf"(ENTRY )?+({name}) (?:(\([^\r\n]*+(?<= \{{))|(\{{))(?=\r?$)", re.MULTILINE)


@functools.cache
def plain_header(*, behind_brace: bool = False) -> re.Pattern[str]:
    """A header as XLA writes most, with the empty line before it: all parameters are arrays of known sizes without layouts.

    With `behind_brace` also with the end of the computation before it. Groups: ENTRY, name, result. What it matches,
    `computation_header` matches too; it saves a second look at the signature.
    """
    identifier = grammar.terminals()["IDENTIFIER"]
    number = "[0-9]{1,18}+"
    array = rf"[a-z][a-z0-9_]*+\[(?:\]|{number}(?:,{number})*+\])"
    parameter = rf"{identifier}: {array}"
    brace = r"\n\}" if behind_brace else ""
    return re.compile(
        rf"{brace}\n\n(ENTRY )?+%({identifier}) \((?:{parameter}(?:, {parameter})*+)?\) -> ([^\r\n]*) \{{(?=\n  [%R])"
    )


@functools.cache
def signature_parameter() -> re.Pattern[str]:
    """One parameter of a signature with what stands behind it. Groups: shape, separator."""
    array = r"[a-z][a-z0-9_]*+\[[0-9,<=?]*+\](?:\{[^{}]*+\})?+"
    name = grammar.terminals()["IDENTIFIER"]
    return re.compile(rf"{name}: ({_parentheses(_SHAPE_DEPTH)}|{array})(, |\) -> )")


@functools.cache
def computation_end() -> re.Pattern[str]:
    """The brace that closes a computation, and its thread."""
    return re.compile(rf"\r?\n\}}(?:, execution_thread=({quoted()}))?(?=\r?$)", re.MULTILINE)


@functools.cache
def indentation() -> re.Pattern[str]:
    """Line end and blanks before an op line."""
    return re.compile(r"\r?\n *")


@functools.cache
def blank() -> re.Pattern[str]:
    """Everything that may stand between two tokens."""
    terminals = grammar.terminals()
    return re.compile(f"(?:{terminals['WHITESPACE']}|{terminals['COMMENT']})*")


@functools.cache
def block_comment() -> re.Pattern[str]:
    """Comments of the form `/*...*/`."""
    return re.compile(grammar.terminals()["COMMENT"].split("|", 1)[0])


@functools.cache
def declared_operand() -> re.Pattern[str]:
    """An operand with its shape written before it. Groups: shape, name."""
    name = grammar.terminals()["IDENTIFIER"]
    return re.compile(rf"({_parentheses(_SHAPE_DEPTH)}|[a-z]\S*+) %?({name})(?:, |$)")
