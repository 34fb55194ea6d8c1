"""A Pygments lexer of HLO text, for documentation, notebooks and terminals. Entry point `pygments.lexers`, alias `hlo`.

Text that is no HLO comes out as text.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Text, string_to_tokentype

from hlotext.view.highlighting import RULES


def _action(classes: tuple[str, ...]) -> Any:
    types = [string_to_tokentype(name) for name in classes]
    return types[0] if len(types) == 1 else bygroups(*types)


class HloLexer(RegexLexer):  # type: ignore[misc]
    """Pygments lexer for XLA's HLO text."""

    name = "HLO"
    aliases: ClassVar[list[str]] = ["hlo"]
    filenames: ClassVar[list[str]] = ["*.hlo", "*after_optimizations.txt", "*before_optimizations.txt"]
    url = "https://openxla.org/xla/operation_semantics"

    tokens: ClassVar[dict[str, object]] = {
        "root": [
            (r"[ \t\r\n]+", Text),
            *((expression, _action(classes)) for expression, classes in RULES),
            (r".", Text),
        ]
    }

    def analyse_text(text: str) -> float:  # noqa: N805 - Pygments makes a static method of it
        """Returns 1 if a text starts with a module's header, else 0."""
        return 1.0 if text.startswith("HloModule ") else 0.0
