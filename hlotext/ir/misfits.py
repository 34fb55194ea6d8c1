"""Values compared with the annotations of the arguments that they were given for, and what to give instead, in words."""

from __future__ import annotations

import builtins
import collections.abc
import dis
import inspect
import os
import pathlib
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hlotext.ir import foreign_names
from hlotext.ir.spelling import nearest, text_or_path, with_article

_MOST_LOOKED_AT = 1000
"""Elements of a list that are compared with their annotation."""


def is_said(error: Exception) -> bool:
    """Returns True if an error was raised on purpose by hlotext, with a message of its own."""
    if type(error).__module__.startswith("hlotext."):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or isinstance(error, AssertionError):
        return False
    frame = last.tb_frame
    home = frame.f_globals.get("__name__", "")
    if home in _IN_PLACE_OF_PYTHON:
        return False
    is_ours = home.startswith("hlotext.")
    return is_ours and frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"]


_IN_PLACE_OF_PYTHON = (
    "hlotext.ir.foreign_names",
    "hlotext.ir.nodes.bound_methods",
    "hlotext.ir.nodes.node_list",
)
"""Modules that say more than Python where a value lacks an attribute or a protocol: it may be of another type."""


def misfit(
    function: types.FunctionType, arguments: tuple[Any, ...], named: dict[str, Any], called: str
) -> str:
    """Returns the message for the first argument whose type contradicts its annotation; empty if all fit.

    `called` is the name of the function in the message.
    """
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*arguments, **named)
    except TypeError:
        return ""  # Python has said what is missing or too much
    kinds = kinds_of(function)
    owners = [name for name in ("self", "cls") if name in signature.parameters]
    for number, (name, value) in enumerate(bound.arguments.items(), 1 - len(owners)):
        kind = signature.parameters[name].kind
        values = [value]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            values = list(value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            values = list(value.values())
        wanted = kinds.get(name, Any)
        for place, one in enumerate(values):
            if fits(one, wanted):
                continue
            is_positional = name not in named and kind in (
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                inspect.Parameter.VAR_POSITIONAL,
            )
            where = f"its {_ordinal(number + place)} argument" if is_positional else f"{name}="
            shown = f" ({name})" if is_positional and kind is inspect.Parameter.POSITIONAL_OR_KEYWORD else ""
            return f"{called}() takes {words(wanted)} as {where}{shown}, not {given(one, wanted)}"
    return ""


def unbound(
    function: types.FunctionType, arguments: tuple[Any, ...], named: dict[str, Any], said: str
) -> str:
    """Returns Python's message for arguments that a function does not accept, with the name or function that was meant."""
    parameters = inspect.signature(function).parameters
    own = [name for name in parameters if name not in ("self", "cls")]
    unknown = next((name for name in named if name not in parameters), None)
    if unknown is None:
        takers = _takers(function, lambda other: _takes(other, arguments, named)) if arguments else []
        has_more = "positional argument" in said and "given" in said
        # `parse_literal` is a special form of `parse`, and not meant by it.
        takers = [one for one in takers if not one.rpartition(".")[2].startswith(f"{function.__name__}_")]
        if takers and has_more:
            return f"{said}; {takers[0]} takes {'one' if len(arguments) == 1 else 'them'}"
        return f"{said}; it takes {_few(own) or 'nothing'}"
    said = said.partition(". Did you mean")[0]
    keywords = own[1:] or own
    meant = [one for one in _KEYWORDS.get(unknown, ()) if one in own] or nearest(unknown, keywords)
    if meant:
        return f"{said}; did you mean `{meant[0]}=`?"
    for word in (unknown, *_KEYWORDS.get(unknown, ())):
        if takers := _takers(function, lambda other: word in inspect.signature(other).parameters, word):  # noqa: B023
            return f"{said}; {takers[0]} takes {f'{word}=' if word == unknown else 'it'}"
    return f"{said}; it takes {_few(own) or 'nothing'}"


def _few(names: list[str]) -> str:
    """Names of arguments, of many the first."""
    left = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (
        f" and {left} more" if left > 1 else "".join(names[_MOST_NAMED:])
    )


_MOST_NAMED = 12


def _takers(function: types.FunctionType, is_one: Callable[[Any], bool], word: str = "") -> list[str]:
    """Classes of a function's arguments, then functions of its package with the same first argument, or with one of that
    name, that take what the function does not.
    """
    package = ".".join(function.__module__.split(".")[:2])
    names = vars(sys.modules[package]).get("__all__", ()) if package in sys.modules else ()
    if not names:
        package, names = "hlotext", vars(sys.modules["hlotext"])["__all__"]
    found = [(name, getattr(sys.modules[package], name)) for name in names]
    first = next(iter(function.__annotations__), "")
    functions = [
        f"{package}.{name}"
        for name, one in found
        if isinstance(one, types.FunctionType)
        and inspect.unwrap(one) is not function
        and next(iter(one.__annotations__), "") in (first, word)
        and is_one(inspect.unwrap(one))
    ]
    classes = [
        f"{package}.{name}"
        for name, one in found
        if isinstance(one, type)
        and any(
            one.__name__ in str(kind) for key, kind in function.__annotations__.items() if key != "return"
        )
        and is_one(one)
    ]
    return classes + functions


def _takes(function: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """True for a function that takes these arguments, by number and type."""
    if not isinstance(function, types.FunctionType):
        return False
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return False
    return not misfit(function, arguments, named, "")


_KEYWORDS: Mapping[str, tuple[str, ...]] = {
    "backend": ("platform", "chip"),
    "device": ("platform", "chip"),
    "hardware": ("chip",),
    "target": ("platform", "chip"),
    "gpu": ("chip",),
    "tpu": ("chip",),
    "rules": ("select",),
    "codes": ("select",),
    "only": ("select",),
    "include": ("select",),
    "rule": ("select",),
    "disable": ("ignore",),
    "exclude": ("ignore",),
    "skip": ("ignore",),
    "filename": ("name", "place"),
    "source_name": ("name",),
    "path": ("place",),
    "file": ("place", "path"),
    "max_iterations": ("max_rewrites",),
    "max_steps": ("max_rewrites",),
    "limit": ("max_rewrites",),
    "order": ("driver",),
    "strategy": ("driver",),
    "check": ("verify",),
    "trip_counts": ("trips",),
    "style": ("options",),
    "format": ("options", "style"),
}
"""Names of arguments elsewhere, and what they may be here."""


def kinds_of(function: types.FunctionType) -> Mapping[str, Any]:
    """Returns the annotated types of a function's parameters by name, with Any for annotations that cannot be
    evaluated.
    """
    names = _Names(function)
    return {
        name: _evaluated(annotation, names)
        for name, annotation in function.__annotations__.items()
        if name != "return"
    }


def _evaluated(annotation: object, names: _Names) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {"__builtins__": builtins}, names)
    except Exception:  # what is not there at run time says nothing
        return Any


class _Names(dict[str, Any]):
    """The names that an annotation may use, those imported for type checkers alone too."""

    def __init__(self, function: types.FunctionType) -> None:
        super().__init__(function.__globals__)

    def __missing__(self, name: str) -> Any:
        for module in (collections.abc, typing, builtins):
            if name in vars(module):
                return vars(module)[name]
        if name == "os":
            return os
        homes = [
            one for key, one in list(sys.modules.items()) if key == "hlotext" or key.startswith("hlotext.")
        ]
        found = {one for home in homes if isinstance(one := vars(home).get(name), type)}
        return found.pop() if len(found) == 1 else Any


def fits(value: object, kind: Any) -> bool:
    """Returns False if a value contradicts a type annotation. Annotations that cannot be checked fit any value."""
    if kind is Any or isinstance(kind, typing.TypeVar | str | typing.ForwardRef):
        return True
    if kind is None or kind is types.NoneType:
        return value is None
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in parts)
    if origin is typing.Literal:
        return value in parts
    if origin in _FILES or kind in _FILES:
        return hasattr(value, "read") or hasattr(value, "write")
    if origin is not None:
        return _fits_generic(value, origin, parts)
    if not isinstance(kind, type):
        return True
    if kind is float or kind is complex:
        return isinstance(value, int | float) or hasattr(value, "__float__") or isinstance(value, kind)
    if kind is int:
        return hasattr(value, "__index__")
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that only type checkers know
        return True


def _fits_generic(value: object, origin: Any, parts: tuple[Any, ...]) -> bool:
    if origin is collections.abc.Callable:
        return callable(value) and foreign_names.supports(type(value), "__call__")
    if not isinstance(origin, type) or origin is type:
        return origin is not type or isinstance(value, type)
    if not _holds(value, origin):
        return False
    return all(fits(one, part) for one, part in _elements(value, origin, parts))


def _holds(value: object, origin: type) -> bool:
    """True for a collection of a class; a string is meant as one value, and some classes only say why they are none."""
    return (
        isinstance(value, origin)
        and not isinstance(value, str | bytes)
        and foreign_names.supports(type(value), "__iter__")
    )


def _elements(value: object, origin: type, parts: tuple[Any, ...]) -> Iterator[tuple[object, Any]]:
    """Elements of a collection that can be looked at again, each with its type."""
    if isinstance(value, Mapping) and len(parts) == 2 and isinstance(value, dict):
        for key, one in list(value.items())[:_MOST_LOOKED_AT]:
            yield key, parts[0]
            yield one, parts[1]
    elif origin is tuple and len(parts) != 2 and isinstance(value, tuple):
        yield from zip(value, parts, strict=False)
    elif isinstance(value, list | tuple | set | frozenset | dict) and parts:
        for one in list(value)[:_MOST_LOOKED_AT]:
            yield one, parts[0]


# ---- words

_FILES = (typing.IO, typing.TextIO, typing.BinaryIO)
_NOUNS: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    complex: "number",
    bool: "truth value",
}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def _ordinal(number: int) -> str:
    return _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"


def words(kind: Any) -> str:
    """Describes a type annotation in words: `an Instruction`, `a list of integers`, `a Shape or a string`."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        shown = list(dict.fromkeys(words(one) for one in parts))
        return f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else shown[0]
    if origin is typing.Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if kind is None or kind is type(None):
        return "None"
    if kind is bool:
        return "True or False"
    if kind is bytes:
        return "bytes"
    if origin in _FILES or kind in _FILES:
        return "an open file"
    if origin is collections.abc.Callable or kind is collections.abc.Callable:
        return "a function"
    if (isinstance(kind, type) and issubclass(kind, os.PathLike)) or origin is os.PathLike:
        return "a path"
    if origin is not None and isinstance(origin, type):
        if issubclass(origin, Mapping):
            return f"a mapping from {_plural(parts[0])} to {_plural(parts[1])}" if parts else "a mapping"
        if origin is tuple and Ellipsis not in parts:
            return f"a tuple of {len(parts)}"
        if origin is type:
            return "a class"
        return f"a list of {_plural(parts[0])}" if parts else "a list"
    return with_article(_noun(kind))


def _noun(kind: Any) -> str:
    return _NOUNS.get(kind) or str(getattr(kind, "__name__", kind))


def _plural(kind: Any) -> str:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_plural(one) for one in parts))
    if kind is None or kind is type(None):
        return "None"
    if origin is os.PathLike:
        return "paths"
    if origin is not None or not isinstance(kind, type):
        is_list = isinstance(origin, type) and not issubclass(origin, Mapping)
        return ("tuples" if origin is tuple else "lists") if is_list else "values"
    if kind is object or kind is bytes:
        return "values" if kind is object else "bytes"
    noun = _noun(kind)
    return f"{noun}{'es' if noun.endswith('s') else 's'}"


def given(value: object, kind: Any) -> str:
    """Describes an argument of the wrong type, and how to convert it to the required type."""
    inside = _contradiction(value, kind)
    if inside is not None:
        return f"one that holds {with_article(_shown(inside[0]))}{_advice(inside[0], inside[1])}"
    return f"{_shown(value)}{_advice(value, kind)}"


def _shown(value: object) -> str:
    return (
        "None"
        if value is None
        else f"the class {value.__name__}"
        if isinstance(value, type)
        else type(value).__name__
    )


def _contradiction(value: object, kind: Any) -> tuple[object, Any] | None:
    """The element of a list that makes it contradict, and its type; None if the list itself does."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        found = [one for part in parts if (one := _contradiction(value, part)) is not None]
        return found[0] if found else None
    if not isinstance(origin, type) or origin is type or not _holds(value, origin):
        return None
    return next(((one, part) for one, part in _elements(value, origin, parts) if not fits(one, part)), None)


def _advice(value: object, kind: Any) -> str:
    for one in _alternatives(kind):
        if found := hint(value, one):
            return f"; {found}"
    return ""


def _alternatives(kind: Any) -> tuple[Any, ...]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.get_args(kind)
    return (kind,)


def hint(value: object, kind: Any) -> str:
    """Describes how to convert a value to a type; empty if there is no known way."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is os.PathLike:
        kind = origin
    elif isinstance(origin, type) and parts:
        is_list = origin in _LISTS
        if hasattr(value, "computations") and fits("", parts[0]):
            return "it reads files; module.estimate(chip), module.memory() and module.lint() examine a module"
        return (
            f"put it in a list: [{'...' if value is None else 'it'}]"
            if is_list and fits(value, parts[0])
            else ""
        )
    if not isinstance(kind, type):
        return ""
    if isinstance(value, type):
        return f"make one: {value.__name__}(...)" if issubclass(value, kind) else ""
    if isinstance(value, list | tuple) and value and all(fits(one, kind) for one in value):
        return "pass one at a time"
    if (ways := _WAYS.get(kind.__name__)) is not None and kind.__module__.startswith("hlotext."):
        return ways(value, kind)
    if isinstance(value, str) and issubclass(kind, pathlib.PurePath):
        return f"pathlib.Path({value!r}) is one"
    if isinstance(value, types.MethodType) and kind in (str, bytes):
        return f"call it: {value.__name__}()"
    return ""


_LISTS = (
    list,
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    tuple,
)


def text_hint(value: object) -> str:
    """Describes how to get a module from a value that is not text, after a semicolon; may be empty."""
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
        return "; join the lines: '\\n'.join(it)"
    if hasattr(value, "computations") and hasattr(value, "entry"):
        return "; it is a module already"
    if callable(getattr(value, "as_text", None)) or hasattr(value, "__fspath__") or hasattr(value, "read"):
        return "; hlotext.load takes it"
    if hasattr(value, "opcode") or hasattr(value, "root"):
        return "; str(it) is its text"
    return f"; {_lowered(value) or 'hlotext.load takes files, and what JAX lowered or compiled'}"


def _lowered(value: object) -> str:
    """The way from a function to what hlotext loads; empty for what is none."""
    if isinstance(value, types.MethodType | types.BuiltinMethodType) and value.__name__ == "as_text":
        return "call it: as_text()"
    if callable(getattr(value, "lower", None)) and callable(value) and not isinstance(value, type):
        return "hlotext.load(it.lower(...)) takes it lowered with its arguments"
    if isinstance(value, types.FunctionType):
        return "hlotext.load(jax.jit(it).lower(...)) takes it lowered with its arguments"
    if type(value).__name__ in ("ClosedJaxpr", "Jaxpr"):
        return "a jaxpr is not HLO; hlotext.load(jax.jit(f).lower(...)) takes the function"
    if hasattr(value, "dtype") and hasattr(value, "shape") and hasattr(value, "__array__"):
        return "an array is what the program returns; hlotext.load(jax.jit(f).lower(...)) takes the program"
    return ""


def module_hint(value: object, kind: type) -> str:
    """Describes how to get a module from a value: parsing for text and paths, `.module` for parts of a module."""
    if isinstance(value, str | bytes):
        return _READERS[text_or_path(value) if isinstance(value, str) else "text"]
    if isinstance(value, os.PathLike):
        return _READERS["path"]
    if isinstance(getattr(value, "module", None), kind):
        return "pass its .module"
    if callable(getattr(value, "as_text", None)):
        return "hlotext.load(it) takes what JAX lowered or compiled"
    home = getattr(value, "computation", None)
    if isinstance(getattr(home, "module", None), kind):
        return "pass its .computation.module"
    if home is not None and hasattr(home, "is_sugared"):
        return "hlotext.parse(line) makes a module of one op line"
    if isinstance(value, list | tuple) and value and all(isinstance(one, kind) for one in value):
        return "pass one module at a time"
    if way := _lowered(value):
        return way
    if isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
        return "hlotext.parse('\\n'.join(it)) reads lines"
    return "the module is the first argument" if isinstance(value, list | tuple | dict) else ""


_READERS = {
    "text": "hlotext.parse(text) reads it",
    "path": "hlotext.load(path) reads a file",
    "": "hlotext.load(path) reads a file, and hlotext.parse(text) reads text",
}


def _instruction_hint(value: object, kind: type) -> str:
    if isinstance(value, str):
        return f"module.instruction({value!r}) finds one"
    if isinstance(value, int):
        return f"computation.instructions[{value}] is one by its number"
    if isinstance(getattr(value, "root", None), kind):
        return "its .root is one"
    return "its .entry.root is one" if hasattr(value, "computations") else ""


def _computation_hint(value: object, kind: type) -> str:
    if isinstance(value, str):
        return f"module.computation({value!r}) finds one"
    if isinstance(getattr(value, "computation", None), kind):
        return "pass its .computation"
    return "pass its .entry" if hasattr(value, "computations") else ""


def _shape_hint(value: object, kind: type) -> str:
    if isinstance(value, str):
        return f"hlotext.parse_shape({value!r}) reads one"
    if isinstance(getattr(value, "shape", None), kind):
        return "pass its .shape"
    return "hlotext.rewrite.shape_of('f32', sizes) makes one" if isinstance(value, list | tuple) else ""


def rule_hint(value: object) -> str:
    """Describes how to get a rewrite rule from a value; empty if there is no known way."""
    if isinstance(value, str):
        if re.fullmatch(r"[a-z][\w\-]*", value) is not None:
            return f"a pass runs with hlotext.rewrite.Pipeline(hlotext.rewrite.parse_passes({value!r})).run(module)"
        return "hlotext.rewrite.rule(text) makes one"
    if hasattr(value, "alternatives") and hasattr(value, "operands"):
        return "@hlotext.rewrite.pattern(it) above a function makes one"
    if isinstance(value, types.FunctionType):
        return "@hlotext.rewrite.pattern(opcode or pattern) above the function makes one"
    return ""


def _by_text(how: str, attribute: str = "") -> Callable[[object, type], str]:
    def ways(value: object, kind: type) -> str:
        if isinstance(value, str):
            return how
        return (
            f"pass its .{attribute}"
            if attribute and isinstance(getattr(value, attribute, None), kind)
            else ""
        )

    return ways


_WAYS: Mapping[str, Callable[[object, type], str]] = {
    "Module": module_hint,
    "Instruction": _instruction_hint,
    "Computation": _computation_hint,
    "Shape": _shape_hint,
    "Layout": _by_text("hlotext.parse_layout(text) reads one", "layout"),
    "Literal": _by_text("hlotext.parse_literal(text, shape) reads one", "literal"),
    "Sharding": _by_text("hlotext.parse_sharding(text) reads one", "sharding"),
    "Pattern": lambda value, kind: (
        "give what it matches first: @hlotext.rewrite.pattern('dot')"
        if isinstance(value, types.FunctionType)
        else _by_text("hlotext.matchers.parse_pattern(text) reads one", "pattern")(value, kind)
    ),
    "RewriteRule": lambda value, kind: rule_hint(value),
    "Config": lambda value, kind: (
        "hlotext.lint.load_config(path) reads one"
        if isinstance(value, os.PathLike) or (isinstance(value, str) and text_or_path(value) == "path")
        else f"select={value!r} chooses rules"
        if isinstance(value, str)
        else "hlotext.lint.Config(...) makes one"
    ),
    "PrintOptions": _by_text(
        "hlotext.PrintOptions.short_parsable() is one; others are canonical() and fingerprint()"
    ),
    "DumpFolder": _by_text("hlotext.dumps.open(path) opens one"),
    "DeviceMesh": _by_text("hlotext.analysis.parse_mesh(text) reads one"),
    "Builder": lambda value, kind: (
        "hlotext.rewrite.Builder.before(it) makes one" if hasattr(value, "opcode") else ""
    ),
}
"""Ways from values to one of a class of hlotext, by its name."""
