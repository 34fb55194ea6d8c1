"""How edits learn what is a well-typed instruction: shape inference belongs to a room above and installs itself here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotext.ir.instruction import Instruction

TypeCheck = Callable[["Instruction"], "str | None"]
"""What is wrong with an instruction's types, in a sentence; None where nothing is, or nothing can be said."""

_installed: list[TypeCheck] = []


def install(check: TypeCheck) -> None:
    """Makes this the check of every edit; `hlotext` does so when it is imported."""
    _installed[:] = [check]


def type_problem(instruction: Instruction) -> str | None:
    """What the installed check says of an instruction; None before one is installed."""
    return _installed[0](instruction) if _installed else None
