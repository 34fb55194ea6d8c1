"""Every code of the readers: what it means, in one line each. The documentation prints this table."""

from __future__ import annotations

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity

CODES: dict[str, str] = {
    "X101": "unexpected token",
    "X102": "undefined operand, or used before its definition",
    "X103": "duplicate instruction name in a computation",
    "X104": "undefined computation",
    "X105": "duplicate computation name",
    "X106": "more than one ROOT instruction in a computation",
    "X107": "more than one ENTRY computation in a module",
    "X108": "wrong number of operands",
    "X109": "attribute not allowed for this opcode",
    "X110": "missing required attribute",
    "X111": "duplicate attribute",
    "X112": "invalid attribute value, or one that contradicts the instruction",
    "X113": "computation signature does not match its root",
    "X114": "operand shape does not match its definition",
    "X115": "parameter numbers are not 0, 1, 2, ...",
    "X116": "reserved name",
    "X117": "omitted result shape cannot be inferred",
    "X118": "invalid literal, or one that does not match its shape",
    "X119": "alias or donation refers to a missing buffer",
    "X120": "mismatched asynchronous start, update and done",
    "X121": "undefined control predecessor",
    "X122": "empty module or computation",
    "X123": "not HLO text",
    "X124": "nesting too deep",
    "X201": "unknown opcode",
    "X202": "unknown element type",
    "X203": "unknown attribute",
    "X204": "unknown enumerator",
    "X205": "unknown table",
    "X206": "text outside any module",
    "X207": "control predecessor omitted by compact printing",
    "X208": "syntax that only older XLA accepts",
}
"""X1xx: errors, the text cannot be HLO. X2xx: notes, kept as they stand; errors when reading strictly."""

RULES: dict[str, Code] = {
    name: Code(name, Severity.NOTE if name.startswith("X2") else Severity.ERROR, title)
    for name, title in CODES.items()
}
"""The same as `Code`s."""
