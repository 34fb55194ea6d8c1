"""Classes of the words of HLO text: one table, from which the Pygments lexer and the TextMate grammar are made.

The rules are tried in their order at each place. They colour and never judge, and keep no state beyond a line, as dumps are.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir.values.types import ELEMENT_TYPES

_NAME = r"%?[A-Za-z_][\w.\-]*"
_TYPES = "|".join(sorted(ELEMENT_TYPES, key=len, reverse=True))

COMMENT = r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\n]*"
RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (COMMENT, ("Comment",)),
    (r'"(?:[^"\\\n]|\\.)*"', ("String",)),
    (r"(?:HloModule|ENTRY|ROOT)\b", ("Keyword",)),
    (r"(?:FileNames|FunctionNames|FileLocations|StackFrames)\b", ("Keyword",)),
    (rf"({_NAME})([ \t]*)(=)(?=[ \t])", ("Name.Variable", "Text", "Operator")),
    (r"([A-Za-z_][\w.\-]*)(=)", ("Name.Attribute", "Operator")),
    (rf"(?:{_TYPES})(?=\[)", ("Keyword.Type",)),
    (r"[A-Za-z_][\w\-]*(?=\()", ("Name.Function",)),
    (r"%[A-Za-z_][\w.\-]*", ("Name.Variable",)),
    (r"(?:inf|nan|true|false)\b", ("Keyword.Constant",)),
    (r"-?\d+\.?\d*(?:[eE][+\-]?\d+)?(?![\w.\-])", ("Number",)),
    (r"[A-Z](?=\()", ("Keyword.Pseudo",)),
    (r"->|<=|[=*#]", ("Operator",)),
    (r"[{}()\[\],:;<>|@\$]", ("Punctuation",)),
    (r"[A-Za-z_][\w.\-]*", ("Name",)),
)
"""An expression, and the class of its match, or of each of its groups; everything else is text."""

SCOPES = {
    "Comment": "comment.block.hlo",
    "String": "string.quoted.double.hlo",
    "Keyword": "keyword.control.hlo",
    "Name.Variable": "variable.other.hlo",
    "Operator": "keyword.operator.hlo",
    "Name.Attribute": "entity.other.attribute-name.hlo",
    "Keyword.Type": "storage.type.hlo",
    "Name.Function": "entity.name.function.hlo",
    "Keyword.Constant": "constant.language.hlo",
    "Number": "constant.numeric.hlo",
    "Keyword.Pseudo": "storage.modifier.hlo",
    "Punctuation": "punctuation.hlo",
    "Name": "constant.other.hlo",
}
"""The TextMate scope of each class, by the names that colour themes know."""


def textmate_grammar() -> dict[str, Any]:
    """Returns the TextMate grammar of HLO, as in `hlo.tmLanguage.json`."""
    patterns: list[dict[str, Any]] = [
        # An engine sees one line at a time, so that a comment of several lines has a beginning and an end.
        {"name": SCOPES["Comment"], "begin": r"/\*", "end": r"\*/"},
        {"name": "comment.line.double-slash.hlo", "match": "//.*$"},
    ]
    for expression, classes in RULES[1:]:
        if len(classes) == 1:
            patterns.append({"name": SCOPES[classes[0]], "match": expression})
        else:
            captures = {str(n): {"name": SCOPES[c]} for n, c in enumerate(classes, 1) if c in SCOPES}
            patterns.append({"match": expression, "captures": captures})
    return {
        "name": "HLO",
        "scopeName": "source.hlo",
        "fileTypes": ["hlo"],
        "firstLineMatch": "^HloModule ",
        "patterns": patterns,
    }
