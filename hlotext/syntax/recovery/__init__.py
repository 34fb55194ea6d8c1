"""Reading on behind errors: the fast reader for texts that may be broken anywhere, and what it gives.

Nothing below may import it: a text is read as if it were right, and only then again by this.
"""

from __future__ import annotations

import attrs

from hlotext.findings.finding import Diagnostic
from hlotext.ir.nodes.module import Module


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
