"""Why an edit was refused."""

from __future__ import annotations


class EditError(ValueError):
    """An edit that would leave a cycle, a dangling use or a broken type; nothing was changed."""
