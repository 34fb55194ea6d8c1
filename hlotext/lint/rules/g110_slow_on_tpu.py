"""G110: a gather, scatter or sort in a form that is slow on TPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend
from hlotext.cost.undercounted import rows_of
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.element_gathers import element_gathers
from hlotext.lint.rule import Context, Report, Rule


class SlowOnTpu(Rule):
    code = "G110"
    name = "slow-on-tpu"
    title = "a gather, scatter or sort in a form that is slow on TPU"
    waste = "dense"
    severity = Severity.NOTE
    backends = frozenset({Backend.TPU})
    opcodes = frozenset({"scatter", "sort"})
    needs_any = opcodes | {"gather"}

    min_elements: ClassVar[int] = 1 << 18
    """Updates of a scatter, rows counting once, or of the sorted dimension, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        yield from element_gathers(context)

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        shape = instruction.operands[-1].shape if instruction.operands else None
        if shape is None or not shape.is_array:
            return
        if instruction.opcode == "sort":
            (dimension,) = instruction.attributes.get("dimensions", (0,))
            # Of a sort that the program asks for all is wanted, as far as the text tells.
            if (
                dimension < shape.rank
                and shape.dimensions[dimension] >= self.min_elements
                and _is_top_k(instruction)
            ):  # it is not a large top-k by sorting
                yield Report(
                    instruction,
                    f"a sort along {shape.dimensions[dimension]:,} elements is slow on TPU",
                    "use approx_max_k if an approximate result is enough",
                )
        elif (
            not any(instruction.attributes.get(name) for name in _KNOWN)
            and rows_of(instruction) >= self.min_elements
        ):  # its indices are unique or sorted, which the compiler may have done, or it updates few elements
            yield Report(
                instruction,
                f"a scatter of {rows_of(instruction):,} updates whose indices may repeat runs serially",
                "pass unique_indices=True if the indices are unique, or sort the updates and sum duplicates first "
                "(segment_sum)",
            )


_KNOWN = ("indices_are_sorted", "unique_indices")


def _is_top_k(sort: Instruction) -> bool:
    """True if only the largest elements are used."""
    return sort.metadata is not None and "top_k" in sort.metadata.op_name
