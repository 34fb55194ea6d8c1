"""Methods of a module that packages provide, and the names that `hlotext` shows."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.ir.nodes import methods

TEXT = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
}
"""


def test_every_method_is_a_function() -> None:
    """Each is registered, documented with the function's name, and called with the module."""
    module = hlo.parse(TEXT)
    own = {name for name in vars(methods.ModuleMethods) if not name.startswith("_")}
    assert own == set(methods._registered)
    for name, function in methods._registered.items():
        package, _, attribute = function.rpartition(".")
        assert callable(getattr(importlib.import_module(package), attribute))
        assert name in dir(module)
    assert module.cost().flops == hlo.cost.analyze(module).flops == 4
    assert str(module.memory()) == str(hlo.memory.assign(module))
    assert module.estimate("h100").seconds == hlo.cost.estimate(module, "h100").seconds
    assert list(module.verify()) == list(module.lint()) == []
    assert module.compare(hlo.parse(TEXT)).is_equal


def test_the_cost_shows_both_counts_of_a_loop() -> None:
    """XLA counts its body once; a number alone does not say which count it is."""
    text = """HloModule m

body {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(j, y)
}

condition {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(50)
  ROOT p = pred[] compare(i, n), direction=LT
}

ENTRY e {
  x = f32[8] parameter(0)
  z = s32[] constant(0)
  s = (s32[], f32[8]) tuple(z, x)
  w = (s32[], f32[8]) while(s), condition=condition, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""
    found = hlo.parse(text).cost()
    assert found.run.flops > 40 * found.flops
    for number in (found.run.flops, found.flops):
        assert f"={number:,.0f}" in repr(found)
    assert repr(found).endswith("(loop bodies once)>")
    assert "loop bodies" not in repr(hlo.parse(TEXT).cost())


def test_methods_show_the_signature_of_their_function() -> None:
    module = hlo.parse(TEXT)
    own = list(inspect.signature(hlo.cost.analyze).parameters.values())[1:]
    assert list(inspect.signature(module.cost).parameters.values()) == own
    assert module.cost.__doc__ == hlo.cost.analyze.__doc__


def test_a_module_renames_what_is_in_it() -> None:
    module, other = hlo.parse(TEXT), hlo.parse(TEXT)
    module.rename(module.entry.root, "x")
    module.rename(module.entry, "main")
    assert (module.entry.name, module.entry.root.name) == ("main", "x")
    for node in (other.entry, other.entry.root):
        with pytest.raises(hlo.EditError, match=f"{node.name} is not in module m"):
            module.rename(node, "y")


def test_dir_is_what_is_public() -> None:
    """Every name exists, and none is an import of the package's own."""
    shown = [name for name in dir(hlo) if not name.startswith("__")]
    assert all(hasattr(hlo, name) for name in shown)
    assert not any(name.startswith("_") for name in shown)
    assert {"os", "Any", "IO", "annotations", "TYPE_CHECKING", "syntax", "edit"}.isdisjoint(shown)
    assert set(hlo.__all__) <= set(shown)


def test_bytes_and_json_of_protos(tmp_path: Path) -> None:
    """They are read wherever text is."""
    pytest.importorskip("google.protobuf")
    module = hlo.parse(TEXT)
    proto = module.to_proto()
    text = hlo.proto.to_json(proto)
    for given in (proto, text, text.encode()):
        assert [one.name for one in hlo.parse_all(given)] == ["m"]
        assert hlo.parse(given).entry.root.opcode == "negate"
        found = hlo.parse_tolerant(given)
        assert (found.module.name, found.diagnostics) == ("m", ())
        path = tmp_path / "m.hlo.json"
        path.write_bytes(given if isinstance(given, bytes) else given.encode())
        assert hlo.load(path).entry.root.opcode == "negate"
    with pytest.raises(hlo.HloSyntaxError):
        hlo.parse(b'{"computations": 3}')
    assert hlo.parse_tolerant(b'{"computations": 3}').diagnostics
    with pytest.raises(hlo.HloSyntaxError):
        hlo.parse(proto[: len(proto) // 2])


def test_a_folder_without_names_of_xla(tmp_path: Path) -> None:
    """Its modules are found by content."""
    from hlotext.dumps.texts import module_texts

    (tmp_path / "notes.txt").write_text("nothing\n")
    (tmp_path / "step.txt").write_text(TEXT)
    assert [text.path for text in module_texts([tmp_path])] == [str(tmp_path / "step.txt")]


def _functions_of_modules() -> list[pytest.ParameterSet]:
    """Every public function whose first parameter is a module."""
    packages = [importlib.import_module(f"hlotext.{name}") for name in hlo._ROOMS]
    found = [(hlo, "verify"), *((package, name) for package in packages for name in package.__all__)]
    cases = []
    for package, name in found:
        function = getattr(package, name)
        parameters = (
            list(inspect.signature(function).parameters.values()) if inspect.isfunction(function) else []
        )
        if parameters and parameters[0].annotation in ("Module", "hlo.Module"):
            cases.append(pytest.param(function, parameters[1:], id=f"{package.__name__}.{name}"))
    return cases


def _consume(result: object) -> None:
    if isinstance(result, Iterator):
        next(result, None)


@pytest.mark.parametrize(("function", "further"), _functions_of_modules())
def test_paths_and_texts_are_no_modules(
    function: Callable[..., object], further: list[inspect.Parameter]
) -> None:
    """Each is refused with what reads it, before anything else is looked at."""
    needed = [None for one in further if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    for value, hint in (("m.txt", "hlotext.load"), (Path("m.txt"), "hlotext.load"), (TEXT, "hlotext.parse")):
        with pytest.raises(TypeError, match=rf"expected a Module, not \w+; {hint}\("):
            _consume(function(value, *needed))


def test_a_module_has_methods_for_names() -> None:
    module = hlo.parse(TEXT)
    with pytest.raises(TypeError, match=r"use module\.instruction\('r'\) or module\.computation\('r'\)$"):
        module["r"]
    with pytest.raises(TypeError, match="not iterable"):
        list(module)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"module\.computations"):
        module[0]
