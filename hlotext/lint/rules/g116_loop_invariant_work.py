"""Work of a loop's body that gives the same in every round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlotext.analysis import Backend, byte_text, total_of
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import (
    connected,
    is_of_factors,
    is_of_fourier_transform,
    is_of_own_function,
    is_solvers,
    size_of,
)
from hlotext.lint.moving import moved_array
from hlotext.lint.products import SAME, Product, concatenated, products
from hlotext.lint.repairs import Hoist
from hlotext.lint.rounds import Purity, Rounds, communicates, parts_of, same_in_rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, consumers, elements_of, formula, is_computed_from, is_counted
from hlotext.lint.wording import described, every_round, sizes

_FILLED = frozenset(
    {"bitcast", "broadcast", "constant", "convert", "copy", "iota", "parameter", "reshape", "tuple"}
)
"""Opcodes of what only fills an array: memory that a round writes over must be filled anew."""
_READING = (
    ELEMENTWISE
    | traits.CONTRACTIONS
    | traits.REDUCTIONS
    | traits.SLICES
    | traits.REPEATS_ELEMENTS
    | {"concatenate", "gather"}
)
"""Opcodes that do not write over an operand that the program needs whole."""
_MOST_STEPS = 100
_MUCH = 0.02
"""Share of the peak from which on holding the result is a price that the author may not want to pay."""


class LoopInvariantWork(Rule):
    code = "G116"
    name = "loop-invariant-work"
    title = "loop-invariant work in the body of a loop"
    waste = "again"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        purity = Purity()
        by_body: dict[Computation | None, list[Product]] = {}
        for product in products(context) if context.census.by_opcode.get("while") else ():
            by_body.setdefault(product.whole.computation, []).append(product)
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            if count > 1:  # the loop runs once
                yield from _reports(rounds, count, purity, by_body.get(rounds.body, ()), context)


def _reports(
    rounds: Rounds, count: int, purity: Purity, multiplied: Iterable[Product], context: Context
) -> Iterator[Report]:
    same = same_in_rounds(rounds, purity)
    runs = context.prices.runs(rounds.loop.computation)
    seconds: dict[Instruction, float] = {}
    for one in rounds.body:
        if one in same.whole and _is_work(one, context):
            seconds[one] = context.prices.seconds(one)
        elif one in same.parts:
            seconds[one] = context.prices.seconds(one) * _fraction(one, same.parts[one])
    sums = {}
    for product in multiplied:
        if product.whole not in seconds and (part := _same_terms(product, same.whole)):
            added = size_of(product.dot.shape) * context.runs(product.whole)
            time = context.prices.seconds(product.whole) * part - context.prices.reading(added)
            if time > 0:
                seconds[product.whole], sums[product.whole] = time, product
    seconds = {one: time for one, time in seconds.items() if time}
    for group in connected(seconds):
        if _is_of_tables(group) or all(map(_is_inside_solver, group)):
            continue  # it is part of a Fourier transform, a sampler or a solver, which the program cannot hoist
        first = max((one for one in seconds if one in group), key=seconds.__getitem__)
        held = sum(total_of(one.shape).allocated_bytes for one in group if _leaves(one, group))
        saved = sum(seconds[one] for one in group) * (count - 1) / count
        saved -= context.prices.reading(held * count) * runs * _made_again(first, group, rounds)
        if saved <= 0:  # operations that now compute it themselves would have to read it
            continue
        others = (
            f", together with {pluralize(len(group) - 1, 'operation')} that {'feeds' if len(group) == 2 else 'feed'} or "
            f"{'uses' if len(group) == 2 else 'use'} it"
            if len(group) > 1
            else ""
        )
        half = "a part of " if first in same.parts or first in sums else ""
        remedy = (
            f"compute it before the loop and use the result, which occupies {byte_text(held)} during the loop"
        )
        if _is_sort_of_scatter(first):
            remedy = (
                "sort the indices before the loop (jnp.argsort), take what is scattered in that order, and pass "
                "indices_are_sorted=True: XLA sorts them for the scatter"
            )
        if first in sums:
            remedy = (
                "multiply the loop-invariant part by its rows of the matrix before the loop (fixed @ w[:k]), and add the "
                "result in each iteration, instead of multiplying the concatenation"
            )
        widens = _only_widens(group)
        yield Report(
            first,
            f"{half}{described(first)} is recomputed {every_round(count, rounds.loop not in context.prices.rounds)}"
            f"{others}",
            _padded(group) or remedy,
            seconds=saved,
            covers=frozenset(group),
            repair=Hoist(rounds.loop, frozenset(group)) if same.whole.issuperset(group) else None,
            is_proved=False if widens and context.peak and held > _MUCH * context.peak else None,
        )


def _same_terms(product: Product, whole: frozenset[Instruction]) -> float:
    """The part of the terms of a product that are the same in every round: those of arrays that were concatenated along the
    dimension that is summed."""
    summed = product.summed * product.batch  # GPU compilers split long sums
    for side, value in enumerate(product.operands):
        joined = concatenated(value)
        if joined is None or not _is_same(product.operands[1 - side], whole):
            continue
        parts, along = joined
        shapes = [part.instruction.shape for part in parts]
        sizes = [shape.dimensions for shape in shapes if shape is not None and shape.is_array]
        if len(sizes) < len(parts) or sum(size[along] for size in sizes) != summed:
            continue
        if summed in sizes[0][along + 1 :]:
            continue  # which of them is summed?
        fixed = [size[along] for size, part in zip(sizes, parts, strict=True) if _is_same(part, whole)]
        return sum(fixed) / summed if summed else 0.0
    return 0.0


def _is_same(value: Value, whole: frozenset[Instruction]) -> bool:
    """True if a value, possibly inside fusions, is computed from values that are the same in every iteration."""
    return is_computed_from(
        value,
        lambda one: one in whole or one.opcode in ("constant", "iota"),
        lambda one: one.opcode in SAME | {"broadcast", "concatenate"},
        _MOST_STEPS,
    )


def _made_again(first: Instruction, group: set[Instruction], rounds: Rounds) -> int:
    """The number of other operations of the body that compute the same mask of positions inside, and would read it.

    Compilers repeat what is computed of nothing wherever it is used: before the loop it is one array, which all of them read.
    """
    made = Value(first)
    if not is_counted(made):
        return 0
    compared = {formula(Value(part)) for part in parts_of(first) if part.opcode == "compare"}
    return sum(
        any(part.opcode == "compare" and formula(Value(part)) in compared for part in parts_of(one))
        for one in rounds.body
        if one not in group and one.opcode == "fusion"
    )


def _is_of_tables(group: set[Instruction]) -> bool:
    """True if a compiler makes all of it for a Fourier transform, or JAX in a function of its own, of constants alone."""
    return all(
        (is_of_fourier_transform(one) or is_of_own_function(one))
        and all(operand in group or operand.opcode in traits.KNOWN_VALUES for operand in one.operands)
        for one in group
    )


def _is_inside_solver(instruction: Instruction) -> bool:
    """True if it is a step of a linear algebra function, but not the factorization, which the program asks for."""
    if is_of_factors(instruction):
        return True
    opcodes = {part.opcode for part in parts_of(instruction)}
    return is_solvers(instruction) and opcodes <= _FILLED | ELEMENTWISE


def _padded(group: set[Instruction]) -> str:
    """The remedy where all that is done is a pad that no operation of the program asks for; empty for other work."""
    for one in group:
        pads = [part for part in parts_of(one) if part.opcode == "pad"]
        named = any(part.metadata is not None and part.metadata.op_name for part in (one, *pads))
        if not pads or named or not {part.opcode for part in parts_of(one)} <= _FILLED | {"pad"}:
            return ""
    first = next(part for one in group for part in parts_of(one) if part.opcode == "pad")
    return (
        f"the compiler pads {sizes(first.operands[0].shape)} to {sizes(first.shape)} for its kernel: use that size in the "
        "program, or pad before the loop"
    )


def _is_sort_of_scatter(one: Instruction) -> bool:
    """True if a compiler sorts the indices of a scatter."""
    name = one.metadata.op_name if one.metadata is not None else ""
    return one.opcode == "sort" and name.rpartition("/")[2].startswith("scatter")


def _is_work(one: Instruction, context: Context) -> bool:
    """True if hoisting it saves anything: it neither moves an array into fast memory nor fills memory that is
    overwritten.
    """
    if one.opcode in ("while", "conditional"):
        return True
    if one.opcode in ROLES or communicates(one):
        return False
    if one.opcode in ("copy", "transpose"):
        return moved_array(one, context) is not None
    opcodes = {part.opcode for part in parts_of(one)}
    if not opcodes <= _FILLED:
        # A fusion of slices alone, on TPU, fetches them.
        return context.backend is not Backend.TPU or not opcodes <= _FILLED | {"dynamic-slice", "slice"}
    return moved_array(one, context) is not None or bool(one.operands and _widens(one)) or _is_table(one)


def _is_table(one: Instruction) -> bool:
    """True if values are repeated, or counted, to an array that is only read: nothing is written over it, nor does a loop or
    kernel take it, which might. A single value is no work: XLA repeats it in the loop wherever the program does.
    """
    opcodes = {part.opcode for part in parts_of(one)}
    given = sum(size_of(operand.shape) for operand in one.operands if elements_of(operand.shape) > 1)
    if not opcodes & {"broadcast", "iota"} or not (given or "iota" in opcodes) or given >= size_of(one.shape):
        return False
    return not one.is_root and all(
        user.instruction.opcode in _READING for user, _ in consumers(Value(one), SAME)
    )


def _widens(one: Instruction) -> bool:
    """True if an array is only converted to another type."""
    return any(part.opcode == "convert" for part in parts_of(one)) and all(
        operand.shape is not None and one.shape is not None and operand.shape.is_array and one.shape.is_array
        and operand.shape.element_count == one.shape.element_count
        for operand in one.operands
    )  # fmt: skip


def _only_widens(group: set[Instruction]) -> bool:
    return all({part.opcode for part in parts_of(one)} <= _FILLED and _widens(one) for one in group)


def _fraction(one: Instruction, ranges: tuple[tuple[int, int, int], ...]) -> float:
    """The part of a result that its ranges are."""
    shape = one.shape
    if shape is None or not shape.is_array:
        return 0.0
    dimension = ranges[0][0]
    size = shape.dimensions[dimension]
    return sum(last - first for d, first, last in ranges if d == dimension) / size if size else 0.0


def _leaves(one: Instruction, group: set[Instruction]) -> bool:
    """True if something outside of the set uses it."""
    return any(user not in group for user in one.users)
