"""Changes of several instructions at once: what stands behind a value, inside a fusion, or in another element type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hlotext.edit.cloning import clone_computation
from hlotext.edit.parameters import remove_parameter
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.types import ElementType
from hlotext.rewrite.kit.builder import Builder, retyped, shape_of
from hlotext.rewrite.propagation import change_shape


def insert_after(value: Instruction, build: Callable[[Builder, Instruction], Instruction]) -> Instruction:
    """Replaces all uses of a value with a value derived from it, such as a probe, an outfeed or a conversion.

    >>> import hlotext as hlo
    >>> module = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] sine(x)  ROOT z = f32[4] negate(y) }")
    >>> print(insert_after(module.find("y"), lambda b, y: b.custom_call(y, shape=y.shape, custom_call_target="probe")))
    custom-call = f32[4] custom-call(y), custom_call_target="probe"
    >>> print(module.entry.root)
    ROOT z = f32[4] negate(custom-call)

    Args:
        value: The value.
        build: Creates the new value, given a builder that inserts after `value`, and `value`.

    Returns:
        The new value, which becomes the root if the old value was.

    Raises:
        EditError: The value is not in a module, or the new value has another type, outside
            `module.transaction(typed=False)`. Nothing is changed then.
    """
    home = value.computation
    if home is None or home.module is None:
        raise EditError(f"{value.name} is in no module")
    users, was_root = value.users, value.is_root
    with home.module.transaction():
        new = build(Builder.after(value), value)
        journal = home.module._journal
        if new.shape != value.shape and (journal is None or journal.untyped is None):
            raise EditError(
                f"{new.name}, to replace {value.name}, is {new.shape}; its users take {value.shape}"
            )
        for user in users:
            for number, operand in enumerate(user.operands):
                if operand is value:
                    user.replace_operand(number, new)
        if was_root:
            home.root = new
    return new


def sink_constants(fusion: Instruction) -> int:
    """Moves constant operands of a fusion into its body, where the compiler may fold them.

    Returns the number of constants moved. Raises EditError if the instruction is not a fusion in a module, or if the
    body has other callers.
    """
    home = fusion.computation
    if fusion.opcode != "fusion" or home is None or home.module is None:
        raise EditError(f"{fusion.name} is not a fusion in a module")
    (body,) = fusion.called_computations
    if len(tuple(body.callers)) != 1:
        raise EditError(f"{body.name} has other callers than {fusion.name}")
    count = 0
    with home.module.transaction():
        for number in reversed(range(len(fusion.operands))):
            constant = fusion.operands[number]
            if constant.opcode != "constant" or constant.literal is None:
                continue
            parameter = body.parameters[number]
            inside = Builder(body, body.instructions[0], constant).op(
                "constant", shape=parameter.shape, argument=constant.literal, name=constant.name
            )
            parameter.replace_all_uses_with(inside)
            remove_parameter(body, number)
            if not (constant.users or constant.is_root):
                constant.erase()
            count += 1
    return count


def convert_region(instructions: Iterable[Instruction], element_type: ElementType | str) -> list[Instruction]:
    """Changes the floating-point type of a region, with converts at its inputs and outputs.

    All floats in the region get the type (constants are converted); integers and booleans are unchanged. Reductions
    call a copy of their reducer in that type.

    Args:
        instructions: The region, in one computation, in any order.
        element_type: The type to compute in, such as `bf16`.

    Returns:
        The instructions that replace the old ones, in the order of the computation.

    Raises:
        EditError: The instructions are not in one computation of a module, or one of them cannot compute in another
            type; collectives and callers of other computations (fusions, loops) are not supported. Nothing is changed
            then.
        KeyError: No element type has this name.
    """
    type_ = shape_of(element_type).element_type
    wanted = frozenset(instructions)
    homes = {i.computation for i in wanted}
    home = next(iter(homes), None)
    if len(homes) != 1 or home is None or home.module is None:
        raise EditError("the region is empty, or not of one computation of a module")
    new: dict[Instruction, Instruction] = {}
    inward: dict[Instruction, Instruction] = {}
    reducers: dict[Computation, Computation] = {}
    with home.module.transaction():
        for i in [one for one in home.instructions if one in wanted]:
            if not _is_plain(i):
                raise EditError(
                    f"{i.name} is a {i.opcode}, which is not a plain array operation: exclude it from the region, or let "
                    f"change_shape of its operand convert it with what it calls"
                )
            assert i.shape is not None
            b = Builder.after(i) if i.opcode == "constant" else Builder.before(i)
            operands = [_inside(b, operand, type_, new, inward) for operand in i.operands]
            shape = retyped(i.shape, type_) if i.shape.element_type.is_floating else i.shape
            if i.opcode == "parameter" or (i.literal is not None and not i.shape.element_type.is_floating):
                raise EditError(f"{i.name} is a {i.opcode}, which stays as it is")
            if i.opcode == "constant":
                new[i] = b.convert(i, type_)
                continue
            own = {key: _counterpart(value, type_, new, reducers) for key, value in i.attributes.items()}
            new[i] = b.op(i.opcode, operands, shape=shape, name=i.name, **own)
        for i, one in new.items():
            if i.opcode == "constant":
                continue
            outside = [user for user in i.users if user not in wanted and user is not one]
            if not outside and not i.is_root:
                continue
            back = one if one.shape == i.shape else Builder.after(one).op("convert", (one,), shape=i.shape)
            i.replace_all_uses_with(back)
        for i in reversed(list(new)):
            if i.opcode != "constant" and not i.users and not i.is_root:
                i.erase()
    return list(new.values())


def _is_plain(i: Instruction) -> bool:
    """True for an operation on arrays that computes in other types as it does in its own."""
    if i.shape is None or i.opcode in traits.COLLECTIVE_KINDS:
        return False
    return i.shape.is_array and (not i.called_computations or i.opcode in traits.REDUCTIONS)


def _counterpart(
    value: Any,
    type_: ElementType,
    new: Mapping[Instruction, Instruction],
    reducers: dict[Computation, Computation],
) -> Any:
    """The value of an attribute in the region: copies of what it calls, and of the instructions that it names."""
    if isinstance(value, Computation):
        if value not in reducers:
            reducers[value] = _narrowed(value, type_)
        return reducers[value]
    if isinstance(value, tuple):
        return tuple(new.get(one, one) if isinstance(one, Instruction) else one for one in value)
    return value


def _narrowed(reducer: Computation, type_: ElementType) -> Computation:
    """A copy of a reducer that takes and gives another floating type."""
    copy = clone_computation(reducer)
    assert copy.module is not None
    with copy.module.transaction(typed=False):
        for parameter in copy.parameters:
            shape = parameter.shape
            if shape is not None and shape.is_array and shape.element_type.is_floating:
                change_shape(parameter, retyped(shape, type_))
    return copy


def _inside(
    b: Builder,
    operand: Instruction,
    type_: ElementType,
    new: dict[Instruction, Instruction],
    inward: dict[Instruction, Instruction],
) -> Instruction:
    """The operand as the region takes it."""
    if operand in new:
        return new[operand]
    if operand.shape is None or not operand.shape.is_array or not operand.shape.element_type.is_floating:
        return operand
    if operand.shape.element_type is type_:
        return operand
    if operand not in inward:
        inward[operand] = b.convert(operand, type_)
    return inward[operand]
