"""What all frozen values have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs


class Value:
    """The base of values, which are `attrs.frozen(repr=False)`: one `__repr__` for all of them.

    Making one for each class would take a third of the time that making the class takes, when hlotext is imported.
    """

    __slots__ = ()
    __attrs_attrs__: ClassVar[tuple[attrs.Attribute[Any], ...]]

    def __repr__(self) -> str:
        fields = (
            f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__ if field.repr
        )
        return f"{type(self).__qualname__}({', '.join(fields)})"
