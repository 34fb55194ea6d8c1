"""Where arrays have to be placed otherwise, computed from the program and its annotations alone.

Shardy spreads shardings by rules that `Spreading` follows. So the program before optimization tells what the text before
partitioning would: the sharding of each array, and the operands that an operation does not find where it needs them. Which
of them a collective is for, its metadata, axes and sizes tell.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import attrs

import hlotext as hlo
from hlotext.analysis import Communication, DeviceMesh, axes_of
from hlotext.dumps.collectives import wording
from hlotext.dumps.collectives.annotations import Annotations
from hlotext.dumps.collectives.arrays import RESULT as TO_RESULT
from hlotext.dumps.collectives.arrays import Arrays, Axes, Value
from hlotext.dumps.collectives.keys import Text
from hlotext.dumps.collectives.partitioner import Written
from hlotext.dumps.collectives.places import Places, is_constraint, op_name_of
from hlotext.dumps.collectives.producers import VIEWS, argument_of, maker
from hlotext.dumps.collectives.records import CONSTRAINT, HIGH, OPERATION, RESHARD, RESULT, Reason
from hlotext.dumps.collectives.schemes import Schemes
from hlotext.dumps.collectives.shardings import Shardings
from hlotext.dumps.collectives.specs import Spec, dimensions_of
from hlotext.dumps.collectives.spreading import Spreading
from hlotext.dumps.collectives.volume import Volume
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.rewrite.passes.calls.call_inliner import CallInliner

_MOST = 20_000
"""Instructions of the largest program that is followed: each compilation of a folder waits for it."""


@attrs.frozen(eq=False)
class Move:
    """An array that operations, or results, need in another sharding than it has."""

    tensor: hlo.Instruction
    have: Spec
    want: Spec
    users: tuple[hlo.Instruction, ...]
    """The operations; none for results alone."""
    results: tuple[int, ...]
    """The results of the program that want it so, by number."""
    held: float
    """Elements that each device holds of it."""
    needed: float
    """Elements that each device needs of it."""

    @property
    def axes(self) -> frozenset[str]:
        """The axes along which the two shardings differ."""
        had, wants = self._places(self.have), self._places(self.want)
        return frozenset(a for a in had.keys() | wants.keys() if had.get(a) != wants.get(a))

    @staticmethod
    def _places(spec: Spec) -> dict[str, int]:
        return {axis: n for n, cut in enumerate(spec.axes) for axis in cut}


class Foreseen:
    """The reshards that a program's annotations require."""

    def __init__(
        self, program: hlo.Module, mesh: DeviceMesh, final: Text, begun: Sequence[Communication]
    ) -> None:
        """Reads a program before optimization, which is changed: its calls are inlined.

        Args:
            program: The program, one that `is_foreseeable`.
            mesh: Its mesh.
            final: The final HLO.
            begun: Its collectives.
        """
        CallInliner(names_calls=True).run(program)
        text = Text(program, final.keys)
        self.places = Places(text)
        shardings = Shardings(text, mesh)
        arrays = Arrays(shardings, Annotations(shardings, self.places))
        specs = Spreading(arrays).spread()
        spread = _Spread(text, mesh, arrays, specs)
        self._schemes = Schemes(spread, Annotations(spread, self.places))
        self._volume = Volume(arrays.sizes)
        self._named: dict[_Name | None, list[Move]] = defaultdict(list)
        is_whole = set(arrays.sizes) == set(mesh.names)  # parts of axes are no PartitionSpec's
        for move in self._moves(arrays, specs) if is_whole else ():
            read = [one for user in move.users for one in user.operands if arrays.is_of(one, move.tensor)]
            names = [_name(one) for one in (move.tensor, *read, *move.users)]
            for name in dict.fromkeys([*(one for one in names if one), *([None] if move.results else ())]):
                self._named[name].append(move)
        self._told = self._moves_of(final, mesh, begun)

    def reason(self, one: Communication, axes: tuple[str, ...], operand: int | None = None) -> Reason | None:
        """Returns the reason for a collective, or for one operand of a combined one; None if the annotations do not
        show it.
        """
        move = self._told.get((one, operand))
        if move is None:
            return None
        name = op_name_of(one.instruction)
        users = tuple(sorted(move.users, key=lambda user: op_name_of(user) != name))
        part = Written(
            one.instruction,
            one,
            None,
            axes,
            RESHARD,
            RESULT if not users else CONSTRAINT if is_constraint(users[0]) else OPERATION,
            "operand",
            users,
            move.tensor,
            have=move.have,
            want=move.want,
            result=move.results[0] if not users else None,
        )
        of = self.places.of
        made = Reason(
            part.cause,
            part.wanted_by,
            of(users[0], is_exact=False) if users else None,
            of(move.tensor, is_exact=False),
            axes,
            str(move.have),
            str(move.want),
            HIGH,
            "",
            self._schemes.origin(part),
            self._schemes.scheme(part),
            readers=max(1, len(users)),
            result=part.result,
        )
        because = "; ".join(filter(None, (wording.sentence(made), self._schemes.constraint(part))))
        return attrs.evolve(made, because=because)

    def _moves_of(
        self, final: Text, mesh: DeviceMesh, begun: Sequence[Communication]
    ) -> dict[tuple[Communication, int | None], Move]:
        """The move that each collective, or each operand of a combined one, is, where the texts tell."""
        found: dict[tuple[Communication, int | None], tuple[list[hlo.Instruction], Move]] = {}
        for one in begun:
            data, axes = _data(one), axes_of(final.module, one, mesh)
            if not axes:
                continue
            if len(data) == 1 or one.kind == "all-to-all":  # one exchange may have an operand for each device
                name = _name(one.instruction) or _name(one.start)
                if (move := self._found(one, data, axes, name)) is not None:
                    found[one, None] = data, move
                continue
            for number, operand in enumerate(data):
                # A combined one keeps the name of one of its parts; each operand still has that of its tensor.
                name = _name(maker(operand))
                move = self._found(one, [operand], axes, name) if name is not None else None
                if move is not None and _name(move.tensor) == name:
                    found[one, number] = [operand], move
        claims = Counter(move for _, move in found.values())
        # Of several that fit one move the others are for something else.
        return {key: move for key, (data, move) in found.items() if claims[move] == 1 or _is_of(data, move)}

    def _moves(self, arrays: Arrays, specs: dict[int, Axes]) -> Iterator[Move]:
        values = {id(one): one for one in arrays.values}
        readers: dict[tuple[int, Axes], list[hlo.Instruction | int]] = defaultdict(list)
        numbers = {id(made): number for number, made in arrays.results.items()}
        for one in arrays.operations:
            sent = self._volume.of(one, specs)
            for key in sent.moves if sent is not None else ():
                reader = numbers[id(one.values[-1])] if one.opcode == TO_RESULT else one.node
                if reader is not None:
                    readers[key].append(reader)  # type: ignore[index]
        for (number, want), found in readers.items():
            value = values[number]
            if value.node is not None:
                users = [one for one in found if isinstance(one, hlo.Instruction)]
                results = [one for one in found if isinstance(one, int)]
                have = specs[number]
                yield Move(
                    value.node,
                    Spec(have),
                    Spec(want),
                    tuple(dict.fromkeys(users)),
                    tuple(results),
                    self._elements(value, have),
                    self._elements(value, want),
                )

    def _elements(self, value: Value, axes: Axes) -> float:
        return self._volume.local(value, axes) / value.width

    def _found(
        self, one: Communication, data: Sequence[hlo.Instruction], axes: Sequence[str], name: _Name | None
    ) -> Move | None:
        """The only move that a collective of these arrays may be; None if there is none, or several.

        It is named as the tensor is, or as an operation that needs it; it has no name where a result does.
        """
        taken = sum(math.prod(dimensions_of(node) or ()) for node in data)
        given = taken * (one.largest_group or 1) if one.kind == "all-gather" else taken
        fitting = [
            move
            for move in self._named.get(name, ())
            if move.axes == set(axes)
            and math.isclose(move.held, taken)
            and math.isclose(move.needed, given)
            and _kind(move) == one.kind
            and not any(_is_shard_of(data, user, name == _name(user)) for user in move.users)
        ]
        return fitting[0] if len(fitting) == 1 else None


class _Spread(Shardings):
    """The shardings of a program before optimization, which has those of its annotations alone: as they spread."""

    def __init__(self, text: Text, mesh: DeviceMesh, arrays: Arrays, specs: dict[int, Axes]) -> None:
        super().__init__(text, mesh)
        self._arrays = arrays
        self._specs = specs

    def spec(self, node: hlo.Instruction) -> Spec | None:
        value = self._arrays.value(node)
        axes = self._specs.get(id(value)) if value is not None else None
        return Spec(axes) if axes is not None else super().spec(node)


_Name = tuple[str, str, int, int]
"""An op_name and the innermost frame: of a chain of frames each text has its own, where functions were inlined."""


def _name(node: hlo.Instruction) -> _Name | None:
    if node.metadata is None and node.opcode == "get-tuple-element":
        node = node.operands[0]
    frame, op_name = node.innermost_frame, op_name_of(node)
    if frame is None:
        return (op_name, "", 0, 0) if op_name else None
    return op_name, frame.file, frame.line, frame.column


def _data(one: Communication) -> list[hlo.Instruction]:
    return [node for node in one.instruction.operands if dimensions_of(node)]


def _is_shard_of(data: Sequence[hlo.Instruction], user: hlo.Instruction, is_named_so: bool) -> bool:
    """True where what a collective moves is the result of an operation, which then did not wait for it."""
    return is_named_so and user.opcode not in VIEWS and all(maker(one).opcode == user.opcode for one in data)


def _is_of(data: Sequence[hlo.Instruction], move: Move) -> bool:
    """True where the text shows that what a collective takes is the argument that a move is of."""
    argument = argument_of(maker(data[0])) if len(data) == 1 else None
    return argument is not None and op_name_of(argument) == op_name_of(move.tensor)


def _kind(move: Move) -> str:
    """The collective that brings a move about, where it takes one."""
    had, wants = set(move.have.used), set(move.want.used)
    if had > wants:
        return "all-gather"
    if had == wants:
        return "all-to-all"
    return "collective-permute" if len(had) == len(wants) else ""


def is_foreseeable(program: hlo.Module) -> bool:
    """Returns True for a Shardy program whose annotations are all closed, so that their effects can be predicted.

    GSPMD propagates differently, open dimensions get unknown shardings, and arrays are not followed into a shard_map.
    """
    is_shardy = "xla.sdy.meshes" in program.attributes.get("frontend_attributes", {})
    for count, node in enumerate(program.instructions()):
        if count >= _MOST or str(node.attributes.get("custom_call_target", "")).startswith("xla.sdy."):
            return False
        sharding = node.sharding
        if "?" in str(node.frontend_attributes.get("xla.sdy.sharding", "")):
            return False
        for one in sharding.tuple_elements if sharding is not None and sharding.is_tuple else (sharding,):
            if isinstance(one, NamedSharding):
                is_shardy = True
                if not all(each.is_closed for each in one.dim_shardings):
                    return False
    return is_shardy
