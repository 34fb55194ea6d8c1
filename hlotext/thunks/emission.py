"""Emission: walks the scheduled computations of a module as XLA's thunk emitters do, without recursion.

What is specific to a platform is a table of rules (`gpu`, `cpu`): opcode or custom-call target -> what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from hlotext.ir.values.age import XlaAge
from hlotext.thunks.thunk import Thunk, ThunkError, ThunkNote

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.thunks.buffers import ThunkBuffers

MAX_THUNKS = 1_000_000
"""Maximum number of thunks of one executable: each call is emitted separately, so a chain of calls could explode."""

Steps: TypeAlias = Generator["Computation", list[Thunk], list[Thunk]]
Emit: TypeAlias = Callable[["Emitter", "Instruction"], Steps | list[Thunk]]
"""Emits an instruction: returns its thunks, or yields each nested computation and is sent its thunks."""


@attrs.frozen(kw_only=True)
class EmissionRule:
    """A row of a platform's table: which thunks are emitted for an instruction."""

    thunks: str
    """In words, for the documentation and `hlotext thunks --rules`."""
    emit: Emit = attrs.field(repr=False)
    source: str
    """The function of XLA that does this."""
    is_seen: bool = True
    """False where the rule is from XLA's source alone and was not seen in a dump."""


@attrs.define(eq=False, kw_only=True)
class Emitter:
    """State of one thunk emission."""

    module: Module
    options: Any
    buffers: ThunkBuffers
    rule_of: Callable[[Instruction], EmissionRule | None]
    counts: bool
    """True if thunks have numbers (GPU)."""
    age: XlaAge = attrs.field(factory=XlaAge)
    """The age of XLA whose rules hold."""
    notes: list[ThunkNote] = attrs.field(factory=list)
    asynchronous: dict[Instruction, Thunk | None] = attrs.field(factory=dict)
    """The start thunk of an asynchronous instruction; None if it is synchronous and its done does nothing."""
    made: int = 0

    def thunk(self, kind: str, instruction: Instruction, **more: Any) -> Thunk:
        """Creates a thunk for an instruction, with the next number. Raises ThunkError if there are too many."""
        self.made += 1
        if self.made > MAX_THUNKS:
            raise ThunkError(f"more than {MAX_THUNKS:,} thunks: calls in this module multiply their contents")
        more.setdefault("name", instruction.name)
        return Thunk(kind=kind, number=self.made if self.counts else None, instruction=instruction, **more)

    def number(self) -> int | None:
        """Reserves the next number for a thunk that is created after the thunks nested in it. None on platforms without
        numbers.
        """
        self.made += 1
        return self.made if self.counts else None

    def note(self, instruction: Instruction, message: str) -> None:
        """Adds a note about something unknown."""
        self.notes.append(ThunkNote(message=message, instruction=instruction))

    def emit(self, entry: Computation) -> list[Thunk]:
        """Returns the thunks of a computation and of all computations that it calls."""
        done: list[Thunk] = []
        stack = [self._computation(entry)]
        entered = [entry]
        sent: list[Thunk] | None = None
        while stack:
            try:
                wanted = stack[-1].send(sent) if sent is not None else next(stack[-1])
            except StopIteration as finished:
                stack.pop()
                entered.pop()
                done = sent = finished.value
                continue
            if wanted in entered[-1:] or (len(entered) > _RECURSION_CHECK and wanted in entered):
                raise ThunkError(f"computation {wanted.name} calls itself")
            stack.append(self._computation(wanted))
            entered.append(wanted)
            sent = None
        return done

    def _computation(self, computation: Computation) -> Steps:
        thunks: list[Thunk] = []
        for instruction in computation.instructions:
            rule = self.rule_of(instruction)
            if rule is None:
                self.note(
                    instruction,
                    f"{instruction.opcode} left out: its thunk is unknown",
                )
                continue
            found = rule.emit(self, instruction)
            if isinstance(found, list):
                thunks.extend(found)
                continue
            sent: list[Thunk] | None = None
            while True:
                try:
                    wanted = found.send(sent) if sent is not None else next(found)
                except StopIteration as finished:
                    thunks.extend(finished.value)
                    break
                sent = yield wanted
        return thunks


_RECURSION_CHECK = 1_000
"""Depth from which on a computation is looked for among those being emitted: honest modules never come there."""


def config(instruction: Instruction) -> dict[str, Any]:
    """Returns the backend_config as a dict; empty if there is none, or if it is not a JSON object."""
    text = instruction.backend_config
    if text is None:
        return {}
    try:
        found = text.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def part(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns a nested message of a backend_config; empty if it is absent or not an object."""
    inner = found.get(name)
    return inner if isinstance(inner, dict) else {}


def condition_and_body(loop: Instruction) -> tuple[Computation, Computation]:
    """Returns condition and body of a while loop. Raises ThunkError if one is missing, which protos allow."""
    try:
        return loop.attributes["condition"], loop.attributes["body"]
    except KeyError:
        raise ThunkError(f"{loop.name} lacks its condition or its body") from None


def loop_facts(loop: Instruction) -> dict[str, Any]:
    """Returns `trip_count` of a while loop if its backend_config has a known trip count; else empty."""
    trips = str(part(config(loop), "known_trip_count").get("n", ""))
    return {"trip_count": int(trips)} if trips.isdecimal() and len(trips) < 20 else {}


def nothing(emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    """Emits no thunk: buffer assignment suffices for the instruction."""
    return []


def branches(found: Sequence[list[Thunk]]) -> tuple[tuple[str, tuple[Thunk, ...]], ...]:
    """Labels the thunks of a conditional's branches in the order of HLO; `branch_0` of a boolean one is the true
    computation.
    """
    return tuple((f"branch_{number}", tuple(thunks)) for number, thunks in enumerate(found))
