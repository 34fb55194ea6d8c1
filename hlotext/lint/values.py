"""Values seen through fusions: where a value comes from, and what it is used for, whether fused or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from hlotext.analysis import total_of
from hlotext.analysis.views import VIEWS as VIEWS
from hlotext.analysis.views import Value as Value
from hlotext.analysis.views import entered as entered
from hlotext.analysis.views import fetched as fetched
from hlotext.analysis.views import source as source
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape

_MOST_IN_FORMULA = 60
_BY_ELEMENT = traits.REPEATS_ELEMENTS | ELEMENTWISE
_MOST_STEPS = 300
"""Maximum number of instructions visited on the way to a value's origin or uses."""


_SAID = ("direction", "dimensions", "dynamic_slice_sizes")
"""Attributes that tell operations of a formula apart."""


def formula(value: Value) -> str:
    """Returns a formula of a value in terms of constants and names; equal formulas mean equal values."""
    return _formula(value, [_MOST_IN_FORMULA])


def _formula(value: Value, left: list[int]) -> str:
    value = entered(value)
    one = value.instruction
    left[0] -= 1
    if one.opcode == "constant":
        return str(one.literal)
    if one.opcode == "iota":
        return f"iota({one.attributes.get('iota_dimension', 0)}, {one.shape})"
    if left[0] < 0 or one.opcode not in ELEMENTWISE | VIEWS | {"broadcast", "dynamic-slice"}:
        return one.name
    said = next((found for key in _SAID if (found := one.attributes.get(key)) is not None), "")
    return f"{one.opcode}{said}({', '.join(_formula(operand, left) for operand in value.operands())})"


def unfetched(one: Instruction) -> Instruction:
    """Returns the array itself, behind views, where the compiler fetches it into fast memory; any other array unchanged."""
    array = fetched(one)
    return one if array is None else source(Value(array), VIEWS).instruction


def elements_of(shape: Shape | None) -> int:
    """Returns the number of elements of an array; 0 for tuples, tokens and unknown shapes."""
    return (shape.element_count or 0) if shape is not None and shape.is_array else 0


def result_elements(one: Instruction) -> int:
    """Returns the number of elements of a result; for a tuple, of its largest array."""
    shape = one.shape
    shapes = shape.tuple_shapes if shape is not None and shape.is_tuple else (shape,)
    return max(map(elements_of, shapes), default=0)


def largest_elements(one: Instruction) -> int:
    """Returns the number of elements of the largest array among result and operands."""
    return max(map(elements_of, (one.shape, *(operand.shape for operand in one.operands))))


def is_computed_from(
    value: Value,
    is_known: Callable[[Instruction], bool],
    is_passed: Callable[[Instruction], bool],
    most: int,
) -> bool:
    """True if a value, possibly inside fusions, is computed from known instructions only, by operations that are
    passed.

    False if more than `most` values would have to be visited.
    """
    pending, seen = [value], {value}
    while pending and len(seen) < most:
        current = pending.pop()
        if is_known(current.instruction):
            continue
        current = entered(current)
        one = current.instruction
        if is_known(one):
            continue
        if not current.fusions or not is_passed(one):
            return False
        new = [operand for operand in current.operands() if operand not in seen]
        pending += new
        seen.update(new)
    return not pending


def uses(value: Instruction, through: Iterable[str] = ()) -> Iterator[tuple[Instruction, Instruction]]:
    """Uses of a value with their operand numbers, inside fusions too, and through these opcodes.

    A use is the fusion itself where it only gives the value on. The root of the computation is no use of its own.
    """
    passed = frozenset(through)
    pending, seen = [value], {value}
    while pending and len(seen) < _MOST_STEPS:
        current = pending.pop()
        for user in current.users:
            inner: list[Instruction] = []
            if is_entered(user):
                numbers = {n for n, operand in enumerate(user.operands) if operand is current}
                inner = [p for p in user.called_computations[0].parameters if p.parameter_number in numbers]
            elif user.opcode in passed:
                inner = [user]
            else:
                yield user, current
            for other in inner:
                if other not in seen:
                    seen.add(other)
                    pending.append(other)


def is_entered(user: Instruction) -> bool:
    """True for a fusion, and for an async-start of one."""
    opcode = user.opcode
    if opcode == "async-start":
        wrapped = user.async_wrapped_instruction
        return wrapped is not None and wrapped.opcode == "fusion" and bool(user.called_computations)
    return opcode == "fusion" and bool(user.called_computations)


def _end(fusion: Instruction) -> Instruction:
    """The instruction that has the result: of a fusion that is only started its done."""
    return fusion.async_chain[-1] if fusion.opcode == "async-start" else fusion


def leaves_by(value: Instruction, through: Iterable[str]) -> bool:
    """True if a value, or what these opcodes compute from it, is a root of its computation or of a fusion that uses it."""
    passed = frozenset(through)
    pending, seen = [value], {value}
    while pending and len(seen) < _MOST_STEPS:
        current = pending.pop()
        if current.is_root:
            return True
        for user in current.users:
            if user.opcode in passed and user not in seen:
                seen.add(user)
                pending.append(user)
            elif user.opcode == "fusion" and user.called_computations:
                numbers = {n for n, operand in enumerate(user.operands) if operand is current}
                for p in user.called_computations[0].parameters:
                    if p.parameter_number in numbers and p not in seen:
                        seen.add(p)
                        pending.append(p)
    return False


def made_of(operand: Value, most: int) -> list[Value] | None:
    """Returns the arrays from which an operand is computed elementwise or by broadcasts; None if they exceed `most`
    elements.
    """
    own = result_elements(operand.instruction)
    total, pending, seen, found = 0, [operand], {operand}, list[Value]()
    while pending and total <= most and len(seen) < _MOST_STEPS:
        current = entered(pending.pop())
        one = current.instruction
        if result_elements(one) < own or one.opcode not in _BY_ELEMENT:
            found.append(source(current, traits.REARRANGES_ELEMENTS))
            total += result_elements(found[-1].instruction)
            continue
        for value in current.operands():
            if value not in seen:
                seen.add(value)
                pending.append(value)
    if not pending and total <= most:
        return found
    return [operand] if own <= most else None


def is_looked_up(value: Instruction, only_in_loops: bool = False) -> bool:
    """True if rows of an array are gathered and it has no other users, so that any row may be needed anywhere."""
    pending, seen, found = [Value(value)], {value}, False
    while pending and len(seen) < _MOST_STEPS:
        current = pending.pop()
        instruction, fusions = current.instruction, current.fusions
        given: list[Value] = []
        if instruction.is_root and instruction.opcode != "tuple":
            if not fusions:
                return False
            given.append(Value(fusions[-1], fusions[:-1]))
        for user in instruction.users:
            numbers = {n for n, operand in enumerate(user.operands) if operand is instruction}
            if user.opcode == "gather" and numbers == {0}:
                found = True
                if only_in_loops and (fusions[0] if fusions else user).computation is value.computation:
                    return False
            elif user.opcode == "fusion" and user.called_computations:
                inner = user.called_computations[0].parameters
                given += [Value(p, (*fusions, user)) for p in inner if p.parameter_number in numbers]
            elif user.opcode in VIEWS:
                given.append(Value(user, fusions))
            elif (
                user.opcode == "tuple"
                and not fusions
                and (taken := handed_to_loops(user, numbers)) is not None
            ):
                given += [Value(part) for part in taken]
            else:
                return False
        for other in given:
            if other.instruction not in seen:
                seen.add(other.instruction)
                pending.append(other)
    return found and not pending


def handed_to_loops(made: Instruction, numbers: Collection[int]) -> list[Instruction] | None:
    """Returns the values that loops derive from these tuple elements, and their results; None if they have other users."""
    if made.is_root:
        return [] if _is_handed_on(made, numbers) else None
    taken: list[Instruction] = []
    for loop in made.users:
        if loop.opcode != "while":
            return None
        takers = [loop, *(p for body in loop.called_computations for p in body.parameters)]
        parts = [part for taker in takers for part in taker.users]
        if any(part.opcode != "get-tuple-element" for part in parts):
            return None
        taken += [part for part in parts if part.attributes.get("index") in numbers]
    return taken


def _is_handed_on(root: Instruction, numbers: Iterable[int]) -> bool:
    """True if these elements of a body's root are what the round was given at the same place."""
    return all(
        (element := root.operands[number]).opcode == "get-tuple-element"
        and element.attributes.get("index") == number
        and element.operands[0].opcode == "parameter"
        for number in numbers
    )


def is_spread(value: Instruction) -> bool:
    """True if a value is a broadcast of few values, which could be recomputed wherever it is used."""
    return source(Value(value), _MOVED).instruction.opcode in ("broadcast", "constant", "iota")


_MOVED = traits.REARRANGES_ELEMENTS | traits.COPY_HALVES


_LEAVES = traits.SOURCES - {"parameter"}
_MOST_OPERATIONS = 50


def is_counted(value: Value, of_loop: Callable[[Value], Value | None] | None = None) -> bool:
    """True if a value derives only from iotas and constants, as positions do.

    `of_loop` returns the initial value of an element of loop state, or the element itself for a counter. These count as
    well, and so do slices at such offsets.
    """
    pending, seen = [value], set[tuple[Instruction, tuple[Instruction, ...]]]()
    while pending and len(seen) < _MOST_OPERATIONS:
        one = entered(pending.pop())
        if (one.instruction, one.fusions) in seen:
            continue
        seen.add((one.instruction, one.fusions))
        if one.instruction.opcode in _LEAVES:
            continue
        if of_loop is not None and (first := of_loop(one)) is not None:
            pending += [first] if first != one else []
            continue
        if of_loop is not None and one.instruction.opcode == "dynamic-slice":
            pending += one.operands()
            continue
        if one.instruction.opcode not in _COUNTED and not _is_packed(one.instruction):
            return False
        pending += one.operands()
    return not pending


_COUNTED = ELEMENTWISE | traits.REARRANGES_ELEMENTS | {"broadcast", "concatenate"}


def _is_packed(instruction: Instruction) -> bool:
    """True if it packs the indices of a gather into one number, as the TPU compiler does."""
    return instruction.attributes.get("custom_call_target") == "GatherScatterIndicesBitpacked"


_UNWRITTEN = frozenset({"AllocateBuffer", "CreateBuffer"})
"""Custom calls of the TPU and GPU compilers that only give memory."""


def is_set_aside(instruction: Instruction) -> bool:
    """True if an instruction only allocates memory for others to write to."""
    return (
        instruction.opcode == "custom-call" and instruction.attributes.get("custom_call_target") in _UNWRITTEN
    )


def changed_bytes(instruction: Instruction) -> int:
    """Returns the allocated bytes that an operation writes; for an in-place update, those of the updated part.

    XLA updates the first operand of a `dynamic-update-slice` in place, also at the root of a fusion. Memory that is
    only allocated does not count.
    """
    if is_set_aside(instruction):
        return 0
    if instruction.opcode == "fusion" and instruction.called_computations:
        callee = instruction.called_computations[0]
        if len(callee):
            root = callee.root
            parts = root.operands if root.opcode == "tuple" else (root,)
            return sum(_changed(behind_views(part), is_fused=True) for part in parts)
    return _changed(instruction, is_fused=False)


def behind_views(instruction: Instruction) -> Instruction:
    """Returns the source of an instruction's array, looking through bitcasts and reshapes."""
    while instruction.opcode in ("bitcast", "reshape") and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def _changed(instruction: Instruction, is_fused: bool) -> int:
    if instruction.opcode == "dynamic-update-slice" and len(instruction.operands) > 1:
        changed, part = instruction.operands[:2]
        if not is_fused or behind_views(changed).opcode in ("parameter", "dynamic-update-slice"):
            return total_of(part.shape).allocated_bytes
    return total_of(instruction.shape).allocated_bytes


def consumers(value: Value, through: Collection[str] = ()) -> Iterator[tuple[Value, int]]:
    """Yields users of a value with operand numbers: inside fusions, after them, and after elements of their tuples and
    these opcodes. The root of a computation is no user unless it is a fusion's."""
    passed = frozenset(through)
    pending, seen = [value], {(value.instruction, value.fusions)}
    while pending and len(seen) < _MOST_STEPS:
        current = pending.pop()
        one, fusions = current.instruction, current.fusions
        found: list[Value] = []
        if fusions and one.is_root:
            found.append(Value(_end(fusions[-1]), fusions[:-1]))
        for user in one.user_view:
            opcode = user.opcode
            for number, operand in enumerate(user.operands):
                if operand is not one:
                    continue
                if is_entered(user):
                    inside = user.called_computations[0]
                    found += [Value(p, (*fusions, user)) for p in inside if p.parameter_number == number]
                elif opcode == "tuple" and fusions and user.is_root:
                    parts = [part for part in fusions[-1].users if part.attributes.get("index") == number]
                    found += [Value(part, fusions[:-1]) for part in parts]
                elif opcode in passed:
                    found.append(Value(user, fusions))
                else:
                    yield Value(user, fusions), number
        for other in found:
            if (other.instruction, other.fusions) not in seen:
                seen.add((other.instruction, other.fusions))
                pending.append(other)
