"""The arguments and results of modules as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

import hlotext as hlo
from hlotext.analysis.entries import Entry, arguments, results
from hlotext.analysis.sizes import byte_text
from hlotext.cli.common import Inputs, write_json
from hlotext.cli.output import Column, Output, Table, output


def show_arguments(inputs: Inputs, limit: int | None, output_format: str) -> None:
    """Writes both tables of each module; `limit` rows of each, all for None."""
    documents: list[dict[str, Any]] = []
    report = output()
    for place, result in inputs:
        for module in result.modules:
            if output_format == "json":
                documents.append(_json(place, module))
                continue
            report.heading(f"{place}: {module.name}")
            _table(report, "Arguments", arguments(module), limit)
            _table(report, "Results", results(module), limit)
    if output_format == "json":
        write_json({"entries": documents})


def _table(report: Output, title: str, rows: Sequence[Entry], limit: int | None) -> None:
    columns = (
        Column("number", is_number=True, rank=7),
        Column("name", "cyan"),
        Column("shape", "yellow"),
        Column("layout", rank=3),
        Column("sharding", rank=4),
        Column("on a device", is_number=True, rank=8),
        Column("whole", is_number=True, rank=5),
        Column("donated", rank=6),
        Column("aliased with", rank=6),
    )
    cells = [
        (
            str(row.number),
            row.label,
            row.shape,
            row.layout,
            row.sharding,
            byte_text(row.device_bytes) if row.device_bytes is not None else "?",
            byte_text(row.global_bytes) if row.global_bytes is not None else "",
            "yes" if row.is_donated else "",
            "" if row.aliased_with is None else "{" + ",".join(map(str, row.aliased_with)) + "}",
        )
        for row in rows[:limit]
    ]
    report.table(Table(f"{title} ({len(rows):,})", columns, cells, len(rows) - len(cells)))


def _json(place: str, module: hlo.Module) -> dict[str, Any]:
    return {
        "file": place,
        "module": module.name,
        "argument_arrays": [attrs.asdict(row) for row in arguments(module)],
        "result_arrays": [attrs.asdict(row) for row in results(module)],
    }
