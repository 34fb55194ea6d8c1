"""Collectives by the operations that implement them (fusions, starts, dones), each as a short text for a page."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hlotext.analysis import byte_text, call_graph
from hlotext.analysis.census import census
from hlotext.analysis.communication import KINDS, chain_of, started_collectives
from hlotext.cost import CollectiveTraffic, Traffic
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

_STARTS, _GOES_ON, _ENDS = "starts", "continues", "waits for"


@attrs.frozen
class Carried:
    """A collective that an operation implements, starts, continues or waits for."""

    flow: CollectiveTraffic
    role: str = ""
    """`starts`, `continues` or `waits for`; empty for an operation that implements all of it."""
    more: int = 0
    """Number of further collectives in the operation."""

    @property
    def kind(self) -> str:
        """Kind of the collective: `all-gather`."""
        return self.flow.communication.kind

    @property
    def bytes(self) -> str:
        """Bytes that each device sends per execution, as text; empty if unknown."""
        return "" if self.flow.sent is None else byte_text(self.flow.sent)

    @property
    def sized(self) -> str:
        """Kind and bytes: `all-gather of 384 KiB`."""
        return f"{self.kind} of {self.bytes}" if self.bytes else self.kind

    @property
    def short(self) -> str:
        """Kind, bytes and mesh axes: `all-gather of 384 KiB along data`."""
        return f"{self.sized} {self.along}{self._others}"

    @property
    def along(self) -> str:
        """Mesh axes, as `along data`, or else the link."""
        return f"along {self.flow.row}" if self.flow.axes else self.flow.row

    @property
    def text(self) -> str:
        """A sentence with the operation's role and the bytes that each device sends."""
        one = self.flow.communication
        role = f"{self.role} " if self.role else ""
        by = f" of {(one.fusion or one.start).name}" if self.role in (_GOES_ON, _ENDS) else ""
        size = f"{self.bytes} sent by each device" if self.bytes else "of unknown size"
        runs = self.flow.runs
        times = f", {runs:,} times in a run" if runs is not None and runs > 1 else ""
        return f"{role}{self.kind}{by} {self.along}, {size}{times}{self._others}"

    @property
    def _others(self) -> str:
        return f", and {self.more:,} more" if self.more else ""


def carried(module: Module, found: Traffic) -> Mapping[Instruction, Carried]:
    """Returns the collective that each operation takes part in; the largest one if there are several."""
    result: dict[Instruction, Carried] = {}
    chains: dict[tuple[str, str], CollectiveTraffic] = {}
    for flow in found.flows:  # the most bytes first
        one = flow.communication
        chain = chain_of(one.instruction)
        if chain is not None:
            chains.setdefault(chain, flow)
        parts = one.start.async_chain or one.instruction.async_chain
        result.setdefault(one.start, Carried(flow, _STARTS if parts else ""))
        for later in parts[1:]:
            result.setdefault(later, Carried(flow, _ENDS if ROLES[later.opcode] == "done" else _GOES_ON))
        if one.fusion is not None:
            known = result.get(one.fusion)
            result[one.fusion] = (
                Carried(flow, _STARTS if chain is not None else "")
                if known is None
                else attrs.evolve(known, more=known.more + 1)
            )
    if chains:
        _add_fusions(module, chains, result)
    return result


def _add_fusions(
    module: Module,
    chains: Mapping[tuple[str, str], CollectiveTraffic],
    result: dict[Instruction, Carried],
) -> None:
    """Adds fusions that continue or finish a collective started in another; the TPU compiler repeats it in each."""
    graph = call_graph(module)
    by_opcode, started = census(module).by_opcode, started_collectives(module)
    for opcode in by_opcode.keys() & KINDS:
        for one in by_opcode[opcode]:
            flow = chains.get(chain) if (chain := chain_of(one)) is not None else None
            caller = graph.caller(one.computation) if flow is not None and one not in started else None
            if flow is None or caller is None:
                continue
            result.setdefault(caller, Carried(flow, _ENDS if _is_last(one) else _GOES_ON))
            result.setdefault(one, result[caller])


def _is_last(part: Instruction) -> bool:
    """True if this part of a chain is what its fusion waits for, by the call that says so."""
    home = part.computation
    return home is not None and any(
        one.opcode == "custom-call" and one.attributes.get("custom_call_target") == "AsyncCollectiveDone"
        for one in home
    )
