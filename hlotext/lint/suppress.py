"""Findings that the text itself asks not to hear: comments, and an attribute that survives the compiler."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Source
from hlotext.ir.spelling import codes_meant, suggestion
from hlotext.lint.registry import current_code

COMMENT = re.compile(r"//[ \t]*hlotext:[ \t]*ignore(?:\[([A-Za-z0-9, \t]*)\]|[ \t]*(?=//|[\r\n]|\Z))")
"""`// hlotext: ignore[L101, C]` behind an op line or on the line before it; alone, without brackets, it means every code."""
_INTENDED = re.compile(
    r"//[ \t]*(?:hlotext|hlotxt|hlo[-_]text|hlotex|hltext)[ \t]*:[^\r\n/]*"
    r"|//[ \t]*(?:noqa|nolint|pylint|ruff|eslint-disable)\b[^\r\n/]*",
    re.IGNORECASE,
)
"""Comments that are meant for hlotext, rightly spelled or not, or in the form of another linter."""
_CODE = re.compile(r"\b[A-Za-z]\d\w*")
ATTRIBUTE = "hlotext_ignore"
"""The frontend attribute that holds codes, as in `frontend_attributes={hlotext_ignore="L101,C"}`."""


def is_suppressed(code: str, instruction: Instruction | None, source: Source | None, offset: int) -> bool:
    """True if the text suppresses a code, for an instruction or for the line around an offset."""
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


def notes_on_comments(source: Source, known: Collection[str]) -> Iterator[str]:
    """Yields a sentence for each comment without effect, because it is misspelled or names an unknown code."""
    if "//" not in source.text:
        return
    for match in _INTENDED.finditer(source.text):
        line, comment = source.position(match.start())[0], match[0].rstrip()
        read = COMMENT.match(source.text, match.start())
        if read is None:
            codes = ", ".join(_CODE.findall(comment)).upper() or "CODE"
            yield f"line {line}: {comment!r} hides nothing; write `// hlotext: ignore[{codes}]`"
            continue
        for word in _words(read[1] or ""):
            if not any(code.startswith(current_code(word)) for code in known):
                meant = suggestion(codes_meant(word, known)) or "`hlotext help rule` lists all"
                yield f"line {line}: {comment!r} names {word}, which is not a rule code; {meant}"


def _comment_names(text: str, code: str) -> bool:
    if "hlotext" not in text:
        return False
    return any(match[1] is None or _names(match[1], code) for match in COMMENT.finditer(text))


def _names(codes: str, code: str) -> bool:
    return any(code.startswith(current_code(word)) for word in _words(codes))


def _words(codes: str) -> list[str]:
    return codes.upper().replace(",", " ").split()
