"""Parser for literals, equivalent to XLA's `HloParserImpl::ParseLiteral`.

There are three ways to the same value: single numbers are parsed here; long arrays as printed by XLA are converted as a
whole (`arrays`); everything else is parsed token by token (`tokens`), which also locates errors. The last two are
imported on first use.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from hlotext.ir.caches import lazy_regex, weighted_cache
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType, TypeKind

if TYPE_CHECKING:
    import numpy as np


def read_literal(text: str, shape: Shape) -> Literal:
    """Parses the text inside `constant( ... )` as a literal of a shape.

    Accepts what XLA's parser accepts, and `{...}` for tuples. A number after `-0` keeps its sign (XLA's parser loses
    it). Raises TermError, with the offset in the text, for anything else.
    """
    return _read_short(text, shape) if len(text) <= 256 else _read(text, shape)


@weighted_cache(1 << 14)
def _read_short(text: str, shape: Shape) -> Literal:
    return _plain(text, shape) or _read(text, shape)


_NUMBER = lazy_regex(r"-?(?:[1-9][0-9]{0,17}|(?<!-)0)")
_DECIMAL = lazy_regex(r"-?(?:[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[+-][0-9]{1,2})?|inf)|nan")
_LARGEST = {"f16": 65_504.0, "bf16": 3e38, "f32": 3e38, "f64": math.inf}
"""Decimals up to here are numbers of the type."""


def _plain(text: str, shape: Shape) -> Literal | None:
    """A number, or a list of them, that is certainly one of the type: made an array when it is asked for.

    Most constants are like this and are never asked for their value, so most texts can be read without numpy.
    """
    if not shape.is_array:
        return None
    words = [text] if not shape.rank else text[1:-1].split(", ")
    if shape.rank and (text != f"{{{', '.join(words)}}}" or shape.dimensions != (len(words),)):
        return None
    type_ = shape.element_type
    if type_.is_integral:
        is_signed = type_.kind is TypeKind.SIGNED
        low, end = (-(1 << type_.bits - 1), 1 << type_.bits - 1) if is_signed else (0, 1 << type_.bits)
        if not all(_NUMBER().fullmatch(word) and low <= int(word) < end for word in words):
            return None
    elif type_.kind is TypeKind.PREDICATE:
        if not all(word in ("true", "false") for word in words):
            return None
    elif (largest := _LARGEST.get(type_.name)) is None or not all(
        _DECIMAL().fullmatch(word) and (word[-1] in "nf" or abs(float(word)) <= largest) for word in words
    ):
        return None
    return Literal(shape, values=functools.partial(_convert, words, type_))


def _convert(words: list[str], type_: ElementType) -> np.ndarray[Any, Any]:
    from hlotext.syntax.literals import conversion

    return conversion.convert(words, type_)


def _read(text: str, shape: Shape) -> Literal:
    from hlotext.syntax.literals import arrays
    from hlotext.syntax.literals.tokens import literal_from_tokens, read_tokens

    if len(text) >= arrays.WORTHWHILE and (literal := arrays.read(text, shape)) is not None:
        return literal
    return literal_from_tokens(read_tokens(text), shape)
