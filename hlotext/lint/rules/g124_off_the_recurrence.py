"""Products of a loop's body that could be one product over all iterations."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import accumulate, pairwise

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.window import SliceDimensions
from hlotext.lint.helpers import size_of
from hlotext.lint.products import Product, concatenated, products
from hlotext.lint.recurrence import apart_from_state, is_made_of, not_of_loops, only_stacked
from hlotext.lint.rounds import Purity, Rounds, Same, behind, same_in_rounds, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.sums import slots_added_to
from hlotext.lint.values import VIEWS, Value, consumers, source
from hlotext.lint.wording import described, every_round


@attrs.frozen(eq=False)
class _Moved:
    """A product that need not wait for the state."""

    why: str
    remedy: str
    held: int
    """Bytes of an iteration that are kept for the one product."""
    read: int
    """Bytes that each iteration reads of it, or writes for it."""
    part: float = 1.0
    """The part of its terms that need not wait."""
    after: frozenset[Instruction] = frozenset()
    """Operations on its result that go with it."""
    without: frozenset[Instruction] = frozenset()
    """Operations of which nothing is left."""
    is_sum: bool = False
    """True for a sum over iterations of products of what they compute. The gradient of a weight is such a sum by itself, so
    that not every author wants to write what avoids it."""


_BEFORE = (
    "move it out of the loop: multiply the rows of all iterations at once before it (x @ w outside of the scan), and "
    "scan over the result"
)
_AFTER = (
    "stack what it multiplies, and multiply the rows of all iterations at once after the loop; for the gradient of a "
    "weight, add a slice of zeros to the matmul's result in each iteration (scanned over), differentiate with respect to "
    "these zeros and not to the weight, and multiply what comes with the stacked inputs (or write a jax.custom_vjp)"
)


class OffTheRecurrence(Rule):
    code = "G124"
    name = "off-the-recurrence"
    title = "small matmuls in a loop that could be one matmul over all iterations"
    waste = "small"
    needs_optimized = True
    yields_to = frozenset({"D107", "G116"})

    def check_module(self, context: Context) -> Iterator[Report]:
        by_body: dict[Computation | None, list[Product]] = {}
        for product in products(context) if context.census.by_opcode.get("while") else ():
            by_body.setdefault(product.whole.computation, []).append(product)
        purity = Purity()
        for rounds in stepped_rounds(context):
            count = context.prices.trips(rounds.loop)
            found = by_body.get(rounds.body)
            if (
                found and count > 1 and rounds.loop not in context.prices.rounds
            ):  # its operands depend on the loop's state
                yield from _reports(rounds, count, found, purity, context)


def _reports(
    rounds: Rounds, count: int, found: list[Product], purity: Purity, context: Context
) -> Iterator[Report]:
    body = _Body(
        rounds,
        same_in_rounds(rounds, purity),
        apart_from_state(rounds, purity, rounds.passed),
        apart_from_state(rounds, purity, not_of_loops(rounds)),
        purity,
        context.backend is Backend.GPU,
    )
    if not any(
        body.waits(product) for product in found
    ):  # no matmul depends on the loop's state, so the iterations are parts of a batch
        return
    together: dict[Instruction, int] = {}
    for product in found:
        together[product.whole] = together.get(product.whole, 0) + context.flops(product.dot)
    moved_along = set[Instruction]()
    for product in found:
        moved = _moved(product, body)
        if moved is None:
            continue
        saved = _saved(product, moved, together[product.whole], count, context)
        if not saved:  # one matmul over all iterations would take as long
            continue
        launch = context.prices.chip.rates.launch
        if launch is not None:  # each of these is launched once rather than in every iteration
            after = moved.after - moved_along - together.keys()
            moved_along |= after
            saved += launch.value * len(after) * context.prices.runs(rounds.body) * (1 - 1 / count)
        held = moved.held * count
        room = context.prices.chip.usable_bytes(0)
        yield Report(
            product.whole,
            f"{'a part of ' if moved.part < 1 else ''}{described(product.dot)} is computed {every_round(count, True)}, "
            f"although {moved.why}",
            f"{moved.remedy}{f'; the stored array takes {byte_text(held)}' if held else ''}",
            flops=context.flops(product.dot),
            seconds=saved,
            is_proved=False
            if moved.is_sum or (room is not None and held + (context.peak or 0) > room)
            else None,
            cause="sums over iterations" if moved.is_sum else "",
        )


@attrs.frozen(eq=False)
class _Body:
    """A loop's body, and the values in it that are known before it runs."""

    rounds: Rounds
    same: Same
    apart: frozenset[Instruction]
    """Instructions that do not depend on the state."""
    given: frozenset[Instruction]
    """The same, without what another loop computed."""
    purity: Purity
    adds_in_products: bool
    """True where a product that is added to a sum is one operation with the addition."""

    def waits(self, product: Product) -> bool:
        return not all(is_made_of(value, self.apart, self.purity) for value in product.operands)

    def is_same(self, value: Value) -> bool:
        return is_made_of(value, self.same.whole, self.purity)


def _moved(product: Product, body: _Body) -> _Moved | None:
    made = size_of(product.dot.shape)
    for side, value in enumerate(product.operands):
        other = product.operands[1 - side]
        if body.is_same(value):
            continue
        if body.is_same(other):
            part = _part(value, body.apart, body.purity)
            if part:
                return _Moved("its operands do not depend on the loop's state", _BEFORE, made, 2 * made, part)
            if after := only_stacked(product.value, body.rounds, body.same):
                rows = size_of(value.instruction.shape)
                return _Moved(
                    "its result is only stacked",
                    "stack the operands, and multiply all of them after the loop",
                    max(0, rows - made),
                    2 * rows,
                    after=after - {product.whole},
                )
        elif additions := _additions(product, value, body):
            rows = size_of(other.instruction.shape)
            return _Moved(
                "its result is only accumulated, and an operand does not depend on the loop's state",
                f"{_BEFORE}: its gradient is then also one matmul",
                rows,
                2 * (rows + additions.read),
                additions.part,
                without=additions.writers - {product.whole},
            )
    return None if any(map(body.is_same, product.operands)) else _accumulated(product, body)


def _accumulated(product: Product, body: _Body) -> _Moved | None:
    """A product of rows that the iterations compute, such as the gradient of a recurrent network's weight.

    It can be one product after the loop if the rows of all iterations are kept. Those that do not depend on the state are
    kept already, as residuals are.
    """
    slots = slots_added_to(product.value, body.rounds, body.same)
    if not slots:
        return None
    writers = frozenset(behind(body.rounds.given[slot]).writer for slot in slots)
    kept = sum(
        max(size_of(value.instruction.shape), size_of(source(value, _CONVERTED).instruction.shape))
        for value in product.operands
        if not is_made_of(value, body.apart, body.purity)
    )
    return _Moved(
        "its result is only accumulated",
        _AFTER,
        kept,
        2 * kept,
        without=writers - {product.whole},
        is_sum=True,
    )


_CONVERTED = VIEWS | traits.CONVERSIONS


@attrs.frozen(eq=False)
class _Additions:
    """Sums over all iterations to which a product of rows that are known before the loop is added."""

    part: float
    """The part of the product's result that comes from such rows."""
    writers: frozenset[Instruction]
    """Operations that add, of which nothing is left."""
    read: int = 0
    """Bytes of the other sums, which the product of the other rows then reads to add to them itself."""


def _additions(product: Product, value: Value, body: _Body) -> _Additions | None:
    """The sums that a product with an operand is only added to, where rows of it are known; None if there are none.

    Compilers join products that share an operand, as gradients do. On GPU the product of one operand alone adds to its sum.
    """
    rounds = body.rounds
    slots = slots_added_to(product.value, rounds, body.same)
    writers = {slot: behind(rounds.given[slot]).writer for slot in slots}
    if not slots or is_made_of(value, body.given, body.purity):
        return _Additions(1.0, frozenset(writers.values())) if slots else None
    parts, along = concatenated(value) or ([], 0)
    shapes = [part.instruction.shape for part in parts]
    ends = [0, *accumulate(shape.dimensions[along] if shape is not None else 0 for shape in shapes)]
    known = {
        place
        for place, part in zip(pairwise(ends), parts, strict=True)
        if is_made_of(part, body.given, body.purity)
    }
    gone = {slot for cut in _cuts(product.value, known) for slot in slots_added_to(cut, rounds, body.same)}
    if not gone:
        return None
    part = sum(end - start for start, end in known) / ends[-1]
    if not body.adds_in_products:
        return _Additions(part, frozenset(writers[slot] for slot in gone))
    left = sum(size_of(rounds.given[slot].shape) for slot in slots if slot not in gone)
    return _Additions(part, frozenset(writers.values()), left)


def _cuts(value: Value, ranges: Collection[tuple[int, int]]) -> Iterator[Value]:
    """Slices of a value that begin and end as one of these ranges does, in a dimension."""
    for user, _ in consumers(value, VIEWS):
        cut = user.instruction.attributes.get("slice")
        if isinstance(cut, SliceDimensions) and any(
            (one.start, one.limit) in ranges for one in cut.dimensions
        ):
            yield user


def _part(value: Value, apart: frozenset[Instruction], purity: Purity) -> float:
    """The part of an operand's summed elements that do not depend on the state: all, or what is concatenated of such."""
    if is_made_of(value, apart, purity):
        return 1.0
    joined = concatenated(value)
    if joined is None:
        return 0.0
    sizes = [size_of(part.instruction.shape) for part in joined[0]]
    free = sum(size for size, part in zip(sizes, joined[0], strict=True) if is_made_of(part, apart, purity))
    return free / sum(sizes) if sum(sizes) else 0.0


def _saved(product: Product, moved: _Moved, flops: int, count: int, context: Context) -> float:
    """Seconds saved in all runs, or 0: one product reads what is the same once, and is bound by its operations.

    `flops` are those of all products that run as one operation with it.
    """
    prices = context.prices
    least = prices.own_least.get(product.whole)
    if least is None or not flops:
        return 0.0
    times = prices.runs(product.whole.computation)
    shapes = (product.dot.shape, *(operand.shape for operand in product.dot.operands[:2]))
    wide = max(size_of(shape) for shape in shapes)
    narrow = sum(size_of(shape) for shape in shapes) - wide
    part = moved.part * context.flops(product.dot) / flops
    compute = (least.compute or 0.0) * times * part
    once = prices.reading(narrow) * times + prices.reading(wide) * (times / count)
    left = max(compute, once) + prices.reading(moved.read) * times / 2
    gone = prices.seconds(product.whole) * part + prices.together(moved.without)
    if moved.is_sum:
        # In fast memory, whose rate only the compiler knows, reading and writing it still takes time.
        took, step = prices.compiler_seconds(product.whole), prices.compiler_step
        if took > gone:
            return max(0.0, took - left) * prices.step / step
    return max(0.0, gone - left)
