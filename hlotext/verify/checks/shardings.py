"""Shardings: the structure of the shape, tiles for each dimension, devices and axes that exist."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.sharding import Sharding, TupleSharding
from hlotext.layout.errors import shorten
from hlotext.verify.findings import FindingCollector
from hlotext.verify.survey import Survey


def check_consistency(survey: Survey, findings: FindingCollector) -> None:
    """Checks that the shardings of loops and branches agree with those of their bodies (`VerifyConsistentSharding`).

    A loop must agree with its body's parameter and root and its condition's parameter; a conditional with the roots of
    its branches. Instructions without a sharding agree with all.
    """
    for caller in survey.callers:
        if caller.opcode == "while":
            bodies = [
                computation for name, computation in caller.callees() if name == "body" and len(computation)
            ]
            nodes = [caller, *(body.root for body in bodies)]
            nodes += [p for computation in caller.called_computations for p in computation.parameters[:1]]
        elif caller.opcode == "conditional":
            nodes = [caller, *(branch.root for branch in caller.called_computations if len(branch))]
        else:
            continue
        sharded = [node for node in nodes if node.sharding is not None]
        for node in sharded[1:]:
            if _plain(node) != _plain(sharded[0]):
                findings.at(
                    node, "V513",
                    f"the sharding is {shorten(str(node.sharding))}, "
                    f"but that of {sharded[0].name} is {shorten(str(sharded[0].sharding))}",
                    "sharding", f"the {caller.opcode} {caller.name} cannot change it",
                    [("the other one", sharded[0]), ("the caller", caller)],
                )  # fmt: skip


def _plain(instruction: Instruction) -> Sharding | None:
    """The sharding as XLA compares it: one for a tuple is spread over its leaves."""
    sharding, shape = instruction.sharding, instruction.shape
    if sharding is None:
        return None
    plain = sharding.canonical().without_metadata()
    if shape is not None and shape.is_tuple and not plain.is_tuple:
        plain = TupleSharding((plain,) * sum(1 for _ in shape.leaves()))
    return plain
