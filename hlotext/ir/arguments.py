"""Answers of public functions to arguments of other types than their annotations name.

Nothing is looked at while all is well. Only when something inside fails are the arguments compared with the annotations; if
one contradicts them, the answer names it. Anything else stays the error that it was.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any, cast

from hlotext.ir import foreign_name_tables, foreign_names

FROM_INSIDE = (TypeError, AttributeError, LookupError, ValueError, AssertionError)
"""Errors that an argument of another type may end in."""
_GENERATOR = 0x20
"""Flag of the code of a generator function."""
_OWN = "hlotext"
_BOUND = "hlotext.ir.nodes.bound_methods"
"""The module in whose frames methods are called for others."""


def answer_for(module: ModuleType, names: Iterable[str]) -> None:
    """Wraps the public functions of a module, and the methods of its public classes, to report arguments of a wrong
    type.
    """
    home = vars(module)
    for name in names:
        value = home.get(name)
        if isinstance(value, FunctionType):
            answered = answering(value)
            where, own_name = vars(sys.modules[value.__module__]), value.__name__
            if where.get(own_name) is value:
                where[own_name] = (
                    answered  # the same for everybody: processes are sent functions by their names
                )
            home[name] = answered
        elif isinstance(value, type) and value.__module__.partition(".")[0] == _OWN:
            _answer_for_methods(value)


def _answer_for_methods(kind: type) -> None:
    if issubclass(kind, BaseException) or "_is_answering" in vars(kind):
        return
    kind._is_answering = True  # type: ignore[attr-defined]
    if kind.__name__ in foreign_name_tables.RESULTS:
        foreign_names.tell_members(kind)
    if kind.__name__ in foreign_name_tables.SETTINGS:
        kind.__init__ = answering(cast("FunctionType", kind.__init__), kind.__name__)  # type: ignore[method-assign]
    for name, value in list(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, FunctionType):
            setattr(kind, name, answering(value))
        elif isinstance(value, classmethod | staticmethod) and isinstance(value.__func__, FunctionType):
            setattr(kind, name, type(value)(answering(value.__func__)))


def answering(function: FunctionType, name: str = "", instead: str | None = None) -> Callable[..., Any]:
    """The function; where it fails, an argument that contradicts its annotation is named.

    `name` is that of the function in messages, if it is called by another than its own. `instead` is what does what other
    arguments are given for; None: a function without arguments stays as it is, since it may be called for every instruction.
    """
    is_door = (
        vars(function) is function.__globals__
    )  # a function that is its module's way in too: `hlotext.verify`
    if vars(function) and not is_door:
        return function  # decorated, so sent to processes and compared as it is
    if instead is None and not function.__annotations__.keys() - {"return"}:
        return function
    truths = frozenset(
        one for one, kind in function.__annotations__.items() if kind in ("bool", "bool | None")
    )
    if function.__code__.co_flags & _GENERATOR:

        @functools.wraps(function)
        def answered(*arguments: Any, **named: Any) -> Iterator[Any]:
            if named and truths:
                _refuse_words(truths, named, name or function.__qualname__)
            try:
                yield from function(*arguments, **named)
            except FROM_INSIDE as error:
                _answer(function, arguments, named, error, name, instead or "")
                raise
    else:

        @functools.wraps(function)
        def answered(*arguments: Any, **named: Any) -> Any:
            if named and truths:
                _refuse_words(truths, named, name or function.__qualname__)
            try:
                return function(*arguments, **named)
            except FROM_INSIDE as error:
                _answer(function, arguments, named, error, name, instead or "")
                raise

    if is_door:
        function.__dict__ = {}
        function.__globals__["__wrapped__"] = function
        answered.__dict__ = function.__globals__
    return answered


def _refuse_words(truths: frozenset[str], named: dict[str, Any], called: str) -> None:
    """Raises TypeError for a word as a truth value: `strict="no"` would be true."""
    for name, value in named.items():
        if type(value) is str and name in truths:
            raise TypeError(f"{called}() takes True or False as {name}=, not {value!r}")


def under_name(function: FunctionType, name: str) -> Callable[..., Any]:
    """Returns a public function that reports argument errors under the dotted name of the method it is called as."""
    inner = vars(function).get("__wrapped__")
    if not isinstance(inner, FunctionType) or function.__globals__ is not globals():
        return function  # decorated otherwise
    method = answering(inner, name)
    method.__name__, method.__qualname__ = name.rpartition(".")[2], name
    return method


def _answer(
    function: FunctionType,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    error: Exception,
    name: str,
    instead: str,
) -> None:
    """Raises TypeError for an argument that contradicts its annotation; what hlotext itself passes is left to show itself."""
    caller = sys._getframe(2)
    if caller.f_globals.get("__name__") == _BOUND:
        caller = cast("FrameType", caller.f_back)
    if _is_ours(caller):
        return
    misfits = importlib.import_module("hlotext.ir.misfits")  # only failures need it
    own, text = function.__qualname__, str(error)
    found = "" if misfits.is_said(error) else misfits.misfit(function, arguments, named, name or own)
    if not found and isinstance(error, TypeError) and text.startswith(f"{own}()"):
        # Python says which argument is missing or too much.
        said = (name or own) + text.removeprefix(own)
        found = f"{said}; {instead}" if instead else misfits.unbound(function, arguments, named, said)
    if found:
        raise TypeError(found) from None


def _is_ours(frame: FrameType) -> bool:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0] == _OWN


def caller_level() -> int:
    """Returns the `stacklevel` with which a warning points at the user's line rather than at one of hlotext."""
    level, frame = 0, cast("FrameType | None", sys._getframe(1))
    while frame is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    return level + 1
