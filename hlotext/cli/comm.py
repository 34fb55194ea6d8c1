"""`hlotext comm`: what is sent, along which axes of the mesh, over which links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

import hlotext as hlo
from hlotext import cost, dumps
from hlotext.analysis import DeviceMesh, FoundMesh, Interconnect, byte_text, parse_mesh, total_of
from hlotext.analysis.formatting import pluralize
from hlotext.analysis.wire import ALGORITHMS, Algorithm, latency_steps
from hlotext.cli.chip_options import line_cell, told
from hlotext.cli.common import FILES, FORMAT, Inputs, limit_option, write_json
from hlotext.cli.listing import Listing, Row, Shown
from hlotext.cli.output import Output, TerminalColumn, TerminalTable, output
from hlotext.dumps.collectives import wording
from hlotext.dumps.outlines import dumped_beside
from hlotext.dumps.texts import ModuleFile, compilation_of

_LIMIT = 12


@click.command()
@FILES
@click.option("--mesh", metavar="NAME=SIZE,...", help="Device mesh, major axis first: dp=2,tp=4.")
@click.option("--device-order", metavar="N,N,...", help="Device ids of the mesh, row-major.")
@click.option(
    "--algorithm",
    type=click.Choice(ALGORITHMS),
    default="ring",
    show_default=True,
    help="Algorithm for all-reduce and reduce-scatter.",
)
@limit_option(_LIMIT)
@FORMAT
def command(
    files: tuple[str, ...],
    mesh: str | None,
    device_order: str | None,
    algorithm: Algorithm,
    limit: int,
    output_format: str,
) -> None:
    """Bytes that each device sends in one run of each FILE, by mesh axis and kind, and each collective with its line.

    Without --mesh, the mesh comes from the module's shardings, or from the program before optimization next to it;
    else axes are inferred from replica groups and named axis_0, axis_1, ... Bytes exclude padding; loops count once
    per iteration.

    For a dump folder, or a final module in one, also show the cause of each collective, and an annotation that
    avoids it (in full: `hlotext dump collectives DIR`). For other modules, only causes that are evident from their
    text are shown.

    \b
    Examples:
      hlotext comm module_0001.jit_step.after_optimizations.txt --mesh fsdp=4,tp=4
      hlotext comm dump.txt --format json
    """
    given = _mesh(mesh, device_order)
    inputs = Inputs(files, is_whole=True)
    documents = []
    report = output()
    files_of = dict(zip((_label(text) for text in inputs.texts), inputs.texts, strict=True))
    for place, result in inputs:
        text = files_of[place]
        compilation = compilation_of(text)
        if compilation is None and isinstance(text, str) and text != "-":
            compilation = dumped_beside(text)
        for module in result.modules:
            mesh_told: DeviceMesh | FoundMesh | None = given
            if given is None and compilation is not None:
                mesh_told = dumps.collectives.named_mesh(compilation, module)
            causes = told(
                lambda module=module, compilation=compilation: dumps.collectives.of_module(  # type: ignore[misc]
                    module, compilation, given
                )
            )
            found = told(
                lambda module=module, mesh=mesh_told: cost.traffic(module, mesh, algorithm)  # type: ignore[misc]
            )
            other = dumps.collectives.mesh_note(given, module, compilation)
            notes = list(
                dict.fromkeys([*(note for one in causes for note in one.notes), *filter(None, [other])])
            )
            if output_format == "json":
                documents.append(_json(place, module.name, found, causes, notes))
                continue
            report.heading(f"{place}: {module.name}")
            _show(report, found, limit)
            _show_causes(report, causes, limit)
            for note in notes:
                report.note(f"note: {note}")
    if output_format == "json":
        write_json({"modules": documents})
    inputs.finish()


def _label(text: str | ModuleFile) -> str:
    return text if isinstance(text, str) else text.label


def _mesh(mesh: str | None, order: str | None) -> DeviceMesh | None:
    if mesh is None:
        if order is not None:
            raise click.UsageError("--device-order needs --mesh")
        return None
    if order is None:
        return told(lambda: parse_mesh(mesh))
    if not all(part.strip().isdecimal() and len(part) < 10 for part in order.split(",")):
        raise click.UsageError("--device-order takes comma-separated numbers")
    return told(lambda: parse_mesh(mesh, [int(part) for part in order.split(",")]))


def _show(report: Output, found: cost.Traffic, limit: int) -> None:
    links = found.by_link()
    facts = []
    if found.mesh is not None:
        facts.append(("mesh", f"{found.mesh.mesh} ({found.mesh.source.value})"))
    elif any(not flow.communication.is_host_transfer for flow in found.flows):
        facts.append(("mesh", "no mesh fits all groups"))
    for link in Interconnect:
        if link in links:
            total = links[link]
            facts.append(
                (
                    link.value,
                    f"{_sum_text(total)} sent by each device in one run, {pluralize(total.count, 'operation')}",
                )
            )
    if found.copies:
        facts.append(
            (
                "host copies",
                f"{byte_text(found.host_copy_bytes)} in one run, {pluralize(len(found.copies), 'copy', 'copies')}",
            )
        )
    report.facts(facts or [("communication", "none")])
    _show_matrix(report, found)
    report.table(_flows(found.algorithm, {}).table("Operations", found.flows, limit))


def _sum_text(total: cost.TrafficTotal) -> str:
    if total.unknown == total.count:
        return "?"
    return f"{total.mark}{byte_text(total.bytes)}"


def _show_matrix(report: Output, found: cost.Traffic) -> None:
    matrix = found.matrix()
    weights: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for (row, kind), total in matrix.items():
        weights[row] = weights.get(row, 0) + total.bytes
        kinds[kind] = kinds.get(kind, 0) + total.bytes
    columns = sorted(kinds, key=lambda kind: -kinds[kind])
    rows = [
        (row, *(_cell(matrix.get((row, kind))) for kind in columns))
        for row in sorted(weights, key=lambda row: -weights[row])
    ]
    report.table(
        TerminalTable(
            "Sent by each device in one run (operations)",
            [
                TerminalColumn("along"),
                *(TerminalColumn(kind.replace("collective-", ""), is_number=True) for kind in columns),
            ],
            rows,
        )
    )


def _cell(total: cost.TrafficTotal | None) -> str:
    return "" if total is None else f"{_sum_text(total)} ({total.count})"


def _show_causes(report: Output, causes: Sequence[dumps.CollectiveCause], limit: int) -> None:
    """Why collectives are there, those with the same reason together, and what would spare them."""
    groups = sorted(wording.groups(causes), key=lambda group: not wording.is_told(group[0]))
    if not groups:
        return
    report.heading("Causes")
    shown = groups[:limit] if limit else groups
    for number, group in enumerate(shown):
        if number:
            report.gap()
        first, *others = (one.communication.start.name for one in group)
        more = f" and {pluralize(len(others), 'other')}" if others else ""
        facts = wording.facts(group[0])
        report.facts([("operation", f"{first}{more}"), *facts])
    if len(groups) > len(shown):
        report.note(f"  ... and {len(groups) - len(shown):,} more")


def _json(
    place: str,
    name: str,
    found: cost.Traffic,
    causes: Sequence[dumps.CollectiveCause],
    notes: list[str],
) -> dict[str, Any]:
    known = {one.communication.start: one for one in causes}
    return {
        "file": place,
        "module": name,
        "algorithm": found.algorithm,
        "mesh": None
        if found.mesh is None
        else {
            "axes": dict(zip(found.mesh.mesh.names, found.mesh.mesh.sizes, strict=True)),
            "source": found.mesh.source.name.lower(),
        },
        "links": {link.name.lower(): _total(total) for link, total in found.by_link().items()},
        "host_copy_bytes": found.host_copy_bytes,
        "matrix": [
            {"along": row, "kind": kind, **_total(total)} for (row, kind), total in found.matrix().items()
        ],
        "operations": _flows(found.algorithm, known).json(found.flows),
        "notes": notes,
    }


def _total(total: cost.TrafficTotal) -> dict[str, int]:
    return {"bytes": total.bytes, "operations": total.count, "unknown": total.unknown}


def _shapes_text(shapes: Sequence[hlo.Shape]) -> str:
    """The largest of the arrays that a collective sends, and how many more."""
    if not shapes:
        return ""
    more = f" and {len(shapes) - 1:,} more" if len(shapes) > 1 else ""
    return f"{max(shapes, key=lambda shape: total_of(shape).unpadded_bytes)}{more}"


def _flows(
    algorithm: Algorithm, causes: Mapping[hlo.Instruction, dumps.CollectiveCause]
) -> Listing[cost.CollectiveTraffic]:
    def row(flow: cost.CollectiveTraffic) -> Row:
        one = flow.communication
        cause = causes.get(one.start)
        told = cause if cause is not None and wording.is_told(cause) else None
        return (
            one.start.name,
            one.kind,
            one.link.name.lower(),
            None if flow.axes is None else list(flow.axes),
            flow.row,
            one.participants,
            list(one.dtypes),
            Shown(list(map(str, one.sent_shapes)), _shapes_text(one.sent_shapes)),
            one.operand_bytes,
            one.result_bytes,
            flow.sent,
            one.is_at_most,
            latency_steps(one.kind, one.largest_group, algorithm),
            flow.runs,
            Shown(flow.total, f"{_bound(flow)}{byte_text(flow.total)}"),
            one.is_async,
            line_cell(flow.place),
            told.why if told is not None else None,
            told.confidence if told is not None else None,
            list(cause.changes) if cause is not None else [],
        )

    return Listing("comm.operations", row)


def _bound(flow: cost.CollectiveTraffic) -> str:
    """Mark of a bound: lower for a loop of unknown length, upper where all branches of a conditional count."""
    if flow.communication.is_at_most:
        return "<= "
    return ">= " if flow.runs is None and flow.total is not None else ""
