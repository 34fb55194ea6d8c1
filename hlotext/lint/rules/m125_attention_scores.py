"""M125: attention scores, written to memory and read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from hlotext.analysis import Backend, arrays_of, byte_text, memory_space, responsible_frame
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.lint.demanded import demands, least_work
from hlotext.lint.helpers import changes_layout, size_of
from hlotext.lint.products import Product, products
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import WORTH_KERNEL, Context, Report, Rule
from hlotext.lint.small_origins import without_scores
from hlotext.lint.training import is_backward
from hlotext.lint.values import VIEWS, Value, consumers, elements_of, source
from hlotext.lint.wording import sizes

_VIEWED = (VIEWS - traits.COPIES) | {"get-tuple-element"}
_MOVED = traits.REARRANGES_ELEMENTS | traits.COPY_HALVES | {"convert"}


@attrs.frozen
class _Form:
    """Of an array with an element for each pair of a query and a key."""

    elements: int
    lengths: tuple[int, int]
    """The number of queries and that of keys, the smaller first."""

    def stacked(self, shape: Shape | None) -> int:
        """The number of such arrays in an array: one, several that a loop stacks, or 0 for others."""
        elements = elements_of(shape)
        if shape is None or not elements or elements % self.elements:
            return 0
        less, more = self.lengths
        found = [d for d in shape.dimensions if d in (less, more)]
        return elements // self.elements if less in found and more in found and len(found) > 1 else 0


@attrs.frozen(eq=False)
class _Scores:
    """The scores of one place of the program, which may compute them for several blocks of queries."""

    product: Product
    """That of queries and keys, the largest."""
    forms: tuple[_Form, ...]

    def stacked(self, shape: Shape | None) -> int:
        return next((count for form in self.forms if (count := form.stacked(shape))), 0)


class AttentionScores(Rule):
    code = "M125"
    name = "attention-scores"
    title = "attention scores that are written to memory, which a fused kernel avoids"
    waste = "held"
    is_proved = False  # whether there is such a kernel for the case is for the author to say
    is_trade = True
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        found: dict[_Form, list[Product]] = {}
        for product in products(context):
            elements = product.batch * product.rows * product.columns
            if product.batch > 1 and elements > product.batch * product.summed * (
                product.rows + product.columns
            ):
                lengths = min(product.rows, product.columns), max(product.rows, product.columns)
                found.setdefault(_Form(elements, lengths), []).append(product)
        places: dict[object, dict[_Form, list[Product]]] = {}
        for form, same in found.items():
            if any(map(_is_in_blocks, same)):  # a loop computes a block of them in each iteration
                continue
            frame = responsible_frame(same[0].dot)
            places.setdefault((frame.file, frame.line) if frame is not None else form, {})[form] = same
        shapes = [one.shape for one in context.census.by_opcode.get("exponential", ())]
        readers = [operand.instruction.shape for product in products(context) for operand in product.operands]
        for together in places.values():
            scores = _scores(together, shapes, readers)
            if scores is None:  # no softmax of its results is multiplied by values
                continue
            yield from _report(scores, context)


def _scores(
    found: dict[_Form, list[Product]], shapes: list[Shape | None], readers: list[Shape | None]
) -> _Scores | None:
    """Those of matmuls whose results go through a softmax and are multiplied by values.

    Args:
        found: The matmuls of one place of the program.
        shapes: Those of all exponentials.
        readers: Those of all operands of matmuls.
    """
    largest, forms = None, list[_Form]()
    for form, same in found.items():
        spelled = [form, *filter(None, {_ungrouped(form, shape) for shape in shapes})]
        if any(each.stacked(shape) == 1 for each in spelled for shape in shapes) and any(
            each.stacked(shape) for each in spelled for shape in readers
        ):
            forms += spelled
            if largest is None or form.elements > largest[0].elements:
                largest = form, same[0]
    return _Scores(largest[1], tuple(forms)) if largest is not None else None


def _ungrouped(form: _Form, shape: Shape | None) -> _Form | None:
    """The form in an array that keeps queries apart from the heads that share keys, which a matmul takes as its rows."""
    if elements_of(shape) != form.elements or shape is None or form.stacked(shape):
        return None
    for keys, rows in (form.lengths, form.lengths[::-1]):
        if keys not in shape.dimensions:
            continue
        others = list(shape.dimensions)
        others.remove(keys)
        for queries in sorted(others, reverse=True):
            if 1 < queries < rows and rows % queries == 0 and rows // queries in others:
                return _Form(form.elements, (min(keys, queries), max(keys, queries)))
    return None


def _is_in_blocks(product: Product) -> bool:
    """True if a matmul reads a part of an array at a place that iterations count, or what they hand on; a backward pass reads
    what the forward pass stacked, layer by layer."""
    if is_backward(product.dot):
        return False
    for operand in product.operands:
        one = source(operand, _MOVED).instruction
        is_state = one.opcode == "get-tuple-element" and one.operands[0].opcode == "parameter"
        if is_state or one.opcode in traits.SLICES - {"slice"}:
            return True
    return False


def _report(scores: _Scores, context: Context) -> Iterator[Report]:
    # Loops, calls and asynchronous operations have arrays of their own for what is written in place.
    arrays = {
        (one, tuple(index)): size_of(array)
        for one in context.census.instructions
        for index, array in arrays_of(one.shape)
        if scores.stacked(array) and memory_space(array) == 0
    }
    touching = [
        one
        for one in context.graph.sequential_instructions()
        if any(_in_memory(scores, each) for each in (one, *one.operands))
    ]
    if not touching:  # they are not written to memory
        return
    kept = _kept(context)
    turned = _turned([one for one in touching if one in kept], set(touching))
    saved = context.saved_peak(dict.fromkeys([*arrays, *turned], 1.0)) or 0
    seconds = sum(_spared(one, scores, kept.get(one), context) for one in touching)
    seconds += context.prices.together(turned)
    if context.backend is Backend.CPU:  # blocks of queries are not faster there
        seconds = 0.0
    if (
        saved < WORTH_KERNEL * (context.peak or saved) and seconds < WORTH_KERNEL * context.prices.step
    ):  # they are a small part of the peak and of the step
        return
    yield Report(
        scores.product.dot,
        f"attention scores ({sizes(scores.product.dot.shape)}) are written to memory and read again, in arrays of up "
        f"to {byte_text(max(arrays.values()))}",
        f"use {without_scores(context.backend)}, which holds a block of the scores at a time and skips those that a causal "
        "mask excludes",
        seconds=seconds or None,
        peak_bytes=saved,
        is_at_most=True,
        cause=f"scores of {scores.forms[0].lengths}",
        covers=frozenset(part for one in (*touching, *turned) for part in (one, *parts_of(one))),
    )


def _turned(matmuls: Iterable[Instruction], inside: set[Instruction]) -> set[Instruction]:
    """Copies that only turn what these matmuls read or write into the layouts that they take: a kernel has its own."""
    found = set[Instruction]()
    for matmul in matmuls:
        for operand in matmul.operands:
            one = _unviewed(operand)
            while _turns(one) and inside.issuperset(_readers(one)):
                inside = {*inside, one}
                found.add(one)
                one = _unviewed(one.operands[0])
        pending = _readers(matmul)
        while pending:
            one = pending.pop()
            if _turns(one) and one not in found:
                found.add(one)
                pending += _readers(one)
    return found


def _turns(one: Instruction) -> bool:
    return one.opcode in traits.COPIES and changes_layout(one)


def _unviewed(one: Instruction) -> Instruction:
    while one.opcode in _VIEWED and one.operands:
        one = one.operands[0]
    return one


def _readers(one: Instruction) -> list[Instruction]:
    return [user.writer for user, _ in consumers(Value(one), _VIEWED)]


def _in_memory(scores: _Scores, one: Instruction) -> bool:
    return any(scores.stacked(array) and memory_space(array) == 0 for _, array in arrays_of(one.shape))


def _kept(context: Context) -> dict[Instruction, float]:
    """The part of the work of each operation with matmuls that masks of positions leave, in a kernel that skips the rest."""
    asked = demands(context.module)
    kept: dict[Instruction, float] = {}
    for product in products(context):
        _, part = least_work(product.dot, asked)
        kept[product.whole] = max(part, kept.get(product.whole, 0.0))
    return kept


def _spared(one: Instruction, scores: _Scores, kept: float | None, context: Context) -> float:
    """Seconds that all runs of an operation would take less at the most if scores were not in memory: of matmuls the needed
    part of the arithmetic is left, of what is between them only other arrays, for a kernel does the rest meanwhile."""
    least = context.prices.own_least.get(one)
    if least is None or not least.seconds:
        return 0.0
    size = 0.0
    for each in {*one.operands, one}:
        for _, array in arrays_of(each.shape):
            count = scores.stacked(array)
            if count and memory_space(array) == 0:
                size += size_of(array) / count
    then = max(0.0, (least.memory or 0.0) - context.prices.reading(size))
    if kept is not None:
        then = max(then, kept * (least.compute or 0.0)) + least.launch
    return context.prices.seconds(one) * max(0.0, 1 - then / least.seconds)
