"""Requests to classes that do not serve them, answered with what does here.

Attributes under the names that XLA, JAX, NumPy and pandas give them, protocols such as `len()` that a class does not support,
properties that something else sets. Python itself proposes a name that is spelled nearly alike. Nobody but us knows that
`entry_computation` is `entry` here.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

from attrs.exceptions import FrozenInstanceError

from hlotext.ir import short_names
from hlotext.ir.foreign_name_tables import FEW, FOREIGN, READ_ONLY, RESULTS, UNSUPPORTED
from hlotext.ir.spelling import nearest, with_article

T = TypeVar("T", bound=type)


class ForeignName:
    """Descriptor for a name of another library. Access raises AttributeError with the name to use here.

    A descriptor rather than `__getattr__`, which would make every other attribute access slower (Python 3.11: seven
    times).
    """

    def __init__(self, name: str, meant: str) -> None:
        self._name, self._meant = name, meant

    def __get__(self, value: object, owner: type | None = None) -> NoReturn:
        kind = (type(value) if owner is None else owner).__name__
        # Without the object, of which Python would propose another attribute with a similar name.
        raise AttributeError(message(kind, self._name, self._meant), name=None, obj=None)


_ANSWERING = (ForeignName, short_names.ShortName)
"""Descriptors of names that are none."""


def message(kind: str, name: str, meant: str = "") -> str:
    """Returns the message for a missing attribute, in Python's words, with a suggestion if `meant` is given."""
    return f"{kind!r} object has no attribute {name!r}" + (f"; {_use(meant)}" if meant else "")


def _use(meant: str) -> str:
    return f"did you mean `.{meant}`?" if is_member(meant) else f"use {meant}"


def messages(kind: str, name: str, meant: list[str]) -> str:
    """The same with several suggestions."""
    if len(meant) < 2 or not all(map(is_member, meant)):
        return message(kind, name, " or ".join(meant))
    return f"{message(kind, name)}; did you mean {' or '.join(f'`.{one}`' for one in meant)}?"


def is_member(meant: str) -> bool:
    """Returns True if a suggestion is an attribute of the same object, possibly with a call, rather than another
    expression.
    """
    return not meant.startswith(_WHOLE) and " " not in meant.partition("(")[0]


_WHOLE = (
    *("hlotext.", "str(", "pathlib.", "len(", "attrs.", "print(", "computation[", "r[", "pattern.", "["),
    *("polars.", "pandas.", "numpy.", "assert "),
)
"""Beginnings of what is used instead of an attribute and is none of the same object."""


def with_foreign_names(kind: T) -> T:
    """Class decorator that adds a `ForeignName` for each name that `foreign_name_tables` lists for the class."""
    name = kind.__name__
    own = {one: value for one, value in vars(kind).items() if one[0] != "_" and isinstance(value, property)}
    foreign = {f"get_{one}": one for one in own}
    foreign |= {f"set_{one}": f"`it.{one} = value`" for one, value in own.items() if value.fset is not None}
    foreign |= FOREIGN.get(name, {})
    foreign = {other: meant for other, meant in foreign.items() if not hasattr(kind, other)}
    for other, meant in foreign.items():
        setattr(kind, other, ForeignName(other, meant))
    if issubclass(kind, short_names.Abbreviated):
        homes = [home for home in kind.__mro__ if home not in (short_names.Abbreviated, object)]
        fields = [field.name for field in getattr(kind, "__attrs_attrs__", ())]
        listed_names = [*fields, *(one for home in homes for one in vars(home))]
        members = {one: one for one in listed_names if one[0] != "_" and one not in foreign}
        short_names.answer_for(kind, {**FOREIGN.get(name, {}), **members}, messages)
    for protocol, use in UNSUPPORTED.get(name, {}).items():
        setattr(kind, protocol, _refusal(f"{with_article(name)} {use}"))
        if protocol == "__enter__":
            kind.__exit__ = _left  # type: ignore[attr-defined]  # Python asks for both before it enters
        if protocol == "__len__":
            kind.__bool__ = _true  # type: ignore[attr-defined]  # which Python would take from the length
    explain_frozen(kind)
    if name in RESULTS or name in FEW:
        tell_members(kind)
    for attribute, use in READ_ONLY.get(name, {}).items():
        refuse = _no_setter(f"{attribute} of {name} cannot be set; {use}")
        setattr(kind, attribute, property(vars(kind)[attribute].fget, refuse))

    listed: Callable[[object], list[str]] = kind.__dir__  # type: ignore[assignment]

    def own_names(value: object) -> list[str]:
        own = [name for name in listed(value) if not isinstance(_static(type(value), name), _ANSWERING)]
        return [*own, *_proposals(name)] if _is_proposing() else own

    kind.__dir__ = own_names  # type: ignore[method-assign, assignment]  # completed and proposed are names that exist
    return kind


class _Meant(str):
    """A name of another library that reads as what it is here, for Python to propose for a misspelled one."""

    use: str

    def __str__(self) -> str:
        return self.use

    def __format__(self, spec: str) -> str:
        return format(self.use, spec)


def _proposals(title: str) -> list[str]:
    found: list[str] = []
    for name, meant in FOREIGN.get(title, {}).items():
        one = _Meant(name)
        one.use = meant
        found.append(one)
    return found


def _is_proposing() -> bool:
    """True if Python asks for the names of an object since one that it does not have was asked for.

    Of the classes that do without `__getattr__` this is the only question that such a failure leads to.
    """
    try:
        return sys._getframe(2).f_globals.get("__name__") == "traceback"
    except ValueError:  # asked by Python itself, below all frames, as before 3.12
        return True


def tell_members(kind: type) -> None:
    """Lets a class answer for an attribute that it does not have with a name that is spelled alike, or with all it has.

    A class with `__getattr__` is slower at every attribute (see `ForeignName`), so this is for results, of which a program
    has few, and for modules and computations, not for what there are thousands of.
    """
    if "_says_members" in vars(kind):
        return
    kind._says_members = True  # type: ignore[attr-defined]
    found: Callable[[object, str], object] | None = getattr(kind, "__getattr__", None)

    def missing(value: object, name: str) -> object:
        # What attrs computes on first access.
        if found is not None and not isinstance(_static(kind, name), _ANSWERING):
            try:
                return found(value, name)
            except AttributeError:
                if name.startswith("_") or name in dir(kind):
                    raise
        if name.startswith("_") or name in dir(kind):
            return object.__getattribute__(value, name)  # raises again what a property raised
        kind_of_value: type = type(value)
        raise AttributeError(_unknown(kind_of_value, name), name=None, obj=None)

    kind.__getattr__ = missing  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=256)
def _unknown(kind: type, name: str) -> str:
    """The message about a name that a class does not have. Cached: whoever asks with `hasattr` asks often."""
    title = next((one.__name__ for one in kind.__mro__ if one.__name__ in FOREIGN), kind.__name__)
    foreign = FOREIGN.get(title, {})
    said = message(kind.__name__, name, foreign.get(name, ""))
    return said if name in foreign else f"{said}; {_members(kind, name, foreign)}"


def _members(kind: type, name: str, foreign_names: Mapping[str, str]) -> str:
    """The members of a class that a misspelled name may mean, its own or those of another library."""
    base = set().union(*(dir(one) for one in kind.__mro__[1:] if one.__module__ == "builtins"))
    foreign = {one for one in dir(kind) if isinstance(_static(kind, one), _ANSWERING)}
    own = [one for one in dir(kind) if not one.startswith("_") and one not in base and one not in foreign]
    fields = [field.name for field in getattr(kind, "__attrs_attrs__", ()) if not field.name.startswith("_")]
    asked = [one.partition("(")[0] for one in foreign_names.values()]
    own = list(dict.fromkeys([*fields, *(one for one in asked if one in own), *own]))
    if near := nearest(name, {**dict.fromkeys(own), **foreign_names}):
        best = next((one for one in near if one in own), near[0])
        return _use(foreign_names.get(best, best))
    shown = ", ".join(f"{one}()" if callable(_static(kind, one)) else one for one in own[:_MOST_MEMBERS])
    left = len(own) - _MOST_MEMBERS
    what = "" if issubclass(kind, list) and not own else f"has {shown}"
    if issubclass(kind, list):
        what = "is a list of findings, whose attributes its elements have"
    return f"it {what}" + (f" and {left} more, which dir() lists" if left > 0 else "")


def _static(kind: type, name: str) -> object:
    """A member of a class as it is written there."""
    return next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)


_MOST_MEMBERS = 8


def _refusal(said: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: object) -> NoReturn:
        raise TypeError(said)

    refuse.is_refusal = True  # type: ignore[attr-defined]
    return refuse


def supports(kind: type, protocol: str) -> bool:
    """Returns True if a class implements a protocol method such as `__iter__`, rather than one that only raises a hint."""
    found = getattr(kind, protocol, None)
    return found is not None and not hasattr(found, "is_refusal")


def _left(value: object, *raised: object) -> None:
    """The end of a block that is never entered."""


def _true(value: object) -> bool:
    return True


def _no_setter(said: str) -> Callable[[object, object], NoReturn]:
    def refuse(value: object, new: object) -> NoReturn:
        raise AttributeError(said, name=None, obj=None)

    return refuse


def explain_frozen(kind: type) -> None:
    """Makes a frozen attrs class suggest what to use instead when a field is assigned."""
    if getattr(vars(kind).get("__setattr__"), "__name__", "") == "_frozen_setattrs":
        kind.__setattr__ = _cannot_change  # type: ignore[method-assign, assignment]


def _cannot_change(value: object, name: str, new: object) -> NoReturn:
    kind = type(value).__name__
    error = FrozenInstanceError()
    error.args = (
        f"a {kind} is immutable: attrs.evolve({kind.lower()}, {name}=...) makes a changed copy, to be set in its place",
    )
    raise error


def text_formatted(value: object, spec: str) -> str:
    """Formats `str(value)` by a format spec for strings, as in `f"{shape:>20}"`. Used as `__format__` of values."""
    return format(str(value), spec)
