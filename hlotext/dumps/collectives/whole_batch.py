"""Batches that come in parts, and that each device works on as a whole, because a lookup lost their sharding.

Of `x = emb[tokens]` both the table and the tokens have a sharding to give. Where one axis of the mesh splits the
table's features and the batch of the tokens, the result can have only one of them; with that of the table the tokens
are gathered, and all that is computed from `x` has the whole batch on each device. The final HLO tells it: an
all-gather brings the indices of the lookup, and they are an argument.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

import hlotext as hlo
from hlotext.analysis import Communication, communications
from hlotext.analysis.devices import participant_groups
from hlotext.analysis.facts import fact
from hlotext.dumps.collectives.following import Step, gives_indices, sources
from hlotext.dumps.collectives.places import is_by_hand
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.tables import opcodes, traits

_Groups = frozenset[frozenset[int]]
_MOST_BEHIND = 60
"""Instructions that are visited on the way from the gathered indices to the argument which they are."""
_SENDING = frozenset({"all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"})
_SPLITTING = frozenset({"all-to-all", "dynamic-slice", "reduce-scatter"})
_VIEWS = traits.REARRANGES_ELEMENTS | traits.COPY_HALVES
_ASYNC_FUSED = frozenset({"AsyncCollectiveStart", "AsyncCollectiveDone"})
_BOUNDING = opcodes.ELEMENTWISE | _VIEWS | traits.KNOWN_VALUES | {"broadcast", "concatenate"}
_ALONG = frozenset({"concatenate", "pad", "reverse", "reduce-window", "slice", "sort"})
"""Opcodes that mix the elements of some dimensions: these are the dimensions of no batch."""
_KEEPING = opcodes.ELEMENTWISE | _VIEWS | {"parameter", "get-tuple-element", "fusion", "while"}


@attrs.frozen(eq=False)
class WholeBatch:
    """A batch that is gathered for a lookup, and the operations that process all of it on every device."""

    argument: hlo.Instruction
    """The argument that brings the batch in parts, such as the tokens."""
    gather: Communication
    lookup: hlo.Instruction
    dimension: int | None
    """The dimension of the argument that comes in parts; None if the text does not tell."""
    devices: int
    """Over so many devices the batch comes in parts."""
    collectives: frozenset[hlo.Instruction]
    """Collectives over these devices that send values of the whole batch, or make them."""
    alike: frozenset[hlo.Instruction]
    """Instructions whose result is the same on each of these devices: all of the batch, and all of its features."""


@fact
def whole_batches(module: hlo.Module) -> tuple[WholeBatch, ...]:
    """Finds the batches in the final HLO that are sharded among devices but processed as a whole on each."""
    found = []
    exchanging = {
        one.start for one in communications(module) if one.kind in ("all-to-all", "collective-permute")
    }
    for one in communications(module):
        if (
            one.kind != "all-gather"
            or is_by_hand(one.start)
            or one.fusion is not None
            or (one.participants or 0) < 2
        ):
            continue
        argument = _argument(one)
        along = one.instruction.attributes.get("dimensions")
        if argument is None or not isinstance(along, tuple) or len(along) != 1:
            continue
        made = _Spread(module, one).from_(along[0])
        if made is not None:
            lookup, sent, alike = made
            if all(start in exchanging for start in sent):  # each device goes on with its own part
                continue
            dimension = _dimension(argument, one, along[0])
            found.append(WholeBatch(argument, one, lookup, dimension, one.participants or 0, sent, alike))
    return tuple(found)


def _argument(one: Communication) -> hlo.Instruction | None:
    """The one argument of integers that a gathered array is, but for element by element work such as bounds."""
    pending = list(one.start.operands)
    seen = set(pending)
    found: set[hlo.Instruction] = set()
    while pending:
        node = pending.pop()
        home = node.computation
        if len(seen) > _MOST_BEHIND or home is None:
            return None
        if node.opcode == "parameter":
            given = [] if home.is_entry else _handed(node, home)
            if home.is_entry:
                found.add(node)
            elif not given:
                return None
        elif node.opcode == "fusion" and node.called_computations:
            given = [node.called_computations[0].root]
        elif node.opcode in _BOUNDING:
            given = list(node.operands)
        else:
            return None
        pending += [each for each in given if each not in seen]
        seen.update(given)
    argument = found.pop() if len(found) == 1 else None
    shape = argument.shape if argument is not None else None
    return argument if shape is not None and shape.is_array and shape.element_type.is_integral else None


def _dimension(argument: hlo.Instruction, one: Communication, along: int) -> int | None:
    """The dimension of the argument along which it is gathered; a view of it may have a new one in front."""
    given = one.start.operands[0].shape
    if given is not None and argument.shape is not None and given.dimensions == argument.shape.dimensions:
        return along
    return 0 if along == 0 else None


def _handed(node: hlo.Instruction, home: hlo.Computation) -> list[hlo.Instruction]:
    callers = [one for one in home.callers if one.opcode == "fusion"]
    number = node.parameter_number
    return [one.operands[number] for one in callers if number is not None and number < len(one.operands)]


class _Spread:
    """Follows the dimension of a batch from where it was gathered."""

    def __init__(self, module: hlo.Module, one: Communication) -> None:
        self._module = module
        self._one = one
        self._known: dict[hlo.Instruction, _Groups | None] = {}
        self._groups = self._groups_of(one.instruction)
        self._count = one.participants or 1
        self._is_whole: dict[hlo.Instruction, dict[int, bool]] = {}

    def from_(
        self, dimension: int
    ) -> tuple[hlo.Instruction, frozenset[hlo.Instruction], frozenset[hlo.Instruction]] | None:
        """The lookup, the collectives that send values of the whole batch, and what is alike on all devices.

        None if no lookup takes the indices, or the dimension is no batch: its elements meet.
        """
        chain = self._one.start.async_chain
        first = chain[-1] if chain else self._one.start
        lookup = None
        self._is_whole = {first: {dimension: True}}
        pending: list[Step] = [(first, dimension)]
        while pending:
            node, at = pending.pop()
            is_whole = self._is_whole[node][at]
            for user, to in steps(node, at):
                if user.opcode == "gather" and node is user.operands[1] and lookup is None:
                    lookup = user
                state = self._state(node, at, user, to, is_whole)
                if state is None:
                    continue
                known = self._is_whole.setdefault(user, {})
                if known and to not in known:
                    return None  # attention scores of a sequence: its elements meet one another
                if to not in known or (state and not known[to]):
                    known[to] = state
                    pending.append((user, to))
        if lookup is None:
            return None
        return lookup, self._sent(), self._alike()

    def _state(
        self, node: hlo.Instruction, at: int, user: hlo.Instruction, to: int, is_whole: bool
    ) -> bool | None:
        """True if a value has the whole batch, False if it has a device's part; None if that is not known."""
        old, new = _size(node, at), _size(user, to)
        opcode = user.opcode.removesuffix("-start").removesuffix("-done")
        if opcode == "all-to-all" and at in (user.attributes.get("dimensions") or ()) and old == new:
            return None  # the dimension counts devices now
        if old == new or user.opcode in ("reshape", "bitcast"):
            return is_whole
        is_own = opcode == "dynamic-slice" or self._groups_of(user) == self._groups
        if is_whole and is_own and old == new * self._count and opcode in _SPLITTING:
            return False
        if not is_whole and is_own and new == old * self._count and opcode == "all-gather":
            return True
        return None

    def _groups_of(self, node: hlo.Instruction) -> _Groups | None:
        """The groups of a collective, whatever their order."""
        if node not in self._known:
            found = participant_groups(self._module, node)
            self._known[node] = frozenset(map(frozenset, found)) if found is not None else None
        return self._known[node]

    def _holds_whole(self, node: hlo.Instruction) -> bool:
        return any(self._is_whole.get(node, {}).values())

    def _own(self) -> Iterator[Communication]:
        """The collectives over the devices of the batch, but for the one that gathers the indices."""
        for one in communications(self._module):
            is_other = one is not self._one and one.kind in _SENDING and (one.participants or 0) > 1
            if is_other and self._groups_of(one.instruction) == self._groups:
                yield one

    def _sent(self) -> frozenset[hlo.Instruction]:
        return frozenset(
            one.start
            for one in self._own()
            if any(map(self._holds_whole, (*one.instruction.operands, *_results(one))))
        )

    def _alike(self) -> frozenset[hlo.Instruction]:
        """Sums, gathered values, what is computed of these element by element, and products of two such arrays."""
        begun = [
            (value, d)
            for one in self._own()
            if one.kind in ("all-reduce", "all-gather")
            for value in _results(one)
            for d, is_whole in self._is_whole.get(value, {}).items()
            if is_whole
        ]
        found = {value for value, _ in begun}
        pending = begun
        while pending:
            node, at = pending.pop()
            for user, to in steps(node, at):
                if user in found or not self._is_whole.get(user, {}).get(to):
                    continue
                if user.attributes.get("custom_call_target") in _ASYNC_FUSED:
                    is_alike = True
                elif user.opcode in traits.CONTRACTIONS:
                    is_alike = all(one in found for one in user.operands[:2])
                else:
                    is_alike = user.opcode == "reduce" or (
                        user.opcode in _KEEPING and _elements(user) == _elements(node)
                    )
                if is_alike:
                    found.add(user)
                    pending.append((user, to))
        return frozenset(found)


def _results(one: Communication) -> list[hlo.Instruction]:
    chain = one.start.async_chain
    last = chain[-1] if chain else one.start
    if one.fusion is not None:
        return [one.instruction]
    if last.shape is not None and last.shape.is_tuple:
        return [user for user in last.users if user.opcode == "get-tuple-element"]
    return [last] if one.instruction is one.start else [one.instruction, last]


def _size(node: hlo.Instruction, dimension: int) -> int:
    shape = node.shape
    return (
        shape.dimensions[dimension] if shape is not None and shape.is_array and dimension < shape.rank else 0
    )


def _elements(node: hlo.Instruction) -> int | None:
    return node.shape.element_count if node.shape is not None and node.shape.is_array else None


# ---- forwards


def steps(node: hlo.Instruction, dimension: int) -> Iterator[Step]:
    """Yields the values in which a dimension of an array continues: through fusions, loops, branches and collectives."""
    home = node.computation
    if node.is_root and home is not None and not home.is_entry:
        for caller in home.callers:
            if caller.opcode in ("fusion", "call", "conditional") or ROLES.get(caller.opcode) == "start":
                yield _end(caller), dimension
    for user in node.users:
        for number, operand in enumerate(user.operands):
            if operand is node:
                yield from _used(user, number, dimension)


def _used(user: hlo.Instruction, number: int, dimension: int) -> Iterator[Step]:
    opcode = user.opcode
    kind = opcode.removesuffix("-start")
    if opcode == "tuple":
        yield from ((one, dimension) for one in _elements_of(user, number))
    elif opcode in ("fusion", "call", "async-start"):
        for body in user.called_computations:
            yield from ((one, dimension) for one in body.parameters if one.parameter_number == number)
    elif kind in _SENDING:
        end = _end(user)
        if end.shape is not None and end.shape.is_tuple:
            yield from ((one, dimension) for one in _taken(end, number))
        else:
            yield end, dimension
    elif ROLES.get(opcode) == "start":
        yield _end(user), dimension
    elif user.attributes.get("custom_call_target") in _ASYNC_FUSED:
        yield from ((one, dimension) for one in _of_async_fused(user, user.operands[number]))
    elif opcode in _ALONG and _mixes(user, dimension):
        return
    elif (
        opcode == "get-tuple-element"
        or gives_indices(user)
        or (user.shape is not None and user.shape.is_array)
    ):
        node = user.operands[number]
        for to in range(user.shape.rank if user.shape is not None and user.shape.is_array else 0):
            if any(source is node and at == dimension for source, at in sources(user, to)):
                yield user, to


def _of_async_fused(call: hlo.Instruction, node: hlo.Instruction) -> Iterator[hlo.Instruction]:
    """The values that a collective which the TPU compiler spreads over fusions hands on: those of the same shape."""
    shape, made = node.shape, call.shape
    if shape is None or made is None:
        return
    if made.is_array and made.dimensions == shape.dimensions:
        yield call
    home = call.computation
    for caller in home.callers if made.is_tuple and call.is_root and home is not None else ():
        for number, each in enumerate(made.tuple_shapes):
            if each.is_array and each.dimensions == shape.dimensions:
                yield from _taken(_end(caller), number)


def _mixes(user: hlo.Instruction, dimension: int) -> bool:
    """True if an operation moves or joins elements along a dimension."""
    along = user.attributes.get("dimensions")
    if isinstance(along, tuple):
        return dimension in along
    window = user.attributes.get("window")
    if window is not None and dimension < len(window.dimensions):
        return window.dimensions[dimension].size != 1
    return any(_size(one, dimension) != _size(user, dimension) for one in user.operands[:1])


def _end(node: hlo.Instruction) -> hlo.Instruction:
    """The instruction that has the result: of a start its done."""
    return node.async_chain[-1] if node.async_chain else node


def _taken(node: hlo.Instruction, number: int) -> Iterator[hlo.Instruction]:
    yield from (
        one
        for one in node.users
        if one.opcode == "get-tuple-element" and one.attributes.get("index") == number
    )


def _elements_of(made: hlo.Instruction, number: int) -> Iterator[hlo.Instruction]:
    """The elements that are taken of a tuple, where it was made and where it is handed on."""
    home = made.computation
    pending = [made]
    seen = {made}
    while pending:
        node = pending.pop()
        yield from _taken(node, number)
        given: list[hlo.Instruction] = []
        for user in node.users:
            if user.opcode == "while":
                given += [user, *(p for body in user.called_computations for p in body.parameters)]
            elif user.opcode in ("opt-barrier", "copy"):
                given.append(user)
            elif user.opcode in ("call", "conditional"):
                given += [p for body in user.called_computations for p in body.parameters]
        home = node.computation
        if node.is_root and home is not None and not home.is_entry:
            for caller in home.callers:
                given.append(_end(caller))
                if caller.opcode == "while":  # what one round leaves the next one takes
                    given += [p for body in caller.called_computations for p in body.parameters]
        fresh = [one for one in given if one not in seen]
        seen.update(fresh)
        pending += fresh
