"""Cost and memory of a module, computed after reading, so that hovers only look them up."""

from __future__ import annotations

import hlotext as hlo
from hlotext import cost, memory
from hlotext.analysis.sizes import byte_text
from hlotext.memory.values import Value

MOST_CHARACTERS = 64_000_000
"""Maximum length of a text for which cost and memory are computed automatically."""


class Facts:
    """Cost analysis and buffer assignment of one module, each with the reason if there is none."""

    def __init__(self, module: hlo.Module) -> None:
        self.cost: cost.Analysis | None = None
        self.memory: memory.Assignment | None = None
        self.why_no_cost = self.why_no_memory = ""
        self._values: dict[str, list[tuple[Value, memory.Allocation]]] = {}
        self._peak: frozenset[int] = frozenset()
        source = module.source
        if source is not None and len(source.text) > MOST_CHARACTERS:
            self.why_no_cost = self.why_no_memory = "not computed: the file is too large"
            return
        try:
            self.cost = cost.analyze(module)
            _ = self.cost.run
        except (ValueError, LookupError, RecursionError) as error:
            self.cost, self.why_no_cost = None, f"unknown: {error}"
        if not module.is_scheduled:
            self.why_no_memory = "unknown: the module has no schedule"
            return
        try:
            self.memory = memory.assign(module)
            self._peak = frozenset(map(id, self.memory.peak().values))
        except (memory.MemoryModelError, ValueError, LookupError, RecursionError) as error:
            self.memory, self.why_no_memory = None, f"unknown: {error}"
            return
        for allocation in self.memory.allocations:
            for piece in allocation.slices:
                self._values.setdefault(piece.value.name, []).append((piece.value, allocation))

    def cost_text(self, instruction: hlo.Instruction) -> str:
        """Returns text with FLOPs and bytes of one execution."""
        if self.cost is None:
            return self.why_no_cost
        try:
            found = self.cost.of(instruction)
        except KeyError:
            return "unknown"
        parts = [f"{found.flops:,} FLOPs", f"{byte_text(int(found.bytes_accessed))} accessed"]
        if found.transcendentals:
            parts.insert(1, f"{found.transcendentals:,} transcendentals")
        return ", ".join(parts)

    def memory_text(self, instruction: hlo.Instruction) -> list[str]:
        """Returns one line per value that the instruction writes: bytes, allocation and live range."""
        if self.memory is None:
            return [self.why_no_memory]
        found = self._values.get(instruction.name, [])
        if not found:
            return ["no buffer of its own"]
        moments = len(self.memory.schedule)
        lines = []
        for value, allocation in found[:_SHOWN]:
            index = f"{{{','.join(map(str, value.index))}}}: " if value.index else ""
            size = byte_text(value.bytes) if value.bytes is not None else "size unknown"
            life = ""
            if value.live_range is not None:
                first, last = value.live_range
                life = f", live from step {first:,} to {last:,} of {moments:,}"
            peak = ", live at the peak" if id(value) in self._peak else ""
            lines.append(f"{index}{size} in allocation {allocation.number}{life}{peak}")
        if len(found) > _SHOWN:
            lines.append(f"and {len(found) - _SHOWN:,} more values")
        return lines


_SHOWN = 4
"""Maximum number of values of one instruction in a hover."""
