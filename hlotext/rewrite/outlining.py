"""Moving instructions into a computation of their own and back: outline and inline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hlotext.edit import structure
from hlotext.edit.calls import OWNERS
from hlotext.edit.cloning import own_attributes
from hlotext.edit.graph_checks import CONTROL
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.enums import FusionKind
from hlotext.rewrite.kit.builder import Builder


def outline(
    instructions: Sequence[Instruction], name: str, opcode: str = "call", **attributes: Any
) -> Instruction:
    """Moves instructions of one computation into a new computation, and replaces them with a `call` (or `fusion`).

    Values from outside become parameters. Values used outside become the result, a tuple if there are several.

    Args:
        instructions: The instructions.
        name: Requested name of the computation.
        opcode: Opcode of the caller.
        attributes: Attributes of the caller.

    Returns:
        The caller.

    Raises:
        EditError: The instructions are not all in one computation of a module, include parameters or control
            dependencies, or a path of dependencies leaves them and returns. Nothing is changed then.
    """
    chosen = dict.fromkeys(instructions)
    computation = next(iter(chosen)).computation if chosen else None
    module = computation.module if computation is not None else None
    if computation is None or module is None or any(i.computation is not computation for i in chosen):
        raise EditError("outline needs instructions of one computation in a module")
    for i in chosen:
        if i.opcode == "parameter" or i.control_predecessors or i.control_successors:
            raise EditError(f"{i.name} cannot move to another computation")
    order = computation.order
    inside = sorted(chosen, key=order.__getitem__)
    inputs = dict.fromkeys(o for i in inside for o in i.operands if o not in chosen)
    outputs = [i for i in inside if i.is_root or any(user not in chosen for user in i.users)] or inside[-1:]
    if _need_any(inputs, chosen, inside[0]):
        raise EditError("a value would leave the outlined instructions and re-enter them")
    with module.transaction():
        builder = Builder.new(module, name, before=computation)
        nodes: dict[Instruction, Instruction] = {}
        for value in inputs:
            if value.shape is None:
                raise EditError(f"{value.name} has no type, so it cannot be passed", "set its shape first")
            nodes[value] = builder.parameter(value.shape)
        for old in inside:
            copy = Instruction(
                module.instruction_names.unique(old.name), old.opcode, old.shape,
                tuple(nodes[o] for o in old.operands), old._attributes, old._head.argument,
            )  # fmt: skip
            nodes[old] = builder.computation.add(copy, typed=module.is_scheduled)
        results = [nodes[o] for o in outputs]
        builder.finish(results[0] if len(results) == 1 else builder.tuple(*results))
        named = {"calls" if opcode == "fusion" else "to_apply": builder.computation, **attributes}
        if opcode == "fusion":
            named.setdefault("kind", FusionKind.LOOP)
        call = _call(computation, inside, opcode, tuple(inputs), named, builder.computation)
        single = len(outputs) == 1
        after = Builder.after(call)
        for number, output in enumerate(outputs):
            output.replace_all_uses_with(call if single else after.get_tuple_element(call, number))
        computation.remove_all(inside)
    return call


def _call(
    computation: Computation,
    inside: list[Instruction],
    opcode: str,
    inputs: tuple[Instruction, ...],
    attributes: dict[str, Any],
    callee: Computation,
) -> Instruction:
    """The call, behind everything that it needs; uses move behind it when they are redirected."""
    builder = Builder(computation, inside[0], inside[-1])
    order = computation.order
    last = max(inputs, key=order.__getitem__, default=None)
    if last is not None and order[last] > order[inside[0]]:
        builder = Builder.after(last, inside[-1])
    return builder.op(opcode, inputs, shape=callee.shape, **attributes)


def _need_any(values: Iterable[Instruction], chosen: dict[Instruction, None], first: Instruction) -> bool:
    """True if one of these values depends on one of the chosen instructions, of which the first is given."""
    computation = first.computation
    assert computation is not None
    order = computation.order
    start = order[first]
    seen: set[Instruction] = set()
    stack = [value for value in values if order[value] >= start]
    while stack:
        i = stack.pop()
        if i in chosen:
            return True
        if i not in seen:
            seen.add(i)
            stack.extend(o for o in (*i.operands, *i.control_predecessors) if order[o] >= start)
    return False


def inline(call: Instruction) -> dict[Instruction, Instruction]:
    """Inlines a `call` or `fusion`: replaces it with the instructions of its computation (`CallInliner::Inline`).

    Control dependencies of the call are transferred to the copies, which follow its predecessors; its successors follow
    the result. The computation of a call is kept (DCE removes it once unused); that of a fusion is removed. Returns a
    map from the computation's instructions to their copies. Raises EditError for other opcodes, and if the computation
    is missing, empty, or has another number of parameters.
    """
    computation = call.computation
    if call.opcode not in ("call", "fusion") or computation is None or computation.module is None:
        raise EditError(f"{call.name} is not a call")
    if not call.called_computations:
        raise EditError(f"{call.name} calls no computation")
    callee = call.called_computations[0]
    if not len(callee):
        raise EditError(f"{callee.name}, which {call.name} calls, has no instructions")
    module = computation.module
    if len(callee.parameters) != len(call.operands):
        raise EditError(f"{callee.name} does not accept what {call.name} passes")
    with module.transaction():  # what fits a parameter need not fit those that use it
        return _inline(call, callee, computation, module)


def _inline(
    call: Instruction, callee: Computation, computation: Computation, module: Module
) -> dict[Instruction, Instruction]:
    predecessors = call.control_predecessors
    nodes: dict[Any, Any] = dict(zip(callee.parameters, call.operands, strict=True))
    copies: dict[Instruction, Instruction] = {}
    for old in callee:
        if old in nodes:
            continue
        attributes = dict(own_attributes(old))
        own = tuple(nodes.get(p, p) for p in attributes.pop(CONTROL, ()))
        if own or predecessors:
            attributes[CONTROL] = tuple(dict.fromkeys((*own, *predecessors)))
        copy = Instruction(
            module.instruction_names.unique(old.name), old.opcode, old.shape,
            tuple(nodes[o] for o in old.operands), attributes, old._head.argument,
        )  # fmt: skip
        structure.add(computation, copy, call, typed=module.is_scheduled, original=old)
        nodes[old] = copies[old] = copy
    call.replace_with(nodes[callee.root])
    if call.opcode == "fusion":
        _remove_own(module, callee)
    return copies


def _remove_own(module: Module, body: Computation) -> None:
    """Removes the body of a fusion that is gone, with the bodies that its own fusions had: what is right in a fusion need
    not be outside of one.
    """
    waiting = [body]
    while waiting:
        computation = waiting.pop()
        if not computation.callers:
            waiting += [c for i in computation if i.opcode in OWNERS for c in i.called_computations]
            module.remove(computation)
