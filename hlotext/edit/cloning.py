"""Copies of instructions, computations and modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from hlotext.edit import dirty_lines, graph_checks, structure
from hlotext.edit.calls import OWNERS
from hlotext.edit.graph_checks import CONTROL
from hlotext.edit.instructions import change, check_readable, set_fields, touch_around
from hlotext.edit.journal import Edit
from hlotext.edit.references import MappedAttributes, mapped
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import COPIED, Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import Form, NodeState
from hlotext.ir.values.metadata import Metadata

Nodes = dict[Any, Any]
"""Old node -> new node."""


def clone_instruction(
    instruction: Instruction, before: Instruction | None = None, name: str | None = None
) -> Instruction:
    """Clones an instruction after the original, or before another instruction of its computation.

    Args:
        instruction: The original.
        before: Instruction to insert before; None inserts after the original.
        name: Name of the clone. None appends `.clone` to the original's, as in XLA, and makes the result unique.

    Returns:
        The clone.

    Raises:
        EditError: The original is a parameter, a part of an asynchronous operation, or outside a computation, or the
            name is taken.
    """
    computation = instruction.computation
    if computation is None:
        raise EditError(f"{instruction.name} is not in a computation")
    if instruction.opcode == "parameter":
        raise EditError(f"{instruction.name} is a parameter, which cannot be duplicated")
    if instruction.opcode in ROLES:
        raise EditError(f"{instruction.name} is part of an asynchronous operation; clone its computation")
    check_readable(instruction)
    module = graph_checks.module_of(instruction)
    new_name = name or f"{instruction.name}.clone"
    if before is None:
        place = computation.order.index(instruction) + 1
        before = computation._instructions[place] if place < len(computation) else None
    with Edit(module):
        copy = Instruction(
            module.instruction_names.unique(new_name) if module is not None and name is None else new_name,
            instruction._head.opcode, instruction._head.shape, instruction._operands, own_attributes(instruction),
            instruction._head.argument,
        )  # fmt: skip
        structure.add(computation, copy, before, typed=False, original=instruction)
    return copy


def clone_computation(
    computation: Computation, name: str | None = None, callees: Mapping[Any, Any] | None = None
) -> Computation:
    """Clones a computation within its module. The clone has no callers.

    Args:
        computation: The original.
        name: Requested name; None appends `.clone` to the original's. Made unique, as are those of instructions.
        callees: Maps called computations to replacements; all others are shared with the original.

    Returns:
        The clone.

    Raises:
        EditError: The computation is not in a module.
    """
    module = computation.module
    if module is None:
        raise EditError(f"{computation.name} is not in a module")
    for instruction in computation._instructions:
        check_readable(instruction)
    copy = Computation(
        module.computation_names.unique(name or f"{computation.name or 'inline_body'}.clone"),
        execution_thread=computation._execution_thread,
        backend_config=computation._backend_config,
    )
    nodes: Nodes = dict(callees or {})
    unique = module.instruction_names.unique
    for old in computation._instructions:
        head = old._head
        attributes = _mapped_attributes(old, nodes, own=True) if old._attributes else {}
        new = Instruction(
            unique(f"{old._name}.clone"), head.opcode, head.shape,
            tuple([nodes[operand] for operand in old._operands]),
            dirty_lines.without_left_out(attributes), head.argument, copy,
        )  # fmt: skip
        nodes[old] = new
        copy._instructions.append(new)
    if len(computation):
        copy._root = nodes[computation.root]
    with Edit(module):
        is_alike = not callees and _is_seen_alike(computation)
        originals = {nodes[old]: None if is_alike else old for old in computation._instructions}
        structure.add_computation(module, copy, computation, originals)
    return copy


def _is_seen_alike(computation: Computation) -> bool:
    """True if a copy has the errors of its original: unless a caller allows more in this, or less, or the text implies it."""
    return not any(caller._head.opcode in OWNERS for caller in computation.calls) and not any(
        i._form is Form.IMPLICIT for i in computation._instructions
    )


def give_copies(caller: Instruction, wanted: Computation | None = None) -> list[Computation]:
    """Makes an instruction call copies of what it calls, or of one computation, a copy for each time that it names it.

    Copies have the signature of their originals and stand before them, so the caller is as right as it was: not looked at
    again, which for many took a fourth of the time. Parts of asynchronous operations and fusions, whose computations are
    seen through them, take the way of every edit.

    Returns:
        The copies.
    """
    module = graph_checks.module_of(caller)
    made: list[Computation] = []

    def own(value: Any) -> Any:
        if isinstance(value, Computation) and (wanted is None or value is wanted):
            value = clone_computation(value)
            made.append(value)
        return value

    with Edit(module) as edit:
        before = caller._attributes
        changed = {}
        for name in dict.fromkeys(name for name, _ in caller.callees()):
            value = before[name]
            changed[name] = tuple(map(own, value)) if isinstance(value, tuple) else own(value)
        after = {**before, **changed}
        if caller._head.opcode in OWNERS or caller._head.opcode in ROLES or CONTROL in before:
            change(caller, {"attributes": after}, typed=False)
        else:
            dirty_lines.mark_dirty(edit.journal, caller)
            set_fields(edit.journal, caller, {"_attributes": after})
            touch_around(edit, caller, {"_attributes": before}, {"_attributes": after})
    return made


_COPIED = (
    "_is_guess", "_is_modified", "_is_header_modified", "_has_new_tables", "_revision", "_mixes_precisions", "_carried",
    "_stored", "_stored_bodies",
)  # fmt: skip


def clone_module(module: Module) -> Module:
    """Returns a copy of a module with the same text and the same edits. Implements `Module.clone`."""
    nodes: Nodes = {}
    module.materialize()
    copy = Module(
        module._name, dict(module._attributes), [], None, module.stack_frames, module._source,
        module._start, module._header_end, module._end, module._tables_start, module._header_start,
    )  # fmt: skip
    for name in _COPIED:
        setattr(copy, name, getattr(module, name))
    for computation in (*module._computations, *module._removed):
        new = nodes[computation] = Computation("", module=copy)
        for name in COPIED:
            setattr(new, name, getattr(computation, name))
        if computation._removed_spans:
            new._removed_spans = list(computation._removed_spans)
    copy._computations = [nodes[c] for c in module._computations]
    copy._removed = [nodes[c] for c in module._removed]
    for gone in copy._removed:
        gone._module = None
    copy._entry = nodes[module._entry] if module._entry is not None else None
    for computation in module._computations:
        new = nodes[computation]
        for old in computation._instructions:
            if isinstance(old, BadInstruction):
                place = old._place if isinstance(old._place, tuple) else None
                bad = BadInstruction(old._name, old._head.shape, new, place, old._form, old.text)
                bad._is_modified = old._is_modified
                nodes[old] = bad
                new._instructions.append(bad)
                continue
            # Slot by slot: a module has hundreds of thousands, and what the constructor makes first would be replaced.
            node = Instruction.__new__(Instruction)
            node._name, node._head, node._computation = old._name, old._head, new
            node._operands, node._attributes = tuple([nodes[o] for o in old._operands]), old._attributes
            state = old._state
            if type(state) is NodeState:  # users are counted when somebody asks
                is_as_read = state.form is Form.LINE and not state.is_modified
                state = state.place if is_as_read else NodeState(state.place, state.form, state.is_modified)
            node._state = state
            nodes[old] = node
            new._instructions.append(node)
        new._root = nodes[computation._root] if computation._root is not None else None
    attributes = MappedAttributes(nodes)
    for instruction in copy.instructions():
        if instruction._attributes:
            instruction._attributes = attributes.of(instruction._attributes)
    copy._parts = attributes.parts(module._parts)
    return copy


def own_attributes(instruction: Instruction) -> Mapping[str, Any]:
    """Returns the attributes for a copy of an instruction. The body of an async-start or fusion, which has one caller,
    is cloned.
    """
    callees = instruction.called_computations if instruction.opcode in OWNERS else ()
    attributes = derived_attributes(instruction._attributes)
    return {**attributes, "calls": clone_computation(callees[0])} if callees else attributes


def derived_attributes(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns attributes without the scheduling name, which must be the instruction's own name
    (`VerifyInstructionNameUnchanged`).
    """
    metadata = attributes.get("metadata")
    if not isinstance(metadata, Metadata) or not metadata.scheduling_name:
        return attributes
    kept = attrs.evolve(metadata, scheduling_name="")
    others = {name: value for name, value in attributes.items() if name != "metadata"}
    return {**attributes, "metadata": kept} if kept.is_printed else others


def _mapped_attributes(instruction: Instruction, nodes: Nodes, *, own: bool = False) -> Mapping[str, Any]:
    """The attributes with references to nodes replaced; the same dict where there are none."""
    if own and instruction.opcode in OWNERS:
        nodes = {
            **nodes,
            **{c: nodes[c] if c in nodes else clone_computation(c) for c in instruction.called_computations},
        }
    attributes = derived_attributes(instruction._attributes) if own else instruction._attributes
    return mapped(attributes, nodes)


__all__ = [
    "clone_computation",
    "clone_instruction",
    "clone_module",
    "derived_attributes",
    "give_copies",
    "own_attributes",
]
