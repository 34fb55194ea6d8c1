"""Element order of compare: defaults, and the old and the new words for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hlotext.ir.values.enums import ComparisonOrder, ComparisonType
from hlotext.ir.values.types import ElementType, TypeKind

_TYPES = {
    TypeKind.FLOAT: ComparisonType.FLOAT,
    TypeKind.COMPLEX: ComparisonType.FLOAT,
    TypeKind.SIGNED: ComparisonType.SIGNED,
    TypeKind.UNSIGNED: ComparisonType.UNSIGNED,
    TypeKind.PREDICATE: ComparisonType.UNSIGNED,
}


def default_type(element: ElementType) -> ComparisonType | None:
    """Returns the default of `type=` (`Comparison::DefaultComparisonType`), or None for types that cannot be compared."""
    return _TYPES.get(element.kind)


def default_order(element: ElementType) -> ComparisonOrder | None:
    """Returns the default of `order=` (`Comparison::DefaultOrdering`), or None for types that cannot be compared."""
    return _order_of_type(_TYPES.get(element.kind))


def order_of(attributes: Mapping[str, Any], element: ElementType) -> ComparisonOrder | None:
    """Returns the order of a compare: from `order=`, from `type=` of older text, or by default from the element type.

    Returns None if there is none, or for a word that is not one of XLA's.
    """
    if "order" in attributes:
        found = attributes["order"]
        return found if isinstance(found, ComparisonOrder) else None
    if "type" in attributes:
        return _order_of_type(attributes["type"])
    return default_order(element)


def _order_of_type(type_: Any) -> ComparisonOrder | None:
    if not isinstance(type_, ComparisonType):
        return None
    return ComparisonOrder.PARTIAL if type_ is ComparisonType.FLOAT else ComparisonOrder.TOTAL
