"""Makes `hlotext/view/assets/accuracy.json`, how often each answer is XLA's, from what the acceptance checks print.

    python -m tests.accuracy RELEASE CHECK OUTPUT [CHECK OUTPUT ...]

RELEASE is that of the jaxlib that wrote what a check compares with; CHECK its name (`tpu_cost`, `memory`, ...), OUTPUT a
file with what it printed, of `passes` what `--json` wrote. `passes` says the releases itself, of `versions` RELEASE is
taken. Rows of other checks and releases stay. The documentation's table and the reports' are made of it.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from hlotext.view.accuracy import FILE, Row, rows

_PLATFORMS = ("cpu", "gpu", "tpu")

_ANSWERS: dict[str, dict[str, str]] = {
    "tpu_cost": {
        "flops exact": "TPU cost: flops",
        "bytes exact": "TPU cost: bytes",
        "seconds within 0.1 %": "TPU cost: seconds",
        "chip from the dump": "chip from the dump",
        "VMEM within its bounds": "fast memory: total within its bounds",
        "VMEM estimate exact": "fast memory: total to the byte",
    },
    "cost": {"cost_ops_visible.json": "cost of single operations", "cost_visible.json": "cost of modules"},
    "memory": {
        "live ranges": "memory: lives",
        "buffers": "memory: who shares a buffer",
        "allocations": "memory: allocations",
        "allocations without VMEM": "memory: allocations",
        "offsets": "memory: offsets",
        "offsets without VMEM": "memory: offsets",
        "total": "memory: total",
        "total without VMEM": "memory: total",
        "moment of peak": "memory: time of the peak",
        "offsets of VMEM": "fast memory: offsets",
    },
    "thunks": {"predicted": "thunks", "command buffers": "command buffers"},
    "identity": {
        "cause right": "cause of an operation",
        "cause said with high confidence right": "cause, with high confidence",
        "source right": "source of an operation",
        "source of high confidence right": "source, with high confidence",
        "owner named": "the pass that did it",
    },
    "versions": {
        "memory model allocations": "memory: allocations",
        "memory model allocations outside VMEM": "memory: allocations",
        "thunks predicted": "thunks",
        "cost": "cost of modules",
    },
}
"""What items of each check are called in the table; of other items there is no row."""


def of_release(text: str, release: str) -> Iterator[tuple[str, str, int, int]]:
    """(item, platform, right, of) of a release, of rows that say platform and release first."""
    for line in text.splitlines():
        found = re.match(rf"(cpu|gpu|tpu)\s+{re.escape(release)}\s+(\S.*?)\s+(\d+)\s+(\d+)\s+[\d.]+ %", line)
        if found is not None:
            platform, item, right, of = found.groups()
            yield item, platform, int(right), int(of)


def parsed(check: str, text: str) -> Iterator[tuple[str, str, int, int]]:
    """(item, platform, right, of) of what a check printed."""
    columns: list[str] = []
    for line in text.splitlines():
        heads = line.split()
        if heads and set(heads) <= {*_PLATFORMS, "all"} and "all" in heads:
            columns = heads
            continue
        shares = re.findall(r"(\d+)/(\d+)", line)
        if columns and len(shares) == len(columns):
            item = line[: line.index(f"{shares[0][0]}/{shares[0][1]}")].strip()
            for platform, (right, of) in zip(columns, shares, strict=True):
                if platform != "all":
                    yield item, platform, int(right), int(of)
            continue
        found = re.match(r"(?:(cpu|gpu|tpu)(?:cb)?\s+)?(\S.*?):?\s{1,}(\d+)(?: of)?\s+(\d+)\b(.*)", line)
        if found is None:
            continue
        platform, item, right, of, rest = found.groups()
        if check == "thunks":  # folders come first, then thunks
            more = re.match(r"\s+(\d+)\s+(\d+)", rest)
            if more is None:
                continue
            right, of = more.groups()
        yield item.strip(), platform or ("tpu" if check == "tpu_cost" else "all"), int(right), int(of)


def of_passes(text: str) -> Iterator[Row]:
    """Rows of recorded steps of passes that changed something, for each release and platform."""
    right: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for record in json.loads(text):
        if record.get("after"):
            name = _PASS_GROUPS.get(record["pass"], "steps of other passes")
            score = right[name, record["platform"], record.get("xla", "0.10.2")]
            score[0] += record["verdict"] == "equal"
            score[1] += 1
    for (name, platform, release), (good, of) in sorted(right.items()):
        yield Row(name, platform, release, good, of)


_PASS_GROUPS = {
    "adding_copies_to_resolve_interference": "steps of copy insertion",
    "removing_unnecessary_copies": "steps of copy insertion",
    "adding_special-case_copies": "steps of copy insertion",
    "algsimp": "steps of algebraic simplification",
    "fusion": "steps of fusion",
    "priority-fusion": "steps of fusion",
    "layout-assignment": "steps of layout assignment",
}


def rows_of(check: str, release: str, text: str) -> Iterator[Row]:
    """The rows of the table that a check gives."""
    if check == "passes":
        yield from of_passes(text)
        return
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for item, platform, right, of in (
        of_release(text, release) if check == "versions" else parsed(check, text)
    ):
        answer = _ANSWERS[check].get(item)
        if answer is not None and of:
            score = sums[answer, platform]
            score[0] += right
            score[1] += of
    for (answer, platform), (right, of) in sums.items():
        yield Row(answer, platform, release, right, of)


def main(arguments: list[str]) -> int:
    """Takes the outputs in; says how many rows each gave."""
    if len(arguments) < 3 or len(arguments) % 2 == 0:
        print(__doc__)
        return 2
    release, pairs = arguments[0], arguments[1:]
    known = {(row.answer, row.platform, row.release): row for row in rows()}
    empty = False
    for check, path in zip(pairs[::2], pairs[1::2], strict=True):
        found = list(rows_of(check, release, Path(path).read_text(encoding="utf-8")))
        known.update({(row.answer, row.platform, row.release): row for row in found})
        empty |= not found
        print(f"{check}: {len(found)} rows")
    ordered = sorted(known.values(), key=lambda row: (row.answer, row.platform, row.release))
    FILE.write_text("[\n" + ",\n".join(json.dumps(list(row)) for row in ordered) + "\n]\n", encoding="utf-8")
    return 1 if empty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
