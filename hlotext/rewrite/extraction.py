"""A small module around one instruction."""

from __future__ import annotations

from hlotext.ir.errors import EditError
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.rewrite.parameters import remove_parameter
from hlotext.rewrite.passes.dce import DeadCodeElimination


def extract(instruction: Instruction, depth: int | None = None) -> Module:
    """A module of its own that computes one instruction, with what it needs up to `depth` operands away (None: all).

    What lies further away becomes parameters; called computations come along whole. The source module stays as it is.
    Raises EditError for an instruction without a shape or outside of a module.
    """
    computation = instruction.computation
    if computation is None or computation.module is None or instruction.shape is None:
        raise EditError(f"{instruction.name} is in no module, or its shape is not known")
    source = computation.module
    kept = _within(instruction, depth)
    copy = source.clone()
    body = copy._computations[source._computations.index(computation)]
    nodes = dict(zip(computation.instructions, body.instructions, strict=True))
    if body.is_implicit or body.is_inline:
        body.own_text()
    for name in ("input_output_alias", "buffer_donor", "entry_computation_layout", "is_scheduled"):
        copy.attributes.pop(name, None)
    for name in list(copy.attributes):
        if name.startswith("allow_spmd"):
            del copy.attributes[name]
    for caller in body.callers:
        assert caller.computation is not None
        if caller.computation is body:
            raise EditError(f"{body.name} calls itself")
    _make_entry(copy, body, nodes[instruction])
    number = sum(i.opcode == "parameter" for i in body)
    for old in computation:
        if old not in kept or old.opcode == "parameter" or not _is_border(old, kept, depth, instruction):
            continue
        new = nodes[old]
        parameter = Instruction(
            copy.instruction_names.unique(f"{old.name}.given"), "parameter", old.shape, argument=number
        )
        body.add(parameter, body.instructions[0], typed=False)
        number += 1
        new.replace_all_uses_with(parameter)
    DeadCodeElimination().run(copy)
    for place in reversed(range(len(body.parameters))):
        parameter = body.parameters[place]
        if not parameter.users and not parameter.is_root:
            remove_parameter(body, place)
    copy.touch_header()
    return copy


def _make_entry(module: Module, body: object, root: Instruction) -> None:
    """Makes a computation the entry with another root, whatever called it before."""
    assert root.computation is not None
    root.computation._root = root
    module._entry = root.computation
    others = [c for c in module.computations if c is not body]
    needed: set[object] = set()
    stack = [root.computation]
    while stack:
        computation = stack.pop()
        if computation not in needed:
            needed.add(computation)
            stack.extend(c for i in computation for c in i.called_computations)
    module.remove_all([c for c in others if c not in needed])
    for instruction in root.computation:
        instruction.touch()
    root.computation.touch_signature()


def _within(instruction: Instruction, depth: int | None) -> dict[Instruction, int]:
    """The instructions that one needs, with how many operands away they are at least."""
    found = {instruction: 0}
    pending = [instruction]
    while pending:
        following = []
        for i in pending:
            for operand in i.operands:
                if operand not in found and (depth is None or found[i] < depth):
                    found[operand] = found[i] + 1
                    following.append(operand)
        pending = following
    return found


def _is_border(i: Instruction, kept: dict[Instruction, int], depth: int | None, root: Instruction) -> bool:
    """Whether an instruction is replaced by a parameter: it is as far away as allowed, and no constant."""
    return depth is not None and i is not root and kept[i] >= depth and i.opcode not in ("constant", "iota")
