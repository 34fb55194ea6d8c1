"""Terminals of the grammar in the reader's words, for "expected ..." messages."""

from __future__ import annotations

from collections.abc import Iterable

_WORDS = {
    "NAME": "a name",
    "TYPE": "a shape",
    "OPCODE": "an opcode with its operands",
    "CONSTANT": "an opcode with its operands",
    "PARAMETER": "an opcode with its operands",
    "BUFFER": "a shape",
    "ATTRIBUTE_NAME": "an attribute",
    "UNKNOWN_NAME": "an attribute",
    "INT": "an integer",
    "NUMBER": "a number",
    "STRING": "a string",
    "BOOL": "`true` or `false`",
    "WORD": "a word",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LPAREN": "`(`",
    "RPAREN": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "COLON": "`:`",
    "ROOT": "a name",
    "ENTRY": "a computation",
    "HLO_MODULE": "`HloModule`",
    "SECTION_NAME": "a computation",
    "LAYOUT_OPEN": "a layout",
    "TRAILING_COMMA": "`,`",
    "COMPACT_INDEX": "`#`",
    "UNBOUNDED": "a dimension",
    "BOUNDED": "a dimension",
    "EXECUTION_THREAD": "`execution_thread=`",
    "SIGNATURE_NAME": "a parameter's name",
    "OPAQUE_PIECE": "text inside braces",
    "$END": "the end of the text",
}


def expected_words(terminals: Iterable[str]) -> str:
    """A few words for a set of terminals: "`,`, a name or `}`"."""
    words: dict[str, None] = {}
    for terminal in sorted(terminals):
        if terminal.startswith("__") or terminal in ("COMMENT", "WHITESPACE"):
            continue
        if terminal.endswith("_ATTRIBUTE"):
            words["an attribute"] = None
        else:
            words[_WORDS.get(terminal, f"`{terminal.lower()}`")] = None
    found = list(words)
    if not found:
        return "something else"
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
