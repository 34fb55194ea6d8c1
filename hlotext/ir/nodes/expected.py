"""The message for a value that was given in place of a module, with what makes a module of it."""

from __future__ import annotations

from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import with_article

misfits = late_module("hlotext.ir.misfits")  # only failures need it


def expect_module(value: object) -> None:
    """Raises TypeError unless the value is a Module. For a path or text, the message names the function that reads it."""
    if not isinstance(value, Module):
        expect(value, Module)


def expect(value: object, kind: type) -> None:
    """Raises TypeError unless the value is of a type. The message says how to convert it, if there is a known way."""
    if not isinstance(value, kind):
        hint = misfits.hint(value, kind)
        more = f"; {hint}" if hint else ""
        raise TypeError(f"expected {with_article(kind.__name__)}, not {type(value).__name__}{more}")
