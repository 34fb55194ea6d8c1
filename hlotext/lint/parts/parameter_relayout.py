"""An argument that every call first copies into another layout."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text, responsible_frame, written_bytes
from hlotext.analysis.views import array_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.layout.permutations import descending
from hlotext.lint.alike_fusions import alike
from hlotext.lint.beside import step_percent
from hlotext.lint.exchanged_sorts import is_next_to_exchange
from hlotext.lint.helpers import is_convolution_call, size_of, times
from hlotext.lint.moving import comes_from_argument, is_in_main_memory, moved_array, moved_back, moved_bytes
from hlotext.lint.repairs import StoreInOrder
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import uses
from hlotext.memory.in_place import InPlacePairs

_HELP = "store it in the dimension order that the program uses: transposed, or in the layout that Layout.AUTO chooses"
_AUTOMATIC = "store it in the layout that the compiler prefers (jax.experimental.layout, Format(Layout.AUTO))"
"""For an argument whose layout is the device's choice: stored transposed, it would be laid out as it is."""
_OPCODES = frozenset({"copy", "copy-start", "fusion", "transpose"})


class ParameterRelayout(Rule):
    needs_optimized = True

    min_bytes: ClassVar[int] = 4 << 20
    """Bytes of the argument from which on it is worth a finding."""
    min_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module that this takes, likewise."""
    min_written_percent: ClassVar[float] = 3
    """Percent of all that the module writes that this takes, likewise where times cannot be estimated."""

    def check_module(self, context: Context) -> Iterator[Report]:
        together: dict[str, list[tuple[Instruction, Instruction]]] = defaultdict(list)
        for opcode in sorted(_OPCODES):
            for instruction in context.census.by_opcode.get(opcode, ()):
                if not context.is_stepped(instruction):
                    continue
                moved = moved_array(instruction, context)
                if moved is None or not comes_from_argument(
                    moved, context
                ):  # it does not move an argument into another layout
                    continue
                if (
                    size_of(moved.shape) < self.min_bytes
                    or _is_kernel(instruction)
                    or is_next_to_exchange(instruction, context)
                ):  # the argument is small, or a kernel or a collective requires its layout
                    continue
                if _is_convolved(
                    moved, context
                ):  # in the other layout it would be copied for this convolution
                    continue
                # What is fetched into fast memory is read once in any layout: more, where the other one is padded.
                most = _PADDED if is_in_main_memory(instruction) else 1
                if _stored(instruction, moved) > most * size_of(moved.shape):
                    continue
                if not _is_overwritten(instruction):
                    together[operation_key(instruction)].append((instruction, moved))
        returned = moved_back(context) if together else {}
        for group in together.values():
            # What the same line does to smaller arguments has the same cause.
            if not any(self._is_much(instruction, context) for instruction, _ in group):
                continue
            for instruction, moved in group:
                runs = context.runs(instruction)
                back = returned.get(instruction)
                moves = [instruction] if back is None else [instruction, back]
                again = "" if back is None else ", and its new value back"
                stored, size = _stored(instruction, moved), size_of(moved.shape)
                grown = f", in which it takes {byte_text(stored)}" if stored > _GROWN * size else ""
                yield Report(
                    instruction,
                    f"every call copies an argument of {byte_text(size)} into another layout"
                    f"{grown}{times(runs)}{again}",
                    _HELP if _is_descending(moved) else _AUTOMATIC,
                    sum(moved_bytes(one, one.operands[0]) * context.runs(one) for one in moves),
                    seconds=context.prices.together(moves),
                    spares=dict.fromkeys(moves, 1.0),
                    covers=frozenset(moves[1:]),
                    repair=StoreInOrder(instruction),
                )

    def _is_much(self, instruction: Instruction, context: Context) -> bool:
        share = step_percent(instruction, context)
        if share is not None:
            return share >= self.min_percent
        size = written_bytes(instruction) * context.runs(instruction)
        return 100 * size >= self.min_written_percent * context.written


_PADDED = 4
"""Maximum ratio of padded sizes: above it, an argument in the other layout costs more than it saves."""


_GROWN = 1.1
"""Ratio of padded sizes from which on the message says what the argument would take in the other layout."""


def _stored(instruction: Instruction, moved: Instruction) -> int:
    """Bytes of the argument in the layout of the copy, padding included: in its own type, which the copy may narrow."""
    size, source, target = size_of(instruction.shape), array_of(moved.shape), array_of(instruction.shape)
    if source is None or target is None or not target.element_type.bits:
        return size
    return size * source.element_type.bits // target.element_type.bits


def _is_descending(moved: Instruction) -> bool:
    """True for an array stored row by row, as arrays are unless the device or the caller chooses otherwise."""
    array = array_of(moved.shape)
    return array is None or array.layout is None or array.layout.minor_to_major == descending(array.rank)


def operation_key(instruction: Instruction) -> str:
    """Key of one Python line's effect on several arguments: its location, else op_name without numbers, else name."""
    frame = responsible_frame(instruction)
    if frame is not None:
        return f"{frame.file}:{frame.line}"
    name = instruction.metadata.op_name if instruction.metadata is not None else ""
    return re.sub(r"\d+", "", name) or instruction.name


def _is_kernel(moved: Instruction) -> bool:
    """True if it is the kernel of a convolution, whose dimension order the library chooses."""
    found = uses(moved, ("bitcast",))
    return any(
        len(user.operands) > 1 and user.operands[1] is value and _is_convolution(user)
        for user, value in found
    )


def _is_convolved(moved: Instruction, context: Context) -> bool:
    """True if a convolution reads the argument as it is stored, as one of the forward pass where a gradient reads a copy."""
    bodies = alike(context.module)
    return any(
        is_convolution_call(user) or "convolution" in bodies.opcodes(user)
        for user, _ in uses(moved, ("bitcast",))
    )


def _is_overwritten(moved: Instruction) -> bool:
    """True if a library call overwrites it with its result, as factorizations do, so a copy is needed in any
    order.
    """
    in_place = InPlacePairs()
    return any(
        user.opcode == "custom-call"
        and any(user.operands[pair.operand_number] is value for pair in in_place.of(user))
        for user, value in uses(moved, ("bitcast",))
    )


def _is_convolution(instruction: Instruction) -> bool:
    return instruction.opcode == "convolution" or is_convolution_call(instruction)
