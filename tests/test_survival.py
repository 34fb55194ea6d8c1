"""Modules and values survive pickle, copy, deepcopy and another process: equal, with the same hash, text and prints."""

from __future__ import annotations

import concurrent.futures
import copy
import enum
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext.ir import values
from hlotext.ir.nodes import compare
from hlotext.ir.values.types import BUFFER, ELEMENT_TYPES, TUPLE, ElementType, element_type
from tests import support

WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
PRESETS = (
    hlo.PrintOptions.default(),
    hlo.PrintOptions.short_parsable(),
    hlo.PrintOptions.canonical(),
    hlo.PrintOptions.fingerprint(),
    hlo.PrintOptions.module_fingerprint(),
    hlo.PrintOptions(print_metadata=False),
)
MAX_BYTES = 12_000


def modules() -> Iterator[hlo.Module]:
    """The smaller modules of the corpus, and those of each form of the language."""
    for path in (*support.corpus_files(), *sorted((support.DATA / "ok").glob("*.hlo"))):
        data = support.read_text(path)
        if len(data) < MAX_BYTES:
            yield from hlo.parse_all(data)


def value_classes() -> set[type]:
    """Every public class of `hlotext.ir.values`, a new one too."""
    found: set[type] = set()
    for info in pkgutil.iter_modules(values.__path__, f"{values.__name__}."):
        for name, class_ in vars(importlib.import_module(info.name)).items():
            if inspect.isclass(class_) and class_.__module__ == info.name and not name.startswith("_"):
                found.add(class_)
    return found


def gallery() -> dict[type, list[Any]]:
    """Values of each class, as modules hold them: up to twenty of each, inside of others too."""
    found: dict[type, list[Any]] = {}
    seen: set[int] = set()
    held: list[Any] = []
    stack: list[Any] = []
    for module in modules():
        stack += [*module.attributes.values(), module.stack_frames]
        for i in module.instructions():
            stack += [i.shape, i.literal, *i.attributes.values(), *i.frames]
        while stack:
            value = stack.pop()
            if isinstance(value, hlo.Instruction | hlo.Computation) or id(value) in seen:
                continue
            seen.add(id(value))
            held.append(value)
            if isinstance(value, tuple | list):
                stack += value
            elif type(value).__module__.startswith("hlotext.ir.values"):
                if len(kept := found.setdefault(type(value), [])) < 20:
                    kept.append(value)
                if attrs.has(type(value)):
                    stack += [getattr(value, field.name, None) for field in attrs.fields(type(value))]
    return found


GALLERY = gallery()


def check(value: Any, other: Any) -> None:
    assert other == value
    assert hash(other) == hash(value)
    assert (str(other), repr(other)) == (str(value), repr(value))


@pytest.mark.parametrize("way", WAYS)
def test_values(way: str) -> None:
    for class_ in value_classes():
        for value in [*GALLERY.get(class_, ()), *(class_ if issubclass(class_, enum.Enum) else ())]:
            check(value, WAYS[way](value))


def test_most_classes_are_shown() -> None:
    """The gallery is worth something: what it lacks has no values of its own, or is rare."""
    missing = {c.__name__ for c in value_classes() if c not in GALLERY and not issubclass(c, enum.Enum)}
    assert len(missing) <= 16, missing


@pytest.mark.parametrize("way", WAYS)
def test_element_types_stay_one_object(way: str) -> None:
    for type_ in (*ELEMENT_TYPES.values(), TUPLE, BUFFER, element_type("f7"), element_type("tuple")):
        assert WAYS[way](type_) is type_
    assert {element_type("f32"): 1}["f32"] == 1  # type: ignore[index] # equal to its word, with its hash
    assert element_type("f32") == "f32" != element_type("f64")
    assert isinstance(element_type("f32"), ElementType)


def same(module: hlo.Module, other: hlo.Module) -> None:
    assert compare.difference(module, other, exact=True) is None
    assert str(other) == str(module)
    for options in PRESETS:
        assert other.to_text(options) == module.to_text(options)
    assert [str(d) for d in hlo.verify(other)] == [str(d) for d in hlo.verify(module)]


@pytest.mark.parametrize("way", WAYS)
def test_modules(way: str) -> None:
    for number, module in enumerate(modules()):
        if number % 6 == 0:
            same(module, WAYS[way](module))


def test_nodes_go_with_their_module() -> None:
    module = hlo.parse("HloModule m\n\nENTRY e {\n  a = f32[] parameter(0)\n  ROOT b = f32[] negate(a)\n}\n")
    root = module.entry.root
    for way in WAYS.values():
        assert str(way(root)) == str(root)
        assert way(root).computation.module is not module
        assert way(module.entry).root.operands[0].name == "a"
    again, entry, node = copy.deepcopy((module, module.entry, root))
    assert entry is again.entry
    assert node is entry.root
    node.name = "c"
    assert root.name == "b"


def test_an_edited_module() -> None:
    module = hlo.parse("e {\n  a = f32[] parameter(0)\n  b = f32[] negate(a)\n}\n")
    hlo.rewrite.Builder.after(module.entry.root).sine(module.entry.root)
    for way in WAYS.values():
        same(module, way(module))


def identity(value: Any) -> Any:
    return value


def test_another_process() -> None:
    """A process that is started anew, in which texts have other hashes."""
    sent = [
        *list(modules())[:3],
        *[found[0] for found in GALLERY.values()],
        hlo.parse_shape("(f32[2],s32[])"),
    ]
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        came = pool.submit(identity, sent).result()
    for value, other in zip(sent, came, strict=True):
        if isinstance(value, hlo.Module):
            same(value, other)
        else:
            check(value, other)
