"""`hlotext thunks` for TPU, whose programs have none: the scheduled operations and what the compiler says of each."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext import analysis
from hlotext.cli.output import Column, Output, Table, echo
from hlotext.thunks import tpu


@attrs.frozen
class OnTpu:
    """What runs of one module on a TPU."""

    label: str
    operations: tuple[tpu.Operation, ...]


def show(report: Output, one: OnTpu, limit: int) -> None:
    """The operations in the order of execution, as text."""
    report.heading(f"{one.label}: {len(one.operations):,} operations (tpu)")
    cycles = [operation.cycles for operation in one.operations if operation.cycles is not None]
    echo(
        "TPU programs have no thunks: these are the scheduled operations with what the compiler says of each."
    )
    if cycles:
        echo(f"Cycles are its estimates for one execution: {len(cycles):,} operations have one.")
    else:
        echo("This text has no estimated cycles; the after_codegen text has.")
    rows = []
    for operation in one.operations[: limit or None]:
        label = f"{operation.label}: " if operation.label else ""
        scoped = ", ".join(
            f"S({space}) {analysis.byte_text(size)}" for space, size in operation.scoped_bytes.items()
        )
        rows.append(
            [
                "  " * operation.depth + label + operation.instruction.opcode,
                operation.instruction.name,
                f"{operation.cycles:,}" if operation.cycles is not None else "",
                "x".join(map(str, operation.iterations or ())),
                scoped,
                operation.emitter or "",
            ]
        )
    columns = [
        Column("operation", "cyan"), Column("name"), Column("cycles", is_number=True), Column("windows"),
        Column("scoped memory"), Column("algorithm"),
    ]  # fmt: skip
    used = [n for n in range(len(columns)) if n < 2 or any(row[n] for row in rows)]
    report.table(
        Table(
            "Operations in the order of execution",
            [columns[n] for n in used],
            [[row[n] for n in used] for row in rows],
            left_out=len(one.operations) - len(rows),
        )
    )


def as_json(one: OnTpu) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "module": one.label,
        "platform": "tpu",
        "operations": [
            {
                "depth": operation.depth,
                "label": operation.label,
                "opcode": operation.instruction.opcode,
                "instruction": operation.instruction.name,
                "estimated_cycles": operation.cycles,
                "iterations": operation.iterations,
                "scoped_bytes": {str(space): size for space, size in operation.scoped_bytes.items()},
                "algorithm": operation.emitter,
            }
            for operation in one.operations
        ],
    }
