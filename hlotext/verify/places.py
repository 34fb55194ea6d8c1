"""Where in the text the fault is: from a node and one of its parts to a source and a span."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source, Span
from hlotext.ir.tables.opcodes import SPELLINGS
from hlotext.semantics.problems import Part, Where

Place = tuple[Source, Span]


def of_instruction(instruction: Instruction, where: Where = Part.WHOLE) -> Place:
    """Returns the location of a part of an instruction.

    This is in the module's source if the instruction's text there is current, and otherwise in its printed line. An
    instruction without text of its own, such as the operation inside `all-to-all-start`, has the location of its
    caller.
    """
    module = instruction.computation.module if instruction.computation is not None else None
    span = instruction.span if not instruction.is_modified else None
    caller = _caller_in_text(instruction)
    if span is not None and module is not None and module.source is not None:
        source, start, text = module.source, span.start, module.source.text[span.start : span.end]
    elif caller is not None:
        return of_instruction(caller)
    else:
        start, text = 0, str(instruction)
        source = Source(text, f"<{module.name if module is not None else 'instruction'}, edited>")
    first, last = _part(instruction, where, text)
    return source, source.span(start + first, start + last)


def _caller_in_text(instruction: Instruction) -> Instruction | None:
    """The instruction whose short spelling an implicit computation stands for; None for all others."""
    computation = instruction.computation
    if computation is None or not computation.is_sugared or computation.is_entry:
        return None
    return next(iter(computation.callers), None)


def _part(instruction: Instruction, where: Where, text: str) -> tuple[int, int]:
    """Start and end of a part in the text of an instruction; of the whole where it does not stand there."""
    found: tuple[int, int] | None = None
    opcode = None
    if where is not Part.WHOLE:
        opcode = re.compile(rf"(?<=[\s=]){re.escape(instruction.opcode)}\s*(?=\()").search(text)
    if opcode is None:
        pass
    elif where is Part.OPCODE:
        found = opcode.span()
    elif where is Part.SHAPE:
        equal = re.compile(r"=\s*").search(text)
        begin = equal.end() if equal is not None and equal.end() <= opcode.start() else 0
        shape = text[begin : opcode.start()].rstrip()
        found = (begin, begin + len(shape)) if shape else None
    elif isinstance(where, int):
        found = _operand(instruction, where, text, opcode.end())
    elif isinstance(where, str):
        names = (where, *(spelling for spelling, name in SPELLINGS.items() if name == where))
        places = (_attribute(name, text, opcode.end()) for name in names)
        found = next((place for place in places if place is not None), None)
    return found if found is not None else (0, len(text))


def _operand(instruction: Instruction, number: int, text: str, start: int) -> tuple[int, int] | None:
    """Where operand `number` is named; the same instruction may be several operands."""
    if number >= len(instruction.operands):
        return None
    operand = instruction.operands[number]
    before = instruction.operands[:number].count(operand)
    # One expression for all names: one for each would have to be compiled for each finding.
    for match in _WORD.finditer(text, start):
        if match[1] == operand.name:
            if not before:
                return match.span()
            before -= 1
    return None


_WORD = re.compile(r"%?([\w.\-]+)")


def _attribute(name: str, text: str, start: int) -> tuple[int, int] | None:
    """Where an attribute stands, from its name to the end of its value."""
    found = re.compile(rf"(?<=[,\s]){re.escape(name)}\s*=").search(text, start)
    if found is None:
        return None
    depth = 0
    for match in re.compile(r'[{(\[]|[})\]]|,|"[^"\\]*(?:\\.[^"\\]*)*"').finditer(text, found.end()):
        if match[0] in "{([":
            depth += 1
        elif match[0] in "})]":
            depth -= 1
        elif match[0] == "," and not depth:
            return found.start(), match.start()
    return found.start(), len(text)


def of_computation(computation: Computation) -> Place:
    """Returns the location of a computation's header line; for an inline or implied one, of its caller's."""
    module = computation.module
    if module is not None and module.source is not None and computation._start >= 0:
        header = module.source.text[computation._start : computation._brace].rstrip()
        end = computation._start + max(len(header), 1)
        return module.source, module.source.span(computation._start, end)
    caller = next(iter(computation.callers), None)
    if caller is not None:
        return of_instruction(caller)
    text = str(computation).splitlines()[0]
    source = Source(text, f"<{computation.name}, edited>")
    return source, source.span(0, len(text))


def of_header(module: Module, attribute: str) -> Place:
    """Returns the location of an attribute of the module's header, or of the table with that name."""
    source = module.source
    if source is not None and not module.is_header_modified:
        found = re.compile(rf"(?:^|[,\s]){re.escape(attribute)}(?==|\s)").search(
            source.text[: module._header_end], module._start
        )
        if found is not None:
            start = found.end() - len(attribute)
            return source, source.span(start, found.end())
    text = f"HloModule {module.name}"
    if attribute in module.attributes:
        text += f", {attribute}={module.attributes[attribute]}"
    source = Source(text, f"<{module.name}, edited>")
    return source, source.span(max(0, text.find(f"{attribute}=")), len(text))


def ranks(module: Module) -> dict[Instruction | Computation | None, int]:
    """Returns the position of each node in the printed text of a module, for sorting; the header, None, comes first.

    Bodies written inside their caller's line, and those implied by sugar, come after the caller.
    """
    found: dict[Instruction | Computation | None, int] = {None: 0}
    stack: list[Instruction | Computation] = [
        c for c in reversed(module.computations) if c.is_entry or not (c.is_inline or c.is_sugared)
    ]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found[node] = len(found)
        inside: Iterable[Instruction | Computation] = (
            node._instructions
            if isinstance(node, Computation)
            else (c for c in node.called_computations if c.is_inline or c.is_sugared)
        )
        stack.extend(reversed(list(inside)))
    return found
