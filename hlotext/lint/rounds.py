"""Loop invariants: state that no iteration changes, and values computed from it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from hlotext.analysis.communication import KINDS
from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.lint.alike_fusions import ENTERED, alike
from hlotext.lint.helpers import is_callback, is_librarys
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, entered

Range = tuple[int, int, int]
"""A dimension, and where a part of it begins and ends."""

_IMPURE = frozenset(
    {
        "after-all", "infeed", "outfeed", "parameter", "recv", "recv-done", "rng", "rng-bit-generator",
        "rng-get-and-update-state", "send", "send-done",
    }
)  # fmt: skip
"""Opcodes whose result may differ although their operands do not, or whose doing matters."""
MEMORY = frozenset({"AllocateBuffer", "CreateBuffer"})
"""Custom calls that only give memory, for others to write to."""
_SAME = frozenset({"bitcast", "copy", "copy-done", "copy-start", "opt-barrier", "reshape"})
"""Opcodes behind which a value is the same."""
_MOST_STEPS = 200


@attrs.frozen(eq=False)
class Rounds:
    """A loop whose state is a tuple."""

    loop: Instruction
    body: Computation
    given: tuple[Instruction, ...]
    """Values that an iteration passes to the next, by slot."""
    elements: tuple[tuple[Instruction, ...], ...]
    """Elements that an iteration takes from its state, by slot."""
    passed: frozenset[int]
    """The slots that every round gives on as it got them."""

    def slot_of(self, value: Instruction) -> int | None:
        """Returns the slot whose value an instruction of the body is, looking through copies; None for any other value."""
        value = unmoved(value)
        if (
            value.opcode != "get-tuple-element"
            or not value.operands
            or not _is_state(value.operands[0], self.body)
        ):
            return None
        index = value.attributes.get("index")
        return index if isinstance(index, int) and index < len(self.given) else None

    def before(self, slot: int) -> Instruction | None:
        """Returns the initial value of a slot; None if the initial state is not a visible tuple."""
        run = in_calls(self.loop)
        first = run.operands[0] if run.operands else None
        while first is not None and first.opcode in ("copy", "opt-barrier") and first.operands:
            first = first.operands[0]
        if first is None or first.opcode != "tuple" or slot >= len(first.operands):
            return None
        return first.operands[slot]


def unmoved(value: Instruction) -> Instruction:
    """Returns the source of a value, looking through copies."""
    found = value
    for one in moves(value):
        found = one
    return found


def moves(value: Instruction) -> Iterator[Instruction]:
    """Yields a value, the value of which it is a copy, and so on up to its source."""
    yield value
    for _ in range(_MOST_STEPS):
        if value.opcode not in _SAME or not value.operands:
            break
        value = value.operands[0]
        yield value


def in_calls(loop: Instruction) -> Instruction:
    """Returns the call that only runs a loop, as the CPU compiler makes for small ones; else the loop."""
    found = loop
    while found.is_root and found.computation is not None:
        callers = found.computation.callers
        if len(callers) != 1 or callers[0].opcode != "call" or len(callers[0].operands) != 1:
            break
        found = callers[0]
    return found


def rounds_of(loop: Instruction) -> Rounds | None:
    """Returns the rounds of a while loop; None if its state is not a tuple, or the root is not one."""
    body = loop.attributes.get("body")
    if not isinstance(body, Computation) or not len(body) or body.root.opcode != "tuple":
        return None
    given = tuple(body.root.operands)
    elements: list[list[Instruction]] = [[] for _ in given]
    for parameter in body.parameters:
        for user in parameter.users:
            index = user.attributes.get("index")
            if user.opcode == "get-tuple-element" and isinstance(index, int) and index < len(given):
                elements[index].append(user)
    found = Rounds(loop, body, given, tuple(map(tuple, elements)), frozenset())
    passed = frozenset(slot for slot, value in enumerate(given) if found.slot_of(value) == slot)
    return attrs.evolve(found, passed=passed)


def stepped_rounds(context: Context) -> Iterator[Rounds]:
    """Yields the loops of a module's step, except those of JAX functions, which users cannot change."""
    for loop, _ in context.graph.loops():
        rounds = rounds_of(loop)
        if rounds is not None and rounds.body in context.graph.stepped and not is_librarys(loop):
            yield rounds


def _is_state(value: Instruction, body: Computation) -> bool:
    return value.opcode == "parameter" and value.computation is body


class Purity:
    """Determines pure computations: deterministic and without side effects."""

    def __init__(self) -> None:
        self._known: dict[Computation, bool] = {}

    def is_pure(self, instruction: Instruction) -> bool:
        """Returns True if an instruction is pure, including everything that it calls."""
        opcode = instruction.opcode
        if opcode in _IMPURE:
            return False
        if opcode == "custom-call":
            return not (
                instruction.attributes.get("custom_call_has_side_effect")
                or is_callback(instruction)
                or instruction.attributes.get("custom_call_target") in MEMORY
            )
        return all(map(self._of, instruction.called_computations))

    def _of(self, computation: Computation) -> bool:
        if computation.module is not None:
            computation = alike(computation.module).first(computation)
        if computation not in self._known:
            self._known[computation] = True  # computations cannot call themselves
            self._known[computation] = all(
                one.opcode == "parameter" or self.is_pure(one) for one in computation
            )
        return self._known[computation]


@attrs.frozen(eq=False)
class Same:
    """Values that are equal in every iteration of a loop."""

    whole: frozenset[Instruction]
    """Instructions of the body that give the same in every round."""
    parts: dict[Instruction, tuple[Range, ...]]
    """Instructions of which ranges of one dimension are the same, the others not."""


def same_in_rounds(rounds: Rounds, purity: Purity) -> Same:
    """Returns the values of a body computed only from loop-invariant slots, constants, and pure operations on these.

    Of a matmul that XLA merged from two with a common operand (`dot_merger.cc`), one half may be invariant.
    """
    whole: set[Instruction] = set()
    parts: dict[Instruction, tuple[Range, ...]] = {}
    for instruction in operands_first(rounds.body):
        opcode = instruction.opcode
        if opcode == "get-tuple-element" and _is_state(instruction.operands[0], rounds.body):
            if instruction.attributes.get("index") in rounds.passed:
                whole.add(instruction)
        elif not purity.is_pure(instruction):
            continue
        elif all(operand in whole for operand in instruction.operands):
            whole.add(instruction)
        elif instruction.opcode == "tuple":
            continue
        else:
            found = _part(instruction, whole, parts)
            if found is True:
                whole.add(instruction)
            elif found:
                parts[instruction] = found
    return Same(frozenset(whole), parts)


def _part(
    instruction: Instruction, whole: set[Instruction], parts: dict[Instruction, tuple[Range, ...]]
) -> tuple[Range, ...] | bool:
    """The ranges of a result that are the same in every round; True where the whole is."""
    opcode = instruction.opcode
    if opcode == "fusion" and len(instruction.called_computations) == 1:
        inside = instruction.called_computations[0]
        if not any(one.opcode in ("concatenate", "slice", "dot") for one in inside):
            return ()
        fixed = {p for p in inside.parameters if _operand(instruction, p) in whole}
        ranges = {p: found for p in inside.parameters if (found := parts.get(_operand(instruction, p) or p))}
        for one in inside:
            if one.opcode == "parameter":
                continue
            is_fixed = one.opcode in _FIXED or all(operand in fixed for operand in one.operands)
            part = True if is_fixed else _ranges(one, fixed, ranges)
            if part is True:
                fixed.add(one)
            elif part:
                ranges[one] = part
        return True if inside.root in fixed else ranges.get(inside.root, ())
    return _ranges(instruction, whole, parts)


_FIXED = frozenset({"constant", "iota"})


def _operand(fusion: Instruction, parameter: Instruction) -> Instruction | None:
    number = parameter.parameter_number
    return fusion.operands[number] if number is not None and number < len(fusion.operands) else None


def _ranges(
    one: Instruction, fixed: set[Instruction], ranges: dict[Instruction, tuple[Range, ...]]
) -> tuple[Range, ...] | bool:
    """The same of one operation: ranges follow concatenations, slices, free dimensions of products, and elementwise work."""
    shape = one.shape
    if shape is None or not shape.is_array or not one.operands:
        return ()
    if one.opcode == "concatenate":
        dimension = one.attributes.get("dimensions", (0,))[0]
        found, place = [], 0
        for operand in one.operands:
            size = operand.shape.dimensions[dimension] if operand.shape is not None else 0
            if operand in fixed:
                found.append((dimension, place, place + size))
            found += [(d, a + place, b + place) for d, a, b in ranges.get(operand, ()) if d == dimension]
            place += size
        return tuple(found)
    if one.opcode == "slice":
        cut = one.attributes.get("slice")
        if not isinstance(cut, SliceDimensions):
            return ()
        return _sliced(ranges.get(one.operands[0], ()), cut.dimensions)
    if one.opcode == "dot" and len(one.operands) == 2:
        return _multiplied(one, fixed, ranges)
    if one.opcode in ("bitcast", "copy", "convert", "transpose"):
        places = places_of(one)
        before = ranges.get(one.operands[0], ())
        return tuple((places[d], a, b) for d, a, b in before) if places is not None else ()
    return ()


def places_of(one: Instruction) -> Sequence[int] | None:
    """Returns the position of each operand dimension in the result; None if dimensions are merged or split."""
    source, shape = one.operands[0].shape, one.shape
    if source is None or shape is None or not source.is_array:
        return None
    if one.opcode == "transpose":
        permutation = tuple(one.attributes.get("dimensions", ()))
        return [permutation.index(d) for d in range(source.rank)] if len(permutation) == source.rank else None
    if one.opcode == "bitcast" and source.layout is not None and shape.layout is not None:
        before, after = source.layout.minor_to_major, shape.layout.minor_to_major
        if [source.dimensions[d] for d in before] != [shape.dimensions[d] for d in after]:
            return None
        there = dict(zip(before, after, strict=True))
        return [there[d] for d in range(source.rank)]
    return range(source.rank) if source.dimensions == shape.dimensions else None


def _sliced(found: Sequence[Range], cut: Sequence[SliceDimension]) -> tuple[Range, ...] | bool:
    kept = []
    for dimension, first, last in found:
        limits = cut[dimension]
        if (limits.stride or 1) != 1:
            continue
        low, high = max(first, limits.start), min(last, limits.limit)
        if (low, high) == (limits.start, limits.limit):
            return True
        if low < high:
            kept.append((dimension, low - limits.start, high - limits.start))
    return tuple(kept)


def _multiplied(
    product: Instruction, fixed: set[Instruction], ranges: dict[Instruction, tuple[Range, ...]]
) -> tuple[Range, ...]:
    """Ranges of the free dimensions of one operand, where the other one is the same in every round."""
    attributes = product.attributes
    found: list[Range] = []
    for side, name in enumerate(("lhs", "rhs")):
        operand, other = product.operands[side], product.operands[1 - side]
        if other not in fixed or operand.shape is None:
            continue
        batch = tuple(attributes.get(f"{name}_batch_dims", ()))
        summed = tuple(attributes.get(f"{name}_contracting_dims", ()))
        free = [d for d in range(operand.shape.rank) if d not in batch and d not in summed]
        first = len(batch)
        if side == 1 and other.shape is not None:
            first = other.shape.rank - len(attributes.get("lhs_contracting_dims", ()))
        found += [(first + free.index(d), a, b) for d, a, b in ranges.get(operand, ()) if d in free]
    return tuple(found)


def parts_of(instruction: Instruction) -> Iterator[Instruction]:
    """Yields the instruction, or the instructions of the fusion or call, nested ones included."""
    pending, entered_bodies = [instruction], set[Computation]()
    while pending:
        one = pending.pop()
        if one.opcode in ENTERED:
            for body in one.called_computations:
                if body not in entered_bodies:
                    entered_bodies.add(body)
                    pending += body
        else:
            yield one


def communicates(instruction: Instruction) -> bool:
    """True if an instruction communicates, itself or in a called computation."""
    return instruction.opcode in KINDS or any(one.opcode in KINDS for one in parts_of(instruction))


def behind(value: Instruction) -> Value:
    """Returns the producer of a value, also inside fusions."""
    return entered(Value(value))


def is_same_in_rounds(instruction: Instruction, context: Context) -> bool:
    """True if an instruction of a loop body computes the same in every iteration of that loop."""
    loop = context.loop_around(instruction.computation)
    if loop is None or loop.attributes.get("body") is not instruction.computation:
        return False
    rounds = rounds_of(loop)
    return rounds is not None and instruction in same_in_rounds(rounds, Purity()).whole
