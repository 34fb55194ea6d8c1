"""Everything about one instruction or one computation."""

from __future__ import annotations

import json
from collections import Counter

import attrs

from hlotext.analysis.array_origins import ArrayOrigin, array_origin
from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.mosaic import kernels
from hlotext.analysis.origins import responsible_frame
from hlotext.analysis.sizes import Total, total_of
from hlotext.analysis.summary.arrays import opcode_label
from hlotext.analysis.trip_count import trip_count
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.raw import Form
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.frames import StackFrame
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.raw_value import value_text
from hlotext.syntax.printing.xla_styles import TextPrinter

_SHORT = PrintOptions(print_metadata=False, print_backend_config=False, print_original_value=False)


@attrs.frozen
class Position:
    """Position in the source text. Lines and columns start at 1."""

    line: int
    column: int


@attrs.frozen
class Neighbour:
    """An operand, user, parameter or caller, in short form."""

    name: str
    opcode: str
    shape: str | None
    allocated_bytes: int | None
    """Of all its arrays; None if the shape is not known."""
    computation: str
    """Its computation."""
    positions: tuple[int, ...] = ()
    """For a user, which of its operands the instruction is, counted from 0."""
    origin: str = ""
    """For an operand or parameter, the argument or instruction that its array comes from (`analysis.array_origin`), with the
    argument's name in the program; empty if that is the array's own instruction.
    """


@attrs.frozen
class Callee:
    """A computation that an instruction calls."""

    attribute: str
    name: str
    instructions: int
    root: str
    """Opcode of its root."""


@attrs.frozen
class InstructionDetails:
    """All details of an instruction, as plain values."""

    kind: str
    """`instruction`."""
    name: str
    opcode: str
    shape: str | None
    size: Total
    computation: str
    computation_use: str
    is_root: bool
    runs: int | None
    """Execution count of its computation in one run of the module; None if it depends on values."""
    trip_count: int | None
    """Of a loop; None for other instructions, and if it depends on values."""
    position: Position | None
    """None for what the text implies without writing it."""
    text: str
    operands: tuple[Neighbour, ...]
    users: tuple[Neighbour, ...]
    attributes: dict[str, str]
    called_computations: tuple[Callee, ...]
    control_predecessors: tuple[str, ...]
    control_successors: tuple[str, ...]
    async_chain: tuple[Neighbour, ...]
    """Start, updates and done of an asynchronous operation, in order; empty for what is not asynchronous."""
    async_wrapped: str | None
    """Operation inside an asynchronous wrapper, as text."""
    frames: tuple[StackFrame, ...]
    """Innermost first."""
    inferred_frame: StackFrame | None
    """Of what a compiler inserted without frames, the innermost one of what it is there for, along the values."""
    bodies: tuple[str, ...]
    """Text of the computations that are applied or fused, without metadata and backend configs."""
    kernel: str | None
    """MLIR of a Mosaic kernel; None for other calls, or if it cannot be read."""
    kernel_error: str | None
    """The reason why the body of a kernel cannot be read."""


@attrs.frozen
class ComputationDetails:
    """All details of a computation, as plain values."""

    kind: str
    """`computation`."""
    name: str
    use: str
    execution_thread: str
    runs: int | None
    position: Position | None
    instructions: int
    opcodes: dict[str, int]
    parameters: tuple[Neighbour, ...]
    root: Neighbour
    callers: tuple[Neighbour, ...]
    text: str
    """Without metadata and backend configs."""


def neighbour(
    instruction: Instruction, positions: tuple[int, ...] = (), origin: ArrayOrigin | None = None
) -> Neighbour:
    """Returns the short form of an instruction."""
    text = str(origin) if origin is not None else ""
    shape, home = instruction.shape, instruction.computation
    return Neighbour(
        _written_name(instruction),
        opcode_label(instruction),
        str(shape) if shape is not None else None,
        total_of(shape).allocated_bytes if shape is not None else None,
        home.name if home is not None else "",
        positions,
        text if text != instruction.name else "",
    )


def _handed(instruction: Instruction) -> Neighbour:
    """An operand or parameter, with where its array comes from."""
    is_array = instruction.shape is not None and instruction.shape.is_array
    return neighbour(instruction, origin=array_origin(instruction) if is_array else None)


def _written_name(instruction: Instruction) -> str:
    """The name in the text: an element of a tuple that is written behind its name has none of its own."""
    name = ""
    while instruction.form is Form.COMPACT and instruction.operands:
        name = f"#{instruction.attributes.get('index')}{name}"
        instruction = instruction.operands[0]
    return instruction.name + name


def instruction_details(graph: CallGraph, instruction: Instruction) -> InstructionDetails:
    """Collects the details of an instruction."""
    home, shape, span = instruction.computation, instruction.shape, instruction.span
    assert home is not None  # it was found in a module
    wrapped = instruction.async_wrapped_instruction
    kernel = kernels((instruction,)).get(instruction)
    return InstructionDetails(
        kind="instruction",
        name=instruction.name,
        opcode=instruction.opcode,
        shape=str(shape) if shape is not None else None,
        size=total_of(shape),
        computation=home.name,
        computation_use=graph.use(home),
        is_root=instruction.is_root,
        runs=graph.runs.get(home, 0),
        trip_count=trip_count(instruction) if instruction.opcode == "while" else None,
        position=Position(span.line, span.column) if span is not None else None,
        text=str(instruction),
        operands=tuple(map(_handed, instruction.operands)),
        users=tuple(_user(instruction, user) for user in instruction.users),
        attributes=attribute_texts(instruction),
        called_computations=tuple(
            Callee(attribute, callee.name, len(callee), opcode_label(callee.root) if len(callee) else "")
            for attribute, callee in instruction.callees()
        ),
        control_predecessors=tuple(
            other.name for other in instruction.attributes.get("control-predecessors", ())
        ),
        control_successors=tuple(other.name for other in instruction.control_successors),
        async_chain=tuple(neighbour(part) for part in instruction.async_chain),
        async_wrapped=str(wrapped) if wrapped is not None else None,
        frames=instruction.frames,
        inferred_frame=None
        if instruction.frames or instruction.opcode == "parameter"
        else responsible_frame(instruction),
        bodies=tuple(
            short_text(callee)
            for callee in dict.fromkeys(instruction.called_computations)
            if graph.use(callee) in ("fusion body", "applied")
        ),
        kernel=kernel.text or None if kernel is not None else None,
        kernel_error=kernel.error or None if kernel is not None else None,
    )


def _user(instruction: Instruction, user: Instruction) -> Neighbour:
    return neighbour(user, tuple(i for i, operand in enumerate(user.operands) if operand is instruction))


def computation_details(graph: CallGraph, computation: Computation) -> ComputationDetails:
    """Collects the details of a computation."""
    module, opcodes = graph.module, Counter(map(opcode_label, computation))
    position = None
    if module.source is not None and computation._start >= 0:
        position = Position(*module.source.position(computation._start))
    callers = dict.fromkeys(edge.caller for edge in graph.callers.get(computation, ()))
    return ComputationDetails(
        kind="computation",
        name=computation.name,
        use=graph.use(computation),
        execution_thread=computation.execution_thread,
        runs=graph.runs.get(computation, 0),
        position=position,
        instructions=len(computation),
        opcodes=dict(opcodes.most_common()),
        parameters=tuple(map(_handed, computation.parameters)),
        root=neighbour(computation.root),
        callers=tuple(map(neighbour, callers)),
        text=short_text(computation),
    )


def short_text(computation: Computation) -> str:
    """Returns the text of a computation as XLA prints it, without metadata and backend configs."""
    return TextPrinter(_SHORT).computation(computation, is_entry=computation.is_entry)


def attribute_texts(instruction: Instruction) -> dict[str, str]:
    """Returns the text of every attribute by name, and of every key of a backend config that is a JSON object."""
    texts: dict[str, str] = {}
    for name, value in instruction.attributes.items():
        entries = _entries(value) if isinstance(value, BackendConfig) else None
        if entries:
            texts.update((f"{name}.{key}", json.dumps(entry)) for key, entry in entries.items())
        else:
            texts[name] = attribute_text(value, name)
    return texts


def _entries(config: BackendConfig) -> dict[str, object] | None:
    try:
        value = config.json()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def attribute_text(value: object, name: str) -> str:
    """Returns XLA's text of an attribute value, with names of computations and instructions preceded by `%`."""
    if isinstance(value, Computation | Instruction):
        return f"%{value.name}"
    if isinstance(value, tuple) and value and isinstance(value[0], Computation | Instruction):
        return f"{{{', '.join(f'%{entry.name}' for entry in value)}}}"
    return value_text(value, name)
