"""Asynchronous operations: every start has its done, every done its start, and both say the same."""

from __future__ import annotations

from hlotext.ir.nodes.async_ops import FINISHERS, STARTS, async_starts, is_carrier
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.semantics.infer.control import is_bound
from hlotext.semantics.infer.shapes import compatible
from hlotext.semantics.message_text import shown
from hlotext.verify.findings import FindingCollector
from hlotext.verify.survey import Survey


def check_pairs(survey: Survey, findings: FindingCollector) -> None:
    """Checks that starts, updates and dones form valid pairs (`VerifyAsynchronousInstructionPairs`)."""
    users, dones = survey.users, _dones(survey, findings)
    for instruction in survey.asynchronous:
        if instruction.opcode in STARTS:
            _check_operand(instruction, findings)
        if instruction.opcode in ("async-start", "async-update"):
            _check_state(instruction, users[instruction], findings)
            if instruction.opcode == "async-start":
                _check_dones(instruction, dones[instruction], findings)
        elif instruction.opcode in FINISHERS and not _is_wrapped(instruction, survey):
            _check_users(instruction, users[instruction], findings)
        if instruction.opcode == "async-start":
            _check_thread(instruction, survey, findings)
        if instruction.opcode in ("async-update", "async-done"):
            _check_bound(instruction, findings)


def _dones(survey: Survey, findings: FindingCollector) -> dict[Instruction, list[tuple[Instruction, bool]]]:
    """The dones of each async-start, and whether each may as well belong to another start, as in a loop that carries it."""
    found: dict[Instruction, list[tuple[Instruction, bool]]] = {
        start: [] for start in survey.asynchronous if start.opcode == "async-start"
    }
    for done in survey.asynchronous:
        if done.opcode != "async-done" or not done.operands:
            continue
        starts = async_starts(done, lambda computation: survey.calls.get(computation, ()))
        for start in starts:
            if start in found:
                found[start].append((done, len(starts) > 1))
        if not starts and done.operands[0].opcode in STARTS["async-done"] and not _is_open(done.operands[0]):
            findings.at(done, "V402", "its operands do not lead back to an async-start", 0)
    return found


def _check_state(start: Instruction, users: list[Instruction], findings: FindingCollector) -> None:
    """Nothing takes the state of an asynchronous operation but its next part and what passes it on."""
    for user in users:
        is_next = user.opcode in ("async-update", "async-done")
        if (
            (user.operands[:1] == (start,) and user.operands.count(start) == 1)
            if is_next
            else is_carrier(user)
        ):
            continue
        if user.attributes.get("custom_call_target") != "control_dep":
            findings.at(
                user, "V403", f"{start.name} is a started {start.opcode}, which only async-update or async-done may use",
                user.operands.index(start), related=[("started here", start)],
            )  # fmt: skip
    following = [user for user in users if user.opcode in ("async-update", "async-done")]
    if len(following) > 1:
        findings.at(
            start, "V401", f"{start.opcode} needs one async-update or async-done, but {len(following)} use it",
            related=[("used here", user) for user in following],
        )  # fmt: skip


def _check_dones(
    start: Instruction, dones: list[tuple[Instruction, bool]], findings: FindingCollector
) -> None:
    computation = start.computation
    if computation is not None and computation.is_sugared and start.is_root:
        return  # a pasted op line
    own = [done for done, is_shared in dones if not is_shared]
    if dones and (len(own) < 2 or all(done.operands[:1] == (start,) for done in own)):
        return  # of several that take the start itself has been told
    how = "nothing completes it" if not dones else f"{len(own)} instructions complete it"
    findings.at(
        start, "V401", f"async-start needs one async-done, but {how}",
        related=[("completed here", done) for done in own],
    )  # fmt: skip


def _is_wrapped(instruction: Instruction, survey: Survey) -> bool:
    """A send or recv that an async-start wraps has its done outside."""
    computation = instruction.computation
    return (
        instruction.opcode in ("send", "recv")
        and instruction.is_root
        and computation is not None
        and any(caller.opcode == "async-start" for caller in survey.calls.get(computation, ()))
    )


def _check_operand(done: Instruction, findings: FindingCollector) -> None:
    allowed = STARTS[done.opcode]
    operand = done.operands[0] if done.operands else None
    if operand is None or operand.opcode in allowed or _is_open(operand):
        return
    findings.at(
        done, "V402", f"{done.opcode} completes {allowed[0]}, but its operand {operand.name} is {operand.opcode}", 0,
        related=[("the operand", operand)],
    )  # fmt: skip


def _is_open(operand: Instruction) -> bool:
    """The made-up parameter of a pasted op line: what began the operation is not there to be judged."""
    computation = operand.computation
    return operand.opcode == "parameter" and computation is not None and computation.is_sugared


def _check_users(start: Instruction, users: list[Instruction], findings: FindingCollector) -> None:
    computation = start.computation
    if computation is not None and computation.is_sugared and start.is_root:
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
                user, "V403", f"{start.name} is a started {start.opcode}, which only {' or '.join(allowed)} may use",
                user.operands.index(start), related=[("started here", start)],
            )  # fmt: skip
    if len(finishing) != 1:
        how = "nothing completes it" if not finishing else f"{len(finishing)} instructions complete it"
        findings.at(
            start, "V401", f"{start.opcode} needs one {allowed[-1] if len(allowed) == 1 else allowed[0]}, but {how}",
            related=[("completed here", user) for user in finishing],
        )  # fmt: skip


def _check_thread(start: Instruction, survey: Survey, findings: FindingCollector) -> None:
    """`CheckAsyncOpComputationThreadName`; XLA's reader gives a computation the thread of what starts it."""
    stated = start.attributes.get("async_execution_thread", "main")
    for body in start.called_computations:
        threads = {
            caller.attributes.get("async_execution_thread", "main")
            for caller in survey.calls.get(body, ())
            if caller.opcode == "async-start"
        }
        if len(threads) > 1 and stated != body.execution_thread:
            where = "async_execution_thread" if "async_execution_thread" in start.attributes else "calls"
            findings.at(
                start,
                "V405",
                f"it runs on thread {stated}, but {body.name} on {body.execution_thread}",
                where,
            )


def _check_bound(later: Instruction, findings: FindingCollector) -> None:
    """Checks that bound operands and results are the wrapped computation's, and that all are bound in the end.

    As `CheckAsyncOpComputationShapes`, `CheckAsyncDoneOperands`.
    """
    operand = later.operands[0] if later.operands else None
    body = later.async_wrapped_computation
    if operand is None or body is None or not len(body) or operand.shape is None or later.shape is None:
        return
    takes = [parameter.shape for parameter in body.parameters]
    result = body.root.shape
    if later.opcode == "async-update":
        parts = later.shape.tuple_shapes
        taken = parts[0].tuple_shapes if parts else ()
        known = [shape for shape in takes if shape is not None]
        if len(known) != len(takes) or result is None or len(parts) < 2:
            return
        if not is_bound(parts[0], Shape.tuple(tuple(known))) or len(taken) > len(takes):
            findings.at(
                later, "V101", f"{body.name} takes different operands from those bound: {shown(parts[0])}"
            )
        elif not is_bound(parts[1], result):
            findings.at(later, "V101", f"{body.name} returns {shown(result)}, not {shown(parts[1])}")
        return
    bound = operand.shape.tuple_shapes[:1]
    if bound and len(bound[0].tuple_shapes) != len(takes):
        findings.at(later, "V402", f"{len(bound[0].tuple_shapes)} of {len(takes)} operands were passed", 0)
    elif result is not None and not compatible(result, later.shape):
        findings.at(later, "V101", f"{body.name} returns {shown(result)}, not {shown(later.shape)}")


# ---- channels


def check_channels(survey: Survey, findings: FindingCollector) -> None:
    """Checks that both halves of a transfer agree, and host transfers on one channel too (`VerifyChannels`)."""
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
                    "channel_id", "host transfers on one channel must be identical", [("the other one", first)],
                )  # fmt: skip


def _check_halves(done: Instruction, findings: FindingCollector) -> None:
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
