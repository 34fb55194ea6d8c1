"""Causes of collectives inside fusions, whose metadata the TPU compiler keeps for the fusion alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_support import run

TEXT = """HloModule jit_f, is_scheduled=true, num_partitions=8

add (a: f32[], b: f32[]) -> f32[] {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

scatter (input: f32[512,1024]) -> f32[512,128] {
  input = f32[512,1024]{1,0} parameter(0)
  all-reduce.5 = f32[512,1024]{1,0} all-reduce(input), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=add
  zero = s32[] constant(0)
  ROOT part = f32[512,128]{1,0} dynamic-slice(all-reduce.5, zero, zero), dynamic_slice_sizes={512,128}
}

ENTRY e (x: f32[512,64], y: f32[64,1024]) -> f32[512,128] {
  x = f32[512,64]{1,0} parameter(0)
  y = f32[64,1024]{1,0} parameter(1)
  product = f32[512,1024]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, @PRODUCT
  ROOT fused = f32[512,128]{1,0} fusion(product), kind=kCustom, calls=scatter, @
}
"""


@pytest.mark.parametrize("name", ["reduce_sum", ""])
def test_the_fusion_around_names_the_operation(name: str, tmp_path: Path) -> None:
    """Its operand may be made by another operation."""
    metadata = 'metadata={op_name="jit(f)/%s" source_file="f.py" source_line=7}'
    text = TEXT.replace("@PRODUCT", metadata % "dot_general").replace(
        ", @", f", {metadata % name}" if name else ""
    )
    (tmp_path / "m.hlo").write_text(text)
    told = run("comm", tmp_path / "m.hlo").stdout
    assert ("reduce_sum (line 7) reduces over a dimension" in told) is bool(name)
