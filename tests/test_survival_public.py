"""Values of every public class survive pickle, copy, deepcopy and another process, or are refused with a reason."""

from __future__ import annotations

import concurrent.futures
import enum
import functools
import multiprocessing
import pickle
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import hlotext as hlo
from hlotext import matchers as m
from hlotext import rewrite, textproto
from hlotext.interop.jax import Registration
from hlotext.ir.nodes import compare
from hlotext.ir.nodes.instruction import Instruction
from tests import public_values
from tests.test_survival import WAYS

CLASSES = public_values.public_classes()
EXAMPLES, FAILED = public_values.examples()

NO_VALUES = {
    "hlotext.rewrite.Listener": "a protocol, which callers implement",
    "hlotext.execution.Runner": "refused: holds a child process and its files",
    "hlotext.interop.jax.CollectivesExplanation": "refused: holds a folder that is removed with it",
    "hlotext.interop.jax.Registration": "refused: stands for a pass in this process's compiler",
}
"""Public classes of which there is no example, and why."""
EXTRAS = {
    "hlotext.proto": "_protos",
}
"""Packages whose examples need an extra, by the function that makes them."""


def is_shown(class_: type) -> bool:
    return any(class_ in shown.__mro__ for shown in EXAMPLES)


def test_every_public_class_has_an_example() -> None:
    missing = [
        name
        for class_, name in CLASSES.items()
        if not issubclass(class_, BaseException | enum.Enum)
        and not is_shown(class_)
        and name not in NO_VALUES
    ]
    missing = [name for name in missing if EXTRAS.get(name.rpartition(".")[0]) not in FAILED]
    assert not missing, "give tests/public_values.py an example of each, or NO_VALUES a reason"
    assert set(NO_VALUES) <= set(CLASSES.values())


# ---- the same, though it may hold other nodes


def difference(value: Any, other: Any) -> str:
    """Where two values differ, part by part: nodes are the same where they stand in the same place of equal modules."""
    pairs: dict[tuple[int, int], Any] = {}
    stack = [("", value, other)]
    while stack:
        path, a, b = stack.pop()
        if a is b or (id(a), id(b)) in pairs:
            continue
        pairs[id(a), id(b)] = a, b
        if type(a) is not type(b):
            return f"{path}: {type(a)} and {type(b)}"
        if isinstance(a, hlo.Module):
            found = compare.difference(a, b, exact=True) or ("" if str(a) == str(b) else "the texts")
            if found:
                return f"{path}: {found}"
        elif isinstance(a, Instruction | hlo.Computation):
            stack.append((f"{path}.place", place(a), place(b)))
        elif isinstance(a, Mapping) and not isinstance(a, hlo.Literal):
            stack.append((f"{path}.keys", list(a), list(b)))
            stack.append((f"{path}.values", list(a.values()), list(b.values())))
        elif isinstance(a, set | frozenset):
            stack.append((path, sorted(map(key, a)), sorted(map(key, b))))
        elif isinstance(a, tuple | list):
            if len(a) != len(b):
                return f"{path}: {len(a)} and {len(b)} elements"
            stack += [(f"{path}[{n}]", *pair) for n, pair in enumerate(zip(a, b, strict=True))]
        elif isinstance(a, m.Condition):  # what it asks for is made anew
            if a != b:
                return f"{path}: {a!r} and {b!r}"
            continue
        elif isinstance(a, types.MethodType):
            stack.append((path, (a.__func__, a.__self__), (b.__func__, b.__self__)))
        elif isinstance(a, functools.partial):
            stack.append((path, (a.func, a.args, a.keywords), (b.func, b.args, b.keywords)))
        elif is_plain(a) and not (a == b or (a != a and b != b)):
            return f"{path}: {a!r} and {b!r}"
        if type(a).__module__.startswith("hlotext.") and not isinstance(
            a, hlo.Module | Instruction | hlo.Computation
        ):
            mine, theirs = public_values.parts(a), public_values.parts(b)
            stack += [(f"{path}.{name}", mine[name], theirs[name]) for name in mine if name in theirs]
    return ""


def is_plain(value: Any) -> bool:
    """Whether a value is compared as a whole; not what holds others, nor what only stands for a resource."""
    return isinstance(value, str | bytes | int | float | complex | enum.Enum | type(None)) or callable(value)


def key(value: Any) -> str:
    return value.name if isinstance(value, Instruction | hlo.Computation) else repr(value)


def place(node: Any) -> tuple[Any, ...]:
    if isinstance(node, hlo.Computation):
        return node.module and node.module.name, node.name, str(node)
    return node.computation and node.computation.name, node.name, str(node)


def holds_nodes(value: Any) -> bool:
    """Whether there are nodes inside of a value: those of another module are others, though they are alike."""
    seen: dict[int, Any] = {}
    stack = [value]
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        is_own = type(one).__module__.startswith("hlotext.") and not isinstance(one, type)
        if is_own and not has_equality(type(one)):  # a node, or what stands for itself as one does
            return True
        if isinstance(one, Mapping):
            stack += [*one, *one.values()]
        elif isinstance(one, tuple | list | set | frozenset):
            stack += one
        elif is_own and not isinstance(one, enum.Enum):
            stack += public_values.parts(one).values()
    return False


def check(value: Any, other: Any) -> None:
    where = f"{type(value).__qualname__}"
    assert type(other) is type(value), where
    if has_equality(type(value)) and not holds_nodes(value):
        assert other == value, where
        if type(value).__hash__ is not None and is_hashable(value):
            assert hash(other) == hash(value), where
        assert (str(other), repr(other)) == (str(value), repr(value))
    found = difference(value, other)
    assert not found, f"{where}{found}"


def has_equality(class_: type) -> bool:
    return any("__eq__" in vars(base) for base in class_.__mro__ if base is not object)


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def values() -> Iterator[Any]:
    for class_ in EXAMPLES:
        if not isinstance(class_, types.FunctionType):
            yield from EXAMPLES[class_][:2]


@pytest.mark.parametrize("way", WAYS)
def test_they_survive(way: str) -> None:
    for value in values():
        check(value, WAYS[way](value))


def identity(value: Any) -> Any:
    return value


def test_another_process() -> None:
    """One that is started anew, in which texts have other hashes: what was found by a hash is found again."""
    sent = [EXAMPLES[class_][0] for class_ in EXAMPLES]
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for value, other in zip(sent, pool.map(identity, sent, chunksize=64), strict=True):
            check(value, other)


# ---- what is refused

REFUSED: dict[str, Callable[[], Any]] = {
    "a predicate without a name": lambda: m.op().with_predicate(lambda i: True),
    "a condition made by hand": lambda: m.Pattern(conditions=(m.Condition("x", lambda i, _: True),)),
    "a rule of a function without a name": lambda: rewrite.pattern(m.op())(lambda r: None),
    "a computation that is being built": lambda: (
        rewrite.Builder.new(
            hlo.parse("ENTRY e { ROOT p = f32[] parameter(0) }"), "c", [hlo.parse_shape("f32[]")]
        ).computation
    ),
}
"""Values that cannot go elsewhere: what another process has no name for."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_sent_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"another process cannot find|still being built"):
        pickle.dumps(REFUSED[name]())


def test_a_registration_is_refused() -> None:
    registration = object.__new__(Registration)
    for way in WAYS.values():
        with pytest.raises(TypeError, match="in this process's compiler"):
            way(registration)


ERRORS: dict[str, tuple[Any, ...]] = {
    "HloSyntaxError": (hlo.parse_tolerant("?").diagnostics[0],),
    "LayoutError": ("tile 2", "is 0", "f32[2]"),
    "MissingArrow": (),
    "MissingProtobuf": (),
    "PassError": ("x", rewrite.make_pass("dce"), None),
    "ProtoError": ("x", "a.b", 3, "m.pb"),
    "TextProtoError": ("x", 2, textproto.parse("a: 1")),
}
"""What makes an error; the others take a message."""


def test_errors_come_back_from_other_processes() -> None:
    """As they were raised: an error that cannot be made again there breaks the pool, or leaves its caller waiting."""
    errors = [c(*ERRORS.get(c.__name__, ("x",))) for c in CLASSES if issubclass(c, Exception)]
    assert len(errors) > 20
    for way in WAYS.values():
        for error in errors:
            again = way(error)
            assert type(again) is type(error)
            assert (again.args, str(again), repr(again)) == (error.args, str(error), repr(error))
            assert vars(again).keys() == vars(error).keys()
