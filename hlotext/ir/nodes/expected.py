"""The message for a value that was given in place of a module, with what makes a module of it."""

from __future__ import annotations

from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import with_article

misfits = late_module("hlotext.ir.misfits")  # only failures need it


def expect_module(value: object) -> None:
    """Raises TypeError for anything but a module; of paths and texts it says what reads them."""
    if not isinstance(value, Module):
        expect(value, Module)


def expect(value: object, kind: type) -> None:
    """Raises TypeError for a value of another type, with how it becomes one of this type."""
    if not isinstance(value, kind):
        hint = misfits.hint(value, kind)
        more = f"; {hint}" if hint else ""
        raise TypeError(f"expected {with_article(kind.__name__)}, not {type(value).__name__}{more}")
