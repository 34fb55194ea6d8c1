"""The arguments and results of modules as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

import hlotext as hlo
from hlotext.analysis.devices import devices_of
from hlotext.analysis.entries import EntryArray, arguments, results
from hlotext.cli.common import Inputs, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import Output, output


def show_arguments(inputs: Inputs, limit: int | None, output_format: str) -> None:
    """Prints the arguments and results of each module, at most `limit` rows each; None prints all."""
    documents: list[dict[str, Any]] = []
    report = output()
    for place, result in inputs:
        for module in result.modules:
            if output_format == "json":
                documents.append(_json(place, module))
                continue
            report.heading(f"{place}: {module.name}")
            rows = arguments(module)
            _table(report, "Arguments", rows, limit)
            _table(report, "Results", results(module), limit)
            if (devices_of(module).total or 1) > 1 and not any(row.sharding for row in rows):
                report.note(
                    "a partitioned module has no shardings; see the module before optimization for those of "
                    "arguments and for the sizes of whole arrays (show --arguments FILE.before_optimizations.txt)"
                )
    if output_format == "json":
        write_json({"entries": documents})


def _table(report: Output, title: str, rows: Sequence[EntryArray], limit: int | None) -> None:
    report.table(Listing[EntryArray]("show.entries").table(f"{title} ({len(rows):,})", rows, limit))


def _json(place: str, module: hlo.Module) -> dict[str, Any]:
    return {
        "file": place,
        "module": module.name,
        "argument_arrays": [attrs.asdict(row) for row in arguments(module)],
        "result_arrays": [attrs.asdict(row) for row in results(module)],
    }
