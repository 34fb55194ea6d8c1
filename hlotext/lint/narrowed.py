"""A program as it would be in 32-bit floats: the price of computing in 64 bits, by the same models."""

from __future__ import annotations

import re

from hlotext import memory
from hlotext.analysis import Backend
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.source import Source
from hlotext.lint.helpers import pieces
from hlotext.lint.price import Prices, prices_of
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS
from hlotext.semantics.infer import infer_shape
from hlotext.syntax.read import read_tolerantly

_WIDE = re.compile(r"\b(?:f64|c128)(?=\[)")
_NARROW = {"f64": "f32", "c128": "c64"}
_ONLY_CONVERTS = VIEWS | {"convert", "parameter"}


def saved_by_narrowing(context: Context) -> tuple[float, int | None] | None:
    """Returns seconds and peak bytes saved if everything in f64 and c128 had half the width.

    None on TPU, where the emulation of f64 is not modeled, and if the narrow text cannot be read. Kernels, fusions and
    schedule are kept.
    """
    if context.backend is Backend.TPU:
        return None
    text = _WIDE.sub(lambda found: _NARROW[found[0]], str(context.module))
    read = read_tolerantly(Source(text, context.module.name), infer_shape)
    if not read.modules or any(one.severity is Severity.ERROR for one in read.diagnostics):
        return None
    narrow = read.modules[0]
    prices = prices_of(narrow, context.backend, context.chip, context.trips, context.folders_chip)
    idle = sum(prices.seconds(one) for one in _conversions(prices))
    seconds = max(0.0, context.prices.step - prices.step + idle)
    if context.peak is None:
        return seconds, None
    try:
        after = memory.assign(narrow, context.backend, places_fast_memory=False)
    except memory.MemoryModelError:
        return seconds, None
    assert context.assignment is not None
    return seconds, max(0, context.assignment.run_bytes - after.run_bytes)


def _conversions(prices: Prices) -> list[Instruction]:
    """Operations that do nothing but convert, and now from a type to itself."""
    found = []
    for time in prices.estimate.instructions:
        one = time.instruction
        parts = pieces(one)
        if (
            any(part.opcode == "convert" for part in parts)
            and {part.opcode for part in parts} <= _ONLY_CONVERTS
        ):
            before = one.operands[0].shape if len(one.operands) == 1 else None
            same = before is not None and one.shape is not None and before.is_array and one.shape.is_array
            if same and before.element_type is one.shape.element_type:  # type: ignore[union-attr]
                found.append(one)
    return found
