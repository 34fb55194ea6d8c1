"""Where an instruction came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.spelling import slip_of
from hlotext.ir.values.text import braced, quote
from hlotext.ir.values.value import Value

if TYPE_CHECKING:
    from hlotext.ir.values.frames import StackFrame


# Without slots, so that `of_source` can fill in what lies behind a frozen value.
@with_foreign_names
@attrs.frozen(repr=False, slots=False)
class Metadata(Value, Abbreviated):
    """`metadata=` (`OpMetadata`): the operation of the source program that an instruction implements.

    `str()` prints the fields that are set, in XLA's order. XLA prints the attribute only if `is_printed`.
    """

    op_type: str = ""
    """Operation of the framework, such as `MatMul`; empty if absent."""
    op_name: str = ""
    """Name of the operation with its scopes: `jit(f)/while/body/dot_general`; empty if absent."""
    source_file: str = ""
    """Source file; empty if absent, as in modules with stack-frame tables."""
    source_line: int = 0
    """Source line, from 1; 0 if absent."""
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    profile_type: tuple[int, ...] = ()
    """Numbers of XLA's `ProfileType`."""
    deduplicated_name: str = ""
    """Name of the first of several identical instructions, such as fusions; empty if absent."""
    scheduling_name: str = ""
    """Name used by the scheduler, printed without escapes as in XLA; empty if absent."""
    stack_frame_id: int = 0
    """Row in the module's StackFrames table, from 1; 0 if absent."""
    metadata_payload: str | None = None
    """Custom payload, or None if absent."""
    other_fields: tuple[tuple[str, str], ...] = ()
    """Names and value texts of fields unknown to this release, in text order."""

    @classmethod
    def of_source(cls, op_name: str, stack_frame_id: int) -> Metadata:
        """Creates `Metadata(op_name=..., stack_frame_id=...)` without the cost of the constructor, for readers."""
        made = object.__new__(cls)
        made.__dict__.update(_DEFAULTS, op_name=op_name, stack_frame_id=stack_frame_id)
        return made

    @property
    def is_printed(self) -> bool:
        """True if XLA prints the attribute, which requires that at least one of its main fields is set."""
        return bool(
            self.op_type
            or self.op_name
            or self.source_file
            or self.scheduling_name
            or self.stack_frame_id
            or self.metadata_payload is not None
        )

    @property
    def frame(self) -> StackFrame | None:
        """The frame given by file, line and column, in modules without stack-frame tables, or None without a file."""
        from hlotext.ir.values.frames import StackFrame  # most modules have tables, or no frames at all

        if not self.source_file:
            return None
        return StackFrame(
            self.source_file, "", self.source_line, self.source_column,
            self.source_end_line, self.source_end_column,
        )  # fmt: skip

    def with_frame(self, frame: StackFrame) -> Metadata:
        """Returns a copy with the file, line and column of a frame instead of a frame id."""
        return attrs.evolve(
            self, source_file=frame.file, source_line=frame.line, source_column=frame.column, stack_frame_id=0
        )

    def fields_meant(self) -> dict[str, str]:
        """Returns the fields that this release does not know, and the one that each is probably meant for.

        Fields that are like none are left out: a newer XLA may have them.
        """
        known = METADATA_FIELDS - {"is_printed"}
        meant = {
            name: _OTHER_FIELDS.get(name) or "".join(slip_of(name, known)) for name, _ in self.other_fields
        }
        return {name: field for name, field in meant.items() if field}

    def __str__(self) -> str:
        parts = []
        if self.op_type:
            parts.append(f"op_type={quote(self.op_type)}")
        if self.op_name:
            parts.append(f"op_name={quote(self.op_name)}")
        if self.source_file:
            parts.append(f"source_file={quote(self.source_file)}")
        if self.source_line:
            parts.append(f"source_line={self.source_line}")
        if self.source_end_line:
            parts.append(f"source_end_line={self.source_end_line}")
        if self.source_column:
            parts.append(f"source_column={self.source_column}")
        if self.source_end_column:
            parts.append(f"source_end_column={self.source_end_column}")
        if self.profile_type:
            parts.append(f"profile_type={braced(self.profile_type)}")
        if self.deduplicated_name:
            parts.append(f"deduplicated_name={quote(self.deduplicated_name)}")
        if self.scheduling_name:
            parts.append(f'scheduling_name="{self.scheduling_name}"')
        if self.stack_frame_id:
            parts.append(f"stack_frame_id={self.stack_frame_id}")
        if self.metadata_payload is not None:
            parts.append(f"metadata_payload={quote(self.metadata_payload)}")
        parts.extend(f"{name}={value}" for name, value in self.other_fields)
        return f"{{{' '.join(parts)}}}"


_DEFAULTS = vars(Metadata())

METADATA_FIELDS = frozenset(field.name for field in attrs.fields(Metadata)) - {"other_fields"}
"""Names of the fields that the text may hold."""


_OTHER_FIELDS = {
    "name": "op_name",
    "scope": "op_name",
    "type": "op_type",
    "file": "source_file",
    "filename": "source_file",
    "line": "source_line",
    "lineno": "source_line",
    "column": "source_column",
    "col": "source_column",
}
"""Names that people give to fields."""


def metadata_from_fields(fields: Mapping[str, Any]) -> Metadata:
    """Creates metadata from fields by name. Fields with unknown names are kept as text in `other_fields`."""
    if fields.keys() <= METADATA_FIELDS:
        return Metadata(**fields)
    known = {name: value for name, value in fields.items() if name in METADATA_FIELDS}
    others = tuple((name, str(value)) for name, value in fields.items() if name not in METADATA_FIELDS)
    return Metadata(**known, other_fields=others)
