"""Matmuls, and the operations around them, in a wide type although the data was narrow."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from hlotext import cost
from hlotext.analysis import Backend, responsible_frame
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import is_product_call, size_of
from hlotext.lint.products import Multiplication, multiplications
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import before_loops
from hlotext.lint.values import VIEWS, Value, behind_views, consumers, entered, fetched
from hlotext.lint.wording import sizes

_PASSING = VIEWS | {
    "transpose",
    "slice",
    "dynamic-slice",
    "concatenate",
    "pad",
    "reverse",
    "broadcast",
    "gather",
}
FETCHING = _PASSING | {"copy", "copy-done", "copy-start"}
"""Opcodes behind which an argument is itself or a part of itself: TPUs fetch weights into fast memory first."""
_SMALL = 8
"""Minimum ratio of a result's size to an operand whose type hardly matters, such as a broadcast table."""
_MOST_STEPS = 400
_MOST_VALUES = 20_000
_DEEPEST = 120
"""Operations that a value is followed back through."""


class UpcastDot(Rule):
    needs_optimized = True

    def applies_to(self, context: Context) -> bool:
        # The CPU compiler itself widens 16-bit operands, for which it has no product.
        return super().applies_to(context) and context.backend is not Backend.CPU

    def check_module(self, context: Context) -> Iterator[Report]:
        every = [one for one in multiplications(context) if _is_wide(one)]
        if not every:  # no matmul has upcast operands (by default, a TPU's matmuls read f32 as bf16)
            return
        narrow = _Narrow({(one.dot, one.value.fusions): one for one in every}, _is_mostly_narrow(context))
        chosen = [one for one in every if all(map(narrow.was, one.operands)) or _is_by_weight(one, narrow)]
        found = {one: _around(one, narrow) for one in chosen}
        wholes = {one.whole for one in found}
        if not found:  # every matmul with f32 operands also depends on wide data
            return
        halved = {one for around in found.values() for one in around}
        halved |= {one.whole for one in found if _is_f32(one.whole) and _is_passed_on(one)}
        largest = max(found, key=lambda one: sum(size_of(array.shape) for array in found[one]), default=None)
        made = {(one.dot, one.value.fusions): one for one in found}
        first = {one: _first_wide(one, made) for one in found}
        lines = {one: _line(first[one]) for one in found}
        origins = {line for one, line in lines.items() if line != _line(one)}
        for product, around in found.items():
            beside = [one for one in around if one not in wholes]
            factors = " and ".join(sizes(one.shape) for one in product.dot.operands[:2])
            is_by_weight = any(map(_is_f32_argument, product.operands))
            cause = "because its weights are f32" if is_by_weight else "from upcast operands"
            yield Report(
                product.dot,
                f"the {_kind(product)} of {factors} is computed in f32 {cause}",
                _CAST if is_by_weight else _keeping_narrow(first[product], narrow),
                flops=context.flops(product.dot),
                seconds=_spared(product, halved, context)
                + sum(_less_moved(one, halved, context) for one in beside),
                # Memory is one for all of them: what falls is the peak.
                peak_bytes=context.saved_peak(dict.fromkeys(halved, 0.5)) if product is largest else 0,
                is_at_most=is_by_weight,  # weights that are cast take memory
                cause=lines[product] if lines[product] in origins else "",
            )


def _line(product: Multiplication) -> str:
    frame = responsible_frame(product.dot)
    return f"{frame.file}:{frame.line}" if frame is not None else ""


def _first_wide(
    product: Multiplication, made: Mapping[tuple[Instruction, tuple[Instruction, ...]], Multiplication]
) -> Multiplication:
    """The matmul whose result makes another one wide, element by element, and so on; the matmul itself if none does."""
    seen = {product}
    while len(seen) < _DEEPEST:
        before = next((one for operand in product.operands if (one := _product_of(operand, made))), None)
        if before is None or before in seen:
            break
        seen.add(before)
        product = before
    return product


def _product_of(
    value: Value, made: Mapping[tuple[Instruction, tuple[Instruction, ...]], Multiplication]
) -> Multiplication | None:
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        if (one, value.fusions) in made:
            return made[one, value.fusions]
        if not one.operands or one.opcode not in _PASSING | ELEMENTWISE:
            break
        value = max(value.operands(), key=_elements)
    return None


_CAST = (
    "cast the weights to the type of the other operand, which is upcast to match them (w.astype(x.dtype)), or store them so; "
    "preferred_element_type=f32 keeps the accumulation in f32"
)


def _keeping_narrow(product: Multiplication, narrow: _Narrow) -> str:
    return (
        f"keep the operands narrow{_where(product, narrow)}: downcast values that are added to them, such as "
        "position embeddings, and values that had to be f32, such as the output of a normalization; "
        "preferred_element_type=f32 keeps the accumulation "
        "in f32"
    )


def _kind(product: Multiplication) -> str:
    """Its name in a message: TPUs write products of matrices as convolutions too."""
    is_product = product.dot.opcode == "dot" or cost.product_sizes(product.dot) is not None
    return "matmul" if is_product else "convolution"


def _where(product: Multiplication, narrow: _Narrow) -> str:
    """The line at which an operand becomes wide, of two the one of which more than the conversion is seen."""
    found = [one for operand in product.operands if (one := narrow.widening(operand)) is not None]
    for convert, _ in sorted(found, key=lambda one: not one[1]):
        if (frame := responsible_frame(convert)) is not None:
            return f" (upcast to f32 at {frame.file}:{frame.line})"
    return ""


def _spared(product: Multiplication, halved: Container[Instruction], context: Context) -> float:
    """Seconds that a product takes less: at the peak of the narrow type, with half of the bytes of what is wide for it."""
    rates = context.prices.chip.rates
    wide, half = rates.peak("tf32"), rates.peak("bf16")
    ratio = 0.5 if wide is None or half is None else min(1.0, max(0.5, wide.value / half.value))
    least = context.prices.own_least.get(product.whole)
    bound, moves = (least.compute or 0.0, least.memory or 0.0) if least is not None else (0.0, 0.0)
    now = max(bound, moves)
    if not now:
        return 0.0
    less = _halved_bytes(product.whole, halved)
    after = max(bound * ratio, moves - context.prices.reading(less))
    return context.prices.seconds(product.whole) * max(0.0, 1 - after / now)


def _less_moved(one: Instruction, halved: Container[Instruction], context: Context) -> float:
    """Seconds that an operation takes less because half of some arrays that it reads and writes is gone."""
    less = context.prices.reading(_halved_bytes(one, halved)) * context.runs(one)
    return min(context.prices.seconds(one), less)


def _halved_bytes(one: Instruction, halved: Container[Instruction]) -> float:
    """Bytes by which what an operation reads and writes falls."""
    arrays = {behind_views(operand) for operand in one.operands} | {one}
    return sum(size_of(array.shape) / 2 for array in arrays if array in halved)


def _is_passed_on(product: Multiplication) -> bool:
    """True if a result goes to matmuls and results of the program alone, element by element: what is added up, as softmax
    does, is wanted in f32."""
    pending, seen = [product.value], {product.value}
    while pending and len(seen) < _MOST_STEPS:
        for user, _ in consumers(pending.pop(), VIEWS | {"convert"}):
            one = user.instruction
            if one.opcode in ("dot", "convolution") or (one.opcode == "tuple" and one.is_root):
                continue
            if one.opcode not in ELEMENTWISE:
                return False
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return not pending


def _is_f32_argument(value: Value) -> bool:
    """True if a value is an f32 argument of the program, or a part of one: weights that were never cast."""
    argument = argument_behind(value)
    return argument is not None and _is_f32(argument)


def argument_behind(value: Value, through: Container[str] = FETCHING) -> Instruction | None:
    """Returns the program argument that a value is, or is a part of, looking through loops; None for other values."""
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        outer = before_loops(value)
        if outer != value:
            value = outer
        elif (array := fetched(one)) is not None:
            value = Value(array)
        elif one.opcode in through and one.operands:
            value = value.operands()[0]
        else:
            break
    one = value.instruction
    home = one.computation
    is_entrys = home is not None and home.module is not None and home is home.module.entry
    return one if one.opcode == "parameter" and is_entrys else None


def _is_by_weight(product: Multiplication, narrow: _Narrow) -> bool:
    """True if only weights make a matmul wide, in a program that is narrow elsewhere, and its result is narrowed again."""
    return narrow.has_wide_weights and narrow.is_of_weights(product) and _is_narrowed(product)


def _is_mostly_narrow(context: Context) -> bool:
    """True if most of the FLOPs of matmuls have operands of at most 16 bits."""
    every = multiplications(context)
    flops = {one: context.flops(one.dot) for one in every}
    narrow = sum(flops[one] for one in every if all(map(_is_narrow, one.dot.operands[:2])))
    return 2 * narrow >= sum(flops.values()) > 0


def _is_narrowed(product: Multiplication) -> bool:
    """True if a result goes only to conversions to at most 16 bits and to matmuls, element by element: logits are summed up,
    and results that are returned in f32 are wanted so."""
    pending, seen, is_cast = [product.value], {product.value}, False
    while pending:
        if len(seen) > _MOST_STEPS:
            return False
        value = pending.pop()
        if value.instruction.is_root and not value.fusions:
            return False
        for user, _ in consumers(value, VIEWS):
            one = user.instruction
            if (
                (one.opcode == "convert" and _is_narrow(one))
                or one.opcode in ("dot", "convolution")
                or is_product_call(one)
            ):
                is_cast = True
            elif one.opcode not in ELEMENTWISE | {"fusion"}:
                return False
            elif user not in seen:
                seen.add(user)
                pending.append(user)
    return is_cast


def _is_wide(product: Multiplication) -> bool:
    return any(
        operand.shape is not None and operand.shape.is_array and operand.shape.element_type.name == "f32"
        for operand in product.dot.operands[:2]
    )


class _Narrow:
    """32-bit values computed only from data of at most 16 bits and small tables."""

    def __init__(
        self,
        found: dict[tuple[Instruction, tuple[Instruction, ...]], Multiplication],
        has_wide_weights: bool = False,
    ) -> None:
        self._products = found
        self.has_wide_weights = has_wide_weights
        """True if f32 weights do not make the results of matmuls wide: elsewhere the program is narrow."""
        self._known: dict[tuple[Instruction, tuple[Instruction, ...]], bool] = {}
        self.widened: dict[Instruction, None] = {}
        self._depth = 0

    def was(self, value: Value) -> bool:
        """True if a value was narrow before something made it wide."""
        value = entered(value)
        key = value.instruction, value.fusions
        if key not in self._known:
            if len(self._known) > _MOST_VALUES or self._depth > _DEEPEST:
                return False
            self._known[key] = False  # through a loop of its own values nothing is shown
            self._depth += 1
            self._known[key] = self._was(value)
            self._depth -= 1
        return self._known[key]

    def _was(self, value: Value) -> bool:
        one = value.instruction
        if (one, value.fusions) in self._products:
            product = self._products[one, value.fusions]
            return all(map(self.was, product.operands)) or (
                self.has_wide_weights and self.is_of_weights(product)
            )
        shape = one.shape
        if shape is None or not shape.is_array or not shape.element_type.is_floating:
            return False
        if shape.element_type.bits <= 16:
            return one.opcode not in ("constant", "iota")
        if one.opcode == "get-tuple-element" and (one.operands[0], value.fusions) in self._products:
            return self.was(value.operands()[0])
        if one.opcode == "convert":
            before = one.operands[0].shape
            return before is not None and before.element_type.is_floating and self.was(value.operands()[0])
        if one.opcode in _PASSING and one.operands and one.opcode != "parameter":
            return self.was(value.operands()[0])
        if one.opcode in ELEMENTWISE:
            size = shape.element_count or 0
            large = [o for o in value.operands() if _SMALL * _elements(o) > size and not _is_filled(o)]
            return bool(large) and all(map(self.was, large))
        return False

    def is_of_weights(self, product: Multiplication) -> bool:
        """True if one operand was narrow, and the other is an f32 argument."""
        left, right = product.operands
        return any(_is_f32_argument(one) and self.was(other) for one, other in ((left, right), (right, left)))

    def widening(self, value: Value) -> tuple[Instruction, bool] | None:
        """The conversion that made a value wide, and whether anything was computed since; None for a product."""
        is_computed = False
        for _ in range(_DEEPEST):
            value = entered(value)
            one = value.instruction
            if not one.operands:
                return None
            if one.opcode == "convert" and _is_narrow(one.operands[0]):
                return one, is_computed
            if one.opcode == "convert" or one.opcode in _PASSING:
                value = value.operands()[0]
            elif one.opcode in ELEMENTWISE:
                is_computed = True
                value = max(value.operands(), key=_elements)
            else:
                return None
        return None


def _is_narrow(one: Instruction) -> bool:
    return one.shape is not None and one.shape.is_array and one.shape.element_type.bits <= 16


def _repeated(value: Value) -> Value:
    """The value that broadcasts, bitcasts and conversions hand on; the value itself if it is of another kind."""
    for _ in range(_MOST_STEPS):
        value = entered(value)
        if value.instruction.opcode not in _REPEATING or not value.instruction.operands:
            break
        value = value.operands()[0]
    return value


_REPEATING = frozenset({"broadcast", "bitcast", "convert"})


def _elements(value: Value) -> int:
    """Elements of a value, of a broadcast those that it repeats."""
    shape = _repeated(value).instruction.shape
    return (shape.element_count or 0) if shape is not None and shape.is_array else 0


def _is_filled(value: Value) -> bool:
    made = _repeated(value).instruction
    return made.opcode in ("constant", "iota") or (
        made.shape is not None and made.shape.element_type.name == "pred"
    )


def _around(product: Multiplication, narrow: _Narrow) -> list[Instruction]:
    """Instructions that only produce the wide operands; each belongs to the first product that reads it."""
    found: list[Instruction] = []
    for operand in product.operands:
        value = operand
        for _ in range(_MOST_STEPS):
            if value.fusions:
                one = value.instruction
                if one.opcode == "parameter":
                    value = Value(value.fusions[-1].operands[one.parameter_number or 0], value.fusions[:-1])
                elif one.opcode in VIEWS | {"convert", "transpose"} and one.operands:
                    value = value.operands()[0]
                else:
                    break
                continue
            one = value.instruction
            if one.opcode in ("bitcast", "get-tuple-element") and one.operands:
                value = Value(one.operands[0])
                continue
            if one.opcode in ("fusion", "convert", "copy") and one not in narrow.widened and _is_f32(one):
                narrow.widened.setdefault(one)
                found.append(one)
            break
    return found


def _is_f32(one: Instruction) -> bool:
    return one.shape is not None and one.shape.is_array and one.shape.element_type.name == "f32"
