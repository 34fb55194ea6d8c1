"""M102: a donated argument that fits no result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.entries import program_name
from hlotext.analysis.updates import tree_of, updates
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.ir.values.shape import Shape
from hlotext.lint.held import least_held
from hlotext.lint.helpers import donors, size_of, unaliased_results
from hlotext.lint.rule import Context, Report, Rule


class DonationWithoutUse(Rule):
    code = "M102"
    name = "donation-without-use"
    title = "a donated argument that matches no result"
    waste = "held"
    severity = Severity.NOTE
    needs_schedule = True

    min_bytes: ClassVar[int] = 1 << 16
    """Bytes of the argument from which on it is worth a finding."""
    min_total: ClassVar[int] = 4 << 20
    """Bytes of all such arguments on a GPU or TPU, likewise."""
    min_percent: ClassVar[float] = 5
    """Percent of the arguments and results that all such arguments are, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        useless = list(_replaced(context))
        total = sum(size_of(one.array) for one in useless)
        is_device = context.backend in (Backend.GPU, Backend.TPU)
        if (is_device and total < self.min_total) or 100 * total < self.min_percent * least_held(
            context
        ):  # the donated arguments that no result can reuse are too small
            return
        alike: dict[tuple[str, str], list[_Replaced]] = {}
        for one in useless:
            if size_of(one.array) >= self.min_bytes:
                alike.setdefault(one.types, []).append(one)
        for (given, returned), group in alike.items():
            yield _report(sorted(group, key=lambda one: -size_of(one.array)), given, returned, context)


@attrs.frozen
class _Replaced:
    """A donated argument whose memory the result that replaces it cannot take."""

    parameter: Instruction
    array: Shape
    result: Shape
    index: ShapeIndex
    """Of the result."""
    is_update: bool
    """True if the result is known to be computed from the argument; else their dimensions alone agree."""

    @property
    def is_split(self) -> bool:
        """True if the result is a part of the argument, whose sharding the argument lacks."""
        return self.types == ("", "") and size_of(self.array) > size_of(self.result)

    @property
    def needless(self) -> int:
        """Bytes that nothing holds once the result lies in its argument.

        Of arguments of another type the lesser of both repairs: the argument may grow, or be as small as it is.
        """
        given, returned = size_of(self.array), size_of(self.result)
        return given if self.types == ("", "") else min(given, returned)

    @property
    def types(self) -> tuple[str, str]:
        """The types of the argument and of the result; empty if they have one type."""
        given, returned = (str(one.element_type) for one in (self.array, self.result))
        return (given, returned) if given != returned else ("", "")


def _replaced(context: Context) -> Iterator[_Replaced]:
    """Yields donated arguments whose memory no result can take, each with a result of its own that may be its new value.

    Arguments without such a result, as gradients are, are donated to be given up.
    """
    free = unaliased_results(context)
    sizes = {size_of(result) for result in free.values()}
    shapes = {result.without_layout() for result in free.values()}  # of these M101 says more
    useless = [
        (parameter, array)
        for parameter, array in donors(context)
        if size_of(array) not in sizes and array.without_layout() not in shapes
    ]
    known = {
        one.parameter: one.index
        for one in (updates(context.module, with_retyped=True) if useless else ())
        if one.is_retyped
    }
    claimed = set(known.values())
    left: dict[tuple[int, ...], list[ShapeIndex]] = {}
    for index, result in reversed(free.items()):
        if index not in claimed:
            left.setdefault(result.dimensions, []).append(index)
    for parameter, array in useless:
        if parameter in known:
            yield _Replaced(parameter, array, free[known[parameter]], known[parameter], True)
            continue
        fits = next((one for one in left if left[one] and _may_replace(one, array.dimensions)), None)
        if fits is not None:
            index = left[fits].pop()
            yield _Replaced(parameter, array, free[index], index, False)


def _report(group: list[_Replaced], given: str, returned: str, context: Context) -> Report:
    """The finding on arguments of one type whose results have another, or differ in sharding where both are empty."""
    total = byte_text(sum(size_of(one.array) for one in group))
    is_one, is_known = len(group) == 1, all(one.is_update for one in group)
    leaves = [program_name(one.parameter) or one.parameter.name for one in group]
    is_few = len(leaves) <= _MOST_NAMES
    names = leaves if is_few else list(dict.fromkeys(tree_of(one.parameter) for one in group))
    named = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    named += f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    several = f"the donated arguments {named}" if is_few else f"{len(group):,} donated arguments in {named}"
    what = f"the donated argument {named}" if is_one else several
    it, its, results, are = ("it", "its", "result", "is") if is_one else ("them", "their", "results", "are")
    if given:
        of = f"that replace{'s' if is_one else ''} {it}" if is_known else f"with {its} dimensions"
        why = f"({given}, {total}) cannot be reused: the {results} {of} {are} {returned}"
        repair = f"return {it} as {given}, or pass {it} as {returned}; otherwise, do not donate {it}"
    else:
        why = f"({total}) cannot be reused: no result has {its} size"
        repair = f"give {it} the sharding of the {results} that replace{'s' if is_one else ''} {it}, or do not donate {it}"
    return Report(
        group[0].parameter,
        f"{what} {why}",
        repair,
        sum(one.needless for one in group),
        is_held=True,
        spares=_spares(group, context),
        cause=f"no result of {given}",
    )


_MOST_NAMES = 4
"""Names of arguments that a finding has."""


def _spares(group: list[_Replaced], context: Context) -> dict[Any, float]:
    """The arrays that need no memory, or less, once the results lie in their arguments."""
    assignment = context.assignment
    spares: dict[Any, float] = {}
    if assignment is None or assignment.model is None:
        return spares
    flow = assignment.model.flow
    for one in group:
        value = flow.value_at(context.module.entry.root, one.index)
        if value is not None and value.instruction is not None:
            # Of a result that is larger than its argument, as much as the argument has to grow is no less.
            spares[value.instruction, value.index] = min(1.0, one.needless / max(1, size_of(one.result)))
        if one.is_split:
            spares[one.parameter] = 1 - size_of(one.result) / size_of(one.array)
    return spares


def _may_replace(result: tuple[int, ...], array: tuple[int, ...]) -> bool:
    """True if a result of these dimensions may be what an array has become: of its sizes, but for one that may be split over
    the devices.

    What nothing replaces is donated to be given up, as gradients are.
    """
    others = [(one, other) for one, other in zip(result, array, strict=False) if one != other]
    return len(result) == len(array) and (
        not others or (len(others) == 1 and min(others[0]) > 0 and max(others[0]) % min(others[0]) == 0)
    )
