"""A small module around one instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlotext.edit.asynchronous import is_finished_by
from hlotext.edit.parameters import remove_unused_parameters
from hlotext.edit.per_argument_attributes import drop_lists
from hlotext.edit.structure import set_entry, set_root
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import FINISHERS
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination, remove_unreached


def extract(instruction: Instruction, depth: int | None = None) -> Module:
    """Returns a new module that computes one instruction from its operands, direct and transitive.

    Called computations are copied. The original module is not modified.

    Args:
        instruction: The instruction, which becomes the root.
        depth: Maximum number of uses between an operand and the instruction; more distant values become parameters.
            None includes all.

    Raises:
        EditError: The instruction has no shape, or is outside a module.
    """
    computation = instruction.computation
    if computation is None or computation.module is None or instruction.shape is None:
        raise EditError(f"{instruction.name} is not in a module, or its shape is unknown")
    source = computation.module
    kept = _within(instruction, depth)
    copy, body = _copied(source, computation)
    nodes = dict(zip(computation.instructions, body.instructions, strict=True))
    with copy.transaction():
        _drop_whole_program_header(copy)
        _make_entry(copy, body, nodes[instruction])
        number = sum(i.opcode == "parameter" for i in body)
        front = body.instructions[0]
        for old in computation:
            if old not in kept or old.opcode == "parameter" or not _is_border(old, kept, depth, instruction):
                continue
            new = nodes[old]
            parameter = Instruction(
                copy.instruction_names.unique(f"{old.name}.given"), "parameter", old.shape, argument=number
            )
            body.add(parameter, front, typed=False)
            front = parameter
            number += 1
            new.replace_all_uses_with(parameter)
        DeadCodeElimination().run(copy)
        remove_unused_parameters(
            body, [one for one in body.parameters if not (one.users or one.is_root or one.control_successors)]
        )
    return copy


def extract_between(
    results: Sequence[Instruction], given: Sequence[tuple[Shape, Instruction | None]]
) -> Module:
    """Returns a new module that computes instructions of one computation from given ones, which become its parameters.

    Former parameters that are still used come first. A parameter without an instruction is unused. Several results are
    returned as a tuple. The source module is not modified. Raises EditError for instructions outside a module, or of
    several computations.
    """
    computation = results[0].computation
    if computation is None or computation.module is None or {i.computation for i in results} != {computation}:
        raise EditError("the results are not all in one computation of a module")
    source = computation.module
    copy, body = _copied(source, computation)
    nodes = dict(zip(computation.instructions, body.instructions, strict=True))
    with copy.transaction():
        _drop_whole_program_header(copy)
        former = body.parameters
        roots = tuple(nodes[i] for i in results)
        front = body.instructions[0]
        for number, (shape, old) in enumerate(given, len(former)):
            name = copy.instruction_names.unique(f"{old.name if old is not None else 'unused'}.given")
            parameter = Instruction(name, "parameter", shape, argument=number)
            body.add(parameter, front, typed=False)
            if old is not None:
                nodes[old].replace_all_uses_with(parameter)
        root = roots[0]
        if len(roots) > 1:
            shapes = tuple(i.shape for i in roots if i.shape is not None)
            root = Instruction(copy.instruction_names.unique("results"), "tuple", Shape.tuple(shapes), roots)
            body.add(root, typed=False)
        _make_entry(copy, body, root)
        DeadCodeElimination().run(copy)
        remove_unused_parameters(body, [one for one in former if not (one.users or one.is_root)])
    return copy


def computation_module(computation: Computation) -> Module:
    """Returns a new module whose entry is a copy of a computation, such as a fusion's body. The source is not modified.

    Raises EditError for a computation outside a module.
    """
    source = computation.module
    if source is None:
        raise EditError(f"{computation.name} is not in a module")
    copy, body = _copied(source, computation)
    with copy.transaction():
        _drop_whole_program_header(copy)
        _make_entry(copy, body, body.root)
    return copy


_OF_THE_WHOLE = ("input_output_alias", "buffer_donor", "entry_computation_layout", "is_scheduled")
"""Header attributes that hold for a whole program only."""


def drop_header_attributes(module: Module, dropped: Callable[[str], bool]) -> None:
    """Removes the attributes of a module's header for whose names `dropped` returns True."""
    for name in [name for name in module.attributes if dropped(name)]:
        del module.attributes[name]


def _copied(source: Module, computation: Computation) -> tuple[Module, Computation]:
    copy = source.clone()
    return copy, copy.computations[source.computations.index(computation)]


def _drop_whole_program_header(module: Module) -> None:
    drop_header_attributes(module, lambda name: name in _OF_THE_WHOLE or name.startswith("allow_spmd"))
    drop_lists(module)


def _make_entry(module: Module, body: Computation, root: Instruction) -> None:
    """Makes a computation the entry with another root, whatever called it before."""
    set_root(body, root, typed=False)
    set_entry(module, body, may_have_callers=True)
    remove_unreached(module)


def _within(instruction: Instruction, depth: int | None) -> dict[Instruction, int]:
    """The instructions that one needs, with how many operands away they are at least; a start is where its done is."""
    found = {instruction: 0}
    pending = [instruction]
    while pending:
        following = []
        for i in pending:
            for operand in i.operands:
                distance = found[i] + (not is_finished_by(operand, i))
                if operand not in found and (depth is None or distance <= depth):
                    found[operand] = distance
                    following.append(operand)
        pending = following
    return found


def _is_border(i: Instruction, kept: dict[Instruction, int], depth: int | None, root: Instruction) -> bool:
    """True if an instruction is replaced by a parameter: it is as far away as allowed, no constant, and no start."""
    if depth is None or i is root or i.opcode in ("constant", "iota") or i.opcode in FINISHERS:
        return False
    return kept[i] >= depth
