"""Elements of loops' states that nothing uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.reduction.zeros import has_zero, zero_of


def drop_unused_state(module: Module) -> int:
    """Removes loop state elements that are only forwarded. Returns their number.

    Only for loops whose body and condition have no other callers, with a `tuple` at the body's root. As XLA's
    `TryRemoveDeadWhileParams`, but also if the loop is the result of the entry, which then has fewer elements.
    """
    return sum(_narrow(i) for i in tuple(module.instructions()) if i.opcode == "while" and i.computation)


def _narrow(loop: Instruction) -> int:
    body, condition = loop.attributes["body"], loop.attributes["condition"]
    if len(body.callers) != 1 or len(condition.callers) != 1 or body is condition:
        return 0
    root, shape = body.root, loop.shape
    states = (*body.parameters, *condition.parameters)
    is_result = loop.is_root and loop.computation is not None and loop.computation.is_entry
    if (
        root.opcode != "tuple"
        or root.users
        or shape is None
        or not shape.is_tuple
        or (loop.is_root and not is_result)
    ):
        return 0
    if any(user.opcode != "get-tuple-element" for value in (*states, loop) for user in value.users):
        return 0
    kept = sorted(_used(loop, root, *states))
    kept = kept or [0]
    count = len(root.operands) - len(kept)
    if not count:
        return 0
    narrow = Shape.tuple(tuple(shape.tuple_shapes[n] for n in kept))
    for i in (loop, root, *states, loop.operands[0]):
        if i.sharding is not None:
            del i.attributes["sharding"]  # it has an entry for each element
    given = _initial(loop, kept)
    for value in (*states, loop):
        _renumber(value.users, kept)
    root.change(operands=[root.operands[n] for n in kept], shape=_part(root.shape, kept), typed=False)
    for state in states:
        state.change(shape=_part(state.shape, kept), typed=False)
    loop.change(operands=[given], shape=narrow, typed=False)
    renumber_config(loop, kept)
    return count


def _used(loop: Instruction, root: Instruction, body: Instruction, condition: Instruction) -> set[int]:
    """The elements that something takes other than to make the same element of the next state."""
    used = {user.attributes["index"] for value in (condition, loop) for user in value.users}
    makers = _needed(root, body)
    used |= {
        user.attributes["index"]
        for user in body.users
        if any(reader is not root and not reader.users for reader in user.users)
    }
    pending = set(used)
    while pending:
        number = pending.pop()
        for other in makers[number] - used:
            used.add(other)
            pending.add(other)
    return used


def _needed(root: Instruction, state: Instruction) -> list[set[int]]:
    """For each element of the next state the elements of the last one that it is computed from."""
    found: dict[Instruction, set[int]] = {}
    computation = root.computation
    assert computation is not None
    for i in computation:
        if i.opcode == "get-tuple-element" and i.operands[0] is state:
            found[i] = {i.attributes["index"]}
        else:
            found[i] = set().union(
                *(found[o] for o in i.operands), *(found[p] for p in i.control_predecessors)
            )
    return [found[operand] for operand in root.operands]


def _initial(loop: Instruction, kept: Sequence[int]) -> Instruction:
    """The initial state with the kept elements alone: a changed tuple or parameter, or a new tuple."""
    first = loop.operands[0]
    computation = first.computation
    is_own = len(first.users) == 1 and not first.is_root
    if first.opcode == "tuple" and is_own:
        first.change(operands=[first.operands[n] for n in kept], shape=_part(first.shape, kept), typed=False)
        return first
    if first.opcode == "parameter" and is_own and computation is not None and computation.is_entry:
        first.change(shape=_part(first.shape, kept), typed=False)
        return first
    b = Builder(computation, loop) if computation is not None else Builder.before(loop)
    if first.opcode == "tuple":
        return b.tuple(*(first.operands[n] for n in kept))
    return b.tuple(*(b.get_tuple_element(first, n) for n in kept))


def _part(shape: Shape | None, kept: Sequence[int]) -> Shape:
    assert shape is not None
    return Shape.tuple(tuple(shape.tuple_shapes[n] for n in kept))


def _renumber(users: Iterable[Instruction], kept: Sequence[int]) -> None:
    """Gives get-tuple-elements their new numbers; those of elements that are gone go with them."""
    for user in tuple(users):
        index = user.attributes["index"]
        if index in kept:
            user.change(attributes={**user.attributes, "index": kept.index(index)}, typed=False)


def renumber_config(loop: Instruction, kept: Sequence[int]) -> None:
    """Updates the index of the induction variable in a loop's backend config after dropping elements."""
    config = loop.backend_config
    try:
        noted = config.json() if config is not None else None
    except ValueError:
        return
    variable = noted.get("known_induction_variable") if isinstance(noted, dict) else None
    if not isinstance(noted, dict) or not isinstance(variable, dict):
        return
    index = str(variable.get("tuple_index"))
    if index.isdigit() and int(index) in kept:
        noted["known_induction_variable"] = {**variable, "tuple_index": str(kept.index(int(index)))}
    else:
        del noted["known_induction_variable"]
    loop.attributes["backend_config"] = BackendConfig(json.dumps(noted, separators=(",", ":")))


# ---- handing on something else


def can_hand_on(value: Instruction) -> bool:
    """Returns True if the next value of a state element is computed from a value of another shape in the body."""
    return value.opcode not in ("parameter", "constant") and _element_made_of(value) is not None


def _element_made_of(value: Instruction) -> int | None:
    """The number of an element of the next state that is computed from a value by one operation."""
    body = value.computation
    if body is None or [caller.opcode for caller in body.callers] != ["while"] or body.root.opcode != "tuple":
        return None
    root = body.root
    for number, operand in enumerate(root.operands):
        if value in operand.operands and operand.shape != value.shape:
            return number
    return None


def hand_on(value: Instruction) -> None:
    """Makes a value in a loop's body a state element in place of the element computed from it.

    Uses of that element in body and condition become zeros. Raises EditError if the initial state is neither a tuple
    nor a parameter with no other use.
    """
    number, body = _element_made_of(value), value.computation
    if number is None or body is None or value.shape is None:
        raise EditError(f"{value.name} does not produce an element of loop state")
    (loop,) = body.callers
    condition: Computation = loop.attributes["condition"]
    if len(condition.callers) != 1 or condition is body:
        raise EditError(f"{condition.name} is also used by other loops")
    states = (*body.parameters, *condition.parameters)
    for taken in [u for s in (*states, loop) for u in s.users if u.attributes.get("index") == number]:
        _take_zeros(taken, value.shape)
    first = loop.operands[0]
    if len(first.users) > 1 or first.opcode not in ("tuple", "parameter"):
        raise EditError(f"{first.name} is not used only as the state of {loop.name}")
    operands = list(body.root.operands)
    operands[number] = value
    body.root.change(operands=operands, shape=_with(body.root.shape, number, value.shape), typed=False)
    if first.opcode == "tuple":
        given = list(first.operands)
        given[number] = zero_of(Builder.before(first), value.shape, {})
        first.change(operands=given, shape=_with(first.shape, number, value.shape), typed=False)
    for i in (loop, *states, *([first] if first.opcode == "parameter" else [])):
        i.change(shape=_with(i.shape, number, value.shape), typed=False)


def _take_zeros(taken: Instruction, shape: Shape) -> None:
    """Puts zeros where an element of a state was taken that is about to have another shape."""
    if (
        taken.opcode != "get-tuple-element"
        or taken.shape is None
        or (taken.users and not has_zero(taken.shape))
    ):
        raise EditError(f"{taken.name} needs the element as it is")
    if taken.users:
        taken.replace_all_uses_with(zero_of(Builder.before(taken), taken.shape, {}))
    taken.change(shape=shape, typed=False)


def _with(shape: Shape | None, number: int, part: Shape) -> Shape:
    assert shape is not None
    return Shape.tuple(tuple(part if n == number else old for n, old in enumerate(shape.tuple_shapes)))
