"""Decides if the live ranges of two value lists interfere, seen as regions of instructions.

After `ComputeRelativeLocation` and `CopyRemover::ValuesInterfere` (`xla/service/copy_removal.cc`): finer than comparing
values one by one, since instructions whose order nothing fixes may be put in one by control dependencies.
"""

from __future__ import annotations

import bisect
import itertools

import attrs

from hlotext.compiler.deep_copy import add_control
from hlotext.compiler.ordering import Ordering, Relation
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.layout import shapes_equal
from hlotext.memory.in_place import WRITES_IN_PLACE, InPlacePairs

NO_OVERLAP, SAME, BEFORE, AFTER = 0, 1, 2, 4
"""Bits of where one instruction runs, seen from another (`Relation::RuntimeOrder`)."""
UNORDERED = BEFORE | AFTER
MERGE_FIRST_RESULT, MERGE_LAST_SOURCE = 1, 2
"""Choice of the list that is inserted into the middle of the other (`CombineLiveRangeOption`)."""
_ORDERS = {
    Relation.SAME: SAME,
    Relation.BEFORE_END: BEFORE | SAME,
    Relation.BEFORE: BEFORE,
    Relation.AFTER: AFTER,
    Relation.EXCLUSIVE_BEFORE: NO_OVERLAP,
    Relation.EXCLUSIVE_AFTER: NO_OVERLAP,
}
_REVERSED = {BEFORE: AFTER, AFTER: BEFORE, BEFORE | SAME: AFTER | SAME, AFTER | SAME: BEFORE | SAME}
_HANDS_ON = traits.CONTROL_FLOW | traits.TUPLES | {"parameter"}
"""Opcodes that write no new value themselves (`InstructionCanIntercept`)."""
_DEEPEST = 64
"""Forced orders that are followed one from another."""
MOST_PAIRS = 1_000_000
"""Pairs of instructions that are compared for one copy; beyond that it stays, which XLA has no limit for."""


@attrs.define(eq=False)
class RegionEntry:
    """An instruction of a live range region."""

    instruction: Instruction
    writes: bool = False
    """True if it defines one of the values."""
    reads: Instruction | None = None
    """Definition of the value that it reads; None if it only writes."""


class LiveRangeRegion:
    """The instructions that define or use the values of a list, by computation (`LiveRangeRegions`)."""

    def __init__(self) -> None:
        self.by_computation: dict[Computation, dict[Instruction, RegionEntry]] = {}
        self._last: tuple[Computation | None, dict[Instruction, RegionEntry]] = None, {}
        """The computation that was asked for last, as it mostly is the next time."""

    def _entry(self, i: Instruction) -> RegionEntry:
        home = i._computation
        assert home is not None
        if self._last[0] is not home:
            self._last = home, self.by_computation.setdefault(home, {})
        inside = self._last[1]
        entry = inside.get(i)
        if entry is None:
            entry = inside[i] = RegionEntry(i)
        return entry

    def define(self, i: Instruction) -> None:
        """Records an instruction that defines a value."""
        self._entry(i).writes = True

    def use(self, i: Instruction, writer: Instruction) -> None:
        """Records an instruction that uses a value."""
        self._entry(i).reads = writer

    def __contains__(self, i: Instruction) -> bool:
        return i.computation is not None and i in self.by_computation.get(i.computation, ())

    def __len__(self) -> int:
        return sum(map(len, self.by_computation.values()))


@attrs.define
class RelativeLocation:
    """Runtime order of a region relative to another (`Relation`)."""

    orders: list[int] = attrs.field(factory=list)
    intercepts: bool = False
    """True if it may overwrite a value that the other still reads."""

    @property
    def overlaps(self) -> bool:
        """True if the regions may overlap at run time (`RuntimeOrderOverlap`)."""
        return any(order >= UNORDERED for order in self.orders)

    def add(self, other: RelativeLocation) -> None:
        """Adds the relation of another instruction (`UnionRelationFromDifferentSource`)."""
        if not other.orders:
            return
        self.intercepts |= other.intercepts
        order = other.orders[0]
        for number, known in enumerate(self.orders):
            if order | known in (order, known):
                self.orders[number] = order | known
                return
        self.orders.append(order)


class RegionComparison:
    """Compares two regions. Its assumptions about order are turned into control dependencies."""

    def __init__(self, ordering: Ordering, pairs: InPlacePairs) -> None:
        self.ordering, self.pairs = ordering, pairs
        self._is_sequential = ordering.is_sequential
        self._saved: dict[tuple[Instruction, Instruction], int] = {}
        self._forced: dict[Instruction, list[Instruction]] = {}

    def interfere(self, source: LiveRangeRegion, result: LiveRangeRegion, where: int) -> bool:
        """Returns True if the values of two lists are live simultaneously (`ValuesInterfere`).

        Otherwise adds the control dependencies that were assumed.
        """
        if len(source) * len(result) > MOST_PAIRS:
            return True
        home = self._schedule_of_both(source, result)
        first = self._compare(source, result) if home is None else self._compare_places(source, result, home)
        if first.overlaps and first.intercepts:
            return True
        second = self._compare(result, source) if home is None else self._compare_places(result, source, home)
        if first.overlaps and (second.overlaps or (where != MERGE_FIRST_RESULT and second.intercepts)):
            return True
        if (
            second.overlaps
            and not first.overlaps
            and (second.intercepts or (where != MERGE_LAST_SOURCE and first.intercepts))
        ):
            return True
        return not self._add_control()

    def _compare(self, one: LiveRangeRegion, other: LiveRangeRegion) -> RelativeLocation:
        """Where `other` runs, seen from `one` (`ComputeBetweenLiveRangeRegions`)."""
        found = RelativeLocation()
        for home, inside in one.by_computation.items():
            entries = _late_first(home, inside)
            for there, others in other.by_computation.items():
                if home not in self.ordering.chain(there):
                    continue
                for entry in _late_first(there, others):
                    found.add(self._locate(entry, entries, one))
        return found

    # ---- in one schedule, where a place says it all

    def _schedule_of_both(self, one: LiveRangeRegion, other: LiveRangeRegion) -> Computation | None:
        """The computation that both regions are in, if it has a schedule that ends with its root."""
        if not self._is_sequential or len(one.by_computation) != 1:
            return None
        (home,) = one.by_computation
        if (
            one.by_computation.keys() != other.by_computation.keys()
            or home.root is not home._instructions[-1]
        ):
            return None
        return home

    def _compare_places(
        self, one: LiveRangeRegion, other: LiveRangeRegion, home: Computation
    ) -> RelativeLocation:
        """The result of `_compare`, in n log n: of two instructions one runs before the other, and no order is forced."""
        place, mine = home.order.positions.__getitem__, one.by_computation[home]
        places = list(map(place, mine))
        first, last = min(places), max(places)
        lives = sorted((place(e.reads), place(i)) for i, e in mine.items() if e.reads is not None)
        starts = [start for start, _ in lives]
        ends = list(itertools.accumulate((end for _, end in lives), max))
        read = [e.reads for e in mine.values() if e.reads is not None]
        is_whole = (entry := mine.get(home.root)) is not None and _is_parameter(entry.reads)
        tuples = {i for i in read if i._head.shape is not None and i._head.shape.is_tuple}
        if tuples and not any(c.opcode == "conditional" for c in home.callers):
            tuples = set()
        overlaps = intercepts = False
        for i, entry in other.by_computation[home].items():
            here, own = place(i), mine.get(i)
            writes_first = own is not None and own.writes and not entry.writes
            is_before = here < last or writes_first
            is_after = here > first or (own is not None and entry.writes and not own.writes)
            overlaps |= is_before and is_after
            if intercepts or _always_intercepts(i):
                intercepts = True
            elif read and self._can_intercept(entry, one):
                before = bisect.bisect_left(starts, here)
                intercepts = (
                    is_whole
                    or i in tuples
                    or (before > 0 and ends[before - 1] > here)
                    or (
                        writes_first and own is not None and own.reads is not None and place(own.reads) < here
                    )
                )
            if overlaps and intercepts:
                break  # which nothing takes back
        return RelativeLocation([UNORDERED if overlaps else NO_OVERLAP], intercepts)

    # ---- in any order

    def _locate(
        self, entry: RegionEntry, entries: list[RegionEntry], region: LiveRangeRegion
    ) -> RelativeLocation:
        """Where one instruction runs, seen from those of a computation."""
        changes, always = self._can_intercept(entry, region), _always_intercepts(entry.instruction)
        orders, intercepts = NO_OVERLAP, False
        loose: list[RegionEntry] = []
        loose_intercepts = False
        for mine in entries:
            order, is_between = self._between(mine, entry, changes, always)
            if order == UNORDERED:
                loose.append(mine)
                loose_intercepts |= is_between
            else:
                orders |= order
                intercepts |= is_between
        is_seen = len(loose) < len(entries)
        if not self._force(loose, entry, orders):
            orders |= UNORDERED
            is_seen = True
            intercepts |= loose_intercepts
        return RelativeLocation([orders] if is_seen else [], intercepts)

    def _between(
        self, mine: RegionEntry, other: RegionEntry, changes: bool, always: bool
    ) -> tuple[int, bool]:
        """Where `other` runs, seen from `mine`, and whether it comes between its value and its use.

        `ComputeBetweenInstructionEntries`. `always`: it intercepts whatever it does.
        """
        writer, use, i = mine.reads, mine.instruction, other.instruction
        order = self._order(i, use)
        if order == SAME and mine.writes != other.writes:
            order = BEFORE if mine.writes else AFTER
        if writer is None or not changes:
            return order, always
        if writer._head.opcode == "parameter" and use.is_root:
            return order, True
        home = writer._computation
        if use._computation is home:
            if (
                writer._head.opcode == "while"
                and i.computation is writer.attributes["body"]
                and self._order(use, i) == AFTER
            ):
                return order, False
            if (
                use._head.opcode == "while"
                and i.computation is use.attributes["body"]
                and self._order(writer, i) == BEFORE
            ):
                return order, False
            if writer is i and writer.shape is not None and writer.shape.is_tuple:
                is_branch = home is not None and any(c.opcode == "conditional" for c in home.callers)
                if is_branch:
                    return order, True
        if order in (BEFORE, UNORDERED) and self._order(i, writer) in (AFTER, UNORDERED):
            return order, True
        return order, always

    def _can_intercept(self, entry: RegionEntry, region: LiveRangeRegion) -> bool:
        """True if an instruction puts a new value into the memory (`InstructionCanIntercept`)."""
        i = entry.instruction
        if not entry.writes:
            return i._head.opcode in WRITES_IN_PLACE and any(
                pair.operand_number < len(i.operands) and i.operands[pair.operand_number] in region
                for pair in self.pairs.of(i)
            )
        if i.opcode == "copy":
            operand = i.operands[0]
            source = operand.operands[0] if operand.opcode == "get-tuple-element" else operand
            is_plain = (
                i.shape is not None and operand.shape is not None and shapes_equal(i.shape, operand.shape)
            )
            return not (source in region and is_plain)
        return i.opcode not in _HANDS_ON

    # ---- the order of two instructions

    def _order(self, a: Instruction, b: Instruction, depth: int = 0) -> int:
        """Where `a` runs, seen from `b`, with what was forced (`ComputeRuntimeOrdering`)."""
        home = a._computation
        if self._is_sequential and home is not None and home is b._computation and a is not b:
            # The most frequent case: nothing but the schedule decides, unless what stands first is the root.
            places = home.order.positions
            is_first = places[a] < places[b]
            if (a if is_first else b) is not home.root:
                return BEFORE if is_first else AFTER
        known = self._known(a, b)
        if known is not None:
            return known
        relation = self.ordering.relation(a, b)
        if relation is not Relation.UNORDERED:
            order = self._saved[a, b] = _ORDERS[relation]
            return order
        if a.computation is not b.computation or depth > _DEEPEST:
            return UNORDERED
        if any(
            self._order(a, before, depth + 1) in (BEFORE, SAME, BEFORE | SAME)
            for before in self._forced.get(b, ())
        ):
            self._saved[a, b] = BEFORE
            return BEFORE
        if any(
            self._order(b, before, depth + 1) in (BEFORE, SAME, BEFORE | SAME)
            for before in self._forced.get(a, ())
        ):
            self._saved[a, b] = AFTER
            return AFTER
        return UNORDERED

    def _known(self, a: Instruction, b: Instruction) -> int | None:
        known = self._saved.get((a, b))
        if known is None and (known := self._saved.get((b, a))) is not None:
            known = _REVERSED.get(known, known)
        return known

    def _force(self, loose: list[RegionEntry], entry: RegionEntry, order: int) -> bool:
        """Puts instructions without order on one side of another, if that can be done (`ForceRuntimeOrder`)."""
        if not loose:
            return True
        if order not in (BEFORE, AFTER):
            return False
        for other in loose:
            if other.instruction.computation is not entry.instruction.computation:
                return False
            before, after = entry.instruction, other.instruction
            if order == AFTER:
                before, after = after, before
            if before.is_root or (after.opcode == "copy" and self._overwrites(before, after.operands[0])):
                return False
        for other in loose:
            self._save(entry.instruction, other.instruction, order)
        return True

    def _overwrites(self, i: Instruction, operand: Instruction) -> bool:
        return any(
            pair.operand_number < len(i.operands) and i.operands[pair.operand_number] is operand
            for pair in self.pairs.of(i)
        )

    def _save(self, a: Instruction, b: Instruction, order: int) -> None:
        """Notes an order that nothing fixes (`Save`)."""
        if self._known(a, b) is not None:
            return
        self._saved[a, b] = order
        before, after = (a, b) if order == BEFORE else (b, a)
        waits = self._forced.setdefault(after, [])
        for number, other in enumerate(waits):
            known = self._known(before, other)
            if known is not None:
                if known == AFTER:
                    waits[number] = before
                return
        waits.append(before)

    def _add_control(self) -> bool:
        """Makes control dependencies of what was forced; False where the module has a schedule, which stands."""
        edges = [(before, after) for after, waits in self._forced.items() for before in waits]
        if not edges:
            return True
        if self.ordering.is_sequential:
            return False
        for before, after in edges:
            add_control(before, after)
            self.ordering.add_path(before, after)
        return True


def _late_first(home: Computation, entries: dict[Instruction, RegionEntry]) -> list[RegionEntry]:
    """Users before operands, so that no order is forced that another one implies.

    XLA takes instructions by their numbers, which no text has.
    """
    order = home.order
    return sorted(entries.values(), key=lambda entry: order[entry.instruction], reverse=True)


def _is_parameter(i: Instruction | None) -> bool:
    return i is not None and i.opcode == "parameter"


def _always_intercepts(i: Instruction) -> bool:
    """Communication gets memory of its own (`AlwaysForceInterception`)."""
    opcode = i._head.opcode
    return (
        opcode == "collective-permute" or opcode in ("send", "recv") or opcode.endswith(("-start", "-done"))
    )


__all__ = [
    "MERGE_FIRST_RESULT",
    "MERGE_LAST_SOURCE",
    "LiveRangeRegion",
    "RegionComparison",
    "RegionEntry",
    "RelativeLocation",
]
