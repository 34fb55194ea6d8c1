"""G111: instructions that cannot be traced back to the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis.formatting import pluralize
from hlotext.findings.errors import Severity
from hlotext.lint.rule import Context, Report, Rule


class LostMetadata(Rule):
    code = "G111"
    name = "lost-metadata"
    title = "instructions that cannot be traced back to the program"
    severity = Severity.NOTE
    is_default = False

    share: ClassVar[float] = 0.5
    """Share of the instructions without op_name from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        without = total = 0
        for instruction in context.graph.sequential_instructions():
            if instruction.opcode in _WITHOUT:
                continue
            total += 1
            metadata = instruction.metadata
            without += metadata is None or not metadata.op_name
        if total and without >= self.share * total:  # enough operations have metadata
            yield Report(
                None,
                f"{without:,} of {pluralize(total, 'instruction')} {'has' if total == 1 else 'have'} no op_name",
                "make passes copy metadata to the instructions they create",
            )


_WITHOUT = frozenset({"bitcast", "constant", "get-tuple-element", "parameter", "tuple"})
"""Opcodes of which nobody asks where they come from."""
