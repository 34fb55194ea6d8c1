"""Validates an edit and reports new errors only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs

from hlotext.edit.hooks import verifier
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import STARTS, is_async_body
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape, holds_buffer
from hlotext.semantics.custom import buffer_problems
from hlotext.semantics.facts import VerifierOptions, facts_of
from hlotext.semantics.header import header_problems
from hlotext.semantics.host_memory import HOST_SPACE, move_problems
from hlotext.semantics.operation import Error, errors_of
from hlotext.semantics.problems import Problem

Counts = Counter[str]
"""Number of errors by code."""

NO_ERRORS: Counts = Counter()
"""Of what nothing is wrong with."""

# ---- one instruction


def count_errors(instruction: Instruction) -> Counts:
    """Returns the number of errors of an instruction alone, by code."""
    found = errors(instruction)
    return Counter(code for code, _ in found) if found else NO_ERRORS


def check(instruction: Instruction, before: Counts) -> None:
    """Raises EditError if an instruction has a new error."""
    found = errors(instruction)
    if found:
        _raise_new(f"{instruction.name}: ", found, before)


def errors(instruction: Instruction) -> tuple[Error, ...]:
    """Returns the errors of an instruction alone.

    Checks with the strictest options first, under which most instructions are valid. Only the others require a look at
    the whole module, which determines whether precisions may mix and what fusions may contain.
    """
    computation = instruction._computation
    module = computation._module if computation is not None else None
    if module is None:
        return errors_of(instruction, _DETACHED)
    known = module._strict_facts
    facts: VerifierOptions
    if known is not None and known[0] is module._attributes and known[1] is module._stack_frames:
        facts = known[2]
    else:
        facts = strict_facts(module)
        module._strict_facts = module._attributes, module._stack_frames, facts
    found = errors_of(instruction, facts)
    if found:
        found = errors_of(instruction, _exact(instruction, module, facts))
    holds_buffers, uses_host = module._memories or memory_kinds(module)
    if holds_buffers or uses_host:
        found += _memory_errors(instruction, facts)
    return found


def _memory_errors(instruction: Instruction, facts: VerifierOptions) -> tuple[Error, ...]:
    """Errors of an instruction that follow from the memory of its values: buffers and host memory."""
    found: list[Problem] = []
    computation = instruction._computation
    if computation is None or instruction.is_root or not is_async_body(computation):
        found += buffer_problems(instruction)
    if facts.layout_sensitive and instruction._operands:
        found += move_problems(instruction)
    return tuple((problem.code, problem.message) for problem in found if problem.is_error)


_DETACHED = VerifierOptions(False, True)
"""An instruction in no module has no layout to keep and may mix precisions."""


def strict_facts(module: Module) -> VerifierOptions:
    """Returns the strictest verifier options."""
    return facts_of(module, (), None, False)


def _exact(instruction: Instruction, module: Module, facts: VerifierOptions) -> VerifierOptions:
    if module._mixes_precisions is None:
        shapes = (i._head.shape for i in module.instructions() if i._head.shape is not None)
        module._mixes_precisions = facts_of(module, shapes, None, None).mixed_precision
    in_fusion = instruction._computation is not None and instruction._computation.is_fusion_body
    return attrs.evolve(facts, mixed_precision=module._mixes_precisions, in_fusion=in_fusion)


def memory_kinds(module: Module) -> tuple[bool, bool]:
    """Returns whether a module has values in buffers of their own, and whether it has values in host memory."""
    if module._memories is None:
        shapes = {i._head.shape for i in module.instructions() if i._head.shape is not None}
        uses_host = any(is_host(leaf) for shape in shapes for _, leaf in shape.leaves())
        module._memories = any(map(holds_buffer, shapes)), uses_host
    return module._memories


def is_host(shape: Shape) -> bool:
    """Returns True if an array is in host memory."""
    return shape.layout is not None and shape.layout.memory_space == HOST_SPACE


# ---- more than one instruction


def header_counts(module: Module) -> Counts:
    """Returns the number of errors of the header about the entry, by code."""
    return Counter(code for code, _ in _header_errors(module))


def check_header(module: Module, before: Counts) -> None:
    """Raises EditError if the header has a new error."""
    _raise_new("the header: ", _header_errors(module), before)


def _header_errors(module: Module) -> list[Error]:
    found = header_problems(module, strict_facts(module), for_compiler=True)
    return [(p.code, p.message) for _, p in found if p.is_error]


def module_counts(module: Module) -> Counts:
    """Returns the number of errors of a whole module, by code."""
    return Counter(code for code, _ in verifier()(module))


def check_module(module: Module, before: Counts) -> None:
    """Raises EditError if a module has a new error."""
    _raise_new("", verifier()(module), before)


_REMEDIES = {
    "V206": "layouts are final in a scheduled module, so copy the operand, or build it with shape= in that layout",
    "V603": "change both in one `with module.transaction(typed=False):`, or let the compiler choose a result: "
    "rewrite.donate(module, {argument: None})",
    "V401": "build both in one `with module.transaction():`",
}


def _raise_new(what: str, found: Iterable[Error], before: Counts) -> None:
    known = before.copy()
    for code, message in found:
        known[code] -= 1
        if known[code] < 0:
            remedy = f": {_REMEDIES[code]}" if code in _REMEDIES else ""
            raise EditError(f"{what}{message}{remedy}", code=code)


def check_starts(computation: Computation) -> None:
    """Raises EditError if an argument replaces a start of an asynchronous operation, as a pasted op line may have it."""
    for i in computation._instructions:
        if (
            i._head.opcode in STARTS
            and i._operands
            and i._operands[0]._head.opcode not in STARTS[i._head.opcode]
        ):
            raise EditError(
                f"{i.name} needs {' or '.join(STARTS[i._head.opcode])}, which only a pasted line may omit"
            )


def check_types(computation: Computation) -> None:
    """Raises EditError if an op line lacks what a module needs: the shape of an operand, or the body of a computation."""
    for i in computation._instructions:
        if isinstance(i, BadInstruction):
            continue
        if i._head.shape is None:
            raise EditError(
                f"{i._name} has no type, so its op line cannot become a module",
                f"set the shape of {i._name} first",
            )
        wrapped = i.async_wrapped_instruction
        called = (*i.called_computations, *(wrapped.called_computations if wrapped is not None else ()))
        named = next((c for c in called if c._module is not computation._module), None)
        if named is not None:
            raise EditError(
                f"{i._name} refers to {named._name}, which is missing, so its op line cannot become a module"
            )


def check_parameters(computation: Computation) -> None:
    """Raises EditError unless there is an instruction, and parameters are numbered 0, 1, 2 ..., each once."""
    module = computation._module
    if module is None or computation._is_draft:
        return
    if not computation._instructions:
        raise EditError(f"{computation.name} has no instructions, so it cannot be read")
    numbers = sorted(
        i._head.argument if isinstance(i._head.argument, int) else -1
        for i in computation._instructions
        if i._head.opcode == "parameter"
    )
    if numbers != list(range(len(numbers))):
        wanted = f"0 to {len(numbers) - 1}, each once" if len(numbers) > 1 else "0"
        raise EditError(
            f"the parameters of {computation.name} are numbered {', '.join(map(str, numbers))}, not {wanted}",
            "swap parameter numbers inside one `with module.transaction():`",
            code="V312",
        )


def check_fusions(suspects: Iterable[Instruction]) -> None:
    """Raises EditError if an instruction in a fusion is no longer used, or if its root now is."""
    bodies: dict[Computation, bool] = {}
    for instruction in suspects:
        computation = instruction._computation
        if computation is None:
            continue
        if computation not in bodies:
            bodies[computation] = computation.is_fusion_body
        if not bodies[computation]:
            continue
        if computation.root is instruction:
            if instruction.user_view:
                raise EditError(
                    f"{instruction.name} is the root of a fusion, but {instruction.users[0].name} would use it inside",
                    "use a copy of it",
                    code="V307",
                )
        elif not instruction.user_view and not has_side_effect(instruction):
            raise EditError(
                f"nothing in the fusion {computation.name} would use {instruction.name}",
                "use it, or remove it, inside one `with module.transaction():`",
                code="V308",
            )
