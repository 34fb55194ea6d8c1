"""Where instructions come from in the Python program."""

from __future__ import annotations

import itertools

import attrs

from hlotext.analysis.communication import chain_of, largest_operand, results_of_chains
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.frames import StackFrame

_MOST_STEPS = 32
"""Operands between a combined collective and what computes its largest part."""
_MOST_NEIGHBOURS = 64
"""Maximum number of instructions inspected around one without a source location."""

_MOST_AT_ONCE = 256
"""The same limit for thousands of users or operands, and for a body."""

_MOST_CALLS = 16
"""Maximum number of calls followed upwards."""


@attrs.frozen
class SourceLocation:
    """A line of the source program, from the innermost stack frame of an instruction."""

    file: str
    line: int
    function: str
    """Name of the function; empty if unknown."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" {self.function}" if self.function else "")


@attrs.frozen
class CalledLine:
    """A line of the source program, and the line of the caller of its function."""

    line: SourceLocation
    caller: SourceLocation | None
    """None if the text has no frame around it."""

    def __str__(self) -> str:
        own = f"{self.line.file}:{self.line.line}"
        return own if self.caller is None else f"{own} from {self.caller.file}:{self.caller.line}"


@attrs.define
class SourceLocations:
    """Resolves the source locations of instructions; each stack frame is resolved once."""

    _places: dict[int, SourceLocation | None] = attrs.field(factory=dict)
    _called: dict[int, CalledLine | None] = attrs.field(factory=dict)

    def called(self, instruction: Instruction) -> CalledLine | None:
        """Returns the locations of the innermost frame and of its caller, or None if the instruction has no frame.

        The location of the caller is None if unknown.
        """
        own = self.place(instruction)
        if own is None or instruction.metadata is None or not (number := instruction.metadata.stack_frame_id):
            return None if own is None else CalledLine(own, None)
        if number not in self._called:
            outer = instruction.frames[1:2]
            caller = SourceLocation(outer[0].file, outer[0].line, outer[0].function) if outer else None
            self._called[number] = CalledLine(own, caller)
        return self._called[number]

    def place(self, instruction: Instruction) -> SourceLocation | None:
        """Returns the location of the innermost frame, or None if the instruction has no frame."""
        metadata = instruction._attributes.get("metadata")
        if metadata is None:
            return None
        number = metadata.stack_frame_id
        if not number:
            return (
                SourceLocation(metadata.source_file, metadata.source_line, "")
                if metadata.source_file
                else None
            )
        if number not in self._places:
            frame = instruction.innermost_frame
            self._places[number] = SourceLocation(frame.file, frame.line, frame.function) if frame else None
        return self._places[number]


def responsible_frame(instruction: Instruction) -> StackFrame | None:
    """Returns the innermost Python frame responsible for an instruction, or None if unknown."""
    cause, _ = _cause(instruction)
    return cause.innermost_frame if cause is not None else None


def responsible_frames(instruction: Instruction) -> tuple[StackFrame, ...]:
    """Returns the Python frames responsible for an instruction, innermost first; empty if unknown.

    A combined collective has the frames of the producer of its largest operand. Any other instruction has the first found
    of its own frames, those of the computation that it wraps, of the nearest producer along its first operands, of the
    nearest user, and of the enclosing call; for a contraction the nearest user comes before the producers, which are
    other lines.
    """
    cause, _ = _cause(instruction)
    return cause.frames if cause is not None else ()


def is_neighbors(instruction: Instruction) -> bool:
    """Returns True if the responsible frame of a contraction is that of a neighboring instruction, so it is only near
    its own.
    """
    return _cause(instruction)[1]


def _cause(instruction: Instruction) -> tuple[Instruction | None, bool]:
    """The instruction whose frames are those that another is there for; whether a contraction only has a neighbor's."""
    if found := collective_cause(instruction):
        return found, False
    computes = instruction.opcode in traits.CONTRACTIONS
    steps = ("user_view", "operands") if computes else ("operands", "user_view")
    for _ in range(_MOST_CALLS):
        if found := _inside(instruction):
            return found, False
        if found := _around(instruction, steps):
            return found, computes
        home = instruction.computation
        caller = next(iter(home.callers), None) if home is not None else None
        if caller is None:
            break
        instruction = caller
    return None, False


def collective_cause(instruction: Instruction) -> Instruction | None:
    """Returns the instruction whose frames explain a collective better than its own, or None if its own do.

    A collective without frames that the TPU compiler split over fusions is explained by the user of its result. A
    combined collective has the metadata of its first operand, but is explained by the largest. Returns None for other
    instructions.
    """
    own = instruction.innermost_frame
    if own is None and (found := _behind_chain(instruction)):
        return found
    largest = largest_operand(instruction)
    if largest is None:
        return None
    # What the program asks for, such as `psum`, has its own line, which is not that of what computes its first part.
    if own is not None:
        first = _before(instruction.operands[0])
        frame = first.innermost_frame if first is not None else None
        if frame is None or (frame.file, frame.line, frame.function) != (own.file, own.line, own.function):
            return None
    return _before(largest)


def _before(instruction: Instruction) -> Instruction | None:
    """The nearest instruction with frames along first operands, from this one on."""
    for _ in range(_MOST_STEPS):
        if found := _inside(instruction):
            return found
        if not instruction.operands:
            break
        instruction = instruction.operands[0]
    return None


def _behind_chain(instruction: Instruction) -> Instruction | None:
    """The user of a collective that the TPU compiler spread over fusions: around the collective is what it overlaps with."""
    chain, home = chain_of(instruction), instruction.computation
    module = home.module if home is not None else None
    result = results_of_chains(module).get(chain) if chain is not None and module is not None else None
    users = result.user_view if result is not None else ()
    return next((found for user in users if (found := _inside(user))), None)


def _inside(instruction: Instruction) -> Instruction | None:
    """The instruction itself, or that of the body that it runs which has frames, the root first."""
    if instruction.innermost_frame is not None:
        return instruction
    if instruction.opcode not in ("fusion", "async-start"):
        return None
    for callee in instruction.called_computations:
        for inner in itertools.islice(reversed(callee.instructions), _MOST_AT_ONCE):
            if inner.innermost_frame is not None:
                return inner
    return None


def _around(instruction: Instruction, steps: tuple[str, ...]) -> Instruction | None:
    """The nearest instruction with frames along the values, in the order of these directions."""
    for step in steps:
        seen, level = {instruction}, [instruction]
        while level and len(seen) <= _MOST_NEIGHBOURS:
            near = itertools.chain.from_iterable(getattr(node, step) for node in level)
            nearest = dict.fromkeys(itertools.islice(near, _MOST_AT_ONCE))
            level = [other for other in nearest if other not in seen]
            seen.update(level)
            for other in level:
                if found := _inside(other):
                    return found
    return None
