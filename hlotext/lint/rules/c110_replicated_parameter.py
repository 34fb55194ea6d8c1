"""C110: a large parameter that every device holds in full."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class ReplicatedParameter(Rule):
    code = "C110"
    name = "replicated-parameter"
    title = "a large parameter that every device holds in full"
    is_default = False
    opcodes = frozenset({"parameter"})

    min_bytes: int = 64 << 20
    """Bytes of the parameter from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if instruction.computation is not context.module.entry:
            return
        devices = int(context.module.attributes.get("num_partitions", 1))
        sharding, size = instruction.sharding, size_of(instruction.shape)
        if devices < 2 or sharding is None or not sharding.is_replicated or size < self.min_bytes:
            return
        yield Report(
            instruction,
            f"a parameter of {byte_text(size)} is held in full by each of {devices} devices",
            "shard it over an axis of the mesh",
            size - size // devices,
        )
