"""Step 2 of copy insertion: takes out every copy whose source and result may share memory after all.

After `CopyRemover` (`xla/service/copy_removal.cc`). The values of each piece of memory stand in a row, in the order in which
they are written. A copy joins two rows; it goes where in the joint row the life of each value ends before the next one is
written, on TPU also where the two rows do not meet in time (`regions.py`), which CPU and GPU do not ask. For what is left,
the value that is read too late is named.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext import layout
from hlotext.analysis import Backend
from hlotext.analysis.age import age_for
from hlotext.analysis.chip_choice import ASSUMED_TPU
from hlotext.analysis.chips import CHIPS
from hlotext.compiler.computation_order import in_creation_order, number_of
from hlotext.compiler.decision import Decision
from hlotext.compiler.live_range_regions import (
    MERGE_FIRST_RESULT,
    MERGE_LAST_SOURCE,
    LiveRangeRegion,
    RegionComparison,
)
from hlotext.compiler.ordering import Ordering, UsesBefore, instruction_ids
from hlotext.compiler.platforms import platform_of
from hlotext.compiler.resolve_interference import in_place_pairs
from hlotext.compiler.value_lists import Node, Rows
from hlotext.edit import between
from hlotext.edit.journal import Edit
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.age import XlaAge
from hlotext.memory import platforms
from hlotext.memory.aliases import Buffer, find_buffers
from hlotext.memory.dataflow import Dataflow, analyse
from hlotext.memory.in_place import InPlacePairs
from hlotext.memory.sharing import Sharing
from hlotext.memory.values import Value
from hlotext.rewrite.kit.control import set_control
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age

SOURCE = "CopyRemover::TryElideCopy"
REMOVED, KEPT = "removed", "kept"
_MOST_PAIRS = 1_000_000
"""Pairs of values that are compared for one copy; beyond that it stays, which XLA has no limit for."""


@attrs.frozen
class RemovingCopies(Pass):
    """Step 2 of copy insertion: removes copies whose source and result can share memory.

    Based on dependencies, or on the schedule if the module has one. The copies are left without users, as in XLA's
    dumps of this step; `dce` removes them.
    """

    name: ClassVar[str] = "copy-insertion-removing"
    summary: ClassVar[str] = (
        "Removes copies whose source and result are never live with different values (step 2)."
    )

    platform: str = ""
    """`cpu`, `gpu` or `tpu`; empty: as the text tells."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place."""
        age = age_for(module, self.age or None)
        decisions = remove_copies(module, platform_of(module, self.platform), age)
        return PassResult.of({"removed": sum(d.rule == REMOVED for d in decisions)})


def rules_of(platform: Backend) -> platforms.Platform:
    """Returns the memory rules of a platform; for TPU, those of the assumed chip if the text does not identify one."""
    if platform is Backend.TPU:
        return platforms.tpu(CHIPS[ASSUMED_TPU])
    return platforms.GPU if platform is Backend.GPU else platforms.CPU


def sharing_of(flow: Dataflow, platform: Backend, pairs: InPlacePairs) -> Sharing:
    """Returns the buffer sharing rules of a platform."""
    return Sharing(flow, pairs, rules_of(platform).hint)


def remove_copies(
    module: Module, platform: Backend, age: XlaAge, pairs: InPlacePairs | None = None
) -> list[Decision]:
    """Removes the uses of unnecessary copies in place, and returns a decision for each copy.

    `pairs` are the in-place pairs of the module, if known. Raises MemoryModelError if buffers cannot be determined.
    """
    remover = _Remover(module, platform, age, pairs or in_place_pairs(platform))
    reasons: dict[Instruction, Decision] = {}
    removed: list[Decision] = []
    changed = True
    with Edit(module) as edit:
        while changed:
            changed = False
            for copy in remover.copies:
                if copy in remover.gone:
                    continue
                source = copy.operands[0]
                why_not = remover.try_to_remove(copy)
                if why_not is not None:
                    reasons[copy] = why_not
                    continue
                changed = True
                reasons.pop(copy, None)
                because = f"{source.name} and {copy.name} can share a buffer: neither is read after the other is written"
                removed.append(Decision(copy.name, REMOVED, because, (source.name,), SOURCE))
                was_root = copy.is_root
                _take_out_of_use(copy, edit)
                if was_root and copy.computation is not None:
                    remover.rows.has_root(copy.computation, remover.flow.at[source])
                remover.sharing.forget_operands()
    return [*removed, *reasons.values()]


def _copies(module: Module) -> Iterator[Instruction]:
    """All copies in the order in which they were made, which the text of an unscheduled module does not keep."""
    for computation in in_creation_order(module):
        if not computation.is_fusion_body:
            found = [i for i in computation if i.opcode == "copy"]
            yield from found if module.is_scheduled else sorted(found, key=lambda copy: number_of(copy.name))


def _take_out_of_use(copy: Instruction, edit: Edit) -> None:
    """Gives all users of a copy its operand; nothing waits for it any more."""
    for successor in copy.control_successors:
        set_control(successor, tuple(p for p in successor.control_predecessors if p is not copy))
    if copy.control_predecessors:
        set_control(copy, ())
    source, home = copy.operands[0], copy.computation
    assert home is not None
    between.bypass(copy, edit)
    if copy.is_root:
        home.root = source


class _Remover:
    def __init__(self, module: Module, platform: Backend, age: XlaAge, pairs: InPlacePairs) -> None:
        self.module, self.platform, self.age = module, platform, age
        self.flow = analyse(module)
        self.ordering = Ordering(module)
        self.pairs = pairs
        self.sharing = sharing_of(self.flow, platform, pairs)
        self.uses_before = UsesBefore(self.ordering, self.flow, self.sharing, age)
        self.rows = Rows(self.ordering)
        self.gone: set[Instruction] = set()
        self._ids = instruction_ids(module)
        self.ends: dict[Instruction, tuple[Node, Node]] = {}
        self.copies = list(_copies(module))
        for copy in self.copies:
            if copy in self.flow.at and copy.computation is not None:
                self.ordering.prepare(copy.computation)
        for computation in module.computations:
            if not computation.is_fusion_body:
                self.ordering.prepare(computation)
        ends = {
            copy: (source, result)
            for copy in self.copies
            if copy in self.flow.at
            and (source := self.flow.at[copy.operands[0]][0]) is not None
            and (result := self.flow.at[copy][0]) is not None
        }
        asked = set(itertools.chain.from_iterable(ends.values()))
        for buffer in find_buffers(self.flow, self.pairs):
            if not asked.isdisjoint(buffer):  # nothing is ever asked of other rows
                self._add_row(buffer)
        for copy, (source, result) in ends.items():
            self.ends[copy] = self.rows[source], self.rows[result]

    def _add_row(self, buffer: Buffer) -> None:
        """Puts the values of a buffer into a row, in the order in which they are written (`AddValueList`)."""
        ordering, ids = self.ordering, self._ids

        def compare(a: Value, b: Value) -> int:
            if a is b:
                return 0
            first = ids.get(a.instruction, 0) < ids.get(b.instruction, 0)  # type: ignore[arg-type]
            early, late = (a, b) if first else (b, a)
            if not ordering.is_defined_before(early, late) and ordering.is_defined_before(late, early):
                first = not first
            return -1 if first else 1

        self.rows.add(sorted(buffer, key=functools.cmp_to_key(compare)) if len(buffer) > 1 else buffer)

    # ---- one copy

    def try_to_remove(self, copy: Instruction) -> Decision | None:
        """Takes a copy out of the rows; None, or why it stays."""
        ends = self.ends.get(copy)
        if ends is None:
            return self._kept(copy, "ambiguous source", f"the value that {copy.name} copies is ambiguous")
        assert copy.shape is not None
        source_shape = copy.operands[0].shape
        is_equal = source_shape is copy.shape or (
            source_shape is not None and layout.shapes_equal(copy.shape, source_shape)
        )
        if not is_equal:
            return self._kept(
                copy, "layout change", f"{copy.name} changes the layout: {source_shape} to {copy.shape}"
            )
        if self.platform is Backend.TPU and _is_scalar_of_loop(copy):
            return self._kept(
                copy,
                "scalar loop state",
                "the TPU compiler keeps copies of scalars in loop state",
            )
        source, result = ends
        if source.next is result:
            pass  # earlier removals have put both into one row, one behind the other
        elif self.rows.is_head(result):
            after = self.rows.next(result)
            late = self._read_twice(copy, source, after)
            if late is not None:
                return late
            late = self._late(copy, source, after) or self._late(copy, result.prev, self.rows.next(source))
            if late is not None and self._meet(copy, source, result, MERGE_FIRST_RESULT):
                return late
            self.rows.splice(result, source)
        elif self.rows.next(source) is None:
            before = self.rows.prev(result)
            assert before is not None
            late = self._late(copy, before, source.next) or self._late(copy, source, self.rows.next(result))
            if late is not None and self._meet(copy, source, result, MERGE_LAST_SOURCE):
                return late
            self.rows.splice(source.next, before)
        elif self.age.has(xla_changes.COPIES_OF_ALL_BRANCHES) and self.rows.row(source) is self.rows.row(
            result
        ):
            late = self._is_written_between(copy, source, result)
            if late is not None:
                return late
        else:
            return self._kept(
                copy, "inside both live-range chains",
                f"{copy.operands[0].name} is followed by {source.next.writer.name} in its buffer, and {copy.name} follows "
                f"{result.prev.writer.name} in its own, so they cannot be merged", source.next.writer, result.prev.writer,
            )  # fmt: skip
        self._remove(result, copy, source)
        self.gone.add(copy)
        return None

    def _is_written_between(self, copy: Instruction, source: Node, result: Node) -> Decision | None:
        """Why a copy within one row stays: what reads it is not certain to come before all that stands between."""
        readers = [use for use in source.uses if use.instruction is not copy] + result.uses
        node = self.rows.next(source)
        while node is not result:
            if node is None:
                because = f"{copy.name} precedes what it copies"
                return self._kept(copy, "order unknown", because, source.writer)
            if self._is_root_of(source.value, node.writer.computation) or (
                not readers and not self.ordering.is_defined_before(source.value, node.value)
            ):
                because = f"{_shown(source)} may still be live when {node.writer.name} writes"
                return self._kept(copy, "order unknown", because, node.writer)
            use = self.uses_before.late_use(readers, node.value)
            if use is not None and use.instruction is not None:
                because = (
                    f"{use.instruction.name} may read {copy.name} after {node.writer.name} overwrites it"
                )
                return self._kept(copy, "overwritten in between", because, node.writer, use.instruction)
            node = self.rows.next(node)
        return None

    def _meet(self, copy: Instruction, source: Node, result: Node, where: int) -> bool:
        """True if the lives of two rows meet, where that is asked; else control dependencies keep them apart."""
        if self.platform is not Backend.TPU or copy.operands[0].opcode == "broadcast":
            return True
        regions = RegionComparison(self.ordering, self.pairs)
        return regions.interfere(self._region(source), self._region(result), where)

    def _region(self, start: Node) -> LiveRangeRegion:
        """Where the values of a row are written and read (`ComputeLiveRangeRegions`)."""
        region = LiveRangeRegion()
        node = start
        while True:
            writer = node.writer
            region.define(writer)
            for use in node.uses:
                if use.instruction is not None:
                    region.use(use.instruction, writer)
            node = node.next
            if node is start:
                return region

    def _kept(self, copy: Instruction, rule: str, because: str, *others: Instruction) -> Decision:
        names = tuple(dict.fromkeys(other.name for other in (*copy.operands, *others)))
        return Decision(copy.name, f"{KEPT}: {rule}", because, names, SOURCE)

    def _read_twice(self, copy: Instruction, source: Node, after: Node | None) -> Decision | None:
        """A scatter of several arrays that also reads the source: only one copy of a shared operand may go."""
        if after is None:
            return None
        reader = after.writer
        root = reader.called_computations[0].root if reader.opcode == "fusion" else reader
        if root.opcode != "scatter" or root.shape is None or not root.shape.is_tuple:
            return None
        if not any(use.instruction is reader for use in source.uses):
            return None
        because = f"{reader.name} writes several arrays and reads {source.writer.name} itself"
        return self._kept(copy, "read by a scatter of several arrays", because, reader)

    def _late(self, copy: Instruction, last: Node | None, first: Node | None) -> Decision | None:
        """Why not all values up to `last` die before those from `first` on are written (`CheckLiveRangeBefore`)."""
        rows, pairs = self.rows, 0
        level = rows.level(last, first) if last is not None and first is not None else None
        after = first
        while after is not None:
            before, skips = last, level is not None
            while before is not None:
                pairs += 1
                if pairs > _MOST_PAIRS:
                    return self._kept(
                        copy,
                        "too many values",
                        "too many values share its buffer to compare them all",
                    )
                late = self._overlap(copy, before, after)
                if late is not None:
                    return late
                if skips and level is not None and rows.is_over(before, after, level):
                    skips = rows.are_loose_over(before, after, level)
                    if skips and before is last and rows.is_over_for_all(before, after):
                        return None
                    if skips:
                        break
                before = rows.prev(before)
            after = rows.next(after)
        return None

    def _overlap(self, copy: Instruction, a: Node, b: Node) -> Decision | None:
        """Why a value does not die before another is written (`LiveRangeBefore`)."""
        if not a.uses:
            if self.ordering.is_defined_before(a.value, b.value):
                return None
            because = f"{a.value} is not guaranteed to be written before {b.value}"
            return self._kept(copy, "order unknown", because, a.writer, b.writer)
        if self._is_root_of(a.value, b.writer.computation):
            home = b.writer.computation
            assert home is not None
            because = (
                f"{_shown(a)} is returned by {home.name}, so it is still live when {b.writer.name} writes"
            )
            return self._kept(copy, "result of the computation", because, a.writer, b.writer)
        use = self.uses_before.late_use(a.uses, b.value, self.rows.uses_over(a, b))
        if use is None or use.instruction is None:
            return None
        if use.instruction is b.writer:
            because = f"{b.writer.name} cannot overwrite {_shown(a)}, which it reads"
            return self._kept(copy, "not in place", because, a.writer, b.writer)
        written = (
            f"{b.writer.name} overwrites it"
            if not b.value.is_phi
            else f"{b.writer.name} puts a new value in its place"
        )
        if self.ordering.runs_before_anywhere(b.writer, use.instruction):
            because = f"{use.instruction.name} reads {_shown(a)} after {written}"
            return self._kept(copy, "read later", because, a.writer, b.writer, use.instruction)
        because = f"nothing orders {use.instruction.name}'s read of {_shown(a)} before {written}"
        return self._kept(copy, "read at an unknown time", because, a.writer, b.writer, use.instruction)

    def _is_root_of(self, value: Value, computation: Computation | None) -> bool:
        """True if a value is what a computation gives back, now (`HloValue::IsRootOf`)."""
        if computation is None:
            return False
        root = computation.root
        if value.instruction is root:
            return True
        positions = value.flat_positions()
        return bool(positions) and any(position is root for position in positions[::2])

    # ---- rows

    def _remove(self, node: Node, copy: Instruction, operand: Node) -> None:
        """Takes the value of a copy out of its row; who read it reads what was copied (`RemoveCopyValue`)."""
        before = node.prev
        self.rows.remove(node)
        if before is not operand:
            self.rows.look_again(before)
        operand.forget_use(copy)
        for use in node.uses:
            operand.add_use(use)
            if use.instruction in self.ends:
                _, result = self.ends[use.instruction]
                self.ends[use.instruction] = operand, result
        self.rows.look_again(operand)
        del self.ends[copy]


def _is_scalar_of_loop(copy: Instruction) -> bool:
    """True if a copy is one of a scalar that the body of a loop takes, or of a counter that it gives back: its sum.

    TPU's compiler leaves those (`should_skip_removal`). Inferred: so it was with all 181 such copies in recorded steps of two
    releases, and the open rules say otherwise; 5 copies of other scalars and 410 of arrays were decided by these.
    """
    home = copy.computation
    if (
        home is None
        or copy.shape is None
        or copy.shape.dimensions
        or not any(c.opcode == "while" for c in home.callers)
    ):
        return False
    source = copy.operands[0]
    if source.opcode == "add" and any(user.is_root for user in copy.users):
        return any(map(_is_taken, source.operands))
    return _is_taken(source)


def _is_taken(i: Instruction) -> bool:
    """True for an element of what a computation takes, and a copy of one."""
    i = i.operands[0] if i.opcode == "copy" else i
    return i.opcode == "get-tuple-element" and i.operands[0].opcode == "parameter"


def _shown(node: Node) -> str:
    """A value in words."""
    index = ".".join(map(str, node.value.index))
    return f"element {index} of {node.writer.name}" if index else node.writer.name
