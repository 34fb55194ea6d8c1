"""Why collectives are there when only the texts before and after optimization were dumped."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence

import attrs

import hlotext as hlo
from hlotext.analysis import Communication, DeviceMesh, axes_of
from hlotext.analysis.communication import KINDS
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.ends_constraints import asking
from hlotext.dumps.collectives.ends_reasons import (
    BY_OPERAND,
    NO_METADATA,
    NO_READER,
    ONLY_NAME,
    is_in_shard_map,
    may_sum,
    unknown,
    unknown_sum,
    worded,
)
from hlotext.dumps.collectives.finals import kin_of
from hlotext.dumps.collectives.foreseen import Foreseen, is_foreseeable
from hlotext.dumps.collectives.keys import Key, Keys, Text
from hlotext.dumps.collectives.partitioner import SUMMING, SUMS, WINDOWED
from hlotext.dumps.collectives.places import (
    Places,
    asked_kind,
    is_constraint,
    is_named_constraint,
    joined_names_of,
    op_name_of,
)
from hlotext.dumps.collectives.producers import (
    HANDS_ON,
    VIEWS,
    argument_of,
    behind_views,
    is_read_so,
    is_returned,
    joined,
    maker,
    reader_of,
)
from hlotext.dumps.collectives.records import (
    CONSTRAINT,
    HALO,
    HIGH,
    LOW,
    MEDIUM,
    OPERATION,
    PARTIAL,
    PROGRAM,
    RESHARD,
    RESULT,
    CollectiveCause,
    Confidence,
    Place,
    Reason,
)
from hlotext.dumps.collectives.specs import Spec, Specs
from hlotext.dumps.collectives.walking import is_marked
from hlotext.ir.tables import traits
from hlotext.ir.values.sharding import Sharding

_VIEWING = VIEWS | traits.SLICES | traits.TUPLES | {"opt-barrier"}
"""Their opcodes in the program."""
_BY_NAMES = "only the names of the combined collectives show it"
_BY_READER = "the operation is the one that it is named for; how it reads the tensor is not shown"
_NEAREST = "the operation is the nearest one that reads the result"
_Sized = tuple[str, int | None]
"""The kind of a collective, and the elements of an array that it takes."""


def collectives(
    after: hlo.Module,
    before: hlo.Module | None,
    begun: tuple[Communication, ...],
    mesh: DeviceMesh | None,
    note: str,
) -> tuple[CollectiveCause, ...]:
    """Causes of the collectives, as far as the first and last texts show them."""
    keys = Keys()
    told = _Ends(Text(after, keys), Text(before, keys) if before is not None else None, mesh, begun)
    notes = (note,) if mesh is not None else (note, wording.NO_MESH)
    return tuple(CollectiveCause(one.instruction, one, told.reasons(one), notes) for one in begun)


class _Ends:
    def __init__(
        self, final: Text, program: Text | None, mesh: DeviceMesh | None, begun: Sequence[Communication]
    ) -> None:
        self.final = final
        self.program = program
        self.mesh = mesh
        self.specs = Specs(mesh) if mesh is not None else None
        self.places = Places(final)
        self.program_places = Places(program or final)
        self.foreseen = (
            Foreseen(program.module.clone(), mesh, final, begun)
            if program is not None and mesh is not None and is_foreseeable(program.module)
            else None
        )
        self._by_short: dict[object, list[hlo.Instruction]] = defaultdict(list)
        self._asking: dict[tuple[hlo.Instruction, str, int | None], hlo.Instruction] = {}
        """The collectives that the program itself has, by what makes their operands, their kind and size."""
        self._is_marked = any(is_marked(one.instruction) or is_marked(one.start) for one in begun)
        for node in program.module.instructions() if program is not None else ():
            self._by_short[self._short(node)].append(node)
            if (kind := KINDS.get(node.opcode)) is not None:
                for one in node.operands:
                    self._asking[behind_views(one), kind, _elements(one)] = node

    @staticmethod
    def _short(node: hlo.Instruction) -> object:
        """The last part of the op_name and the line: calls are not inlined before optimization."""
        frame = node.innermost_frame
        return op_name_of(node).rpartition("/")[2], frame.line if frame else 0, frame.file if frame else ""

    def reasons(self, one: Communication) -> tuple[Reason, ...]:
        """One reason, or one for each operand of a combined collective."""
        node = one.instruction
        axes = axes_of(self.final.module, one, self.mesh) or ()
        data = [n for n in node.operands if n.shape is not None and n.shape.is_array]
        if len(data) > 1 and one.kind != "all-to-all":  # one exchange may have an operand for each device
            return self._of_operands(one, data, axes)
        if one.kind in SUMS and (names := joined_names_of(node)):
            return tuple(self._of_name(name, axes) for name in names)
        parts = joined(data[0]) if data else []
        if len(parts) > 1 and op_name_of(node) == "":
            return self._of_operands(one, parts, axes)
        return (self._single(one, data[0] if data else None, axes),)

    def _of_operands(
        self, one: Communication, data: list[hlo.Instruction], axes: tuple[str, ...]
    ) -> tuple[Reason, ...]:
        """The reasons of a combined collective: each array that the program has a collective for, and then the others."""
        node = one.instruction if self.final.key_of(one.instruction) is not None else one.start
        key = self.final.key_of(node)
        named = {
            (one.kind, _elements(each)): own
            for own in (self._candidates(node, key) if key is not None else ())
            if KINDS.get(own.opcode) == one.kind
            for each in own.operands
        }
        asked = [self._asked_for(one, operand, named) for operand in data]
        sure: Confidence = HIGH if None not in asked else MEDIUM
        return tuple(
            (self._foreseen(one, axes, number) or self._of_operand(one, operand, axes))
            if own is None
            else worded(
                PROGRAM,
                None,
                self.program_places.of(own),
                self._place(maker(operand)),
                axes,
                None,
                sure,
                doubt="the program has no collective for another of the arrays that were combined",
            )
            for number, (operand, own) in enumerate(zip(data, asked, strict=True))
        )

    def _of_name(self, op_name: str, axes: tuple[str, ...]) -> Reason:
        """The reason of a sum of which only the op_name is left: its frames are not those of the combined one."""
        found = self._named(op_name)
        computed = list(dict.fromkeys(behind_views(node) for node in found))
        computed = [node for node in computed if node.opcode in SUMMING] or computed
        frames = {
            (frame.file, frame.line) for node in computed if (frame := node.innermost_frame) is not None
        }
        file, line = frames.pop() if len(frames) == 1 else ("", None)
        exact = computed[0] if len(computed) == 1 else None
        place = Place(op_name, line, file, _opcode(computed), exact)
        kind = asked_kind(op_name)
        if any(node.opcode in KINDS for node in found) or (not found and kind is not None and kind in SUMS):
            return worded(PROGRAM, None, place, None, axes, None, MEDIUM, doubt=_BY_NAMES)
        if is_in_shard_map(place):
            return unknown_sum(place, axes, "is in a shard_map that may request the sum itself")
        if not may_sum(place, computed):
            return unknown_sum(place, axes)
        sure: Confidence = MEDIUM if computed and self.program is not None else LOW
        doubt = _BY_NAMES if sure == MEDIUM else ONLY_NAME
        return worded(PARTIAL, None, place, place, axes, None, sure, doubt=doubt)

    def _named(self, op_name: str) -> list[hlo.Instruction]:
        """The operations of the program, or else of the final text, with a name; in called computations, of its end."""
        last, found = op_name.rpartition("/")[2], dict[str, list[hlo.Instruction]]()
        for node in self._by_last.get(last, ()):
            own = op_name_of(node)
            if op_name == own or op_name.endswith(f"/{own}"):
                found.setdefault(own, []).append(node)
        return found[max(found, key=len)] if found else []

    @functools.cached_property
    def _by_last(self) -> Mapping[str, Sequence[hlo.Instruction]]:
        found: dict[str, list[hlo.Instruction]] = defaultdict(list)
        for node in (self.program or self.final).module.instructions():
            if name := op_name_of(node).rpartition("/")[2]:
                found[name].append(node)
        return found

    def _asked_for(
        self, one: Communication, operand: hlo.Instruction, named: dict[_Sized, hlo.Instruction]
    ) -> hlo.Instruction | None:
        """The collective of the program that takes an array of a combined one.

        It takes what made the array, or else it has as many elements, and the metadata that the combined one kept of the
        first of its parts (`named`).
        """
        made, sized = maker(operand), (one.kind, _elements(operand))
        key = self.final.key_of(made)
        for source in self._candidates(made, key) if key is not None else ():
            if (own := self._asking.get((source, *sized))) is not None:
                return own
        return named.get(sized)

    def _of_operand(self, one: Communication, operand: hlo.Instruction, axes: tuple[str, ...]) -> Reason:
        """One part of a combined collective: what makes the operand is the operation that sums, or the tensor."""
        made = maker(operand)
        if self._is_told_by_name(one):
            user = self.places.of(one.start)
            return worded(PROGRAM, None, user, self._place(made), axes, None, MEDIUM, doubt=ONLY_NAME)
        if one.kind in SUMS:
            place, key = self._place(made), self.final.key_of(made)
            if place is not None and is_in_shard_map(
                place
            ):  # of its parts the combined one names the first alone
                return unknown_sum(place, axes, "is in a shard_map that may request the sum itself")
            if place is not None and not may_sum(place, self._candidates(made, key) if key else []):
                return unknown_sum(place, axes)
            sure: Confidence = MEDIUM if place is not None else LOW
            doubt = BY_OPERAND if place is not None else NO_METADATA
            return worded(PARTIAL, None, place, place, axes, None, sure, doubt=doubt)
        argument = argument_of(made)
        tensor, have = self._place(argument) or self._place(made), self._have(argument)
        spec = str(have) if have is not None else None
        return self._constrained(one, tensor, axes, have) or worded(
            RESHARD, OPERATION, None, tensor, axes, spec, LOW, doubt=NO_READER
        )

    def _single(self, one: Communication, operand: hlo.Instruction | None, axes: tuple[str, ...]) -> Reason:
        ends = (one.instruction, one.start, *_fusion_around(one.start))
        named = next((end for end in ends if self.final.key_of(end) is not None), one.start)
        key = self.final.key_of(named)
        candidates = self._candidates(named, key) if key is not None else []
        user = self.places.of(named)
        if key is not None:
            exact = candidates[0] if len(candidates) == 1 else None
            user = attrs.evolve(user, opcode=_opcode(candidates), instruction=exact)
        if (foreseen := self._foreseen(one, axes)) is not None:
            return foreseen
        # What else has its name only moves its data.
        kinds = {kin_of(kind) for c in candidates if (kind := KINDS.get(c.opcode)) is not None}
        if kin_of(one.kind) in kinds or self._is_told_by_name(one):
            taken = user.instruction.operands[:1] if user.instruction is not None else ()
            tensor = self.program_places.of(taken[0]) if taken else None
            is_read: Confidence = HIGH if candidates else MEDIUM
            return worded(PROGRAM, None, user, tensor, axes, None, is_read, doubt=ONLY_NAME)
        made = maker(operand) if operand is not None else None
        if one.kind in SUMS:
            return (
                self._sum(user, candidates, made, axes) if key is not None else self._unnamed_sum(made, axes)
            )
        return self._moved(one, user, candidates, made, key, axes)

    @staticmethod
    def _sum(
        user: Place,
        candidates: Sequence[hlo.Instruction],
        made: hlo.Instruction | None,
        axes: tuple[str, ...],
    ) -> Reason:
        if not may_sum(user, candidates):
            return unknown_sum(user, axes)
        summing = [c for c in candidates if c.opcode in SUMMING]
        sure: Confidence = HIGH if len(summing) == 1 else MEDIUM if candidates else LOW
        doubt = "several operations of the program have its op_name and line" if candidates else ONLY_NAME
        return worded(PARTIAL, None, user, user, axes, None, sure, doubt=doubt)

    def _unnamed_sum(self, made: hlo.Instruction | None, axes: tuple[str, ...]) -> Reason:
        user = self._place(made) if made is not None and made.opcode in SUMMING else None
        return worded(PARTIAL, None, user, user, axes, None, LOW, doubt=NO_METADATA)

    def _moved(
        self,
        one: Communication,
        user: Place,
        candidates: Sequence[hlo.Instruction],
        made: hlo.Instruction | None,
        key: Key | None,
        axes: tuple[str, ...],
    ) -> Reason:
        """The reason of a collective that sums nothing.

        Until June 2026 XLA gave it the name of the operation that needs it; since then mostly that of the tensor.
        """
        argument = argument_of(made) if made is not None else None
        tensor, spec = self._place(argument), self._have(argument)
        have = str(spec) if spec is not None else None
        if key is None:
            if is_returned(one) and one.kind != "collective-permute":
                told, level = tensor or self._place(made), MEDIUM if have else LOW
                return worded(RESHARD, RESULT, None, told, axes, have, level, doubt=NO_METADATA)
            if tensor is None:
                return unknown(None, axes)
            return worded(RESHARD, OPERATION, None, tensor, axes, have, LOW, doubt=NO_METADATA)
        if (found := self._constrained(one, tensor or self._place(made), axes, spec)) is not None:
            return found
        if one.kind == "collective-permute":
            if not self._is_marked and any(c.opcode in WINDOWED for c in candidates):
                return worded(HALO, None, user, tensor, axes, have, MEDIUM, doubt=_BY_READER)
            return unknown(
                user,
                axes,
                "does not show whether it reads elements of neighboring shards or its operand is resharded",
            )
        hands_on = user.label in HANDS_ON or (
            bool(candidates) and all(c.opcode in _VIEWING for c in candidates)
        )
        is_of_argument = argument is not None and op_name_of(argument) == user.op_name
        if not self._is_marked or (argument is not None and not hands_on and not is_of_argument):
            who = None if is_of_argument or (hands_on and argument is not None) else user
            exact = user.instruction
            wanted = CONSTRAINT if exact is not None and is_constraint(exact) else OPERATION
            is_read = have is not None and exact is not None and self._reads(exact, made)
            sure: Confidence = HIGH if is_read else MEDIUM if candidates else LOW
            doubt = NO_READER if who is None else ONLY_NAME if not candidates else _BY_READER
            return worded(RESHARD, wanted, who, tensor, axes, have, sure, doubt=doubt)
        if self._is_of_tensor(one, made, key):
            place = self._place(reader_of(one, self.final, key))
            wanted = CONSTRAINT if place is not None and is_named_constraint(place.op_name) else OPERATION
            # A constraint before the reader leaves no operation in the text: only the program shows that there is none.
            if place is not None and (self.program is not None or wanted == CONSTRAINT):
                told = tensor or self._place(made)
                return worded(RESHARD, wanted, place, told, axes, have, MEDIUM, doubt=_NEAREST)
        if tensor is not None:
            level = MEDIUM if candidates else LOW
            return worded(RESHARD, OPERATION, None, tensor, axes, have, level, doubt=NO_READER)
        return unknown(
            user,
            axes,
            "does not show whether its operand or its result is resharded",
        )

    def _foreseen(
        self, one: Communication, axes: tuple[str, ...], operand: int | None = None
    ) -> Reason | None:
        """The reason that the program's annotations give, where only one array has to be moved so."""
        return self.foreseen.reason(one, axes, operand) if self.foreseen is not None else None

    def _constrained(
        self, one: Communication, tensor: Place | None, axes: tuple[str, ...], have: Spec | None
    ) -> Reason | None:
        """The reason of a collective that a constraint of the program asks for, which the program alone proves."""
        node = tensor.instruction if tensor is not None else None
        if self.program is None or self.specs is None or node is None:
            return None
        found = asking(one, node, axes, self.specs, have)
        if found is None:
            return None
        user = self.program_places.of(found.user)
        is_direct = found.user is found.constraint
        made = worded(
            RESHARD,
            CONSTRAINT if is_direct else OPERATION,
            user,
            tensor,
            axes,
            str(have) if have is not None else None,
            MEDIUM,
            found.want,
            "the constraint was found by following the array in the program",
        )
        if is_direct:
            return made
        constraint = wording.constraint(self.program_places.of(found.constraint))
        return attrs.evolve(made, because=f"{made.because}; {wording.asks(constraint)}")

    def _is_told_by_name(self, one: Communication) -> bool:
        """True for a collective of the program where its own text is not there to tell.

        What the partitioner writes has the name of what needs it or of its tensor, which may be a collective itself: then
        it is marked or of another kind.
        """
        if self.program is not None or is_marked(one.instruction) or is_marked(one.start):
            return False
        kind = asked_kind(op_name_of(one.start)) or asked_kind(op_name_of(one.instruction))
        return kind is not None and kin_of(kind) == kin_of(one.kind)

    def _is_of_tensor(self, one: Communication, made: hlo.Instruction | None, key: Key) -> bool:
        """True for a collective that carries the metadata of its tensor, as XLA writes them since June 2026."""
        is_by_partitioner = is_marked(one.instruction) or is_marked(one.start)
        if not is_by_partitioner or made is None or self.final.key_of(made) != key:
            return False
        if made.opcode == "parameter" or self.program is None or one.kind == "all-gather":
            return not is_read_so(one, self.final, key)
        return any(c.opcode == made.opcode for c in self._candidates(made, key))

    def _reads(self, user: hlo.Instruction, made: hlo.Instruction | None) -> bool:
        """True if an operation of the program reads an argument itself, with nothing in between."""
        if made is None or made.opcode != "parameter":
            return False
        return any(
            one.opcode == "parameter"
            and one.parameter_number == made.parameter_number
            and one.computation is not None
            and one.computation.is_entry
            for one in user.operands
        )

    def _candidates(self, node: hlo.Instruction, key: Key) -> list[hlo.Instruction]:
        if self.program is None:
            return []
        found = self.program.by_key.get(key, [])
        return found or self._by_short.get(self._short(node), [])

    def _place(self, node: hlo.Instruction | None) -> Place | None:
        if node is None:
            return None
        key = self.final.key_of(node)
        if key is None and node.opcode not in ("parameter", "get-tuple-element"):
            return None
        found = self._candidates(node, key) if key is not None else []
        same = [one for one in found if one.opcode == node.opcode] or found
        return attrs.evolve(self.places.of(node), instruction=same[0] if len(same) == 1 else None)

    def _have(self, node: hlo.Instruction | None) -> Spec | None:
        """The sharding of an argument, which the final HLO keeps, or else that of the program."""
        if node is None or node.opcode != "parameter" or self.specs is None:
            return None
        if node.computation is None or not node.computation.is_entry or node.shape is None:
            return None
        sharding = node.sharding or self._sharding_of(op_name_of(node))
        return self.specs.of(sharding, len(node.shape.dimensions)) if sharding is not None else None

    def _sharding_of(self, argument: str) -> Sharding | None:
        """The sharding of the one argument of the program with that name."""
        same = self._arguments.get(argument, ()) if argument else ()
        return same[0].sharding if len(same) == 1 else None

    @functools.cached_property
    def _arguments(self) -> Mapping[str, Sequence[hlo.Instruction]]:
        """The arguments of the program by their names."""
        found: dict[str, list[hlo.Instruction]] = defaultdict(list)
        for one in self.program.module.entry.parameters if self.program is not None else ():
            found[op_name_of(one)].append(one)
        return found


def _opcode(candidates: list[hlo.Instruction]) -> str:
    opcodes = {one.opcode for one in candidates}
    return opcodes.pop() if len(opcodes) == 1 else ""


def _elements(node: hlo.Instruction) -> int | None:
    return node.shape.element_count if node.shape is not None and node.shape.is_array else None


def _fusion_around(start: hlo.Instruction) -> tuple[hlo.Instruction, ...]:
    """The fusion that a collective is in, whose metadata the TPU compiler keeps for both; empty for others."""
    callers = start.computation.callers if start.computation is not None else ()
    return callers if len(callers) == 1 and callers[0].opcode == "fusion" else ()
