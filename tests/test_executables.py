"""Contents of an executable, by the files of its dump folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlotext import compiler, dumps

TEXT = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

fused { p = f32[4]{0} parameter(0)  ROOT n = f32[4]{0} negate(p) }

ENTRY main { x = f32[4]{0} parameter(0)
  a = f32[4]{0} fusion(x), kind=kLoop, calls=fused
  ROOT b = f32[4]{0} fusion(a), kind=kLoop, calls=fused
}
"""
GPU, CPU = "sm_9.0_gpu_after_optimizations.txt", "cpu_after_optimizations.txt"
PTX = "//\n.visible .entry a(\n)\n.visible .entry other(\n)\n"


def parts(folder: Path, files: dict[str, str]) -> dict[str, compiler.ExecutablePart]:
    for ending, text in files.items():
        (folder / f"module_0001.jit_f.{ending}").write_text(text)
    (compilation,) = dumps.open(folder).compilations
    return {part.name: part for part in compiler.executable(compilation).parts}


@pytest.mark.parametrize(
    ("files", "name", "missing"),
    [
        ({GPU: TEXT}, "device", "no gpu_target_config.pbtxt"),
        ({GPU: TEXT}, "options", "no debug_options"),
        ({GPU: TEXT}, "kernels", "no PTX"),
        ({CPU: TEXT}, "kernels", "no object files"),
        ({"before_optimizations.txt": TEXT}, "kernels", "no code"),
        ({"before_optimizations.txt": TEXT}, "program", "no final HLO"),
        ({"before_optimizations.txt": TEXT}, "buffers", "no scheduled text"),
        ({"before_optimizations.txt": TEXT}, "thunks", "neither an XLA thunk list"),
    ],
)
def test_parts_that_a_folder_lacks(tmp_path: Path, files: dict[str, str], name: str, missing: str) -> None:
    assert parts(tmp_path, files)[name].missing.startswith(missing)


def test_parts_of_a_gpu_executable(tmp_path: Path) -> None:
    found = parts(
        tmp_path,
        {
            GPU: TEXT,
            "ptx": PTX,
            "debug_options": "xla_gpu_enable_triton_gemm: false\n",
            "gpu_target_config.pbtxt": 'device_description_str: "NVIDIA H100"\n',
        },
    )
    shown = {
        name: (part.count, part.bytes, part.detail, Path(part.source).name) for name, part in found.items()
    }
    assert shown == {
        "program": (5, None, "2 computations", f"module_0001.jit_f.{GPU}"),
        "constants": (0, 0, "allocations", "computed"),
        "arguments": (1, 16, "allocations", "computed"),
        "outputs": (1, 16, "allocations", "computed"),
        "temporaries": (0, 0, "allocations", "computed"),
        "thunks": (2, None, "2 kCustomKernel", "computed"),
        "command buffers": (0, None, "", "computed"),
        "kernels": (2, len(PTX), "ptx of 2 kernels", "module_0001.jit_f.ptx"),
        "options": (1, None, "that differ from their defaults", "debug_options"),
        "device": (None, None, "NVIDIA H100", "gpu_target_config"),
    }
    assert not any(part.missing for part in found.values())


def test_a_cpu_has_no_device_of_its_own(tmp_path: Path) -> None:
    assert "device" not in parts(tmp_path, {CPU: TEXT})
