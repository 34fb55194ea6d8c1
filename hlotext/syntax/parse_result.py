"""What reading gives that does not stop at errors."""

from __future__ import annotations

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.syntax.diagnostic import Diagnostic


@attrs.frozen
class ParseResult:
    """What could be read of a text, and everything that is to be said about it."""

    module: Module
    """The (first) module."""
    diagnostics: tuple[Diagnostic, ...]
    """Errors and notes in the order of the text."""
    modules: tuple[Module, ...] = ()
    """All modules of the text."""
    left_out: int = 0
    """How many diagnostics more there were: of a text with more than 1,000 errors, or as many notes, the first are kept."""
