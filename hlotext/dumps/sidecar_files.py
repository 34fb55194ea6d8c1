"""Readers of side files: options, passes with times, the device, fusion decisions, autotuning, transfers.

All are read without schemas, so a field that XLA renames is None or empty here, never an error. A truncated file yields its
readable part.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

import attrs

from hlotext.textproto import TextMessage, TextProtoError, parse

_OPTION = re.compile(r"(?:--)?(?P<name>[A-Za-z_]\w*)\s*[:=]\s*(?P<value>.*?)\s*$")


def read_proto(text: str) -> tuple[TextMessage, str]:
    """Parses a text-format proto. Returns the message, and a description of the error; empty if there is none."""
    try:
        return parse(text), ""
    except TextProtoError as error:
        return error.message, str(error)


# ---- options


@attrs.frozen
class Options:
    """Compile options and target device of a module."""

    debug: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Debug options that differ from their defaults: the values of each option, one per occurrence."""
    target: TextMessage | None = None
    """GPU and software versions (`GpuTargetConfigProto`), or None if not dumped."""
    config: TextMessage | None = None
    """Configuration of the module (`HloModuleConfigProto`), or None if not dumped."""

    def last(self, name: str) -> str | None:
        """Returns the last value of a debug option, or None if it has its default."""
        values = self.debug.get(name)
        return values[-1] if values else None

    @property
    def dumps_every_change(self) -> bool | None:
        """True if passes without a dump are known to have changed nothing, or None if the options were not dumped.

        This requires `xla_dump_hlo_pass_re=.*`. With any other expression, exactly the matching passes are dumped,
        whether or not they changed the module.
        """
        if not self.debug:
            return None
        return self.last("xla_dump_hlo_pass_re") == ".*"


def read_options(text: str, *, quotes: bool = False) -> dict[str, tuple[str, ...]]:
    """Parses a `debug_options` or flag file with one option per line, collecting repeated ones; `quotes` keeps quotes."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        match = _OPTION.match(line.strip())
        if match is not None:
            value = match["value"]
            quoted = len(value) >= 2 and value[0] == value[-1] == '"'
            found.setdefault(match["name"], []).append(value[1:-1] if quoted and not quotes else value)
    return {name: tuple(values) for name, values in found.items()}


# ---- passes


@attrs.frozen
class PassRun:
    """One execution of a pass, from `HloModuleMetadataProto.pass_metadata`."""

    number: int | None
    name: str
    pipeline: str
    dumps: tuple[str, ...]
    """Base names of the files that the pass dumped."""
    changed: bool
    """True if the pass reported a change."""
    start: int | None
    """Start in microseconds since 1970, or None if unknown."""
    end: int | None
    metrics: tuple[tuple[str, int], ...] = ()
    """Statistics reported by the pass, by name."""

    @property
    def milliseconds(self) -> float | None:
        """Execution time in milliseconds, including nested passes, or None if unknown."""
        return None if self.start is None or self.end is None else (self.end - self.start) / 1000


def pass_runs(metadata: TextMessage) -> tuple[PassRun, ...]:
    """Returns all executed passes, in order of their start."""
    return tuple(
        PassRun(
            row.integer("pass_id"),
            row.text("pass_name") or "",
            row.text("pipeline_name") or "",
            tuple(posixpath.basename(name.replace("\\", "/")) for name in row.texts("dump_filenames")),
            row.flag("module_changed") is True,
            row.integer("start_timestamp_usec"),
            row.integer("end_timestamp_usec"),
            tuple((m.text("key") or "", m.integer("value") or 0) for m in row.messages("kv_metrics")),
        )
        for row in metadata.messages("pass_metadata")
    )


# ---- fusion


@attrs.frozen
class FusionStep:
    """A decision of GPU's priority fusion (`FusionStep`)."""

    kind: str
    """`fusion`, `update_priority` or `producer_ineligible`."""
    producer: str
    consumers: tuple[str, ...] = ()
    fusion: str | None = None
    """The fusion that came of it."""
    reason: str | None = None
    """Why a producer cannot be fused."""
    microseconds_fused: float | None = None
    """The cost model's time for both fused; None if it was not queried."""
    microseconds_unfused: float | None = None


def fusion_steps(dump: TextMessage) -> Iterator[FusionStep]:
    """Yields the decisions in a `FusionProcessDumpProto`, in order."""
    for step in dump.messages("fusion_steps"):
        for kind in ("fusion", "update_priority", "producer_ineligible"):
            for row in step.messages(kind):
                yield FusionStep(
                    kind,
                    row.text("producer_name") or "",
                    row.texts("consumer_name") or row.texts("consumer_names"),
                    row.text("fusion_name"),
                    row.text("reason"),
                    row.number("us_fused"),
                    row.number("us_unfused"),
                )


# ---- tuning and transfers


@attrs.frozen
class AutotuneResult:
    """An autotuning result (`AutotuneResults.Entry`)."""

    device: str | None
    hlo: str | None
    """The operation that was tuned, as text."""
    result: TextMessage


def autotune_results(results: TextMessage) -> tuple[AutotuneResult, ...]:
    """Returns the autotuning results; empty if there was no device."""
    return tuple(
        AutotuneResult(row.text("device"), row.text("hlo"), row.message("result"))
        for row in results.messages("results")
    )


@attrs.frozen
class HostTransfer:
    """A transfer between a TPU and its host."""

    channel: int | None
    direction: str
    """`DEVICE_TO_HOST` or `HOST_TO_DEVICE`; "" if unknown."""
    key: str | None
    handler: str | None
    buffer_offset: int | None
    """Offset of the array in the buffer shared by host and device, in bytes."""


def host_transfers(transfers: TextMessage) -> tuple[HostTransfer, ...]:
    """Returns the transfers, in file order."""
    return tuple(
        HostTransfer(
            row.integer("channel"),
            row.text("direction") or "",
            row.text("key"),
            row.text("host_handler_name"),
            row.integer("buffer_offset"),
        )
        for row in transfers.messages("host_transfers")
    )
