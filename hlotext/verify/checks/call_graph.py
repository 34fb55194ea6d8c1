"""Checks of the call graph: recursion, exclusive fusion bodies, threads, parameter numbers."""

from __future__ import annotations

from collections import Counter

from hlotext.ir.nodes.async_ops import COLLECTIVES_GROUP, extra_operation
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.semantics.message_text import plural
from hlotext.verify.findings import FindingCollector
from hlotext.verify.survey import Survey


def check_calls(module: Module, survey: Survey, findings: FindingCollector) -> None:
    """Checks the call graph: known callees, no recursion, no calls of the entry, matching execution threads."""
    order = {computation: number for number, computation in enumerate(module.computations)}
    in_order = True
    entry = module.entry if module.computations else None
    for caller, called in survey.callers.items():
        home = caller.computation
        own = order[home] if home is not None else len(order)
        is_on_same_thread = caller.opcode in traits.CALLEE_ON_SAME_THREAD
        for attribute, callee in called:
            number = order.get(callee)
            in_order = in_order and number is not None and number < own
            if number is None:
                findings.at(caller, "V311", f"{callee.name} is not a computation of this module", attribute)
            elif callee is entry:
                findings.at(caller, "V313", f"{caller.opcode} calls the entry computation", attribute)
            if is_on_same_thread:
                _check_thread(caller, attribute, callee, findings)
    for caller in () if in_order else _recursive(module, survey):  # what calls only earlier ones is no circle
        findings.at(
            caller, "V305", f"{caller.name} leads back to the computation that contains it",
            help="HLO has no recursion; use a while loop",
        )  # fmt: skip
    for computation in module.computations:
        if computation not in survey.calls and not computation.is_entry:
            findings.in_computation(
                computation,
                "V309",
                f"nothing calls {computation.name}",
                "XLA removes it before compiling",
            )


def _check_thread(
    caller: Instruction, attribute: str, callee: Computation, findings: FindingCollector
) -> None:
    own = caller.computation.execution_thread if caller.computation is not None else "main"
    if callee.execution_thread != own:
        findings.at(
            caller, "V310", f"{callee.name} runs on {callee.execution_thread}, but its caller on {own}", attribute,
            "only async-start moves work to another thread",
        )  # fmt: skip


def _recursive(module: Module, survey: Survey) -> list[Instruction]:
    """The callers that close a circle of calls."""
    calling: dict[Computation, list[Instruction]] = {}
    for caller in survey.callers:
        if caller.computation is not None:
            calling.setdefault(caller.computation, []).append(caller)
    found: dict[Instruction, None] = {}
    done: set[Computation] = set()
    for start in module.computations:
        path: set[Computation] = set()
        stack: list[tuple[Computation, bool]] = [(start, False)]
        while stack:
            computation, leaving = stack.pop()
            if leaving:
                path.discard(computation)
                done.add(computation)
                continue
            if computation in done:
                continue
            path.add(computation)
            stack.append((computation, True))
            for caller in calling.get(computation, ()):
                for _, callee in survey.callers[caller]:
                    if callee in path:
                        found[caller] = None
                    elif callee not in done:
                        stack.append((callee, False))
    return list(found)


# ---- fusions


def check_fusion_body(
    computation: Computation, used: set[Instruction], survey: Survey, findings: FindingCollector
) -> None:
    """Checks that a fusion's computation is its own, and that all of it is used (`CheckFusionInstruction`)."""
    callers = survey.calls[computation]
    first = next(caller for caller in callers if caller.opcode == "fusion")
    for caller in callers:
        if caller is not first:
            attribute = next(name for name, callee in caller.callees() if callee is computation)
            findings.at(
                caller, "V306", f"{computation.name} already belongs to fusion {first.name}",
                attribute, "give each its own copy", [("the fusion", first)],
            )  # fmt: skip
    root = computation.root
    if root in used:
        user = next(i for i in computation if root in i.operands)
        findings.at(
            root, "V307", f"{root.name} is the root of the fusion, but {user.name} uses it inside",
            related=[("used here", user)],
        )  # fmt: skip
    for instruction in computation:
        if instruction not in used and instruction is not root and not has_side_effect(instruction):
            findings.at(
                instruction, "V308", f"nothing in the fusion uses {instruction.name}", help="remove it",
                related=[("the fusion", first)],
            )  # fmt: skip


# ---- parameters and asynchronous computations


def check_parameters(computation: Computation, findings: FindingCollector) -> None:
    """Checks that parameters are numbered 0, 1, 2, ..., each once, which edits may have violated."""
    parameters = [i for i in computation if i.opcode == "parameter"]
    numbers = Counter(i.parameter_number for i in parameters)
    for parameter in parameters:
        number = parameter.parameter_number
        if number is None or not 0 <= number < len(parameters):
            findings.at(
                parameter,
                "V312",
                f"parameter number {number} in a computation of {plural(len(parameters), 'parameter')}",
            )
        elif numbers[number] > 1:
            findings.at(parameter, "V312", f"{numbers[number]} parameters have number {number}")


def check_async_bodies(survey: Survey, findings: FindingCollector) -> None:
    """Checks that an async-start on the main thread wraps a single operation (`VerifyAsyncComputation`).

    Exceptions are groups of collectives and of transfers, and barriers, which only forward their parameters.
    """
    for start in survey.asynchronous:
        if start.opcode != "async-start" or COLLECTIVES_GROUP in start.frontend_attributes:
            continue
        if start.attributes.get("async_execution_thread", "main") != "main":
            continue  # which XLA's reader hands on to the computation
        for body in start.called_computations:
            extra = extra_operation(body, body.instructions, body.root) if len(body) else None
            if extra is not None:
                findings.at(
                    start, "V404", f"{body.name} has more than one operation", "calls",
                    "wrap it in a call, or start each operation separately", [("another operation", extra)],
                )  # fmt: skip
