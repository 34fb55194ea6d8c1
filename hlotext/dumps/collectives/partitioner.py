"""Reasons for the partitioner's collectives, from the texts right before and right after it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

import hlotext as hlo
from hlotext.analysis import Communication, DeviceMesh, axes_of, communications
from hlotext.analysis.communication import KINDS
from hlotext.dumps.collectives.carrying import carried_out
from hlotext.dumps.collectives.keys import Key
from hlotext.dumps.collectives.pairing import Sides, leaves_of
from hlotext.dumps.collectives.places import is_constraint
from hlotext.dumps.collectives.records import (
    CONSTRAINT,
    HALO,
    LOOP,
    OPERATION,
    PARTIAL,
    PROGRAM,
    RESHARD,
    RESULT,
    UNKNOWN,
)
from hlotext.dumps.collectives.shardings import Shardings, sharding_of
from hlotext.dumps.collectives.specs import Spec, dimensions_of, placements
from hlotext.dumps.collectives.walking import MOVES, Way, backward, forward, last_of, reading
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.tables.opcode import Family
from hlotext.ir.values.sharding import Sharding

SUMS = traits.REDUCES_ACROSS_DEVICES - traits.STARTS
WINDOWED = frozenset({"convolution", "reduce-window", "select-and-scatter", "slice", "concatenate", "pad"})
"""Readers that read over the edge of a shard."""
SUMMING = frozenset(
    row.name
    for row in opcodes.OPCODES.values()
    if row.family in (Family.CONTRACTION, Family.REDUCTION, Family.INDEXING)
) - {"dynamic-slice", "dynamic-update-slice"}
"""Opcodes that sum over a dimension of an operand, or find elements in one."""
_MOST_BETWEEN = 2
"""Operations between a tensor and what reads it shifted, at most: a slice and a concatenation."""
_CUTS = traits.SLICES | {"pad"}
_SLICES = traits.SLICES


@attrs.define(eq=False)
class Written:
    """A collective right after partitioning, with what is known of its cause."""

    part: hlo.Instruction
    communication: Communication
    key: Key | None
    axes: tuple[str, ...] = ()
    cause: str = UNKNOWN
    wanted_by: str | None = None
    side: str = ""
    """`operand` or `result`, of a reshard."""
    users: tuple[hlo.Instruction, ...] = ()
    """The operations before partitioning that it may be written for: one where that is sure."""
    tensor: hlo.Instruction | None = None
    """The operation before partitioning whose result is moved."""
    tensor_end: hlo.Instruction | None = None
    """The shard of it after partitioning."""
    have: Spec | None = None
    want: Spec | None = None
    have_sharding: Sharding | None = None
    want_sharding: Sharding | None = None
    readers: int = 1
    result: int | None = None
    is_rematerialized: bool = False
    shifted: int | None = None
    """Of a halo the elements that are read over the edge."""
    dimension: int | None = None
    """Of a halo the dimension whose edge it is."""
    doubts: list[str] = attrs.field(factory=list)
    """Doubts, in a few words each."""

    @property
    def user(self) -> hlo.Instruction | None:
        """The operation that needs the collective, or None for results of the program and if several qualify."""
        return self.users[0] if len(self.users) == 1 else None


class Partitioner(Shardings):
    """The collectives created by the partitioner, and the shardings that it was given."""

    def __init__(self, sides: Sides, mesh: DeviceMesh | None) -> None:
        super().__init__(sides.before, mesh)
        self.sides = sides
        self.written: list[Written] = []
        self._unnamed = [
            one
            for one in sides.before.module.instructions()
            if one.opcode in opcodes.COLLECTIVES and sides.before.key_of(one) is None
        ]
        """Collectives that the program itself has, and that say nothing of where they come from."""
        for one in communications(sides.after.module):
            if one.is_host_transfer:
                continue
            part = Written(one.instruction, one, sides.after.key_of(one.instruction))
            part.axes = self._axes(one)
            self.written.append(part)
        for part in self.written:
            self._explain(part)

    def _axes(self, one: Communication) -> tuple[str, ...]:
        return axes_of(self.sides.after.module, one, self.mesh) or ()

    # ---- one collective

    def _explain(self, part: Written) -> None:
        key, sides = part.key, self.sides
        if part.communication.kind not in SUMS and self._named_by_tensor(part):
            return
        if key is None:
            unnamed = [one for one in self._unnamed if KINDS.get(one.opcode) == part.communication.kind]
            if unnamed:
                part.doubts.append("a collective of the program has no metadata")
                self._asked_for(part, unnamed)
            elif sides.before.by_key:
                self._for_result(part)
            else:
                part.doubts.append("the operations have no metadata")
            return
        named = sides.before.by_key.get(key, [])
        if not named:
            part.doubts.append("the operation it was created for is not in the text before partitioning")
            return
        asked = [one for one in named if KINDS.get(one.opcode) == part.communication.kind]
        if asked:
            self._asked_for(part, asked)
            return
        own = {one.opcode for one in named}
        if part.communication.kind in SUMS:
            self._summed(part, named, own)
        else:
            self._moved(part, named, own)

    def _asked_for(self, part: Written, asked: list[hlo.Instruction]) -> None:
        """The program itself has the collective."""
        part.cause = PROGRAM
        part.users = tuple(self.sides.narrowed(asked, part.part))
        user = part.users[0]
        part.tensor = user.operands[0] if user.operands else None

    def _summed(self, part: Written, named: list[hlo.Instruction], own: set[str]) -> None:
        """An operation sums over a dimension that is cut; of another it is not known why shards are added up."""
        if own & SUMMING:
            part.cause = PARTIAL
        else:
            part.doubts.append("it was created for an operation that does not sum")
        computing = own & SUMMING or own - MOVES
        way = backward(self.sides, part.part, part.key, computing or own)
        found = way.own[0] if way.own else None
        if found is not None:
            part.users = tuple(self._candidates(found, named))
        else:
            summing = [one for one in named if one.opcode in SUMMING]
            part.users = tuple(self.sides.narrowed(summing or named, part.part))
            part.doubts.append("the operation that sums was not found")
        part.tensor = part.user
        if part.users:
            self._placed(part, part.users[0])

    def _placed(self, part: Written, node: hlo.Instruction) -> None:
        part.have_sharding = sharding_of(node)
        part.have = self.spec(node)

    def _candidates(self, found: hlo.Instruction, named: list[hlo.Instruction]) -> list[hlo.Instruction]:
        """The operations before partitioning that one after it, with the same key, may be."""
        same = [one for one in named if one.opcode == found.opcode] or named
        left = self.sides.narrowed(same, found)
        if len(left) > 1:
            counterpart = self.sides.counterpart(found)
            if counterpart is not None and counterpart in left:
                return [counterpart]
        return left

    # ---- moved

    def _moved(self, part: Written, named: list[hlo.Instruction], own: set[str]) -> None:
        back = backward(self.sides, part.part, part.key, own - MOVES)
        on = forward(self.sides, part.part, part.key, own)
        if back.own and not self._is_another(back, on):
            self._of_result(part, back.own[0], named)
            return
        reader = last_of(self.sides, on.own)
        if reader is not None:
            part.users = tuple(self._candidates(reader, named))
        else:
            part.users = tuple(self.sides.narrowed(named, part.part))
            part.doubts.append("the operation that reads it was not found")
        self._find_tensor(part, back)
        opcode = part.users[0].opcode if part.users else ""
        if (
            part.communication.kind == "collective-permute"
            and opcode in WINDOWED
            and self._is_slice(part, back)
        ):
            part.cause, part.side = HALO, "operand"
            return
        part.cause, part.side = RESHARD, "operand"
        part.wanted_by = _wanted_by(part.users)
        if reader is not None and reader.opcode not in MOVES:
            part.readers += len({self.sides.after.key_of(one) for one in on.ends})
        self._want(part, back, on, reader)

    def _is_another(self, back: Way, on: Way) -> bool:
        """True where what is met on the way back is another operation of the program than the one that reads it."""
        if not on.own:
            return False
        made, read = self.sides.counterpart(back.own[0]), last_of(self.sides, on.own)
        if made is None or read is None or self.sides.local(made) != leaves_of(back.own[0]):
            return False
        reading = self.sides.counterpart(read)
        return reading is not None and reading is not made

    def _of_result(self, part: Written, found: hlo.Instruction, named: list[hlo.Instruction]) -> None:
        """The operation was carried out in another sharding than its result has."""
        part.cause, part.side, part.wanted_by = RESHARD, "result", OPERATION
        same = [one for one in named if one.opcode == found.opcode] or named
        # Its result has another local shape; others on its line are placed as they are computed.
        moved = [one for one in same if self.sides.local(one) != leaves_of(found)]
        part.users = tuple(self.sides.narrowed(moved or same, found))
        part.tensor = part.user
        if part.users and dimensions_of(part.users[0]) is not None:
            part.want = self.spec(part.users[0])
            part.want_sharding = sharding_of(part.users[0])
            self._asked_by_constraint(part, found)

    def _asked_by_constraint(self, part: Written, found: hlo.Instruction) -> None:
        """Blames the constraint for which the result is placed otherwise: Shardy gives what it takes its sharding."""
        made = part.user
        if made is None or self.mesh is None:
            return
        asking = [one for one in made.user_view if is_constraint(one) and self.spec(one) == part.want]
        have, dimensions = carried_out(self, made), dimensions_of(made)
        if not asking or have is None or dimensions is None:
            return
        if (have.local(dimensions, self.mesh),) != leaves_of(found):
            return
        part.side, part.wanted_by, part.users, part.have = "operand", CONSTRAINT, (asking[0],), have
        part.tensor_end = found

    def _find_tensor(self, part: Written, back: Way) -> None:
        """The tensor that is moved: what makes the data that comes to the collective."""
        ends = [*back.own, *back.ends]
        found: dict[hlo.Instruction, hlo.Instruction] = {}
        for end in ends:
            one = self.sides.counterpart(end)
            if one is not None:
                found.setdefault(one, end)
        if len(found) == 1 and len(set(ends)) >= 1:
            part.tensor, part.tensor_end = next(iter(found.items()))
            if len(ends) > 1:
                part.doubts.append("part of the data is computed elsewhere")
            self._placed(part, part.tensor)
        else:
            part.doubts.append(
                f"{len(found)} tensors are concatenated before the transfer"
                if found
                else "the tensor is unknown"
            )

    def _is_slice(self, part: Written, back: Way) -> bool:
        """True where only a slice of the tensor is sent."""
        node = part.part.operands[0] if part.part.operands else None
        while node is not None and node in back.passed:
            if node.opcode in _SLICES:
                sizes, whole = leaves_of(node), leaves_of(node.operands[0])
                if sizes and whole and len(sizes[0]) == len(whole[0]):
                    cut = [n for n, (a, b) in enumerate(zip(sizes[0], whole[0], strict=True)) if a < b]
                    part.dimension = cut[0] if len(cut) == 1 else None
                    part.shifted = sizes[0][cut[0]] if len(cut) == 1 else None
                return True
            node = node.operands[0] if node.operands else None
        return False

    def _named_by_tensor(self, part: Written) -> bool:
        """A collective that carries the metadata of its tensor, not of its reader. False for others."""
        if part.key is not None:
            own = {one.opcode for one in self.sides.before.by_key.get(part.key, ())}
            if forward(self.sides, part.part, part.key, own).own:
                return False
        found = reading(self.sides, part.part)
        if found is None:
            return False
        part.cause, part.side = RESHARD, "operand"
        part.tensor, part.tensor_end = found.tensor, found.end
        if found.is_one_of_several:
            part.doubts.append("several equal tensors match")
        self._placed(part, found.tensor)
        back = Way((), (found.end,), tuple(one for one in found.chain if one is not part.part))
        if found.is_result:
            self._as_result(part)
            return True
        part.users = found.readers
        part.wanted_by = _wanted_by(found.readers)
        opcode = found.readers[0].opcode
        on = forward(self.sides, part.part, found.key, {opcode}, found.chain)
        reader = last_of(self.sides, on.own)
        if reader is not None and len(part.users) > 1:
            part.users = tuple(self._candidates(reader, list(part.users)))
        if reader is not None and reader.opcode not in MOVES:
            part.readers += len({self.sides.after.key_of(one) for one in on.ends})
        self._want(part, back, on, reader)
        if (
            part.communication.kind == "collective-permute"
            and part.want is not None
            and part.want == part.have
        ):
            self._as_shifted(part, found.tensor)
        return True

    def _as_shifted(self, part: Written, tensor: hlo.Instruction) -> None:
        """A tensor that is read as it is placed, but shifted: by a roll whose slices and concatenation have vanished."""
        part.want = part.want_sharding = None
        level = [tensor]
        for _ in range(_MOST_BETWEEN):
            level = [user for one in level for user in one.user_view if user.opcode in WINDOWED]
            for one in level:
                if any(user in part.users for user in one.user_view):
                    part.cause, part.wanted_by, part.users, part.readers = HALO, None, (one,), 1
                    return
        part.doubts.append("it already has the sharding that is needed")

    # ---- the sharding that is wanted

    def _want(self, part: Written, back: Way, on: Way, reader: hlo.Instruction | None) -> None:
        tensor = part.tensor
        user = part.users[0] if part.users else None
        if tensor is None or user is None:
            return
        if _is_placed_alike(user, tensor):
            part.want, part.want_sharding = self.spec(user), sharding_of(user)
        elif reader is not None and part.have is not None and self.mesh is not None:
            part.want = self._told_by_shape(part, back, on, reader)
        if part.have is not None and part.want is not None:
            part.is_rematerialized = self._is_cut_again(part, on)

    def _told_by_shape(self, part: Written, back: Way, on: Way, reader: hlo.Instruction) -> Spec | None:
        """The one nearest placement whose local shape is that of the value that reaches the operation."""
        assert part.tensor is not None
        assert part.have is not None
        assert self.mesh is not None
        dimensions = dimensions_of(part.tensor)
        reached = {part.part, *on.passed}
        values = [one for one in reader.operands if one in reached]
        if dimensions is None or len(values) != 1:
            return None
        value: hlo.Instruction | None = values[0]
        chain = [part.part, *back.passed, *on.passed]
        axes = dict.fromkeys(
            axis.partition(":")[0] for one in chain if one.opcode in KINDS for axis in self._axes_at(one)
        )
        others: tuple[str, ...] = ()
        if any(one.opcode == "dynamic-slice" for one in on.passed):
            others = tuple(name for name in self.mesh.names if name not in part.have.used)
        near = list(placements(part.have, tuple(axes), others))
        while value is not None and value in reached:
            local = leaves_of(value)
            if len(local) == 1 and len(local[0]) == len(dimensions):
                best: list[Spec] = []
                least = 0
                for cost, spec in near:
                    if best and cost > least:
                        break
                    if spec.local(dimensions, self.mesh) == local[0] and spec.leaves_none_empty(
                        dimensions, self.mesh
                    ):
                        best.append(spec)
                        least = cost
                if best:
                    return best[0] if len(best) == 1 else None
            # What is cut or padded for the operation alone has no placement of its own: it is that of what was cut.
            value = value.operands[0] if value.opcode in _CUTS and value.operands else None
        return None

    def _axes_at(self, node: hlo.Instruction) -> tuple[str, ...]:
        return next((one.axes for one in self.written if one.part is node), ())

    def _is_cut_again(self, part: Written, on: Way) -> bool:
        """True for a gather whose result each device cuts along a dimension that was whole."""
        if part.communication.kind != "all-gather" or part.have is None or part.want is None:
            return False
        if not any(one.opcode == "dynamic-slice" for one in on.passed):
            return False
        return (
            any(cut and not had for had, cut in zip(part.have.axes, part.want.axes, strict=True))
            if part.have.rank == part.want.rank
            else False
        )

    # ---- results

    def _for_result(self, part: Written) -> None:
        """A collective without metadata: one for the results of the program, or for the state of a loop."""
        home = part.part.computation
        back = backward(self.sides, part.part, None, ())
        part.cause, part.side = RESHARD, "operand"
        self._find_tensor(part, back)
        if home is None or not home.is_entry:
            part.wanted_by = LOOP
            part.doubts.append("it is in a loop without metadata")
            return
        self._as_result(part)

    def _as_result(self, part: Written) -> None:
        """Required sharding of a result of the program."""
        part.wanted_by = RESULT
        results = self.sides.after.reach(part.part)[1]
        if results and not results & (results - 1):
            part.result = results.bit_length() - 1
            part.want_sharding = self.result_sharding(part.result)
            if part.tensor is not None and self.specs is not None:
                dimensions = dimensions_of(part.tensor)
                if dimensions is not None and self._has_result_sharding():
                    part.want = self.specs.of(part.want_sharding, len(dimensions))
        if part.want is None:
            part.doubts.append("the sharding of the result is unknown")

    def _has_result_sharding(self) -> bool:
        return len(self.sides.before.module.entry) > 0


def _wanted_by(users: Iterable[hlo.Instruction]) -> str:
    for user in users:
        if is_constraint(user):
            return CONSTRAINT
        if user.opcode in ("while", "tuple"):
            return LOOP
    return OPERATION


def _is_placed_alike(user: hlo.Instruction, tensor: hlo.Instruction) -> bool:
    """True for an operation that takes its operands placed as its result is."""
    if user.opcode not in opcodes.ELEMENTWISE and user.opcode != "copy":
        return False
    return dimensions_of(user) == dimensions_of(tensor) is not None
