"""The tables of all platforms as rows, for the command line and the documentation."""

from __future__ import annotations

import attrs

from hlotext.thunks import cpu, gpu, gpu_fusions


@attrs.frozen
class ThunkRule:
    """A row of the table of rules: which thunks are emitted for an instruction."""

    platform: str
    instruction: str
    """The opcode, or what a custom call or fusion is like."""
    thunks: str
    source: str
    """The function of XLA that says so."""
    is_seen: bool
    """False where that is XLA's source alone: no dump has shown it."""


def describe() -> list[ThunkRule]:
    """Returns all rules, those of GPUs first."""
    rows = []
    for platform, by_opcode, by_target, other in (
        ("gpu", gpu.RULES, gpu.TARGETS, gpu.OTHER_TARGET),
        ("cpu", cpu.RULES, cpu.TARGETS, cpu.OTHER_TARGET),
    ):
        for opcode, rule in by_opcode.items():
            if platform == "gpu" and opcode == "fusion":
                rows += [
                    ThunkRule("gpu", what, becomes, source, True)
                    for what, becomes, source in gpu_fusions.describe()
                ]
                continue
            rows.append(ThunkRule(platform, opcode, rule.thunks, rule.source, rule.is_seen))
        for target, rule in by_target.items():
            rows.append(ThunkRule(platform, f"custom-call {target}", rule.thunks, rule.source, rule.is_seen))
        rows.append(ThunkRule(platform, "any other custom-call", other.thunks, other.source, other.is_seen))
    rows.append(
        ThunkRule(
            "cpu", "every elementwise or data-moving opcode", "kernel", "EmitElementalKernelThunk", True
        )
    )
    return rows
