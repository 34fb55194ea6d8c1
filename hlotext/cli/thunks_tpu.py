"""`hlotext thunks` for TPU, whose programs have none: the scheduled operations and what the compiler says of each."""

from __future__ import annotations

from typing import Any

import attrs

from hlotext import analysis
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output, echo
from hlotext.thunks import tpu


@attrs.frozen
class OnTpu:
    """The operations of a module that run on a TPU."""

    label: str
    operations: tuple[tpu.Operation, ...]


def show(report: Output, one: OnTpu, limit: int) -> None:
    """Prints the operations in execution order."""
    report.heading(f"{one.label}: {len(one.operations):,} operations (tpu)")
    cycles = [operation.cycles for operation in one.operations if operation.cycles is not None]
    echo("TPU programs have no thunks: these are the scheduled operations with the compiler's estimates.")
    if cycles:
        echo(f"Cycles are compiler estimates for one execution; {len(cycles):,} operations have an estimate.")
    else:
        echo("This module has no estimated cycles; see the after_codegen file.")
    report.table(
        Listing("thunks.operations", _row).table("Operations in execution order", one.operations, limit)
    )


def _row(operation: tpu.Operation) -> Row:
    label = f"{operation.label}: " if operation.label else ""
    scoped = (f"S({space}) {analysis.byte_text(size)}" for space, size in operation.scoped_bytes.items())
    return (
        "  " * operation.depth + label + operation.instruction.opcode,
        operation.instruction.name,
        operation.cycles,
        "x".join(map(str, operation.iterations or ())),
        ", ".join(scoped),
        operation.emitter,
    )


def as_json(one: OnTpu) -> dict[str, Any]:
    """Returns the operations as JSON values."""
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
