"""`hlotext message`: messages of compilers in a log."""

from __future__ import annotations

import os
from typing import Any

import attrs
import click

from hlotext import dumps, messages
from hlotext.analysis import SourceLocation, SourceLocations, byte_text
from hlotext.cli.common import FORMAT, NotFound, Unreadable, limit_option, write_json
from hlotext.cli.folders import opened
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output, output
from hlotext.findings.errors import HloSyntaxError
from hlotext.syntax.source.inputs import InputError, decode, read_data

_LIMIT = 12
_CHIP_MEMORY = ("hbm", "vmem", "smem")
_FACTS = {
    "from": "from sharding",
    "to": "to sharding",
    "size": "axis size",
    "mlir": "MLIR operation",
    "source": "in XLA",
    "what": "needed for",
}
"""Titles of facts whose names do not say it."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--dump", metavar="DIR", help="Dump folder of the program, for Python lines of the instructions named."
)
@limit_option(_LIMIT, "allocations")
@FORMAT
def command(files: tuple[str, ...], dump: str | None, limit: int, output_format: str) -> None:
    """Explain messages of XLA compilers and JAX in logs (prefixes, tracebacks and JSON lines are fine):
    out of memory, rematerialization, kernels, donation, shardings, slow compilations, cache keys.

    \b
    Examples:
      hlotext message oom.txt
      hlotext message train.log --format json
      hlotext message oom.txt --dump dumps/
      kubectl logs pod | hlotext message -

    Exit status: 0 success, 1 no message, 2 unreadable input.
    """
    documents = []
    lines = _Lines(opened(dump)) if dump is not None else None
    report = output()
    total = 0
    for place in files:
        try:
            data, name = read_data(place)
        except InputError as error:
            more = (
                "" if os.path.lexists(place) else "; `hlotext message -` reads a message from standard input"
            )
            raise Unreadable(f"{error}{more}") from None
        found = messages.read(data if isinstance(data, str) else decode(data))
        if lines is not None:
            found = messages.Messages(tuple(map(lines.added, found)))
        total += len(found)
        if output_format == "json":
            documents.append({"file": name, "messages": [_json(message) for message in found]})
            continue
        for message in found:
            _show(report, name, message, limit)
    if output_format == "json":
        write_json({"files": documents})
    if not total:
        raise NotFound(f"no known compiler message in {', '.join(files)}")


class _Lines:
    """Python lines of instructions, from the last texts of each compilation of a dump."""

    def __init__(self, folder: dumps.DumpFolder) -> None:
        self._folder = folder
        self._locations: dict[dumps.Step, SourceLocations] = {}

    def added(self, message: messages.Message) -> messages.Message:
        """The message with the lines of what it names; where the dump does not hold that, as it is."""
        memory = message.memory
        if memory is not None:
            rows = (
                attrs.evolve(row, file=place.file, line=place.line)
                if row.file is None and (place := self._place(message.module, row.instruction, row.op_name))
                else row
                for row in memory.allocations
            )
            message = attrs.evolve(message, memory=attrs.evolve(memory, allocations=tuple(rows)))
        place = self._place(message.module, message.instruction, message.op_name)
        if place is None:
            return message
        return attrs.evolve(message, file=place.file, line=place.line, is_call=False)

    def _place(self, module: str | None, name: str | None, op_name: str | None) -> SourceLocation | None:
        if name is None:
            return None
        for compilation in self._folder.compilations:
            if module is not None and compilation.name != module:
                continue
            for step in compilation.steps[: -_LAST - 1 : -1]:
                try:
                    one = step.module.instruction(name)
                except (InputError, HloSyntaxError, KeyError):
                    continue
                if op_name in (None, one.metadata.op_name if one.metadata else None):
                    return self._locations.setdefault(step, SourceLocations()).place(one)
        return None


_LAST = 3
"""Texts of a compilation that are searched, the last ones: messages name what the compiler has then."""


def _show(report: Output, place: str, message: messages.Message, limit: int) -> None:
    report.heading(f"{place}: {message.kind}")
    where = f"{message.file}:{message.line}" if message.file and message.line else None
    frame = f"{message.stack_frame_id}, in the tables of the module" if message.stack_frame_id else None
    known = [
        ("message", message.text),
        ("status", " ".join(filter(None, (message.status, message.code))) or None),
        ("module", message.module),
        ("instruction", message.instruction),
        ("shape", message.shape),
        ("op_name", message.op_name),
        ("compiled at" if message.is_call else "source", where),
        ("stack frame", frame),
    ]
    facts = [(title, text) for title, text in known if text]
    facts += [
        (_FACTS.get(key, key.replace("_", " ")), ", ".join(value) if isinstance(value, list) else str(value))
        for key, value in message.facts.items()
        if not isinstance(value, dict)
    ]
    memory = message.memory
    if memory is not None:
        space = (
            f" of {memory.space.upper() if memory.space in _CHIP_MEMORY else memory.space}"
            if memory.space
            else ""
        )
        sizes = (
            ("requested", memory.used),
            ("available", memory.capacity),
            ("over by", memory.must_go),
            ("program", memory.program),
            ("arguments", memory.arguments),
            ("output", memory.output),
            ("donated", memory.shared),
        )
        facts += [(title, f"{byte_text(size)}{space}") for title, size in sizes if size is not None]
    helps = messages.remedies(message) or ("none known: hlotext does not explain this message",)
    facts += [("remedy", text) for text in helps]
    report.facts(facts)
    if message.kind == "cache-key":
        parts = message.facts["parts"]
        key: Listing[tuple[str, str]] = Listing("message.key_parts", tuple)
        report.table(key.table(f"{len(parts)} parts", list(parts.items())))
    if memory is not None and memory.allocations:
        _show_allocations(report, memory, limit)


def _show_allocations(report: Output, memory: messages.Memory, limit: int) -> None:
    def row(one: messages.ListedAllocation) -> Row:
        source = f"{one.file}:{one.line}" if one.file and one.line else one.op_name
        return one.size, one.unpadded, one.shape, one.instruction, source, one.kind

    listing = Listing("message.allocations", row)
    report.table(listing.table("Largest allocations", memory.allocations, limit))
    if memory.is_cut:
        report.note("the log ends inside the table; rows may be missing")


def _whole(value: Any) -> Any:
    """Bytes as integers."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(one) for one in value]
    return round(value) if isinstance(value, float) else value


def _json(message: messages.Message) -> dict[str, Any]:
    memory = message.memory
    fields = attrs.asdict(message, recurse=False)
    del fields["remedy"]
    return {
        **fields,
        "memory": _whole({**attrs.asdict(memory), "must_go": memory.must_go}) if memory is not None else None,
        "facts": dict(message.facts),
        "remedies": list(messages.remedies(message)),
    }
