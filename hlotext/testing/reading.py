"""Whatever a test has in hand, as a module: what JAX compiled, text, a file."""

from __future__ import annotations

import os
from typing import Any

import hlotext as hlo
from hlotext import dumps
from hlotext.dumps.texts import compilation_of
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import text_or_path


def module_of(value: Any) -> Module:
    """Converts any supported object to a module.

    Args:
        value: An object lowered, compiled or exported by JAX, HLO text, bytes, a path, or a module. A single-line
            string that names an existing file, or looks like a path, is treated as one.

    Returns:
        The module.

    Raises:
        HloSyntaxError: The input is not valid HLO.
        InputError: The input cannot be read, or holds several modules.
        TypeError: The type of `value` is not supported.
    """
    if isinstance(value, Module):
        return value
    if isinstance(value, os.PathLike):
        return hlo.load(value, only=True)
    if isinstance(value, bytes):
        return hlo.load(value, only=True)
    if isinstance(value, str):
        is_path = text_or_path(value) == "path" or ("\n" not in value and os.path.isfile(value))
        return hlo.load(value, only=True) if is_path else hlo.parse(value, only=True)
    return hlo.load(value)


def beside(value: Any) -> dumps.Compilation | None:
    """Returns the compilation whose final HLO is at a path, or None for anything else."""
    if not isinstance(value, str | os.PathLike):
        return None
    path = os.fspath(value)
    if not isinstance(path, str) or "\n" in path or not os.path.isfile(path):
        return None
    return compilation_of(path)
