"""XLA's conditions on computations and modules that its reader enforces: names, parameters, signatures, aliases."""

from __future__ import annotations

import re
from typing import Any

from hlotext.findings.errors import Severity
from hlotext.ir.caches import lazy_regex
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.semantics.conditions import compatible
from hlotext.semantics.message_text import shown
from hlotext.syntax.language import patterns
from hlotext.syntax.source.reporter import Reporter

_TYPE_NAMES = frozenset(ELEMENT_TYPES)
_FIRST = [list(range(count)) for count in range(16)]
"""The numbers of so many parameters."""

# ---- one computation


def parameters(reporter: Reporter, computation: Computation, numbers: list[Any]) -> None:
    """Checks that parameters are numbered 0, 1, 2, ..., each once and in any order."""
    numbers.sort()
    if numbers == (_FIRST[len(numbers)] if len(numbers) < len(_FIRST) else list(range(len(numbers)))):
        return
    found: dict[int, Instruction] = {}
    for instruction in computation._instructions:
        if instruction._head.opcode != "parameter":
            continue
        number = instruction.parameter_number or 0
        if number < 0:
            message = f"a parameter number cannot be negative, but is {number}"
            reporter.error("X115", message, *_number(reporter, instruction))
        elif number in found:
            related = [("the first one", *_number(reporter, found[number]))]
            message = f"two parameters have number {number}"
            reporter.error("X115", message, *_number(reporter, instruction), related=related)
        found[number] = instruction
    for number in range(len(found)):
        if number not in found:
            last = max(found)
            message = f"parameter({last}) exists, but parameter({number}) does not"
            reporter.error("X115", message, *_number(reporter, found[last]))
            return


_PARAMETER = lazy_regex(r"parameter[^(]*\(\s*(-?[0-9]+)")


def _number(reporter: Reporter, parameter: Instruction) -> tuple[int, int]:
    """Where the number of a parameter stands; the computation's brace for one written in place of an operand."""
    if parameter._start < 0:
        brace = max(parameter.computation._brace, 0) if parameter.computation is not None else 0
        return brace, brace + 1
    match = _PARAMETER().search(reporter.source.text, parameter._start, parameter._end)
    return match.span(1) if match is not None else (parameter._start, parameter._end)


def name_place(reporter: Reporter, instruction: Instruction) -> int:
    """Returns the offset of an instruction's name, after the word ROOT."""
    text, start = reporter.source.text, instruction._start
    if not text.startswith("ROOT", start) or instruction.name == "ROOT":
        return start
    blank = patterns.blank().match(text, start + 4)
    return start if blank is None else blank.end()


def names(reporter: Reporter, computation: Computation, defined: dict[str, Instruction]) -> None:
    """Checks that no instruction is named like an element type or begins with `__`, except for `__xla_`."""
    # This runs for every computation, so it looks at names one by one only where it must: the fast reader, whose mark says
    # that it has read all lines, takes none that begins with underscores.
    if _TYPE_NAMES.isdisjoint(defined) and (
        computation._name_mark is not None or "\n__" not in "\n" + "\n".join(defined)
    ):
        return
    for name, instruction in defined.items():
        if instruction._start < 0:
            continue
        place = name_place(reporter, instruction)
        if name in ELEMENT_TYPES:
            message = f"`{name}` is an element type and cannot be used as a name"
            reporter.error("X116", message, place, help=f"rename it, for example to `{name}_`")
        elif name.startswith("__") and not name.startswith("__xla_"):
            message = "a name cannot start with two underscores, except `__xla_`"
            reporter.error("X116", message, place, help=f"rename it, for example to `a{name}`")


def duplicates(reporter: Reporter, computation: Computation) -> None:
    """Checks that names are unique in a computation."""
    found: dict[str, Instruction] = {}
    for instruction in computation._instructions:
        if isinstance(instruction, BadInstruction):
            continue
        first = found.setdefault(instruction.name, instruction)
        if first is not instruction:
            duplicate(reporter, instruction, first)


def duplicate(reporter: Reporter, instruction: Instruction, first: Instruction) -> None:
    """Reports that a name is defined twice."""
    message = f"instruction {instruction.name} is defined twice in this computation"
    related = [("first defined here", name_place(reporter, first), None)] if first._start >= 0 else []
    reporter.error("X103", message, name_place(reporter, instruction), related=related)


def signature(reporter: Reporter, computation: Computation, result: Shape, start: int, end: int) -> None:
    """Checks that the result shape in a computation's header is compatible with its root."""
    if not computation._instructions:
        return
    shape = computation.root.shape
    if shape is not None and shape != result and not compatible(shape, result):
        root = computation.root
        name, gives = computation.name, f"its root {root.name} is {shown(shape)}"
        message = f"computation {name} is declared to return {shown(result)}, but {gives}"
        reporter.error("X113", message, start, end, related=[("the root", root._start, root._end)])


# ---- the module


def module(reporter: Reporter, module: Module) -> None:
    """Checks the header against the entry computation."""
    if not module._computations:
        if not reporter.count(Severity.ERROR):  # else they may be in what could not be read
            is_end = not reporter.source.text[module._header_end :].strip()
            where = ", but the text ends here" if is_end else ""
            reporter.error("X122", f"a module needs at least one computation{where}", module._header_end)
        return
    # Without an ENTRY the last computation is the entry, but in a text that is cut the entry may be what is missing.
    if module._entry is not None or not reporter.count(Severity.ERROR):
        _aliases(reporter, module)


def _aliases(reporter: Reporter, module: Module) -> None:
    aliases = module._attributes.get("input_output_alias")
    if (
        aliases is None
        or isinstance(aliases, RawValue)
        or not module.entry._instructions
        or module.entry.root.shape is None
    ):
        return
    result = module.entry.root.shape
    wrong = [alias.output_index for alias in aliases.entries if not _has(result, alias.output_index)]
    if not wrong:
        return
    places, given = _output_indices(module), shown(result)
    help = "" if result.is_tuple else "use `{}` as the index of a result that is not a tuple"
    start = module.source.text.find("input_output_alias", module._start) if module.source is not None else 0
    for index in wrong:
        message = f"input_output_alias names output {{{','.join(map(str, index))}}}, but {module.entry.name} returns {given}"
        first, last = places.get(index, (max(start, 0), None))
        reporter.error("X119", message, first, last, help)


def _has(shape: Shape, index: tuple[int, ...]) -> bool:
    """True if a shape has a part at that index."""
    try:
        shape.subshape(index)
    except IndexError:
        return False
    return True


_OUTPUT_INDEX = lazy_regex(r"\{([\s0-9,]*+)\}(?=\s*:)")


def _output_indices(module: Module) -> dict[tuple[int, ...], tuple[int, int]]:
    """Where every output index stands in the header's input_output_alias."""
    text = module.source.text[: module._header_end] if module.source is not None else ""
    start = max(text.find("input_output_alias", module._start, module._header_end), module._start)
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    for match in _OUTPUT_INDEX().finditer(text, start, module._header_end):
        numbers = re.findall(r"[0-9]{1,18}", match[1])
        found.setdefault(tuple(map(int, numbers)), match.span())
    return found
