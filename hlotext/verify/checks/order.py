"""The graph inside a computation: operands of its own, defined before they are used; control dependencies."""

from __future__ import annotations

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.verify.findings import FindingCollector


def check_operands(instruction: Instruction, before: set[Instruction], findings: FindingCollector) -> None:
    """Checks that operands precede their uses (`VerifyHloStructure`, `HloSchedule::Verify`).

    The order of the text is the schedule of a scheduled module; in any other the text could not be read again.
    """
    for number, operand in enumerate(instruction.operands):
        if operand in before:
            continue
        if operand is instruction:
            findings.at(instruction, "V302", f"{instruction.name} is an operand of itself", number)
        elif _is_in(operand, instruction.computation):
            findings.at(
                instruction, "V303", f"{operand.name} is used before it is defined", number,
                "move the definition up, or the use down", [("defined here", operand)],
            )  # fmt: skip
        else:
            where = operand.computation.name if operand.computation is not None else "no computation"
            findings.at(
                instruction, "V301", f"operand {operand.name} belongs to {where}", number,
                "pass the value as a parameter", [("defined here", operand)],
            )  # fmt: skip


def _is_in(instruction: Instruction, computation: Computation | None) -> bool:
    return (
        computation is not None
        and instruction.computation is computation
        and instruction in computation.instructions
    )


def check_control(instruction: Instruction, before: set[Instruction], findings: FindingCollector) -> None:
    """Checks that control predecessors precede the instruction, in the same computation (`HloSchedule::Verify`)."""
    for predecessor in instruction.control_predecessors:
        if predecessor in before:
            continue
        if _is_in(predecessor, instruction.computation):
            what = f"{predecessor.name} must run before {instruction.name}, but comes after it"
        else:
            what = f"control predecessor {predecessor.name} is in another computation"
        findings.at(
            instruction, "V304", what, "control-predecessors", related=[("the predecessor", predecessor)]
        )


def check_cycles(computation: Computation, findings: FindingCollector) -> None:
    """Checks that no instruction depends on its own result. Called only for computations with a use before the
    definition.
    """
    done: set[Instruction] = set()
    for start in computation:
        if start in done:
            continue
        path: dict[Instruction, None] = {}
        stack: list[tuple[Instruction, bool]] = [(start, False)]
        while stack:
            instruction, leaving = stack.pop()
            if leaving:
                path.pop(instruction, None)
                done.add(instruction)
            elif instruction in path:
                _report(instruction, list(path), findings)
            elif instruction not in done:
                path[instruction] = None
                stack.append((instruction, True))
                needed = (*instruction.operands, *instruction.control_predecessors)
                stack.extend((other, False) for other in needed if other is not instruction)


def _report(instruction: Instruction, path: list[Instruction], findings: FindingCollector) -> None:
    cycle = path[path.index(instruction) :]
    shown = [node.name for node in cycle[:8]] + (["..."] if len(cycle) > 8 else [])
    findings.at(
        instruction, "V302", f"{instruction.name} depends on itself, through {' <- '.join(shown)}",
        related=[("on the way", node) for node in cycle[1:8]],
    )  # fmt: skip


def check_structure(computation: Computation, findings: FindingCollector) -> None:
    """Checks that each instruction is linked to its computation, and the root is one of them (`VerifyHloStructure`)."""
    if computation.module is not findings.module:
        findings.in_computation(
            computation, "V311", f"computation {computation.name} has no link to its module"
        )
    if not len(computation):
        findings.in_computation(computation, "V311", f"computation {computation.name} has no instructions")
        return
    for instruction in computation:
        if instruction.computation is not computation:
            findings.in_computation(
                computation, "V311", f"{instruction.name} is in {computation.name} but has no link to it"
            )
    if not _is_in(computation.root, computation):
        findings.in_computation(
            computation, "V311", f"the root of {computation.name} is not one of its instructions"
        )
