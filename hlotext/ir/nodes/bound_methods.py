"""Methods that people take for what they return: what is asked of them is answered with the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn, TypeVar, cast

from hlotext.ir.arguments import answering

F = TypeVar("F", bound=Callable[..., Any])


class BoundMethod:
    """A method with its object, as `types.MethodType` is, for methods that are called without arguments most of the time.

    `module.instructions["x"]` and `module.cost.flops` raise errors that show the call.
    """

    __slots__ = ("__func__", "__self__", "_finder")

    def __init__(self, function: Callable[..., Any], value: object, finder: str = "") -> None:
        self.__func__, self.__self__, self._finder = function, value, finder

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.__func__(self.__self__, *arguments, **named)

    def __get__(self, value: object, owner: type | None = None) -> BoundMethod:
        return self  # by which `help()` knows a method

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundMethod):
            return NotImplemented
        return self.__self__ is other.__self__ and self.__func__ is other.__func__

    def __hash__(self) -> int:
        return hash((id(self.__self__), self.__func__))

    def __repr__(self) -> str:
        return f"<bound method {self.__qualname__} of {self.__self__!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self.__func__.__name__)

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self.__func__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])

    def __dir__(self) -> list[str]:
        return dir(self.__func__)

    @property
    def _call(self) -> str:
        kind = type(self.__self__).__name__
        return (
            f"{kind}.{self.__func__.__name__} is a method; call it: {kind.lower()}.{self.__func__.__name__}()"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            return getattr(self.__func__, name)
        found = f"; {self._finder.format(repr(name))} finds one by name" if self._finder else f".{name}"
        raise AttributeError(f"{self._call}{found}", name=None, obj=None)

    def __getitem__(self, index: object) -> NoReturn:
        if not self._finder:
            raise TypeError(f"{self._call}[{index!r}]")
        if isinstance(index, str):
            raise TypeError(f"{self._call}; {self._finder.format(repr(index))} finds one by name")
        raise TypeError(f"{self._call}; list() of it has item {index}")

    def __len__(self) -> NoReturn:
        raise TypeError(self._call)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> NoReturn:
        raise TypeError(self._call)

    def __contains__(self, item: object) -> NoReturn:
        raise TypeError(self._call)

    def __enter__(self) -> NoReturn:
        raise TypeError(self._call)

    def __exit__(self, *raised: object) -> None:
        """Python asks for both before it enters."""

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.__func__.__doc__


BoundMethod.__iter__.is_refusal = True  # type: ignore[attr-defined]  # see `foreign_names.supports`


class Method:
    """Decorator for a method whose bound form is a `BoundMethod`.

    `finder` shows what finds one of what it yields by name, `instead` what does what arguments are given for that it does not
    take.
    """

    def __init__(self, finder: str = "", instead: str = "") -> None:
        self._finder, self._instead = finder, instead
        self._function: Callable[..., Any]

    def __call__(self, function: F) -> F:
        self._function = answering(cast("FunctionType", function), instead=self._instead)
        self.__doc__ = function.__doc__
        return self  # type: ignore[return-value]  # a method to type checkers

    def __get__(self, value: object, owner: type | None = None) -> Any:
        return self._function if value is None else BoundMethod(self._function, value, self._finder)
