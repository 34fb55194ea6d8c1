"""Masks of positions that depend on the iteration of a loop: which iterations they leave anything of."""

from __future__ import annotations

import hlotext as hlo
from hlotext.lint.masks import Rate, kept_part
from hlotext.lint.values import Value

LOOP = """HloModule blocks

body {
  state = (s32[], s32[8]{0}, pred[512,512]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  table = s32[8]{0} get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  cut = s32[1]{0} dynamic-slice(table, i), dynamic_slice_sizes={1}
  j = s32[] reshape(cut)
  size = s32[] constant(512)
  first = s32[] multiply(j, size)
  row = s32[512,512]{1,0} iota(), iota_dimension=0
  column = s32[512,512]{1,0} iota(), iota_dimension=1
  places = s32[512,512]{1,0} broadcast(first), dimensions={}
  MASK
  ROOT state_next = (s32[], s32[8]{0}, pred[512,512]{1,0}) tuple(next, TABLE, mask)
}

condition {
  state = (s32[], s32[8]{0}, pred[512,512]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  end = s32[] constant(8)
  ROOT more = pred[] compare(i, end), direction=LT
}

ENTRY main {
  zero = s32[] constant(0)
  table = s32[8]{0} iota(), iota_dimension=0
  no = pred[] constant(false)
  mask = pred[512,512]{1,0} broadcast(no), dimensions={}
  state = (s32[], s32[8]{0}, pred[512,512]{1,0}) tuple(zero, table, mask)
  ROOT loop = (s32[], s32[8]{0}, pred[512,512]{1,0}) while(state), condition=condition, body=body
}
"""


def rate(mask: str, table: str = "table") -> Rate | None:
    module = hlo.parse(LOOP.replace("MASK", mask).replace("TABLE", table))
    return kept_part(Value(module.computation("body").root.operands[2]))


def test_iterations_of_which_a_mask_keeps_nothing_are_counted() -> None:
    """Rows 1536 to 2047 and columns from 512 j on: four of eight blocks of columns are not all later."""
    found = rate(
        "from = s32[] constant(1536)\n  froms = s32[512,512]{1,0} broadcast(from), dimensions={}\n"
        "  rows = s32[512,512]{1,0} add(froms, row)\n  columns = s32[512,512]{1,0} add(places, column)\n"
        "  mask = pred[512,512]{1,0} compare(rows, columns), direction=GE"
    )
    assert found is not None
    assert found.rounds == (4 / 8, 5 / 8)
    assert abs(found.part - 3.5 / 8) < 0.01
    # Of the block with the diagonal ten of 16 blocks of 128 have an element at least.
    assert abs(found.blocks[0] - (3 + 10 / 16) / 8) < 0.01
    assert found.complement().rounds == (5 / 8, 4 / 8)


def test_a_table_that_changes_is_not_known() -> None:
    mask = "mask = pred[512,512]{1,0} compare(row, places), direction=GE"
    changed = mask + "\n  other = s32[8]{0} add(table, table)"
    assert rate(changed, "other") is None


def test_rows_that_are_filled_by_an_iteration_are_no_mask() -> None:
    """A cache has a fixed size, whatever part of it an iteration needs."""
    mask = (
        "counted = s32[512]{0} iota(), iota_dimension=0\n  ends = s32[512]{0} broadcast(i), dimensions={}\n"
        "  filled = pred[512]{0} compare(counted, ends), direction=LE\n"
        "  mask = pred[512,512]{1,0} broadcast(filled), dimensions={1}"
    )
    assert rate(mask) is None
