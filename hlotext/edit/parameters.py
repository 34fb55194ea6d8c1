"""Adding and removing parameters, with all callers and the header."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import attrs

from hlotext.edit import dirty_lines, identity, instructions, structure, values
from hlotext.edit.journal import Edit
from hlotext.edit.per_argument_attributes import (
    FLAGS_OF_ARGUMENTS,
    argument_added,
    argument_removed,
    counts_arguments,
)
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.tables import traits
from hlotext.ir.values.aliasing import BufferDonorConfig, InputOutputAliasConfig
from hlotext.ir.values.shape import ComputationLayout, Shape

BY_OPERANDS = traits.BINDS_OPERANDS
"""Opcodes whose operands are, one by one, the parameters of the computation that they call."""


def add_parameter(
    computation: Computation,
    shape: Shape | str,
    name: str | None = None,
    value: Callable[[Instruction], Instruction] | None = None,
) -> Instruction:
    """Adds a parameter to a computation and an operand to each of its callers.

    The entry layout in the header is updated. If other parameters have layouts, a shape without one gets the default
    layout, with the TPU compiler's tiles if others are tiled.

    Args:
        computation: The computation.
        shape: Shape of the parameter.
        name: Requested name, made unique; None uses `param_N`.
        value: Returns the operand to pass, given a caller.

    Returns:
        The new parameter.

    Raises:
        EditError: The computation is not in a module, the shape is invalid, the operands of a caller do not correspond
            to parameters (`while`, `reduce` ...), or there are callers but no `value`. Nothing is changed then.
    """
    module = computation._module
    if module is None:
        raise EditError(f"{computation.name} is not in a module")
    callers = _callers(computation)
    number = len(computation.parameters)
    found = values.shape(shape, f"parameter {number} of {computation.name}")
    shapes = [i.shape for i in computation if i.shape is not None]
    if any(leaf.layout is not None for one in shapes for _, leaf in one.leaves()):
        found = dirty_lines.laid_out(found, tiled=any(map(dirty_lines.has_tiles, shapes)))
    chosen = module.instruction_names.unique(name or f"param_{number}")
    parameter = Instruction(chosen, "parameter", found, argument=number)
    with Edit(module) as edit:
        edit.recheck(callers, typed=False)
        if computation.is_entry:
            edit.recheck_header(typed=False)
            argument_added(module)
        _insert(edit, computation, parameter)
        for caller in callers:
            if value is None:
                raise EditError(f"{caller.name} calls {computation.name}; specify what it passes")
            instructions.change(caller, {"operands": (*caller.operands, value(caller))}, typed=False)
    return parameter


def _insert(edit: Edit, computation: Computation, parameter: Instruction) -> None:
    """Puts a parameter behind the last one, else in front."""
    others = computation.parameters
    place = computation.order.index(others[-1]) + 1 if others else 0
    before = computation._instructions[place] if place < len(computation) else None
    structure.insert(edit, computation, parameter, before, parameter._name, {}, parameter._head.argument)
    edit.check_new(parameter)


def remove_parameter(computation: Computation, number: int) -> None:
    """Removes an unused parameter, the corresponding operand of each caller, and its entries in the header.

    Later parameters are renumbered. A negative number counts from the last parameter.

    Raises:
        EditError: The parameter is used, aliased or donated, the operands of a caller do not correspond to parameters
            (`while`, `reduce` ...), or the computation is not in a module. Nothing is changed then.
        IndexError: There is no such parameter.
    """
    module = computation._module
    if module is None:
        raise EditError(f"{computation.name} is not in a module")
    parameters = computation.parameters
    if not -len(parameters) <= number < len(parameters):
        raise IndexError(f"{computation.name} has no parameter {number}; it has {len(parameters)}")
    parameter = parameters[number]
    number = range(len(parameters))[number]
    if parameter.users or parameter.control_successors or parameter.is_root:
        raise EditError(f"parameter {parameter.name} of {computation.name} is used")
    callers = _callers(computation)
    with Edit(module) as edit:
        edit.recheck(callers, typed=False)
        if computation.is_entry:
            edit.recheck_header(typed=False)
            argument_removed(module, number)
            _renumber_header(edit, module, number)
        structure.remove_all(edit, computation, {parameter: None})
        for later in parameters[number + 1 :]:
            identity.renumber(later, (later.parameter_number or 0) - 1)
        for caller in callers:
            operands = caller.operands
            instructions.change(
                caller, {"operands": (*operands[:number], *operands[number + 1 :])}, typed=False
            )


def remove_unused_parameters(computation: Computation, parameters: Collection[Instruction]) -> None:
    """Removes several unused parameters of a computation in one step, as `remove_parameter` does.

    Raises EditError, and changes nothing, also for parameters of the entry that the header mentions.
    """
    module = computation._module
    if module is None or (computation.is_entry and _is_described(module)):
        raise EditError(f"remove the parameters of {computation.name} one by one")
    for parameter in parameters:
        if parameter.users or parameter.control_successors or parameter.is_root:
            raise EditError(f"parameter {parameter.name} of {computation.name} is used")
    gone = {parameter.parameter_number for parameter in parameters}
    left = [parameter for parameter in computation.parameters if parameter.parameter_number not in gone]
    callers = _callers(computation)
    with Edit(module) as edit:
        edit.recheck(callers, typed=False)
        structure.remove_all(edit, computation, dict.fromkeys(parameters))
        for number, parameter in enumerate(left):
            identity.renumber(parameter, number)
        for caller in callers:
            operands = tuple(o for number, o in enumerate(caller.operands) if number not in gone)
            instructions.change(caller, {"operands": operands}, typed=False)


def _is_described(module: Module) -> bool:
    """True if the header describes the entry's parameters, one by one or some by number."""
    attributes = module._attributes
    return any(
        name in attributes
        for name in (ENTRY_LAYOUT, FLAGS_OF_ARGUMENTS, *(row[0] for row in _PARAMETER_NUMBERS))
    ) or counts_arguments(module)


def _callers(computation: Computation) -> tuple[Instruction, ...]:
    for caller in computation.callers:
        if caller.opcode not in BY_OPERANDS:
            raise EditError(
                f"{caller.name} calls {computation.name} as {caller.opcode}, which fixes its parameters"
            )
        if "output_to_operand_aliasing" in caller.attributes:
            raise EditError(f"{caller.name} aliases operands by number")
    return computation.callers


def _renumber_header(edit: Edit, module: Module, number: int) -> None:
    """Takes a parameter out of the header's lists and shifts the numbers of the later ones."""
    attributes = dict(module._attributes)
    for name, kind, field in _PARAMETER_NUMBERS:
        config = attributes.get(name)
        if not isinstance(config, kind):
            continue
        entries = []
        for entry in config.entries:
            given = getattr(entry, field)
            if given == number:
                raise EditError(f"parameter {number} is in {name}")
            entries.append(attrs.evolve(entry, **{field: given - (given > number)}))
        attributes[name] = kind(tuple(entries))
    layout = attributes.get(ENTRY_LAYOUT)
    if isinstance(layout, ComputationLayout):
        shapes = layout.parameter_shapes
        attributes[ENTRY_LAYOUT] = attrs.evolve(
            layout, parameter_shapes=(*shapes[:number], *shapes[number + 1 :])
        )
    flags = attributes.get(FLAGS_OF_ARGUMENTS)
    if isinstance(flags, tuple) and len(flags) > 1:
        flags = (*flags[:number], *flags[number + 1 :])
        attributes[FLAGS_OF_ARGUMENTS] = flags
        if flags == (False,):  # what its absence says
            del attributes[FLAGS_OF_ARGUMENTS]
    if attributes != module._attributes:
        edit.journal.set(module, "_attributes", attributes)
        dirty_lines.touch_header(edit.journal, module)


_PARAMETER_NUMBERS: tuple[tuple[str, Any, str], ...] = (
    ("input_output_alias", InputOutputAliasConfig, "parameter_number"),
    ("buffer_donor", BufferDonorConfig, "param_number"),
)
"""The lists of the header whose entries name parameters by number."""
