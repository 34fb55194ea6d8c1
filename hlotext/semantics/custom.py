"""Calls whose meaning XLA knows: composites, random seeds, and values that live in buffers of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.aliasing import OutputToOperandAliasing, ShapeIndex
from hlotext.ir.values.shape import Shape, holds_buffer
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.layout.errors import shorten
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.infer.shapes import compatible
from hlotext.semantics.problems import Problem

PIN, UNPIN, CREATE_BUFFER = "Pin", "Unpin", "CreateBuffer"


def check_composite(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks the frontend attributes of a composite call (`ShapeVerifier::HandleCall`)."""
    if not instruction.attributes.get("is_composite"):
        return
    given = instruction.frontend_attributes
    if not given.get("composite.name"):
        yield Problem("V113", "composite.name is missing or empty", "frontend_attributes")
    if given.get("composite.attributes") == "":
        yield Problem("V113", "composite.attributes is empty", "frontend_attributes", "{} is none")
    version = given.get("composite.version", "0").strip()
    if not (version.removeprefix("+").isdecimal() and version.isascii()):
        yield Problem("V113", f"composite.version is {version!r}, not an integer", "frontend_attributes")


def check_known(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks the custom calls that XLA itself defines (`HandleCustomCall`, `VerifyPin`, `VerifyUnpin`,
    `VerifyCreateBuffer`).
    """
    target, shape = instruction.attributes.get("custom_call_target"), instruction.shape
    operands = [operand.shape for operand in instruction.operands]
    if shape is None or any(operand is None for operand in operands):
        return
    known = _SIGNATURES.get(str(target))
    if known is None or known[0]([s for s in operands if s is not None], shape):
        return
    signature = shorten(f"({', '.join(map(str, operands))}) -> {shape}")
    yield Problem("V114", f"{target} {known[1]}, so {signature} is invalid")


def _is_seed(operands: list[Shape], shape: Shape) -> bool:
    return not operands and shape.element_type is ELEMENT_TYPES["u64"] and not shape.rank


def _is_pin(operands: list[Shape], shape: Shape) -> bool:
    return (
        len(operands) == 1
        and operands[0].is_array
        and shape.is_buffer
        and compatible(operands[0], shape.tuple_shapes[0])
    )


def _is_unpin(operands: list[Shape], shape: Shape) -> bool:
    return len(operands) == 1 and _is_pin([shape], operands[0])


def _creates(operands: list[Shape], shape: Shape) -> bool:
    return not operands and shape.is_buffer


_SIGNATURES = {
    "GetRngSeed": (_is_seed, "takes no operands and returns u64[]"),
    PIN: (_is_pin, "puts an array into a buffer of its shape"),
    UNPIN: (_is_unpin, "takes the array out of a buffer"),
    CREATE_BUFFER: (_creates, "takes no operands and returns a buffer"),
}
"""The signatures by target, and what each does in words."""


_WITHOUT_BUFFERS = traits.GENERIC_ASYNC | traits.TUPLES
"""Opcodes that hand on the buffers they get."""


def buffer_problems(instruction: Instruction) -> Iterator[Problem]:
    """Checks the buffers among the operands and results of an instruction."""
    opcode, shape = instruction.opcode, instruction.shape
    if shape is None or opcode in _WITHOUT_BUFFERS:
        return
    if opcode == "call" and "_xla_stream_annotation" in instruction.frontend_attributes:
        return
    if opcode == "custom-call":
        if instruction.attributes.get("custom_call_target") not in _SIGNATURES:
            yield from _handed_on(instruction)
        yield from _written(instruction)
    elif opcode in ("while", "parameter"):
        yield from _written(instruction)
        if opcode == "parameter" and _is_entry(instruction) and holds_buffer(shape):
            yield Problem("V115", f"the entry computation takes {shorten(str(shape))}",
                help=f"take an array parameter, and put it into a buffer with {PIN}",
            )  # fmt: skip
    elif (
        opcode == "dynamic-update-slice"
        and instruction.operands
        and holds_buffer(instruction.operands[0].shape)
    ):
        yield from _written(instruction)
        yield from _none(instruction, range(1, len(instruction.operands)))
    else:
        yield from _none(instruction, range(len(instruction.operands)), with_result=True)


def _is_entry(instruction: Instruction) -> bool:
    return instruction.computation is not None and instruction.computation.is_entry


def _buffers(shape: Shape | None) -> list[ShapeIndex]:
    return [] if shape is None else [index for index, leaf in shape.leaves() if leaf.is_buffer]


def _none(instruction: Instruction, operands: range, with_result: bool = False) -> Iterator[Problem]:
    """`VerifyNoBuffersInContext`."""
    help = f'custom-call, custom_call_target="{UNPIN}", takes the value out of its buffer'
    if with_result and holds_buffer(instruction.shape):
        yield Problem("V112", f"{instruction.opcode} cannot return a buffer", help=help)
        return
    for number in operands:
        if holds_buffer(instruction.operands[number].shape):
            yield Problem("V112", f"{instruction.opcode} cannot take a buffer", number, help)
            return


def _handed_on(instruction: Instruction) -> Iterator[Problem]:
    """A custom call hands each buffer on in one result (`VerifyBuffersInOperands`, `VerifyBuffersInResults`)."""
    config = instruction.attributes.get("output_to_operand_aliasing")
    aliases = config.aliases if isinstance(config, OutputToOperandAliasing) else ()
    taken = Counter((alias.operand_index, alias.operand_shape_index) for alias in aliases)
    given = Counter(alias.output_shape_index for alias in aliases)
    counts = [
        (f"the buffer in operand {number}", taken[number, index])
        for number, operand in enumerate(instruction.operands)
        for index in _buffers(operand.shape)
    ]
    counts += [("the buffer in the result", given[index]) for index in _buffers(instruction.shape)]
    for what, count in counts:
        if count != 1:
            yield Problem(
                "V112",
                f"{what} must appear in output_to_operand_aliasing once, not {count} times",
            )


def _written(instruction: Instruction) -> Iterator[Problem]:
    """A buffer has one writer at most (`CheckBufferHasUniqueWriters`)."""
    for index in _buffers(instruction.shape):
        writers = _writers(instruction, index)
        if len(writers) > 1:
            yield Problem("V112", f"{len(writers)} operations write the buffer {instruction.name}",
                related=tuple(("written here", writer) for writer in writers),
            )  # fmt: skip


def _writers(instruction: Instruction, index: ShapeIndex) -> list[Instruction]:
    """The operations that write the buffer at an index of a result, followed through tuples."""
    found: list[Instruction] = []
    stack = [(instruction, index)]
    while stack:
        node, place = stack.pop()
        for user in node.users:
            if user.opcode in _WRITING:
                found.append(user)
            elif user.opcode == "get-tuple-element" and place and user.attributes.get("index") == place[0]:
                stack.append((user, place[1:]))
            elif user.opcode == "tuple" and user.is_root:
                callers = user.computation.callers if user.computation is not None else ()
                if any(caller.opcode == "while" for caller in callers):
                    found.append(user)
            elif user.opcode == "tuple":
                stack.append((user, (user.operands.index(node), *place)))
    return found


_WRITING = traits.RUNS_CALLEE | traits.BINDS_OPERANDS | {"custom-call", "dynamic-update-slice"}
"""Opcodes that are taken to write every buffer they get."""
