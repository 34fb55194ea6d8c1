"""Views of a module before and after passes that have no model: effects beyond added and removed operations.

Rematerialization, latency hiding and partitioning follow cost models that fit into no few hundred lines; what they did can be
told from the two texts. The view of scheduling asks the schedulers (`scheduling.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import attrs

import hlotext as hlo
from hlotext import analysis, memory
from hlotext.analysis.shards import argument_shards, result_shards, shards_of
from hlotext.compiler.pass_diff import PassDiff
from hlotext.compiler.scheduling import schedules
from hlotext.ir.tables import traits

_REMAT = re.compile(r"^(.*?)\.remat\d*(?:\.\d+)*$")


@attrs.frozen
class View:
    """A table of facts about a pass's changes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...] = ()
    """Summary sentences."""


Viewer = Callable[[PassDiff, str], Iterator[View]]
"""Makes the views of a step on a platform."""


def views_of(name: str | None, accounting: PassDiff, platform: str) -> Iterator[View]:
    """Yields the views that apply to a pass with this name."""
    for expression, viewer in _VIEWERS:
        if name is not None and re.fullmatch(expression, name):
            yield from viewer(accounting, platform)


# ---- rematerialization


@attrs.frozen
class Clone:
    """An operation that is computed again."""

    clone: hlo.Instruction
    original: hlo.Instruction | None
    """Source of the clone in the module before; None if neither name nor operands identify it."""
    is_original_gone: bool
    bytes: int | None
    """Of its result."""


def rematerialized(accounting: PassDiff) -> tuple[Clone, ...]:
    """Finds clones created by rematerialization (`.remat` in their names), with their originals.

    `accounting` pairs the operations before and after the pass.
    """
    names = {i.name: i for i in accounting.before.instructions()}
    by_text: dict[tuple[object, ...], hlo.Instruction] = {}
    for i in names.values():
        by_text.setdefault((i.opcode, i.shape, tuple(o.name for o in i.operands)), i)
    original_of: dict[str, str] = {}
    found = []
    left = {i.name for i in accounting.after.instructions()}
    for i in accounting.after.instructions():
        if i.name in names or ".remat" not in i.name:
            continue
        match = _REMAT.match(i.name)
        operands = tuple(original_of.get(o.name, o.name) for o in i.operands)
        original = by_text.get((i.opcode, i.shape, operands)) or (
            names.get(match[1]) if match is not None else None
        )
        if original is not None:
            original_of[i.name] = original.name
        gone = original is not None and original.name not in left
        found.append(Clone(i, original, gone, _bytes(i)))
    return tuple(found)


def _remat_view(accounting: PassDiff, platform: str) -> Iterator[View]:
    clones = rematerialized(accounting)
    if not clones:
        return
    counts = Counter(clone.original.name if clone.original is not None else "unknown" for clone in clones)
    gone = {clone.original.name for clone in clones if clone.original is not None and clone.is_original_gone}
    sizes = {c.original.name if c.original is not None else "unknown": c for c in clones}
    rows = [
        (
            name,
            sizes[name].clone.opcode,
            str(count),
            _shown(sizes[name].bytes),
            "gone" if name in gone else "stays",
        )
        for name, count in counts.most_common()
    ]
    lines = [
        f"clones: {len(clones):,}, of {len(counts):,} operations, of which {len(gone):,} no longer exist",
        *_peaks(accounting, platform),
    ]
    yield View(
        "computed once more",
        ("operation", "opcode", "clones", "bytes", "original"),
        tuple(rows),
        tuple(lines),
    )


def _peaks(accounting: PassDiff, platform: str) -> Iterator[str]:
    """The peak of memory before and after, where both are scheduled."""
    if not (accounting.before.is_scheduled and accounting.after.is_scheduled):
        return
    try:
        before, after = (memory.assign(m, platform).peak() for m in (accounting.before, accounting.after))
    except (ValueError, LookupError) as error:
        yield f"peak memory is unknown: {' '.join(str(error).split())[:120]}"
        return
    saved = before.bytes - after.bytes
    what = "less" if saved >= 0 else "more"
    yield f"peak memory {before.bytes:,} -> {after.bytes:,} bytes, {abs(saved):,} {what} (computed from the texts)"


# ---- latency hiding


@attrs.frozen
class OverlapChange:
    """Number of operations between a start and its done, before and after a pass."""

    start: hlo.Instruction
    """In the module after."""
    before: int | None
    """Operations between start and done before the pass; None if one of them was not there."""
    after: int


def overlaps(accounting: PassDiff) -> tuple[OverlapChange, ...]:
    """Returns, for each asynchronous start, how many operations run until its done, before and after a pass.

    Operations that take no time (tuples, bitcasts and the like) and other starts and dones do not count. Starts without a
    done in the same computation are left out, as are bodies of fusions. The number before is None for a new start.

    Args:
        accounting: The operations before and after the pass, paired.
    """
    old_between = dict(_between(accounting.before))
    found = []
    for start, count in _between(accounting.after):
        old = accounting.old_of.get(start)
        found.append(OverlapChange(start, old_between.get(old) if old is not None else None, count))
    return tuple(found)


_IDLE = traits.NAMES_VALUE


def _between(module: hlo.Module) -> Iterator[tuple[hlo.Instruction, int]]:
    """Every start with the operations that take time between it and its done."""
    for computation in module.computations:
        if computation.is_fusion_body:
            continue
        work = 0
        begun: dict[hlo.Instruction, int] = {}
        for i in computation:
            if i.opcode.endswith("-done") and i.operands and i.operands[0] in begun:
                yield i.operands[0], work - begun[i.operands[0]]
            elif i.opcode.endswith("-start"):
                begun[i] = work
            elif i.opcode not in _IDLE:
                work += 1


def _overlap_view(accounting: PassDiff, platform: str) -> Iterator[View]:
    found = overlaps(accounting)
    if not found:
        return
    rows = [
        (o.start.name, o.start.opcode, "" if o.before is None else str(o.before), str(o.after))
        for o in sorted(found, key=lambda o: -(o.after - (o.before or 0)))
    ]
    more = sum(o.after > (o.before or 0) for o in found)
    lines = [
        f"{more:,} of {len(found):,} asynchronous operations have more work to overlap with",
        *_peaks(accounting, platform),
    ]
    yield View(
        "operations between start and done",
        ("operation", "opcode", "before", "after"),
        tuple(rows),
        tuple(lines),
    )


# ---- partitioning


def _partition_view(accounting: PassDiff, platform: str) -> Iterator[View]:
    """Per-device shapes of every sharded operation, and the communication that came."""
    before, after = accounting.before, accounting.after
    was_whole = _plain(p.shape for p in before.entry.parameters) != _plain(
        p.shape for p in after.entry.parameters
    )
    is_cleanup = not was_whole and any(analysis.communications(before))
    if is_cleanup:
        return  # the shapes are those of one device already
    rows = []
    for i in before.instructions():
        if i.sharding is None:
            continue
        for shard in shards_of(before, i):
            index = f" {{{','.join(map(str, shard.index))}}}" if shard.index else ""
            held = shard.problem or str(shard.shard_shape.without_layout())
            whole = str(shard.shape.without_layout()) if shard.shape is not None else ""
            rows.append((f"{i.name}{index}", i.opcode, whole, held, str(shard.sharding)))
    lines = list(_entry(before, after)) if was_whole else []
    yield View(
        "per-device shapes",
        ("operation", "opcode", "whole", "per device", "sharding"),
        tuple(rows),
        tuple(lines),
    )
    known = {i.name for i in before.instructions()}
    came = [c for c in analysis.communications(after) if c.instruction.name not in known]
    table = []
    for c in came:
        i = c.instruction
        groups = f"{c.group_count} x {c.group_size}" if c.group_count and c.group_size else ""
        op_name = i.metadata.op_name if i.metadata is not None else ""
        readers = ", ".join(user.name for user in i.users[:2])
        table.append((i.name, c.kind, str(i.shape.without_layout()) if i.shape else "", groups, _shown(c.wire_bytes),
                      op_name or f"for {readers}"))  # fmt: skip
    if table:
        counts = Counter(c.kind for c in came)
        said = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
        yield View(
            "communication added",
            ("operation", "kind", "shape", "groups", "bytes", "where"),
            tuple(table),
            (said,),
        )


def _plain(shapes: Iterable[hlo.Shape | None]) -> list[tuple[str, tuple[int, ...]]]:
    """Element types and sizes of all arrays of shapes."""
    leaves = [leaf for shape in shapes if shape is not None for _, leaf in shape.leaves()]
    return [(str(leaf.element_type), tuple(leaf.dimensions)) for leaf in leaves if leaf.is_array]


def _entry(before: hlo.Module, after: hlo.Module) -> Iterator[str]:
    """Compares the shapes that follow from the shardings with those of the partitioned entry."""
    pairs = (
        ("arguments", argument_shards(before), [p.shape for p in after.entry.parameters]),
        ("results", result_shards(before), [after.entry.root.shape]),
    )
    for what, shards, shapes in pairs:
        mine = _plain(shard.shard_shape for shard in shards)
        theirs = _plain(shapes)
        same = sum(a == b for a, b in zip(mine, theirs, strict=False)) if len(mine) == len(theirs) else 0
        yield f"{what}: {same} of {len(theirs)} have the shapes implied by the shardings"


# ---- schedules


def _schedule_view(accounting: PassDiff, platform: str) -> Iterator[View]:
    """Memory needed by the order of each scheduler and by the order of the text after."""
    try:
        found = schedules(accounting.before, platform)
        own = next(c for c in schedules(accounting.after, platform) if c.name == "text")
    except (ValueError, LookupError):
        return
    tried = "assumed" if platform == "tpu" else "tried"
    rows = [
        (c.name, f"{c.bytes:,}", f"{c.bytes - own.bytes:+,}", tried if c.is_tried else "")
        for c in sorted(found, key=lambda c: c.bytes)
        if c.name != "text"
    ]
    lines = (f"the order after the pass needs {own.bytes:,} bytes at its peak, without fragmentation",)
    yield View("other orders", ("scheduler", "bytes", "difference", "by this platform"), tuple(rows), lines)


def _bytes(i: hlo.Instruction) -> int | None:
    if i.shape is None:
        return None
    sizes = [analysis.array_bytes(leaf) for _, leaf in i.shape.leaves() if leaf.is_array]
    return None if any(size is None for size in sizes) else sum(size[0] for size in sizes if size is not None)


def _shown(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


_VIEWERS: tuple[tuple[str, Viewer], ...] = (
    (r"remat.*|final_rematerialization", _remat_view),
    (r"latency-hiding-scheduler", _overlap_view),
    (r"spmd-partition(er|ing)|sharding-propagation|shardy-xla", _partition_view),
    (r"SCHEDULE|hlo-memory-scheduler.*", _schedule_view),
)
"""Names of passes, and what makes their views."""
