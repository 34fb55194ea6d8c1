"""Branches of a conditional under `jax.vmap`, which are computed for every element, though each takes the result of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import fusions_around, is_of_own_function, is_of_package
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context, Report
from hlotext.lint.values import VIEWS, Value, entered, source
from hlotext.lint.wording import described

_SELECTED = "/select_n"
"""The end of the op_name of what `jax.vmap` makes of a conditional; its predicate is an integer, unlike jnp.where's."""
_BATCHED = "vmap("
_MOST_STEPS = 2_000
_SPREAD = traits.REPEATS_ELEMENTS | VIEWS
_CHEAP = ELEMENTWISE | _SPREAD | traits.NAMES_VALUE | traits.SLICES | traits.SOURCES
"""Opcodes of which a few take no longer than a branch."""


def both_branches(context: Context) -> Iterator[Report]:
    """Yields reports on conditionals under `jax.vmap`, which compute both branches: at most the time of the longer one
    could be saved.
    """
    groups: dict[Instruction, list[Value]] = defaultdict(list)
    for one in context.census.by_opcode.get("select", ()):
        value = Value(one, fusions_around(one, context))
        if (index := _branch_index(value)) is not None and not is_of_package(one):
            groups[index.instruction].append(value)
    for selects in groups.values():
        branches = [_exclusive(selects, number, context) for number in (1, 2)]
        branch = max(branches, key=context.prices.together)
        dearest = max(branch, key=lambda one: (context.prices.seconds(one), one.name), default=None)
        if dearest is None or all(part.opcode in _CHEAP for one in branch for part in parts_of(one)):
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
