"""A mistake in words."""

from __future__ import annotations

import attrs


@attrs.frozen
class Mistake:
    """A description of a mistake. Offsets refer to the source; help may be empty."""

    message: str
    start: int
    end: int
    help: str = ""
    code: str = "X101"
    opened: int | None = None
    """Offset of a bracket that is not closed."""
