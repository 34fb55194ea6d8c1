"""Branches of a conditional under `jax.vmap`, which are computed for every element, though each takes the result of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import depends_on_device, fusions_around, is_of_own_function, is_of_package
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report
from hlotext.lint.values import VIEWS, Value, entered, result_elements, source
from hlotext.lint.wording import described

_SELECTED = "/select_n"
"""The end of the op_name of what `jax.vmap` makes of a conditional; its predicate is an integer, unlike jnp.where's."""
_BATCHED = "vmap("
_WHERE = "jit(_where)"
"""The function that `jnp.where` calls."""
_MOST_STEPS = 2_000
_SPREAD = traits.REPEATS_ELEMENTS | VIEWS
_CHEAP = ELEMENTWISE | _SPREAD | traits.NAMES_VALUE | traits.SLICES | traits.SOURCES
"""Opcodes of which a few take no longer than a branch."""


def both_branches(context: Context) -> Iterator[Report]:
    """Yields reports on conditionals under `jax.vmap`, which compute both branches: at most the time of the longer one
    could be saved; and on results of which one scalar selects.
    """
    groups: dict[Instruction, list[Value]] = defaultdict(list)
    chosen: dict[Instruction, list[Value]] = defaultdict(list)
    for one in context.census.by_opcode.get("select", ()):
        if is_of_package(one):
            continue
        value = Value(one, fusions_around(one, context))
        if (index := _branch_index(value)) is not None:
            groups[index.instruction].append(value)
        elif _is_programs(one) and (predicate := _scalar(value)) is not None:
            chosen[predicate.instruction].append(value)
    yield from _under_vmap(groups, context)
    yield from _of_scalars(chosen, context)


def _scalar(select: Value) -> Value | None:
    """The scalar that selects one of two arrays as a whole; None if it is a constant, or elements are selected singly."""
    if result_elements(select.instruction) == 1:
        return None
    made = source(select.operands()[0], _SPREAD)
    return made if result_elements(made.instruction) == 1 and made.instruction.opcode != "constant" else None


def _is_programs(select: Instruction) -> bool:
    """True for a select of the program, not of a function that JAX has for its own use."""
    name = select.metadata.op_name if select.metadata is not None else ""
    return name.endswith(_SELECTED) and "jit(_" not in name.replace(_WHERE, "")


def _of_scalars(groups: Mapping[Instruction, list[Value]], context: Context) -> Iterator[Report]:
    for selects in groups.values():
        first = selects[0].instruction
        sides = [_exclusive(selects, n, context) | _fused_work(selects, n) for n in (1, 2)]
        working = [side for side in sides if any(map(_is_work, side))]
        if not working:
            continue
        begun = context.communication_of
        predicate = selects[0].operands()[0]
        if depends_on_device(predicate.instruction, context) or any(
            one in begun for side in sides for one in side
        ):
            continue  # devices that take different branches wait for each other
        # Each of two may be the one that is taken; of a single one it is unknown how often that is.
        spared = min(working, key=context.prices.together)
        dearest = max(
            filter(_is_work, spared), key=lambda one: (context.prices.seconds(one), one.name), default=first
        )
        is_known = len(working) == len(sides)
        if is_known:
            said = "and another result are both computed each time, and a scalar selects one of them"
        else:
            said = "is computed each time, and a scalar selects its result or a value that is there anyway"
        yield Report(
            first,
            f"{described(dearest)} {said}",
            "let lax.cond(flag, f, g, x) compute only the one that is taken",
            seconds=context.prices.together(spared),
            is_proved=is_known,
            is_at_most=not is_known,
        )


def _fused_work(selects: Sequence[Value], number: int) -> set[Instruction]:
    """The fusions in which operand `number` of a select is computed by more than cheap operations."""
    found = set[Instruction]()
    for select in selects:
        pending, seen = [select.operands()[number]], set[Value]()
        while pending and len(seen) < _MOST_STEPS:
            current = pending.pop()
            if not current.fusions or current in seen:
                continue
            seen.add(current)
            if current.instruction.opcode not in _CHEAP:
                found.add(select.writer)
            pending += current.operands()
    return found


def _is_work(one: Instruction) -> bool:
    return any(part.opcode not in _CHEAP for part in parts_of(one))


def _under_vmap(groups: Mapping[Instruction, list[Value]], context: Context) -> Iterator[Report]:
    for selects in groups.values():
        branches = [_exclusive(selects, number, context) for number in (1, 2)]
        branch = max(branches, key=context.prices.together)
        dearest = max(branch, key=lambda one: (context.prices.seconds(one), one.name), default=None)
        if dearest is None or not any(map(_is_work, branch)):
            continue
        yield Report(
            selects[0].instruction,
            "both branches of a conditional under jax.vmap are computed for every element, including "
            f"{described(dearest)}, and a select takes the result of one",
            "if the predicate is the same for the whole batch, pass it unbatched (in_axes=None), so that only one "
            "branch runs; otherwise run each branch on the elements that take it (sorted by the predicate, in parts "
            "of a static "
            "size); if most elements need the branch, nothing can be saved",
            seconds=context.prices.together(branch),
            is_proved=False,
            is_at_most=True,
        )


def _branch_index(select: Value) -> Value | None:
    """The integer of the branch that a select takes; None if it is not what vmap makes of a conditional."""
    metadata = select.instruction.metadata
    if metadata is None or not metadata.op_name.endswith(_SELECTED) or _BATCHED not in metadata.op_name:
        return None
    if is_of_own_function(select.instruction):
        return None
    compared = source(select.operands()[0], _SPREAD)
    one = compared.instruction
    shape = one.operands[0].shape if one.opcode == "compare" else None
    if shape is None or not shape.is_array or not shape.element_type.is_integral:
        return None
    return source(compared.operands()[0], _SPREAD | traits.CONVERSIONS)


def _exclusive(selects: Sequence[Value], number: int, context: Context) -> set[Instruction]:
    """The operations that compute only what is operand `number` of these selects."""
    kept, left = set[Instruction](), set[Instruction]()
    for select in selects:
        for place, operand in enumerate(select.operands()):
            (kept if place == number else left).update(_read_by(operand))
    ends = {select.writer for select in selects}
    found, pending = set[Instruction](), sorted(kept - left, key=lambda one: one.name)
    while pending and len(found) < _MOST_STEPS:
        one = pending.pop()
        if one in found or one in left or one.opcode == "parameter" or one in ends:
            continue
        if not all(user in found or user in ends for user in one.users):
            continue  # comes again with the last of its users
        found.add(one)
        pending += one.operands
    return found


def _read_by(value: Value) -> set[Instruction]:
    """Operations that the operation with a value in it reads to compute the value; if it has none, what gives the value."""
    outside = frozenset(value.writer.operands) if value.fusions else frozenset()
    pending, seen, found = [value], {value}, set[Instruction]()
    while pending and len(seen) < _MOST_STEPS:
        current = entered(pending.pop(), outside) if outside else pending.pop()
        if not current.fusions:
            found.add(current.instruction)
            continue
        for operand in current.operands():
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return found
