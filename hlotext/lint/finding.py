"""What a rule has to say about a module."""

from __future__ import annotations

import attrs

from hlotext.findings.diagnostic import Diagnostic
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.frames import StackFrame


@attrs.frozen
class Finding:
    """One thing found in one module. Plain values but for `instruction`, so that it can go from process to process."""

    code: str
    """The rule's: `C101`."""
    rule: str
    """The rule's name in words: `all-gather-in-loop`."""
    severity: Severity
    message: str
    """What is wrong, in one sentence without a full stop."""
    help: str = ""
    """What to do about it; empty when there is nothing to say."""
    file: str = "<text>"
    line: int = 1
    """Line and column (from 1) where it starts; for what is about the whole module, its header. So are the next three."""
    column: int = 1
    end_line: int = 1
    end_column: int = 1
    module: str = ""
    """The module's name; empty where there is none. So are the next two."""
    name: str = ""
    """The instruction's name."""
    computation: str = ""
    op_name: str = ""
    """The operation of the source program, with its scopes."""
    frame: StackFrame | None = None
    """The innermost Python frame that it is there for; None where the text names none."""
    bytes: int | None = None
    """How many bytes it costs each time the module runs; None where there is no such estimate."""
    flops: int | None = None
    """How many floating-point operations it is about each time the module runs; None where there is no such estimate."""
    source_line: str = ""
    """The text of the line, cut where it is long."""
    fingerprint: str = ""
    """Equal for the same finding after renaming, renumbering, and in other metadata; see `fingerprints`."""
    instruction: Instruction | None = attrs.field(default=None, repr=False, eq=False)
    """The node; None for findings from other processes and about whole modules."""

    @property
    def place(self) -> str:
        """`file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    def detached(self) -> Finding:
        """The same without the node, and so without the module."""
        return attrs.evolve(self, instruction=None)


LONGEST_LINE = 400
"""Characters of a line that a finding keeps."""


def from_diagnostic(diagnostic: Diagnostic, rule: str) -> Finding:
    """What a reader or the verifier found, as a finding."""
    span, instruction = diagnostic.span, diagnostic.instruction
    frames = instruction.frames if instruction is not None else ()
    computation = instruction.computation if instruction is not None else None
    metadata = instruction.metadata if instruction is not None else None
    return Finding(
        code=diagnostic.code,
        rule=rule,
        severity=diagnostic.severity,
        message=diagnostic.message,
        help=diagnostic.help,
        file=diagnostic.source.name if diagnostic.source is not None else "<text>",
        line=span.line,
        column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        name=instruction.name if instruction is not None else "",
        computation=computation.name if computation is not None else "",
        op_name=metadata.op_name if metadata is not None else "",
        frame=frames[0] if frames else None,
        source_line=diagnostic.source_line[:LONGEST_LINE],
        instruction=instruction,
    )
