"""Records that the grammar's builders pass to the linker: the structure of the text, with unresolved names."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.shape import Shape
from hlotext.syntax.language import patterns
from hlotext.syntax.language.boundaries import is_behind

# Offsets are in the text that was read. Records are neither compared nor shown, and classes without that are made in a third
# of the time, which counts whenever hlotext is imported.


@attrs.frozen(eq=False, repr=False)
class ComputationReference:
    """A reference to a computation in an attribute: `to_apply=%add`."""

    name: str
    """Without `%`."""
    position: int = 0


@attrs.frozen(eq=False, repr=False)
class InstructionReference:
    """A reference to an instruction in an attribute: `control-predecessors={%a}`."""

    name: str
    """Without `%`."""
    position: int = 0


@attrs.frozen(eq=False, repr=False)
class ParsedAttribute:
    """An attribute of an op line or of the module header."""

    name: str
    """As it stands in the text, without `=`; the known name for the spelling of another release."""
    value: Any
    """Its typed value; references for computations and instructions, `RawValue` for what is not known."""
    position: int = 0


@attrs.frozen(eq=False, repr=False)
class OperandRecord:
    """An operand: a name, a nested operation, or only a shape."""

    shape: Shape | None
    """The shape written before it; None when absent."""
    name: str | None
    """Name without `%`; None for a nested operation and for a lone shape."""
    indices: tuple[int, ...] = ()
    """Tuple indices written behind the name: `%t#0#1`."""
    operation: OperationRecord | None = None
    """The operation written in place; None when absent."""
    position: int = 0


@attrs.frozen(eq=False, repr=False)
class OperationRecord:
    """Opcode and argument or operands of an op line."""

    opcode: str
    operands: tuple[OperandRecord, ...] = ()
    argument: Any = None
    """The number of a `parameter`; where a `constant`'s literal starts and ends in the text; else None."""
    shape: Shape | None = None
    """Result shape; None when omitted."""
    position: int = 0


@attrs.frozen(eq=False, repr=False)
class InstructionRecord:
    """A parsed op line."""

    name: str
    """Name without `%`; empty for a pasted op line that has none."""
    operation: OperationRecord
    attributes: tuple[ParsedAttribute, ...]
    is_root: bool
    start: int
    """Offsets of its first character and behind its last one."""
    end: int
    is_bare: bool = False
    """True where the name is written without `%`."""


@attrs.frozen(eq=False, repr=False)
class InlineBody:
    """A computation's body in place of its name: `to_apply={ ... }`."""

    instructions: tuple[InstructionRecord, ...]
    position: int = 0
    end: int = 0
    depth: int = 1
    """Levels of inline bodies, this one included."""


@attrs.frozen(eq=False, repr=False)
class SignatureRecord:
    """The result shape in a computation's header; its parameters are disregarded."""

    result: Shape
    position: int = 0
    """Offset behind the arrow; blanks and comments may come before the result."""
    end: int = 0


@attrs.frozen(eq=False, repr=False)
class ComputationRecord:
    """A parsed computation."""

    name: str
    is_entry: bool
    signature: SignatureRecord | None
    instructions: tuple[InstructionRecord, ...]
    execution_thread: str
    start: int
    brace: int
    """Offset of the brace that opens the body."""
    end: int
    backend_config: BackendConfig | None = None


@attrs.frozen(eq=False, repr=False)
class SectionRecord:
    """A table between the header and the first computation."""

    name: str
    rows: tuple[Any, ...]
    """A string for each quoted row, a dict of numbers for each braced one."""
    position: int = 0
    end: int = 0


@attrs.frozen(eq=False, repr=False)
class ModuleRecord:
    """A parsed module."""

    name: str
    """Empty for a text without a header."""
    attributes: tuple[ParsedAttribute, ...]
    sections: tuple[SectionRecord, ...]
    computations: tuple[ComputationRecord, ...]
    start: int
    header_end: int
    """Offset behind the header and its tables."""
    end: int
    tables_start: int | None = None
    """Offset of the tables, with the blanks before them; None without any."""


@attrs.frozen(eq=False, repr=False)
class PartialRecord:
    """Records of a text up to an error."""

    head: ModuleRecord | None = None
    """The header; None if the error stands in it, or the text has none."""
    computations: tuple[ComputationRecord, ...] = ()
    """The computations before the one with the error."""
    unfinished: ComputationRecord | None = None
    """The computation with the error, as far as it was read; None if the error stands before its brace."""
    instructions: tuple[InstructionRecord, ...] = ()
    """The op lines before the error, of a text that began inside a computation."""

    def end_of_computations(self, text: str, end: int) -> int | None:
        """Returns the end of the last computation if only text after it failed to parse; None for a real error."""
        if not self.computations or self.unfinished is not None:
            return None
        position: int = self.computations[-1].end
        following = patterns.blank().match(text, position, end)
        start = position if following is None else following.end()
        return position if is_behind(text, start, end) else None
