"""The loops of a module, as `hlotext show` shows them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.origins import SourceLocation, SourceLocations
from hlotext.analysis.sizes import Total, total_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction


@attrs.frozen
class Loop:
    """A while loop, as plain values."""

    name: str
    computation: str
    """Its computation."""
    body: str
    trip_count: int | None
    """None if unknown."""
    runs: int | None
    """Total execution count of the body, outer loops included."""
    body_instructions: int
    state: Total
    """The arrays that go round."""
    inside: str | None
    """The while around it."""
    place: SourceLocation | None
    op_name: str


@attrs.frozen
class While:
    """Properties of a while loop that its own instruction shows."""

    name: str
    home: Computation
    place: int
    """Its number there."""
    body: Computation
    state: Total
    source: SourceLocation | None
    op_name: str


def while_loop(
    origins: SourceLocations, home: Computation, place: int, instruction: Instruction
) -> While | None:
    """Returns the properties of a while, or None if it has no body."""
    body, metadata = instruction.attributes.get("body"), instruction.metadata
    if body is None:
        return None
    op_name = metadata.op_name if metadata is not None else ""
    state, source = total_of(instruction.shape), origins.place(instruction)
    return While(instruction.name, home, place, body, state, source, op_name)


def loop(graph: CallGraph, sizes: Mapping[Computation, int], one: While) -> Loop:
    """Converts a while loop to plain values. `sizes` are the numbers of instructions by computation."""
    around = graph.loop_call(one.home)
    return Loop(
        one.name,
        one.home.name,
        one.body.name,
        graph.trips[one.home, one.place],
        graph.runs.get(one.body, 0),
        sizes[one.body],
        one.state,
        around.name if around is not None else None,
        one.source,
        one.op_name,
    )
