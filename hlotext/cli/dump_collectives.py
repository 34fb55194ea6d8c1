"""`hlotext dump collectives`: why each collective is there, and which annotation would spare it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import SourceLocation, byte_text, source_locations
from hlotext.analysis.formatting import pluralize
from hlotext.cli.chip_options import place_text, told
from hlotext.cli.common import FORMAT, NotFound, Unreadable, limit_option, write_json
from hlotext.cli.folders import asked, chosen
from hlotext.cli.output import echo, output
from hlotext.dumps.collectives import wording
from hlotext.syntax.source.inputs import decode, read_data

_ROWS = 20


@click.command("collectives")
@click.argument("path", metavar="DIR")
@click.option("-i", "--instruction", "names", metavar="NAME", multiple=True, help="Only this collective.")
@click.option("-m", "--module", metavar="NAME|NUMBER", help="Compilation to use, if there are several.")
@click.option("--mesh", metavar="NAME=SIZE,...", help="Device mesh, major axis first: dp=2,tp=4.")
@click.option("--log", metavar="FILE", help="Log with partitioner warnings to match.")
@limit_option(_ROWS, "collectives")
@FORMAT
def command(
    path: str,
    names: tuple[str, ...],
    module: str | None,
    mesh: str | None,
    log: str | None,
    limit: int,
    output_format: str,
) -> None:
    """Explain why each collective is there, and how to avoid it.

    Shows the operation that needs it, the tensor that is moved, its sharding, the required sharding, the origin of
    both, and the savings and costs of changing one annotation; most bytes first. The mesh is read from the dump if
    Shardy did the partitioning; otherwise set --mesh.

    \b
    Examples:
      hlotext dump collectives dumps/
      hlotext dump collectives dumps/ --mesh dp=2,tp=4 -i all-gather.3

    Exit status: 0 success, 1 not found, 2 usage error or unreadable input.
    """
    c = chosen(path, module)
    found = told(lambda: asked(lambda: c.collectives(mesh)))
    if names:
        found = tuple(_named(found, name) for name in names)
    warnings = _warnings(found, log) if log is not None else {}
    if output_format == "json":
        documents = [{**cause_json(one), "warnings": warnings.get(one.instruction.name, [])} for one in found]
        write_json({"module": c.name, "mesh": mesh, "collectives": documents})
        return
    out = output()
    if not found:
        out.heading(f"{c.name}: no collectives")
        return
    for note in dict.fromkeys(note for one in found for note in one.notes):
        out.note(f"note: {note}")
    groups = wording.groups(found)
    shown = groups[: limit or None]
    for group in shown:
        _show(group, [text for one in group for text in warnings.get(one.instruction.name, [])])
    left = len(groups) - len(shown)
    if left:
        echo(f"  {left} more (--limit 0 shows all)")


def _named(found: Sequence[dumps.CollectiveCause], name: str) -> dumps.CollectiveCause:
    name = name.removeprefix("%")
    for one in found:
        if name in (one.instruction.name, one.communication.start.name):
            return one
    raise NotFound(f"no collective {name} in the final HLO")


def _warnings(found: Sequence[dumps.CollectiveCause], log: str) -> dict[str, list[str]]:
    """The sentences of the partitioner's warnings, by collective."""
    try:
        data, _ = read_data(log)
        text = data if isinstance(data, str) else decode(data)
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    told = dumps.collectives.warned(found, text)
    return {name: list(dict.fromkeys(one.text for one in messages)) for name, messages in told.items()}


def _show(group: Sequence[dumps.CollectiveCause], warnings: Sequence[str]) -> None:
    """One collective, and the names of those that are there for the same reason."""
    out = output()
    one = group[0]
    of = one.communication
    axes = dict.fromkeys(axis for reason in one.reasons for axis in reason.axes)
    place = place_text(_place(one))
    is_received = of.is_host_transfer and not of.operand_bytes
    bytes_ = of.result_bytes if is_received else of.wire_bytes
    size = "an unknown amount" if bytes_ is None else byte_text(bytes_)
    runs = "an unknown number of runs" if of.runs is None else pluralize(of.runs, "run")
    way = f"over the {of.link.value}" if of.is_host_transfer else f"along {wording.along(tuple(axes))}"
    out.heading(f"{one.instruction.name}: {of.kind} {way}")
    facts = [
        (
            "receives" if is_received else "sends",
            f"{size} {'on' if is_received else 'from'} each device, {runs}",
        ),
        *([("line", place)] if place else []),
    ]
    facts += wording.facts(one)
    facts += [("warned", text) for text in dict.fromkeys(warnings)]
    if len(group) > 1:
        facts.append(("alike", ", ".join(other.instruction.name for other in group[1:])))
    out.facts(facts)


def _place(one: dumps.CollectiveCause) -> SourceLocation | None:
    """The line that all commands give: where the text names none, that of what it is there for."""
    home = one.instruction.computation
    module = home.module if home is not None else None
    found = source_locations(module).get(one.communication.start) if module is not None else None
    return found[0] if found is not None else None


# ---- json


def cause_json(one: dumps.CollectiveCause) -> dict[str, Any]:
    """Returns the cause of a collective as JSON values."""
    place = _place(one)
    return {
        "instruction": one.instruction.name,
        "kind": one.communication.kind,
        "sent_bytes": one.communication.wire_bytes,
        "runs": one.communication.runs,
        "line": None if place is None else f"{place.file}:{place.line}",
        "why": one.why,
        "confidence": one.confidence,
        "reasons": [_reason_json(reason) for reason in one.reasons],
        "notes": list(one.notes),
    }


def _reason_json(reason: dumps.Reason) -> dict[str, Any]:
    return {
        "cause": reason.cause,
        "wanted_by": reason.wanted_by,
        "user": _place_json(reason.user),
        "tensor": _place_json(reason.tensor),
        "axes": list(reason.axes),
        "have": reason.have,
        "want": reason.want,
        "have_sharding": reason.have_sharding,
        "want_sharding": reason.want_sharding,
        "because": reason.because,
        "origin": reason.origin or None,
        "scheme": reason.scheme or None,
        "instead": reason.instead or None,
        "part": reason.part or None,
        "readers": reason.readers,
        "is_rematerialized": reason.is_rematerialized,
        "confidence": reason.confidence,
        "doubts": list(reason.doubts),
        "suggestions": [_suggestion_json(one) for one in reason.suggestions],
    }


def _place_json(place: dumps.Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "op_name": place.op_name,
        "opcode": place.opcode or None,
        "instruction": place.instruction.name if place.instruction is not None else None,
        "line": f"{place.file}:{place.line}" if place.line is not None else None,
    }


def _suggestion_json(one: dumps.Suggestion) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.name,
        "line": one.line,
        "spec": one.spec,
        "now": one.now,
        "because": one.because,
        "rule": one.rule,
        "confidence": one.confidence,
        "spared_of": list(one.measured),
        "measured_on": one.measured_on,
        "bytes_spared": one.bytes_spared,
        "bytes_total": one.bytes_total,
        "bytes_per_device": one.bytes_per_device,
        "work": round(one.work, 4),
    }
