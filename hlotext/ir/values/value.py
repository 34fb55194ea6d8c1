"""Base class of frozen values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from hlotext.ir.foreign_names import explain_frozen, text_formatted


class Value:
    """Base class of immutable values, which provides `__repr__`. Subclasses are `attrs.frozen(repr=False)`.

    Generating `__repr__` for each class would take a third of the time of creating the class on import.
    """

    __slots__ = ()
    __attrs_attrs__: ClassVar[tuple[attrs.Attribute[Any], ...]]

    def __init_subclass__(cls) -> None:
        explain_frozen(cls)

    def __repr__(self) -> str:
        fields = (
            f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__ if field.repr
        )
        return f"{type(self).__qualname__}({', '.join(fields)})"

    __format__ = text_formatted

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return mimebundle(self)


# ---- in notebooks

_views: list[Callable[[Any], str | None]] = []


def install_view(view: Callable[[Any], str | None]) -> None:
    """Installs the function that renders values and nodes as HTML in notebooks, and returns None for anything else."""
    _views[:] = [view]


def mimebundle(
    value: Any, include: Any = None, exclude: Any = None, *, text: str | None = None
) -> dict[str, str]:
    """Returns the representations of a value for Jupyter (`_repr_mimebundle_`): its `repr`, and HTML if a view is
    installed.

    `text` replaces a `repr` that is not meant for people.
    """
    bundle = {"text/plain": repr(value) if text is None else text}
    found = _views[0](value) if _views else None
    if found is not None:
        bundle["text/html"] = found
    return bundle
