"""Findings that the text itself asks not to hear: comments, and an attribute that survives the compiler."""

from __future__ import annotations

import re

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Source
from hlotext.lint.registry import current_code

COMMENT = re.compile(r"//[ \t]*hlotext:[ \t]*ignore(?:\[([A-Z0-9, \t]*)\])?")
"""`// hlotext: ignore[L101, C]` behind an op line or on the line before it; without brackets it means every code."""
ATTRIBUTE = "hlotext_ignore"
"""The frontend attribute that holds codes, as in `frontend_attributes={hlotext_ignore="L101,C"}`."""


def is_suppressed(code: str, instruction: Instruction | None, source: Source | None, offset: int) -> bool:
    """True if the text asks not to hear of a code, at an instruction or at the line around an offset."""
    if instruction is not None:
        codes = instruction.frontend_attributes.get(ATTRIBUTE)
        if codes is not None and _names(codes, code):
            return True
    if source is None:
        return False
    if _comment_names(source.line_at(offset), code):
        return True
    start, _ = source.bounds_at(offset)
    above = source.line_at(start - 1).strip() if start else ""
    return above.startswith("//") and _comment_names(above, code)


def _comment_names(text: str, code: str) -> bool:
    if "hlotext" not in text:
        return False
    return any(match[1] is None or _names(match[1], code) for match in COMMENT.finditer(text))


def _names(codes: str, code: str) -> bool:
    return any(code.startswith(current_code(word)) for word in codes.replace(",", " ").split())
