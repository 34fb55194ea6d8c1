"""What people hold in place of text: each kind gives its module, or the line that helps."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from tests.cli_support import run

STABLE = """module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.tanh %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
PROTO = hlo.parse("HloModule jit_f\nENTRY e { p = f32[4] parameter(0)  ROOT t = f32[4] tanh(p) }")


def test_bytes_are_told_by_their_beginning() -> None:
    pytest.importorskip("google.protobuf")
    assert hlo.load(PROTO.to_proto()).entry.root.opcode == "tanh"
    assert hlo.load(str(PROTO).encode()).entry.root.opcode == "tanh"
    with pytest.raises(hlo.InputError, match=r"pickled object.*hlotext\.load"):
        hlo.load(pickle.dumps({"a": 1}))
    with pytest.raises(hlo.InputError, match=r"hlotext\.parse"):
        hlo.load(str(PROTO))


def test_stablehlo_without_jaxlib_says_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Python and for a command the same line."""
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    path = tmp_path / "f.mlir"
    path.write_text(STABLE)
    with pytest.raises(hlo.InputError, match=r"hlotext\[jax\].*as_text\('hlo'\)"):
        hlo.load(path)
    result = run("show", path)
    assert result.exit_code == 2
    assert "lowered.as_text('hlo')" in result.stderr


class Computation:
    """What looks like jaxlib's."""

    def as_serialized_hlo_module_proto(self) -> bytes:
        return PROTO.to_proto()


class Jitted:
    """What looks like `jax.jit(f)`."""

    def lower(self) -> None: ...
    def trace(self) -> None: ...


def test_objects_are_told_by_their_methods() -> None:
    pytest.importorskip("google.protobuf")
    assert hlo.load(Computation()).name == "jit_f"
    with pytest.raises(hlo.InputError, match=r"jitted function: call \.lower"):
        hlo.load(Jitted())
    with pytest.raises(TypeError, match="expected a path"):
        hlo.load({})


@pytest.mark.xla
def test_what_jax_holds(tmp_path: Path) -> None:
    """Lowered, compiled, exported, traced, jitted functions, and StableHLO in each form."""
    jax = pytest.importorskip("jax")
    export = pytest.importorskip("jax.export")
    jitted = jax.jit(lambda x: jax.numpy.tanh(x))
    argument = jax.ShapeDtypeStruct((4,), "float32")
    lowered = jitted.lower(argument)
    exported = export.export(jitted)(argument)
    held: list[Any] = [
        lowered,
        lowered.compile(),
        lowered.compile().runtime_executable(),
        lowered.compile().runtime_executable().hlo_modules()[0],
        lowered.compiler_ir(dialect="hlo"),
        lowered.compiler_ir(),
        exported,
        exported.mlir_module_serialized,
        lowered.as_text().encode(),
    ]
    for value in held:
        assert any(i.opcode == "tanh" for i in hlo.load(value).instructions()), type(value)
    for value in (jitted, jitted.trace(argument)):
        with pytest.raises(hlo.InputError, match=r"\.lower\("):
            hlo.load(value)
    path = tmp_path / "f.mlir"
    path.write_text(lowered.as_text())
    for command in ("show", "lint"):
        shown = run(command, path)
        assert shown.exit_code == 0
        assert "StableHLO, converted by jaxlib" in shown.stderr
    files = {frame.file for one in hlo.load(path).instructions() for frame in one.frames}
    assert files == {str(path)}


def test_convert_takes_stablehlo(tmp_path: Path) -> None:
    """The error of the other commands sends people there."""
    pytest.importorskip("jaxlib")
    path, out = tmp_path / "f.mlir", tmp_path / "f.txt"
    path.write_text(STABLE)
    result = run("convert", path, "-o", out)
    assert result.exit_code == 0, result.stderr
    assert hlo.load(out).entry.root.opcode == "tanh"
