"""The memory-usage report (`BufferAssignment::MemoryUsageReport`), which follows from the allocations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlotext.memory.allocations import Allocation
from hlotext.memory.assignment import Assignment
from hlotext.memory.files.value_names import human_bytes

_SPACES = {0: "default", 1: "vmem", 2: "smem", 3: "hbm", 4: "host", 5: "cmem"}
"""XLA's own words, which are wrong for TPU: there 5 is the host's memory."""

_SHARE = 0.05000000074505806
_ROWS = 50
"""After so many rows the rest is left out, once it is less than that share (0.05 in single precision)."""


def report_text(assignment: Assignment) -> str:
    """Returns the contents of XLA's memory usage report."""
    by_space: dict[int, list[Allocation]] = {}
    for allocation in assignment.allocations:
        by_space.setdefault(allocation.memory_space, []).append(allocation)
    out: list[str] = []
    for space, allocations in sorted(by_space.items()):
        total = sum(allocation.bytes for allocation in allocations)
        out.append(f"Memory Space: {_SPACES.get(space, f'color_{space}')} (color={space})\n")
        out.append(f"Total bytes: {total} ({human_bytes(total)})\n")
        shown = 0
        for number, allocation in enumerate(sorted(allocations, key=lambda a: (-a.bytes, a.number)), 1):
            out += _table(allocation)
            out.append("\n")
            shown += allocation.bytes
            if number > _ROWS and total - shown < total * _SHARE:
                break
        out.append("\n")
    return "".join(out)


def _table(allocation: Allocation) -> Iterator[str]:
    """One allocation: a row for each offset, the largest first."""
    rows: dict[int, tuple[int, int, int, Counter[str]]] = {}
    for value, offset, size in allocation.slices:
        largest, _, count, shapes = rows.get(offset, (0, 0, 0, Counter()))
        shapes[value.shape.text_without_layout() if value.shape is not None else "<unknown shape>"] += 1
        rows[offset] = max(largest, size), value.number, count + 1, shapes
    total = sum(size for size, *_ in rows.values())
    yield "  cumulative_size;       size;       offset; used_by_n_values; shapes_list\n"
    yield "  ------------------------------------------------------------\n"
    shown = 0
    ordered = sorted(rows.items(), key=lambda row: (-row[1][0], row[1][1]))
    for number, (offset, (size, _, count, shapes)) in enumerate(ordered, 1):
        shown += size
        share = f"{100.0 * shown / total:3.0f}" if total else "-nan"
        texts = ", ".join(
            text if n == 1 else f"{n}×{text}" for n, text in sorted((n, t) for t, n in shapes.items())
        )
        yield f"  {human_bytes(shown):>9}({share}%); {human_bytes(size):>10}; {offset:12}; {count:16}; {texts}\n"
        if number > _ROWS and total - shown < total * _SHARE:
            yield f"  The rest {len(ordered) - number} values are less than 5% of the total size and not shown.\n"
            break
