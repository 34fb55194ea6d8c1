"""The loops of a module."""

from __future__ import annotations

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.origins import Origins, Place
from hlotext.analysis.sizes import Total, total_of


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


def loops(graph: CallGraph, origins: Origins) -> tuple[Loop, ...]:
    """Every while, in the order of the text."""
    found = []
    for instruction, trip in graph.trips.items():
        body = instruction.attributes.get("body")
        computation = instruction.computation
        if body is None or computation is None:
            continue
        around = graph.loop_around(computation)
        found.append(
            Loop(
                instruction.name,
                computation.name,
                body.name,
                trip,
                graph.runs.get(body, 0),
                len(body),
                total_of(instruction.shape),
                around.name if around is not None else None,
                origins.place(instruction),
                instruction.metadata.op_name if instruction.metadata is not None else "",
            )
        )
    return tuple(found)
