"""Products with a concatenation of which a part only picks rows: one-hot columns, and rows that were gathered."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from tests import support

ONE_HOT = """HloModule step, is_scheduled=true

ENTRY main {
  ids = s32[4096]{0} parameter(0)
  numbers = f32[4096,128]{1,0} parameter(1)
  w = f32[4224,256]{1,0} parameter(2)
  each = s32[4096,4096]{1,0} broadcast(ids), dimensions={0}
  class = s32[4096,4096]{1,0} iota(), iota_dimension=1
  is = pred[4096,4096]{1,0} compare(each, OTHER), direction=EQ
  hot = f32[4096,4096]{1,0} convert(is)
  both = f32[4096,4224]{1,0} concatenate(hot, numbers), dimensions={1}
  ROOT out = f32[4096,256]{1,0} dot(both, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
EDGES = """HloModule step, is_scheduled=true

ENTRY main {
  nodes = f32[ROWS,128]{1,0} parameter(0)
  from = s32[65536,1]{1,0} parameter(1)
  to = s32[65536,1]{1,0} parameter(2)
  w = f32[256,128]{1,0} parameter(3)
  a = f32[65536,128]{1,0} gather(nodes, from), ROWS_OF
  b = f32[65536,128]{1,0} gather(nodes, to), ROWS_OF
  both = f32[65536,256]{1,0} concatenate(a, b), dimensions={1}
  ROOT out = f32[65536,128]{1,0} dot(both, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

ROWS_OF = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}"
)
EDGES = EDGES.replace("ROWS_OF", ROWS_OF)


def found(text: str, code: str, chip: str = "h100") -> list[lint.Finding]:
    return lint.run(hlo.parse(text), lint.Config(select=(code,), chip=chip, **support.SAY_ALL))


def test_one_hot_columns_beside_others_are_found() -> None:
    (one,) = found(ONE_HOT.replace("OTHER", "class"), "D107")
    assert "4,096 of 4,224 columns" in one.message
    assert not found(ONE_HOT.replace("OTHER", "each"), "D107")


def test_rows_gathered_for_both_ends_of_edges_are_found() -> None:
    (one,) = found(EDGES.replace("ROWS", "4096"), "G119")
    assert "65,536 rows that were gathered from fewer" in one.message
    assert "6.2% of the FLOPs" in one.message


@pytest.mark.parametrize("rows", ["65536", "40000"])
def test_tables_of_as_many_rows_are_not(rows: str) -> None:
    assert not found(EDGES.replace("ROWS", rows), "G119")


def test_on_a_tpu_the_gather_is_the_dear_part() -> None:
    text = EDGES.replace("ROWS", "4096")
    config = lint.Config(select=("G119",), profile=Backend.TPU, **support.SAY_ALL)
    assert not lint.run(hlo.parse(text), config)
