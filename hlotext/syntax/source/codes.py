"""Every code of the readers: what it means, in one line each. The documentation prints this table."""

from __future__ import annotations

from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity

CODES: dict[str, str] = {
    "X101": "a token that cannot stand here",
    "X102": "an operand that is not defined, or not yet",
    "X103": "duplicate instruction name in a computation",
    "X104": "a computation that is not defined",
    "X105": "two computations of one name",
    "X106": "two ROOT instructions in a computation",
    "X107": "two ENTRY computations in a module",
    "X108": "a wrong number of operands",
    "X109": "an attribute that the opcode does not have",
    "X110": "a required attribute that is missing",
    "X111": "an attribute that is given twice",
    "X112": "an attribute whose value cannot be read, or contradicts the instruction",
    "X113": "a computation's signature that contradicts its root",
    "X114": "an operand's declared shape that contradicts its definition",
    "X115": "parameter numbers that are not 0, 1, 2, ...",
    "X116": "a name that is not allowed",
    "X117": "a result shape that is left out and cannot be inferred",
    "X118": "a literal that cannot be read, or contradicts its shape",
    "X119": "an alias or donation that names what is not there",
    "X120": "asynchronous instructions that do not belong together",
    "X121": "a control predecessor that is not defined",
    "X122": "a module without a computation, or a computation without an instruction",
    "X123": "not HLO text",
    "X124": "nesting beyond the limit",
    "X201": "an opcode that this release does not know",
    "X202": "an element type that this release does not know",
    "X203": "an attribute that this release does not know",
    "X204": "an enumerator that this release does not know",
    "X205": "a table that this release does not know",
    "X206": "text that belongs to no module",
    "X207": "a control predecessor that a compact text leaves out",
    "X208": "a form that only older XLA reads",
}
"""X1xx: errors, the text cannot be HLO. X2xx: notes, kept as they stand; errors when reading strictly."""

RULES: dict[str, Code] = {
    name: Code(name, Severity.NOTE if name.startswith("X2") else Severity.ERROR, title)
    for name, title in CODES.items()
}
"""The same as `Code`s."""
