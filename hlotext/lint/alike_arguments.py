"""Arguments that a step keeps alike on the devices of a group, shown by the update of each."""

from __future__ import annotations

from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.equal import EQUALISING, new_values
from hlotext.lint.loop_state import members
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value, entered

_THROUGH = ELEMENTWISE | VIEWS | {"transpose"}
_MOST_STEPS = 200


def alike_arguments(context: Context, name: str) -> frozenset[Instruction]:
    """Returns the arguments whose new values are made equal by collectives over these groups, in a text without
    shardings.

    A new value is the result of an all-gather over the group, or is computed elementwise from the old one, from state
    of the same form that is updated likewise, and from such a sum. A shard is updated from sums of its own devices: no
    collective over the devices with the other shards has its shape. Each argument is judged by itself, since all
    together may look equal if they are sharded in the same way.
    """
    entry = context.module.entry
    if entry.root.opcode != "tuple" or any(one.sharding is not None for one in entry.parameters):
        return frozenset()
    results = new_values(context)
    state: dict[Instruction, set[Instruction]] = {}
    found: set[Instruction] = set()
    for parameter, place in results.items():
        leaves = _leaves(Value(entry.root.operands[place]))
        if leaves is None:
            continue
        sent = {one for one in leaves if one in context.communication_of}
        others = leaves - sent
        if not sent or any(not _equalises(one, name, context) for one in sent):
            continue
        if all(one in results and _form(one) == _form(parameter) for one in others):
            found.add(parameter)
            state[parameter] = others
    while lacking := {one for one in found if not state[one] <= found}:
        found -= lacking
    return frozenset(found)


def _equalises(start: Instruction, name: str, context: Context) -> bool:
    one = context.communication_of[start]
    return one.kind in EQUALISING and members(one.groups) == name


def _form(one: Instruction) -> tuple[int, ...]:
    return one.shape.dimensions if one.shape is not None and one.shape.is_array else ()


def _leaves(value: Value) -> set[Instruction] | None:
    """The arrays that a value is computed from element by element; None if there is something else between."""
    pending, seen, found = [value], {value}, set[Instruction]()
    while pending:
        if len(seen) > _MOST_STEPS:
            return None
        current = entered(pending.pop())
        one = current.instruction
        if one.opcode == "get-tuple-element":
            one = one.operands[0]
        if ROLES.get(one.opcode) == "done" and one.async_chain:
            one = one.async_chain[0]
        if not current.fusions and (
            one.opcode == "parameter" or ROLES.get(one.opcode) == "start" or one.opcode in EQUALISING
        ):
            found.add(one)
        elif one.opcode in _THROUGH:
            more = [operand for operand in current.operands() if operand not in seen]
            pending += more
            seen.update(more)
        elif not _is_few(one):
            return None
    return found


def _is_few(one: Instruction) -> bool:
    """True for a scalar, and for what is written of scalars and constants alone."""
    made = one.operands[0].shape if one.opcode == "broadcast" else one.shape
    return one.opcode in traits.KNOWN_VALUES or (made is not None and made.is_array and not made.rank)
