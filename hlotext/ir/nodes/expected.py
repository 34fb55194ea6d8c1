"""The message for a value that was given in place of a module, with what makes a module of it."""

from __future__ import annotations

import os

from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import text_or_path, with_article


def expect_module(value: object) -> None:
    """Raises TypeError for anything but a module; of paths and texts it says what reads them."""
    if not isinstance(value, Module):
        raise TypeError(f"expected a Module, not {type(value).__name__}{_hint(value)}")


def expect(value: object, kind: type, hint: str = "") -> None:
    """Raises TypeError for a value of another type; `hint` says how a string becomes one of this type."""
    if not isinstance(value, kind):
        more = f"; {hint}" if hint and isinstance(value, str) else ""
        raise TypeError(f"expected {with_article(kind.__name__)}, not {type(value).__name__}{more}")


_READERS = {
    "text": "; hlotext.parse(text) reads it",
    "path": "; hlotext.load(path) reads a file",
    "": "; hlotext.load(path) reads a file, and hlotext.parse(text) reads text",
}


def _hint(value: object) -> str:
    if isinstance(value, str | bytes):
        kind = text_or_path(value) if isinstance(value, str) else "text"
        return _READERS[kind]
    if isinstance(value, os.PathLike):
        return _READERS["path"]
    if isinstance(getattr(value, "module", None), Module):
        return "; pass its .module"
    if callable(getattr(value, "as_text", None)):
        return "; hlotext.load(it) takes what JAX lowered or compiled"
    home = getattr(value, "computation", None)
    if isinstance(getattr(home, "module", None), Module):
        return "; pass its .computation.module"
    return "; the module is the first argument" if isinstance(value, list | tuple | dict) else ""
