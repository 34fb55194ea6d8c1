"""Nodes as pickles, and copies of nodes: a module is pickled as a whole, without recursion, and a node with its module.

Caches, listeners and the undo log of an open transaction are left out.
"""

from __future__ import annotations

from typing import Any

import attrs

from hlotext.edit.references import MappedAttributes, Reference
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import COPIED, Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source

_APART = frozenset(
    {
        # of a module
        "_attributes", "_computations", "_entry", "_source", "_parts", "_removed",
    }
)  # fmt: skip
"""Fields that hold nodes, or what leads to some."""
_FOUND_OUT = frozenset(
    {
        "_journal", "_listeners", "_wide", "_strict_facts", "_surveyed", "_memories", "_callers", "_order", "_by_name",
        "_facts", "_instruction_names", "_computation_names", "_numbered_stems",
    }
)  # fmt: skip
"""Fields that are filled in again when they are asked for, and those of an edit that goes on."""


_OF_MODULE = tuple(f.name for f in attrs.fields(Module) if f.name not in _APART | _FOUND_OUT)
_OF_INSTRUCTION = "_name", "_head", "_place", "_form", "_is_modified"


def reduced(node: Module | Computation | Instruction) -> tuple[Any, ...]:
    """Implements `__reduce__` of nodes. Raises TypeError for a computation that is still being built."""
    if isinstance(node, Module):
        return restored_module, (module_state(node),)
    if isinstance(node, Computation):
        module = node._module
        if module is None:
            return restored_computation, (computation_state(node),)
        if node not in module.order:
            raise TypeError(f"computation {node._name} is still being built, so it cannot be copied")
        return computation_at, (module, module.order.index(node))
    computation = node._computation
    if computation is None:
        fields = [getattr(node, name) for name in _OF_INSTRUCTION]
        text = node.text if isinstance(node, BadInstruction) else None
        return restored_instruction, ((*fields, node._operands, dict(node._attributes), text),)
    return instruction_at, (computation, computation.order.index(node))


def computation_at(module: Module, place: int) -> Computation:
    """Returns the computation at an index."""
    return module._computations[place]


def instruction_at(computation: Computation, place: int) -> Instruction:
    """Returns the instruction at an index."""
    return computation._instructions[place]


def restored_instruction(state: tuple[Any, ...]) -> Instruction:
    """Recreates an instruction, outside any computation, from its pickled state."""
    *_, operands, attributes, _ = state
    new = _new_instruction(state, None)
    new._operands, new._attributes = operands, attributes
    return new


def _new_instruction(state: tuple[Any, ...], computation: Computation | None) -> Instruction:
    text = state[-1]
    new = Instruction("", "", None)
    if text is not None:
        new = BadInstruction("", None, computation or Computation(""), text=text)
    for name, value in zip(_OF_INSTRUCTION, state, strict=False):
        setattr(new, name, value)
    new._computation = computation
    return new


def module_state(module: Module) -> tuple[Any, ...]:
    """Returns the pickled state of a module, with indices in place of nodes."""
    module.materialize()
    computations = [*module._computations, *module._removed]
    places = _places(computations)
    attributes = MappedAttributes(places)
    source = module._source
    if source is not None and type(source) is not Source:
        source = Source(str(source.text), source.name)  # what is read as it is touched holds a file
    return (
        {name: getattr(module, name) for name in _OF_MODULE},
        dict(module._attributes),
        source,
        [_computation_state(c, places, attributes) for c in computations],
        len(module._computations),
        places.get(module._entry),
        attributes.parts(module._parts),
    )


def restored_module(state: tuple[Any, ...]) -> Module:
    """Recreates a module from its pickled state."""
    plain, header, source, computations, count, entry, parts = state
    module = Module(plain["_name"], header, source=source)
    for name, value in plain.items():
        setattr(module, name, value)
    nodes, attributes = _restored(computations, module)
    found = [nodes[Reference(number)] for number in range(len(computations))]
    module._computations, module._removed = found[:count], found[count:]
    for gone in module._removed:
        gone._module = None
    module._entry = None if entry is None else nodes[entry]
    module._parts = attributes.parts(parts)
    return module


def computation_state(computation: Computation) -> tuple[Any, ...]:
    """Returns the pickled state of a computation without a module, including its callees."""
    places = _places([computation])
    return _computation_state(computation, places, MappedAttributes(places))


def restored_computation(state: tuple[Any, ...]) -> Computation:
    """Recreates a computation from its pickled state."""
    nodes, _ = _restored([state], None)
    found: Computation = nodes[Reference(0)]
    return found


def _places(computations: list[Computation]) -> dict[Any, Reference]:
    places: dict[Any, Reference] = {}
    for number, computation in enumerate(computations):
        places[computation] = Reference(number)
        for place, instruction in enumerate(computation._instructions):
            places[instruction] = Reference(number, place)
    return places


def _computation_state(
    computation: Computation, places: dict[Any, Reference], attributes: MappedAttributes
) -> tuple[Any, ...]:
    return (
        [getattr(computation, name) for name in COPIED],
        list(computation._removed_spans),
        places.get(computation._root),
        [
            (
                *[getattr(i, name) for name in _OF_INSTRUCTION],
                tuple(places.get(operand, operand) for operand in i._operands),
                attributes.of(i._attributes),
                i.text if isinstance(i, BadInstruction) else None,
            )
            for i in computation._instructions
        ],
    )


def _restored(
    states: list[tuple[Any, ...]], module: Module | None
) -> tuple[dict[Any, Any], MappedAttributes]:
    """The computations of states, by their places, as are their instructions."""
    nodes: dict[Any, Any] = {}
    attributes = MappedAttributes(nodes)
    for number, (plain, spans, _, lines) in enumerate(states):
        computation = nodes[Reference(number)] = Computation("", module=module)
        if spans:
            computation._removed_spans = spans
        for name, value in zip(COPIED, plain, strict=True):
            setattr(computation, name, value)
        for place, line in enumerate(lines):
            new = _new_instruction(line, computation)
            computation._instructions.append(new)
            nodes[Reference(number, place)] = new
    for number, (_, _, root, lines) in enumerate(states):
        computation = nodes[Reference(number)]
        computation._root = None if root is None else nodes[root]
        for instruction, line in zip(computation._instructions, lines, strict=True):
            *_, operands, given, _ = line
            instruction._operands = tuple(nodes.get(operand, operand) for operand in operands)
            instruction._attributes = attributes.of(given)
    return nodes, attributes
