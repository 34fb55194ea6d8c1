"""Asynchronous operations: every start has its done, every done its start, and both say the same."""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.ir.nodes.async_ops import FINISHERS, ROLES, STARTS
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.semantics.infer.shapes import compatible
from hlotext.verify.findings import Findings
from hlotext.verify.survey import Survey


def check_pairs(survey: Survey, findings: Findings) -> None:
    """Starts and dones belong together (`VerifyAsynchronousInstructionPairs`)."""
    users = _users(survey.asynchronous)
    for instruction in survey.asynchronous:
        if instruction.opcode in STARTS:
            _check_operand(instruction, findings)
        if instruction.opcode in FINISHERS and not _is_wrapped(instruction, survey):
            _check_users(instruction, users[instruction], findings)
        if instruction.opcode == "async-start":
            _check_thread(instruction, findings)
        if instruction.opcode == "async-done":
            _check_bound(instruction, findings)


def _users(instructions: Iterable[Instruction]) -> dict[Instruction, list[Instruction]]:
    """The users of these instructions, found in one look at their computations."""
    users: dict[Instruction, list[Instruction]] = {instruction: [] for instruction in instructions}
    computations: dict[Computation, None] = {}
    for instruction in users:
        if instruction.computation is not None:
            computations[instruction.computation] = None
    for computation in computations:
        for user in computation:
            for operand in dict.fromkeys(user.operands):
                if operand in users:
                    users[operand].append(user)
    return users


def _is_wrapped(instruction: Instruction, survey: Survey) -> bool:
    """A send or recv that an async-start wraps has its done outside."""
    computation = instruction.computation
    return (
        instruction.opcode in ("send", "recv")
        and instruction.is_root
        and computation is not None
        and any(caller.opcode == "async-start" for caller in survey.calls.get(computation, ()))
    )


def _check_operand(done: Instruction, findings: Findings) -> None:
    allowed = STARTS[done.opcode]
    operand = done.operands[0] if done.operands else None
    if operand is None or operand.opcode in allowed or _is_open(operand):
        return
    findings.at(
        done, "V402", f"{done.opcode} finishes {allowed[0]}, but its operand {operand.name} is {operand.opcode}", 0,
        related=[("the operand", operand)],
    )  # fmt: skip


def _is_open(operand: Instruction) -> bool:
    """The made-up parameter of a pasted op line: what began the operation is not there to be judged."""
    computation = operand.computation
    return operand.opcode == "parameter" and computation is not None and computation.is_implicit


def _check_users(start: Instruction, users: list[Instruction], findings: Findings) -> None:
    computation = start.computation
    if computation is not None and computation.is_implicit and start.is_root:
        return  # a pasted op line
    allowed = FINISHERS[start.opcode]
    # A tuple passes on several transfers at once: those of a group, or of a pipelined loop.
    finishing = [
        user
        for user in users
        if user.opcode in allowed and (user.opcode == "tuple" or user.operands[:1] == (start,))
    ]
    for user in users:
        if user not in finishing and user.attributes.get("custom_call_target") != "control_dep":
            findings.at(
                user, "V403", f"{start.name} is a started {start.opcode}, which only {' or '.join(allowed)} may take",
                user.operands.index(start), related=[("started here", start)],
            )  # fmt: skip
    if len(finishing) != 1:
        how = "nothing finishes it" if not finishing else f"{len(finishing)} instructions finish it"
        findings.at(
            start, "V401", f"{start.opcode} needs one {allowed[-1] if len(allowed) == 1 else allowed[0]}, but {how}",
            related=[("finished here", user) for user in finishing],
        )  # fmt: skip


def _check_thread(start: Instruction, findings: Findings) -> None:
    """`CheckAsyncOpComputationThreadName`."""
    stated = start.attributes.get("async_execution_thread", "main")
    for body in start.called_computations:
        if body.execution_thread != stated:
            where = "async_execution_thread" if "async_execution_thread" in start.attributes else "calls"
            findings.at(
                start,
                "V405",
                f"it runs on thread {stated}, but {body.name} on {body.execution_thread}",
                where,
            )


def _check_bound(done: Instruction, findings: Findings) -> None:
    """All parameters have got their operands before the end (`CheckAsyncDoneOperands`)."""
    operand = done.operands[0] if done.operands else None
    start = operand
    while start is not None and start.opcode == "async-update" and start.operands:
        start = start.operands[0]
    if operand is None or start is None or start.opcode != "async-start" or operand.shape is None:
        return
    bound = operand.shape.tuple_shapes[:1]
    for body in start.called_computations:
        if bound and len(bound[0].tuple_shapes) != len(body.parameters):
            findings.at(
                done, "V402", f"{len(bound[0].tuple_shapes)} of {len(body.parameters)} operands have been handed in",
                0, related=[("started here", start)],
            )  # fmt: skip


# ---- channels


def check_channels(survey: Survey, findings: Findings) -> None:
    """Both halves of a transfer say the same; so do host transfers of one channel (`VerifyChannels`)."""
    host: dict[int, Instruction] = {}
    for instruction in survey.asynchronous:
        opcode, channel = instruction.opcode, instruction.attributes.get("channel_id")
        if opcode in ("send-done", "recv-done"):
            _check_halves(instruction, findings)
        if opcode in ("send", "recv") and isinstance(channel, int) and _to_host(instruction):
            first = host.setdefault(channel, instruction)
            if first is not instruction and not _alike(first, instruction):
                findings.at(
                    instruction, "V407", f"channel {channel} is used for another host transfer by {first.name}",
                    "channel_id", "host transfers of one channel must be the same", [("the other one", first)],
                )  # fmt: skip


def _check_halves(done: Instruction, findings: Findings) -> None:
    start = done.operands[0] if done.operands else None
    if start is None or start.opcode != done.opcode.removesuffix("-done"):
        return
    mine, theirs = done.attributes.get("channel_id"), start.attributes.get("channel_id")
    if mine != theirs and theirs is not None:
        findings.at(
            done, "V406", f"channel_id is {mine}, but that of {start.name} is {theirs}", "channel_id",
            related=[("the start", start)],
        )  # fmt: skip
    if _to_host(done) != _to_host(start):
        findings.at(
            done, "V406", f"is_host_transfer differs from that of {start.name}", "is_host_transfer",
            related=[("the start", start)],
        )  # fmt: skip


def _to_host(instruction: Instruction) -> bool:
    return bool(instruction.attributes.get("is_host_transfer"))


def _alike(a: Instruction, b: Instruction) -> bool:
    if a.opcode != b.opcode or a.shape is None or b.shape is None:
        return a.opcode == b.opcode
    return compatible(a.shape, b.shape)


def is_asynchronous(instruction: Instruction) -> bool:
    """Whether an instruction is a part of an asynchronous operation."""
    return instruction.opcode in ROLES
