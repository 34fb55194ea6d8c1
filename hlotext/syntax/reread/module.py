"""A module as XLA holds it after reading its text."""

from __future__ import annotations

from datetime import date

from hlotext.edit.dirty_lines import without_left_out
from hlotext.ir.nodes.computation import computation_order, instruction_post_order
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.naming import NameUniquer
from hlotext.ir.values.age import XlaAge, as_age
from hlotext.syntax.reread import values
from hlotext.syntax.reread.frames import keep_used_frames
from hlotext.syntax.reread.releases import as_release


def reread(module: Module, *, age: XlaAge | date | str | None = None) -> Module:
    """Returns a copy of a module as XLA would print it after parsing (`HloParserImpl`, `HloModule::Print`).

    * Instruction and computation names are made unique in the module (`NameUniquer`): the first in the text keeps its
      name, and inline bodies come before their callers.
    * Callees come before callers and operands before users; in a scheduled module, instructions keep the order of the
      text, except inside fusions.
    * The stack-frame tables hold only the frames that instructions refer to, numbered in order of first use.
    * Layouts missing from the header are the default ones; send, recv, infeed and the like get XLA's shapes; `-0` is 0,
      which XLA parses as an integer; a single number for an array is its first element.

    Elided constants (`{...}`), which XLA fills from a process-wide counter, are kept, as is anything that XLA rejects.
    The module itself is not modified.

    Args:
        module: The module to copy.
        age: XLA version whose spellings and defaults are used (`order=` of compare, `is_stable=` of topk,
            `single_device`): a jaxlib release ("0.12", "0.10.2"), a date or an XlaAge, or None for the newest.

    Raises:
        ValueError: `age` is not an age of XLA.
    """
    release = as_age(age) or XlaAge()
    copy = module.clone()
    values.as_read(copy)
    as_release(copy, release)
    names = _anonymous_names(copy)
    _forget_source(copy)
    keep_used_frames(copy)
    _rename(copy, names)
    fused = {
        callee for i in copy.instructions() if i._head.opcode == "fusion" for callee in i.called_computations
    }
    # The walk over computations follows the instructions in the order of the text, which they have until the end.
    calls = {c: [callees for i in c if (callees := i.called_computations)] for c in copy._computations}
    computations = computation_order(copy._computations, calls)
    if len(computations) == len(
        copy._computations
    ):  # else they call each other in a circle, which XLA refuses
        copy._computations = computations
    for computation in copy._computations:
        if not copy.is_scheduled or computation in fused:
            computation._instructions = instruction_post_order(computation)
    return copy


def _forget_source(module: Module) -> None:
    """Nothing is copied from the text any more."""
    module._source = None
    module._parts = []
    module._start = module._header_end = module._end = -1
    module._removed = []
    for computation in module._computations:
        computation._start = computation._end = computation._brace = -1
        computation._name_mark = computation._parts_read = None
        computation._by_name = computation._order = None
        computation._removed_spans = ()


# ---- names


def _rename(module: Module, given: dict[Instruction, str]) -> None:
    """Makes names unique, those of instructions and of computations apart (`HloModule::AddComputationInternal`)."""
    instructions, computations = NameUniquer(), NameUniquer()
    is_op_line = module._entry is not None and module._entry._is_sugared
    if is_op_line:  # `ParseSingleInstruction` adds the computation around it first
        module._computations.sort(key=lambda computation: computation is not module._entry)
    for computation in module._computations:
        is_wrapped = computation._is_sugared and computation is not module._entry
        name = "async_wrapped" if is_wrapped else computation._name
        computation._name = computations.unique(name if name or not computation._is_inline else "_")
        computation._is_sugared = computation._is_inline = False
        for instruction in computation._instructions:
            instruction._name = instructions.unique(given.get(instruction, instruction._name))
            instruction._place, instruction._form = None, Form.LINE
            instruction._attributes = without_left_out(instruction._attributes)


def _anonymous_names(module: Module) -> dict[Instruction, str]:
    """The names under which XLA's reader knows instructions whose own do not stand in the text.

    An operand written in place is named after its opcode, with the first number free among all names read so far: an
    instruction is named when it has been read to its end. What a short asynchronous spelling stands for has fixed names.
    """
    found: dict[Instruction, str] = {}
    for computation in module._computations:
        if computation._is_sugared and computation is not module._entry:
            for i in computation._instructions:
                found[i] = "async_param" if i._head.opcode == "parameter" else i._head.opcode
    has_nested = False
    for i in module.instructions():
        if i._form is Form.COMPACT:
            operand = i._operands[0]
            found[i] = f"{found.get(operand, operand._name)}_{i._attributes['index']}"
        has_nested = has_nested or i._form is Form.NESTED
    if not has_nested:
        return found
    names = NameUniquer()
    for instruction in _as_read_to_their_ends(module):
        if instruction._form is Form.NESTED:
            found[instruction] = names.unique(f"{instruction._head.opcode}.anon")
        elif instruction not in found:
            names.unique(instruction._name)
    return found


def _as_read_to_their_ends(module: Module) -> list[Instruction]:
    """All instructions in the order in which a reader of the text comes to their ends.

    Operands in place have no places of their own: they end behind the start of the line that they stand in, before the
    bodies that stand in it.
    """
    ends: dict[Instruction, tuple[int, int]] = {}
    for computation in module._computations:
        nested: list[Instruction] = []
        for instruction in computation._instructions:
            if instruction._form is Form.NESTED:
                nested.append(instruction)
                continue
            ends.update((other, (instruction._start, number)) for number, other in enumerate(nested, 1))
            ends[instruction] = (instruction._end, 0)
            nested.clear()
    return sorted(ends, key=ends.__getitem__)


__all__ = ["reread"]
