"""Shortcuts for attributes that are one word of a list, or a list of such words."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from hlotext.ir.values.enums import (
    ComparisonDirection,
    ComparisonOrder,
    ComparisonType,
    CustomCallApiVersion,
    CustomCallSchedule,
    FftType,
    FusionKind,
    Precision,
    PrecisionAlgorithm,
    RandomAlgorithm,
    RandomDistribution,
    TransposeA,
)


def operand_precision(text: str) -> tuple[Precision, ...] | None:
    """Parses `{highest,default}`; None if the grammar must."""
    words = [_PRECISIONS.get(word) for word in text[1:-1].split(",")]
    found = tuple(word for word in words if word is not None)
    return found if len(found) == len(words) else None


_PRECISIONS = {str(member): member for member in Precision}


def _word(*lists: type[StrEnum]) -> Callable[[str], StrEnum | None]:
    """A reader of one word of some lists, in the letters in which XLA prints it."""
    members: dict[str, StrEnum] = {str(member): member for words in lists for member in words}
    return members.get


algorithm = _word(PrecisionAlgorithm, RandomAlgorithm)
comparison_direction = _word(ComparisonDirection)
comparison_order = _word(ComparisonOrder)
comparison_type = _word(ComparisonType)
custom_call_api_version = _word(CustomCallApiVersion)
custom_call_schedule = _word(CustomCallSchedule)
fft_type = _word(FftType)
fusion_kind = _word(FusionKind)
random_distribution = _word(RandomDistribution)
transpose_a = _word(TransposeA)
