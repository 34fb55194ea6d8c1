"""Arguments of which every use is a conversion to a narrower type, in every call or in every iteration of a loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of
from hlotext.lint.parts.upcast_dot import FETCHING, argument_behind
from hlotext.lint.products import fusions_of
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import WORTH_KERNEL, Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, elements_of, fetched, handed_to_loops

_MOST_STEPS = 300
_IN_PLACE = VIEWS | traits.KEEPS_ELEMENTS | {"convert", "parameter"}
"""Opcodes of an operation that is gone with the conversion."""
_WHOLE = _IN_PLACE - {"convert"} | traits.COPY_HALVES
"""Opcodes behind which an array is all of an argument."""
_SLICING = _IN_PLACE | traits.SLICES
"""Opcodes of one that takes a slice at a counted place and converts it."""


@attrs.frozen(eq=False)
class _Cast:
    """A conversion of an argument, or of a part of it."""

    convert: Instruction
    whole: Instruction
    """The fusion that it stands in, or itself."""
    is_same: bool
    """True if each iteration of the loops around it converts the same, which G116 says."""


class ParameterCast(Rule):
    severity = Severity.NOTE
    needs_optimized = True

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes of what is converted from which on it is worth a finding."""
    min_percent: ClassVar[float] = 1
    """Percent of the estimated time of the module that the conversions take, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        casts: dict[Instruction, list[_Cast]] = defaultdict(list)
        for convert in context.census.by_opcode.get("convert", ()):
            if not _is_narrowing(convert, self.min_bytes):  # it does not make a large array smaller
                continue
            if not _is_programs(convert, context):
                continue  # the TPU compiler multiplies f32 in bf16
            fusions = fusions_of(convert, context.graph)
            if fusions is None:
                continue
            argument = argument_behind(Value(convert.operands[0], fusions))
            if argument is not None:  # its operand is not an argument
                is_same = argument_behind(Value(convert.operands[0], fusions), _WHOLE) is argument
                casts[argument].append(_Cast(convert, fusions[0] if fusions else convert, is_same))
        # A trained weight has an update, which wants the wide one.
        casts = {argument: found for argument, found in casts.items() if _is_only_cast(argument)}
        if not casts:  # the converted arguments have other uses
            return
        every = [cast for found in casts.values() for cast in found]
        wholes = {cast.whole: _saved(cast, context) for cast in every}
        total = sum(wholes.values())
        spares = {**dict.fromkeys(casts, 0.5), **{cast.whole: 1.0 for cast in every if _is_alone(cast)}}
        if 100 * total < self.min_percent * context.prices.step and (
            (context.saved_peak(spares) or 0) < WORTH_KERNEL * (context.peak or 0) or not context.peak
        ):  # the conversions are a small part of the step, and the arguments of the peak
            return
        size = sum(size_of(argument.shape) for argument in casts)
        runs = max(1 if cast.is_same else context.runs(cast.whole) for cast in every)
        first = max(every, key=lambda cast: (wholes[cast.whole], size_of(cast.convert.shape)))
        kind = first.convert.shape.element_type.name if first.convert.shape is not None else ""
        whole = next(iter(casts)) if len(casts) == 1 else None
        what = (
            f"an argument of {byte_text(size)}"
            if whole is not None
            else f"{len(casts):,} arguments, {byte_text(size)} in total,"
        )
        yield Report(
            first.convert,
            f"{what} {'is' if whole is not None else 'are'} converted to {kind} in every call, and used in no other type"
            + (f": {pluralize(len(every), 'conversion')}, up to {runs:,} times each" if runs > 1 else ""),
            f"pass them in {kind} (jax.tree.map(lambda w: w.astype(...), params) once, outside of the step): the "
            "results are bitwise identical",
            seconds=total,
            is_at_most=any(not _is_alone(cast) for cast in every),
            spares=spares,
            cause="casts of arguments",
        )


def _is_narrowing(convert: Instruction, least: int) -> bool:
    shape, before = convert.shape, convert.operands[0].shape if convert.operands else None
    if shape is None or before is None or not (shape.is_array and before.is_array):
        return False
    return least <= size_of(before) and size_of(shape) < size_of(before)


def _is_programs(part: Instruction, context: Context) -> bool:
    """True for a conversion that the program asks for, or of which the text does not tell."""
    name = part.metadata.op_name if part.metadata is not None else ""
    return "convert_element_type" in name or (not name and context.backend is not Backend.TPU)


def _is_only_cast(argument: Instruction) -> bool:
    """True if every use of an argument, or of a part of it, in whatever loops, is a conversion to a narrower type."""
    pending, seen = [Value(argument)], {Value(argument)}
    while pending and len(seen) < _MOST_STEPS:
        value = pending.pop()
        if value.instruction.is_root and not value.fusions:
            return False
        given: list[Value] = []
        for user, number in consumers(value):
            one = user.instruction
            if one.opcode == "convert":
                if not _is_narrowing(one, 0):
                    return False
            elif (one.opcode in FETCHING and number == 0) or one.opcode == "concatenate" or _is_joined(one):
                given.append(user)
            elif one.opcode == "async-start" and _is_prefetch(one):
                given.append(Value(one.async_chain[-1], user.fusions))
            elif (
                one.opcode == "tuple"
                and not user.fusions
                and (parts := handed_to_loops(one, {number})) is not None
            ):
                given += map(Value, parts)
            else:
                return False
        for other in given:
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return not pending


def _is_joined(one: Instruction) -> bool:
    """True for what the TPU compiler makes of the slices in which it fetches an array."""
    return one.opcode == "custom-call" and fetched(one) is not None


def _is_prefetch(start: Instruction) -> bool:
    wrapped = start.async_wrapped_instruction
    return wrapped is not None and wrapped.opcode in ("slice", "copy") and bool(start.async_chain)


def _is_alone(cast: _Cast) -> bool:
    """True if an operation only converts, and is gone once there is nothing to convert."""
    return all(part.opcode in _IN_PLACE for part in parts_of(cast.whole))


def _is_slice(cast: _Cast) -> bool:
    """True if an operation only takes a slice and converts it: it is gone where its readers can read the slice in place."""
    return all(part.opcode in _SLICING or elements_of(part.shape) == 1 for part in parts_of(cast.whole))


def _saved(cast: _Cast, context: Context) -> float:
    """Seconds that its runs take less: all of an operation that is gone, of others as long as reading what is narrower."""
    prices, whole = context.prices, cast.whole
    seconds = prices.seconds(whole) / (max(1, prices.runs(whole.computation)) if cast.is_same else 1)
    if _is_slice(cast):
        return seconds
    least = prices.own_least.get(whole)
    if least is None or not least.working:
        return 0.0
    less = prices.reading(size_of(cast.convert.operands[0].shape) - size_of(cast.convert.shape))
    then = max(least.compute or 0.0, (least.memory or 0.0) - less)
    return seconds * max(0.0, 1 - then / least.working)
