"""Steps that take instructions away: in groups, and one by one."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import FINISHERS, ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.reduction.header import free_result
from hlotext.rewrite.reduction.loop_state import can_hand_on, hand_on
from hlotext.rewrite.reduction.zeros import has_zero, zero_of

_KEPT = frozenset({"parameter", "constant"}) | FINISHERS.keys()
"""Opcodes that are never replaced: minimal ones, and starts, which go with their dones."""


@attrs.frozen
class GroupStep:
    """A transformation of a range of instructions of one computation."""

    applies: Callable[[Computation, range], bool]
    run: Callable[[Computation, range], None]


@attrs.frozen
class SingleStep:
    """A transformation of one instruction."""

    applies: Callable[[Instruction], bool]
    run: Callable[[Instruction], None]


# ---- roots


def new_root(module: Module, place: int) -> None:
    """Makes another instruction of the entry its root."""
    free_result(module)
    module.entry.root = module.entry.instructions[place]


# ---- groups


def _replaceable(computation: Computation, chosen: range) -> list[Instruction]:
    """Those of the chosen instructions whose values others take, so that something must stand in for them."""
    inside = dict.fromkeys(computation.instructions[p] for p in chosen)
    return [
        i
        for i in inside
        if i.opcode not in _KEPT
        and i.shape is not None
        and (i.is_root or any(user not in inside for user in i.users))
    ]


def _can_be_parameters(computation: Computation, chosen: range) -> bool:
    return computation.is_entry and any(not i.is_root for i in _replaceable(computation, chosen))


def _to_parameters(computation: Computation, chosen: range) -> None:
    """Replaces values of the entry by new parameters."""
    module = computation.module
    assert module is not None
    free_result(module)
    number = len(computation.parameters)
    for i in _replaceable(computation, chosen):
        if i.is_root:
            continue
        new = Instruction(module.instruction_names.unique("cut"), "parameter", i.shape, argument=number)
        computation.add(new, computation.instructions[0], typed=False)
        number += 1
        i.replace_all_uses_with(new)


def _can_pass_through(computation: Computation, chosen: range) -> bool:
    root = computation.root if len(computation) else None
    return (
        root is not None
        and root.opcode == "tuple"
        and any(caller.opcode == "while" for caller in computation.callers)
        and any(computation.instructions[p] in root.operands for p in chosen)
    )


def _pass_through(computation: Computation, chosen: range) -> None:
    """Makes a loop hand on elements of its state as it was given them."""
    root, (state,) = computation.root, computation.parameters
    inside = {computation.instructions[p] for p in chosen}
    b = Builder.before(root)
    given: dict[int, Instruction] = {
        user.attributes["index"]: user for user in state.users if user.opcode == "get-tuple-element"
    }
    operands = [
        given.get(number) or b.get_tuple_element(state, number) if operand in inside else operand
        for number, operand in enumerate(root.operands)
    ]
    root.change(operands=operands)


def _can_be_zeros(computation: Computation, chosen: range) -> bool:
    return any(i.opcode not in _SMALL for i in _replaceable(computation, chosen))


_SMALL = (traits.SOURCES - traits.GIVEN) | {"broadcast", "get-tuple-element"}
"""Opcodes no larger than the zeros that would replace them."""


def _to_zeros(computation: Computation, chosen: range) -> None:
    """Replaces values by zeros: a constant, and for an array its broadcast."""
    scalars: dict[str, Instruction] = {}
    first = computation.instructions[0]
    for i in _replaceable(computation, chosen):
        if i.opcode not in _SMALL and i.opcode not in ROLES and i.shape is not None and has_zero(i.shape):
            i.replace_all_uses_with(zero_of(Builder(computation, first), i.shape, scalars))


def _can_be_unused(computation: Computation, chosen: range) -> bool:
    return any(_is_unused(computation.instructions[p]) for p in chosen)


def _is_unused(i: Instruction) -> bool:
    return not (i.user_view or i.is_root or i.opcode == "parameter")


def _erase_unused(computation: Computation, chosen: range) -> None:
    """Takes out what nothing uses, be it that it has an effect."""
    gone = [i for p in chosen if _is_unused(i := computation.instructions[p])]
    for i in gone:
        _free_of_control(i)
    computation.remove_all(gone)


def _free_of_control(i: Instruction) -> None:
    for successor in i.control_successors:
        kept = tuple(p for p in successor.control_predecessors if p is not i)
        _set_control(successor, kept)
    if i.control_predecessors:
        _set_control(i, ())


def _set_control(i: Instruction, predecessors: tuple[Instruction, ...]) -> None:
    if predecessors:
        i.attributes["control-predecessors"] = predecessors
    else:
        del i.attributes["control-predecessors"]


GROUP_STEPS = (
    GroupStep(_can_be_parameters, _to_parameters),
    GroupStep(_can_pass_through, _pass_through),
    GroupStep(_can_be_unused, _erase_unused),
    GroupStep(_can_be_zeros, _to_zeros),
)


def without_unused(module: Module) -> None:
    """Removes everything that no root needs, even with side effects."""
    for computation in module.computations:
        if computation.is_sugared:
            continue
        while gone := [i for i in computation if _is_unused(i)]:
            for i in gone:
                _free_of_control(i)
            computation.remove_all(gone)


# ---- one by one


def _inline(i: Instruction) -> None:
    inline(i)


def _operand_for_user(i: Instruction) -> None:
    """Puts an operand of the same shape in an instruction's place."""
    for operand in i.operands:
        if operand.shape == i.shape:
            i.replace_all_uses_with(operand)
            return
    raise EditError(f"no operand of {i.name} has its shape")


def _has_operand_like(i: Instruction) -> bool:
    return i.opcode not in _KEPT and any(operand.shape == i.shape for operand in i.operands)


def _first_branch(i: Instruction) -> None:
    _branch(i, 0)


def _last_branch(i: Instruction) -> None:
    _branch(i, -1)


def _branch(i: Instruction, number: int) -> None:
    """Puts one branch in the place of a conditional."""
    _call_instead(i, i.called_computations[number], i.operands[1:][number])


def _once(i: Instruction) -> None:
    """Runs a loop's body once, instead of the loop."""
    _call_instead(i, i.attributes["body"], i.operands[0])


def _call_instead(i: Instruction, callee: Computation, argument: Instruction) -> None:
    call = Builder.before(i).op("call", (argument,), to_apply=callee)
    i.replace_with(call)
    inline(call)


def _fewer_elements(i: Instruction) -> None:
    """Makes the result of the entry one element less."""
    module = i.computation.module if i.computation is not None else None
    assert module is not None
    free_result(module)
    operands = i.operands[:-1]
    shapes = tuple(o.shape for o in operands if o.shape is not None)
    _without_sharding(i)
    i.change(operands=operands, shape=Shape.tuple(shapes), typed=False)


def _first_dropped(i: Instruction) -> None:
    """Makes the result of the entry its elements but for the first."""
    module = i.computation.module if i.computation is not None else None
    assert module is not None
    free_result(module)
    operands = i.operands[1:]
    shapes = tuple(o.shape for o in operands if o.shape is not None)
    _without_sharding(i)
    i.change(operands=operands, shape=Shape.tuple(shapes), typed=False)


def _without_sharding(i: Instruction) -> None:
    if i.sharding is not None:
        del i.attributes["sharding"]


def _is_result_tuple(i: Instruction) -> bool:
    computation = i.computation
    return (
        i.opcode == "tuple"
        and computation is not None
        and computation.is_entry
        and i.is_root
        and not i.user_view
        and len(i.operands) > 1
    )


def _element_of_tuple(i: Instruction) -> None:
    """Puts an element of a tuple in the place of what takes it out."""
    i.replace_all_uses_with(i.operands[0].operands[i.attributes["index"]])


def _takes_element(i: Instruction) -> bool:
    return i.opcode == "get-tuple-element" and i.operands[0].opcode == "tuple"


def _element_as_result(i: Instruction) -> None:
    """Makes the first element of the result that is no parameter the result."""
    computation = i.computation
    assert computation is not None
    assert computation.module is not None
    free_result(computation.module)
    computation.root = next((o for o in i.operands if o.opcode != "parameter"), i.operands[0])


def _of(*opcodes: str) -> Callable[[Instruction], bool]:
    return lambda i: i.opcode in opcodes


SINGLE_STEPS = (
    SingleStep(_is_result_tuple, _element_as_result),
    SingleStep(_is_result_tuple, _fewer_elements),
    SingleStep(_is_result_tuple, _first_dropped),
    SingleStep(_takes_element, _element_of_tuple),
    SingleStep(_of("call", "fusion"), _inline),
    SingleStep(_of("conditional"), _first_branch),
    SingleStep(_of("conditional"), _last_branch),
    SingleStep(_of("while"), _once),
    SingleStep(_has_operand_like, _operand_for_user),
    SingleStep(can_hand_on, hand_on),
)


# ---- attributes


def without_attribute(i: Instruction, name: str) -> None:
    """Removes an attribute of an instruction, if present."""
    if name in i.attributes:
        del i.attributes[name]


def without_attribute_anywhere(module: Module, name: str) -> None:
    """Removes an attribute of all instructions."""
    for i in tuple(module.instructions()):
        without_attribute(i, name)


def without_attribute_step(name: str) -> SingleStep:
    """Returns the transformation that removes an attribute of one instruction."""
    return SingleStep(lambda i: name in i.attributes, lambda i: without_attribute(i, name))
