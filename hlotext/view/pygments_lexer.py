"""A Pygments lexer of HLO text, for documentation, notebooks and terminals. Entry point `pygments.lexers`, alias `hlo`.

It colours and never judges: text that is no HLO comes out as text. Words are the grammar's, but the lexer is line-shaped, as
dumps are, and keeps no state beyond a line.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from hlotext.ir.values.types import ELEMENT_TYPES

_NAME = r"%?[A-Za-z_][\w.\-]*"
_TYPES = sorted(ELEMENT_TYPES, key=len, reverse=True)


class HloLexer(RegexLexer):  # type: ignore[misc]
    """XLA's HLO text."""

    name = "HLO"
    aliases: ClassVar[list[str]] = ["hlo"]
    filenames: ClassVar[list[str]] = ["*.hlo", "*after_optimizations.txt", "*before_optimizations.txt"]
    url = "https://openxla.org/xla/operation_semantics"

    tokens: ClassVar[dict[str, object]] = {
        "root": [
            (r"[ \t\r\n]+", Text),
            (r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\n]*", Comment),
            (r'"(?:[^"\\\n]|\\.)*"', String),
            (words(("HloModule", "ENTRY", "ROOT"), suffix=r"\b"), Keyword),
            (words(("FileNames", "FunctionNames", "FileLocations", "StackFrames"), suffix=r"\b"), Keyword),
            (rf"({_NAME})([ \t]*)(=)(?=[ \t])", bygroups(Name.Variable, Text, Operator)),
            (r"([A-Za-z_][\w.\-]*)(=)", bygroups(Name.Attribute, Operator)),
            (words(_TYPES, suffix=r"(?=\[)"), Keyword.Type),
            (r"[A-Za-z_][\w\-]*(?=\()", Name.Function),
            (r"%[A-Za-z_][\w.\-]*", Name.Variable),
            (r"(?:inf|nan|true|false)\b", Keyword.Constant),
            (r"-?\d+\.?\d*(?:[eE][+\-]?\d+)?(?![\w.\-])", Number),
            (r"[A-Z](?=\()", Keyword.Pseudo),
            (r"->|<=|[=*#]", Operator),
            (r"[{}()\[\],:;<>|@\$]", Punctuation),
            (r"[A-Za-z_][\w.\-]*", Name),
            (r".", Text),
        ]
    }

    def analyse_text(text: str) -> float:  # noqa: N805 - Pygments makes a static method of it
        """How sure it is that a text is HLO: certain of a module's header."""
        return 1.0 if text.startswith("HloModule ") else 0.0
