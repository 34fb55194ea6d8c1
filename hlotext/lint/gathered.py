"""Gathered arrays whose uses all produce something small."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Communication
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import results
from hlotext.lint.rule import Context
from hlotext.lint.sums import adds
from hlotext.lint.values import VIEWS, Value, consumers, is_spread, result_elements

_MUCH = 16
"""Minimum ratio of a gathered array's size to that of the results computed from it."""
_PASSING = ELEMENTWISE | VIEWS | {"convert", "transpose", "get-tuple-element", "all-gather-done", "broadcast"}
_GATHERS = frozenset({"all-gather", "all-gather-start"})
_MOST_STEPS = 400


@attrs.define(eq=False)
class Reduced:
    """Gathered arrays of which only reductions are used."""

    gathers: dict[Instruction, Communication] = attrs.field(factory=dict)
    work: set[Instruction] = attrs.field(factory=set)
    """Work that every device repeats on the whole arrays."""
    small: int = 0
    """Elements of what is made of them."""
    large: int = 0

    @property
    def devices(self) -> int:
        """Number of devices over which the reduction could stay distributed."""
        parts = [result_elements(operand) for start in self.gathers for operand in start.operands]
        return max(2, self.large // max(1, min((part for part in parts if part), default=1)))


def is_programs(one: Communication) -> bool:
    """True if the program calls the collective, in contrast to the partitioner."""
    metadata = one.start.metadata
    return metadata is not None and "all_gather" in metadata.op_name.rpartition("/")[2]


def reduced_gathers(context: Context) -> Iterator[Reduced]:
    """Yields all-gathers of the partitioner from which only something much smaller is computed, grouped by reduction."""
    known: dict[Instruction, Reduced] = {}
    done: list[Reduced] = []
    for one in context.communications:
        if one.kind != "all-gather" or one.fusion is not None or is_programs(one) or one.participants == 1:
            continue
        found = _followed(one, context)
        if found is None:
            continue
        touching = {id(known[i]): known[i] for i in (*found.gathers, *found.work) if i in known}
        for other in touching.values():
            found.gathers |= other.gathers
            found.work |= other.work
            done.remove(other)
        done.append(found)
        known.update((i, found) for i in (*found.gathers, *found.work))
    yield from done


def _followed(one: Communication, context: Context) -> Reduced | None:
    found = Reduced({one.start: one})
    pending, seen = [Value(value) for value in results(one)], 0
    while pending:
        value = pending.pop()
        size = result_elements(value.instruction)
        found.large = max(found.large, size)
        if value.instruction.is_root and not value.fusions:
            return None
        for user, _ in consumers(value):
            seen += 1
            if seen > _MOST_STEPS:
                return None
            made = user.instruction
            outer = user.writer
            if made.opcode == "reduce":
                if _MUCH * result_elements(made) > size:
                    return None
                found.small = max(found.small, result_elements(made))
                found.work.add(outer)
            elif made.opcode == "dynamic-slice" and (one.participants or 1) * result_elements(made) <= size:
                continue  # each device goes on with its own part, as a gradient does
            elif made.opcode in _GATHERS and made in context.communication_of:
                further = context.communication_of[made]
                found.gathers[made] = further
                pending += [Value(result) for result in results(further)]
            elif made.opcode in _PASSING and result_elements(made) >= size:
                found.work.add(outer)
                pending.append(user)
            else:
                return None
    if not found.small or not found.work:
        return None
    for start in found.gathers:
        for operand in start.operands:
            if len(operand.users) == 1 and is_spread(operand):
                found.work.add(operand)  # as the numbers of classes, for an argmax
    return found


def sums_of(one: Communication) -> list[Instruction] | None:
    """Returns the sums over the gathered dimension if a gathered array has no other users; else None."""
    dimension = _gathered(one)
    if dimension is None:
        return None
    found: list[Instruction] = []
    for value in results(one):
        if value.is_root:
            return None
        for user, _ in consumers(Value(value), VIEWS | {"convert", "all-gather-done"}):
            made = user.instruction
            if made.opcode != "reduce" or not adds(made.attributes.get("to_apply")):
                return None
            if not _sums_over(made, value, dimension, one.participants or 1):
                return None
            found.append(user.writer)
    return found or None


def _gathered(one: Communication) -> int | None:
    dimensions = one.instruction.attributes.get("dimensions")
    return dimensions[0] if isinstance(dimensions, tuple) and dimensions else None


def _sums_over(reduce: Instruction, gathered: Instruction, dimension: int, devices: int) -> bool:
    """True if a reduction is over the parts that came from the devices, perhaps after the gathered dimension was split."""
    before, after = gathered.shape, reduce.operands[0].shape
    reduced = reduce.attributes.get("dimensions", ())
    if before is None or after is None or not before.is_array or not after.is_array:
        return False
    if before.dimensions == after.dimensions:
        return dimension in reduced
    lead = _product(before.dimensions[:dimension])
    return any(
        _product(after.dimensions[:d]) == lead and after.dimensions[d] % devices == 0 and d in reduced
        for d in range(after.rank)
    )


def _product(numbers: tuple[int, ...]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product
