"""Names that some class has and others do not: abbreviations (`instrs`, `entry_comp`), attributes of what is near, opcodes.

Python itself proposes what is spelled nearly alike, and finds nothing for an abbreviation. A class with `__getattr__` would
answer for any name, and be slower at every attribute (see `foreign_names`). So the names stand in one base of the classes,
which is only looked at for what they do not have themselves.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

_SHORT: dict[str, tuple[str, ...]] = {
    long: tuple(short.split())
    for long, short in (
        ("allocation", "alloc"),
        ("attribute", "attr"),
        ("computation", "comp cmp"),
        ("configuration", "config cfg conf"),
        ("config", "cfg"),
        ("dimension", "dim"),
        ("element", "elem elt"),
        ("function", "func fn"),
        ("instruction", "instr inst insn"),
        ("literal", "lit"),
        ("memory", "mem"),
        ("metadata", "meta md"),
        ("module", "mod"),
        ("number", "num no nr"),
        ("operand", "opnd"),
        ("parameter", "param"),
        ("predecessor", "pred"),
        ("schedule", "sched"),
        ("sharding", "shard"),
        ("successor", "succ"),
    )
}
"""Words, and what people shorten them to; the plural is shortened likewise."""
_LEAST = 4
"""Letters of a beginning that stands for a word."""


class ShortName:
    """Descriptor for a short name: the class of the object decides what it may mean."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type | None = None) -> NoReturn:
        kind = type(value) if owner is None else owner
        raise AttributeError(_missing(kind, self._name), name=None, obj=None)


class Abbreviated:
    """Base of classes that answer for abbreviations of their attributes."""

    __slots__ = ()


_WORDS: dict[str, Mapping[str, str]] = {}
"""The names of each class and what is meant by them, its own by themselves."""
_message: Callable[[str, str, list[str]], str]


def answer_for(kind: type, names: Mapping[str, str], message: Callable[[str, str, list[str]], str]) -> None:
    """Makes a class answer for abbreviations of names, each with what is meant by it; `message` words the answer.

    Names that mean others, which are those of other libraries, are only answered with short words: the class is made at
    start-up, and they are many.
    """
    global _message
    _message = message
    _WORDS[kind.__name__] = names
    known = vars(Abbreviated)
    for name, meant in names.items():
        if name == meant and name not in known:  # for the classes that do not have it
            setattr(Abbreviated, name, ShortName(name))
        for short in variants(name) if name == meant else _with_short_words(name.split("_")):
            if short not in known:
                setattr(Abbreviated, short, ShortName(short))


def variants(name: str) -> list[str]:
    """Abbreviations of a name: with short forms of its words, its first words, the beginning of its first or last word, and
    its words as one.
    """
    words = name.split("_")
    short = _with_short_words(words)
    starts = ["_".join(words[:count]) for count in range(1, len(words))]
    starts += [name[:end] for end in range(_LEAST, len(words[0]))]
    if len(words) > 1:
        starts += ["".join(words), "".join([words[0], *(word.capitalize() for word in words[1:])])]
    return short + starts + [name[:end] for end in range(len(name) - len(words[-1]) + _LEAST, len(name))]


def _with_short_words(words: list[str]) -> list[str]:
    if not any(word in _SHORT or word[:-1] in _SHORT for word in words):
        return []
    return list(map("_".join, itertools.product(*map(_forms, words))))


def _forms(word: str) -> tuple[str, ...]:
    if word[-1:] == "s" and word[:-1] in _SHORT:
        return (word, *(f"{short}s" for short in _SHORT[word[:-1]]))
    return (word, *_SHORT.get(word, ()))


def _missing(kind: type, name: str) -> str:
    """The message about a name: the attribute that it is short for, the object that has it, or what finds its opcode."""
    title = next((one.__name__ for one in kind.__mro__ if one.__name__ in _WORDS), kind.__name__)
    meant = _abbreviated(kind, title, name) or _at_home(title, name)
    if not meant and (opcode := _OPCODES.get(name)) is not None:
        meant = [use.format(opcode) for use in (_BY_OPCODE.get(title, ""),) if use]
    return _message(kind.__name__, name, meant[:2])


def _abbreviated(kind: type, title: str, name: str) -> list[str]:
    names = _WORDS.get(title, {})
    fits = _first(one for one in names if name in variants(one))
    return list(dict.fromkeys(_called(kind, one) if names[one] == one else names[one] for one in fits))


def _at_home(title: str, name: str) -> list[str]:
    """The way from an object to the one near it that has an attribute."""
    ways = _WAYS.get(title, {})
    return [f"{ways[home]}.{name}" for home in ways if _WORDS.get(home, {}).get(name) == name][:1]


_WAYS = {
    "Module": {"Computation": "entry", "Instruction": "entry.root"},
    "Computation": {"Instruction": "root", "Module": "module", "Shape": "root.shape"},
    "Instruction": {
        "Shape": "shape",
        "Metadata": "metadata",
        "Layout": "shape.layout",
        "ElementType": "shape.element_type",
        "Literal": "literal",
        "Computation": "computation",
        "Module": "computation.module",
    },
    "Shape": {"Layout": "layout", "ElementType": "element_type"},
    "Literal": {"Shape": "shape", "ElementType": "shape.element_type"},
}
"""Expressions that lead from an object to those near it, the nearest first."""


def _called(kind: type, name: str) -> str:
    """A member as it is written: a method with what it requires."""
    # A short name would be asked for its own name without end.
    if isinstance(inspect.getattr_static(kind, name, None), ShortName):
        return name
    member = getattr(kind, name, None)
    if not callable(member):
        return name
    parameters = list(inspect.signature(member).parameters.values())[1:]
    required = [
        one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]
    return f"{name}({', '.join(required)})"


def _first(names: Iterable[str]) -> list[str]:
    """The shortest of names that begin alike: `metadata` rather than `metadata_op_name`."""
    names = sorted(names, key=len)
    return [one for one in names if not any(one != other and one.startswith(other) for other in names)]


_OPCODES: dict[str, str] = {}
"""Opcodes by the names that they would have as attributes."""
_BY_OPCODE = {
    "Module": "[i for i in module.instructions() if i.opcode == {!r}]",
    "Computation": "[i for i in computation.instructions if i.opcode == {!r}]",
    "Instruction": "instruction.opcode == {!r}",
}
"""Expressions that find the instructions of an opcode, by class."""


def answer_for_opcodes(opcodes: Iterable[str]) -> None:
    """Makes the classes answer for opcodes in place of attributes: `computation.dot`."""
    for opcode in opcodes:
        name = opcode.replace("-", "_")
        _OPCODES[name] = opcode
        setattr(Abbreviated, name, ShortName(name))
