"""Random numbers that the vector unit of a TPU computes by threefry, where the chip's own generator takes no time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlotext.analysis import Backend
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import elements_of

_ROTATIONS = 20
"""Rotations of one block of threefry-2x32, one in each round."""
_WORD = 4
_LEAST = 1 << 16
"""Numbers from which on a draw counts: fewer are keys."""
_MUCH = 0.03
"""Part of the step from which on another generator is worth other numbers."""


class Threefry(Rule):
    is_proved = False  # the numbers would be others, and differ between platforms
    backends = frozenset({Backend.TPU})
    needs_optimized = True
    needs_any = frozenset({"shift-right-logical"})

    def check_module(self, context: Context) -> Iterator[Report]:
        rotated: dict[Computation, Counter[int]] = {}
        for one in context.census.by_opcode.get("shift-right-logical", ()):
            count = elements_of(one.shape)
            if count >= _LEAST and one.computation is not None:
                rotated.setdefault(one.computation, Counter())[count] += 1
        if not rotated:  # no large array is rotated, as threefry does
            return
        saved: dict[Instruction, float] = {}
        drawn: dict[Instruction, int] = {}
        for time in context.prices.estimate.instructions:
            whole = time.instruction
            sizes = rotated.get(whole.called_computations[0]) if whole.opcode == "fusion" else None
            if sizes and (draws := sum(count // _ROTATIONS * size for size, count in sizes.items())):
                drawn[whole] = draws * time.runs
                saved[whole] = _saved(whole, draws, context)
        dear = {whole: drawn[whole] for whole, seconds in saved.items() if seconds}
        if not dear or sum(saved.values()) < _MUCH * context.prices.step:  # random numbers take little time
            return
        largest = max(dear, key=lambda whole: (saved[whole], whole.name))
        yield Report(
            _rotation(largest),
            f"{sum(dear.values()):,} random numbers are computed by threefry: 20 rounds of integer arithmetic on the vector "
            "unit for each, which take longer than reading and writing the arrays",
            "use the chip's generator (jax.random.key(seed, impl='rbg'), or jax_default_prng_impl='rbg'), which draws "
            "different numbers, or draw fewer: dropout in a fused attention kernel or not on attention scores, one mask "
            "for several heads",
            seconds=sum(saved.values()),
            is_at_most=True,  # what the generator itself takes is not known
            cause="random numbers",
        )


def _rotation(fusion: Instruction) -> Instruction:
    """The first of the rotations in a fusion, whose Python line is that of the draw."""
    words = (
        one
        for one in fusion.called_computations[0].instructions
        if one.opcode in ELEMENTWISE and _is_word(one)
    )
    return max(words, key=lambda one: (one.opcode == "shift-right-logical", elements_of(one.shape)))


def _saved(fusion: Instruction, drawn: int, context: Context) -> float:
    """Seconds of all runs without the rounds, which take no time beside a longer matmul in the same fusion. The generator
    writes its words to memory, where the fusion reads them."""
    prices, least = context.prices, context.prices.own_least.get(fusion)
    rates = prices.chip.rates
    if least is None or rates.vector is None or not least.seconds:
        return 0.0
    words = [one for one in fusion.called_computations[0].instructions if _is_word(one)]
    rounds = sum(elements_of(one.shape) for one in words if one.opcode in ELEMENTWISE)
    peaks = ((flops, rates.peak(kind)) for kind, flops in least.products.items())
    multiplied = sum(flops / peak.value for flops, peak in peaks if peak is not None)
    written = prices.reading(_WORD * drawn)
    moved = (least.memory or 0.0) + written
    then = written + max((least.compute or 0.0) - rounds / rates.vector.value, multiplied, moved)
    return prices.seconds(fusion) * max(0.0, 1 - (then + least.launch) / least.seconds)


def _is_word(one: Instruction) -> bool:
    return one.shape is not None and one.shape.is_array and one.shape.element_type.name == "u32"
