"""Where an instruction came from, and what else is attached to it without changing what it computes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hlotext.ir.enums import ResultAccuracyMode
from hlotext.ir.frames import StackFrame
from hlotext.ir.text import braced, quote, quote_unless_dict, short_float


@attrs.frozen
class Metadata:
    """`metadata=` (`OpMetadata`): the operation of the source program that an instruction implements.

    `str()` prints what is set, in XLA's order; see `is_printed` for whether XLA prints the attribute at all.
    """

    op_type: str = ""
    """The framework's operation, such as `MatMul`; empty when absent."""
    op_name: str = ""
    """The operation's name with its scopes: `jit(f)/while/body/dot_general`; empty when absent."""
    source_file: str = ""
    """Empty when absent, as in modules that hold stack-frame tables instead."""
    source_line: int = 0
    """Counted from 1; 0 when absent. So are the next three."""
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    profile_type: tuple[int, ...] = ()
    """Numbers of XLA's `ProfileType`."""
    deduplicated_name: str = ""
    """Name of the first of several equal computations; empty when absent."""
    scheduling_name: str = ""
    """Name that the scheduler uses; XLA writes it without escapes. Empty when absent."""
    stack_frame_id: int = 0
    """Row of the module's StackFrames table, counted from 1; 0 when absent."""
    metadata_payload: str | None = None
    """None when absent."""
    other_fields: tuple[tuple[str, str], ...] = ()
    """Fields that XLA no longer has, or does not yet have: name and the value's text, in the order given."""

    @property
    def is_printed(self) -> bool:
        """Whether XLA prints the attribute: only if one of its key fields is set."""
        return bool(
            self.op_type
            or self.op_name
            or self.source_file
            or self.scheduling_name
            or self.stack_frame_id
            or self.metadata_payload is not None
        )

    def with_frame(self, frame: StackFrame) -> Metadata:
        """The same with a frame's file, line and column in place of the frame's number."""
        return attrs.evolve(
            self, source_file=frame.file, source_line=frame.line, source_column=frame.column, stack_frame_id=0
        )

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


METADATA_FIELDS = frozenset(field.name for field in attrs.fields(Metadata)) - {"other_fields"}
"""Names of the fields that the text may hold."""


def metadata_from_fields(fields: Mapping[str, Any]) -> Metadata:
    """The metadata with these fields; those of unknown names (values as text) are kept in `other_fields`."""
    if fields.keys() <= METADATA_FIELDS:
        return Metadata(**fields)
    known = {name: value for name, value in fields.items() if name in METADATA_FIELDS}
    others = tuple((name, str(value)) for name, value in fields.items() if name not in METADATA_FIELDS)
    return Metadata(**known, other_fields=others)


@attrs.frozen(eq=False, repr=False)
class FrontendAttributes(Mapping[str, str]):
    """`frontend_attributes=`: notes of the front end, a read-only mapping: `{a="1",b={"k":1}}`.

    Printed sorted by key, a value raw where it lexes as a dict.
    """

    _entries: dict[str, str] = attrs.field(converter=dict)

    def __getitem__(self, key: str) -> str:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return f"FrontendAttributes({self._entries!r})"

    def __str__(self) -> str:
        entries = sorted(self._entries.items(), key=_by_bytes)
        return braced(f"{key}={quote_unless_dict(value)}" for key, value in entries)


def _by_bytes(entry: tuple[str, str]) -> bytes:
    return entry[0].encode("utf-8", "surrogateescape")


@attrs.frozen
class BackendConfig:
    """`backend_config=`: text that only the backend understands. `str()` is raw for a dict, else quoted."""

    text: str
    """Unescaped; for a dict byte for byte as it stood, braces included."""

    def json(self) -> Any:
        """The text as JSON (a dict gives a dict, and so on). Raises ValueError where it is none."""
        try:
            return json.loads(self.text)
        except RecursionError:
            raise ValueError("this backend_config nests too deep to be read as JSON") from None
        except ValueError as error:
            beginning = self.text if len(self.text) <= 40 else f"{self.text[:40]}..."
            raise ValueError(f"this backend_config is no JSON ({error}): {beginning}") from None

    def __str__(self) -> str:
        return quote_unless_dict(self.text)


@attrs.frozen
class Statistic:
    """One named number (`Statistic`)."""

    stat_name: str
    stat_val: float

    def __str__(self) -> str:
        return f"{self.stat_name}={short_float(self.stat_val)}"


@attrs.frozen
class Statistics:
    """`statistics=` (`StatisticsViz`), numbers to show in a picture: `{visualizing_index=0,count_nan=1}`."""

    stat_index_to_visualize: int = 0
    """Which of the statistics the picture shows, counted from 0."""
    statistics: tuple[Statistic, ...] = ()

    def __str__(self) -> str:
        # Without numbers the index means nothing, and XLA prints no attribute.
        if not self.statistics:
            return "{}"
        return braced((f"visualizing_index={self.stat_index_to_visualize}", *self.statistics))


@attrs.frozen
class Tolerance:
    """How far a result may lie from the exact one (`ResultAccuracy::Tolerance`)."""

    atol: float = 0.0
    """Absolute."""
    rtol: float = 0.0
    """Relative to the exact result."""
    ulps: int = 0
    """In units of the last place."""

    def __str__(self) -> str:
        return f"{{atol={short_float(self.atol)},rtol={short_float(self.rtol)},ulps={self.ulps}}}"


@attrs.frozen
class ResultAccuracy:
    """`result_accuracy=` (`ResultAccuracy`): `{mode=highest}`, `{tolerance={atol=0.1,rtol=1e-05,ulps=2}}`."""

    mode: ResultAccuracyMode = ResultAccuracyMode.DEFAULT
    tolerance: Tolerance | None = None
    """None where the mode says it."""

    def __str__(self) -> str:
        if self.tolerance is not None:
            return f"{{tolerance={self.tolerance}}}"
        # XLA prints no attribute for the default.
        return "{}" if self.mode is ResultAccuracyMode.DEFAULT else f"{{mode={self.mode}}}"
