"""The loops of a module, as `hlotext show` shows them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.origins import Origins, Place
from hlotext.analysis.sizes import Total, total_of
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction


@attrs.frozen
class Loop:
    """One while."""

    name: str
    computation: str
    """Where it stands."""
    body: str
    trip_count: int | None
    """None where the text does not tell."""
    runs: int | None
    """How often the body runs in all, outer loops included."""
    body_instructions: int
    state: Total
    """The arrays that go round."""
    inside: str | None
    """The while around it."""
    place: Place | None
    op_name: str


def loop(
    graph: CallGraph,
    origins: Origins,
    sizes: Mapping[Computation, int],
    instruction: Instruction,
    place: int,
) -> Loop | None:
    """A while, the so manieth instruction of its computation; None for one without a body.

    `sizes` are the numbers of instructions of computations as far as they are known.
    """
    body, home, metadata = instruction.attributes.get("body"), instruction.computation, instruction.metadata
    if body is None or home is None:
        return None
    around = graph.loop_call(home)
    return Loop(
        instruction.name,
        home.name,
        body.name,
        graph.trips[home, place],
        graph.runs.get(body, 0),
        sizes[body] if body in sizes else len(body),
        total_of(instruction.shape),
        around.name if around is not None else None,
        origins.place(instruction),
        metadata.op_name if metadata is not None else "",
    )
